//! Completes values on the command line: sessions, agents, projects, models, threads and remotes.
//!
//! A shell runs the program for each completion. So the index is read as it is, nothing is written, and a failure
//! offers nothing.

use std::ffi::OsStr;

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use steno_acp::replay::REHEARSAL;
use steno_store::index::{Index, SessionFacet, SessionFilter};

use crate::config::Config;
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::ProjectThreads;
use crate::session_store::SessionStore;
use crate::text_table::fit_columns;

/// Environment variable with which a shell asks for completions.
pub(crate) const COMPLETION_VARIABLE: &str = "STENO_COMPLETE";

/// Maximum number of sessions offered, the newest ones.
const MAX_SESSIONS: usize = 500;

/// Width of a title beside a session id.
const TITLE_COLUMNS: usize = 60;

/// A kind of value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompletedValue {
    Session,
    KeptAgent,
    RunnableAgent,
    Project,
    Model,
    Branch,
    Thread,
    Remote,
}

/// Adds completers to all arguments that take a known kind of value.
pub(crate) fn add_completers(command: Command) -> Command {
    let name = command.get_name().to_owned();
    // The commands of other systems have ids of their own.
    if name == "as" {
        return command;
    }
    let command = command.mut_subcommands(add_completers);
    command.mut_args(|arg| match completed_value(&name, &arg) {
        Some(value) => {
            arg.add(ArgValueCompleter::new(move |typed: &OsStr| find_candidates(value, typed)))
        }
        None => arg,
    })
}

/// Returns the kind of value that an argument takes.
fn completed_value(command: &str, arg: &Arg) -> Option<CompletedValue> {
    let is_reader = matches!(command, "list" | "search" | "cost" | "stats" | "forget");
    match arg.get_id().as_str() {
        "session" | "sessions" => Some(CompletedValue::Session),
        "a" | "b" if command == "diff" => Some(CompletedValue::Session),
        "input" if command == "convert" => Some(CompletedValue::Session),
        "agent" if is_reader => Some(CompletedValue::KeptAgent),
        "agent" if matches!(command, "run" | "resume") => Some(CompletedValue::RunnableAgent),
        "project" if is_reader => Some(CompletedValue::Project),
        "from" => Some(CompletedValue::Remote),
        "name" if matches!(command, "push" | "pull" | "remove" | "init") => {
            Some(CompletedValue::Remote)
        }
        "model" => Some(CompletedValue::Model),
        "branch" => Some(CompletedValue::Branch),
        "thread" | "threads" | "target" | "parent" | "references" | "into"
            if arg.get_action().takes_values() =>
        {
            Some(CompletedValue::Thread)
        }
        _ => None,
    }
}

/// Returns the values that begin with what was typed.
fn find_candidates(value: CompletedValue, typed: &OsStr) -> Vec<CompletionCandidate> {
    let (Some(typed), Ok(env)) = (typed.to_str(), ProcessEnvironment::from_environment()) else {
        return Vec::new();
    };
    let found = match value {
        CompletedValue::Session => session_candidates(&env, typed),
        CompletedValue::KeptAgent => {
            plain_candidates(SessionStore::new(&env).vault.list_agents().unwrap_or_default())
        }
        CompletedValue::RunnableAgent => runnable_agents(&env),
        CompletedValue::Project => facet_candidates(&env, SessionFacet::Project),
        CompletedValue::Model => facet_candidates(&env, SessionFacet::Model),
        CompletedValue::Branch => facet_candidates(&env, SessionFacet::Branch),
        CompletedValue::Thread => thread_candidates(&env),
        CompletedValue::Remote => remote_candidates(&env),
    };
    let is_fit = |candidate: &CompletionCandidate| {
        candidate.get_value().to_str().is_some_and(|value| value.starts_with(typed))
    };
    found.into_iter().filter(is_fit).collect()
}

fn plain_candidates(values: Vec<String>) -> Vec<CompletionCandidate> {
    // A control character would become part of the command line.
    let plain = values.into_iter().filter(|value| !value.contains(char::is_control));
    plain.map(CompletionCandidate::new).collect()
}

fn session_candidates(env: &ProcessEnvironment, typed: &str) -> Vec<CompletionCandidate> {
    let Ok(index) = Index::open_read_only(&env.store) else { return Vec::new() };
    let mut found =
        vec![CompletionCandidate::new("latest").help(Some("the newest session".into()))];
    let limit = typed.is_empty().then_some(MAX_SESSIONS);
    let listed = index.each_heading(&SessionFilter::default(), limit, &mut |heading| {
        if heading.id.as_str().starts_with(typed) && found.len() <= MAX_SESSIONS {
            let title = heading.title.as_deref().unwrap_or_default();
            let title = title.replace(char::is_control, " ");
            let help = fit_columns(&format!("{}: {title}", heading.agent), TITLE_COLUMNS);
            found.push(CompletionCandidate::new(heading.id.as_str()).help(Some(help.into())));
        }
    });
    if listed.is_err() { Vec::new() } else { found }
}

fn facet_candidates(env: &ProcessEnvironment, facet: SessionFacet) -> Vec<CompletionCandidate> {
    let values = Index::open_read_only(&env.store).and_then(|index| index.facet_values(facet));
    plain_candidates(values.unwrap_or_default())
}

fn runnable_agents(env: &ProcessEnvironment) -> Vec<CompletionCandidate> {
    let agents = Config::load(env).and_then(|config| config.agents()).unwrap_or_default();
    let names = agents.into_iter().map(|agent| agent.name);
    plain_candidates(names.chain([REHEARSAL.to_owned()]).collect())
}

fn remote_candidates(env: &ProcessEnvironment) -> Vec<CompletionCandidate> {
    let remotes = Config::load(env).and_then(|config| config.remotes()).unwrap_or_default();
    plain_candidates(remotes.into_iter().map(|remote| remote.settings.name).collect())
}

fn thread_candidates(env: &ProcessEnvironment) -> Vec<CompletionCandidate> {
    let threads = ProjectThreads::for_working_folder(env);
    if !threads.store.exists() {
        return Vec::new();
    }
    let threads = threads.store.list_threads(None).unwrap_or_default();
    let candidates = threads.iter().rev().map(|thread| {
        let title = fit_columns(&thread.title.replace(char::is_control, " "), TITLE_COLUMNS);
        CompletionCandidate::new(thread.id.as_str()).help(Some(title.into()))
    });
    candidates.collect()
}
