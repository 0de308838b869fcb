//! The store: finds kept sessions by id, prefix, `latest` or path.

use std::path::{Path, PathBuf};

use steno_core::durable::FileError;
use steno_core::format::{self, Found};
use steno_core::index::{Heading, Healed, Index, IndexCondition, IndexError, IndexSource, Pass};
use steno_core::vault::{SessionDir, Vault};
use steno_core::view::pictures::Pictures;
use steno_core::{Bundle, SessionId, Status, Transcript};

use crate::error::CommandError;
use crate::scene::Scene;
use crate::ui::{Ui, count};

/// How many sessions are named where several could be meant.
const SHOWN: usize = 5;

/// Among how many of the newest sessions the latest is looked for that is no empty recording.
const NEWEST: usize = 200;

/// `$STENO_HOME`.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) vault: Vault,
    index: IndexSource,
    cwd: PathBuf,
}

impl Store {
    pub(crate) fn new(scene: &Scene) -> Self {
        let vault = Vault::new(scene.store.join("vault"));
        let index = IndexSource::new(&scene.store, &vault, Scene::boot());
        Self { vault, index, cwd: scene.cwd.clone() }
    }

    /// The index as it is.
    pub(crate) fn index(&self) -> Result<Index, IndexError> {
        self.index.open()
    }

    /// The index, with all that is kept by now, and what it answers. One that is damaged is built anew first. Where the
    /// store cannot be written, the index answers as it is; what it may lack is printed.
    pub(crate) fn ask<T>(
        &self,
        ui: &mut Ui,
        ask: impl Fn(&Index) -> Result<T, IndexError>,
    ) -> Result<(Index, T), CommandError> {
        let mut refresh = |index: &Index| self.refresh(ui, index).map(drop);
        let answer = self.index.ask(&mut refresh, &ask).map_err(with_hint)?;
        report_condition(ui, answer.condition);
        Ok((answer.index, answer.value))
    }

    /// As [`Store::ask`], for an answer about all sessions: those of which something is missing or damaged are reported.
    pub(crate) fn ask_all<T>(
        &self,
        ui: &mut Ui,
        ask: impl Fn(&Index) -> Result<T, IndexError>,
    ) -> Result<(Index, T), CommandError> {
        let answered = self.ask(ui, ask)?;
        let mut troubled = answered.0.troubled_sessions(SHOWN + 1)?;
        let has_more = troubled.len() > SHOWN;
        troubled.truncate(SHOWN);
        let warnings = troubled.iter().map(|one| format!("{}: {}", one.id, one.reason));
        let more = has_more.then(|| "and more; `steno verify` names them all".to_owned());
        ui.incomplete(warnings.chain(more));
        Ok(answered)
    }

    /// The same without printing: the answer and how complete the index was. `pass` is called for each session that is
    /// taken in.
    pub(crate) fn ask_passing<T>(
        &self,
        pass: Pass<'_>,
        ask: impl Fn(&Index) -> Result<T, IndexError>,
    ) -> Result<(T, IndexCondition), CommandError> {
        let mut refresh = |index: &Index| self.index.catch_up(index, &mut *pass).map(drop);
        let answer = self.index.ask(&mut refresh, &ask).map_err(with_hint)?;
        Ok((answer.value, answer.condition))
    }

    /// Takes into the index what was kept since it was last looked after; gives how many sessions those were.
    pub(crate) fn refresh(&self, ui: &mut Ui, index: &Index) -> Result<usize, IndexError> {
        match index.healed() {
            Some(Healed::Damaged) => ui.note("the index was damaged and is built anew"),
            Some(Healed::Older) => ui.note("the index is of an older version and is built anew"),
            None => {}
        }
        let mut progress = ui.progress("indexing");
        let refreshed = self.index.catch_up(index, &mut |_, dir| progress.step(dir.id()));
        progress.finish();
        let refreshed = refreshed?;
        if refreshed.pending > 0 {
            let sessions = count(refreshed.pending as u64, "session");
            ui.status(format_args!("{sessions} being kept right now may not be found yet"));
        }
        Ok(refreshed.taken)
    }

    /// The transcript that `name` means: a session's id, the beginning of one, `latest`, or a path.
    pub(crate) fn transcript(&self, name: &str) -> Result<Transcript, CommandError> {
        if let Some(session) = self.session(name)? {
            return Ok(session.read()?);
        }
        match Place::of(&self.cwd, name) {
            Some(place) => place.read(),
            None => Err(unknown_session("no session or file of this name", name)),
        }
    }

    /// The same with the session's pictures.
    pub(crate) fn pictured(&self, name: &str) -> Result<Pictured, CommandError> {
        if let Some(session) = self.session(name)? {
            return Pictured::of(&session);
        }
        match Place::of(&self.cwd, name) {
            Some(place) => place.read_pictured(),
            None => Err(unknown_session("no session or file of this name", name)),
        }
    }

    /// The kept session that `name` means: its id, the beginning of one, or `latest`.
    pub(crate) fn kept(&self, name: &str) -> Result<SessionDir, CommandError> {
        self.session(name)?.ok_or_else(|| unknown_session("no session of this name", name))
    }

    fn session(&self, name: &str) -> Result<Option<SessionDir>, CommandError> {
        if name == "latest" {
            return self.latest().map(Some);
        }
        let exact = self.vault.sessions_named(name)?;
        let candidates =
            if exact.is_empty() { self.vault.sessions_with_prefix(name)? } else { exact };
        match candidates.as_slice() {
            [] => Ok(None),
            [session] => self.with_traffic_of(session.clone()).map(Some),
            several => {
                let error = CommandError::user(format!("several sessions begin with: {name}"));
                Err(error.hint(choice(several)))
            }
        }
    }

    /// The session to which all exchanges of a recording were moved, or else the session itself.
    fn with_traffic_of(&self, session: SessionDir) -> Result<SessionDir, CommandError> {
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
    fn newest(&self, index: &Index) -> Result<Option<(String, SessionId)>, IndexError> {
        let latest = index.latest()?;
        let (mut is_empty, mut newest) = (false, None);
        index.each_heading(None, Some(NEWEST), &mut |heading| {
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
    pub(crate) fn latest(&self) -> Result<SessionDir, CommandError> {
        // Whoever wants it did not ask about the index, unless the answer may be wrong.
        let (latest, condition) = self.ask_passing(&mut |_, _| {}, |index| self.newest(index))?;
        report_condition(&mut Ui::stdio(), condition);
        let (agent, id) = latest.ok_or_else(|| {
            CommandError::user("nothing is kept yet")
                .hint("run `steno sync`, `steno import PATH` or `steno record`")
        })?;
        Ok(self.vault.session(&agent.parse()?, &id))
    }
}

/// Adds what to do where a store without an index cannot be read at once.
fn with_hint(error: IndexError) -> CommandError {
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
        condition.hint().into_iter().for_each(|hint| ui.note(format_args!("hint: {hint}")));
    }
}

/// A transcript with the pictures that its entries name.
pub(crate) struct Pictured {
    pub(crate) transcript: Transcript,
    pub(crate) pictures: Pictures,
}

impl Pictured {
    pub(crate) fn of(session: &SessionDir) -> Result<Self, CommandError> {
        Ok(Self::new(session.read()?, &session.bundle()?)?)
    }

    fn new(transcript: Transcript, bundle: &Bundle) -> Result<Self, FileError> {
        let pictures = Pictures::find(bundle, &transcript.entries)?;
        Ok(Self { transcript, pictures })
    }
}

/// The first of several sessions, one to a line.
fn choice(sessions: &[SessionDir]) -> String {
    let shown = sessions.iter().take(SHOWN);
    let lines = shown.map(|session| format!("\n  {} ({})", session.id(), session.agent()));
    let more = sessions.len().saturating_sub(SHOWN);
    let more = (more > 0).then(|| format!("\n  and {more} more"));
    format!("one of:{}", lines.chain(more).collect::<String>())
}

fn unknown_session(message: &str, name: &str) -> CommandError {
    let error = CommandError::user(format!("{message}: {name}"));
    error.hint("run `steno list` to see the sessions that are kept, `steno sync` to keep new ones")
}

/// Where a session stands outside of the store: a path, and `#KEY` where a file holds several.
pub(crate) struct Place {
    path: PathBuf,
    key: Option<String>,
}

impl Place {
    /// The place that `name` means, if there is a file or folder.
    pub(crate) fn of(cwd: &Path, name: &str) -> Option<Self> {
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
        Ok(self.found()?.read()?)
    }

    /// The same with its pictures.
    pub(crate) fn read_pictured(&self) -> Result<Pictured, CommandError> {
        let found = self.found()?;
        Ok(Pictured::new(found.read()?, &found.bundle)?)
    }

    fn found(&self) -> Result<Found, CommandError> {
        let mut found = format::find(&self.path)?;
        if self.key.is_some() {
            found.retain(|found| found.bundle.key == self.key);
        }
        // A session that is all of the path is meant before one somewhere below it.
        if found.iter().filter(|found| found.bundle.root == self.path).count() == 1 {
            found.retain(|found| found.bundle.root == self.path);
        }
        match found.len() {
            0 => Err(unknown_format(&self.path)),
            1 => Ok(found.remove(0)),
            count => {
                let error =
                    CommandError::user(format!("{count} sessions at {}", self.path.display()));
                Err(error.hint(format!("name one of them, such as {}", named(&found[0]))))
            }
        }
    }
}

/// How a user would name a session that was found.
fn named(found: &Found) -> String {
    let root = found.bundle.root.display();
    match &found.bundle.key {
        Some(key) => format!("{root}#{key}"),
        None => root.to_string(),
    }
}

/// The error for a path where nothing was recognised: logs that are empty, or files of another kind.
pub(crate) fn unknown_format(path: &Path) -> CommandError {
    if format::holds_only_empty_logs(path) {
        return CommandError::user(format!("no messages at: {}", path.display()));
    }
    let error =
        CommandError::user(format!("no transcript of a known format at: {}", path.display()));
    error.hint("run `steno inspect PATH` on the folder above it to see what is recognised")
}
