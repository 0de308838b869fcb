//! `steno list`: lists sessions or threads.

mod session_table;

use std::path::PathBuf;
use std::sync::Arc;

use steno_model::{Session, SessionId, Timestamp};
use steno_seeds::thread;
use steno_store::current_status::StatusCheck;
use steno_store::index::{
    Index, IndexError, ListedSession, SessionFilter, SessionHeading, SessionText,
};
use steno_store::session_owners::SessionOwners;
use steno_store::view::json_rows::SessionRow;

use self::session_table::SessionTable;
use super::search::parse_query;
use super::thread::list::ThreadFilter;
use crate::automatic_sync::AutomaticSyncFlag;
use crate::error::{CommandError, CommandExit};
use crate::known_values::check_known_values;
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::{ProjectThreads, ThreadFlags, word_parser};
use crate::session_scope::SessionScope;
use crate::session_store::SessionStore;
use crate::team_access::{RemoteFlag, explain_no_sessions};
use crate::ui::{Ui, count_noun};
use crate::value_parsers::parse_count;

/// List sessions, or the threads of a project, newest first.
///
/// On a terminal, ids are as short as they are unique; every command accepts them. Into a pipe, ids are whole.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    scope: SessionScope,
    /// Only sessions on this Git branch.
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Only sessions with this text, a query as for `steno search`.
    #[arg(long, value_name = "QUERY", allow_hyphen_values = true)]
    text: Option<String>,
    /// Print at most N.
    #[arg(long, short = 'n', value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    limit: Option<usize>,
    /// Include recordings without entries, such as a connection without any request. Agents' session files without
    /// entries are always listed.
    #[arg(long)]
    empty: bool,
    /// List the threads of a project: of --project, of this folder, or of the nearest above that has threads.
    #[arg(
        long,
        conflicts_with_all = ["agent", "model", "since", "until", "session", "thread", "branch", "text", "empty"]
    )]
    threads: bool,
    /// With --threads: only threads with this status.
    #[arg(
        long,
        value_name = "STATUS",
        requires = "threads",
        value_parser = word_parser::<thread::ThreadStatus>(thread::ThreadStatus::WORDS)
    )]
    status: Option<thread::ThreadStatus>,
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) sync: AutomaticSyncFlag,
    #[command(flatten)]
    pub(crate) remote: RemoteFlag,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    if args.threads {
        let project = args.scope.project().map(PathBuf::from);
        let flags = ThreadFlags { project, json: args.json };
        let filter = ThreadFilter { status: args.status, limit: args.limit, flags };
        return super::thread::list::run(ui, env, &filter);
    }
    let text = args.text.as_deref().map(parse_text).transpose()?;
    args.sync.sync_if_due(ui, env);
    ProjectThreads::finish_killed_runs_near(ui, env);
    let store = SessionStore::new(env);
    store.check_agent(args.scope.agent.as_deref())?;
    let scope = args.scope.to_filter(env, |name| Ok(store.find_session(name)?.id().clone()))?;
    let filter = SessionFilter { scope, branch: args.branch.clone(), text };
    let listing = ListRequest { env, store: &store, args, filter: &filter };
    if args.json { listing.print_json(ui) } else { listing.print_table(ui) }
}

/// Parses the text that sessions must contain.
fn parse_text(text: &str) -> Result<SessionText, CommandError> {
    let query = parse_query(text)?;
    if query.is_regex() {
        let error = CommandError::usage("--text does not take a regular expression");
        return Err(error.hint("use words, or `steno search` for expressions"));
    }
    Ok(SessionText { title_part: text.to_owned(), query })
}

/// What is listed, and from where.
struct ListRequest<'a> {
    env: &'a ProcessEnvironment,
    store: &'a SessionStore,
    args: &'a Args,
    filter: &'a SessionFilter,
}

impl ListRequest<'_> {
    fn print_json(&self, ui: &mut Ui) -> Result<CommandExit, CommandError> {
        let owners = Arc::new(self.env.session_owners());
        let ask = |index: &Index| {
            list_enough(self.args.limit, |limit| {
                let (with_empty, owners) = (self.args.empty, Arc::clone(&owners));
                let mut listing = JsonListing { with_empty, owners, ..JsonListing::default() };
                let add = &mut |listed| listing.add(self.store, listed);
                index.each_session(self.filter, limit, add)?;
                let hidden = listing.hidden;
                Ok((listing, hidden))
            })
        };
        let (index, listing) = self.store.query(ui, ask)?;
        listing.write_error.map_or(Ok(()), Err)?;
        ui.out().write_all(&listing.lines)?;
        let mut exit = CommandExit::Done;
        for (id, reason) in &listing.unreadable {
            exit = report_unreadable(ui, id, reason);
        }
        if listing.lines.is_empty() && listing.unreadable.is_empty() {
            return self.explain_nothing(ui, &index, listing.hidden);
        }
        Ok(exit)
    }

    fn print_table(&self, ui: &mut Ui) -> Result<CommandExit, CommandError> {
        let is_terminal = ui.is_terminal();
        let ask = |index: &Index| {
            list_enough(self.args.limit, |limit| {
                let mut table = SessionTable::new(self.env, self.store, is_terminal);
                table.with_empty = self.args.empty;
                index.each_heading(self.filter, limit, &mut |heading| table.add(heading))?;
                let hidden = table.hidden;
                Ok((table, hidden))
            })
        };
        let (index, table) = self.store.query(ui, ask)?;
        let mut exit = CommandExit::Done;
        for (id, reason) in &table.unreadable {
            exit = report_unreadable(ui, id, reason);
        }
        if table.hidden > 0 {
            let hidden = count_noun(table.hidden as u64, "recording");
            ui.status(format_args!("{hidden} without entries not listed; use --empty to see them"));
        }
        if table.is_empty() && table.unreadable.is_empty() {
            return self.explain_nothing(ui, &index, table.hidden);
        }
        if !table.is_empty() {
            ui.transcript_text(&table.render(&index, ui.width())?)?;
        }
        Ok(exit)
    }

    /// Says why nothing is listed. Fails if the filter is the reason.
    fn explain_nothing(
        &self,
        ui: &mut Ui,
        index: &Index,
        hidden: usize,
    ) -> Result<CommandExit, CommandError> {
        let mut newest = None;
        index.each_heading(&SessionFilter::default(), Some(1), &mut |heading| {
            newest = Some(heading.id);
        })?;
        if newest.is_none() {
            ui.status(explain_no_sessions(self.env));
        } else if self.args.limit == Some(0) {
            ui.status("no session listed, because of -n 0");
        } else if hidden == 0 {
            check_known_values(index, &self.filter.scope, self.filter.branch.as_deref())?;
            ui.status("no session matches");
            return Ok(CommandExit::Failed);
        }
        Ok(CommandExit::Done)
    }
}

/// Sessions as JSON Lines. They are printed only if the index returned all of them without an error.
#[derive(Default)]
struct JsonListing {
    /// Whether recordings without entries are listed, and how many were hidden.
    with_empty: bool,
    hidden: usize,
    lines: Vec<u8>,
    /// Whose sessions they are.
    owners: Arc<SessionOwners>,
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
        let check = store.status_check();
        let session = match check.may_differ(session.status, session.ended) {
            true => check.refresh_session(session),
            false => session,
        };
        let Session { agent, id, totals, .. } = &session;
        if !self.with_empty && store.vault.is_empty_recording(agent, id, totals.entries) {
            self.hidden += 1;
            return;
        }
        let person = self.owners.person_of(&session.agent, session.id.as_str());
        let row = SessionRow::from_session(&session).of_person(person);
        match serde_json::to_writer(&mut self.lines, &row) {
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

fn report_unreadable(ui: &mut Ui, id: &SessionId, reason: &str) -> CommandExit {
    ui.warning(format_args!("session {id} is only partly readable: {reason}"));
    CommandExit::Failed
}

/// Sets the status that the session has now. A running recording also gets what is shown of it now.
fn refresh_heading(check: &StatusCheck<'_>, heading: &mut SessionHeading) {
    if !check.may_differ(heading.status, heading.ended) {
        return;
    }
    let mut session = Session::new(heading.id.clone(), heading.agent.clone());
    session.status = heading.status;
    (session.ended, session.stop_reason) = (heading.ended, heading.stop_reason.take());
    session.totals.entries = heading.entries;
    session.title = heading.title.take();
    session.started = heading.started;
    let now = check.refresh_session(session);
    (heading.status, heading.entries) = (now.status, now.totals.entries);
    (heading.title, heading.started) = (now.title, now.started);
}

/// Formats day and time; in another year, the date.
pub(crate) fn format_start(at: Timestamp, this_year: i16) -> String {
    // Cheaper than `strftime`, which would be a tenth of a long list.
    let text = at.to_rfc3339_seconds();
    let (date, time) = text.split_once('T').unwrap_or((&text, ""));
    match at.wall().year() == this_year {
        true => format!("{} {}", &date["YYYY-".len()..], &time[.."HH:MM".len()]),
        false => date.to_owned(),
    }
}

/// Minimum number of characters shown of an id.
pub(crate) const MIN_ID_CHARS: usize = 8;
