//! `steno show`: prints a session.

use std::collections::BTreeSet;

use steno_agents::join::is_only_on_wire;
use steno_model::{Entry, Role, Transcript};
use steno_seeds::devflow::{self, RunView, RunViewStyle};
use steno_seeds::{chibi, leslie, weakincentives};
use steno_store::transcript::{ReadTranscript, for_each_exchange};
use steno_store::view::json_rows::EntryRow;
use steno_store::view::json_rows::exchange::ExchangeRow;
use steno_vault::SessionDir;
use steno_vault::notes::Note;
use uuid::Uuid;

use crate::automatic_sync::AutomaticSyncFlag;
use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::{SessionPath, SessionStore};
use crate::team_access::RemoteFlag;
use crate::ui::{StyledText, TextStyle, Ui};
use crate::value_parsers::parse_count;

mod commit;
mod follow;
pub(crate) mod terminal;

use follow::FollowedSession;
use terminal::SessionLayout;

/// Print a session.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Session id, unique prefix, `latest`, or a path; `:N` selects the entries around hit N.
    #[arg(value_name = "ID", required_unless_present = "commit")]
    session: Option<String>,
    /// List the sessions and prompts that wrote what this commit of the current repository added.
    #[arg(long, value_name = "COMMIT", conflicts_with_all = ["session", "last", "first", "only", "wire", "requests", "summary", "style"])]
    commit: Option<String>,
    /// Only the last N entries.
    #[arg(long, value_name = "N", conflicts_with = "first", value_parser = parse_count, allow_negative_numbers = true)]
    last: Option<usize>,
    /// Only the first N entries.
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    first: Option<usize>,
    /// Entries before and after a hit.
    #[arg(short = 'C', long, value_name = "N", default_value_t = 3, value_parser = parse_count, allow_negative_numbers = true)]
    context: usize,
    /// Only entries with this role: system, user, assistant, tool.
    #[arg(long, value_name = "ROLE")]
    only: Option<String>,
    /// Show what was recorded between the agent and its models or its editor, instead of the agent's own files:
    /// instructions, every request, and calls such as those for a title.
    #[arg(long)]
    wire: bool,
    /// Print each recorded request to a model and its response as JSON Lines, with tool schemas, headers and bodies.
    #[arg(long, conflicts_with_all = ["wire", "summary", "style", "json", "last", "first", "only"])]
    requests: bool,
    /// Print new entries while the agent writes them, until Ctrl-C.
    #[arg(long, short, conflicts_with_all = ["commit", "first", "wire", "requests", "summary", "style"])]
    follow: bool,
    /// Print one line per entry.
    #[arg(long)]
    summary: bool,
    /// Output style.
    #[arg(long, value_enum, default_value_t = ShowStyle::Terminal)]
    style: ShowStyle,
    /// Print the entries as JSON Lines.
    #[arg(long)]
    json: bool,
    /// Print directly. By default a terminal gets the session through $STENO_PAGER, $PAGER or `less`.
    #[arg(long)]
    no_pager: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteFlag,
}

/// Output style.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ShowStyle {
    /// Steno's own style.
    Terminal,
    /// The style of weakincentives' `format_transcript`.
    Weakincentives,
    /// The style of devflow's viewer.
    Devflow,
    /// The style of leslie's transcripts.
    Leslie,
    /// The style of `chibi -g`.
    Chibi,
}

impl ShowStyle {
    /// Whether the cost of an agent's session is calculated. Devflow's viewer shows what its own runs state.
    fn calculates_cost(self, agent: &str) -> bool {
        match self {
            ShowStyle::Terminal => true,
            ShowStyle::Devflow => agent != devflow::AGENT_NAME,
            ShowStyle::Weakincentives | ShowStyle::Leslie | ShowStyle::Chibi => false,
        }
    }
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    if args.summary && !matches!(args.style, ShowStyle::Terminal | ShowStyle::Devflow) {
        let error = CommandError::usage("this style has no summary");
        return Err(error.hint("leave out --summary, or use --style terminal or devflow"));
    }
    if let Some(commit) = &args.commit {
        return commit::print_commit(ui, env, commit, args.json);
    }
    let store = SessionStore::new(env);
    let session = args.session.as_deref().unwrap_or_default();
    let (name, number) = match parse_hit(session) {
        Some((name, number)) if !env.cwd.join(session).exists() => (name, Some(number)),
        _ => (session, None),
    };
    if store.may_be_new(name) {
        AutomaticSyncFlag::default().sync_if_due(ui, env);
    }
    if args.requests {
        return print_requests(ui, &store, name);
    }
    let followed =
        args.follow.then(|| find_followed_session(env, &store, name, number)).transpose()?;
    let mut transcript = match &followed {
        Some(session) => session.read()?,
        None if args.wire => read_recorded(&store, name)?,
        None => store.transcript(name)?,
    };
    let count = transcript.entries.len();
    ui.report_problems(&transcript.problems);
    if !args.json && args.style.calculates_cost(&transcript.session.agent) {
        let prices = Config::load(env)?.prices()?;
        transcript.session.totals.cost = store.session_cost(ui, &transcript, &prices);
    }
    print_transcript(ui, env, args, transcript, number)?;
    if let Some(session) = &followed {
        follow::follow_entries(ui, env, args, session, count)?;
    }
    Ok(CommandExit::Done)
}

/// Prints the entries that were asked for, those around entry `number` if it is one.
fn print_transcript(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
    mut transcript: Transcript,
    number: Option<usize>,
) -> Result<(), CommandError> {
    let noted = Note::for_session(&transcript.notes, &transcript.entries);
    let noted: Vec<Note> = noted.into_iter().cloned().collect();
    let hit = number.and_then(|number| transcript.entries.get(number));
    let hit = hit.map(|entry| entry.entry_id);
    match number {
        Some(number) => keep_around_hit(&mut transcript.entries, number, args)?,
        None if args.wire => {}
        None => transcript.entries.retain(|entry| !is_only_on_wire(entry)),
    }
    select_entries(&mut transcript.entries, args)?;
    if args.json {
        for entry in &transcript.entries {
            serde_json::to_writer(ui.out(), &EntryRow::from_entry(entry, &transcript.notes))?;
            writeln!(ui.out())?;
        }
        return Ok(());
    }
    let options = RenderOptions { env, args, width: ui.width(), hit };
    let parts = render_style(&transcript, &noted, &options);
    if !args.no_pager && !args.follow {
        ui.start_pager(ProcessEnvironment::pager().as_deref());
    }
    parts.iter().try_for_each(|part| ui.styled_text(part))?;
    Ok(())
}

/// Finds a session to follow. Fails for an entry of one.
fn find_followed_session(
    env: &ProcessEnvironment,
    store: &SessionStore,
    name: &str,
    number: Option<usize>,
) -> Result<FollowedSession, CommandError> {
    if number.is_some() {
        let error = CommandError::usage("--follow needs a session, not an entry of one");
        return Err(error.hint(format!("run `steno show {name} --follow`")));
    }
    match SessionPath::from_name(&env.cwd, name) {
        Some(path) if store.vault.sessions_with_id(name)?.is_empty() => {
            Ok(FollowedSession::Outside(path))
        }
        _ => store.find_session(name).map(FollowedSession::Stored),
    }
}

/// Reads the recorded traffic of a session.
fn read_recorded(store: &SessionStore, name: &str) -> Result<Transcript, CommandError> {
    Ok(find_recorded_session(store, name)?.read_recording()?)
}

/// Finds a session with recorded traffic.
fn find_recorded_session(store: &SessionStore, name: &str) -> Result<SessionDir, CommandError> {
    let session = store.find_session(name)?;
    if !session.is_recorded()? {
        let error = CommandError::user(format!("no recorded traffic in session {name}"));
        return Err(error.hint("it comes from the agent's session files only"));
    }
    Ok(session)
}

/// Prints the recorded exchanges in the order in which they ended.
fn print_requests(
    ui: &mut Ui,
    store: &SessionStore,
    name: &str,
) -> Result<CommandExit, CommandError> {
    let (mut count, mut failure) = (0, None);
    let session = find_recorded_session(store, name)?;
    let problems = for_each_exchange(&session, &mut |exchange| {
        count += 1;
        let written = serde_json::to_writer(ui.out(), &ExchangeRow::new(&exchange));
        failure = failure.take().or(written.map_err(CommandError::from).err());
        failure = failure.take().or(writeln!(ui.out()).map_err(CommandError::from).err());
    })?;
    failure.map_or(Ok(()), Err)?;
    ui.report_problems(&problems);
    if count == 0 {
        ui.status("no requests recorded");
    }
    Ok(CommandExit::Done)
}

/// Splits a hit of `steno search` into session and entry number.
pub(crate) fn parse_hit(name: &str) -> Option<(&str, usize)> {
    let (session, number) = name.rsplit_once(':')?;
    Some((session, number.parse().ok()?))
}

/// Keeps the entry of a hit and its neighbours.
fn keep_around_hit(
    entries: &mut Vec<Entry>,
    number: usize,
    args: &Args,
) -> Result<(), CommandError> {
    if number >= entries.len() {
        let session = args.session.as_deref().unwrap_or_default();
        return Err(no_such_entry_error(session, entries.len()));
    }
    entries.truncate(number.saturating_add(args.context).saturating_add(1));
    entries.drain(..number.saturating_sub(args.context));
    Ok(())
}

/// Returns the error for an entry number beyond the end.
pub(crate) fn no_such_entry_error(name: &str, entries: usize) -> CommandError {
    let error = CommandError::user(format!("no such entry: {name}"));
    error.hint(format!("the last entry is {}", entries.saturating_sub(1)))
}

fn select_entries(entries: &mut Vec<Entry>, args: &Args) -> Result<(), CommandError> {
    if let Some(role) = &args.only {
        let role = Role::from(role.to_lowercase());
        let has_role = entries.iter().any(|entry| entry.role == role);
        if matches!(role, Role::Other(_)) && !has_role {
            return Err(unknown_role_error(role.as_str(), entries));
        }
        entries.retain(|entry| entry.role == role);
    }
    if let Some(first) = args.first {
        entries.truncate(first);
    }
    if let Some(last) = args.last {
        entries.drain(..entries.len().saturating_sub(last));
    }
    Ok(())
}

fn unknown_role_error(name: &str, entries: &[Entry]) -> CommandError {
    let known = [Role::System, Role::User, Role::Assistant, Role::Tool];
    let mut names: Vec<&str> = known.iter().map(Role::as_str).collect();
    let others: BTreeSet<&str> = entries.iter().map(|entry| entry.role.as_str()).collect();
    names.extend(others.into_iter().filter(|other| !known.iter().any(|it| it.as_str() == *other)));
    let error = CommandError::usage(format!("no such role: {name}"));
    error.hint(format!("the roles are: {}", names.join(", ")))
}

/// What decides how a session is rendered.
struct RenderOptions<'a> {
    env: &'a ProcessEnvironment,
    args: &'a Args,
    width: usize,
    /// The id of the entry of a hit.
    hit: Option<Uuid>,
}

fn render_style(
    transcript: &Transcript,
    noted: &[Note],
    options: &RenderOptions<'_>,
) -> Vec<StyledText> {
    let RenderOptions { env, args, width, hit } = *options;
    let text = match (args.style, args.summary) {
        (ShowStyle::Terminal, false) => {
            let layout = SessionLayout { zone: &env.zone, width, hit };
            return terminal::render_session(transcript, noted, &layout);
        }
        (ShowStyle::Terminal, true) => terminal::render_summary(transcript, &env.zone, width),
        (ShowStyle::Weakincentives, _) => weakincentives::format_transcript(&transcript.entries),
        (ShowStyle::Devflow, summary) => {
            let run = devflow::DevflowRun::from(transcript);
            let view = RunView { run: &run, now: env.clock.now(), style: RunViewStyle::default() };
            if summary { view.render_summary() } else { view.render_full() }
        }
        (ShowStyle::Leslie, _) => {
            let mut local = transcript.clone();
            leslie::localize_times(&mut local, &env.zone);
            leslie::render_units(&local)
        }
        (ShowStyle::Chibi, _) => {
            let lines = chibi::lines_from_transcript(transcript);
            chibi::render_log(&lines, chibi::ChibiLogStyle::Documented, false)
        }
    };
    vec![StyledText { style: TextStyle::Plain, text }]
}
