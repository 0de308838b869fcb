//! Folders, clock and time zone of the process. Only this module reads the environment.

use std::env;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use jiff::tz::TimeZone;
use steno_model::{Clock, Timestamp};
use steno_store::StoreLocation;
use steno_store::session_owners::SessionOwners;
use steno_team::TeamMirror;

use crate::error::CommandError;

/// Values read from the environment.
#[derive(Clone, Debug)]
pub(crate) struct ProcessEnvironment {
    /// `$STENO_HOME`, or the platform's data folder.
    pub(crate) store: PathBuf,
    /// This machine's own store, also where `store` is a mirror.
    pub(crate) own_store: PathBuf,
    /// The configuration file.
    pub(crate) config: PathBuf,
    /// Whether the store is the mirror of a remote.
    pub(crate) is_mirror: bool,
    /// Whether the store is in the platform's data folder.
    pub(crate) is_default_store: bool,
    /// The user's home folder.
    pub(crate) home: PathBuf,
    /// The working folder.
    pub(crate) cwd: PathBuf,
    /// Clock of the process.
    pub(crate) clock: Clock,
    /// Time zone for times without one.
    pub(crate) zone: TimeZone,
}

impl ProcessEnvironment {
    /// Reads the environment once.
    pub(crate) fn from_environment() -> Result<Self, CommandError> {
        let home = etcetera::home_dir()
            .map_err(|error| CommandError::user(error).hint("set HOME to your home folder"))?;
        let named_store = Self::variable("STENO_HOME");
        let is_default_store = named_store.is_none();
        let store = match named_store {
            Some(path) => PathBuf::from(path),
            None => {
                use etcetera::BaseStrategy;
                etcetera::choose_base_strategy()?.data_dir().join("steno")
            }
        };
        Ok(Self {
            config: store.join("config.toml"),
            is_mirror: false,
            own_store: store.clone(),
            store,
            is_default_store,
            home,
            // A deleted working folder has no path; relative paths then fail on their own.
            cwd: env::current_dir().unwrap_or_default(),
            clock: read_clock()?,
            zone: zone_of_one_file().unwrap_or_else(TimeZone::system),
        })
    }
}

impl ProcessEnvironment {
    /// Returns a copy with another time zone, such as `Europe/Berlin`.
    pub(crate) fn in_zone(&self, name: Option<&str>) -> Result<Self, CommandError> {
        let Some(name) = name else { return Ok(self.clone()) };
        let zone = TimeZone::get(name).map_err(|_| {
            let error = CommandError::user(format!("unknown time zone: {name}"));
            error.hint("use a name such as UTC or Europe/Berlin")
        })?;
        Ok(Self { zone, ..self.clone() })
    }

    /// Returns the store for the library.
    pub(crate) fn store_location(&self) -> StoreLocation {
        let (folder, clock) = (self.store.clone(), self.clock.clone());
        StoreLocation { folder, boot_id: Self::boot_id(), clock }
    }

    /// Returns whose sessions the store has; none unless it is the mirror of a remote.
    pub(crate) fn session_owners(&self) -> SessionOwners {
        let folder = self.store.parent().filter(|_| self.is_mirror);
        let mirror = folder.map(|folder| TeamMirror::open(folder, self.clock.clone()));
        mirror.map(|mirror| mirror.owners()).unwrap_or_default()
    }

    /// Returns an environment variable, unless it is empty.
    pub(crate) fn variable(name: &str) -> Option<OsString> {
        env::var_os(name).filter(|value| !value.is_empty())
    }

    /// Returns the command of the pager; `None` if the user wants none.
    pub(crate) fn pager() -> Option<String> {
        if Self::variable("TERM").is_none_or(|terminal| terminal == "dumb") {
            return None;
        }
        let named = env::var_os("STENO_PAGER").or_else(|| env::var_os("PAGER"));
        let command = named.map_or(Some("less".to_owned()), |named| named.into_string().ok())?;
        Some(command).filter(|command| !matches!(command.trim(), "" | "cat"))
    }

    /// Returns the id of the current boot, if the system has one.
    pub(crate) fn boot_id() -> Option<String> {
        let name = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(name.trim().to_owned())
    }

    /// Returns the path of this program.
    pub(crate) fn program_path() -> Result<PathBuf, CommandError> {
        Ok(env::current_exe()?)
    }

    /// Returns a stable path of this program: a link on `PATH` survives upgrades of its target.
    pub(crate) fn stable_program_path() -> Result<PathBuf, CommandError> {
        let program = Self::program_path()?;
        let folders = Self::variable("PATH").unwrap_or_default();
        let named = env::split_paths(&folders)
            .map(|folder| folder.join("steno"))
            .find(|name| name.is_absolute() && name.canonicalize().is_ok_and(|to| to == program));
        Ok(named.unwrap_or(program))
    }
}

/// Folder of the time zones on most systems.
const ZONE_FOLDER: &str = "/usr/share/zoneinfo";

/// Reads the user's time zone from its own file. Looking it up by name would first list all zones of the system, which
/// takes as long as opening the index. `None` if the zone is given in another way.
fn zone_of_one_file() -> Option<TimeZone> {
    if ProcessEnvironment::variable("TZDIR").is_some() {
        return None;
    }
    let name = match ProcessEnvironment::variable("TZ") {
        Some(name) => PathBuf::from(name),
        None => {
            let target = std::fs::read_link("/etc/localtime").ok()?;
            target.strip_prefix(ZONE_FOLDER).ok()?.to_owned()
        }
    };
    if !name.components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let data = std::fs::read(Path::new(ZONE_FOLDER).join(&name)).ok()?;
    TimeZone::tzif(name.to_str()?, &data).ok()
}

/// Returns the system clock, or a fixed time from `STENO_NOW` for repeatable output.
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
