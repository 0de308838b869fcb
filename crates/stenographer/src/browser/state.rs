//! The browser's state, and the effect of each key on it. Does not access the terminal, files or threads.

mod listing;
mod reading;

use jiff::tz::TimeZone;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Rect, Size};
use steno_model::Timestamp;

use super::list_selection::ListSelection;
use super::preview::{PreviewContent, SessionPreview};
use super::reader::SessionReader;
use super::search_pane::SearchPane;
use super::session_pane::SessionPane;
use super::text_input::TextInput;
use super::{SessionName, WorkerRequest, WorkerResponse, layout};

/// An action outside of the state.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BrowserEffect {
    /// Sends a request to the worker.
    Request(WorkerRequest),
    /// Looks for new sessions.
    Sync,
    /// Resumes a session in its agent.
    Resume(SessionName),
    /// Ends the browser.
    Quit,
}

/// The visible list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListView {
    /// All sessions.
    Sessions,
    /// Search hits.
    Hits,
}

/// The whole state of the browser.
#[derive(Debug)]
pub(crate) struct BrowserState {
    pub(crate) view: ListView,
    /// Whether letters go into the input line.
    pub(crate) is_typing: bool,
    pub(crate) sessions: SessionPane,
    pub(crate) search: SearchPane,
    /// The open session, and the text to find in it.
    pub(crate) reader: Option<SessionReader>,
    pub(crate) find: TextInput,
    /// The selected session beside the list.
    pub(crate) preview: Option<SessionPreview>,
    /// Whether the input line takes a note.
    pub(crate) is_noting: bool,
    pub(crate) note: TextInput,
    /// Whether a note is being written.
    pub(crate) is_saving_note: bool,
    /// Whether the worker looks for new entries of the open session.
    is_following: bool,
    /// The session being read, and the entry to show.
    pub(crate) opening: Option<(SessionName, Option<usize>)>,
    /// Whether an export is running.
    pub(crate) is_exporting: bool,
    /// Description of the background work.
    pub(crate) background_work: Option<String>,
    /// Last notice; the next key clears it.
    pub(crate) notice: Option<String>,
    pub(crate) is_help_shown: bool,
    /// Time zone and current time for dates.
    pub(crate) zone: TimeZone,
    pub(crate) now: Timestamp,
    pub(crate) area: Rect,
}

impl BrowserState {
    /// Creates an empty browser. The response to [`WorkerRequest::List`] fills it.
    pub(crate) fn new(zone: TimeZone, now: Timestamp) -> Self {
        Self {
            view: ListView::Sessions,
            is_typing: false,
            sessions: SessionPane::default(),
            search: SearchPane::default(),
            reader: None,
            find: TextInput::default(),
            preview: None,
            is_noting: false,
            note: TextInput::default(),
            is_saving_note: false,
            is_following: false,
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

    /// Sets the size of the screen.
    pub(crate) fn resize(&mut self, size: Size) -> Option<BrowserEffect> {
        self.area = Rect::from(size);
        self.fit_to_screen();
        self.request_preview()
    }

    /// Handles a key.
    pub(crate) fn handle_key(&mut self, key: KeyEvent) -> Option<BrowserEffect> {
        self.notice = None;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let effect = match key.code {
            KeyCode::Char('c') if control => Some(BrowserEffect::Quit),
            // Any key closes the help.
            _ if std::mem::take(&mut self.is_help_shown) => None,
            KeyCode::Char('?') | KeyCode::F(1) if !self.is_typing => {
                self.is_help_shown = true;
                None
            }
            _ if self.reader.is_some() => self.handle_reader_key(key),
            _ => self.handle_list_key(key),
        };
        self.fit_to_screen();
        effect.or_else(|| self.request_preview())
    }

    /// Handles pasted text.
    pub(crate) fn paste(&mut self, text: &str) -> Option<BrowserEffect> {
        if !self.is_typing {
            return None;
        }
        self.active_input().insert(text);
        let effect = self.apply_input();
        self.fit_to_screen();
        effect.or_else(|| self.request_preview())
    }

    /// Applies a response of the worker.
    pub(crate) fn apply_response(&mut self, answer: WorkerResponse) -> Option<BrowserEffect> {
        let mut effect = None;
        match answer {
            WorkerResponse::Indexing(what) => self.background_work = Some(what),
            WorkerResponse::Listed(Ok(all)) => self.sessions.set_sessions(all),
            WorkerResponse::Listed(Err(error)) => self.notice = Some(error),
            WorkerResponse::UpToDate(notice) => {
                self.background_work = None;
                if notice.is_some() {
                    self.notice = notice;
                }
                // Newly indexed sessions may match too.
                effect = self.start_search();
            }
            WorkerResponse::SearchResult(ticket, answer) => self.search.take_result(ticket, answer),
            WorkerResponse::Read(name, read) => self.show_opened(&name, *read),
            WorkerResponse::Preview(name, read) => self.show_preview(&name, *read),
            WorkerResponse::Followed(name, growth) => self.show_growth(&name, *growth),
            WorkerResponse::Noted(added) => self.show_note(added),
            WorkerResponse::Exported(written) => {
                self.is_exporting = false;
                let message = written.map(|path| format!("written: {}", path.display()));
                self.notice = Some(message.unwrap_or_else(|error| error));
            }
            WorkerResponse::Failed(error) => {
                (self.opening, self.background_work, self.is_exporting) = (None, None, false);
                self.is_saving_note = false;
                self.stop_following();
                self.search.stop_waiting();
                self.preview = None;
                self.notice = Some(error);
            }
        }
        self.fit_to_screen();
        effect.or_else(|| self.request_preview())
    }

    /// Returns whether a response is pending.
    pub(crate) fn is_waiting(&self) -> bool {
        self.background_work.is_some()
            || self.opening.is_some()
            || self.is_exporting
            || self.is_saving_note
            || self.search.is_waiting()
            || matches!(&self.preview, Some(preview) if matches!(preview.content, PreviewContent::Reading))
    }

    /// Returns the input line that receives letters.
    fn active_input(&mut self) -> &mut TextInput {
        match (&self.reader, self.view) {
            (Some(_), _) if self.is_noting => &mut self.note,
            (Some(_), _) => &mut self.find,
            (None, ListView::Sessions) => &mut self.sessions.filter,
            (None, ListView::Hits) => &mut self.search.input,
        }
    }

    /// Applies a change of the input line.
    fn apply_input(&mut self) -> Option<BrowserEffect> {
        match (&self.reader, self.view) {
            (Some(_), _) if self.is_noting => {}
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

    /// Limits selections and cursor to the screen.
    fn fit_to_screen(&mut self) {
        let list = layout::list_layout(self.area);
        let page = usize::from(list.body.height);
        self.sessions.selection.clamp_to(self.sessions.counts().0, page);
        self.search.selection.clamp_to(self.search.hits.len(), page / layout::HIT_ROWS);
        if let Some(reader) = &mut self.reader {
            let (width, height) = layout::reader_pane_size(self.area);
            reader.resize(width, height);
        }
        let preview = layout::split_preview(list).1.map(layout::preview_text_area);
        if let (Some(area), Some(SessionPreview { content: PreviewContent::Read(reader), .. })) =
            (preview, &mut self.preview)
        {
            reader.resize(usize::from(area.width), usize::from(area.height));
        }
    }
}
