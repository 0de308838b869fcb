//! `steno as leslie`: leslie's command line, on the `.leslie` folder of the working folder.
//!
//! Answers and errors are one JSON object on standard output. Where leslie passes over what it does not know, so
//! do we, but tell on standard error; where that would do something else than was asked for, it is an error.

mod answer;
mod config;
mod flags;
mod format;
mod init;
mod objective;
mod relate;
mod spawn;
mod thread;
mod transcript;
mod worker;

use std::ffi::OsString;

use steno_core::Timestamp;
use steno_core::thread::{IdSource, ThreadStore};

use self::answer::{Answer, Failure};
use self::flags::Flags;
use self::format::Format;
use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::thread_run::finish_killed_runs;
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// A command and its flags; `help` lists them.
    #[arg(
        value_name = "COMMAND",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        num_args = 0..
    )]
    words: Vec<OsString>,
}

/// What a command works with.
struct Desk<'a> {
    ui: &'a mut Ui,
    scene: &'a Scene,
    store: ThreadStore,
    flags: Flags,
    /// What agents find in their environment besides ours.
    variables: Vec<(String, String)>,
}

/// Runs a leslie command and prints its answer.
pub(crate) fn run(ui: &mut Ui, scene: &Scene, args: Args) -> Result<Exit, CommandError> {
    let words = args.words.into_iter().map(|word| word.to_string_lossy().into_owned());
    let flags = Flags::parse(words);
    if flags.asks_for_help() {
        ui.out().write_all(include_str!("leslie/help.txt").as_bytes())?;
        return Ok(Exit::Done);
    }
    for name in flags.unknown() {
        ui.warning(format_args!("no such flag, passed over: {name}"));
    }
    let format = Format::named(flags.last("format"));
    let store = ThreadStore::new(&scene.cwd, scene.clock.clone(), IdSource::random());
    let (envelope, exit) = match (Desk { ui, scene, store, flags, variables: Vec::new() }).answer()
    {
        Ok(None) => return Ok(Exit::Done),
        Ok(Some(answer)) => {
            let exit = answer.exit();
            (answer.envelope(), exit)
        }
        Err(failure) => (failure.envelope(), Exit::Failed),
    };
    ui.transcript_text(&format.print(&envelope))?;
    Ok(exit)
}

impl Desk<'_> {
    /// What comes of the command; a worker answers nothing.
    fn answer(&mut self) -> Result<Option<Answer>, Failure> {
        let words = self.flags.words.clone();
        let (command, subcommand) = (words[0].as_str(), words.get(1).map(String::as_str));
        if (command, subcommand) == ("config", Some("init")) {
            return config::init(self).map(Some);
        }
        self.variables = config::variables(self)?;
        self.prepare()?;
        match (command, subcommand) {
            ("_worker", _) => return worker::run(self).map(|()| None),
            ("init", _) => init::run(self),
            ("objective", Some("create")) => objective::create(self),
            ("objective", Some("list")) => objective::list(self),
            ("objective", Some("status")) => objective::status(self),
            ("run", _) => worker::run_objective(self),
            ("spawn", _) => spawn::run(self),
            ("reference", _) => relate::reference(self),
            ("merge", _) => relate::merge(self),
            ("lifecycle", _) => thread::lifecycle(self),
            ("list", _) => thread::list(self),
            ("status", _) => thread::status(self),
            ("artifacts", _) => thread::artifacts(self),
            ("transfer", _) => thread::transfer(self),
            ("inject", _) => thread::inject(self),
            ("transcript", _) => transcript::run(self),
            _ => {
                let named: Vec<_> = words.iter().take(2).map(String::as_str).collect();
                Err(Failure::unknown(format!("Unknown command: {}", named.join(" "))))
            }
        }
        .map(Some)
    }

    /// Now, as leslie states it: in UTC, to the millisecond.
    fn now(&self) -> Timestamp {
        Timestamp::from_instant(self.scene.clock.now().instant(), 3)
    }

    /// Makes the stores where they are missing, tells which of them had to come from a backup, and finishes the runs that
    /// were killed.
    fn prepare(&mut self) -> Result<(), Failure> {
        self.store.init()?;
        for problem in self.store.problems().unwrap_or_default() {
            self.ui.warning(problem);
        }
        finish_killed_runs(self.ui, self.scene, &self.store);
        Ok(())
    }
}
