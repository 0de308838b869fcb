//! `steno` without arguments on a terminal: a browser that lists, searches and shows sessions.
//!
//! [`state`] holds what is shown and handles keys, [`draw`] renders it, [`worker`] reads and searches in the
//! background. This module connects them to the terminal.

mod draw;
mod entry_folds;
mod entry_rows;
mod layout;
mod list_selection;
mod preview;
mod reader;
mod screen;
mod search_pane;
mod session_pane;
mod state;
#[cfg(test)]
mod tests;
mod text_input;
mod worker;

use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyEventKind};
use steno_model::{SessionId, Transcript};
use steno_store::index::ListedSession;
use steno_vault::notes::Note;
use uuid::Uuid;

use self::draw::TerminalPalette;
use self::screen::TerminalScreen;
use self::search_pane::BrowserHit;
use self::state::{BrowserEffect, BrowserState};
use self::worker::BrowserWorker;
use crate::automatic_sync::{AutomaticSyncFlag, BackgroundSync, SyncNews};
use crate::commands::resume;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::ui::Ui;

/// Poll timeout for keys while a response is pending, while a sync runs, and otherwise.
const BUSY_POLL_TIMEOUT: Duration = Duration::from_millis(20);
const SYNC_POLL_TIMEOUT: Duration = Duration::from_millis(200);
const IDLE_POLL_TIMEOUT: Duration = Duration::from_secs(600);

/// How often to look for new entries of an open session that is running.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);

/// Identifies a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionName {
    agent: String,
    id: SessionId,
}

impl SessionName {
    fn from_listed(listed: &ListedSession) -> Self {
        Self { agent: listed.session.agent.clone(), id: listed.session.id.clone() }
    }
}

/// A request to the worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WorkerRequest {
    /// Lists the sessions.
    List,
    /// Searches for a text. The number identifies the query.
    Search(u64, String),
    /// Reads a session.
    Read(SessionName),
    /// Reads a session to show it beside the list.
    Preview(SessionName),
    /// Reads an open session again, unless its stored size is still this.
    Follow(SessionName, Option<u64>),
    /// Adds a note to an entry of a session.
    AddNote(SessionName, Uuid, String),
    /// Exports a session to a file.
    Export(SessionName),
}

/// A response of the worker.
#[derive(Debug)]
pub(crate) enum WorkerResponse {
    /// Progress of the index update.
    Indexing(String),
    /// The sessions.
    Listed(Result<Vec<ListedSession>, String>),
    /// The list is complete. The text explains why sessions may be missing.
    UpToDate(Option<String>),
    /// The hits of a query.
    SearchResult(u64, Result<Vec<BrowserHit>, String>),
    /// A session that was read.
    Read(SessionName, Box<Result<Transcript, String>>),
    /// The selected session.
    Preview(SessionName, Box<Result<Transcript, String>>),
    /// An open session that may have grown.
    Followed(SessionName, Box<Result<SessionGrowth, String>>),
    /// The note that was added.
    Noted(Result<Note, String>),
    /// The file that was written.
    Exported(Result<PathBuf, String>),
    /// The worker panicked.
    Failed(String),
}

/// Whether an open session has grown.
#[derive(Debug)]
pub(crate) struct SessionGrowth {
    /// The stored size now.
    size: u64,
    /// The session, unless its size is the known one.
    transcript: Option<Transcript>,
}

/// Runs the browser until the user quits.
pub(crate) fn run_browser(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    sync: &AutomaticSyncFlag,
) -> Result<CommandExit, CommandError> {
    let mut sync = sync.start_if_due(ui, env);
    if let Some(sync) = &mut sync {
        sync.wait_until_listable();
    }
    let store = SessionStore::new(env);
    if !store.vault.has_sessions()? {
        ui.print_note(
            "no sessions yet; run `steno sync` to copy the sessions of the agents on this machine",
        );
        return Ok(CommandExit::Done);
    }
    let (worker, responses) = BrowserWorker::new(env);
    let state = BrowserState::new(env.zone.clone(), env.clock.now());
    let palette = TerminalPalette { has_colours: ui.is_styled() };
    let (written_files, next_follow) = (Vec::new(), Instant::now());
    let env_copy = env.clone();
    let mut browser = Browser {
        env: env_copy,
        state,
        palette,
        worker,
        responses,
        sync,
        next_follow,
        written_files,
    };
    browser.worker.submit(WorkerRequest::List);
    let exit = loop {
        let Some(name) = browser.run_until_left()? else { break CommandExit::Done };
        let session = store.vault.session_dir(&name.agent.parse()?, &name.id);
        match resume::resume_session(ui, env, session) {
            Ok(exit) => break exit,
            Err(error) => browser.state.notice = Some(error.to_line()),
        }
    };
    for path in browser.written_files {
        ui.path_line(&path)?;
    }
    ui.flush()?;
    Ok(exit)
}

struct Browser {
    env: ProcessEnvironment,
    state: BrowserState,
    palette: TerminalPalette,
    worker: BrowserWorker,
    responses: Receiver<WorkerResponse>,
    /// A sync that runs beside the browser.
    sync: Option<BackgroundSync>,
    /// When to look for new entries of the open session.
    next_follow: Instant,
    /// Files that were exported.
    written_files: Vec<PathBuf>,
}

impl Browser {
    /// Runs until the user leaves. Returns the session to resume.
    fn run_until_left(&mut self) -> Result<Option<SessionName>, CommandError> {
        let mut screen = TerminalScreen::open()?;
        self.state.resize(screen.size()?);
        loop {
            self.handle_responses();
            self.handle_sync();
            self.follow_open_session();
            screen.draw(&mut self.state, self.palette)?;
            if !event::poll(self.poll_timeout())? {
                continue;
            }
            match self.handle_event(event::read()?) {
                Some(BrowserEffect::Quit) => return Ok(None),
                Some(BrowserEffect::Resume(name)) => return Ok(Some(name)),
                Some(BrowserEffect::Request(ask)) => self.worker.submit(ask),
                Some(BrowserEffect::Sync) => self.start_sync(),
                None => {}
            }
        }
    }

    /// Looks for new sessions, and lists those that are there.
    fn start_sync(&mut self) {
        if self.sync.is_none() {
            match BackgroundSync::start_now(&self.env) {
                Ok(sync) => self.sync = sync,
                Err(error) => self.state.notice = Some(error.to_line()),
            }
        }
        self.worker.submit(WorkerRequest::List);
    }

    fn handle_event(&mut self, event: Event) -> Option<BrowserEffect> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.state.handle_key(key),
            Event::Paste(text) => self.state.paste(&text),
            Event::Resize(width, height) => self.state.resize((width, height).into()),
            _ => None,
        }
    }

    /// Returns how long to wait for a key.
    fn poll_timeout(&self) -> Duration {
        match (self.state.is_waiting(), &self.sync) {
            (true, _) => BUSY_POLL_TIMEOUT,
            (false, Some(_)) => SYNC_POLL_TIMEOUT,
            (false, None) if self.state.is_session_running() => FOLLOW_INTERVAL,
            (false, None) => IDLE_POLL_TIMEOUT,
        }
    }

    /// Looks for new entries of the open session at intervals, if it is running.
    fn follow_open_session(&mut self) {
        if Instant::now() < self.next_follow {
            return;
        }
        if let Some(request) = self.state.request_growth() {
            self.next_follow = Instant::now() + FOLLOW_INTERVAL;
            self.worker.submit(request);
        }
    }

    /// Lists the sessions again when the sync has new ones.
    fn handle_sync(&mut self) {
        let Some(sync) = &self.sync else { return };
        match sync.poll_news() {
            SyncNews::Nothing => {}
            SyncNews::Changed => self.worker.submit(WorkerRequest::List),
            SyncNews::Ended => self.sync = None,
        }
    }

    fn handle_responses(&mut self) {
        while let Ok(answer) = self.responses.try_recv() {
            if let WorkerResponse::Exported(Ok(path)) = &answer {
                self.written_files.push(path.clone());
            }
            if let Some(BrowserEffect::Request(ask)) = self.state.apply_response(answer) {
                self.worker.submit(ask);
            }
        }
    }
}
