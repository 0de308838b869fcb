//! `steno annotate`: adds, lists and removes notes on sessions and entries.

use std::collections::HashMap;

use steno_store::transcript::ReadTranscript;
use steno_store::view::json_rows::NoteRow;
use steno_vault::SessionDir;
use steno_vault::notes::Note;

use super::show::{no_such_entry_error, parse_hit};
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::text_table::TextTable;
use crate::ui::Ui;

/// Characters of a note's id in lists.
const SHORT_ID_CHARS: usize = 8;

/// Add a note to a session or an entry; without text, list notes.
///
/// Notes do not change the session. `show`, `serve` and `export` print them with their session. Words that begin with
/// `#` are tags. Prints the note's id.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Session id, unique prefix or `latest`; `:N` selects entry N.
    #[arg(value_name = "ID[:N]")]
    session: Option<String>,
    /// Text of the note.
    #[arg(value_name = "TEXT")]
    text: Vec<String>,
    /// Remove the note with this id.
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
        None => store.vault.list_sessions()?,
    };
    if let Some(name) = &args.remove {
        return remove_note(env, &sessions, name);
    }
    if args.text.is_empty() {
        return list_notes(ui, env, args, &sessions);
    }
    let note = add_note(env, args, &sessions[0])?;
    if args.json {
        serde_json::to_writer(ui.out(), &NoteRow::from_note(&sessions[0], &note))?;
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
            let entries = session.read_transcript()?.entries;
            let entry =
                entries.get(number).ok_or_else(|| no_such_entry_error(name, entries.len()))?;
            Some(entry.entry_id)
        }
        None => None,
    };
    Ok(session.add_note(entry, &args.text.join(" "), &env.clock)?)
}

/// Removes the note with this id prefix.
fn remove_note(
    env: &ProcessEnvironment,
    sessions: &[SessionDir],
    name: &str,
) -> Result<CommandExit, CommandError> {
    let mut found = Vec::new();
    for session in sessions {
        let notes = session.read_notes()?.all.into_iter();
        let named = notes.filter(|note| note.id.to_string().starts_with(name));
        found.extend(named.map(|note| (session, note.id)));
    }
    match found.as_slice() {
        [(session, id)] => session.remove_note(*id, &env.clock)?,
        [] => {
            let error = CommandError::user(format!("no such note: {name}"));
            return Err(error.hint("run `steno annotate` to list the notes"));
        }
        _ => return Err(CommandError::user(format!("ambiguous note id: {name}"))),
    };
    Ok(CommandExit::Done)
}

fn list_notes(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
    sessions: &[SessionDir],
) -> Result<CommandExit, CommandError> {
    let is_selected = |note: &Note| {
        let tag = args.tag.as_deref().map(|tag| tag.trim_start_matches('#'));
        tag.is_none_or(|tag| note.tags().any(|one| one == tag))
    };
    let mut table = TextTable::new(["NOTE", "AT", "ABOUT", "TEXT"]);
    let mut is_empty = true;
    for session in sessions {
        let notes = session.read_notes()?;
        ui.report_problems(&notes.problems);
        let selected: Vec<&Note> = notes.all.iter().filter(|note| is_selected(note)).collect();
        is_empty &= selected.is_empty();
        if args.json {
            for note in selected {
                serde_json::to_writer(ui.out(), &NoteRow::from_note(session, note))?;
                writeln!(ui.out())?;
            }
        } else if !selected.is_empty() {
            for (note, about) in selected.iter().zip(note_subjects(session, &selected)?) {
                let at = note.at.in_zone(&env.zone).date_and_clock();
                let name = note.id.to_string()[..SHORT_ID_CHARS].to_owned();
                table.add_row([name, at, about, note.text.clone()]);
            }
        }
    }
    if is_empty {
        ui.status("no notes");
    } else if !args.json {
        let text = table.render(ui.width());
        ui.listing_text(&text)?;
    }
    Ok(CommandExit::Done)
}

/// Returns the subject of each note, in the form that `steno show` accepts.
fn note_subjects(session: &SessionDir, notes: &[&Note]) -> Result<Vec<String>, CommandError> {
    let mut numbers = HashMap::new();
    if notes.iter().any(|note| note.entry.is_some()) {
        let entries = session.read_transcript()?.entries;
        numbers.extend(entries.iter().enumerate().map(|(number, entry)| (entry.entry_id, number)));
    }
    let number = |note: &&Note| note.entry.and_then(|entry| numbers.get(&entry));
    let subject = |note| match number(note) {
        Some(number) => format!("{}:{number}", session.id()),
        None => session.id().to_string(),
    };
    Ok(notes.iter().map(subject).collect())
}
