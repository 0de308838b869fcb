//! `steno as chibi`: chibi's commands on its contexts, except those that need a model.

mod compaction;
mod display;
mod inbox;

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::Value;
use steno_seeds::chibi::{ChibiContext, ChibiLogStyle, ContextName};

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::ui::Ui;

/// Show, compact and message chibi's contexts.
///
/// Lower-case options work on the current context, upper-case ones on a named context.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("action").required(true))]
pub(crate) struct Args {
    /// Show N log entries of the current context: the last N, for a negative N the first, for zero all.
    #[arg(short = 'g', value_name = "N", group = "action", allow_negative_numbers = true)]
    log: Option<String>,
    /// Show N log entries of a context.
    #[arg(short = 'G', value_names = ["CONTEXT", "N"], num_args = 2, group = "action", allow_negative_numbers = true)]
    log_of: Vec<String>,
    /// Show facts about the current context.
    #[arg(short = 'l', group = "action")]
    info: bool,
    /// List all contexts.
    #[arg(short = 'L', group = "action")]
    list: bool,
    /// Show a file of the current context: system_prompt, reflection, todos, goals or list.
    #[arg(short = 'n', value_name = "THING", group = "action")]
    inspect: Option<String>,
    /// Show a file of a context.
    #[arg(short = 'N', value_names = ["CONTEXT", "THING"], num_args = 2, group = "action")]
    inspect_of: Vec<String>,
    /// Process the inboxes of all contexts: record waiting messages, and print them as the prompt for a model.
    #[arg(short = 'b', group = "action")]
    inboxes: bool,
    /// Process the inbox of a context: record waiting messages, and print them as the prompt for a model.
    #[arg(short = 'B', value_name = "CONTEXT", group = "action")]
    inbox_of: Option<String>,
    /// Call a tool: `send_message` with {"to": CONTEXT, "content": TEXT} adds a message to the inbox of a context.
    #[arg(short = 'P', value_names = ["TOOL", "JSON"], num_args = 2, group = "action")]
    tool: Vec<String>,
    /// Archive the current context's history.
    #[arg(short = 'a', group = "action")]
    archive: bool,
    /// Archive a context's history.
    #[arg(short = 'A', value_name = "CONTEXT", group = "action")]
    archive_of: Option<String>,
    /// Compact the current context: move older entries to the archive and add a summary.
    #[arg(short = 'z', group = "action")]
    compact: bool,
    /// Compact a context.
    #[arg(short = 'Z', value_name = "CONTEXT", group = "action")]
    compact_of: Option<String>,
    /// With -z or -Z: text of the summary.
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// With -z or -Z: number of last entries to keep.
    #[arg(long, value_name = "N", default_value_t = 0)]
    keep: usize,
    /// Show tools in full, records other than messages, and progress.
    #[arg(short, long)]
    verbose: bool,
    /// Release of chibi with this output style.
    #[arg(long, value_enum, default_value_t = ChibiStyle::Documented)]
    style: ChibiStyle,
    /// Folder that contains `contexts`.
    #[arg(long, value_name = "BASE")]
    dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ChibiStyle {
    /// Up to v0.5.0.
    Documented,
    /// v0.10.10.
    #[value(name = "v0.10.10")]
    V0_10_10,
}

impl ChibiStyle {
    fn log_style(self) -> ChibiLogStyle {
        match self {
            ChibiStyle::Documented => ChibiLogStyle::Documented,
            ChibiStyle::V0_10_10 => ChibiLogStyle::V0_10_10,
        }
    }
}

/// The folder of all contexts, and the output options.
struct ChibiContexts<'a> {
    base: PathBuf,
    env: &'a ProcessEnvironment,
    style: ChibiStyle,
    verbose: bool,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: Args,
) -> Result<CommandExit, CommandError> {
    let base = args.dir.clone().unwrap_or_else(|| env.home.join(".chibi"));
    let contexts = ChibiContexts { base, env, style: args.style, verbose: args.verbose };
    let current = contexts.current_name();
    if let Some(count) = &args.log {
        return contexts.show_log(ui, &current, count);
    }
    if let [name, count] = args.log_of.as_slice() {
        return contexts.show_log(ui, name, count);
    }
    if args.info {
        return contexts.show_info(ui, &current);
    }
    if args.list {
        return contexts.list_contexts(ui, &current);
    }
    if let Some(thing) = &args.inspect {
        return contexts.inspect_item(ui, &current, thing);
    }
    if let [name, thing] = args.inspect_of.as_slice() {
        return contexts.inspect_item(ui, name, thing);
    }
    run_change(ui, &contexts, &args)
}

/// Runs a command that changes a context.
fn run_change(
    ui: &mut Ui,
    contexts: &ChibiContexts,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let current = contexts.current_name();
    if args.inboxes {
        return contexts.take_inboxes(ui);
    }
    if let Some(name) = &args.inbox_of {
        return contexts.take_inbox(ui, name);
    }
    if let [tool, input] = args.tool.as_slice() {
        return contexts.call_tool(ui, tool, input);
    }
    if args.archive || args.archive_of.is_some() {
        return contexts.archive_context(ui, args.archive_of.as_deref().unwrap_or(&current));
    }
    if args.compact || args.compact_of.is_some() {
        let compaction = compaction::CompactionRequest {
            name: args.compact_of.as_deref().unwrap_or(&current),
            is_named: args.compact_of.is_some(),
            summary: args.summary.as_deref(),
            keep: args.keep,
        };
        return contexts.compact_context(ui, &compaction);
    }
    Err(CommandError::usage("no action given"))
}

impl ChibiContexts<'_> {
    /// Returns chibi's current context: newer releases store it in `session.json`, older ones in `state.json`.
    fn current_name(&self) -> String {
        let noted = |file: &str, field: &str| {
            let bytes = fs::read(self.base.join(file)).ok()?;
            let value: Value = serde_json::from_slice(&bytes).ok()?;
            value.get(field)?.as_str().map(str::to_owned)
        };
        noted("session.json", "implied_context")
            .or_else(|| noted("state.json", "current_context"))
            .unwrap_or_else(|| "default".to_owned())
    }

    /// Returns the folder of an existing context.
    fn existing_folder(&self, name: &str) -> Result<PathBuf, CommandError> {
        let dir = self.context_folder(name)?;
        if dir.is_dir() {
            return Ok(dir);
        }
        let error = CommandError::user(format!("no such context: {name}"));
        let known = self.context_names();
        Err(if known.is_empty() {
            error.hint(format!(
                "no contexts in {}; use --dir for another folder",
                self.base.display()
            ))
        } else {
            error.hint(format!("the contexts are {}", known.join(", ")))
        })
    }

    /// Returns the folder of a context; it may not exist yet.
    fn context_folder(&self, name: &str) -> Result<PathBuf, CommandError> {
        Ok(self.base.join("contexts").join(name.parse::<ContextName>()?.as_str()))
    }

    fn open_context(&self, dir: &Path) -> Result<ChibiContext, CommandError> {
        Ok(ChibiContext::open(dir, self.env.clock.clone())?)
    }

    /// Returns the names of all contexts, sorted.
    fn context_names(&self) -> Vec<String> {
        let listing = fs::read_dir(self.base.join("contexts")).into_iter().flatten().flatten();
        let folders = listing.filter(|item| item.path().is_dir());
        let names = folders.filter_map(|item| item.file_name().into_string().ok());
        let mut names: Vec<_> = names.filter(|name| name.parse::<ContextName>().is_ok()).collect();
        names.sort();
        names
    }

    /// Prints what chibi prints only with `--verbose`.
    fn print_if_verbose(&self, ui: &mut Ui, text: &str) {
        if self.verbose {
            ui.print_note(format_args!("[{text}]"));
        }
    }
}
