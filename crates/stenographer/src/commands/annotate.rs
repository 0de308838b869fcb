//! `steno annotate`: notes about sessions and their entries.

use std::collections::HashMap;

use steno_core::vault::SessionDir;
use steno_core::vault::notes::Note;
use steno_core::view::answer::NoteRow;

use super::show::{no_such_entry_error, parse_hit};
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::text_table::TextTable;
use crate::ui::Ui;

/// How many characters of a note's name are shown.
const SHORT_ID_CHARS: usize = 8;

/// Note something about a session or an entry; without a text, list notes.
///
/// A note stands beside what is kept and changes none of it. It is shown with its session by `show`, `serve` and
/// `export`. Words that begin with `#` are its tags. Prints the name of the note.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, the beginning of one, or `latest`; with `:N`, entry N of it.
    #[arg(value_name = "ID[:N]")]
    session: Option<String>,
    /// What to note.
    #[arg(value_name = "TEXT")]
    text: Vec<String>,
    /// Take the note of this name back.
    #[arg(long, value_name = "NOTE", conflicts_with_all = ["text", "tag", "json"])]
    remove: Option<String>,
    /// List only notes with this tag.
    #[arg(long, value_name = "TAG", conflicts_with = "text")]
    tag: Option<String>,
    /// Print notes as JSON Lines.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let store = SessionStore::new(env);
    let sessions = match &args.session {
        Some(name) => {
            vec![store.find_session(parse_hit(name).map_or(name.as_str(), |(name, _)| name))?]
        }
        None => store.vault.sessions()?,
    };
    if let Some(name) = &args.remove {
        return remove_note(env, &sessions, name);
    }
    if args.text.is_empty() {
        return list_notes(ui, env, args, &sessions);
    }
    let note = add_note(env, args, &sessions[0])?;
    if args.json {
        serde_json::to_writer(ui.out(), &NoteRow::of(&sessions[0], &note))?;
        writeln!(ui.out())?;
    } else {
        writeln!(ui.out(), "{}", note.id)?;
    }
    Ok(CommandExit::Done)
}

fn add_note(
    env: &ProcessEnvironment,
    args: &Args,
    session: &SessionDir,
) -> Result<Note, CommandError> {
    let name = args.session.as_deref().unwrap_or_default();
    let entry = match parse_hit(name) {
        Some((_, number)) => {
            let entries = session.read()?.entries;
            let entry =
                entries.get(number).ok_or_else(|| no_such_entry_error(name, entries.len()))?;
            Some(entry.entry_id)
        }
        None => None,
    };
    Ok(session.annotate(entry, &args.text.join(" "), &env.clock)?)
}

/// Takes back the one note whose name begins so.
fn remove_note(
    env: &ProcessEnvironment,
    sessions: &[SessionDir],
    name: &str,
) -> Result<CommandExit, CommandError> {
    let mut found = Vec::new();
    for session in sessions {
        let notes = session.notes()?.all.into_iter();
        let named = notes.filter(|note| note.id.to_string().starts_with(name));
        found.extend(named.map(|note| (session, note.id)));
    }
    match found.as_slice() {
        [(session, id)] => session.remove_note(*id, &env.clock)?,
        [] => {
            let error = CommandError::user(format!("no note of this name: {name}"));
            return Err(error.hint("run `steno annotate` to see the notes that there are"));
        }
        _ => return Err(CommandError::user(format!("several notes begin with: {name}"))),
    };
    Ok(CommandExit::Done)
}

fn list_notes(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
    sessions: &[SessionDir],
) -> Result<CommandExit, CommandError> {
    let is_wanted = |note: &Note| {
        let tag = args.tag.as_deref().map(|tag| tag.trim_start_matches('#'));
        tag.is_none_or(|tag| note.tags().any(|one| one == tag))
    };
    let mut table = TextTable::new(["NOTE", "AT", "ABOUT", "TEXT"]);
    let mut is_empty = true;
    for session in sessions {
        let notes = session.notes()?;
        ui.report_problems(&notes.problems);
        let wanted: Vec<&Note> = notes.all.iter().filter(|note| is_wanted(note)).collect();
        is_empty &= wanted.is_empty();
        if args.json {
            for note in wanted {
                serde_json::to_writer(ui.out(), &NoteRow::of(session, note))?;
                writeln!(ui.out())?;
            }
        } else if !wanted.is_empty() {
            for (note, about) in wanted.iter().zip(note_subjects(session, &wanted)?) {
                let at = note.at.in_zone(&env.zone).date_and_clock();
                let name = note.id.to_string()[..SHORT_ID_CHARS].to_owned();
                table.add_row([name, at, about, note.text.clone()]);
            }
        }
    }
    if is_empty {
        ui.status("nothing is noted");
    } else if !args.json {
        let text = table.render(ui.width());
        ui.listing_text(&text)?;
    }
    Ok(CommandExit::Done)
}

/// What each note speaks of, as one would name it to `steno show`.
fn note_subjects(session: &SessionDir, notes: &[&Note]) -> Result<Vec<String>, CommandError> {
    let mut numbers = HashMap::new();
    if notes.iter().any(|note| note.entry.is_some()) {
        let entries = session.read()?.entries;
        numbers.extend(entries.iter().enumerate().map(|(number, entry)| (entry.entry_id, number)));
    }
    let number = |note: &&Note| note.entry.and_then(|entry| numbers.get(&entry));
    let place = |note| match number(note) {
        Some(number) => format!("{}:{number}", session.id()),
        None => session.id().to_string(),
    };
    Ok(notes.iter().map(place).collect())
}
