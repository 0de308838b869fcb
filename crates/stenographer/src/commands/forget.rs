//! `steno forget`: removes sessions, entries or texts for good.

use std::ops::RangeInclusive;

use clap::ValueEnum;
use regex::Regex;
use steno_model::moment::DayEdge;
use steno_store::forget::{AgentFileAction, ForgottenTextFinder, PlannedRemoval};
use steno_store::index::{EntryFilter, SessionFilter};
use steno_store::secret_report::{SecretId, report_secrets};
use steno_store::transcript::ReadTranscript;
use steno_store::view::redaction::is_distinctive;
use steno_vault::SessionDir;

use super::secrets::warn_of_unsearched_parts;
use super::show::no_such_entry_error;
use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::moment;
use crate::process_environment::ProcessEnvironment;
use crate::session_removal::{RemovalOptions, SessionRemoval};
use crate::session_scope::resolve_project;
use crate::session_store::SessionStore;
use crate::ui::Ui;

/// Remove sessions, entries or texts from the store for good.
///
/// Lists what would be removed and asks. Then removes it from the vault, recordings, notes and the index, and leaves a
/// tombstone: when, what, why and by whom, without the content. `steno verify` lists the tombstones and proves that
/// nothing else was removed. A removed session is not kept again while the agent's own file still exists.
///
/// `ID` removes a session. `ID:N` and `ID:N-M` mask the text of entries, and `--match` masks what matches a regular
/// expression: the same number of other characters replaces the text, so that all other entries keep their numbers.
/// `--secret` does so with a secret that `steno secrets` found. With `--project` or `--older`, removes all such sessions, or masks matches only in them.
///
/// The agent's own files are listed, and stay unless `--agent-files` says otherwise. Copies that were exported or
/// backed up are not known to Steno.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sessions: id, unique prefix or `latest`; `:N` or `:N-M` selects entries.
    #[arg(value_name = "ID[:N[-M]]")]
    sessions: Vec<String>,
    /// Mask what matches this regular expression, in all sessions or in the selected ones.
    #[arg(long = "match", value_name = "REGEX")]
    pattern: Option<String>,
    /// Mask the secret with this id, which `steno secrets` prints.
    #[arg(long, value_name = "SECRET", conflicts_with_all = ["pattern", "sessions"])]
    secret: Option<SecretId>,
    /// Only sessions of this project: its folder, or the last part of its path.
    #[arg(long, value_name = "DIR", conflicts_with = "sessions")]
    project: Option<String>,
    /// Only sessions that ended before this time: a date, a time, or 365d, 52w ago.
    #[arg(long, value_name = "TIME", conflicts_with = "sessions")]
    older: Option<String>,
    /// What to do with the agents' own files: keep them, mask texts in them, or remove those of removed sessions.
    #[arg(long, value_name = "ACTION")]
    agent_files: Option<AgentFileChoice>,
    #[command(flatten)]
    options: RemovalOptions,
}

/// The values of `--agent-files`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AgentFileChoice {
    /// Leave them as they are.
    Keep,
    /// Mask the removed texts in them.
    Scrub,
    /// Delete the files of removed sessions, and mask texts in others.
    Remove,
}

impl From<AgentFileChoice> for AgentFileAction {
    fn from(choice: AgentFileChoice) -> Self {
        match choice {
            AgentFileChoice::Keep => Self::Keep,
            AgentFileChoice::Scrub => Self::Scrub,
            AgentFileChoice::Remove => Self::Remove,
        }
    }
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let is_selecting = args.project.is_some() || args.older.is_some();
    let is_text = args.pattern.is_some() || args.secret.is_some();
    if args.sessions.is_empty() && !is_text && !is_selecting {
        let error = CommandError::usage("nothing was selected to forget");
        let hint = "give a session's ID, --match REGEX, --secret ID, --project DIR or --older TIME";
        return Err(error.hint(hint));
    }
    let store = SessionStore::new(env);
    let removals = select_removals(ui, env, &store, args)?;
    let action = args.agent_files.map(AgentFileAction::from);
    SessionRemoval { ui, env, store: &store, options: &args.options, action }.run(removals)
}

/// Finds what the command line selects.
fn select_removals(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    store: &SessionStore,
    args: &Args,
) -> Result<Vec<PlannedRemoval>, CommandError> {
    let mut removals = Vec::new();
    for name in &args.sessions {
        removals.push(select_named(store, name, args)?);
    }
    if !args.sessions.is_empty() {
        return Ok(removals);
    }
    let finder = match (&args.secret, &args.pattern) {
        (Some(id), _) => Some(find_secret(ui, env, id)?),
        (None, Some(pattern)) => Some(ForgottenTextFinder::for_pattern(parse_pattern(pattern)?)),
        (None, None) => None,
    };
    for session in select_sessions(ui, env, store, args)? {
        removals.push(match finder.clone() {
            Some(finder) => PlannedRemoval::Texts { session, finder },
            None => PlannedRemoval::Session(session),
        });
    }
    Ok(removals)
}

/// Finds what `ID`, `ID:N` or `ID:N-M` selects.
fn select_named(
    store: &SessionStore,
    name: &str,
    args: &Args,
) -> Result<PlannedRemoval, CommandError> {
    let Some((id, numbers)) = parse_entries(name) else {
        let session = store.find_session(name)?;
        return Ok(match args.pattern.as_deref().map(parse_pattern).transpose()? {
            Some(pattern) => {
                let finder = ForgottenTextFinder::for_pattern(pattern);
                PlannedRemoval::Texts { session, finder }
            }
            None => PlannedRemoval::Session(session),
        });
    };
    if args.pattern.is_some() {
        let error = CommandError::usage("--match selects texts by itself");
        return Err(error.hint("give the session's ID without entry numbers"));
    }
    let session = store.find_session(id)?;
    let entries = session.read_transcript()?.entries;
    if *numbers.end() >= entries.len() as u64 || numbers.is_empty() {
        return Err(no_such_entry_error(name, entries.len()));
    }
    let selected = numbers.map(|number| (number, &entries[number as usize]));
    let finder = ForgottenTextFinder::for_entries(selected);
    Ok(PlannedRemoval::Texts { session, finder })
}

/// Splits `ID:N` and `ID:N-M` into session and entry numbers.
fn parse_entries(name: &str) -> Option<(&str, RangeInclusive<u64>)> {
    let (session, numbers) = name.rsplit_once(':')?;
    let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
    Some((session, first.parse().ok()?..=last.parse().ok()?))
}

/// The finder of a secret of the report.
fn find_secret(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    id: &SecretId,
) -> Result<ForgottenTextFinder, CommandError> {
    Config::load(env)?.configure_redaction()?;
    let report = report_secrets(&env.store_location(), &|_| ())?;
    warn_of_unsearched_parts(ui, &report);
    let secret = report.secrets.into_iter().find(|secret| secret.id == *id).ok_or_else(|| {
        let error = CommandError::user(format!("no such secret: {id}"));
        error.hint("run `steno secrets` to list the secrets that are kept")
    })?;
    if !is_distinctive(&secret.value) {
        ui.status(
            "the secret may be an ordinary word; it is masked only where it stands as a secret",
        );
    }
    Ok(ForgottenTextFinder::for_secret(&secret.value))
}

fn parse_pattern(text: &str) -> Result<Regex, CommandError> {
    let pattern = Regex::new(text).map_err(|error| {
        let text = error.to_string();
        let reason = text.lines().last().unwrap_or(&text).trim_start_matches("error: ");
        CommandError::usage(format!("not a regular expression: {reason}"))
    })?;
    if pattern.is_match("") {
        let error = CommandError::usage(format!("this pattern also matches nothing: {text}"));
        return Err(error.hint("use one that needs at least one character"));
    }
    Ok(pattern)
}

/// The sessions of `--project` and `--older`, or all.
fn select_sessions(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    store: &SessionStore,
    args: &Args,
) -> Result<Vec<SessionDir>, CommandError> {
    if args.project.is_none() && args.older.is_none() {
        return Ok(store.vault.list_sessions()?);
    }
    let project = args.project.as_deref().map(|project| resolve_project(env, project));
    let older = args.older.as_deref();
    let before = older.map(|text| moment::parse_moment(text, DayEdge::Begin, env)).transpose()?;
    let filter = SessionFilter {
        scope: EntryFilter { project, ..EntryFilter::default() },
        ..SessionFilter::default()
    };
    let (_, selected) = store.query(ui, |index| {
        let mut selected = Vec::new();
        index.each_session(&filter, None, &mut |listed| {
            let session = listed.session;
            let last = session.ended.or(session.started).map(|at| at.instant());
            // A session without a time is not known to be older.
            let is_older =
                before.is_none_or(|before| last.is_some_and(|last| last < before.instant()));
            if is_older {
                selected.push((session.agent, session.id));
            }
        })?;
        Ok(selected)
    })?;
    let dir = |(agent, id): (String, _)| Ok(store.vault.session_dir(&agent.parse()?, &id));
    selected.into_iter().map(dir).collect()
}
