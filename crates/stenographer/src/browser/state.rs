//! What the browser shows and what each key does to it. Nothing here touches the terminal, a file or a thread.

mod listing;
mod reading;

use jiff::tz::TimeZone;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Rect, Size};
use steno_core::Timestamp;

use super::layout;
use super::list_selection::ListSelection;
use super::reader::SessionReader;
use super::search_pane::SearchPane;
use super::session_pane::SessionPane;
use super::text_input::TextInput;
use super::{SessionName, WorkerRequest, WorkerResponse};

/// What has to be done outside of the state.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BrowserEffect {
    /// A question to those who read and search.
    Request(WorkerRequest),
    /// To go on with a session in its agent.
    Resume(SessionName),
    /// To end.
    Quit,
}

/// Which list is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListView {
    /// The sessions.
    Sessions,
    /// What a search has found.
    Hits,
}

/// Everything that is on the screen.
#[derive(Debug)]
pub(crate) struct BrowserState {
    pub(crate) view: ListView,
    /// Whether letters go into the line at the top, or at the bottom while reading.
    pub(crate) is_typing: bool,
    pub(crate) sessions: SessionPane,
    pub(crate) search: SearchPane,
    /// The open session, and what is looked for in it.
    pub(crate) reader: Option<SessionReader>,
    pub(crate) find: TextInput,
    /// The session that is being opened, and the entry that is wanted of it.
    pub(crate) opening: Option<(SessionName, Option<usize>)>,
    /// Whether a session is being written.
    pub(crate) is_exporting: bool,
    /// What goes on behind the screen.
    pub(crate) background_work: Option<String>,
    /// What happened last; the next key takes it away.
    pub(crate) notice: Option<String>,
    pub(crate) is_help_shown: bool,
    /// Where and when times are shown.
    pub(crate) zone: TimeZone,
    pub(crate) now: Timestamp,
    pub(crate) area: Rect,
}

impl BrowserState {
    /// An empty browser, to be filled by the answer to [`Ask::List`].
    pub(crate) fn new(zone: TimeZone, now: Timestamp) -> Self {
        Self {
            view: ListView::Sessions,
            is_typing: false,
            sessions: SessionPane::default(),
            search: SearchPane::default(),
            reader: None,
            find: TextInput::default(),
            opening: None,
            is_exporting: false,
            background_work: Some("looking for sessions".to_owned()),
            notice: None,
            is_help_shown: false,
            zone,
            now,
            area: Rect::default(),
        }
    }

    /// Takes the size of the screen.
    pub(crate) fn resize(&mut self, size: Size) {
        self.area = Rect::from(size);
        self.fit_to_screen();
    }

    /// Takes a key.
    pub(crate) fn handle_key(&mut self, key: KeyEvent) -> Option<BrowserEffect> {
        self.notice = None;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let effect = match key.code {
            KeyCode::Char('c') if control => Some(BrowserEffect::Quit),
            // Whichever key it is, it closes the help.
            _ if std::mem::take(&mut self.is_help_shown) => None,
            KeyCode::Char('?') | KeyCode::F(1) if !self.is_typing => {
                self.is_help_shown = true;
                None
            }
            _ if self.reader.is_some() => self.handle_reader_key(key),
            _ => self.handle_list_key(key),
        };
        self.fit_to_screen();
        effect
    }

    /// Takes text that was pasted.
    pub(crate) fn paste(&mut self, text: &str) -> Option<BrowserEffect> {
        if !self.is_typing {
            return None;
        }
        self.active_input().insert(text);
        let effect = self.apply_input();
        self.fit_to_screen();
        effect
    }

    /// Takes what was found out behind the screen.
    pub(crate) fn apply_response(&mut self, answer: WorkerResponse) -> Option<BrowserEffect> {
        let mut effect = None;
        match answer {
            WorkerResponse::Indexing(what) => self.background_work = Some(what),
            WorkerResponse::Listed(Ok(all)) => self.sessions.set_sessions(all),
            WorkerResponse::Listed(Err(trouble)) => self.notice = Some(trouble),
            WorkerResponse::UpToDate(notice) => {
                self.background_work = None;
                if notice.is_some() {
                    self.notice = notice;
                }
                // What was just taken in may match too.
                effect = self.start_search();
            }
            WorkerResponse::SearchResult(ticket, answer) => self.search.take_result(ticket, answer),
            WorkerResponse::Read(name, read) => self.show_opened(&name, *read),
            WorkerResponse::Exported(written) => {
                self.is_exporting = false;
                let told = written.map(|path| format!("written: {}", path.display()));
                self.notice = Some(told.unwrap_or_else(|trouble| trouble));
            }
            WorkerResponse::Failed(trouble) => {
                (self.opening, self.background_work, self.is_exporting) = (None, None, false);
                self.search.stop_waiting();
                self.notice = Some(trouble);
            }
        }
        self.fit_to_screen();
        effect
    }

    /// Whether an answer is to come.
    pub(crate) fn is_waiting(&self) -> bool {
        self.background_work.is_some()
            || self.opening.is_some()
            || self.is_exporting
            || self.search.is_waiting()
    }

    /// The line that letters go into.
    fn active_input(&mut self) -> &mut TextInput {
        match (&self.reader, self.view) {
            (Some(_), _) => &mut self.find,
            (None, ListView::Sessions) => &mut self.sessions.filter,
            (None, ListView::Hits) => &mut self.search.input,
        }
    }

    /// What follows from a change of the line.
    fn apply_input(&mut self) -> Option<BrowserEffect> {
        match (&self.reader, self.view) {
            (Some(_), _) => self.find_in_session(),
            (None, ListView::Sessions) => self.sessions.apply_filter(),
            (None, ListView::Hits) => {
                self.search.selection = ListSelection::default();
                return self.start_search();
            }
        }
        None
    }

    fn start_search(&mut self) -> Option<BrowserEffect> {
        let (ticket, text) = self.search.next_query()?;
        Some(BrowserEffect::Request(WorkerRequest::Search(ticket, text)))
    }

    /// Keeps everything within the screen.
    fn fit_to_screen(&mut self) {
        let list = layout::list_layout(self.area);
        let page = usize::from(list.body.height);
        self.sessions.selection.clamp_to(self.sessions.counts().0, page);
        self.search.selection.clamp_to(self.search.hits.len(), page / layout::HIT_ROWS);
        if let Some(reader) = &mut self.reader {
            reader.resize(layout::reader_pane_size(self.area));
        }
    }
}
