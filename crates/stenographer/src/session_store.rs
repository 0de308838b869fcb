//! The store: finds sessions by id, prefix, `latest` or path.

use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use steno_model::durable::FileError;
use steno_model::{Clock, SessionId, SessionStatus, Transcript};
use steno_store::cost::PriceTable;
use steno_store::cost::file_charges::transcript_cost;
use steno_store::current_status::StatusCheck;
use steno_store::format::{self, FoundSession};
use steno_store::index::{
    Index, IndexCondition, IndexError, RebuildReason, RefreshProgress, SessionFilter,
    SessionHeading, StoreIndex,
};
use steno_store::transcript::{ReadTranscript, traffic_owner};
use steno_store::view::pictures::SessionPictures;
use steno_vault::{SessionBundle, SessionDir, Vault};

use crate::amount::format_dollars;
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::ui::{Ui, count_noun};

/// Maximum number of sessions listed in a message.
const MAX_LISTED: usize = 5;

/// Number of newest sessions searched for the latest one with entries.
const LATEST_CANDIDATES: usize = 200;

/// Message of a command that finds nothing because the store is empty.
pub(crate) const NO_SESSIONS_YET: &str =
    "no sessions yet; run `steno sync`, `steno import PATH` or `steno record`";

/// The store in `$STENO_HOME`.
#[derive(Debug)]
pub(crate) struct SessionStore {
    pub(crate) vault: Vault,
    index: StoreIndex,
    cwd: PathBuf,
    zone: TimeZone,
    /// The source of the current time.
    pub(crate) clock: Clock,
}

impl SessionStore {
    pub(crate) fn new(env: &ProcessEnvironment) -> Self {
        let vault = Vault::new(env.store.join("vault"));
        let index = StoreIndex::new(&env.store, &vault, ProcessEnvironment::boot_id());
        let (cwd, zone) = (env.cwd.clone(), env.zone.clone());
        Self { vault, index, cwd, zone, clock: env.clock.clone() }
    }

    /// Opens the index without updating it.
    pub(crate) fn index(&self) -> Result<Index, IndexError> {
        self.index.open()
    }

    /// Updates the index and queries it. A damaged index is rebuilt first. If the store is read-only, queries the
    /// index as it is and prints what may be missing.
    pub(crate) fn query<T>(
        &self,
        ui: &mut Ui,
        ask: impl Fn(&Index) -> Result<T, IndexError>,
    ) -> Result<(Index, T), CommandError> {
        let mut refresh = |index: &Index| self.update_index(ui, index).map(drop);
        let answer = self.index.query(&mut refresh, &ask).map_err(add_reindex_hint)?;
        report_condition(ui, answer.condition);
        Ok((answer.index, answer.value))
    }

    /// Like [`SessionStore::query`], for queries on all sessions: also reports incomplete and damaged sessions.
    pub(crate) fn query_all<T>(
        &self,
        ui: &mut Ui,
        ask: impl Fn(&Index) -> Result<T, IndexError>,
    ) -> Result<(Index, T), CommandError> {
        let answered = self.query(ui, ask)?;
        let mut troubled = answered.0.damaged_sessions(MAX_LISTED + 1)?;
        let has_more = troubled.len() > MAX_LISTED;
        troubled.truncate(MAX_LISTED);
        let warnings = troubled.iter().map(|one| format!("{}: {}", one.id, one.reason));
        let more = has_more.then(|| "and more; run `steno verify` to list all".to_owned());
        ui.report_incomplete(warnings.chain(more));
        Ok(answered)
    }

    /// Like [`SessionStore::query`], without printing: returns the result and the condition of the index. `pass` is
    /// called for each indexed session.
    pub(crate) fn query_quietly<T>(
        &self,
        pass: RefreshProgress<'_>,
        ask: impl Fn(&Index) -> Result<T, IndexError>,
    ) -> Result<(T, IndexCondition), CommandError> {
        let mut refresh = |index: &Index| self.index.catch_up(index, &mut *pass).map(drop);
        let answer = self.index.query(&mut refresh, &ask).map_err(add_reindex_hint)?;
        Ok((answer.value, answer.condition))
    }

    /// Indexes new sessions. Returns their number.
    pub(crate) fn update_index(&self, ui: &mut Ui, index: &Index) -> Result<usize, IndexError> {
        match index.rebuild_reason() {
            Some(RebuildReason::Damaged) => ui.print_note("the index is damaged; rebuilding it"),
            Some(RebuildReason::Older) => {
                ui.print_note("the index has an older version; rebuilding it")
            }
            None => {}
        }
        let mut progress = ui.start_progress("indexing");
        let refreshed =
            self.index.catch_up(index, &mut |total, dir| progress.step_of(total, dir.id()));
        drop(progress);
        let refreshed = refreshed?;
        if refreshed.pending > 0 {
            let sessions = count_noun(refreshed.pending as u64, "session");
            ui.status(format_args!("{sessions} being written may not be found yet"));
        }
        Ok(refreshed.indexed)
    }

    /// Reads the transcript of a session by id, unique prefix, `latest`, or path.
    pub(crate) fn transcript(&self, name: &str) -> Result<Transcript, CommandError> {
        if let Some(session) = self.try_find_session(name)? {
            return self.read_session(&session);
        }
        match SessionPath::from_name(&self.cwd, name) {
            Some(place) => place.read(),
            None => Err(self.unknown_session_error("no such session or file", name)),
        }
    }

    /// Like [`SessionStore::transcript`], with the session's pictures.
    pub(crate) fn transcript_with_pictures(
        &self,
        name: &str,
    ) -> Result<PicturedTranscript, CommandError> {
        if let Some(session) = self.try_find_session(name)? {
            let transcript = self.read_session(&session)?;
            return Ok(PicturedTranscript::new(transcript, &session.kept_bundle()?)?);
        }
        match SessionPath::from_name(&self.cwd, name) {
            Some(place) => place.read_pictured(),
            None => Err(self.unknown_session_error("no such session or file", name)),
        }
    }

    /// Reads a session with its current status.
    pub(crate) fn read_session(&self, session: &SessionDir) -> Result<Transcript, CommandError> {
        let mut transcript = session.read_transcript()?;
        transcript.session.status = self.status_check().status_of(&transcript.session);
        Ok(transcript)
    }

    /// The cost of a session's own messages. If the index counts some of them in other sessions, which have them too,
    /// says so: the cost then differs from that of `steno cost`.
    pub(crate) fn session_cost(
        &self,
        ui: &mut Ui,
        transcript: &Transcript,
        prices: &PriceTable,
    ) -> Option<f64> {
        let own = transcript_cost(transcript, prices)?;
        let charges = self.index.load_session_charges(&transcript.session);
        let counted =
            charges.map_or(Some(own), |charges| charges.total_cost(prices)).unwrap_or(0.0);
        if format_dollars(counted) != format_dollars(own) {
            let [own, counted] = [own, counted].map(format_dollars);
            let id = &transcript.session.id;
            ui.status(format_args!(
                "{id} cost {own}; {counted} of it is counted here, the rest in sessions with the same messages"
            ));
        }
        Some(own)
    }

    /// Checks which sessions are running now.
    pub(crate) fn status_check(&self) -> StatusCheck<'_> {
        StatusCheck { vault: &self.vault, now: self.clock.now().instant() }
    }

    /// Finds a session by id, unique prefix, or `latest`.
    pub(crate) fn find_session(&self, name: &str) -> Result<SessionDir, CommandError> {
        let session = self.try_find_session(name)?;
        session.ok_or_else(|| self.unknown_session_error("no such session", name))
    }

    /// Returns whether a name needs a sync first: `latest`, or the beginning of an id that no session has.
    pub(crate) fn may_be_new(&self, name: &str) -> bool {
        let is_known =
            || self.vault.sessions_with_prefix(name).is_ok_and(|known| !known.is_empty());
        name == "latest" || (SessionPath::from_name(&self.cwd, name).is_none() && !is_known())
    }

    fn unknown_session_error(&self, message: &str, name: &str) -> CommandError {
        if let Some(error) = self.forgotten_session_error(name) {
            return error;
        }
        let error = CommandError::user(format!("{message}: {name}"));
        error.hint("run `steno list` to list sessions, `steno sync` to copy new ones")
    }

    /// Says when a session was forgotten; `None` if none was that has this id.
    fn forgotten_session_error(&self, name: &str) -> Option<CommandError> {
        let tombstones = self.vault.tombstones().ok()?;
        let forgotten = tombstones
            .iter()
            .filter(|one| one.is_whole_session())
            .find(|one| one.session.split_once('/').is_some_and(|(_, id)| id.starts_with(name)))?;
        let (id, at) = (&forgotten.session, forgotten.at.in_zone(&self.zone).wall().date());
        let reason = forgotten.reason.as_ref().map(|reason| format!(" ({reason})"));
        let reason = reason.unwrap_or_default();
        Some(CommandError::user(format!("this session was forgotten on {at}{reason}: {id}")))
    }

    fn try_find_session(&self, name: &str) -> Result<Option<SessionDir>, CommandError> {
        if name == "latest" {
            return self.latest_session().map(Some);
        }
        let exact = self.vault.sessions_with_id(name)?;
        let candidates =
            if exact.is_empty() { self.vault.sessions_with_prefix(name)? } else { exact };
        match candidates.as_slice() {
            [] => Ok(None),
            [session] => self.resolve_traffic_owner(session.clone()).map(Some),
            several => {
                let error = CommandError::user(format!("ambiguous session id: {name}"));
                Err(error.hint(list_candidates(several)))
            }
        }
    }

    /// Returns the session to which all exchanges of a recording were moved, else the session itself.
    fn resolve_traffic_owner(&self, session: SessionDir) -> Result<SessionDir, CommandError> {
        let Some(owner) = traffic_owner(&session)? else { return Ok(session) };
        let owners = self.vault.sessions_with_id(owner.as_str())?;
        Ok(owners.into_iter().next().unwrap_or(session))
    }

    /// Checks that the given agent has sessions.
    pub(crate) fn check_agent(&self, agent: Option<&str>) -> Result<(), CommandError> {
        let Some(agent) = agent else { return Ok(()) };
        let agents = self.vault.list_agents()?;
        if agents.iter().any(|kept| kept == agent) {
            return Ok(());
        }
        let error = CommandError::user(format!("no sessions of agent {agent}"));
        let name = agent.to_lowercase();
        let like = agents.iter().find(|kept| kept.starts_with(&name) || name.starts_with(*kept));
        Err(match agents.as_slice() {
            _ if like.is_some() => {
                error.hint(format!("did you mean {}?", like.map_or("", |like| like)))
            }
            [] => error.hint("no sessions yet; run `steno sync`"),
            agents => error.hint(format!("agents with sessions: {}", agents.join(", "))),
        })
    }

    /// Counts the sessions that `steno list` lists for a filter.
    pub(crate) fn count_sessions(
        &self,
        index: &Index,
        filter: &SessionFilter,
    ) -> Result<SessionCounts, IndexError> {
        let mut counts = SessionCounts::default();
        index.each_heading(filter, None, &mut |heading| {
            let SessionHeading { agent, id, entries, problem, .. } = heading;
            if entries > 0 {
                counts.with_entries += 1;
            } else if problem.is_none() && !self.vault.is_empty_recording(&agent, &id, entries) {
                counts.without_entries += 1;
            }
        })?;
        Ok(counts)
    }

    /// Returns the session that started last, except for recordings without entries.
    fn find_newest(&self, index: &Index) -> Result<Option<(String, SessionId)>, IndexError> {
        let latest = index.latest_session()?;
        let (mut is_empty, mut newest) = (false, None);
        index.each_heading(&SessionFilter::default(), Some(LATEST_CANDIDATES), &mut |heading| {
            let SessionHeading { agent, id, status, entries, problem: trouble, .. } = heading;
            let has_nothing = status != SessionStatus::Running
                && self.vault.is_empty_recording(&agent, &id, entries);
            let named = (agent, id);
            is_empty |= has_nothing && latest.as_ref() == Some(&named);
            if newest.is_none() && !has_nothing && (trouble.is_none() || entries > 0) {
                newest = Some(named);
            }
        })?;
        Ok(if is_empty { newest.or(latest) } else { latest })
    }

    /// Returns the session that started last.
    pub(crate) fn latest_session(&self) -> Result<SessionDir, CommandError> {
        // The condition of the index is reported only if the result may be wrong.
        let (latest, condition) =
            self.query_quietly(&mut |_, _| {}, |index| self.find_newest(index))?;
        report_condition(&mut Ui::stdio(), condition);
        let (agent, id) = latest.ok_or_else(|| {
            CommandError::user("no sessions yet")
                .hint("run `steno sync`, `steno import PATH` or `steno record`")
        })?;
        Ok(self.vault.session_dir(&agent.parse()?, &id))
    }
}

/// The sessions that `steno list` lists. Recordings without entries are not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionCounts {
    pub(crate) with_entries: u64,
    /// Imported sessions without entries.
    pub(crate) without_entries: u64,
}

/// Adds a hint to the error of a large store without an index.
fn add_reindex_hint(error: IndexError) -> CommandError {
    let is_too_large = matches!(error, IndexError::TooLarge { .. });
    let error = CommandError::user(error);
    if is_too_large {
        return error.hint("run `steno reindex` with write access to the store");
    }
    error
}

/// Prints what the index may lack, with a hint.
fn report_condition(ui: &mut Ui, condition: IndexCondition) {
    if let Some(notice) = condition.notice() {
        ui.warning(notice);
        condition.hint().into_iter().for_each(|hint| ui.print_note(format_args!("hint: {hint}")));
    }
}

/// A transcript with the pictures of its entries.
pub(crate) struct PicturedTranscript {
    pub(crate) transcript: Transcript,
    pub(crate) pictures: SessionPictures,
}

impl PicturedTranscript {
    pub(crate) fn from_session(session: &SessionDir) -> Result<Self, CommandError> {
        Ok(Self::new(session.read_transcript()?, &session.kept_bundle()?)?)
    }

    fn new(transcript: Transcript, bundle: &SessionBundle) -> Result<Self, FileError> {
        let pictures = SessionPictures::find_in_bundle(bundle, &transcript.entries)?;
        Ok(Self { transcript, pictures })
    }
}

/// Lists the first sessions, one per line.
fn list_candidates(sessions: &[SessionDir]) -> String {
    let shown = sessions.iter().take(MAX_LISTED);
    let lines = shown.map(|session| format!("\n  {} ({})", session.id(), session.agent()));
    let more = sessions.len().saturating_sub(MAX_LISTED);
    let more = (more > 0).then(|| format!("\n  and {more} more"));
    format!("one of:{}", lines.chain(more).collect::<String>())
}

/// A session outside of the store: a path, and `#KEY` for one of several in a file.
pub(crate) struct SessionPath {
    path: PathBuf,
    key: Option<String>,
}

impl SessionPath {
    /// Parses a name as an existing path.
    pub(crate) fn from_name(cwd: &Path, name: &str) -> Option<Self> {
        let path = cwd.join(name);
        if path.exists() {
            return Some(Self { path, key: None });
        }
        let (path, key) = name.rsplit_once('#')?;
        let path = cwd.join(path);
        path.exists().then(|| Self { path, key: Some(key.to_owned()) })
    }

    /// Reads the session at the path.
    pub(crate) fn read(&self) -> Result<Transcript, CommandError> {
        Ok(self.find_one()?.read_transcript()?)
    }

    /// Returns the size of the file; `None` for a folder, or if there is no file now.
    pub(crate) fn file_size(&self) -> Option<u64> {
        let metadata = std::fs::metadata(&self.path).ok()?;
        metadata.is_file().then_some(metadata.len())
    }

    /// Reads the session at the path, with its pictures.
    pub(crate) fn read_pictured(&self) -> Result<PicturedTranscript, CommandError> {
        let found = self.find_one()?;
        Ok(PicturedTranscript::new(found.read_transcript()?, &found.bundle)?)
    }

    fn find_one(&self) -> Result<FoundSession, CommandError> {
        let mut found = format::find_sessions(&self.path)?;
        if self.key.is_some() {
            found.retain(|found| found.bundle.key == self.key);
        }
        // A session at exactly this path takes precedence over those below it.
        if found.iter().filter(|found| found.bundle.root == self.path).count() == 1 {
            found.retain(|found| found.bundle.root == self.path);
        }
        match found.len() {
            0 => Err(unknown_format_error(&self.path)),
            1 => Ok(found.remove(0)),
            count => {
                let error =
                    CommandError::user(format!("{count} sessions in {}", self.path.display()));
                Err(error.hint(format!("choose one, such as {}", session_path_name(&found[0]))))
            }
        }
    }
}

/// Returns the name of a session for the command line.
fn session_path_name(found: &FoundSession) -> String {
    let root = found.bundle.root.display();
    match &found.bundle.key {
        Some(key) => format!("{root}#{key}"),
        None => root.to_string(),
    }
}

/// Returns the error for a path without a known format: empty logs, or other files.
pub(crate) fn unknown_format_error(path: &Path) -> CommandError {
    if format::holds_only_empty_logs(path) {
        let error = CommandError::user(format!("no messages in {}", path.display()));
        return error.hint("give a file or folder in which an agent has written messages");
    }
    let error = CommandError::user(format!("no known transcript format in {}", path.display()));
    error.hint("run `steno inspect PATH` on its parent folder to see what is recognized")
}
