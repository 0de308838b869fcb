//! `steno list`: the sessions that are kept.

use std::path::PathBuf;

use steno_core::index::{Heading, Index, Listed};
use steno_core::thread;
use steno_core::view::answer::SessionRow;
use steno_core::{Session, SessionId, Status, Timestamp};

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
    let store = Store::new(scene);
    store.check_agent(args.agent.as_deref())?;
    if args.json { print_json(ui, &store, args) } else { print_list(ui, scene, &store, args) }
}

fn print_json(ui: &mut Ui, store: &Store, args: &Args) -> Result<Exit, CommandError> {
    let mut exit = Exit::Done;
    let ask = |index: &Index| index.sessions(args.agent.as_deref(), args.limit);
    for Listed { session, trouble } in store.ask(ui, ask)?.1 {
        match trouble {
            None => {
                serde_json::to_writer(ui.out(), &SessionRow::of(&settled(store, session)))?;
                writeln!(ui.out())?;
            }
            Some(reason) => exit = unreadable(ui, &session.id, &reason),
        }
    }
    Ok(exit)
}

fn print_list(
    ui: &mut Ui,
    scene: &Scene,
    store: &Store,
    args: &Args,
) -> Result<Exit, CommandError> {
    let mut exit = Exit::Done;
    let ask = |index: &Index| index.headings(args.agent.as_deref(), args.limit);
    let mut headings = store.ask(ui, ask)?.1;
    for Heading { id, trouble, .. } in &headings {
        if let Some(reason) = trouble {
            exit = unreadable(ui, id, reason);
        }
    }
    headings.retain(|heading| heading.trouble.is_none());
    headings.iter_mut().for_each(|heading| settle(store, heading));
    if headings.is_empty() {
        ui.status("nothing is kept yet; run `steno sync`, `steno import PATH` or `steno record`");
    } else {
        print_table(ui, scene, &headings)?;
    }
    Ok(exit)
}

fn unreadable(ui: &mut Ui, id: &SessionId, reason: &str) -> Exit {
    ui.warning(format_args!("session {id} cannot be read: {reason}"));
    Exit::Failed
}

fn settle(store: &Store, heading: &mut Heading) {
    if heading.status != Status::Running {
        return;
    }
    let mut session = Session::new(heading.id.clone(), heading.agent.clone());
    session.status = Status::Running;
    session.totals.entries = heading.entries;
    session.title = heading.title.take();
    session.started = heading.started;
    let now = settled(store, session);
    (heading.status, heading.entries) = (now.status, now.totals.entries);
    (heading.title, heading.started) = (now.title, now.started);
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

fn print_table(ui: &mut Ui, scene: &Scene, headings: &[Heading]) -> Result<(), CommandError> {
    // A person types the beginning of an id; a pipe gets all of it.
    let ids = headings.iter().map(|heading| &heading.id);
    let shown = if ui.is_terminal() { distinct_length(ids) } else { usize::MAX };
    let this_year = scene.clock.now().in_zone(&scene.zone).wall().year();
    let names = ["STARTED", "AGENT", "STATUS", "ENTRIES", "ID", "TITLE"];
    let mut table = Table::with_capacity(names, headings.len());
    for heading in headings {
        let started = heading.started.map(|at| started(at.in_zone(&scene.zone), this_year));
        let id = heading.id.as_str();
        table.row([
            &started.unwrap_or_default(),
            &heading.agent,
            heading.status.as_str(),
            &heading.entries.to_string(),
            &id[..id.len().min(shown)],
            heading.title.as_deref().unwrap_or_default(),
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
fn distinct_length<'a>(ids: impl Iterator<Item = &'a SessionId>) -> usize {
    let mut ids: Vec<&str> = ids.map(SessionId::as_str).collect();
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
        let length = |ids: &[&str]| {
            let ids: Vec<SessionId> = ids.iter().map(|id| id.parse().unwrap()).collect();
            distinct_length(ids.iter())
        };
        assert_eq!(length(&["0190-abcdef", "0200-abcdef"]), 8);
        assert_eq!(length(&["0190-abcdef", "0190-abcdeg"]), 11);
        assert_eq!(length(&["only"]), 8);
    }
}
