//! A Git repository, and a store with scripted sessions of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use steno_model::{Clock, Timestamp};
use steno_store::StoreLocation;
use steno_store::blame::{
    BlamedFile, FileSession, GitRepository, LineOrigin, OriginCertainty, RepositoryScope,
    SessionBlamer, find_file_sessions,
};
use steno_store::index::{Index, IndexError};
use steno_store::sync::SessionSyncer;
use tempfile::TempDir;

/// The second from which all times are counted: 2026-01-05T09:00:00Z.
const START: i64 = 1_767_603_600;

/// A repository and a store.
pub(crate) struct BlameStage {
    dir: TempDir,
}

impl BlameStage {
    pub(crate) fn new() -> Self {
        let stage = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir_all(stage.root()).unwrap();
        fs::create_dir_all(stage.dir.path().join("logs")).unwrap();
        stage.git(&["init", "-q", "-b", "main"]);
        stage
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("shop")
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.root().join(name).to_string_lossy().into_owned()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.git_at(args, START, START)
    }

    fn git_at(&self, args: &[&str], author: i64, committer: i64) -> String {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]).args(args);
        command.current_dir(self.root()).env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.env("GIT_AUTHOR_DATE", format!("{author} +0000"));
        command.env("GIT_COMMITTER_DATE", format!("{committer} +0000"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Commits all changes, so many seconds after the start.
    pub(crate) fn commit(&self, at: i64) {
        self.commit_at(at, at);
    }

    /// Commits all changes as a rebase does: written at one time and committed at another.
    pub(crate) fn commit_at(&self, author: i64, committer: i64) {
        self.git(&["add", "-A"]);
        self.git_at(&["commit", "-q", "-m", "change"], START + author, START + committer);
    }

    pub(crate) fn commit_with_message(&self, at: i64, message: &str) {
        self.git(&["add", "-A"]);
        self.git_at(&["commit", "-q", "-m", message], START + at, START + at);
    }

    fn store(&self) -> StoreLocation {
        StoreLocation::new(self.dir.path().join("store"), Clock::fixed(self.now()))
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_unix(START + 100_000).unwrap()
    }

    /// Keeps a session as Claude Code writes it.
    pub(crate) fn keep(&self, session: &ScriptedSession) {
        let folder = self.dir.path().join("logs");
        let text = session.to_jsonl(&self.root());
        fs::write(folder.join(format!("{}.jsonl", session.name)), text).unwrap();
        SessionSyncer::new(self.store()).unwrap().sync_folder(&folder).unwrap();
    }

    pub(crate) fn repository(&self) -> GitRepository {
        GitRepository::containing(&self.root()).unwrap()
    }

    fn ask<T>(&self, ask: &dyn Fn(&Index) -> Result<T, IndexError>) -> T {
        let index = self.store().index();
        let mut refresh = |open: &Index| index.catch_up(open, &mut |_, _| ()).map(drop);
        index.query(&mut refresh, ask).unwrap().value
    }

    pub(crate) fn blame_file(&self, name: &str) -> (BlamedFile, Vec<LineOrigin>) {
        let repository = self.repository();
        let store = self.store();
        let scope = RepositoryScope::new(&repository, &store.folder);
        let file = BlamedFile::read(&repository, &self.root().join(name), None).unwrap();
        let vault = store.vault();
        let origins = self.ask(&|index| {
            SessionBlamer::new(index, &vault, &scope, self.now()).find_origins(&file)
        });
        (file, origins)
    }

    pub(crate) fn blame(&self, name: &str) -> Vec<LineOrigin> {
        self.blame_file(name).1
    }

    pub(crate) fn levels(&self, name: &str) -> Vec<OriginCertainty> {
        self.blame(name).iter().map(|line| line.certainty).collect()
    }

    pub(crate) fn blame_commit(&self, commit: &str) -> Vec<(String, Vec<LineOrigin>)> {
        let repository = self.repository();
        let store = self.store();
        let scope = RepositoryScope::new(&repository, &store.folder);
        let files = BlamedFile::read_commit(&repository, commit).unwrap();
        let vault = store.vault();
        self.ask(&|index| {
            let mut blamer = SessionBlamer::new(index, &vault, &scope, self.now());
            files.iter().map(|file| Ok((file.path.clone(), blamer.find_origins(file)?))).collect()
        })
    }

    pub(crate) fn file_sessions(&self, name: &str) -> Vec<FileSession> {
        let store = self.store();
        let scope = RepositoryScope::new(&self.repository(), &store.folder);
        self.ask(&|index| find_file_sessions(index, &store.vault(), &scope, name))
    }
}

/// A session of Claude Code. Each record is one second after the one before.
#[derive(Clone)]
pub(crate) struct ScriptedSession {
    name: String,
    at: i64,
    folder: Option<PathBuf>,
    records: Vec<(i64, Value)>,
}

impl ScriptedSession {
    /// A session that begins so many seconds after the start.
    pub(crate) fn new(name: &str, at: i64) -> Self {
        Self { name: name.to_owned(), at, folder: None, records: Vec::new() }
    }

    pub(crate) fn in_folder(mut self, folder: PathBuf) -> Self {
        self.folder = Some(folder);
        self
    }

    pub(crate) fn copied_as(&self, name: &str) -> Self {
        Self { name: name.to_owned(), at: self.at + 1000, ..self.clone() }
    }

    fn push(mut self, role: &str, content: Value) -> Self {
        let message = json!({
            "id": format!("m{}", self.at), "role": role, "model": "claude-test-1", "content": content,
        });
        self.records.push((self.at, json!({"type": role, "message": message})));
        self.at += 1;
        self
    }

    pub(crate) fn prompt(self, text: &str) -> Self {
        self.push("user", json!(text))
    }

    pub(crate) fn call(self, tool: &str, input: Value, result: &str) -> Self {
        self.call_with(tool, input, json!({"content": result, "is_error": false}))
    }

    pub(crate) fn failed_call(self, tool: &str, input: Value, result: &str) -> Self {
        self.call_with(tool, input, json!({"content": result, "is_error": true}))
    }

    fn call_with(self, tool: &str, input: Value, mut result: Value) -> Self {
        let id = format!("t{}", self.at);
        let called = self.push(
            "assistant",
            json!([{"type": "tool_use", "id": id, "name": tool, "input": input}]),
        );
        result["type"] = json!("tool_result");
        result["tool_use_id"] = json!(id);
        called.push("user", json!([result]))
    }

    pub(crate) fn write_file(self, path: &str, content: &str) -> Self {
        self.call("Write", json!({"file_path": path, "content": content}), "done")
    }

    pub(crate) fn edit(self, path: &str, old: &str, new: &str) -> Self {
        self.call("Edit", json!({"file_path": path, "old_string": old, "new_string": new}), "done")
    }

    fn to_jsonl(&self, root: &Path) -> String {
        let folder = self.folder.as_deref().unwrap_or(root);
        let line = |(number, (at, record)): (usize, &(i64, Value))| {
            let mut record = record.clone();
            record["uuid"] = json!(format!("u{at}-{number}"));
            record["sessionId"] = json!(self.name);
            record["cwd"] = json!(folder);
            record["version"] = json!("2.1.0");
            record["timestamp"] = json!(Timestamp::from_unix(START + at).unwrap().to_string());
            format!("{record}\n")
        };
        self.records.iter().enumerate().map(line).collect()
    }
}

/// The key that git-ai has for a session of Claude Code.
pub(crate) fn git_ai_key(session: &str) -> String {
    let hash = Sha256::digest(format!("claude:{session}").as_bytes());
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("s_{}", &hex[..14])
}
