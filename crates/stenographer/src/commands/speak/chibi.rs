//! `steno as chibi`: chibi's commands on its contexts, as far as they need no model.

mod compaction;
mod display;
mod inbox;

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::Value;
use steno_core::format::chibi::{Context, ContextName, LogStyle};

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::ui::Ui;

/// Show, shorten and message chibi's contexts.
///
/// Lower-case options work on the current context, upper-case ones on the context that is named.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("action").required(true))]
pub(crate) struct Args {
    /// Show N log entries of the current context: a positive N the last, a negative one the first, zero all.
    #[arg(short = 'g', value_name = "N", group = "action", allow_negative_numbers = true)]
    log: Option<String>,
    /// Show N log entries of a context.
    #[arg(short = 'G', value_names = ["CONTEXT", "N"], num_args = 2, group = "action", allow_negative_numbers = true)]
    log_of: Vec<String>,
    /// Show what the current context is about.
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
    /// Take the messages that wait for any context into it, and print them as the prompt that a model should get.
    #[arg(short = 'b', group = "action")]
    inboxes: bool,
    /// Take the messages that wait for a context into it, and print them as the prompt that a model should get.
    #[arg(short = 'B', value_name = "CONTEXT", group = "action")]
    inbox_of: Option<String>,
    /// Call a tool: `send_message` with {"to": CONTEXT, "content": TEXT} leaves a message for a context.
    #[arg(short = 'P', value_names = ["TOOL", "JSON"], num_args = 2, group = "action")]
    tool: Vec<String>,
    /// Archive the current context's history.
    #[arg(short = 'a', group = "action")]
    archive: bool,
    /// Archive a context's history.
    #[arg(short = 'A', value_name = "CONTEXT", group = "action")]
    archive_of: Option<String>,
    /// Compact the current context: older entries move to the archive, a summary takes their place.
    #[arg(short = 'z', group = "action")]
    compact: bool,
    /// Compact a context.
    #[arg(short = 'Z', value_name = "CONTEXT", group = "action")]
    compact_of: Option<String>,
    /// With -z or -Z: what takes the place of the entries.
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// With -z or -Z: how many of the last entries stay.
    #[arg(long, value_name = "N", default_value_t = 0)]
    keep: usize,
    /// Show tools in full, records that are no messages, and what was done.
    #[arg(short, long)]
    verbose: bool,
    /// Which release's look to print.
    #[arg(long, value_enum, default_value_t = ChibiStyle::Documented)]
    style: ChibiStyle,
    /// The folder that holds `contexts`.
    #[arg(long, value_name = "BASE")]
    dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ChibiStyle {
    /// As up to v0.5.0.
    Documented,
    /// As v0.10.10.
    #[value(name = "v0.10.10")]
    V0_10_10,
}

impl ChibiStyle {
    fn log_style(self) -> LogStyle {
        match self {
            ChibiStyle::Documented => LogStyle::Documented,
            ChibiStyle::V0_10_10 => LogStyle::V0_10_10,
        }
    }
}

/// The folder of all contexts, and how it was asked about.
struct ChibiContexts<'a> {
    base: PathBuf,
    env: &'a ProcessEnvironment,
    style: ChibiStyle,
    verbose: bool,
}

/// Does what was asked for.
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

/// Does what changes a context.
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
    Err(CommandError::usage("nothing was asked for"))
}

impl ChibiContexts<'_> {
    /// The context that chibi itself would use: newer releases note it in `session.json`, older in `state.json`.
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

    /// The folder of a context that is there.
    fn existing_folder(&self, name: &str) -> Result<PathBuf, CommandError> {
        let dir = self.context_folder(name)?;
        if dir.is_dir() {
            return Ok(dir);
        }
        let error = CommandError::user(format!("no such context: {name}"));
        let there = self.context_names();
        Err(if there.is_empty() {
            error.hint(format!(
                "there are no contexts in {}; name another folder with --dir",
                self.base.display()
            ))
        } else {
            error.hint(format!("the contexts are {}", there.join(", ")))
        })
    }

    /// The folder of a context, whether it is there or not.
    fn context_folder(&self, name: &str) -> Result<PathBuf, CommandError> {
        Ok(self.base.join("contexts").join(name.parse::<ContextName>()?.as_str()))
    }

    fn open_context(&self, dir: &Path) -> Result<Context, CommandError> {
        Ok(Context::open(dir, self.env.clock.clone())?)
    }

    /// The names of all contexts.
    fn context_names(&self) -> Vec<String> {
        let listing = fs::read_dir(self.base.join("contexts")).into_iter().flatten().flatten();
        let folders = listing.filter(|item| item.path().is_dir());
        let names = folders.filter_map(|item| item.file_name().into_string().ok());
        let mut names: Vec<_> = names.filter(|name| name.parse::<ContextName>().is_ok()).collect();
        names.sort();
        names
    }

    /// Prints what chibi says only when it is asked for details.
    fn print_if_verbose(&self, ui: &mut Ui, text: &str) {
        if self.verbose {
            ui.print_note(format_args!("[{text}]"));
        }
    }
}
