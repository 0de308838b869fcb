//! `steno` with no arguments on a terminal: lists, finds and reads sessions.
//!
//! [`state`] knows what is shown and what a key does, [`draw`] paints it, [`worker`] reads and searches on threads
//! of its own; here is the loop between them and the terminal.

mod choice;
mod draw;
mod finder;
mod folds;
mod layout;
mod line;
mod page;
mod reader;
mod screen;
mod sessions;
mod state;
#[cfg(test)]
mod tests;
mod worker;

use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyEventKind};
use steno_core::index::Listed;
use steno_core::{SessionId, Transcript};

use self::draw::Palette;
use self::finder::Found;
use self::screen::Screen;
use self::state::{Effect, State};
use self::worker::Worker;
use crate::commands::resume;
use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::store::Store;
use crate::ui::Ui;

/// How long keys are waited for while an answer is to come, and while none is.
const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(600);

/// Which session is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    agent: String,
    id: SessionId,
}

impl Name {
    fn of(listed: &Listed) -> Self {
        Self { agent: listed.session.agent.clone(), id: listed.session.id.clone() }
    }
}

/// A question to the worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Which sessions there are.
    List,
    /// Where a text stands; the number tells the answer from those of earlier questions.
    Search(u64, String),
    /// What is in a session.
    Read(Name),
    /// To write a session into a file.
    Export(Name),
}

/// What the worker found out.
#[derive(Debug)]
pub(crate) enum Answer {
    /// How far the index has come.
    Indexing(String),
    /// The sessions.
    Listed(Result<Vec<Listed>, String>),
    /// Nothing more is to be listed. The text says why sessions may be missing.
    UpToDate(Option<String>),
    /// What a search has found.
    Found(u64, Result<Vec<Found>, String>),
    /// A session.
    Read(Name, Box<Result<Transcript, String>>),
    /// The file that was written.
    Exported(Result<PathBuf, String>),
    /// A question cannot be answered because of a mistake in this program.
    Failed(String),
}

/// Runs the browser until the user has enough of it.
pub(crate) fn run(ui: &mut Ui, scene: &Scene) -> Result<Exit, CommandError> {
    let store = Store::new(scene);
    if !store.vault.has_sessions()? {
        ui.note(
            "nothing is kept yet; `steno sync` keeps what the agents on this machine have left",
        );
        return Ok(Exit::Done);
    }
    let (worker, answers) = Worker::new(scene);
    let state = State::new(scene.zone.clone(), scene.clock.now());
    let palette = Palette { coloured: ui.is_styled() };
    let mut browser = Browser { state, palette, worker, answers, written: Vec::new() };
    browser.worker.ask(Ask::List);
    let exit = loop {
        let Some(name) = browser.show()? else { break Exit::Done };
        let session = store.vault.session(&name.agent.parse()?, &name.id);
        match resume::session(ui, scene, session) {
            Ok(exit) => break exit,
            Err(error) => browser.state.notice = Some(error.in_one_line()),
        }
    };
    for path in browser.written {
        ui.path_line(&path)?;
    }
    ui.flush()?;
    Ok(exit)
}

struct Browser {
    state: State,
    palette: Palette,
    worker: Worker,
    answers: Receiver<Answer>,
    /// Files that were written meanwhile.
    written: Vec<PathBuf>,
}

impl Browser {
    /// Shows the browser until it is left; gives the session that is to be gone on with.
    fn show(&mut self) -> Result<Option<Name>, CommandError> {
        let mut screen = Screen::open()?;
        self.state.resize(screen.size()?);
        loop {
            self.take_answers();
            screen.draw(&mut self.state, self.palette)?;
            let patience = if self.state.is_waiting() { SHORT } else { LONG };
            if !event::poll(patience)? {
                continue;
            }
            match self.take(event::read()?) {
                Some(Effect::Quit) => return Ok(None),
                Some(Effect::Resume(name)) => return Ok(Some(name)),
                Some(Effect::Ask(ask)) => self.worker.ask(ask),
                None => {}
            }
        }
    }

    fn take(&mut self, event: Event) -> Option<Effect> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.state.key(key),
            Event::Paste(text) => self.state.paste(&text),
            Event::Resize(width, height) => {
                self.state.resize((width, height).into());
                None
            }
            _ => None,
        }
    }

    fn take_answers(&mut self) {
        while let Ok(answer) = self.answers.try_recv() {
            if let Answer::Exported(Ok(path)) = &answer {
                self.written.push(path.clone());
            }
            if let Some(Effect::Ask(ask)) = self.state.answer(answer) {
                self.worker.ask(ask);
            }
        }
    }
}
