//! `steno show --commit`: the sessions that wrote what a commit added.

use serde::Serialize;
use steno_model::SessionId;
use steno_store::blame::{
    BlamedFile, GitRepository, LineOrigin, OriginCertainty, OriginEntry, RepositoryScope,
    SessionBlamer,
};
use steno_store::index::Index;

use crate::commands::blame::margin::short_id;
use crate::commands::blame::prompt_line;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::text_table::TextTable;
use crate::ui::{Ui, count_noun};

/// The part that one entry has in a commit. Also one line of `--json`.
#[derive(Debug, Serialize)]
struct CommitPart {
    commit: String,
    session: Option<SessionId>,
    agent: Option<String>,
    entry: Option<u64>,
    link: Option<String>,
    prompt: Option<String>,
    files: Vec<String>,
    certain_lines: u64,
    likely_lines: u64,
    unknown_lines: u64,
}

/// Prints which entries wrote the lines that a commit added.
pub(super) fn print_commit(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    commit: &str,
    is_json: bool,
) -> Result<CommandExit, CommandError> {
    let repository = GitRepository::containing(&env.cwd)
        .map_err(|error| CommandError::user(error).hint("run it in a Git repository"))?;
    let files = BlamedFile::read_commit(&repository, commit).map_err(|error| {
        CommandError::user(error).hint("give a commit, such as HEAD or the beginning of its hash")
    })?;
    let store = SessionStore::new(env);
    let scope = RepositoryScope::new(&repository, &env.store);
    let (index, found) = store.query_all(ui, |index| {
        let mut blamer = SessionBlamer::new(index, &store.vault, &scope, env.clock.now());
        files.iter().map(|file| Ok((file.path.clone(), blamer.find_origins(file)?))).collect()
    })?;
    let found: Vec<(String, Vec<LineOrigin>)> = found;
    let parts = collect_parts(&found);
    if is_json {
        for part in &parts {
            serde_json::to_writer(ui.out(), part)?;
            writeln!(ui.out())?;
        }
    } else {
        print_parts(ui, &index, &parts)?;
    }
    let is_known = parts.iter().any(|part| part.session.is_some());
    if !is_known {
        ui.status("no session is known to have written a line of this commit");
    }
    Ok(if is_known { CommandExit::Done } else { CommandExit::Failed })
}

/// Sums the lines by entry, in the order of their first line; lines of no session come last.
fn collect_parts(found: &[(String, Vec<LineOrigin>)]) -> Vec<CommitPart> {
    let mut parts: Vec<CommitPart> = Vec::new();
    for (path, origins) in found {
        for origin in origins {
            let link = origin.entry.as_ref().map(OriginEntry::link);
            let place = parts.iter().position(|part| part.link == link);
            let place = place.unwrap_or_else(|| {
                parts.push(CommitPart::new(origin));
                parts.len() - 1
            });
            let part = &mut parts[place];
            match origin.certainty {
                OriginCertainty::Certain => part.certain_lines += 1,
                OriginCertainty::Likely => part.likely_lines += 1,
                OriginCertainty::Unknown => part.unknown_lines += 1,
            }
            if !part.files.contains(path) {
                part.files.push(path.clone());
            }
        }
    }
    parts.sort_by_key(|part| part.session.is_none());
    parts
}

impl CommitPart {
    fn new(origin: &LineOrigin) -> Self {
        let entry = origin.entry.as_ref();
        let prompt = entry.and_then(|entry| entry.prompt.as_ref());
        Self {
            commit: origin.line.commit.clone().unwrap_or_default(),
            session: entry.map(|entry| entry.session.clone()),
            agent: entry.map(|entry| entry.agent.clone()),
            entry: entry.map(|entry| entry.number),
            link: entry.map(OriginEntry::link),
            prompt: prompt.map(|prompt| prompt.text.clone()),
            files: Vec::new(),
            certain_lines: 0,
            likely_lines: 0,
            unknown_lines: 0,
        }
    }
}

fn print_parts(ui: &mut Ui, index: &Index, parts: &[CommitPart]) -> Result<(), CommandError> {
    let mut table = TextTable::new(["CERTAIN", "LIKELY", "AGENT", "ENTRY", "PROMPT"]);
    for part in parts {
        let (Some(session), Some(number)) = (&part.session, part.entry) else { continue };
        let id = short_id(index, session)?;
        table.add_row([
            part.certain_lines.to_string(),
            part.likely_lines.to_string(),
            part.agent.clone().unwrap_or_default(),
            format!("{id}:{number}"),
            part.prompt.as_deref().map(prompt_line).unwrap_or_default(),
        ]);
    }
    if parts.iter().any(|part| part.session.is_some()) {
        ui.listing_text(&table.render(ui.width()))?;
    }
    let unknown: u64 = parts.iter().map(|part| part.unknown_lines).sum();
    if unknown > 0 {
        ui.status(format_args!("{} of no known session", count_noun(unknown, "line")));
    }
    Ok(())
}
