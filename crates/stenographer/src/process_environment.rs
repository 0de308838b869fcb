//! Where and when the program runs: the only place that reads the environment.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use steno_core::{Clock, Timestamp};

use crate::error::CommandError;

/// What was found in the environment.
#[derive(Clone, Debug)]
pub(crate) struct ProcessEnvironment {
    /// `$STENO_HOME`, or the platform's data folder.
    pub(crate) store: PathBuf,
    /// The user's home folder.
    pub(crate) home: PathBuf,
    /// The working folder.
    pub(crate) cwd: PathBuf,
    /// What time it is.
    pub(crate) clock: Clock,
    /// The zone for times that carry none.
    pub(crate) zone: jiff::tz::TimeZone,
}

impl ProcessEnvironment {
    /// Reads the environment once.
    pub(crate) fn from_environment() -> Result<Self, CommandError> {
        let home = etcetera::home_dir()
            .map_err(|error| CommandError::user(error).hint("set HOME to your home folder"))?;
        let store = match Self::variable("STENO_HOME") {
            Some(path) => PathBuf::from(path),
            None => {
                use etcetera::BaseStrategy;
                etcetera::choose_base_strategy()?.data_dir().join("steno")
            }
        };
        Ok(Self {
            store,
            home,
            // A folder that is gone has no name; relative paths fail by themselves there.
            cwd: env::current_dir().unwrap_or_default(),
            clock: read_clock()?,
            zone: jiff::tz::TimeZone::system(),
        })
    }
}

impl ProcessEnvironment {
    /// The same scene with the clock of a named zone, such as `Europe/Berlin`.
    pub(crate) fn in_zone(&self, name: Option<&str>) -> Result<Self, CommandError> {
        let Some(name) = name else { return Ok(self.clone()) };
        let zone = jiff::tz::TimeZone::get(name).map_err(|_| {
            let error = CommandError::user(format!("unknown time zone: {name}"));
            error.hint("use a name such as UTC or Europe/Berlin")
        })?;
        Ok(Self { zone, ..self.clone() })
    }

    /// An environment variable, unless it is empty.
    pub(crate) fn variable(name: &str) -> Option<OsString> {
        env::var_os(name).filter(|value| !value.is_empty())
    }

    /// What names the time since the machine was started, where the system tells.
    pub(crate) fn boot_id() -> Option<String> {
        let name = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(name.trim().to_owned())
    }

    /// The program's own file.
    pub(crate) fn program_path() -> Result<PathBuf, CommandError> {
        Ok(env::current_exe()?)
    }

    /// The program's own file by the name that lasts: a link on the `PATH` stays when its target is upgraded.
    pub(crate) fn stable_program_path() -> Result<PathBuf, CommandError> {
        let program = Self::program_path()?;
        let folders = Self::variable("PATH").unwrap_or_default();
        let named = env::split_paths(&folders)
            .map(|folder| folder.join("steno"))
            .find(|name| name.is_absolute() && name.canonicalize().is_ok_and(|to| to == program));
        Ok(named.unwrap_or(program))
    }
}

/// The machine's clock, or the moment in `STENO_NOW`, which makes output repeatable.
fn read_clock() -> Result<Clock, CommandError> {
    match env::var("STENO_NOW") {
        Ok(text) => {
            let at: Timestamp = text.parse().map_err(|error| {
                CommandError::user(error)
                    .hint("STENO_NOW takes a time such as 2026-01-05T09:15:32Z")
            })?;
            Ok(Clock::fixed(at))
        }
        Err(_) => Ok(Clock::system()),
    }
}
