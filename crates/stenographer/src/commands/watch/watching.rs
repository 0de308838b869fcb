//! The loop: waits for events, and keeps what they are about when it is due.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use notify::event::ModifyKind;
use notify::{ErrorKind, Event, EventKind};
use serde::Serialize;

use super::Args;
use super::events::{Message, stop_on_signal, watcher};
use super::pending::Pending;
use super::roots::Roots;
use crate::error::CommandError;
use crate::scene::Scene;
use crate::sweep::{News, Sweep, real, wanted};
use crate::ui::{Ui, count};

/// How often to see whether roots have come or gone.
const CHECK: Duration = Duration::from_secs(2);

/// How often to save what was seen.
const SAVE: Duration = Duration::from_secs(30);

/// How often to look for what no event told of.
const REVIEW: Duration = Duration::from_secs(300);

/// A review or a poll comes again after so many times of what it took.
const EASE: u32 = 50;

/// What `--json` prints.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Told<'a> {
    Ready { roots: usize },
    Kept(&'a News),
    Stopped { sessions: u64, bytes_new: u64, looks: u64 },
}

/// When each recurring task is due.
struct Due {
    check: Instant,
    poll: Instant,
    save: Instant,
    review: Instant,
    /// When a review that cannot wait may come.
    soonest: Instant,
}

/// All that `watch` works with.
pub(super) struct Watching<'a> {
    ui: &'a mut Ui,
    scene: &'a Scene,
    args: &'a Args,
    sweep: Sweep,
    roots: Roots,
    pending: Pending,
    due: Due,
    messages: Receiver<Message>,
    stop: Arc<AtomicBool>,
    told: HashSet<String>,
    /// Whether there was a vault when last looked.
    has_vault: bool,
    is_ready: bool,
    /// The sessions of which something was kept.
    sessions: HashSet<(&'static str, String)>,
    bytes_new: u64,
}

impl<'a> Watching<'a> {
    /// Begins to listen for signals; nothing is watched yet.
    pub(super) fn new(
        ui: &'a mut Ui,
        scene: &'a Scene,
        args: &'a Args,
    ) -> Result<Self, CommandError> {
        let (sender, messages) = mpsc::channel();
        let mut sweep = Sweep::new(ui, scene)?;
        sweep.news = Some(Vec::new());
        sweep.stop = stop_on_signal(sender.clone())?;
        let watcher = watcher(sender, real(scene.store.clone()));
        let now = Instant::now();
        Ok(Self {
            stop: Arc::clone(&sweep.stop),
            roots: Roots::new(wanted(scene, &args.paths, &args.agent), watcher),
            pending: Pending::new(args.quiet()),
            due: Due {
                check: now,
                poll: now,
                save: now + SAVE,
                review: now + REVIEW,
                soonest: now,
            },
            told: HashSet::new(),
            has_vault: false,
            is_ready: false,
            sessions: HashSet::new(),
            bytes_new: 0,
            ui,
            scene,
            args,
            sweep,
            messages,
        })
    }

    /// Keeps what is there, then what changes, until a signal comes.
    pub(super) fn run(mut self) -> Result<(), CommandError> {
        if self.begin()? {
            return self.end();
        }
        let mut stopped = self.stop.load(Ordering::Relaxed);
        while !stopped {
            let now = Instant::now();
            let next = self.pending.next().unwrap_or(self.due.check).min(self.due.check);
            let first = self.messages.recv_timeout(next.saturating_duration_since(now)).ok();
            let others: Vec<Message> = self.messages.try_iter().collect();
            for message in first.into_iter().chain(others) {
                match message {
                    Message::Changed(event) => self.changed(event),
                    Message::Stop => stopped = true,
                }
            }
            self.recurring()?;
            while !self.stop.load(Ordering::Relaxed)
                && let Some(file) = self.pending.take_due(Instant::now())
            {
                self.look(&file)?;
            }
        }
        self.finish_pending()?;
        self.end()
    }

    /// The first look at everything; whether a signal has cut it short.
    fn begin(&mut self) -> Result<bool, CommandError> {
        self.check()?;
        let is_cut_short = self.stop.load(Ordering::Relaxed);
        self.sweep.progress.finish();
        self.is_ready = true;
        for path in self.roots.awaited().iter().filter(|_| !self.args.paths.is_empty()) {
            self.ui.status(format_args!("not there yet, waiting for it: {}", path.display()));
        }
        if self.args.json {
            let roots = self.roots.all().len();
            self.tell(&Told::Ready { roots })?;
        } else {
            let kept = count(self.sessions.len() as u64, "session");
            let roots = count(self.roots.all().len() as u64, "folder");
            self.ui.status(format_args!("watching {roots}, kept {kept}"));
        }
        Ok(is_cut_short)
    }

    /// Keeps what is pending, due or not.
    fn finish_pending(&mut self) -> Result<(), CommandError> {
        // A second signal ends this too.
        self.stop.store(false, Ordering::Relaxed);
        // The first one may have cut a look short.
        self.sweep.forget_passed();
        // What was written just before the signal may not have been told of yet.
        self.scan(&self.roots.all());
        for file in self.pending.take_all() {
            self.look(&file)?;
        }
        Ok(())
    }

    fn end(mut self) -> Result<(), CommandError> {
        self.save();
        self.report()?;
        let sessions = self.sessions.len() as u64;
        let (bytes_new, looks) = (self.bytes_new, self.sweep.looks);
        if self.args.json {
            return self.tell(&Told::Stopped { sessions, bytes_new, looks });
        }
        let (kept, bytes) = (count(sessions, "session"), count(bytes_new, "byte"));
        self.ui.status(format_args!("stopped: kept {kept}, {bytes} new"));
        Ok(())
    }

    /// Takes in what the system tells.
    fn changed(&mut self, event: notify::Result<Event>) {
        match event {
            Ok(event) if event.need_rescan() => self.due.review = self.due.soonest,
            Ok(event) => event.paths.iter().for_each(|path| self.touched(path, event.kind)),
            Err(error) if matches!(error.kind, ErrorKind::MaxFilesWatch) => {
                for path in error.paths {
                    if self.roots.poll(&path) {
                        self.say_polled(&path);
                    }
                }
            }
            // What it was about is found by the next review.
            Err(_) => {}
        }
    }

    fn touched(&mut self, path: &Path, kind: EventKind) {
        let is_root = self.roots.root_of(path) == Some(path);
        let is_moved = matches!(kind, EventKind::Modify(ModifyKind::Name(_)));
        if is_root && !path.is_file() && (kind.is_remove() || is_moved) {
            self.roots.lost(path);
            self.due.check = Instant::now();
            return;
        }
        // A folder is looked through when it comes, not whenever something about it changes.
        let is_old_folder =
            matches!(kind, EventKind::Modify(ModifyKind::Metadata(_))) && path.is_dir();
        if self.roots.root_of(path).is_some() && !kind.is_remove() && !is_old_folder {
            self.pending.touch(path.to_owned(), Instant::now());
        }
    }

    /// What has to be done from time to time.
    fn recurring(&mut self) -> Result<(), CommandError> {
        let now = Instant::now();
        if now >= self.due.check {
            self.check()?;
        }
        if now >= self.due.poll {
            let polled = self.roots.polled();
            self.due.poll = now + self.scan(&polled).max(CHECK);
        }
        if now >= self.due.review {
            self.review()?;
        }
        if now >= self.due.save {
            self.save();
            self.due.save = Instant::now() + (now.elapsed() * EASE).max(SAVE);
        }
        Ok(())
    }

    /// Saves what was seen; without it the next start only takes longer.
    fn save(&mut self) {
        let saved = self.sweep.seen.save();
        self.sweep.failures.extend(saved.err().map(CommandError::from));
    }

    /// Looks for what no event told of.
    fn review(&mut self) -> Result<(), CommandError> {
        for path in self.roots.renew() {
            self.say_polled(&path);
        }
        self.sweep.forget_passed();
        let took = self.sweep_all(&self.roots.all())?;
        self.due.review = Instant::now() + (took * EASE).max(REVIEW);
        self.due.soonest = Instant::now() + (took * EASE).min(REVIEW);
        Ok(())
    }

    /// Sees which roots have come, and keeps what is there.
    fn check(&mut self) -> Result<(), CommandError> {
        self.due.check = Instant::now() + CHECK;
        let had_vault =
            std::mem::replace(&mut self.has_vault, self.scene.store.join("vault").is_dir());
        if had_vault && !self.has_vault {
            self.sweep.forget_all(self.scene)?;
            self.sweep_all(&self.roots.all())?;
        }
        let checked = self.roots.check();
        checked.polled.iter().for_each(|path| self.say_polled(path));
        self.sweep_all(&checked.came)?;
        Ok(())
    }

    /// Marks what has changed in roots that send no events; gives how long to wait for the next time.
    fn scan(&mut self, roots: &[PathBuf]) -> Duration {
        let start = Instant::now();
        for root in roots {
            for file in self.sweep.changed(root).unwrap_or_default().changed.into_keys() {
                self.pending.touch(file, start);
            }
        }
        start.elapsed() * EASE
    }

    /// Keeps what is new in whole roots, as `sync` does; gives how long that took.
    fn sweep_all(&mut self, roots: &[PathBuf]) -> Result<Duration, CommandError> {
        let start = Instant::now();
        for root in roots {
            if let Err(error) = self.sweep.root(root, &self.args.agent) {
                self.sweep.failures.push(error);
            }
            self.save();
            self.report()?;
        }
        Ok(start.elapsed())
    }

    /// Keeps the session of a changed file; of a folder, those of all files in it.
    fn look(&mut self, path: &Path) -> Result<(), CommandError> {
        let Some(root) = self.roots.root_of(path).map(Path::to_owned) else { return Ok(()) };
        let start = Instant::now();
        if path.is_dir() {
            self.roots.settle();
            self.scan(&[path.to_owned()]);
            return Ok(());
        }
        self.sweep.file(path, &root, &self.args.agent);
        self.pending.worked(start.elapsed(), Instant::now());
        self.report()
    }

    /// Tells what was kept and what went wrong, each failure once.
    fn report(&mut self) -> Result<(), CommandError> {
        for news in self.sweep.news.replace(Vec::new()).unwrap_or_default() {
            self.has_vault = true;
            self.bytes_new += news.bytes_new;
            self.sessions.insert((news.agent, news.session.clone()));
            if self.args.json {
                self.tell(&Told::Kept(&news))?;
            } else if self.is_ready {
                self.line(&news)?;
            }
        }
        for failure in std::mem::take(&mut self.sweep.failures) {
            if self.told.insert(failure.error.to_string()) {
                self.ui.report(&failure);
            }
        }
        Ok(())
    }

    fn line(&mut self, news: &News) -> Result<(), CommandError> {
        let time = self.scene.clock.now().instant().to_zoned(self.scene.zone.clone());
        let name = news.title.as_deref().unwrap_or(&news.session).replace(char::is_control, " ");
        let (entries, bytes) = (count(news.entries, "entry"), count(news.bytes_new, "byte"));
        let agent = news.agent;
        let time = time.strftime("%H:%M:%S");
        self.ui.listing_text(&format!("{time} {agent}  {name}  {entries}, {bytes} new\n"))?;
        Ok(self.ui.flush()?)
    }

    fn tell(&mut self, told: &Told<'_>) -> Result<(), CommandError> {
        serde_json::to_writer(self.ui.out(), told)?;
        writeln!(self.ui.out())?;
        Ok(self.ui.flush()?)
    }

    fn say_polled(&mut self, path: &Path) {
        let path = path.display();
        self.ui.warning(format_args!(
            "the system gives no more events, so this is looked at every few seconds: {path}"
        ));
    }
}
