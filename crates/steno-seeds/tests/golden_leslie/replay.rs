//! The session that left leslie's sample stores and their folders, done by us.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use steno_model::{Clock, Entry, EntryKind, Role, Session, SessionId, Transcript};
use steno_seeds::leslie;
use steno_seeds::thread::guide::LeslieGuide;
use steno_seeds::thread::{
    ConflictStrategy, Executor, IdSource, Inheritance, LifecycleAction, MergeRequest, Operator,
    ReferenceBinding, ReferenceRequest, SpawnRequest, StatusChange, Thread, ThreadInjection,
    ThreadStore, ThreadTransfer, TransferDirection,
};

use super::{NORMALISED, NOW};

/// The project in which it happens.
///
/// Two of the commands are refused: a transfer `sideways` and a transcript of a thread that does not exist.
pub(crate) struct Replay {
    pub(crate) dir: tempfile::TempDir,
    store: ThreadStore,
    threads: Vec<Thread>,
}

impl Replay {
    /// Does all of it.
    pub(crate) fn run() -> Self {
        let mut replay = Self::begin();
        let objective = replay.store.create_objective("Build API").unwrap().id.to_string();
        replay.spawn_threads(&objective);
        replay.work(&objective);
        replay
    }

    fn begin() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let calls = AtomicU32::new(0);
        // Ids that sort as those did that the samples hide.
        let ids = IdSource::new(move || match calls.fetch_add(1, Ordering::Relaxed) {
            1 => 0x20,
            3 => 0x10,
            11 => 0x30,
            17 => 0x50,
            30 => 0x40,
            other => other + 0x100,
        });
        let store = ThreadStore::new(dir.path(), Clock::fixed(NOW.parse().unwrap()), ids);
        store.init().unwrap();
        LeslieGuide::built_in().put_into(&dir.path().join("AGENTS.md"), None).unwrap();
        Self { store, dir, threads: Vec::new() }
    }

    fn id(&self, number: usize) -> String {
        self.threads[number - 1].id.to_string()
    }

    fn spawn(&mut self, spawn: &SpawnRequest) {
        let thread = self.store.spawn_thread(spawn).unwrap().thread;
        self.threads.push(thread);
    }

    fn refer(&self, from: usize, target: &str, binding: ReferenceBinding, scope: &[&str]) {
        let scope = scope.iter().map(|path| (*path).to_owned()).collect();
        let (from, target) = (self.id(from), target.to_owned());
        let scope = Some(scope);
        let reference = ReferenceRequest { from, target, binding, scope, operator: Operator::User };
        self.store.add_reference(&reference).unwrap();
    }

    fn transfer(
        &self,
        direction: TransferDirection,
        reason: Option<&str>,
        executor: Option<Executor>,
    ) {
        let (thread, scope) = (self.id(1), vec!["code_edit".to_owned()]);
        let (reason, operator) = (reason.map(str::to_owned), Operator::User);
        let transfer = ThreadTransfer { thread, direction, scope, reason, executor, operator };
        self.store.transfer_thread(&transfer).unwrap();
    }

    fn lifecycle(&self, number: usize, action: LifecycleAction, reason: Option<&str>) {
        let (thread, reason) = (self.id(number), reason.map(str::to_owned));
        let change = StatusChange { thread, action, reason, operator: Operator::User };
        self.store.change_status(&change).unwrap();
    }

    fn write_assets(&self) {
        let folder = self.dir.path().join(&self.threads[0].storage_path);
        for name in ["design", "discuss", "learnings", "requirements"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        for name in ["plan.md", "progress.md", "design/api.md", "requirements/r.md"] {
            fs::write(folder.join(name), name).unwrap();
        }
    }

    fn spawn_threads(&mut self, objective: &str) {
        let spawn = |intent: &str| SpawnRequest::new(intent, objective);
        self.spawn(&SpawnRequest { executor: Executor::Human, ..spawn("Design API") });
        self.write_assets();
        let parent = Some(self.id(1));
        let tags = Some(vec!["x".to_owned(), "y".to_owned()]);
        let title = "Write \"tests\" & <docs>";
        self.spawn(&SpawnRequest { parent: parent.clone(), tags, ..spawn(title) });
        self.refer(2, &self.id(1), ReferenceBinding::Frozen, &[]);
        self.refer(1, "thread-missing", ReferenceBinding::Frozen, &[]);
        self.refer(2, &self.id(1), ReferenceBinding::Live, &["plan.md"]);
        self.spawn(&SpawnRequest {
            parent: parent.clone(),
            inherit: Inheritance::Full,
            references: vec![self.id(1), "thread-nope".to_owned()],
            executor: Executor::Human,
            ..spawn("inherit full")
        });
        let scope = ["requirements", "plan.md", "../escape"].map(str::to_owned).to_vec();
        let inherit = Inheritance::Partial;
        self.spawn(&SpawnRequest { parent, inherit, scope, ..spawn("inherit partial") });
    }

    fn work(&mut self, objective: &str) {
        let (kind, content) = ("constraint".to_owned(), "Must support TypeScript".to_owned());
        let inject =
            ThreadInjection { thread: self.id(1), kind, content, operator: Operator::User };
        self.store.inject_text(&inject).unwrap();
        self.transfer(TransferDirection::RequestApproval, Some("REST vs GraphQL"), None);
        self.transfer(TransferDirection::Handoff, None, Some(Executor::Human));
        self.lifecycle(1, LifecycleAction::Suspend, Some("wait"));
        self.lifecycle(1, LifecycleAction::Resume, None);
        self.lifecycle(1, LifecycleAction::Done, None);
        let merge = MergeRequest {
            sources: vec![self.id(3), self.id(4)],
            target: self.id(2),
            scope: Vec::new(),
            strategy: ConflictStrategy::Interactive,
            operator: Operator::User,
        };
        self.store.merge_threads(&merge).unwrap();
        self.lifecycle(2, LifecycleAction::Cancel, None);
        self.lifecycle(3, LifecycleAction::Done, None);
        self.lifecycle(4, LifecycleAction::Done, None);
        self.lifecycle(1, LifecycleAction::Archive, None);
        self.spawn(&SpawnRequest::new("late", objective));
        let transcript = transcript();
        self.store.write_transcript(&self.id(1), &transcript).unwrap();
        let unknown = self.store.write_transcript("no-such-thread", &transcript).unwrap_err();
        assert_eq!(unknown.code(), "T101");
    }

    /// A text with the ids as the samples number them.
    pub(crate) fn numbered(&self, text: &str) -> String {
        let mut text = text.replace(NOW, NORMALISED).replace("obj-00000100", "obj-00000001");
        for (index, thread) in self.threads.iter().enumerate() {
            text = text.replace(thread.id.as_str(), &format!("thread-{:08x}", index + 1));
        }
        text
    }
}

/// A user's question, and nothing more.
fn transcript() -> Transcript {
    let mut session =
        Session::new(SessionId::for_native(leslie::AGENT_NAME, "c"), leslie::AGENT_NAME);
    session.native_id = Some("c".to_owned());
    let mut entry = Entry::new(Role::User, EntryKind::Text, "Implement API");
    entry.created_at = Some(NOW.parse().unwrap());
    let mut transcript = Transcript::new(session);
    transcript.push(entry);
    transcript
}
