//! Reads, searches and writes behind the screen, so that no key ever waits.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use steno_core::Transcript;
use steno_core::index::mark::Shown;
use steno_core::index::{Filter, Index, Listed, Order, Search};
use steno_core::view::pictures::Pictures;
use steno_core::view::redact::Redactor;

use super::finder::{self, Found, MOST};
use super::{Answer, Ask, Name};
use crate::commands::list::settled;
use crate::error::CommandError;
use crate::scene::Scene;
use crate::store::Store;
use crate::target::{Export, Target};
use crate::ui::Ui;

/// How long a search waits for the next letter.
const PAUSE: Duration = Duration::from_millis(40);

/// Who does the work: one thread for each question.
#[derive(Clone)]
pub(crate) struct Worker {
    store: Arc<Store>,
    scene: Scene,
    answers: Sender<Answer>,
    /// The last search that was asked for. One that is not it any more need not begin.
    ticket: Arc<AtomicU64>,
    /// Held by the search that runs.
    searching: Arc<Mutex<()>>,
}

impl Worker {
    pub(crate) fn new(scene: &Scene) -> (Self, Receiver<Answer>) {
        let (answers, receiver) = mpsc::channel();
        let worker = Self {
            store: Arc::new(Store::new(scene)),
            scene: scene.clone(),
            answers,
            ticket: Arc::default(),
            searching: Arc::default(),
        };
        (worker, receiver)
    }

    /// Answers a question as soon as it can be.
    pub(crate) fn ask(&self, ask: Ask) {
        if let Ask::Search(ticket, _) = &ask {
            self.ticket.store(*ticket, Ordering::Relaxed);
        }
        let worker = self.clone();
        thread::spawn(move || {
            let answered = panic::catch_unwind(AssertUnwindSafe(|| worker.answer(ask)));
            if let Err(panic) = answered {
                worker.tell(Answer::Failed(told(panic.as_ref())));
            }
        });
    }

    fn answer(&self, ask: Ask) {
        match ask {
            Ask::List => {
                let notice = self.list();
                self.tell(Answer::UpToDate(notice));
            }
            Ask::Search(ticket, text) => self.search(ticket, &text),
            Ask::Read(name) => {
                let read = Box::new(self.read(&name).map_err(|error| error.in_one_line()));
                self.tell(Answer::Read(name, read));
            }
            Ask::Export(name) => {
                self.tell(Answer::Exported(
                    self.export(&name).map_err(|error| error.in_one_line()),
                ));
            }
        }
    }

    /// Nobody listens any more once the browser has ended.
    fn tell(&self, answer: Answer) {
        let _ = self.answers.send(answer);
    }

    /// The sessions that are known, at once; then those that are there. Returns why some may be missing.
    fn list(&self) -> Option<String> {
        let all = |index: &Index| index.sessions(None, None);
        let known = self.store.index().and_then(|index| all(&index));
        if let Ok(known) = known {
            self.tell(Answer::Listed(Ok(known)));
        }
        let mut done = 0;
        let mut pass = |count: usize, _: &_| {
            done += 1;
            self.tell(Answer::Indexing(format!("indexing {done} of {count}")));
        };
        let mut notice = None;
        let listed = self.store.ask_passing(&mut pass, all).map(|(mut listed, condition)| {
            notice = condition.notice();
            for one in listed.iter_mut().filter(|one| one.trouble.is_none()) {
                one.session = settled(&self.store, one.session.clone());
            }
            listed.retain(|Listed { session, trouble }| {
                let (agent, entries) = (&session.agent, session.totals.entries);
                trouble.is_some()
                    || !self.store.vault.is_empty_recording(agent, &session.id, entries)
            });
            listed
        });
        self.tell(Answer::Listed(listed.map_err(|error| error.in_one_line())));
        notice
    }

    fn search(&self, ticket: u64, text: &str) {
        thread::sleep(PAUSE);
        let _alone = self.searching.lock().unwrap_or_else(PoisonError::into_inner);
        if self.ticket.load(Ordering::Relaxed) == ticket {
            let found = self.found(text).map_err(|error| error.in_one_line());
            self.tell(Answer::Found(ticket, found));
        }
    }

    fn found(&self, text: &str) -> Result<Vec<Found>, CommandError> {
        let query = finder::as_typed(text)?;
        let search = Search {
            query: &query,
            filter: Filter::default(),
            order: Order::Relevance,
            limit: MOST,
            now: self.scene.clock.now(),
        };
        let shown = Shown { lines: 3, context: 1 };
        let found = self.store.index()?.search(&search)?.into_iter().map(|mut hit| {
            let lines = query.lines(&std::mem::take(&mut hit.text), shown);
            Found { hit, lines }
        });
        Ok(found.collect())
    }

    fn read(&self, name: &Name) -> Result<Transcript, CommandError> {
        Ok(self.store.vault.session(&name.agent.parse()?, &name.id).read()?)
    }

    /// Writes a session as Markdown into the working folder, in place of nothing.
    fn export(&self, name: &Name) -> Result<PathBuf, CommandError> {
        let mut transcript = self.read(name)?;
        Redactor::default().transcript(&mut transcript);
        let path = free(&self.scene.cwd, name.id.as_str());
        let pictures = Pictures::default();
        let (transcript, out) = (&transcript, Some(path.as_path()));
        let export = Export { transcript, pictures: &pictures, target: Target::Md, out };
        export.write(&mut Ui::silent(), &self.scene)?;
        Ok(path)
    }
}

/// What a thread said when it gave up.
fn told(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied());
    format!("this is a mistake in steno: {}", text.unwrap_or("no reason was given"))
}

/// A name that no file has yet.
fn free(folder: &Path, name: &str) -> PathBuf {
    let numbered = (2..).map(|number| format!("{name}-{number}.md"));
    let mut names = std::iter::once(format!("{name}.md")).chain(numbered);
    let path = names.find_map(|name| Some(folder.join(name)).filter(|path| !path.exists()));
    path.unwrap_or_else(|| folder.join(name))
}
