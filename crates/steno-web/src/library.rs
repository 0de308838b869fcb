//! Reads sessions for the pages from index and vault, and caches them until they change.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use jiff::tz::TimeZone;
use maud::Markup;
use steno_cipher::store_fs;
use steno_model::{Clock, Entry, Session, Transcript};
use steno_store::amount::{format_cost, format_dollars};
use steno_store::cost::PriceTable;
use steno_store::cost::budget::BudgetLimits;
use steno_store::cost::charge::{ChargeTable, CostMode};
use steno_store::cost::report::{ChargeSum, GroupBy, ReportGroup};
use steno_store::current_status::StatusCheck;
use steno_store::entry_filter::SelectedSessions;
use steno_store::index::{
    EntryFilter, Index, IndexCondition, IndexError, ListedSession, StoreIndex,
};
use steno_store::session_owners::{SessionOwner, SessionOwners, TeamReader};
use steno_store::transcript::ReadTranscript;
use steno_store::view::lanes::SubagentLanes;
use steno_store::view::pictures::SessionPictures;
use steno_vault::{SessionDir, Vault};

use crate::error::WebError;
use crate::options::{BudgetReader, ServerOptions};
use crate::outline::{SessionOutline, cost_text};
use crate::project_names::ProjectNames;
use crate::quality_counts::{QualityCache, QualityCounts};
use crate::section_lists::SectionCounts;
use crate::session_listing::{IndexEdition, SessionListing};
use crate::session_person::set_session_person;
use crate::status_expiry::StatusExpiry;
use crate::team_page::TeamPage;

/// How long the index counts as current after a refresh.
const REFRESH_INTERVAL: Duration = Duration::from_millis(400);

/// How long to wait before writing to a read-only store is tried again.
const WRITE_RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// How many idle connections to the index are cached.
const MAX_IDLE_INDEXES: usize = 2;

/// The most damaged sessions named in a warning.
const MAX_WARNINGS: usize = 5;

/// How many sessions are cached, and the limit of their text in bytes. The last one is cached whatever its size.
const MAX_OPEN_SESSIONS: usize = 4;
const MAX_OPEN_TEXT_BYTES: usize = 32 << 20;

/// The same on the page of a team, which many read at once.
const MAX_TEAM_SESSIONS: usize = 64;
const MAX_TEAM_TEXT_BYTES: usize = 128 << 20;

/// How many rendered lists are cached.
const MAX_RENDERED_LISTS: usize = 16;

/// The sessions of a store, as pages need them.
pub(crate) struct SessionLibrary {
    /// `$STENO_HOME`.
    pub(crate) store: PathBuf,
    /// The time zone of the times that pages show.
    pub(crate) zone: TimeZone,
    /// The current time.
    pub(crate) clock: Clock,
    /// What tokens cost.
    pub(crate) prices: PriceTable,
    /// Reads the budgets.
    budgets: Option<BudgetReader>,
    pub(crate) vault: Vault,
    source: StoreIndex,
    idle_indexes: Mutex<Vec<Index>>,
    refreshed_at: Mutex<Option<Instant>>,
    /// When writing to the store last failed.
    blocked_since: Mutex<Option<Instant>>,
    condition: Mutex<IndexCondition>,
    /// How many sessions were indexed by this process.
    indexed_sessions: AtomicUsize,
    open_sessions: Mutex<Vec<Arc<OpenedSession>>>,
    listing: Mutex<Option<(IndexEdition, Arc<SessionListing>)>>,
    /// The lists that were rendered last, with all that they depend on.
    rendered_lists: Mutex<VecDeque<(String, Markup)>>,
    quality: QualityCache,
    statuses: StatusExpiry,
    /// The team whose record this is, and who reads it; without a reader, all of it is shown.
    team: Option<TeamPage>,
    reader: Option<TeamReader>,
    visible: Mutex<Option<VisibleSessions>>,
}

/// What a reader may see, and the owners that it was found from.
struct VisibleSessions {
    owners: Arc<SessionOwners>,
    selected: Arc<SelectedSessions>,
}

/// How many entries of a session a page requests at once.
pub(crate) const CHUNK_ENTRIES: usize = 60;

/// A parsed session.
pub(crate) struct OpenedSession {
    pub(crate) dir: SessionDir,
    pub(crate) transcript: Transcript,
    pub(crate) pictures: SessionPictures,
    /// The order and depth of subagents' entries.
    pub(crate) lanes: SubagentLanes,
    /// The turns and the runs of subagents.
    pub(crate) outline: SessionOutline,
    /// The size of the session in the vault when it was parsed.
    pub(crate) size: u64,
    text_bytes: usize,
    section_counts: OnceLock<SectionCounts>,
}

impl OpenedSession {
    /// What the sections above the entries list, counted once.
    pub(crate) fn section_counts(&self) -> &SectionCounts {
        self.section_counts.get_or_init(|| SectionCounts::from_entries(&self.transcript.entries))
    }

    /// The entries and their numbers, in display order.
    pub(crate) fn entries_in_order(&self) -> impl Iterator<Item = (usize, &Entry)> {
        let entries = &self.transcript.entries;
        let numbers = (0..entries.len()).map(|place| self.lanes.number_at(place));
        numbers.map(|number| (number, &entries[number]))
    }
}

/// Charges, and the cost of each.
pub(crate) struct CostAccounts {
    pub(crate) charges: ChargeTable,
    pub(crate) costs: Vec<Option<f64>>,
    pub(crate) filter: EntryFilter,
}

impl SessionLibrary {
    /// The budgets as they are configured now, or why they cannot be read.
    pub(crate) fn read_budgets(&self) -> Result<BudgetLimits, String> {
        self.budgets.as_ref().map_or_else(|| Ok(BudgetLimits::default()), |read| read())
    }

    /// Opens the library of a store. It reads nothing yet.
    pub(crate) fn new(options: &ServerOptions, reader: Option<TeamReader>) -> Self {
        let vault = Vault::new(options.store.join("vault"));
        Self {
            source: StoreIndex::new(&options.store, &vault, options.boot.clone()),
            vault,
            store: options.store.clone(),
            zone: options.zone.clone(),
            clock: options.clock.clone(),
            prices: options.prices.clone(),
            budgets: options.budgets.clone(),
            idle_indexes: Mutex::default(),
            refreshed_at: Mutex::default(),
            blocked_since: Mutex::default(),
            condition: Mutex::default(),
            indexed_sessions: AtomicUsize::default(),
            open_sessions: Mutex::default(),
            listing: Mutex::default(),
            rendered_lists: Mutex::default(),
            quality: QualityCache::default(),
            statuses: StatusExpiry::default(),
            team: options.team.clone(),
            reader,
            visible: Mutex::default(),
        }
    }

    /// Starts a pull of the team's record if one is due.
    pub(crate) fn refresh_team(&self) {
        if let Some(team) = &self.team {
            (team.before_request)();
        }
    }

    /// Whether the record of a team is served.
    pub(crate) fn serves_team(&self) -> bool {
        self.team.is_some()
    }

    /// Whose sessions these are; `None` unless the record of a team is served.
    pub(crate) fn owners(&self) -> Option<Arc<SessionOwners>> {
        self.team.as_ref().map(|team| (team.owners)())
    }

    /// The sessions that the reader may see; `None` for all. A reader sees nothing without an owner.
    fn visible_sessions(&self) -> Option<Arc<SelectedSessions>> {
        let reader = self.reader.as_ref()?;
        let owners = self.owners().unwrap_or_default();
        let mut visible = lock_unpoisoned(&self.visible);
        if let Some(known) = visible.as_ref().filter(|known| Arc::ptr_eq(&known.owners, &owners)) {
            return Some(Arc::clone(&known.selected));
        }
        let selected = Arc::new(owners.select(|owner| reader.may_see(owner)));
        *visible = Some(VisibleSessions { owners, selected: Arc::clone(&selected) });
        Some(selected)
    }

    /// The sessions that the reader may see, of one person or of all; `None` for all sessions.
    pub(crate) fn select_sessions(&self, person: Option<&str>) -> Option<Arc<SelectedSessions>> {
        let (Some(person), Some(owners)) = (person, self.owners()) else {
            return self.visible_sessions();
        };
        let may_see =
            |owner: &SessionOwner| self.reader.as_ref().is_none_or(|reader| reader.may_see(owner));
        Some(Arc::new(owners.select(|owner| owner.person == person && may_see(owner))))
    }

    /// Whether the reader may see a session.
    pub(crate) fn may_see(&self, agent: &str, id: &str) -> bool {
        self.visible_sessions().is_none_or(|visible| visible.contains(agent, id))
    }

    /// Notes the owner of a session on the page of a team.
    fn note_owner(&self, owners: Option<&SessionOwners>, session: &mut Session) {
        if let Some(owners) = owners {
            let person = owners.person_of(&session.agent, session.id.as_str());
            set_session_person(session, person);
        }
    }

    /// Queries the index after a refresh. If the store is read-only, the index is used as it is.
    pub(crate) fn query_index<T>(
        &self,
        query: impl Fn(&Index) -> Result<T, IndexError>,
    ) -> Result<T, WebError> {
        let idle = lock_unpoisoned(&self.idle_indexes).pop().filter(Index::is_current_file);
        if let Some(index) = idle
            && let Ok(value) = self.refresh_index(&index).and_then(|()| query(&index))
        {
            self.return_index(index);
            return Ok(value);
        }
        // A read-only store is not opened for writing, nor compared with the vault, at every request.
        if self.is_blocked()
            && let Ok(value) = Index::open_read_only(&self.store).and_then(|index| query(&index))
        {
            return Ok(value);
        }
        let answer = self.source.query(&mut |index| self.catch_up_index(index), &query)?;
        *lock_unpoisoned(&self.condition) = answer.condition;
        *lock_unpoisoned(&self.blocked_since) = answer.index.is_read_only().then(Instant::now);
        self.return_index(answer.index);
        Ok(answer.value)
    }

    /// Why sessions may be missing from the pages.
    pub(crate) fn index_notice(&self) -> Option<String> {
        lock_unpoisoned(&self.condition).notice()
    }

    /// Caches a connection for the next query, up to a limit: each has a page cache of its own. A read-only one is
    /// dropped, because it may not see what others write.
    fn return_index(&self, index: Index) {
        let mut idle = lock_unpoisoned(&self.idle_indexes);
        if idle.len() < MAX_IDLE_INDEXES && !index.is_read_only() {
            idle.push(index);
        }
    }

    /// Indexes new sessions, unless another thread has just done so or has just failed.
    fn refresh_index(&self, index: &Index) -> Result<(), IndexError> {
        let mut refreshed_at = lock_unpoisoned(&self.refreshed_at);
        let is_fresh =
            refreshed_at.is_some_and(|refreshed_at| refreshed_at.elapsed() <= REFRESH_INTERVAL);
        if !is_fresh && !self.is_blocked() {
            self.catch_up_index(index)?;
            *refreshed_at = Some(Instant::now());
        }
        Ok(())
    }

    /// Indexes new sessions.
    fn catch_up_index(&self, index: &Index) -> Result<(), IndexError> {
        let refreshed = self.source.catch_up(index, &mut |_, _| {})?;
        self.indexed_sessions.fetch_add(refreshed.indexed, Ordering::Relaxed);
        if !index.is_in_memory() {
            *lock_unpoisoned(&self.condition) = IndexCondition::Current;
        }
        Ok(())
    }

    /// Whether writing to the store failed recently.
    fn is_blocked(&self) -> bool {
        lock_unpoisoned(&self.blocked_since)
            .is_some_and(|since| since.elapsed() < WRITE_RETRY_INTERVAL)
    }

    /// The current state of the index.
    pub(crate) fn index_edition(&self) -> IndexEdition {
        let files = ["index.db", "index.db-wal"].map(|name| file_stamp(&self.store.join(name)));
        let indexed_sessions = self.indexed_sessions.load(Ordering::Relaxed);
        let status_changes = self.statuses.count_changes(self.clock.now().instant());
        IndexEdition { files, indexed_sessions, status_changes }
    }

    /// Warnings about damaged sessions. Every answer about all sessions lacks a part of them.
    pub(crate) fn damage_warnings(&self) -> Result<Vec<String>, WebError> {
        let limit = if self.reader.is_some() { usize::MAX >> 1 } else { MAX_WARNINGS + 1 };
        let mut damaged = self.query_index(|index| index.damaged_sessions(limit))?;
        damaged.retain(|one| self.may_see(&one.agent, &one.id));
        let has_more = damaged.len() > MAX_WARNINGS;
        damaged.truncate(MAX_WARNINGS);
        let warnings = damaged.iter().map(|one| format!("{}: {}", one.id, one.reason));
        let more = has_more.then(|| "and more; run `steno verify` to list all".to_owned());
        Ok(warnings.chain(more).collect())
    }

    /// All sessions, newest first.
    pub(crate) fn session_listing(&self) -> Result<Arc<SessionListing>, WebError> {
        self.query_index(|_| Ok(()))?;
        let mut last = lock_unpoisoned(&self.listing);
        let edition = self.index_edition();
        if let Some((_, listing)) = last.as_ref().filter(|(known, _)| *known == edition) {
            return Ok(Arc::clone(listing));
        }
        let sessions = self.list_sessions(None, None)?;
        let count = |one: &ListedSession| {
            let Session { agent, id, totals, .. } = &one.session;
            ((agent.clone(), id.to_string()), totals.entries)
        };
        let listing = Arc::new(SessionListing {
            edition,
            entries: sessions.iter().map(count).collect(),
            projects: ProjectNames::new(
                sessions.iter().filter_map(|one| one.session.project.as_deref()),
            ),
            sessions,
            costs: self.costs_by_session()?,
            failures: self.query_index(Index::count_failures)?,
            shared: self.query_index(Index::find_shared_entries)?,
        });
        *last = Some((edition, Arc::clone(&listing)));
        Ok(listing)
    }

    /// The list as it was made last, whatever its age; all sessions if there is none yet. A page that is updated while
    /// its session grows would make the list each time.
    pub(crate) fn last_listing(&self) -> Result<Arc<SessionListing>, WebError> {
        let last = lock_unpoisoned(&self.listing).as_ref().map(|(_, last)| Arc::clone(last));
        last.map_or_else(|| self.session_listing(), Ok)
    }

    /// Renders a list unless it was rendered lately. `key` contains all that the list depends on.
    pub(crate) fn cache_rendered_list(
        &self,
        key: String,
        render: impl FnOnce() -> Result<Markup, WebError>,
    ) -> Result<Markup, WebError> {
        let known = |key: &str| {
            let lists = lock_unpoisoned(&self.rendered_lists);
            lists.iter().find(|(known, _)| known == key).map(|(_, markup)| markup.clone())
        };
        if let Some(markup) = known(&key) {
            return Ok(markup);
        }
        let markup = render()?;
        let mut lists = lock_unpoisoned(&self.rendered_lists);
        lists.push_back((key, markup.clone()));
        if lists.len() > MAX_RENDERED_LISTS {
            lists.pop_front();
        }
        Ok(markup)
    }

    /// The sessions of one agent or of all, newest first. A session that the index has as running is read again,
    /// because it may have ended.
    pub(crate) fn list_sessions(
        &self,
        agent: Option<&str>,
        limit: Option<usize>,
    ) -> Result<Vec<ListedSession>, WebError> {
        // Sessions that the reader may not see do not count.
        let count = if self.reader.is_some() { None } else { limit };
        let mut sessions = self.query_index(|index| index.list_sessions(agent, count))?;
        sessions.retain(|one| self.may_see(&one.session.agent, one.session.id.as_str()));
        sessions.truncate(limit.unwrap_or(usize::MAX));
        let owners = self.owners();
        let check = self.status_check();
        for session in sessions.iter_mut().map(|one| &mut one.session) {
            if check.may_have_ended(session)
                && let Ok(opened) = self.open_session(&session.agent, session.id.as_str())
            {
                session.clone_from(&opened.transcript.session);
            }
            session.status = check.status_of(session);
            self.note_owner(owners.as_deref(), session);
        }
        self.statuses.note_expiry(sessions.iter().map(|one| &one.session));
        sessions.retain(|one| {
            let Session { agent, id, totals, .. } = &one.session;
            one.problem.is_some() || !self.vault.is_empty_recording(agent, id, totals.entries)
        });
        Ok(sessions)
    }

    /// Checks which sessions are running now.
    pub(crate) fn status_check(&self) -> StatusCheck<'_> {
        StatusCheck { vault: &self.vault, now: self.clock.now().instant() }
    }

    /// The cost of a session's own messages as text; `None` if it has neither tokens nor a recorded cost. If the list is
    /// cached and counts some of the messages in other sessions, which have them too, says what is counted here.
    pub(crate) fn session_cost(&self, opened: &OpenedSession) -> Option<String> {
        let session = &opened.transcript.session;
        let key = (session.agent.clone(), session.id.to_string());
        let listing =
            lock_unpoisoned(&self.listing).as_ref().map(|(_, listing)| Arc::clone(listing));
        let listed = listing
            .as_ref()
            .and_then(|listing| listing.costs.get(&key).zip(listing.entries.get(&key)));
        let sum = listed.filter(|(_, entries)| **entries == session.totals.entries);
        let reported = session.totals.cost.map(format_dollars);
        let own = reported.or_else(|| cost_text(&opened.outline.totals));
        match (own, sum.map(|(sum, _)| format_cost(sum))) {
            (Some(own), Some(counted)) if own != counted => {
                Some(format!("{own} ({counted} counted here)"))
            }
            (own, counted) => own.or(counted),
        }
    }

    fn costs_by_session(&self) -> Result<HashMap<(String, String), ChargeSum>, WebError> {
        let CostAccounts { charges, costs, .. } = self.cost_accounts(EntryFilter::default())?;
        let all: Vec<usize> = (0..charges.charges.len()).collect();
        let rows = charges.report_rows(
            &costs,
            &all,
            &ReportGroup { by: GroupBy::Session, zone: &self.zone },
        );
        let named = rows.into_iter().filter_map(|row| {
            let key = row.key?;
            let (agent, id) = key.split_once('\n')?;
            Some(((agent.to_owned(), id.to_owned()), row.sum))
        });
        Ok(named.collect())
    }

    /// The charges that match a filter, with their costs.
    pub(crate) fn cost_accounts(&self, filter: EntryFilter) -> Result<CostAccounts, WebError> {
        let owners = self.owners().unwrap_or_default();
        let mut charges = self.query_index(|index| index.load_team_charges(&filter, &owners))?;
        if let Some(visible) = self.visible_sessions() {
            charges.retain_sessions(&visible);
        }
        let costs = charges.charge_costs(&self.prices, CostMode::Auto);
        Ok(CostAccounts { charges, costs, filter })
    }

    /// The signs of trouble in a session, counted; `None` if it must be read first and `may_read` is false.
    pub(crate) fn session_quality(
        &self,
        session: &Session,
        may_read: bool,
    ) -> Result<Option<QualityCounts>, WebError> {
        let dir = self.session_dir(&session.agent, session.id.as_str())?;
        let size = dir.stored_size()?;
        let key = (session.agent.clone(), session.id.to_string());
        let known = self.quality.find(&key, size);
        if known.is_some() || !may_read {
            return Ok(known);
        }
        let counts = QualityCounts::from_entries(&dir.read_transcript()?.entries);
        self.quality.insert(key, size, counts.clone());
        Ok(Some(counts))
    }

    /// The folder of a session.
    pub(crate) fn session_dir(&self, agent: &str, id: &str) -> Result<SessionDir, WebError> {
        let unknown = || WebError::NotFound(format!("{agent}/{id}"));
        let agent = agent.parse().map_err(|_| unknown())?;
        let dir = self.vault.session_dir(&agent, &id.parse().map_err(|_| unknown())?);
        if dir.exists() && self.may_see(dir.agent(), dir.id().as_str()) {
            Ok(dir)
        } else {
            Err(unknown())
        }
    }

    /// A session in its current state. It is parsed again only when it has grown.
    pub(crate) fn open_session(
        &self,
        agent: &str,
        id: &str,
    ) -> Result<Arc<OpenedSession>, WebError> {
        let dir = self.session_dir(agent, id)?;
        let size = dir.stored_size()?;
        // The lock is held while parsing, so that several requests do not parse the same session.
        let mut opened = lock_unpoisoned(&self.open_sessions);
        if let Some(at) = opened.iter().position(|known| known.dir == dir && known.size == size) {
            let known = opened.remove(at);
            opened.push(Arc::clone(&known));
            return Ok(known);
        }
        opened.retain(|known| known.dir != dir);
        let mut transcript = dir.read_transcript()?;
        self.note_owner(self.owners().as_deref(), &mut transcript.session);
        let pictures = SessionPictures::find_in_bundle(&dir.kept_bundle()?, &transcript.entries)?;
        let text_bytes = transcript.entries.iter().map(|entry| entry.content.len()).sum();
        let lanes = SubagentLanes::from_entries(&transcript.entries);
        let outline = SessionOutline::new(&transcript.entries, &lanes, &self.prices);
        let section_counts = OnceLock::new();
        let new = Arc::new(OpenedSession {
            dir,
            transcript,
            pictures,
            lanes,
            outline,
            size,
            text_bytes,
            section_counts,
        });
        opened.push(Arc::clone(&new));
        let (max_sessions, max_bytes) = match self.serves_team() {
            true => (MAX_TEAM_SESSIONS, MAX_TEAM_TEXT_BYTES),
            false => (MAX_OPEN_SESSIONS, MAX_OPEN_TEXT_BYTES),
        };
        while opened.len() > max_sessions
            || (opened.len() > 1
                && opened.iter().map(|one| one.text_bytes).sum::<usize>() > max_bytes)
        {
            opened.remove(0);
        }
        Ok(new)
    }
}

fn file_stamp(path: &Path) -> Option<(u64, SystemTime)> {
    let metadata = store_fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}

/// Locks a mutex. A panic of another thread leaves the value valid.
fn lock_unpoisoned<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
