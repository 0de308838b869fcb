//! Syncs by itself before a command that reads, so that a new user sees sessions at once.
//!
//! A child process does the work and outlives the command. The command waits for it only for a moment. The child
//! first copies the newest sessions, then all others.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use steno_agents::registry::session_locations::session_locations;
use steno_store::sync::SessionSyncer;

use crate::config::Config;
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::session_paths::existing_roots;
use crate::session_store::SessionStore;
use crate::sync_state::{LastSync, SyncLock, SyncLockState};
use crate::ui::{Ui, count_noun};

/// A sync is due after this time, or after [`INTERVAL_FACTOR`] times the duration of the last one.
const MIN_SYNC_INTERVAL: SignedDuration = SignedDuration::from_secs(10);

/// A sync is due after this time at the latest.
const MAX_SYNC_INTERVAL: SignedDuration = SignedDuration::from_mins(5);

/// Syncs take at most a tenth of the time.
const INTERVAL_FACTOR: i32 = 10;

/// How long a command waits for a sync of a store that has sessions.
const WAIT_TIMEOUT: Duration = Duration::from_millis(400);

/// How long a command waits for the first sessions of an empty store, after it has printed what it does.
const FIRST_WAIT_TIMEOUT: Duration = Duration::from_secs(3);

/// Variable that overrides `[sync] automatic` of `config.toml`.
const AUTOMATIC_VARIABLE: &str = "STENO_SYNC_AUTOMATIC";

/// Flag of commands that sync by themselves.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct AutomaticSyncFlag {
    /// Use what is in the store already, even if the last sync is old.
    #[arg(long)]
    pub(crate) no_sync: bool,
}

/// What the child reports.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SyncMessage {
    /// The newest sessions can be listed.
    Newest,
    /// So many bytes are to be copied.
    Total(u64),
    /// A session of so many bytes is copied.
    Copied(u64),
    /// Something could not be synced, for this reason.
    Failed(String),
    /// All is synced, with this number of changed sessions.
    Finished(u64),
}

/// What a sync has done since it was last asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncNews {
    /// Nothing to show.
    Nothing,
    /// There are new sessions.
    Changed,
    /// The sync has ended.
    Ended,
}

/// A sync in a child process.
pub(crate) struct BackgroundSync {
    messages: Receiver<SyncMessage>,
    started: Instant,
    /// Whether the store had no sessions before.
    is_first: bool,
}

impl AutomaticSyncFlag {
    /// Syncs if it is due, and waits a moment for the result.
    pub(crate) fn sync_if_due(&self, ui: &mut Ui, env: &ProcessEnvironment) {
        if let Some(sync) = self.start_if_due(ui, env) {
            sync.wait_for_sessions(ui);
        }
    }

    /// Like [`AutomaticSyncFlag::sync_if_due`], but waits until the first sync of a store has ended: a sum or a search of
    /// some of the sessions would be a wrong answer.
    pub(crate) fn sync_before_answer(&self, ui: &mut Ui, env: &ProcessEnvironment) {
        let is_wanted = !self.no_sync && !env.is_mirror && is_enabled(env).unwrap_or(false);
        if is_wanted
            && LastSync::load(&env.store).is_none()
            && SyncLock::probe(&env.store) == SyncLockState::Held
        {
            ui.status("waiting for the first sync to end");
            drop(SyncLock::acquire(&env.store));
        }
        match self.start_if_due(ui, env) {
            Some(sync) if sync.is_first => sync.wait_for_all(ui),
            Some(sync) => sync.wait_for_sessions(ui),
            None => {}
        }
    }

    /// Starts a sync if it is due.
    pub(crate) fn start_if_due(
        &self,
        ui: &mut Ui,
        env: &ProcessEnvironment,
    ) -> Option<BackgroundSync> {
        if self.no_sync || env.is_mirror {
            return None;
        }
        // A command that only reads does not fail because of a sync.
        match try_start(ui, env) {
            Ok(sync) => sync,
            Err(error) => {
                ui.warning(format_args!("could not sync: {}", error.to_line()));
                None
            }
        }
    }
}

fn try_start(
    ui: &mut Ui,
    env: &ProcessEnvironment,
) -> Result<Option<BackgroundSync>, CommandError> {
    let has_sessions = SessionStore::new(env).vault.has_sessions()?;
    if !is_enabled(env)? || !is_due(env, has_sessions) {
        return Ok(None);
    }
    if existing_roots(env, &[], &[]).is_empty() {
        return Ok(None);
    }
    match SyncLock::probe(&env.store) {
        SyncLockState::Free => {}
        SyncLockState::Unwritable => {
            let store = env.store.display();
            return Err(CommandError::user(format!("the store cannot be written: {store}")));
        }
        SyncLockState::Held => {
            ui.status("a sync is running; new sessions may be missing");
            return Ok(None);
        }
    }
    if !has_sessions {
        let agents = found_agents(env).join(", ");
        ui.status(format_args!("first run: copying the sessions of {agents} into the store"));
    }
    BackgroundSync::start(!has_sessions).map(Some)
}

/// Returns whether automatic syncs are enabled.
fn is_enabled(env: &ProcessEnvironment) -> Result<bool, CommandError> {
    match ProcessEnvironment::variable(AUTOMATIC_VARIABLE) {
        Some(value) if value == "true" => Ok(true),
        Some(value) if value == "false" => Ok(false),
        Some(value) => {
            let value = value.to_string_lossy().into_owned();
            Err(CommandError::user(format!("{AUTOMATIC_VARIABLE} is not true or false: {value}")))
        }
        None => Config::load(env)?.automatic_sync(),
    }
}

/// Returns whether the last sync is old. A store that another home folder was synced to is left alone: it may be a
/// copy of somebody else's.
fn is_due(env: &ProcessEnvironment, has_sessions: bool) -> bool {
    match LastSync::load(&env.store) {
        Some(last) if last.is_of_home(&env.home) => {
            let age = Timestamp::now().duration_since(last.finished.instant());
            let took = SignedDuration::from_millis(i64::try_from(last.took_ms).unwrap_or(i64::MAX));
            let interval = took.checked_mul(INTERVAL_FACTOR).unwrap_or(MAX_SYNC_INTERVAL);
            age.is_negative() || age > interval.clamp(MIN_SYNC_INTERVAL, MAX_SYNC_INTERVAL)
        }
        Some(_) => false,
        None => !has_sessions || env.is_default_store || LastSync::is_of_older_version(&env.store),
    }
}

/// Returns the agents with session folders on this machine.
fn found_agents(env: &ProcessEnvironment) -> Vec<&'static str> {
    let locations = session_locations(&env.home, &ProcessEnvironment::variable);
    let found = locations.into_iter().filter(|location| location.path.exists());
    let mut agents: Vec<&str> = found.map(|location| location.agent).collect();
    agents.sort_unstable();
    agents.dedup();
    agents
}

impl BackgroundSync {
    /// Starts a sync that the user has asked for; `None` if one runs, or if the store cannot be written.
    pub(crate) fn start_now(env: &ProcessEnvironment) -> Result<Option<Self>, CommandError> {
        match SyncLock::probe(&env.store) {
            SyncLockState::Free => Self::start(false).map(Some),
            SyncLockState::Held | SyncLockState::Unwritable => Ok(None),
        }
    }

    /// Starts the child process.
    fn start(is_first: bool) -> Result<Self, CommandError> {
        let started = Instant::now();
        let mut command = Command::new(ProcessEnvironment::program_path()?);
        command.args(["sync", "--background"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        // Ctrl-C ends the command, not the sync.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn()?;
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || forward_messages(child, &sender));
        Ok(Self { messages, started, is_first })
    }

    /// Waits until there is something to show, or for at most a moment.
    fn wait_for_sessions(self, ui: &mut Ui) {
        let timeout = if self.is_first { FIRST_WAIT_TIMEOUT } else { WAIT_TIMEOUT };
        let deadline = self.started + timeout;
        let mut can_list = false;
        loop {
            // With the newest sessions at hand, only a sync that is nearly done is worth waiting for.
            let deadline =
                if can_list { deadline.min(self.started + WAIT_TIMEOUT) } else { deadline };
            match self.messages.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(SyncMessage::Newest) => can_list = true,
                Ok(SyncMessage::Total(_) | SyncMessage::Copied(_)) => {}
                Ok(SyncMessage::Failed(reason)) => warn_of_failure(ui, &reason),
                Ok(SyncMessage::Finished(0)) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(SyncMessage::Finished(changed)) => {
                    return ui
                        .status(format_args!("{} new or changed", count_noun(changed, "session")));
                }
                Err(RecvTimeoutError::Timeout) => {
                    return ui.status("still copying sessions in the background; some are missing");
                }
            }
        }
    }

    /// Waits until all sessions are copied. The user may interrupt the command; the sync goes on.
    fn wait_for_all(self, ui: &mut Ui) {
        let mut progress = ui.start_progress("copying");
        let (mut failure, mut is_finished) = (None, false);
        for message in &self.messages {
            match message {
                SyncMessage::Newest => {}
                SyncMessage::Total(bytes) => progress.set_total_bytes(bytes),
                SyncMessage::Copied(bytes) => progress.add_bytes(bytes),
                SyncMessage::Failed(reason) => failure = Some(reason),
                SyncMessage::Finished(_) => {
                    is_finished = true;
                    break;
                }
            }
        }
        drop(progress);
        match failure {
            Some(reason) => warn_of_failure(ui, &reason),
            None if is_finished => {}
            None => ui.warning("not all sessions were copied; run `steno sync` to see why"),
        }
    }

    /// Waits for the first sessions of an empty store.
    pub(crate) fn wait_until_listable(&self) {
        if self.is_first {
            let _ = self.messages.recv_timeout(FIRST_WAIT_TIMEOUT);
        }
    }

    /// Returns what has happened since the last call.
    pub(crate) fn poll_news(&self) -> SyncNews {
        loop {
            return match self.messages.try_recv() {
                Ok(SyncMessage::Total(_) | SyncMessage::Copied(_) | SyncMessage::Failed(_)) => {
                    continue;
                }
                Ok(SyncMessage::Newest | SyncMessage::Finished(_)) => SyncNews::Changed,
                Err(TryRecvError::Empty) => SyncNews::Nothing,
                Err(TryRecvError::Disconnected) => SyncNews::Ended,
            };
        }
    }
}

/// Warns that a sync in the background failed, wholly or in part.
fn warn_of_failure(ui: &mut Ui, reason: &str) {
    ui.warning(format_args!("could not sync: {reason}; run `steno sync` to see everything"));
}

/// Forwards the messages of the child process until it ends.
fn forward_messages(mut child: Child, sender: &mpsc::Sender<SyncMessage>) {
    let Some(output) = child.stdout.take() else { return };
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let message = match line.split_once(' ') {
            None if line == "newest" => SyncMessage::Newest,
            Some(("total", bytes)) => SyncMessage::Total(bytes.parse().unwrap_or(0)),
            Some(("copied", bytes)) => SyncMessage::Copied(bytes.parse().unwrap_or(0)),
            Some(("failed", reason)) => SyncMessage::Failed(reason.to_owned()),
            Some(("finished", count)) => SyncMessage::Finished(count.parse().unwrap_or(0)),
            _ => continue,
        };
        // After the command has taken what it needs, nobody listens.
        let _ = sender.send(message);
    }
    // Leaves no zombie behind in a command that runs on.
    let _ = child.wait();
}

/// Reports to the command that started this process, which may have ended.
pub(crate) fn report_newest() {
    print_message("newest");
}

/// Reports how many bytes are to be copied, and then each session, to the command that started this process.
pub(crate) fn report_progress(syncer: SessionSyncer, total: u64) -> SessionSyncer {
    print_message(&format!("total {total}"));
    syncer.with_progress(Box::new(|_, bytes| print_message(&format!("copied {bytes}"))))
}

/// Reports why something could not be synced to the command that started this process, which may have ended.
pub(crate) fn report_failure(error: &CommandError) {
    let mut causes = vec![error.to_line()];
    let mut source = error.error.source();
    while let Some(cause) = source {
        causes.push(cause.to_string());
        source = cause.source();
    }
    print_message(&format!("failed {}", causes.join(": ").replace(['\n', '\r'], " ")));
}

/// Reports the number of changed sessions to the command that started this process, which may have ended.
pub(crate) fn report_finished(changed: u64) {
    print_message(&format!("finished {changed}"));
}

fn print_message(line: &str) {
    let mut stdout = std::io::stdout();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}
