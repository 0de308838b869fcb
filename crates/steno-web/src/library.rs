//! What the page shows: asked of the index, read from the vault, and held as long as it stays the same.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use jiff::tz::TimeZone;
use steno_core::cost::Prices;
use steno_core::cost::charge::{Charges, Mode};
use steno_core::cost::report::{By, Group, Sum};
use steno_core::index::{Filter, Index, IndexCondition, IndexError, IndexSource, Listed};
use steno_core::vault::{SessionDir, Vault};
use steno_core::view::lanes::Lanes;
use steno_core::view::pictures::Pictures;
use steno_core::{Clock, Entry, Session, Status, Transcript};

use crate::error::WebError;
use crate::options::ServerOptions;

/// How long the index is taken to be up to date.
const FRESH: Duration = Duration::from_millis(400);

/// How long it takes until a store that could not be written is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// How many connections to the index wait for a question.
const IDLE: usize = 2;

/// How many sessions are held, and how many bytes of text in all; the last one is held whatever its size.
const HELD: usize = 4;
const HELD_BYTES: usize = 32 << 20;

/// Everything that is kept, as the page asks for it.
pub(crate) struct Library {
    /// `$STENO_HOME`.
    pub(crate) store: PathBuf,
    /// Whose clock times are told by.
    pub(crate) zone: TimeZone,
    /// What time it is.
    pub(crate) clock: Clock,
    /// What tokens cost.
    pub(crate) prices: Prices,
    pub(crate) vault: Vault,
    source: IndexSource,
    idle: Mutex<Vec<Index>>,
    looked: Mutex<Option<Instant>>,
    /// When the store could not be written.
    blocked: Mutex<Option<Instant>>,
    condition: Mutex<IndexCondition>,
    /// How many sessions were taken into the index.
    taken: AtomicUsize,
    opened: Mutex<Vec<Arc<Opened>>>,
    listing: Mutex<Option<(Edition, Arc<Listing>)>>,
}

/// A session that was read.
pub(crate) struct Opened {
    pub(crate) dir: SessionDir,
    pub(crate) transcript: Transcript,
    pub(crate) pictures: Pictures,
    /// Where its subagents stand.
    pub(crate) lanes: Lanes,
    /// How much was kept of it when it was read.
    pub(crate) size: u64,
    text: usize,
}

impl Opened {
    /// Its entries with their numbers, in the order in which they are shown.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (usize, &Entry)> {
        let entries = &self.transcript.entries;
        let numbers = (0..entries.len()).map(|place| self.lanes.number(place));
        numbers.map(|number| (number, &entries[number]))
    }
}

/// All sessions, and what each adds up to.
pub(crate) struct Listing {
    pub(crate) sessions: Vec<Listed>,
    /// By agent and id.
    pub(crate) costs: HashMap<(String, String), Sum>,
    pub(crate) failures: HashMap<(String, String), u64>,
}

/// Sizes and times of the index's files, and how often it was written here: they change with what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edition {
    pub(crate) files: [Option<(u64, SystemTime)>; 2],
    pub(crate) taken: usize,
}

/// What was billed, with the cost of each.
pub(crate) struct Accounts {
    pub(crate) charges: Charges,
    pub(crate) costs: Vec<Option<f64>>,
    pub(crate) filter: Filter,
}

impl Library {
    /// The store of these options.
    pub(crate) fn new(options: &ServerOptions) -> Self {
        let vault = Vault::new(options.store.join("vault"));
        Self {
            source: IndexSource::new(&options.store, &vault, options.boot.clone()),
            vault,
            store: options.store.clone(),
            zone: options.zone.clone(),
            clock: options.clock.clone(),
            prices: options.prices.clone(),
            idle: Mutex::default(),
            looked: Mutex::default(),
            blocked: Mutex::default(),
            condition: Mutex::default(),
            taken: AtomicUsize::default(),
            opened: Mutex::default(),
            listing: Mutex::default(),
        }
    }

    /// What the index answers, with all that is kept by now; as it is where the store cannot be written.
    pub(crate) fn ask<T>(
        &self,
        ask: impl Fn(&Index) -> Result<T, IndexError>,
    ) -> Result<T, WebError> {
        let idle = held(&self.idle).pop().filter(Index::is_in_place);
        if let Some(index) = idle
            && let Ok(answer) = self.refresh(&index).and_then(|()| ask(&index))
        {
            self.rest(index);
            return Ok(answer);
        }
        // What cannot be written is neither prepared for writing nor compared with the vault at every request.
        if self.is_blocked()
            && let Ok(answer) = Index::open_read_only(&self.store).and_then(|index| ask(&index))
        {
            return Ok(answer);
        }
        let answer = self.source.ask(&mut |index| self.catch_up(index), &ask)?;
        *held(&self.condition) = answer.condition;
        *held(&self.blocked) = answer.index.is_read_only().then(Instant::now);
        self.rest(answer.index);
        Ok(answer.value)
    }

    /// Why sessions may be missing from what the page shows.
    pub(crate) fn notice(&self) -> Option<String> {
        held(&self.condition).notice()
    }

    /// Holds an index for the next question, unless enough of them wait: each holds pages of its own. One that is
    /// read-only may not see what others write, and is opened anew.
    fn rest(&self, index: Index) {
        let mut idle = held(&self.idle);
        if idle.len() < IDLE && !index.is_read_only() {
            idle.push(index);
        }
    }

    /// Takes in what is new, unless another thread has just done so, or has just failed.
    fn refresh(&self, index: &Index) -> Result<(), IndexError> {
        let mut looked = held(&self.looked);
        let is_fresh = looked.is_some_and(|looked| looked.elapsed() <= FRESH);
        if !is_fresh && !self.is_blocked() {
            self.catch_up(index)?;
            *looked = Some(Instant::now());
        }
        Ok(())
    }

    /// Takes in what is new.
    fn catch_up(&self, index: &Index) -> Result<(), IndexError> {
        let refreshed = self.source.catch_up(index, &mut |_, _| {})?;
        self.taken.fetch_add(refreshed.taken, Ordering::Relaxed);
        if !index.is_in_memory() {
            *held(&self.condition) = IndexCondition::Current;
        }
        Ok(())
    }

    /// Whether the store could not be written a moment ago.
    fn is_blocked(&self) -> bool {
        held(&self.blocked).is_some_and(|since| since.elapsed() < RETRY)
    }

    /// What the index looks like now; another picture means that something has changed.
    pub(crate) fn edition(&self) -> Edition {
        let files = ["index.db", "index.db-wal"].map(|name| stamp(&self.store.join(name)));
        Edition { files, taken: self.taken.load(Ordering::Relaxed) }
    }

    /// All sessions, newest first.
    pub(crate) fn listing(&self) -> Result<Arc<Listing>, WebError> {
        self.ask(|_| Ok(()))?;
        let mut last = held(&self.listing);
        let edition = self.edition();
        if let Some((_, listing)) = last.as_ref().filter(|(known, _)| *known == edition) {
            return Ok(Arc::clone(listing));
        }
        let listing = Arc::new(Listing {
            sessions: self.sessions(None, None)?,
            costs: self.costs_by_session()?,
            failures: self.ask(Index::failures)?,
        });
        *last = Some((edition, Arc::clone(&listing)));
        Ok(listing)
    }

    /// The sessions of one agent or all, newest first. One that was being recorded may have ended since.
    pub(crate) fn sessions(
        &self,
        agent: Option<&str>,
        limit: Option<usize>,
    ) -> Result<Vec<Listed>, WebError> {
        let mut sessions = self.ask(|index| index.sessions(agent, limit))?;
        for session in sessions.iter_mut().map(|one| &mut one.session) {
            let is_running = session.status == Status::Running;
            let dir = self.dir(&session.agent, session.id.as_str()).ok().filter(|_| is_running);
            if dir.is_some_and(|dir| dir.is_imported().is_ok_and(|imported| !imported))
                && let Ok(opened) = self.open(&session.agent, session.id.as_str())
            {
                session.clone_from(&opened.transcript.session);
            }
        }
        sessions.retain(|one| {
            let Session { agent, id, totals, .. } = &one.session;
            one.trouble.is_some() || !self.vault.is_empty_recording(agent, id, totals.entries)
        });
        Ok(sessions)
    }

    fn costs_by_session(&self) -> Result<HashMap<(String, String), Sum>, WebError> {
        let Accounts { charges, costs, .. } = self.accounts(Filter::default())?;
        let all: Vec<usize> = (0..charges.all.len()).collect();
        let rows = charges.rows(&costs, &all, &Group { by: By::Session, zone: &self.zone });
        let named = rows.into_iter().filter_map(|row| {
            let key = row.key?;
            let (agent, id) = key.split_once('\n')?;
            Some(((agent.to_owned(), id.to_owned()), row.sum))
        });
        Ok(named.collect())
    }

    /// What was billed, as far as a filter asks.
    pub(crate) fn accounts(&self, filter: Filter) -> Result<Accounts, WebError> {
        let charges = self.ask(|index| index.charges(&filter))?;
        let costs = charges.costs(&self.prices, Mode::Auto);
        Ok(Accounts { charges, costs, filter })
    }

    /// The folder of a kept session.
    pub(crate) fn dir(&self, agent: &str, id: &str) -> Result<SessionDir, WebError> {
        let unknown = || WebError::Unknown(format!("{agent}/{id}"));
        let agent = agent.parse().map_err(|_| unknown())?;
        let dir = self.vault.session(&agent, &id.parse().map_err(|_| unknown())?);
        if dir.exists() { Ok(dir) } else { Err(unknown()) }
    }

    /// A session as it is now; it is read once as long as it does not grow.
    pub(crate) fn open(&self, agent: &str, id: &str) -> Result<Arc<Opened>, WebError> {
        let dir = self.dir(agent, id)?;
        let size = dir.size()?;
        // One at a time: ten readers of one session must not read it ten times.
        let mut opened = held(&self.opened);
        if let Some(at) = opened.iter().position(|known| known.dir == dir && known.size == size) {
            let known = opened.remove(at);
            opened.push(Arc::clone(&known));
            return Ok(known);
        }
        opened.retain(|known| known.dir != dir);
        let transcript = dir.read()?;
        let pictures = Pictures::find(&dir.bundle()?, &transcript.entries)?;
        let text = transcript.entries.iter().map(|entry| entry.content.len()).sum();
        let lanes = Lanes::of(&transcript.entries);
        let new = Arc::new(Opened { dir, transcript, pictures, lanes, size, text });
        opened.push(Arc::clone(&new));
        while opened.len() > HELD
            || (opened.len() > 1 && opened.iter().map(|one| one.text).sum::<usize>() > HELD_BYTES)
        {
            opened.remove(0);
        }
        Ok(new)
    }
}

fn stamp(path: &Path) -> Option<(u64, SystemTime)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}

/// What a lock guards; a thread that gave up left it whole.
fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
