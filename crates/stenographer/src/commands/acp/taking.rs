//! What is taken down of one connection: each session in a log of its own.

use std::collections::HashMap;
use std::ffi::OsString;
use std::process::{Command, ExitStatus, Stdio};

use memchr::{memchr, memmem};
use steno_core::agent::acp::redact::Redactor;
use steno_core::agent::acp::route::{self, Line, Placed, Router};
use steno_core::agent::acp::wire::{Side, Wire};
use steno_core::agent::places::places;
use steno_core::agent::{acp, gemini, opencode};
use steno_core::index::pending::Marker;
use steno_core::lines::LINE_LIMIT;
use steno_core::vault::record::{Closing, Opening};
use steno_core::vault::recorder::Recorder;
use steno_core::vault::{AgentName, Vault};
use steno_core::{SessionId, Status, Timestamp};

use super::naming;
use crate::error::CommandError;
use crate::indexer::Indexer;
use crate::scene::Scene;
use crate::ui::Ui;

/// Bytes that may wait for a session to be named; then they get one of their own.
const NAMELESS: usize = 1 << 20;

/// What a message says that ends a turn.
const STOP: &[u8] = b"\"stopReason\"";

/// One connection while it is taken down.
pub(super) struct Taking {
    scene: Scene,
    vault: Vault,
    command: Vec<OsString>,
    /// Whose sessions these are, where the user says so.
    agent: Option<AgentName>,
    /// What the agent calls itself.
    told: Option<String>,
    /// What each side has begun to say.
    torn: HashMap<Side, Vec<u8>>,
    redactor: Redactor,
    router: Router,
    sessions: HashMap<String, Taken>,
    has_news: bool,
    /// The store is of no use; nothing more is taken down.
    is_over: bool,
}

/// A session that is being taken down.
struct Taken {
    recorder: Recorder,
    /// Has the next search take the session in: nobody is to wait for that here.
    _marker: Option<Marker>,
}

impl Taking {
    pub(super) fn new(scene: &Scene, agent: Option<AgentName>, command: &[OsString]) -> Self {
        Self {
            scene: scene.clone(),
            vault: Vault::new(scene.store.join("vault")),
            command: command.to_vec(),
            agent,
            told: None,
            torn: HashMap::new(),
            redactor: Redactor::default(),
            router: Router::default(),
            sessions: HashMap::new(),
            has_news: false,
            is_over: false,
        }
    }

    /// Takes what one side has said, at whichever byte it was cut.
    pub(super) fn piece(&mut self, side: Side, at: Timestamp, mut bytes: &[u8]) {
        if self.is_over {
            return;
        }
        let mut placed = Vec::new();
        while let Some(end) = memchr(b'\n', bytes) {
            let mut line = self.torn.remove(&side).unwrap_or_default();
            line.extend_from_slice(&bytes[..=end]);
            bytes = &bytes[end + 1..];
            placed.extend(self.line(side, at, &line));
        }
        let torn = self.torn.entry(side).or_default();
        torn.extend_from_slice(bytes);
        if torn.len() >= LINE_LIMIT {
            let line = std::mem::take(torn);
            placed.extend(self.line(side, at, &line));
        }
        let ends_turn = |(_, line): &Placed| {
            line.wire.side == Side::Agent && memmem::find(&line.wire.bytes, STOP).is_some()
        };
        let is_turn = placed.iter().any(ends_turn);
        self.keep(&placed);
        if is_turn {
            self.commit();
        }
    }

    /// Has all that was taken down on disk.
    pub(super) fn commit(&mut self) {
        if !std::mem::take(&mut self.has_news) || self.is_over {
            return;
        }
        let failure = self.sessions.values().find_map(|taken| taken.recorder.commit().err());
        if let Some(error) = failure {
            self.stop(&error.into());
        }
    }

    /// The store is too slow, and something was not kept.
    pub(super) fn give_up(&mut self) {
        self.stop(&CommandError::user("the store is too slow"));
    }

    /// The connection has ended.
    pub(super) fn end(mut self, status: Option<ExitStatus>) {
        for (side, line) in std::mem::take(&mut self.torn) {
            if !line.is_empty() {
                let placed = self.line(side, self.scene.clock.now(), &line);
                self.keep(&placed);
            }
        }
        let rest = std::mem::take(&mut self.router).rest().into_iter();
        let name = SessionId::fresh().to_string();
        self.keep(&rest.map(|line| (name.clone(), line)).collect::<Vec<_>>());
        if self.is_over {
            return;
        }
        let closing = closing(status);
        for (name, taken) in std::mem::take(&mut self.sessions) {
            let dir = taken.recorder.dir().clone();
            if let Err(error) = taken.recorder.close(&closing) {
                return self.stop(&error.into());
            }
            self.join(dir.agent(), &name);
        }
    }

    /// Takes a line; gives those whose session is known now.
    fn line(&mut self, side: Side, at: Timestamp, line: &[u8]) -> Vec<Placed> {
        if side == Side::Agent && self.told.is_none() {
            self.told = route::agent_name(line);
        }
        let bytes = self.redactor.redact(line).into_owned();
        let mut placed = self.router.place(Line { at, wire: Wire { side, bytes } });
        if self.router.waiting() > NAMELESS {
            placed.extend(self.router.settle(SessionId::fresh().as_str()));
        }
        placed
    }

    fn keep(&mut self, placed: &[Placed]) {
        for lines in placed.chunk_by(|(one, _), (next, _)| one == next) {
            if self.is_over {
                return;
            }
            if let Err(error) = self.append(lines) {
                self.stop(&error);
            }
        }
    }

    /// Appends lines of one session.
    fn append(&mut self, lines: &[Placed]) -> Result<(), CommandError> {
        let Some((name, _)) = lines.first() else { return Ok(()) };
        if !self.sessions.contains_key(name) {
            let taken = self.open(name)?;
            self.sessions.insert(name.clone(), taken);
        }
        self.has_news = true;
        let lines = lines.iter().map(|(_, line)| line);
        Ok(self.sessions[name].recorder.append_wire(lines)?)
    }

    fn open(&self, name: &str) -> Result<Taken, CommandError> {
        let agent = self.agent.clone();
        let agent = agent.unwrap_or_else(|| naming::agent(self.told.as_deref(), &self.command));
        let id = SessionId::for_native(agent.as_str(), name);
        let dir = self.vault.session(&agent, &id);
        if dir.is_recorded()? && !dir.is_wire()? {
            let error = format!("session {id} was recorded by `steno record`");
            return Err(CommandError::user(error));
        }
        let opening = Opening {
            agent: agent.as_str().to_owned(),
            project: Some(self.scene.cwd.to_string_lossy().into_owned()),
            native_id: Some(name.to_owned()),
            protocol: Some(acp::AGENT.to_owned()),
        };
        let _marker = Indexer::new(&self.scene.store).mark(&dir);
        let recorder = Recorder::open(dir, &opening, self.scene.clock.clone())?;
        Ok(Taken { recorder, _marker })
    }

    /// Tells once that nothing more is taken down.
    fn stop(&mut self, error: &CommandError) {
        if !std::mem::replace(&mut self.is_over, true) {
            let why = &error.error;
            let cause = why.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            Ui::stdio()
                .warning(format_args!("the recording stops, the agent goes on: {why}{cause}"));
        }
    }

    /// Has what the agent itself wrote of the session kept, in the background: nobody waits for that.
    fn join(&self, agent: &str, session: &str) {
        let places = places(&self.scene.home, &Scene::variable);
        let is_known = places.iter().any(|place| place.agent == agent && place.path.exists());
        let Some(program) = Scene::program().ok().filter(|_| is_known) else { return };
        let mut steno = Command::new(program);
        match agent {
            // Their files are not named after the session.
            gemini::AGENT | opencode::AGENT => steno.args(["sync", "--quiet", "--agent", agent]),
            _ => {
                let told = serde_json::json!({ "session_id": session }).to_string();
                steno.args(["hook", agent, &told])
            }
        };
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut steno, 0);
        steno.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Without it, the next `steno sync` does the same.
        let _ = steno.spawn();
    }
}

/// How a connection ended.
fn closing(status: Option<ExitStatus>) -> Closing {
    match status {
        Some(status) if !status.success() => Closing {
            status: Status::Failed,
            reason: Some(format!("the agent ended with {status}")),
        },
        _ => Closing { status: Status::Completed, reason: None },
    }
}
