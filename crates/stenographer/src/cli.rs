//! The command line: what the user typed, and which command it goes to.

use std::ffi::OsString;
use std::path::Path;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use steno_acp::child::raise_open_file_limit;

use crate::browser;
use crate::commands;
use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::ui::Ui;

/// The court reporter for AI agents.
///
/// With no command, on a terminal, it is a browser of all sessions that are kept.
#[derive(Debug, Parser)]
#[command(name = "steno", version, about, after_help = EXIT_CODES)]
struct Cli {
    /// Print results, warnings and errors only.
    #[arg(long, short, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 nothing found or bad input, 2 wrong command line";

#[derive(Debug, Subcommand)]
enum Command {
    Run(commands::run::Args),
    Exec(commands::exec::Args),
    Gateway(commands::gateway::Args),
    Record(commands::record::Args),
    Acp(commands::acp::Args),
    Sync(commands::sync::Args),
    Watch(commands::watch::Args),
    Import(commands::import::Args),
    List(commands::list::Args),
    Search(commands::search::Args),
    Cost(commands::cost::Args),
    Stats(commands::stats::Args),
    Statusline(commands::statusline::Args),
    Show(commands::show::Args),
    Annotate(commands::annotate::Args),
    Serve(commands::serve::Args),
    Diff(commands::diff::Args),
    Export(commands::export::Args),
    Convert(commands::convert::Args),
    Inspect(commands::inspect::Args),
    Replay(commands::replay::Args),
    Restore(commands::restore::Args),
    Resume(commands::resume::Args),
    Verify(commands::verify::Args),
    Reindex(commands::reindex::Args),
    #[command(flatten)]
    Thread(commands::thread::Command),
    Hooks(commands::hooks::Args),
    Hook(commands::hook::Args),
    /// Speak another system's command line.
    #[command(subcommand)]
    As(commands::speak::Language),
    Completions(commands::completions::Args),
    #[command(hide = true)]
    Child(commands::child::Args),
}

/// Runs what the command line asks for.
pub(crate) fn run(ui: &mut Ui, scene: &Scene) -> Result<Exit, CommandError> {
    let args: Vec<OsString> = std::env::args_os().collect();
    let parsed = Cli::command().try_get_matches_from(as_called(args)).and_then(|matches| {
        let is_json = prints_json(&matches);
        Ok((Cli::from_arg_matches(&matches)?, is_json))
    });
    let (cli, is_json) = match parsed {
        Err(error) if is_hook() && error.use_stderr() => return Ok(Exit::Done),
        other => other.unwrap_or_else(|error| error.exit()),
    };
    ui.set_quiet(cli.quiet);
    if is_json {
        ui.set_json_output();
    }
    if Scene::variable("NO_COLOR").is_some() {
        ui.set_plain();
    }
    let Some(command) = cli.command else { return browse(ui, scene) };
    if command.takes_in_much() {
        use_small_pages();
    }
    if command.opens_many_files() {
        raise_open_file_limit();
    }
    let exit = match command {
        Command::Run(args) => commands::run::run(ui, scene, &args),
        Command::Exec(args) => commands::exec::run(ui, scene, &args),
        Command::Gateway(args) => commands::gateway::run(ui, scene, args),
        Command::Record(args) => commands::record::run(ui, scene, args),
        Command::Acp(args) => commands::acp::run(scene, &args),
        Command::Sync(args) => commands::sync::run(ui, scene, &args),
        Command::Watch(args) => commands::watch::run(ui, scene, &args),
        Command::Import(args) => commands::import::run(ui, scene, &args),
        Command::List(args) => commands::list::run(ui, scene, &args),
        Command::Search(args) => commands::search::run(ui, scene, &args),
        Command::Cost(args) => commands::cost::run(ui, scene, &args),
        Command::Stats(args) => commands::stats::run(ui, scene, &args),
        Command::Statusline(args) => commands::statusline::run(ui, scene, &args),
        Command::Show(args) => commands::show::run(ui, scene, &args),
        Command::Annotate(args) => commands::annotate::run(ui, scene, &args),
        Command::Serve(args) => commands::serve::run(ui, scene, &args),
        Command::Diff(args) => commands::diff::run(ui, scene, &args),
        Command::Export(args) => commands::export::run(ui, scene, &args),
        Command::Convert(args) => commands::convert::run(ui, scene, &args),
        Command::Inspect(args) => commands::inspect::run(ui, scene, &args),
        Command::Replay(args) => commands::replay::run(ui, scene, &args),
        Command::Restore(args) => commands::restore::run(ui, scene, &args),
        Command::Resume(args) => commands::resume::run(ui, scene, &args),
        Command::Verify(args) => commands::verify::run(ui, scene, &args),
        Command::Reindex(args) => commands::reindex::run(ui, scene, &args),
        Command::Thread(command) => commands::thread::run(ui, scene, &command),
        Command::Hooks(args) => commands::hooks::run(ui, scene, &args),
        Command::Hook(args) => commands::hook::run(ui, scene, &args),
        Command::As(language) => commands::speak::run(ui, scene, language),
        Command::Child(args) => commands::child::run(&args),
        Command::Completions(args) => commands::completions::run(ui, Cli::command(), &args),
    }?;
    ui.flush()?;
    Ok(ui.settle(exit))
}

impl Command {
    /// Whether it may read gigabytes, and starts no other program.
    fn takes_in_much(&self) -> bool {
        use Command::{Cost, Import, Inspect, Reindex, Sync, Watch};
        matches!(self, Sync(_) | Watch(_) | Import(_) | Inspect(_) | Reindex(_) | Cost(_))
    }

    /// Whether it may have more connections, files or folders open at a time than is usual.
    fn opens_many_files(&self) -> bool {
        use Command::{Exec, Gateway, Serve, Sync, Watch};
        matches!(self, Exec(_) | Gateway(_) | Serve(_) | Sync(_) | Watch(_))
    }
}

/// Whether the command was called with `--json`. Other systems' commands print as those systems do.
fn prints_json(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some(("as", _)) => false,
        Some((_, inner)) => {
            matches!(inner.try_get_one::<bool>("json"), Ok(Some(true))) || prints_json(inner)
        }
        None => false,
    }
}

/// Has the system give memory in small pages only. The allocator asks for huge ones, of which a part that is free cannot
/// be given back; a program that is started would inherit this.
fn use_small_pages() {
    #[cfg(target_os = "linux")]
    // Where that is not allowed, more memory is taken.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// The browser where a person sits, and what the program can do where none does.
fn browse(ui: &mut Ui, scene: &Scene) -> Result<Exit, CommandError> {
    if ui.is_interactive() {
        return browser::run(ui, scene);
    }
    ui.note(Cli::command().render_help().to_string().trim_end());
    Ok(Exit::Usage)
}

/// Whether an agent calls: whatever happens, it must be let go on.
pub(crate) fn is_hook() -> bool {
    std::env::args_os().nth(1).is_some_and(|command| command == "hook")
}

/// Called by the name `devflow`, `chibi` or `leslie`, the program speaks that command line.
fn as_called(args: Vec<OsString>) -> Vec<OsString> {
    let name =
        args.first().and_then(|arg| Path::new(arg).file_stem()).and_then(|stem| stem.to_str());
    match name {
        Some(language @ ("devflow" | "chibi" | "leslie")) => {
            let prefix = ["steno", "as", language].map(OsString::from);
            prefix.into_iter().chain(args.into_iter().skip(1)).collect()
        }
        _ => args,
    }
}
