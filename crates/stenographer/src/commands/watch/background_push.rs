//! Pushes to remotes while the loop goes on: each remote with `every`, in a thread of its own, after the vault has changed.
//!
//! Other processes change it too: they add notes, forget sessions and record. All changes are in the journal.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use steno_vault::Vault;

use crate::commands::push::push_sessions;
use crate::config::Config;
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::team_access::TeamAccess;
use crate::ui::Ui;

/// Shortest time between two pushes if the first has failed.
const MIN_RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// All remotes that are pushed in the background.
pub(super) struct BackgroundPush {
    env: ProcessEnvironment,
    vault: Vault,
    /// The vault's journal when it was looked at last.
    journal: Option<(u64, SystemTime)>,
    remotes: Vec<ScheduledRemote>,
    sender: Sender<PushOutcome>,
    outcomes: Receiver<PushOutcome>,
}

struct ScheduledRemote {
    name: String,
    schedule: PushSchedule,
    /// Why the last push failed.
    failure: Option<String>,
}

/// When a remote is pushed.
#[derive(Debug)]
struct PushSchedule {
    every: Duration,
    /// Whether something may be new since the last push began.
    has_news: bool,
    is_running: bool,
    /// No push begins before this time.
    earliest: Option<Instant>,
}

/// What a push has done, or why it failed.
struct PushOutcome {
    at: usize,
    result: Result<PushedCounts, String>,
}

/// How many sessions a push has changed on the remote.
#[derive(Clone, Copy)]
pub(super) struct PushedCounts {
    /// Sessions with something new.
    pub(super) sent: u64,
    /// Sessions that were forgotten here, or are private now.
    pub(super) removed: u64,
}

/// News of a push for the user.
pub(super) enum PushNews {
    /// Sessions were pushed or removed.
    Pushed { remote: String, counts: PushedCounts },
    /// Pushing failed, for another reason than last time.
    Failed { remote: String, reason: String },
    /// Pushing works after it had failed.
    Recovered { remote: String },
}

impl BackgroundPush {
    /// Schedules the remotes of the settings that have `every`.
    pub(super) fn new(env: &ProcessEnvironment) -> Result<Self, CommandError> {
        let (sender, outcomes) = mpsc::channel();
        let mut remotes = Vec::new();
        for remote in Config::load(env)?.remotes()? {
            let name = remote.settings.name;
            let schedule = remote.every.map(PushSchedule::new);
            remotes.extend(schedule.map(|schedule| ScheduledRemote {
                name,
                schedule,
                failure: None,
            }));
        }
        let vault = Vault::new(env.store.join("vault"));
        let journal = vault.journal_stamp();
        Ok(Self { env: env.clone(), vault, journal, remotes, sender, outcomes })
    }

    /// Notes that something was kept, by this process or another one.
    pub(super) fn note_news(&mut self) {
        if self.remotes.is_empty() {
            return;
        }
        self.journal = self.vault.journal_stamp();
        self.remotes.iter_mut().for_each(|remote| remote.schedule.has_news = true);
    }

    /// Starts the pushes that are due. `is_quiet` says that no agent is writing now.
    pub(super) fn start_due(&mut self, is_quiet: bool) {
        if !self.remotes.is_empty() && self.vault.journal_stamp() != self.journal {
            self.note_news();
        }
        for (at, remote) in self.remotes.iter_mut().enumerate() {
            if !remote.schedule.begin_if_due(Instant::now(), is_quiet) {
                continue;
            }
            let (env, name, sender) = (self.env.clone(), remote.name.clone(), self.sender.clone());
            thread::spawn(move || {
                let result = push_silently(&env, &name);
                // The receiver is gone when the program ends.
                let _ = sender.send(PushOutcome { at, result });
            });
        }
    }

    /// Returns what there is to say about pushes that have ended. A failure is returned once.
    pub(super) fn take_news(&mut self) -> Vec<PushNews> {
        let mut news = Vec::new();
        for PushOutcome { at, result } in self.outcomes.try_iter() {
            let ScheduledRemote { name, schedule, failure } = &mut self.remotes[at];
            schedule.end(Instant::now(), result.is_ok());
            let remote = name.clone();
            match result {
                Ok(counts) => {
                    if failure.take().is_some() {
                        news.push(PushNews::Recovered { remote: remote.clone() });
                    }
                    if counts.sent > 0 || counts.removed > 0 {
                        news.push(PushNews::Pushed { remote, counts });
                    }
                }
                Err(reason) if failure.as_ref() == Some(&reason) => {}
                Err(reason) => {
                    *failure = Some(reason.clone());
                    news.push(PushNews::Failed { remote, reason });
                }
            }
        }
        news
    }
}

impl PushSchedule {
    /// A schedule whose first push is due at once: something may have been kept before.
    fn new(every: Duration) -> Self {
        Self { every, has_news: true, is_running: false, earliest: None }
    }

    /// Begins a push if one is due. Returns whether it does.
    fn begin_if_due(&mut self, now: Instant, is_quiet: bool) -> bool {
        let has_waited = self.earliest.is_none_or(|earliest| now >= earliest);
        let may_begin = is_quiet || !self.every.is_zero();
        let is_due = self.has_news && !self.is_running && has_waited && may_begin;
        if is_due {
            (self.has_news, self.is_running) = (false, true);
            self.earliest = Some(now + self.every);
        }
        is_due
    }

    fn end(&mut self, now: Instant, has_succeeded: bool) {
        self.is_running = false;
        if !has_succeeded {
            self.has_news = true;
            self.earliest = Some(now + self.every.max(MIN_RETRY_INTERVAL));
        }
    }
}

/// Pushes without printing.
fn push_silently(env: &ProcessEnvironment, name: &str) -> Result<PushedCounts, String> {
    let push = || -> Result<_, CommandError> {
        push_sessions(&mut Ui::silent(), env, &TeamAccess::find(env, Some(name))?)
    };
    let pushed = push().map_err(|error| error.to_line())?;
    match pushed.failures.into_iter().next() {
        None => Ok(PushedCounts {
            sent: pushed.summary.sessions,
            removed: pushed.summary.forgotten + pushed.summary.withdrawn,
        }),
        Some(failure) => Err(failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_are_pushed_once_per_interval() {
        let start = Instant::now();
        let minutes = |count: u64| start + Duration::from_secs(60 * count);
        let mut schedule = PushSchedule::new(Duration::from_secs(600));
        assert!(schedule.begin_if_due(minutes(0), false), "what was kept before");
        schedule.has_news = true;
        assert!(!schedule.begin_if_due(minutes(11), true), "one at a time");
        schedule.end(minutes(11), true);
        assert!(schedule.begin_if_due(minutes(11), false));
        schedule.end(minutes(12), true);
        assert!(!schedule.begin_if_due(minutes(60), true), "nothing new");
        schedule.has_news = true;
        assert!(schedule.begin_if_due(minutes(60), true));
        schedule.end(minutes(61), false);
        assert!(!schedule.begin_if_due(minutes(70), true));
        assert!(schedule.begin_if_due(minutes(71), true), "again after a failure");
    }

    #[test]
    fn without_an_interval_a_quiet_moment_is_awaited() {
        let now = Instant::now();
        let mut schedule = PushSchedule::new(Duration::ZERO);
        assert!(!schedule.begin_if_due(now, false));
        assert!(schedule.begin_if_due(now, true));
        schedule.end(now, false);
        schedule.has_news = true;
        assert!(!schedule.begin_if_due(now, true), "not at once after a failure");
        assert!(schedule.begin_if_due(now + MIN_RETRY_INTERVAL, true));
    }
}
