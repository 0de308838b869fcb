//! `steno list`: the sessions that are kept.

use std::path::PathBuf;

use steno_core::index::{Index, Listed};
use steno_core::thread;
use steno_core::view::answer::SessionRow;
use steno_core::{Session, Status, Timestamp};

use super::thread::list::Wanted;
use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::store::Store;
use crate::table::Table;
use crate::threads::{Place, one_of};
use crate::ui::Ui;

/// List the sessions that are kept, or the threads of a project, newest first.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only those of this agent.
    #[arg(long, value_name = "NAME", conflicts_with = "threads")]
    agent: Option<String>,
    /// At most so many.
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
    /// List the threads of a project.
    #[arg(long)]
    threads: bool,
    /// Only threads that stand so.
    #[arg(
        long,
        value_name = "STATUS",
        requires = "threads",
        value_parser = one_of::<thread::Status>(thread::Status::WORDS)
    )]
    status: Option<thread::Status>,
    /// The project whose threads are listed [default: as in other commands on threads].
    #[arg(long, value_name = "DIR", requires = "threads")]
    project: Option<PathBuf>,
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(ui: &mut Ui, scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    if args.threads {
        let place = Place { project: args.project.clone(), json: args.json };
        let wanted = Wanted { status: args.status, limit: args.limit, place };
        return super::thread::list::run(ui, scene, &wanted);
    }
    let mut exit = Exit::Done;
    let store = Store::new(scene);
    args.agent.as_deref().map_or(Ok(()), |agent| store.check_agent(agent))?;
    let ask = |index: &Index| index.sessions(args.agent.as_deref(), args.limit);
    let (_, listed) = store.ask(ui, ask)?;
    let mut sessions = Vec::new();
    for Listed { session, trouble } in listed {
        match trouble {
            None => sessions.push(settled(&store, session)),
            Some(reason) => {
                ui.warning(format_args!("session {} cannot be read: {reason}", session.id));
                exit = Exit::Failed;
            }
        }
    }
    if args.json {
        for session in &sessions {
            serde_json::to_writer(ui.out(), &SessionRow::of(session))?;
            writeln!(ui.out())?;
        }
    } else if sessions.is_empty() {
        ui.status("nothing is kept yet; run `steno sync`, `steno import PATH` or `steno record`");
    } else {
        print_table(ui, scene, &sessions)?;
    }
    Ok(exit)
}

/// A session that was being recorded when it was last looked at may have ended.
pub(crate) fn settled(store: &Store, session: Session) -> Session {
    if session.status != Status::Running {
        return session;
    }
    let Ok(agent) = session.agent.parse() else { return session };
    let dir = store.vault.session(&agent, &session.id);
    let recorded = dir.is_imported().is_ok_and(|imported| !imported);
    let now = recorded.then(|| dir.read().ok()).flatten();
    now.map_or(session, |transcript| transcript.session)
}

fn print_table(ui: &mut Ui, scene: &Scene, sessions: &[Session]) -> Result<(), CommandError> {
    // A person types the beginning of an id; a pipe gets all of it.
    let shown = if ui.is_terminal() { distinct_length(sessions) } else { usize::MAX };
    let this_year = scene.clock.now().in_zone(&scene.zone).wall().year();
    let mut table = Table::new(["STARTED", "AGENT", "STATUS", "ENTRIES", "ID", "TITLE"]);
    for session in sessions {
        let started = session.started.map(|at| started(at.in_zone(&scene.zone), this_year));
        table.row([
            started.unwrap_or_default(),
            session.agent.clone(),
            session.status.to_string(),
            session.totals.entries.to_string(),
            session.id.as_str().chars().take(shown).collect(),
            session.title.clone().unwrap_or_default(),
        ]);
    }
    let text = table.render(ui.width());
    ui.transcript_text(&text)?;
    Ok(())
}

/// Day and time; of another year than this one, the whole date.
pub(crate) fn started(at: Timestamp, this_year: i16) -> String {
    let form = if at.wall().year() == this_year { "%m-%d %H:%M" } else { "%Y-%m-%d" };
    at.wall().strftime(form).to_string()
}

/// How many characters of their ids tell the sessions apart; at least eight.
fn distinct_length(sessions: &[Session]) -> usize {
    let mut ids: Vec<&str> = sessions.iter().map(|session| session.id.as_str()).collect();
    ids.sort_unstable();
    let common =
        |pair: &[&str]| pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
    ids.windows(2).map(|pair| common(pair) + 1).max().unwrap_or(0).max(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_shortened_as_far_as_they_differ() {
        let sessions = |ids: &[&str]| -> Vec<Session> {
            ids.iter().map(|id| Session::new(id.parse().unwrap(), "x")).collect()
        };
        assert_eq!(distinct_length(&sessions(&["0190-abcdef", "0200-abcdef"])), 8);
        assert_eq!(distinct_length(&sessions(&["0190-abcdef", "0190-abcdeg"])), 11);
        assert_eq!(distinct_length(&sessions(&["only"])), 8);
    }
}
