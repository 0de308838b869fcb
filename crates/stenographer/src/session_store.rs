//! The store: finds kept sessions by id, prefix, `latest` or path.

use std::path::{Path, PathBuf};

use steno_core::durable::FileError;
use steno_core::format::{self, Found};
use steno_core::index::{Heading, Healed, Index, IndexCondition, IndexError, IndexSource, Pass};
use steno_core::vault::{SessionDir, Vault};
use steno_core::view::pictures::Pictures;
use steno_core::{Bundle, SessionId, Status, Transcript};

use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::ui::{Ui, count_noun};

/// How many sessions are named where several could be meant.
const MAX_LISTED: usize = 5;

/// Among how many of the newest sessions the latest is looked for that is no empty recording.
const LATEST_CANDIDATES: usize = 200;

/// `$STENO_HOME`.
#[derive(Debug)]
pub(crate) struct SessionStore {
    pub(crate) vault: Vault,
    index: IndexSource,
    cwd: PathBuf,
}

impl SessionStore {
    pub(crate) fn new(env: &ProcessEnvironment) -> Self {
        let vault = Vault::new(env.store.join("vault"));
        let index = IndexSource::new(&env.store, &vault, ProcessEnvironment::boot_id());
        Self { vault, index, cwd: env.cwd.clone() }
    }

    /// The index as it is.
    pub(crate) fn index(&self) -> Result<Index, IndexError> {
        self.index.open()
    }

    /// The index, with all that is kept by now, and what it answers. One that is damaged is built anew first. Where the
    /// store cannot be written, the index answers as it is; what it may lack is printed.
    pub(crate) fn query<T>(
        &self,
        ui: &mut Ui,
        ask: impl Fn(&Index) -> Result<T, IndexError>,
    ) -> Result<(Index, T), CommandError> {
        let mut refresh = |index: &Index| self.update_index(ui, index).map(drop);
        let answer = self.index.ask(&mut refresh, &ask).map_err(add_reindex_hint)?;
        report_condition(ui, answer.condition);
        Ok((answer.index, answer.value))
    }

    /// As [`Store::ask`], for an answer about all sessions: those of which something is missing or damaged are reported.
    pub(crate) fn query_all<T>(
        &self,
        ui: &mut Ui,
        ask: impl Fn(&Index) -> Result<T, IndexError>,
    ) -> Result<(Index, T), CommandError> {
        let answered = self.query(ui, ask)?;
        let mut troubled = answered.0.troubled_sessions(MAX_LISTED + 1)?;
        let has_more = troubled.len() > MAX_LISTED;
        troubled.truncate(MAX_LISTED);
        let warnings = troubled.iter().map(|one| format!("{}: {}", one.id, one.reason));
        let more = has_more.then(|| "and more; `steno verify` names them all".to_owned());
        ui.report_incomplete(warnings.chain(more));
        Ok(answered)
    }

    /// The same without printing: the answer and how complete the index was. `pass` is called for each session that is
    /// taken in.
    pub(crate) fn query_quietly<T>(
        &self,
        pass: Pass<'_>,
        ask: impl Fn(&Index) -> Result<T, IndexError>,
    ) -> Result<(T, IndexCondition), CommandError> {
        let mut refresh = |index: &Index| self.index.catch_up(index, &mut *pass).map(drop);
        let answer = self.index.ask(&mut refresh, &ask).map_err(add_reindex_hint)?;
        Ok((answer.value, answer.condition))
    }

    /// Takes into the index what was kept since it was last looked after; gives how many sessions those were.
    pub(crate) fn update_index(&self, ui: &mut Ui, index: &Index) -> Result<usize, IndexError> {
        match index.healed() {
            Some(Healed::Damaged) => ui.print_note("the index was damaged and is built anew"),
            Some(Healed::Older) => {
                ui.print_note("the index is of an older version and is built anew")
            }
            None => {}
        }
        let mut progress = ui.start_progress("indexing");
        let refreshed = self.index.catch_up(index, &mut |_, dir| progress.step(dir.id()));
        progress.finish();
        let refreshed = refreshed?;
        if refreshed.pending > 0 {
            let sessions = count_noun(refreshed.pending as u64, "session");
            ui.status(format_args!("{sessions} being kept right now may not be found yet"));
        }
        Ok(refreshed.taken)
    }

    /// The transcript that `name` means: a session's id, the beginning of one, `latest`, or a path.
    pub(crate) fn transcript(&self, name: &str) -> Result<Transcript, CommandError> {
        if let Some(session) = self.try_find_session(name)? {
            return Ok(session.read()?);
        }
        match SessionPath::from_name(&self.cwd, name) {
            Some(place) => place.read(),
            None => Err(unknown_session_error("no session or file of this name", name)),
        }
    }

    /// The same with the session's pictures.
    pub(crate) fn transcript_with_pictures(
        &self,
        name: &str,
    ) -> Result<PicturedTranscript, CommandError> {
        if let Some(session) = self.try_find_session(name)? {
            return PicturedTranscript::from_session(&session);
        }
        match SessionPath::from_name(&self.cwd, name) {
            Some(place) => place.read_pictured(),
            None => Err(unknown_session_error("no session or file of this name", name)),
        }
    }

    /// The kept session that `name` means: its id, the beginning of one, or `latest`.
    pub(crate) fn find_session(&self, name: &str) -> Result<SessionDir, CommandError> {
        self.try_find_session(name)?
            .ok_or_else(|| unknown_session_error("no session of this name", name))
    }

    fn try_find_session(&self, name: &str) -> Result<Option<SessionDir>, CommandError> {
        if name == "latest" {
            return self.latest_session().map(Some);
        }
        let exact = self.vault.sessions_named(name)?;
        let candidates =
            if exact.is_empty() { self.vault.sessions_with_prefix(name)? } else { exact };
        match candidates.as_slice() {
            [] => Ok(None),
            [session] => self.resolve_traffic_owner(session.clone()).map(Some),
            several => {
                let error = CommandError::user(format!("several sessions begin with: {name}"));
                Err(error.hint(list_candidates(several)))
            }
        }
    }

    /// The session to which all exchanges of a recording were moved, or else the session itself.
    fn resolve_traffic_owner(&self, session: SessionDir) -> Result<SessionDir, CommandError> {
        let Some(owner) = session.owner_of_traffic()? else { return Ok(session) };
        let owners = self.vault.sessions_named(owner.as_str())?;
        Ok(owners.into_iter().next().unwrap_or(session))
    }

    /// Makes sure that sessions of an agent are kept, if one is named.
    pub(crate) fn check_agent(&self, agent: Option<&str>) -> Result<(), CommandError> {
        let Some(agent) = agent else { return Ok(()) };
        let agents = self.vault.agents()?;
        if agents.iter().any(|kept| kept == agent) {
            return Ok(());
        }
        let error = CommandError::user(format!("no session of this agent is kept: {agent}"));
        Err(match agents.as_slice() {
            [] => error.hint("nothing is kept yet; run `steno sync`"),
            agents => error.hint(format!("there are sessions of: {}", agents.join(", "))),
        })
    }

    /// The session that began last, but for recordings that got nothing.
    fn find_newest(&self, index: &Index) -> Result<Option<(String, SessionId)>, IndexError> {
        let latest = index.latest()?;
        let (mut is_empty, mut newest) = (false, None);
        index.each_heading(None, Some(LATEST_CANDIDATES), &mut |heading| {
            let Heading { agent, id, status, entries, trouble, .. } = heading;
            let has_nothing =
                status != Status::Running && self.vault.is_empty_recording(&agent, &id, entries);
            let named = (agent, id);
            is_empty |= has_nothing && latest.as_ref() == Some(&named);
            if newest.is_none() && !has_nothing && trouble.is_none() {
                newest = Some(named);
            }
        })?;
        Ok(if is_empty { newest.or(latest) } else { latest })
    }

    /// The session that began last.
    pub(crate) fn latest_session(&self) -> Result<SessionDir, CommandError> {
        // Whoever wants it did not ask about the index, unless the answer may be wrong.
        let (latest, condition) =
            self.query_quietly(&mut |_, _| {}, |index| self.find_newest(index))?;
        report_condition(&mut Ui::stdio(), condition);
        let (agent, id) = latest.ok_or_else(|| {
            CommandError::user("nothing is kept yet")
                .hint("run `steno sync`, `steno import PATH` or `steno record`")
        })?;
        Ok(self.vault.session(&agent.parse()?, &id))
    }
}

/// Adds what to do where a store without an index cannot be read at once.
fn add_reindex_hint(error: IndexError) -> CommandError {
    let is_too_large = matches!(error, IndexError::TooLarge { .. });
    let error = CommandError::user(error);
    if is_too_large {
        return error.hint("run `steno reindex` where the store can be written");
    }
    error
}

/// Prints what the index may lack, and what to do about it.
fn report_condition(ui: &mut Ui, condition: IndexCondition) {
    if let Some(notice) = condition.notice() {
        ui.warning(notice);
        condition.hint().into_iter().for_each(|hint| ui.print_note(format_args!("hint: {hint}")));
    }
}

/// A transcript with the pictures that its entries name.
pub(crate) struct PicturedTranscript {
    pub(crate) transcript: Transcript,
    pub(crate) pictures: Pictures,
}

impl PicturedTranscript {
    pub(crate) fn from_session(session: &SessionDir) -> Result<Self, CommandError> {
        Ok(Self::new(session.read()?, &session.bundle()?)?)
    }

    fn new(transcript: Transcript, bundle: &Bundle) -> Result<Self, FileError> {
        let pictures = Pictures::find(bundle, &transcript.entries)?;
        Ok(Self { transcript, pictures })
    }
}

/// The first of several sessions, one to a line.
fn list_candidates(sessions: &[SessionDir]) -> String {
    let shown = sessions.iter().take(MAX_LISTED);
    let lines = shown.map(|session| format!("\n  {} ({})", session.id(), session.agent()));
    let more = sessions.len().saturating_sub(MAX_LISTED);
    let more = (more > 0).then(|| format!("\n  and {more} more"));
    format!("one of:{}", lines.chain(more).collect::<String>())
}

fn unknown_session_error(message: &str, name: &str) -> CommandError {
    let error = CommandError::user(format!("{message}: {name}"));
    error.hint("run `steno list` to see the sessions that are kept, `steno sync` to keep new ones")
}

/// Where a session stands outside of the store: a path, and `#KEY` where a file holds several.
pub(crate) struct SessionPath {
    path: PathBuf,
    key: Option<String>,
}

impl SessionPath {
    /// The place that `name` means, if there is a file or folder.
    pub(crate) fn from_name(cwd: &Path, name: &str) -> Option<Self> {
        let path = cwd.join(name);
        if path.exists() {
            return Some(Self { path, key: None });
        }
        let (path, key) = name.rsplit_once('#')?;
        let path = cwd.join(path);
        path.exists().then(|| Self { path, key: Some(key.to_owned()) })
    }

    /// Reads the one session that is there.
    pub(crate) fn read(&self) -> Result<Transcript, CommandError> {
        Ok(self.find_one()?.read()?)
    }

    /// The same with its pictures.
    pub(crate) fn read_pictured(&self) -> Result<PicturedTranscript, CommandError> {
        let found = self.find_one()?;
        Ok(PicturedTranscript::new(found.read()?, &found.bundle)?)
    }

    fn find_one(&self) -> Result<Found, CommandError> {
        let mut found = format::find(&self.path)?;
        if self.key.is_some() {
            found.retain(|found| found.bundle.key == self.key);
        }
        // A session that is all of the path is meant before one somewhere below it.
        if found.iter().filter(|found| found.bundle.root == self.path).count() == 1 {
            found.retain(|found| found.bundle.root == self.path);
        }
        match found.len() {
            0 => Err(unknown_format_error(&self.path)),
            1 => Ok(found.remove(0)),
            count => {
                let error =
                    CommandError::user(format!("{count} sessions at {}", self.path.display()));
                Err(error
                    .hint(format!("name one of them, such as {}", session_path_name(&found[0]))))
            }
        }
    }
}

/// How a user would name a session that was found.
fn session_path_name(found: &Found) -> String {
    let root = found.bundle.root.display();
    match &found.bundle.key {
        Some(key) => format!("{root}#{key}"),
        None => root.to_string(),
    }
}

/// The error for a path where nothing was recognised: logs that are empty, or files of another kind.
pub(crate) fn unknown_format_error(path: &Path) -> CommandError {
    if format::holds_only_empty_logs(path) {
        return CommandError::user(format!("no messages at: {}", path.display()));
    }
    let error =
        CommandError::user(format!("no transcript of a known format at: {}", path.display()));
    error.hint("run `steno inspect PATH` on the folder above it to see what is recognised")
}
