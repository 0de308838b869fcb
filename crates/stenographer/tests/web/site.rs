//! A machine with some sessions, and its own server.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A home folder with sessions and, once served, a page.
pub(crate) struct Site {
    home: TempDir,
    server: Option<Child>,
    address: String,
    token: String,
}

impl Site {
    /// An empty machine.
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        Self { home, server: None, address: String::new(), token: String::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.home.path()
    }

    /// Syncs a session of Claude Code with these messages, one every half minute.
    pub(crate) fn keep(&self, session: &str, messages: &[Value]) {
        let record = |(at, message): (usize, &Value)| {
            let kind = message["role"].as_str().unwrap();
            let time = format!(
                "2026-01-05T{:02}:{:02}:{:02}.000Z",
                9 + at / 120,
                at / 2 % 60,
                at % 2 * 30
            );
            let record = json!({
                "type": kind, "uuid": format!("u{at}"), "sessionId": session, "version": "2.1.0",
                "timestamp": time, "cwd": "/home/me/code/harbor", "gitBranch": "main", "message": message,
            });
            format!("{record}\n")
        };
        let lines: String = messages.iter().enumerate().map(record).collect();
        let file = self.path().join(format!("{session}.jsonl"));
        std::fs::write(&file, lines).unwrap();
        self.steno(&["import", file.to_str().unwrap()]);
    }

    /// Syncs a session with a subagent that has a subagent; each has a file.
    pub(crate) fn keep_nested(&self, session: &str) {
        let begin = |id: &str, prompt: &str| {
            block(
                &json!({"type": "tool_use", "id": id, "name": "Task", "input": {"prompt": prompt}}),
            )
        };
        let answer =
            json!({"type": "tool_result", "tool_use_id": "toolu_a", "content": "All is well."});
        let files = [
            (
                None,
                vec![
                    user("Look around"),
                    begin("toolu_a", "Look at the harbour"),
                    json!({"role": "user", "content": [answer]}),
                    assistant("Thanks."),
                ],
            ),
            (
                Some("a1"),
                vec![
                    user("Look at the harbour"),
                    begin("toolu_b", "Look at the lighthouse"),
                    assistant("It is calm."),
                ],
            ),
            (Some("b2"), vec![user("Look at the lighthouse"), assistant("It shines.")]),
        ];
        self.keep_files(session, &files);
    }

    /// Syncs a session with these files of messages: its own, and one for each subagent, by id.
    pub(crate) fn keep_files(&self, session: &str, files: &[(Option<&str>, Vec<Value>)]) {
        let root = self.path().join("project");
        for (agent, messages) in files {
            let record = |(at, message): (usize, &Value)| {
                let record = json!({
                    "type": message["role"], "uuid": format!("{agent:?}{at}"), "sessionId": session, "version": "2.1.0",
                    "isSidechain": agent.is_some(), "agentId": agent, "timestamp": format!("2026-01-05T09:00:{at:02}.000Z"),
                    "cwd": "/home/me/code/harbor", "message": message,
                });
                format!("{record}\n")
            };
            let lines: String = messages.iter().enumerate().map(record).collect();
            let file = match agent {
                Some(agent) => root.join(session).join(format!("subagents/agent-{agent}.jsonl")),
                None => root.join(format!("{session}.jsonl")),
            };
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, lines).unwrap();
        }
        self.steno(&["import", root.to_str().unwrap()]);
    }

    /// Runs `steno`.
    pub(crate) fn steno(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {printed}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs `steno` with any exit code. Returns its stderr.
    pub(crate) fn try_steno(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Starts recording a session.
    pub(crate) fn record(&self, session: &str) -> Recording {
        let mut command =
            self.command(&["record", "--agent", "demo", "--session", session, "--ack"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let printed = BufReader::new(child.stdout.take().unwrap());
        Recording { input: child.stdin.take(), printed, child }
    }

    /// Serves the page.
    pub(crate) fn serve(&mut self) {
        self.serve_with(&["--port", "0"]);
    }

    /// Serves the page with these flags; programs are found in the home folder's `bin`.
    pub(crate) fn serve_with(&mut self, flags: &[&str]) {
        let command = self.command(&[&["serve"], flags].concat());
        self.serve_by(command);
    }

    /// Serves the page at a time that does not pass.
    pub(crate) fn serve_at(&mut self, now: &str) {
        let mut command = self.command(&["serve", "--port", "0"]);
        command.env("STENO_NOW", now);
        self.serve_by(command);
    }

    /// The same with a runtime folder.
    pub(crate) fn serve_in_runtime_dir(&mut self, folder: &Path, flags: &[&str]) {
        let mut command = self.command(&[&["serve"], flags].concat());
        command.env("XDG_RUNTIME_DIR", folder);
        self.serve_by(command);
    }

    /// The same with a limit of open files.
    pub(crate) fn serve_with_open_files(&mut self, count: u32) {
        let program = env!("CARGO_BIN_EXE_steno");
        let script = format!("ulimit -n {count} && exec {program} serve --port 0");
        self.serve_by(self.program("/bin/sh", &["-c", &script]));
    }

    /// Returns the server's process id.
    pub(crate) fn server_id(&self) -> u32 {
        self.server.as_ref().unwrap().id()
    }

    /// Stops the server like Ctrl-C, and waits for its end.
    pub(crate) fn interrupt(&mut self) {
        let mut server = self.server.take().unwrap();
        let sent = Command::new("kill").args(["-INT", &server.id().to_string()]).status();
        assert!(sent.unwrap().success());
        server.wait().unwrap();
    }

    fn serve_by(&mut self, mut command: Command) {
        command.env("PATH", self.path().join("bin"));
        let mut server = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, token) = line.trim().split_once("/?token=").unwrap();
        (self.address, self.token) = (address.to_owned(), token.to_owned());
        self.server = Some(server);
    }

    /// Returns the URL of a page.
    pub(crate) fn at(&self, page: &str) -> String {
        format!("{}{page}", self.address)
    }

    /// Returns the URL with the token, for the first visit.
    pub(crate) fn first(&self, page: &str) -> String {
        format!("{}{page}?token={}", self.address, self.token)
    }

    fn command(&self, args: &[&str]) -> Command {
        self.program(env!("CARGO_BIN_EXE_steno"), args)
    }

    fn program(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.path()).env_clear().env("HOME", self.path());
        command.env("STENO_HOME", self.path().join("store")).env("TZ", "UTC");
        command.env("STENO_SYNC_AUTOMATIC", "false");
        command
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// A session that is being recorded.
pub(crate) struct Recording {
    input: Option<ChildStdin>,
    printed: BufReader<std::process::ChildStdout>,
    child: Child,
}

impl Recording {
    /// Records one more entry, and waits until it is on disk.
    pub(crate) fn say(&mut self, role: &str, content: &str) {
        let line = json!({"role": role, "content": content});
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
        let mut line = String::new();
        self.printed.read_line(&mut line).unwrap();
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

/// A message of the user.
pub(crate) fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// A message of the model.
pub(crate) fn assistant(text: &str) -> Value {
    block(&json!({"type": "text", "text": text}))
}

/// A thought of the model.
pub(crate) fn thought(text: &str) -> Value {
    block(&json!({"type": "thinking", "thinking": text, "signature": ""}))
}

/// A tool call and its result.
pub(crate) fn tool(name: &str, input: &Value, (answer, failed): (&str, bool)) -> [Value; 2] {
    let id = format!("toolu_{}", input.to_string().len());
    let call = block(&json!({"type": "tool_use", "id": id, "name": name, "input": input}));
    let result =
        json!({"type": "tool_result", "tool_use_id": id, "content": answer, "is_error": failed});
    [call, json!({"role": "user", "content": [result]})]
}

/// A message of the model with one block.
pub(crate) fn block(block: &Value) -> Value {
    json!({
        "id": format!("msg_{:016x}", block.to_string().len()), "type": "message", "role": "assistant",
        "model": "claude-sonnet-4-5", "content": [block],
        "usage": {"input_tokens": 40, "cache_read_input_tokens": 21_000, "output_tokens": 350},
    })
}
