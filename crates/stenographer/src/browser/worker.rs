//! Reads, searches and exports on background threads, so that no key waits.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use steno_model::Transcript;
use steno_store::index::match_lines::LineLimits;
use steno_store::index::{EntryFilter, Index, ListedSession, SearchOrder, SearchRequest};
use steno_store::view::pictures::SessionPictures;
use steno_store::view::redaction::SecretRedactor;

use steno_vault::notes::Note;
use uuid::Uuid;

use super::search_pane::{self, BrowserHit, MAX_HITS};
use super::{SessionGrowth, SessionName, WorkerRequest, WorkerResponse};
use crate::config::Config;
use crate::error::CommandError;
use crate::export_format::{MARKDOWN, TranscriptExport};
use crate::live_session::copy_new_sessions;
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::ui::{Ui, count_noun};

/// A search starts only if no further key comes within this time.
const SEARCH_DELAY: Duration = Duration::from_millis(40);

/// A session is read for the preview only if it stays selected for this time.
const PREVIEW_DELAY: Duration = Duration::from_millis(60);

/// Runs each request on its own thread.
#[derive(Clone)]
pub(crate) struct BrowserWorker {
    store: Arc<SessionStore>,
    env: ProcessEnvironment,
    responses: Sender<WorkerResponse>,
    /// Number of the latest query. Older queries are not started.
    latest_query: Arc<AtomicU64>,
    /// Number of the latest preview. Older ones are not read.
    latest_preview: Arc<AtomicU64>,
    /// Held by the running search.
    search_lock: Arc<Mutex<()>>,
}

impl BrowserWorker {
    pub(crate) fn new(env: &ProcessEnvironment) -> (Self, Receiver<WorkerResponse>) {
        let (responses, receiver) = mpsc::channel();
        let worker = Self {
            store: Arc::new(SessionStore::new(env)),
            env: env.clone(),
            responses,
            latest_query: Arc::default(),
            latest_preview: Arc::default(),
            search_lock: Arc::default(),
        };
        (worker, receiver)
    }

    /// Starts a thread for the request.
    pub(crate) fn submit(&self, ask: WorkerRequest) {
        if let WorkerRequest::Search(ticket, _) = &ask {
            self.latest_query.store(*ticket, Ordering::Relaxed);
        }
        let is_preview = matches!(ask, WorkerRequest::Preview(_));
        let ticket = is_preview.then(|| self.latest_preview.fetch_add(1, Ordering::Relaxed) + 1);
        let worker = self.clone();
        thread::spawn(move || {
            if ticket.is_some_and(|ticket| !worker.is_preview_wanted(ticket)) {
                return;
            }
            let answered = panic::catch_unwind(AssertUnwindSafe(|| worker.handle_request(ask)));
            if let Err(panic) = answered {
                worker.respond(WorkerResponse::Failed(panic_message(panic.as_ref())));
            }
        });
    }

    /// Waits a moment, and returns whether no other session was selected meanwhile.
    fn is_preview_wanted(&self, ticket: u64) -> bool {
        thread::sleep(PREVIEW_DELAY);
        self.latest_preview.load(Ordering::Relaxed) == ticket
    }

    fn handle_request(&self, ask: WorkerRequest) {
        match ask {
            WorkerRequest::List => {
                let notice = self.list_sessions();
                self.respond(WorkerResponse::UpToDate(notice));
            }
            WorkerRequest::Search(ticket, text) => self.run_search(ticket, &text),
            WorkerRequest::Read(name) => {
                let read = Box::new(self.read_session(&name).map_err(|error| error.to_line()));
                self.respond(WorkerResponse::Read(name, read));
            }
            WorkerRequest::Preview(name) => {
                let read = Box::new(self.read_session(&name).map_err(|error| error.to_line()));
                self.respond(WorkerResponse::Preview(name, read));
            }
            WorkerRequest::Follow(name, known_size) => {
                let growth = self.find_growth(&name, known_size);
                let growth = Box::new(growth.map_err(|error| error.to_line()));
                self.respond(WorkerResponse::Followed(name, growth));
            }
            WorkerRequest::AddNote(name, entry, text) => {
                let added = self.add_note(&name, entry, &text);
                self.respond(WorkerResponse::Noted(added.map_err(|error| error.to_line())));
            }
            WorkerRequest::Export(name) => {
                self.respond(WorkerResponse::Exported(
                    self.export_session(&name).map_err(|error| error.to_line()),
                ));
            }
        }
    }

    /// Sends a response. Nobody receives it once the browser has ended.
    fn respond(&self, answer: WorkerResponse) {
        let _ = self.responses.send(answer);
    }

    /// Sends the sessions in the index, then the list after an index update. Returns why sessions may be missing.
    fn list_sessions(&self) -> Option<String> {
        let all = |index: &Index| index.list_sessions(None, None);
        let known = self.store.index().and_then(|index| all(&index));
        if let Ok(known) = known {
            self.respond(WorkerResponse::Listed(Ok(known)));
        }
        let mut done = 0;
        let mut pass = |count: usize, _: &_| {
            done += 1;
            self.respond(WorkerResponse::Indexing(format!("indexing {done} of {count}")));
        };
        let mut notice = None;
        let listed = self.store.query_quietly(&mut pass, all).map(|(mut listed, condition)| {
            let incomplete = listed.iter().filter(|one| one.problem.is_some()).count();
            notice = condition.notice().or_else(|| incomplete_notice(incomplete));
            for one in listed.iter_mut().filter(|one| one.problem.is_none()) {
                one.session = self.store.status_check().refresh_session(one.session.clone());
            }
            listed.retain(|ListedSession { session, problem: trouble }| {
                let (agent, entries) = (&session.agent, session.totals.entries);
                trouble.is_some()
                    || !self.store.vault.is_empty_recording(agent, &session.id, entries)
            });
            listed
        });
        self.respond(WorkerResponse::Listed(listed.map_err(|error| error.to_line())));
        notice
    }

    fn run_search(&self, ticket: u64, text: &str) {
        thread::sleep(SEARCH_DELAY);
        let _alone = self.search_lock.lock().unwrap_or_else(PoisonError::into_inner);
        if self.latest_query.load(Ordering::Relaxed) == ticket {
            let found = self.find_hits(text).map_err(|error| error.to_line());
            self.respond(WorkerResponse::SearchResult(ticket, found));
        }
    }

    fn find_hits(&self, text: &str) -> Result<Vec<BrowserHit>, CommandError> {
        let query = search_pane::parse_unfinished_query(text)?;
        let search = SearchRequest {
            query: &query,
            filter: EntryFilter::default(),
            order: SearchOrder::Relevance,
            limit: MAX_HITS,
            now: self.env.clock.now(),
        };
        let shown = LineLimits { max_lines: 3, context_lines: 1 };
        let found = self.store.index()?.search(&search)?.into_iter().map(|mut hit| {
            let lines = query.matching_lines(&std::mem::take(&mut hit.text), shown);
            BrowserHit { hit, lines }
        });
        Ok(found.collect())
    }

    fn read_session(&self, name: &SessionName) -> Result<Transcript, CommandError> {
        let dir = self.store.vault.session_dir(&name.agent.parse()?, &name.id);
        let mut transcript = self.store.read_session(&dir)?;
        let session = &mut transcript.session;
        session.status = self.store.status_check().status_of(session);
        Ok(transcript)
    }

    /// Copies what the agent has written since the last sync, and reads the session if its size has changed.
    fn find_growth(
        &self,
        name: &SessionName,
        known_size: Option<u64>,
    ) -> Result<SessionGrowth, CommandError> {
        copy_new_sessions(&self.env, &name.agent)?;
        let dir = self.store.vault.session_dir(&name.agent.parse()?, &name.id);
        let size = dir.stored_size()?;
        let has_changed = known_size != Some(size);
        let transcript = has_changed.then(|| self.read_session(name)).transpose()?;
        Ok(SessionGrowth { size, transcript })
    }

    fn add_note(&self, name: &SessionName, entry: Uuid, text: &str) -> Result<Note, CommandError> {
        let session = self.store.vault.session_dir(&name.agent.parse()?, &name.id);
        Ok(session.add_note(Some(entry), text, &self.env.clock)?)
    }

    /// Writes a session as Markdown into the working folder. Never overwrites a file.
    fn export_session(&self, name: &SessionName) -> Result<PathBuf, CommandError> {
        Config::load(&self.env)?.configure_redaction()?;
        let mut transcript = self.read_session(name)?;
        SecretRedactor::default().redact_transcript(&mut transcript);
        let path = unused_path(&self.env.cwd, name.id.as_str());
        let pictures = SessionPictures::default();
        let (transcript, out) = (&transcript, Some(path.as_path()));
        let export = TranscriptExport { transcript, pictures: &pictures, format: &MARKDOWN, out };
        export.write_output(&mut Ui::silent(), &self.env)?;
        Ok(path)
    }
}

/// Returns the message of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied());
    format!("bug in steno: {}", text.unwrap_or("no message"))
}

/// Returns a path that does not exist yet.
fn unused_path(folder: &Path, name: &str) -> PathBuf {
    let numbered = (2..).map(|number| format!("{name}-{number}.md"));
    let mut names = std::iter::once(format!("{name}.md")).chain(numbered);
    let path = names.find_map(|name| Some(folder.join(name)).filter(|path| !path.exists()));
    path.unwrap_or_else(|| folder.join(name))
}

/// Returns a notice about sessions with missing entries, which a search does not find.
fn incomplete_notice(count: usize) -> Option<String> {
    let sessions = count_noun(count as u64, "session");
    (count > 0).then(|| format!("{sessions} incomplete or unreadable; run `steno verify`"))
}
