//! `steno as leslie`: leslie's command line, on the `.leslie` folder of the working folder.
//!
//! Responses and errors are one JSON object on standard output. Like leslie, it ignores unknown flags, but warns on
//! standard error; if ignoring would do something else than requested, it returns an error.

mod config;
mod flags;
mod format;
mod init;
mod objective;
mod relation;
mod response;
mod spawn;
mod thread;
mod transcript;
mod worker;

use std::ffi::OsString;

use steno_model::Timestamp;
use steno_seeds::thread::{IdSource, ThreadStore};

use self::flags::LeslieFlags;
use self::format::LeslieFormat;
use self::response::{LeslieFailure, LeslieResponse};
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::thread_run::finish_killed_runs;
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// Command and flags; `help` lists them.
    #[arg(
        value_name = "COMMAND",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        num_args = 0..
    )]
    words: Vec<OsString>,
}

/// Everything that a command needs.
struct LeslieContext<'a> {
    ui: &'a mut Ui,
    env: &'a ProcessEnvironment,
    store: ThreadStore,
    flags: LeslieFlags,
    /// Additional variables for agents.
    variables: Vec<(String, String)>,
}

/// Runs a leslie command and prints its response.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: Args,
) -> Result<CommandExit, CommandError> {
    let words = args.words.into_iter().map(|word| word.to_string_lossy().into_owned());
    let flags = LeslieFlags::parse(words);
    if flags.asks_for_help() {
        ui.out().write_all(include_str!("leslie/help.txt").as_bytes())?;
        return Ok(CommandExit::Done);
    }
    for name in flags.unknown_flags() {
        ui.warning(format_args!("unknown flag ignored: {name}"));
    }
    let format = LeslieFormat::from_name(flags.last_value("format"));
    let store = ThreadStore::new(&env.cwd, env.clock.clone(), IdSource::random());
    let (envelope, exit) =
        match (LeslieContext { ui, env, store, flags, variables: Vec::new() }).run_command() {
            Ok(None) => return Ok(CommandExit::Done),
            Ok(Some(answer)) => {
                let exit = answer.exit();
                (answer.into_envelope(), exit)
            }
            Err(failure) => (failure.into_envelope(), CommandExit::Failed),
        };
    ui.transcript_text(&format.print(&envelope))?;
    Ok(exit)
}

impl LeslieContext<'_> {
    /// Runs the command. A worker has no response.
    fn run_command(&mut self) -> Result<Option<LeslieResponse>, LeslieFailure> {
        let words = self.flags.words.clone();
        let (command, subcommand) = (words[0].as_str(), words.get(1).map(String::as_str));
        if (command, subcommand) == ("config", Some("init")) {
            return config::init_env_file(self).map(Some);
        }
        self.variables = config::read_variables(self)?;
        self.prepare_stores()?;
        match (command, subcommand) {
            ("_worker", _) => return worker::run_worker(self).map(|()| None),
            ("init", _) => init::run(self),
            ("objective", Some("create")) => objective::create_objective(self),
            ("objective", Some("list")) => objective::list_objectives(self),
            ("objective", Some("status")) => objective::objective_status(self),
            ("run", _) => worker::run_objective(self),
            ("spawn", _) => spawn::run(self),
            ("reference", _) => relation::add_reference(self),
            ("merge", _) => relation::merge_threads(self),
            ("lifecycle", _) => thread::change_lifecycle(self),
            ("list", _) => thread::list_threads(self),
            ("status", _) => thread::thread_status(self),
            ("artifacts", _) => thread::list_artifacts(self),
            ("transfer", _) => thread::transfer_thread(self),
            ("inject", _) => thread::inject_message(self),
            ("transcript", _) => transcript::run(self),
            _ => {
                let named: Vec<_> = words.iter().take(2).map(String::as_str).collect();
                Err(LeslieFailure::without_code(format!("Unknown command: {}", named.join(" "))))
            }
        }
        .map(Some)
    }

    /// Returns the time in leslie's format: UTC, in milliseconds.
    fn now(&self) -> Timestamp {
        Timestamp::from_instant(self.env.clock.now().instant(), 3)
    }

    /// Creates missing stores, reports those read from a backup, and finishes killed runs.
    fn prepare_stores(&mut self) -> Result<(), LeslieFailure> {
        self.store.init()?;
        for problem in self.store.problems().unwrap_or_default() {
            self.ui.warning(problem);
        }
        finish_killed_runs(self.ui, self.env, &self.store);
        Ok(())
    }
}
