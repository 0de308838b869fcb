//! What the browser shows and what each key does to it. Nothing here touches the terminal, a file or a thread.

mod listing;
mod reading;

use jiff::tz::TimeZone;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Rect, Size};
use steno_core::Timestamp;

use super::choice::Choice;
use super::finder::Finder;
use super::layout;
use super::line::Line;
use super::reader::Reader;
use super::sessions::Sessions;
use super::{Answer, Ask, Name};

/// What has to be done outside of the state.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// A question to those who read and search.
    Ask(Ask),
    /// To go on with a session in its agent.
    Resume(Name),
    /// To end.
    Quit,
}

/// Which list is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// The sessions.
    Sessions,
    /// What a search has found.
    Hits,
}

/// Everything that is on the screen.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) view: View,
    /// Whether letters go into the line at the top, or at the bottom while reading.
    pub(crate) typing: bool,
    pub(crate) sessions: Sessions,
    pub(crate) finder: Finder,
    /// The open session, and what is looked for in it.
    pub(crate) reader: Option<Reader>,
    pub(crate) find: Line,
    /// The session that is being opened, and the entry that is wanted of it.
    pub(crate) opening: Option<(Name, Option<usize>)>,
    /// Whether a session is being written.
    pub(crate) writing: bool,
    /// What goes on behind the screen.
    pub(crate) working: Option<String>,
    /// What happened last; the next key takes it away.
    pub(crate) notice: Option<String>,
    pub(crate) help: bool,
    /// Where and when times are shown.
    pub(crate) zone: TimeZone,
    pub(crate) now: Timestamp,
    pub(crate) area: Rect,
}

impl State {
    /// An empty browser, to be filled by the answer to [`Ask::List`].
    pub(crate) fn new(zone: TimeZone, now: Timestamp) -> Self {
        Self {
            view: View::Sessions,
            typing: false,
            sessions: Sessions::default(),
            finder: Finder::default(),
            reader: None,
            find: Line::default(),
            opening: None,
            writing: false,
            working: Some("looking for sessions".to_owned()),
            notice: None,
            help: false,
            zone,
            now,
            area: Rect::default(),
        }
    }

    /// Takes the size of the screen.
    pub(crate) fn resize(&mut self, size: Size) {
        self.area = Rect::from(size);
        self.settle();
    }

    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Effect> {
        self.notice = None;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let effect = match key.code {
            KeyCode::Char('c') if control => Some(Effect::Quit),
            // Whichever key it is, it closes the help.
            _ if std::mem::take(&mut self.help) => None,
            KeyCode::Char('?') | KeyCode::F(1) if !self.typing => {
                self.help = true;
                None
            }
            _ if self.reader.is_some() => self.reading_key(key),
            _ => self.listing_key(key),
        };
        self.settle();
        effect
    }

    /// Takes text that was pasted.
    pub(crate) fn paste(&mut self, text: &str) -> Option<Effect> {
        if !self.typing {
            return None;
        }
        self.line().insert(text);
        let effect = self.typed();
        self.settle();
        effect
    }

    /// Takes what was found out behind the screen.
    pub(crate) fn answer(&mut self, answer: Answer) -> Option<Effect> {
        let mut effect = None;
        match answer {
            Answer::Indexing(what) => self.working = Some(what),
            Answer::Listed(Ok(all)) => self.sessions.set(all),
            Answer::Listed(Err(trouble)) => self.notice = Some(trouble),
            Answer::UpToDate(notice) => {
                self.working = None;
                if notice.is_some() {
                    self.notice = notice;
                }
                // What was just taken in may match too.
                effect = self.search();
            }
            Answer::Found(ticket, answer) => self.finder.answer(ticket, answer),
            Answer::Read(name, read) => self.opened(&name, *read),
            Answer::Exported(written) => {
                self.writing = false;
                let told = written.map(|path| format!("written: {}", path.display()));
                self.notice = Some(told.unwrap_or_else(|trouble| trouble));
            }
            Answer::Failed(trouble) => {
                (self.opening, self.working, self.writing) = (None, None, false);
                self.finder.give_up();
                self.notice = Some(trouble);
            }
        }
        self.settle();
        effect
    }

    /// Whether an answer is to come.
    pub(crate) fn is_waiting(&self) -> bool {
        self.working.is_some() || self.opening.is_some() || self.writing || self.finder.is_waiting()
    }

    /// The line that letters go into.
    fn line(&mut self) -> &mut Line {
        match (&self.reader, self.view) {
            (Some(_), _) => &mut self.find,
            (None, View::Sessions) => &mut self.sessions.filter,
            (None, View::Hits) => &mut self.finder.line,
        }
    }

    /// What follows from a change of the line.
    fn typed(&mut self) -> Option<Effect> {
        match (&self.reader, self.view) {
            (Some(_), _) => self.look_for(),
            (None, View::Sessions) => self.sessions.refilter(),
            (None, View::Hits) => {
                self.finder.choice = Choice::default();
                return self.search();
            }
        }
        None
    }

    fn search(&mut self) -> Option<Effect> {
        let (ticket, text) = self.finder.ask()?;
        Some(Effect::Ask(Ask::Search(ticket, text)))
    }

    /// Keeps everything within the screen.
    fn settle(&mut self) {
        let list = layout::list(self.area);
        let page = usize::from(list.body.height);
        self.sessions.choice.settle(self.sessions.counts().0, page);
        self.finder.choice.settle(self.finder.found.len(), page / layout::HIT_ROWS);
        if let Some(reader) = &mut self.reader {
            reader.resize(layout::pane(self.area));
        }
    }
}
