//! `steno blame`: which session wrote a line.

pub(crate) mod margin;

use steno_store::blame::agent_trace::{NOTES_REF, trace_record, write_notes};
use steno_store::blame::{
    BlameError, BlamedFile, GitRepository, LineOrigin, LineOriginRow, OriginCertainty,
    RepositoryScope, SessionBlamer,
};
use steno_store::index::Index;

use self::margin::print_margin;
use crate::automatic_sync::AutomaticSyncFlag;
use crate::error::{CommandError, CommandExit};
use crate::file_position::FilePosition;
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::team_access::RemoteFlag;
use crate::ui::{Ui, count_noun};

/// Show which session and prompt wrote a line.
///
/// Asks `git blame` for the commit of each line, and looks for the text in what agents wrote in this repository before
/// that commit. `certain`: only one session wrote the line or its block. `likely`: a session wrote it, but somebody
/// else may have too, or only white space differs. `unknown`: no session is known to have written it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File, FILE:LINE or FILE:FIRST-LAST.
    #[arg(value_name = "FILE[:LINE[-LINE]]", value_hint = clap::ValueHint::FilePath)]
    position: String,
    /// Output format.
    #[arg(long, value_enum, default_value_t = BlameFormat::Terminal)]
    format: BlameFormat,
    /// Write the answers to Git notes (refs/notes/steno), as Agent Trace records.
    #[arg(long)]
    write_notes: bool,
    /// Print JSON Lines, one per line of the file.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    #[command(flatten)]
    pub(crate) sync: AutomaticSyncFlag,
    #[command(flatten)]
    pub(crate) remote: RemoteFlag,
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum BlameFormat {
    /// For people: details of lines, or a margin beside the whole file.
    Terminal,
    /// A trace record of Agent Trace 0.1.0.
    AgentTrace,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let position = FilePosition::parse(&env.cwd, &args.position)?;
    let repository = open_repository(env, &position)?;
    let file = BlamedFile::read(&repository, &position.path, position.span)
        .map_err(|error| add_blame_hint(error, &position))?;
    args.sync.sync_before_answer(ui, env);
    let store = SessionStore::new(env);
    let scope = RepositoryScope::new(&repository, &env.store);
    let (index, origins) = store.query_all(ui, |index| {
        SessionBlamer::new(index, &store.vault, &scope, env.clock.now()).find_origins(&file)
    })?;
    if args.json {
        for origin in &origins {
            serde_json::to_writer(ui.out(), &LineOriginRow::new(&file.path, origin))?;
            writeln!(ui.out())?;
        }
    } else if args.format == BlameFormat::AgentTrace {
        ui.json_text(&format!("{}\n", trace_record(&file, &origins, env.clock.now())))?;
    } else if position.span.is_some() {
        print_details(ui, env, &index, &file.path, &origins)?;
    } else {
        print_margin(ui, env, &index, &origins)?;
    }
    if args.write_notes {
        let commits =
            write_notes(&repository, &origins, env.clock.now()).map_err(CommandError::user)?;
        let commits = count_noun(commits.len() as u64, "commit");
        ui.status(format_args!("notes of {commits} written to {NOTES_REF}"));
    }
    let is_known = |origin: &LineOrigin| origin.certainty != OriginCertainty::Unknown;
    Ok(if origins.iter().any(is_known) { CommandExit::Done } else { CommandExit::Failed })
}

/// Opens the repository that contains a file.
pub(crate) fn open_repository(
    env: &ProcessEnvironment,
    position: &FilePosition,
) -> Result<GitRepository, CommandError> {
    let folder = position.path.parent().filter(|folder| folder.is_dir()).unwrap_or(&env.cwd);
    GitRepository::containing(folder).map_err(|error| add_blame_hint(error, position))
}

fn add_blame_hint(error: BlameError, position: &FilePosition) -> CommandError {
    let hint = match &error {
        BlameError::NoRepository(_) => "run it on a file in a Git repository",
        BlameError::GitNotStarted(_) => "install git, or add it to PATH",
        BlameError::File { .. } if !position.path.exists() => {
            "give an existing file, such as src/main.rs:12"
        }
        BlameError::GitFailed { message, .. } if message.contains("has only") => {
            "give a line that the file has"
        }
        BlameError::GitFailed { message, .. } if message.contains("no such path") => {
            "add the file to Git first; `steno log FILE` lists sessions that edited it"
        }
        _ => return CommandError::user(error),
    };
    CommandError::user(error).hint(hint)
}

/// Prints the origin of lines. Lines with the same origin are printed together.
fn print_details(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    index: &Index,
    file: &str,
    origins: &[LineOrigin],
) -> Result<(), CommandError> {
    let is_same = |a: &LineOrigin, b: &LineOrigin| {
        a.entry == b.entry
            && a.certainty == b.certainty
            && a.evidence == b.evidence
            && a.line.commit == b.line.commit
    };
    for (at, lines) in origins.chunk_by(is_same).enumerate() {
        let (first, last) = (&lines[0].line, &lines[lines.len() - 1].line);
        let range = match lines {
            [_] => format!("{file}:{}", first.number),
            _ => format!("{file}:{}-{}", first.number, last.number),
        };
        let gap = if at > 0 { "\n" } else { "" };
        ui.listing_text(&format!("{gap}{range}: {}\n", lines[0].certainty.as_str()))?;
        let mut facts: Vec<(&str, String)> = Vec::new();
        if let Some(entry) = &lines[0].entry {
            let time = entry.time.map(|time| time.in_zone(&env.zone).date_and_clock());
            let model = entry.model.clone();
            let words = [Some(entry.agent.clone()), time, model];
            facts.push(("by", words.into_iter().flatten().collect::<Vec<_>>().join(", ")));
            let prompt = entry.prompt.as_ref().map(|prompt| prompt_line(&prompt.text));
            facts.extend(prompt.map(|prompt| ("prompt", prompt)));
            let id = margin::short_id(index, &entry.session)?;
            facts.push(("show", format!("steno show {id}:{}", entry.number)));
        }
        let commit = first.commit.as_deref().map_or("not committed", |commit| &commit[..10]);
        facts.push(("commit", commit.to_owned()));
        facts.extend(lines[0].evidence.iter().map(|reason| ("because", reason.clone())));
        for (name, value) in facts {
            ui.listing_text(&format!("  {name:8}{value}\n"))?;
        }
    }
    Ok(())
}

/// The first line of a prompt.
pub(crate) fn prompt_line(text: &str) -> String {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}
