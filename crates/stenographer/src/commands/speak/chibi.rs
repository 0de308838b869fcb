//! `steno as chibi`: what chibi prints of its contexts.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use steno_core::format::chibi::{self, ContextName};

use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::ui::Ui;

/// Show the log of a context.
///
/// A positive N shows the last N entries, a negative one the first, zero all of them.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("log").required(true))]
pub(crate) struct Args {
    /// Show N entries of the current context.
    #[arg(short = 'g', value_name = "N", group = "log", allow_negative_numbers = true)]
    current: Option<String>,
    /// Show N entries of the context that is named.
    #[arg(
        short = 'G',
        value_names = ["CONTEXT", "N"],
        num_args = 2,
        group = "log",
        allow_negative_numbers = true
    )]
    named: Vec<String>,
    /// Show tools in full, and records that are no messages.
    #[arg(short, long)]
    verbose: bool,
    /// The folder that holds `contexts`.
    #[arg(long, value_name = "BASE")]
    dir: Option<PathBuf>,
}

/// Prints the log that was asked for.
pub(crate) fn run(ui: &mut Ui, scene: &Scene, args: Args) -> Result<Exit, CommandError> {
    let base = args.dir.unwrap_or_else(|| scene.home.join(".chibi"));
    let (name, count) = match (args.current, args.named.as_slice()) {
        (Some(count), _) => (current_context(&base), count),
        (None, [name, count]) => (name.clone(), count.clone()),
        (None, _) => return Err(CommandError::usage("no log was asked for")),
    };
    let count =
        count.parse().map_err(|_| CommandError::usage(format!("Invalid number: {count}")))?;
    let dir = context_dir(&base, &name)?;
    let (lines, problems) = chibi::lines(&dir.join("context.jsonl"))?;
    ui.problems(&problems);
    ui.transcript_text(&chibi::render_log(chibi::select(&lines, count), args.verbose))?;
    Ok(Exit::Done)
}

/// The context that chibi itself would use: newer releases note it in `session.json`, older in `state.json`.
fn current_context(base: &Path) -> String {
    let noted = |file: &str, field: &str| {
        let bytes = fs::read(base.join(file)).ok()?;
        let value: Value = serde_json::from_slice(&bytes).ok()?;
        value.get(field)?.as_str().map(str::to_owned)
    };
    noted("session.json", "implied_context")
        .or_else(|| noted("state.json", "current_context"))
        .unwrap_or_else(|| "default".to_owned())
}

fn context_dir(base: &Path, name: &str) -> Result<PathBuf, CommandError> {
    let contexts = base.join("contexts");
    let dir = contexts.join(name.parse::<ContextName>()?.as_str());
    if dir.is_dir() {
        return Ok(dir);
    }
    let error = CommandError::user(format!("no such context: {name}"));
    let there = context_names(&contexts);
    Err(if there.is_empty() {
        error.hint(format!(
            "there are no contexts in {}; name another folder with --dir",
            base.display()
        ))
    } else {
        error.hint(format!("the contexts are {}", there.join(", ")))
    })
}

fn context_names(contexts: &Path) -> Vec<String> {
    let listing = fs::read_dir(contexts).into_iter().flatten().flatten();
    let folders = listing.filter(|item| item.path().is_dir());
    let mut names: Vec<_> =
        folders.filter_map(|item| item.file_name().into_string().ok()).collect();
    names.sort();
    names
}
