//! `steno list`: lists sessions or threads.

use std::path::PathBuf;

use jiff::tz::TimeZone;
use steno_model::{Session, SessionId, SessionStatus, Timestamp};
use steno_seeds::thread;
use steno_store::index::{Index, IndexError, ListedSession, SessionHeading};
use steno_store::transcript::ReadTranscript;
use steno_store::view::json_rows::SessionRow;

use super::thread::list::ThreadFilter;
use crate::automatic_sync::AutomaticSyncFlag;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::{ProjectThreads, ThreadFlags, word_parser};
use crate::session_store::SessionStore;
use crate::text_table::TextTable;
use crate::ui::{Ui, count_noun};

/// List sessions, or the threads of a project, newest first.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only sessions of this agent.
    #[arg(long, value_name = "NAME", conflicts_with = "threads")]
    agent: Option<String>,
    /// Print at most N.
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
    /// Include recordings without entries, such as a connection without any request.
    #[arg(long, conflicts_with = "threads")]
    empty: bool,
    /// List the threads of a project.
    #[arg(long)]
    threads: bool,
    /// Only threads with this status.
    #[arg(
        long,
        value_name = "STATUS",
        requires = "threads",
        value_parser = word_parser::<thread::ThreadStatus>(thread::ThreadStatus::WORDS)
    )]
    status: Option<thread::ThreadStatus>,
    /// Project of the threads [default: this folder, or the nearest above that has threads].
    #[arg(long, value_name = "DIR", requires = "threads")]
    project: Option<PathBuf>,
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    sync: AutomaticSyncFlag,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    if args.threads {
        let flags = ThreadFlags { project: args.project.clone(), json: args.json };
        let filter = ThreadFilter { status: args.status, limit: args.limit, flags };
        return super::thread::list::run(ui, env, &filter);
    }
    args.sync.sync_if_due(ui, env);
    ProjectThreads::finish_killed_runs_near(ui, env);
    let store = SessionStore::new(env);
    store.check_agent(args.agent.as_deref())?;
    if args.json { print_json(ui, &store, args) } else { print_list(ui, env, &store, args) }
}

fn print_json(ui: &mut Ui, store: &SessionStore, args: &Args) -> Result<CommandExit, CommandError> {
    let ask = |index: &Index| {
        list_enough(args.limit, |limit| {
            let mut listing = JsonListing { with_empty: args.empty, ..JsonListing::default() };
            let add = &mut |listed| listing.add(store, listed);
            index.each_session(args.agent.as_deref(), limit, add)?;
            let hidden = listing.hidden;
            Ok((listing, hidden))
        })
    };
    let listing = store.query(ui, ask)?.1;
    listing.write_error.map_or(Ok(()), Err)?;
    ui.out().write_all(&listing.lines)?;
    let mut exit = CommandExit::Done;
    for (id, reason) in &listing.unreadable {
        exit = report_unreadable(ui, id, reason);
    }
    Ok(exit)
}

/// Sessions as JSON Lines. They are printed only if the index returned all of them without an error.
#[derive(Default)]
struct JsonListing {
    /// Whether recordings without entries are listed, and how many were hidden.
    with_empty: bool,
    hidden: usize,
    lines: Vec<u8>,
    unreadable: Vec<(SessionId, String)>,
    write_error: Option<serde_json::Error>,
}

impl JsonListing {
    fn add(
        &mut self,
        store: &SessionStore,
        ListedSession { session, problem: trouble }: ListedSession,
    ) {
        let is_unreadable = session.totals.entries == 0;
        if let Some(reason) = trouble {
            self.unreadable.push((session.id.clone(), reason));
            if is_unreadable {
                return;
            }
        }
        let session = refresh_running_session(store, session);
        let Session { agent, id, totals, .. } = &session;
        if !self.with_empty && store.vault.is_empty_recording(agent, id, totals.entries) {
            self.hidden += 1;
            return;
        }
        match serde_json::to_writer(&mut self.lines, &SessionRow::from_session(&session)) {
            Ok(()) => self.lines.push(b'\n'),
            Err(error) => self.write_error = Some(error),
        }
    }
}

/// Lists up to `wanted` sessions although some are hidden: repeats with a larger limit until enough are left. `list`
/// returns a listing and its number of hidden sessions.
fn list_enough<T>(
    wanted: Option<usize>,
    mut list: impl FnMut(Option<usize>) -> Result<(T, usize), IndexError>,
) -> Result<T, IndexError> {
    let mut known_hidden = 0;
    loop {
        let (listing, hidden) = list(wanted.map(|wanted| wanted.saturating_add(known_hidden)))?;
        if wanted.is_none() || hidden <= known_hidden {
            return Ok(listing);
        }
        known_hidden = hidden;
    }
}

fn print_list(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    store: &SessionStore,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let (agent, is_terminal) = (args.agent.as_deref(), ui.is_terminal());
    let ask = |index: &Index| {
        // A terminal gets short ids, a pipe whole ids.
        let shown = match args.limit {
            _ if !is_terminal => usize::MAX,
            Some(limit) => distinct_length_among_newest(index, agent, limit)?,
            None => distinct_length(index.find_by_prefix("")?),
        };
        list_enough(args.limit, |limit| {
            let mut listing = SessionTable::new(env, store, shown);
            listing.with_empty = args.empty;
            index.each_heading(agent, limit, &mut |heading| listing.add(heading))?;
            let hidden = listing.hidden;
            Ok((listing, hidden))
        })
    };
    let listing = store.query(ui, ask)?.1;
    let mut exit = CommandExit::Done;
    for (id, reason) in &listing.unreadable {
        exit = report_unreadable(ui, id, reason);
    }
    if listing.hidden > 0 {
        let hidden = count_noun(listing.hidden as u64, "recording");
        ui.status(format_args!("{hidden} without entries not listed; use --empty to see them"));
    }
    if listing.is_empty && listing.hidden == 0 {
        ui.status("no sessions yet; run `steno sync`, `steno import PATH` or `steno record`");
    } else if !listing.is_empty {
        let text = listing.table.render(ui.width());
        ui.transcript_text(&text)?;
    }
    Ok(exit)
}

/// The table of sessions.
struct SessionTable<'a> {
    store: &'a SessionStore,
    zone: &'a TimeZone,
    this_year: i16,
    /// Characters shown of each id.
    id_length: usize,
    table: TextTable<6>,
    is_empty: bool,
    /// Whether recordings without entries are listed, and how many were hidden.
    with_empty: bool,
    hidden: usize,
    unreadable: Vec<(SessionId, String)>,
}

impl<'a> SessionTable<'a> {
    fn new(env: &'a ProcessEnvironment, store: &'a SessionStore, id_length: usize) -> Self {
        let this_year = env.clock.now().in_zone(&env.zone).wall().year();
        let table = TextTable::new(["STARTED", "AGENT", "STATUS", "ENTRIES", "ID", "TITLE"]);
        let (zone, unreadable) = (&env.zone, Vec::new());
        let (is_empty, with_empty, hidden) = (true, false, 0);
        Self { store, zone, this_year, id_length, table, is_empty, with_empty, hidden, unreadable }
    }

    fn add(&mut self, mut heading: SessionHeading) {
        if let Some(reason) = heading.problem.take() {
            self.unreadable.push((heading.id.clone(), reason));
            if heading.entries == 0 {
                return;
            }
        }
        refresh_heading(self.store, &mut heading);
        let SessionHeading { agent, id, entries, .. } = &heading;
        if !self.with_empty && self.store.vault.is_empty_recording(agent, id, *entries) {
            self.hidden += 1;
            return;
        }
        let started = heading.started.map(|at| format_start(at.in_zone(self.zone), self.this_year));
        let id = heading.id.as_str();
        self.is_empty = false;
        self.table.add_row([
            &started.unwrap_or_default(),
            &heading.agent,
            heading.status.as_str(),
            &heading.entries.to_string(),
            &id[..id.len().min(self.id_length)],
            heading.title.as_deref().unwrap_or_default(),
        ]);
    }
}

fn report_unreadable(ui: &mut Ui, id: &SessionId, reason: &str) -> CommandExit {
    ui.warning(format_args!("session {id} is only partly readable: {reason}"));
    CommandExit::Failed
}

fn refresh_heading(store: &SessionStore, heading: &mut SessionHeading) {
    if heading.status != SessionStatus::Running {
        return;
    }
    let mut session = Session::new(heading.id.clone(), heading.agent.clone());
    session.status = SessionStatus::Running;
    session.totals.entries = heading.entries;
    session.title = heading.title.take();
    session.started = heading.started;
    let now = refresh_running_session(store, session);
    (heading.status, heading.entries) = (now.status, now.totals.entries);
    (heading.title, heading.started) = (now.title, now.started);
}

/// Reads a running session again, as it may have ended since it was indexed.
pub(crate) fn refresh_running_session(store: &SessionStore, session: Session) -> Session {
    if session.status != SessionStatus::Running {
        return session;
    }
    let Ok(agent) = session.agent.parse() else { return session };
    let dir = store.vault.session_dir(&agent, &session.id);
    let recorded = dir.is_imported().is_ok_and(|imported| !imported);
    let now = recorded.then(|| dir.read_transcript().ok()).flatten();
    now.map_or(session, |transcript| transcript.session)
}

/// Formats day and time; in another year, the date.
pub(crate) fn format_start(at: Timestamp, this_year: i16) -> String {
    let form = if at.wall().year() == this_year { "%m-%d %H:%M" } else { "%Y-%m-%d" };
    at.wall().strftime(form).to_string()
}

/// Minimum number of characters shown of an id.
pub(crate) const MIN_ID_CHARS: usize = 8;

/// Returns the id length that distinguishes the newest sessions from all others, without reading all ids.
fn distinct_length_among_newest(
    index: &Index,
    agent: Option<&str>,
    limit: usize,
) -> Result<usize, IndexError> {
    let mut ids = Vec::new();
    index.each_heading(agent, Some(limit), &mut |heading| ids.push(heading.id))?;
    let mut lengths = ids.iter().map(|id| index.distinct_length(id));
    lengths.try_fold(MIN_ID_CHARS, |longest, length| Ok(longest.max(length?)))
}

/// Returns the id length that distinguishes all sessions, at least [`MIN_ID_CHARS`].
fn distinct_length(sessions: Vec<(String, SessionId)>) -> usize {
    let mut ids: Vec<&str> = sessions.iter().map(|(_, id)| id.as_str()).collect();
    ids.sort_unstable();
    let common =
        |pair: &[&str]| pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
    ids.windows(2).map(|pair| common(pair) + 1).max().unwrap_or(0).max(MIN_ID_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_shortened_as_far_as_they_differ() {
        let length = |ids: &[&str]| {
            distinct_length(ids.iter().map(|id| (String::new(), id.parse().unwrap())).collect())
        };
        assert_eq!(length(&["0190-abcdef", "0200-abcdef"]), 8);
        assert_eq!(length(&["0190-abcdef", "0190-abcdeg"]), 11);
        assert_eq!(length(&["only"]), 8);
    }
}
