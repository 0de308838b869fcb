//! The loop of `steno watch`: waits for events and syncs changed files when they are due.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use notify::event::ModifyKind;
use notify::{ErrorKind, Event, EventKind};

use super::Args;
use super::background_push::{BackgroundPush, PushNews, PushedCounts};
use super::events::{WatchMessage, start_watcher, stop_on_signal};
use super::pending::PendingFiles;
use super::roots::WatchedRoots;
use super::watch_event::WatchEvent;
use crate::commands::list::MIN_ID_CHARS;
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::session_paths::possible_roots;
use crate::ui::{Ui, count_bytes, count_noun};
use steno_model::SessionId;
use steno_store::StoreError;
use steno_store::sync::{SessionSyncer, SyncedSession, resolve_links};

/// Interval of checks for new or removed roots.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Interval of saving the list of seen files.
const SAVE_INTERVAL: Duration = Duration::from_secs(30);

/// Interval of full syncs for changes without events.
const REVIEW_INTERVAL: Duration = Duration::from_secs(300);

/// A review or poll repeats after this multiple of its duration.
const INTERVAL_FACTOR: u32 = 50;

/// When each recurring task is due.
struct TaskSchedule {
    next_check: Instant,
    next_poll: Instant,
    next_save: Instant,
    next_review: Instant,
    /// Earliest time of an urgent review.
    earliest_review: Instant,
}

/// State of the loop.
pub(super) struct WatchLoop<'a> {
    ui: &'a mut Ui,
    env: &'a ProcessEnvironment,
    args: &'a Args,
    syncer: SessionSyncer,
    roots: WatchedRoots,
    pending: PendingFiles,
    due: TaskSchedule,
    messages: Receiver<WatchMessage>,
    stop: Arc<AtomicBool>,
    reported_errors: HashSet<String>,
    /// Whether the vault existed at the last check.
    has_vault: bool,
    is_ready: bool,
    /// Sessions with new bytes.
    sessions: HashSet<(&'static str, SessionId)>,
    bytes_new: u64,
    push: BackgroundPush,
}

impl<'a> WatchLoop<'a> {
    /// Installs the signal handler; watches nothing yet.
    pub(super) fn new(
        ui: &'a mut Ui,
        env: &'a ProcessEnvironment,
        args: &'a Args,
    ) -> Result<Self, CommandError> {
        let (sender, messages) = mpsc::channel();
        let on_session = ui.start_progress("keeping").into_callback();
        let mut syncer = SessionSyncer::new(env.store_location())?.with_progress(on_session);
        syncer.synced = Some(Vec::new());
        syncer.stop = stop_on_signal(sender.clone())?;
        let watcher = start_watcher(sender, resolve_links(env.store.clone()));
        let now = Instant::now();
        Ok(Self {
            stop: Arc::clone(&syncer.stop),
            roots: WatchedRoots::new(possible_roots(env, &args.paths, &args.agent), watcher),
            pending: PendingFiles::new(args.quiet_time()),
            due: TaskSchedule {
                next_check: now,
                next_poll: now,
                next_save: now + SAVE_INTERVAL,
                next_review: now + REVIEW_INTERVAL,
                earliest_review: now,
            },
            reported_errors: HashSet::new(),
            has_vault: false,
            is_ready: false,
            sessions: HashSet::new(),
            bytes_new: 0,
            push: BackgroundPush::new(env)?,
            ui,
            env,
            args,
            syncer,
            messages,
        })
    }

    /// Syncs existing sessions, then changes, until a signal arrives.
    pub(super) fn run(mut self) -> Result<(), CommandError> {
        if self.sync_existing()? {
            return self.finish();
        }
        let mut stopped = self.stop.load(Ordering::Relaxed);
        while !stopped {
            let now = Instant::now();
            let next =
                self.pending.next_due().unwrap_or(self.due.next_check).min(self.due.next_check);
            let first = self.messages.recv_timeout(next.saturating_duration_since(now)).ok();
            let others: Vec<WatchMessage> = self.messages.try_iter().collect();
            for message in first.into_iter().chain(others) {
                match message {
                    WatchMessage::Changed(event) => self.handle_event(event),
                    WatchMessage::Stop => stopped = true,
                }
            }
            self.run_due_tasks()?;
            while !self.stop.load(Ordering::Relaxed)
                && let Some(file) = self.pending.take_due(Instant::now())
            {
                self.sync_path(&file)?;
            }
            self.push_news()?;
        }
        self.finish_pending()?;
        self.finish()
    }

    /// Starts the pushes that are due, and reports those that have ended.
    fn push_news(&mut self) -> Result<(), CommandError> {
        self.push.start_due(self.pending.next_due().is_none());
        self.report_pushes()
    }

    /// Reports the pushes that have ended.
    fn report_pushes(&mut self) -> Result<(), CommandError> {
        for news in self.push.take_news() {
            match news {
                PushNews::Pushed { remote, counts } => self.report_push(&remote, counts)?,
                PushNews::Failed { remote, reason } => {
                    self.ui.warning(format_args!("could not push to {remote}: {reason}"));
                }
                PushNews::Recovered { remote } => {
                    self.ui.status(format_args!("pushing to {remote} works again"));
                }
            }
        }
        Ok(())
    }

    fn report_push(&mut self, remote: &str, counts: PushedCounts) -> Result<(), CommandError> {
        let PushedCounts { sent: sessions, removed } = counts;
        if self.args.json {
            return self.print_event(&WatchEvent::Pushed { remote, sessions, removed });
        }
        let mut words = format!("pushed {} to {remote}", count_noun(sessions, "session"));
        if removed > 0 {
            words.push_str(&format!(", removed {removed}"));
        }
        self.ui.status(words);
        Ok(())
    }

    /// Syncs everything once. Returns whether a signal interrupted it.
    fn sync_existing(&mut self) -> Result<bool, CommandError> {
        self.check_roots()?;
        let is_cut_short = self.stop.load(Ordering::Relaxed);
        self.syncer.end_progress();
        self.is_ready = true;
        for path in self.roots.missing_roots().iter().filter(|_| !self.args.paths.is_empty()) {
            self.ui.status(format_args!("waiting for missing path: {}", path.display()));
        }
        if self.args.json {
            let roots = self.roots.existing_roots().len();
            self.print_event(&WatchEvent::Ready { roots })?;
        } else {
            let kept = count_noun(self.sessions.len() as u64, "session");
            let roots = count_noun(self.roots.existing_roots().len() as u64, "folder");
            self.ui.status(format_args!("watching {roots}, synced {kept}"));
        }
        Ok(is_cut_short)
    }

    /// Syncs all queued files, due or not.
    fn finish_pending(&mut self) -> Result<(), CommandError> {
        // A second signal stops this too.
        self.stop.store(false, Ordering::Relaxed);
        // The first signal may have interrupted a sync.
        self.syncer.clear_skipped();
        // Changes just before the signal may have no event yet.
        self.queue_changes(&self.roots.existing_roots());
        for file in self.pending.take_all() {
            self.sync_path(&file)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), CommandError> {
        self.save_seen();
        self.report_results()?;
        self.report_pushes()?;
        let sessions = self.sessions.len() as u64;
        let (bytes_new, looks) = (self.bytes_new, self.syncer.lookup_count);
        if self.args.json {
            return self.print_event(&WatchEvent::Stopped { sessions, bytes_new, looks });
        }
        let (kept, bytes) = (count_noun(sessions, "session"), count_bytes(bytes_new));
        self.ui.status(format_args!("stopped: synced {kept}, {bytes} new"));
        Ok(())
    }

    /// Handles an event of the watcher.
    fn handle_event(&mut self, event: notify::Result<Event>) {
        match event {
            Ok(event) if event.need_rescan() => self.due.next_review = self.due.earliest_review,
            Ok(event) => event.paths.iter().for_each(|path| self.handle_path(path, event.kind)),
            Err(error) if matches!(error.kind, ErrorKind::MaxFilesWatch) => {
                for path in error.paths {
                    if self.roots.start_polling(&path) {
                        self.warn_polled(&path);
                    }
                }
            }
            // The next review finds the change.
            Err(_) => {}
        }
    }

    fn handle_path(&mut self, path: &Path, kind: EventKind) {
        let is_root = self.roots.root_of(path) == Some(path);
        let is_moved = matches!(kind, EventKind::Modify(ModifyKind::Name(_)));
        if is_root && !path.is_file() && (kind.is_remove() || is_moved) {
            self.roots.mark_missing(path);
            self.due.next_check = Instant::now();
            return;
        }
        // What is removed stays kept. A folder is scanned when it is created, not on every change of its metadata.
        let is_old_folder =
            matches!(kind, EventKind::Modify(ModifyKind::Metadata(_))) && path.is_dir();
        if self.roots.root_of(path).is_some() && !kind.is_remove() && !is_old_folder {
            self.pending.touch(path.to_owned(), Instant::now());
        }
    }

    /// Runs the tasks that are due.
    fn run_due_tasks(&mut self) -> Result<(), CommandError> {
        let now = Instant::now();
        if now >= self.due.next_check {
            self.check_roots()?;
        }
        if now >= self.due.next_poll {
            let polled = self.roots.polled_roots();
            self.due.next_poll = now + self.queue_changes(&polled).max(CHECK_INTERVAL);
        }
        if now >= self.due.next_review {
            self.sync_missed_changes()?;
        }
        if now >= self.due.next_save {
            self.save_seen();
            self.due.next_save =
                Instant::now() + (now.elapsed() * INTERVAL_FACTOR).max(SAVE_INTERVAL);
        }
        Ok(())
    }

    /// Saves the list of seen files; without it only the next start is slower.
    fn save_seen(&mut self) {
        let saved = self.syncer.seen.save();
        self.syncer.failures.extend(saved.err().map(StoreError::from));
    }

    /// Syncs changes without events.
    fn sync_missed_changes(&mut self) -> Result<(), CommandError> {
        for path in self.roots.watch_again() {
            self.warn_polled(&path);
        }
        self.syncer.clear_skipped();
        let took = self.sync_roots(&self.roots.existing_roots())?;
        self.due.next_review = Instant::now() + (took * INTERVAL_FACTOR).max(REVIEW_INTERVAL);
        self.due.earliest_review = Instant::now() + (took * INTERVAL_FACTOR).min(REVIEW_INTERVAL);
        Ok(())
    }

    /// Checks for new roots and syncs them.
    fn check_roots(&mut self) -> Result<(), CommandError> {
        self.due.next_check = Instant::now() + CHECK_INTERVAL;
        let had_vault = std::mem::replace(
            &mut self.has_vault,
            steno_cipher::store_fs::is_dir(&self.env.store.join("vault")),
        );
        if had_vault && !self.has_vault {
            self.syncer.reset()?;
            self.sync_roots(&self.roots.existing_roots())?;
        }
        let checked = self.roots.update();
        checked.polled.iter().for_each(|path| self.warn_polled(path));
        self.sync_roots(&checked.appeared)?;
        Ok(())
    }

    /// Queues changed files of roots without events. Returns the delay until the next scan.
    fn queue_changes(&mut self, roots: &[PathBuf]) -> Duration {
        let start = Instant::now();
        for root in roots {
            for file in self.syncer.changed_files(root).unwrap_or_default().changed.into_keys() {
                self.pending.touch(file, start);
            }
        }
        start.elapsed() * INTERVAL_FACTOR
    }

    /// Syncs whole roots like `steno sync`. Returns the duration.
    fn sync_roots(&mut self, roots: &[PathBuf]) -> Result<Duration, CommandError> {
        let start = Instant::now();
        for root in roots {
            if let Err(error) = self.syncer.sync_root(root, &self.args.agent) {
                self.syncer.failures.push(error);
            }
            self.save_seen();
            self.report_results()?;
        }
        Ok(start.elapsed())
    }

    /// Syncs the session of a changed file; for a folder, queues all its files.
    fn sync_path(&mut self, path: &Path) -> Result<(), CommandError> {
        let Some(root) = self.roots.root_of(path).map(Path::to_owned) else { return Ok(()) };
        let start = Instant::now();
        if path.is_dir() {
            self.roots.wait_for_watches();
            self.queue_changes(&[path.to_owned()]);
            return Ok(());
        }
        self.syncer.sync_file(path, &root, &self.args.agent);
        self.pending.rest_after(start.elapsed(), Instant::now());
        self.report_results()
    }

    /// Prints synced sessions, and each error once.
    fn report_results(&mut self) -> Result<(), CommandError> {
        for session in self.syncer.synced.replace(Vec::new()).unwrap_or_default() {
            self.has_vault = true;
            self.push.note_news();
            self.bytes_new += session.bytes_new;
            self.sessions.insert((session.agent, session.session.clone()));
            if self.args.json {
                self.print_event(&WatchEvent::Kept(&session))?;
            } else if self.is_ready {
                self.print_line(&session)?;
            }
        }
        for failure in std::mem::take(&mut self.syncer.failures) {
            if self.reported_errors.insert(failure.to_string()) {
                self.ui.report_error(&failure.into());
            }
        }
        Ok(())
    }

    fn print_line(&mut self, session: &SyncedSession) -> Result<(), CommandError> {
        let time = self.env.clock.now().instant().to_zoned(self.env.zone.clone());
        let name = session
            .title
            .as_deref()
            .unwrap_or(session.session.as_str())
            .replace(char::is_control, " ");
        let (entries, bytes) =
            (count_noun(session.entries, "entry"), count_bytes(session.bytes_new));
        let agent = session.agent;
        let id: String = session.session.as_str().chars().take(MIN_ID_CHARS).collect();
        let time = time.strftime("%H:%M:%S");
        self.ui.listing_text(&format!("{time} {agent} {id}  {name}  {entries}, {bytes} new\n"))?;
        Ok(self.ui.flush()?)
    }

    fn print_event(&mut self, event: &WatchEvent<'_>) -> Result<(), CommandError> {
        serde_json::to_writer(self.ui.out(), event)?;
        writeln!(self.ui.out())?;
        Ok(self.ui.flush()?)
    }

    fn warn_polled(&mut self, path: &Path) {
        let path = path.display();
        self.ui.warning(format_args!(
            "no more file events available; polling every few seconds: {path}"
        ));
    }
}
