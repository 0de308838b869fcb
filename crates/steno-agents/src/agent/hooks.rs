//! Where an agent's settings register programs that it calls at events of a session.

use std::path::{Path, PathBuf};

use super::user_folders::UserFolders;

/// How to register Steno with an agent.
#[derive(Debug)]
pub struct AgentHooks {
    /// The agent's settings folders. They may not exist.
    pub settings_folders: fn(&UserFolders<'_>) -> Vec<PathBuf>,
    /// The settings file, relative to the settings folder.
    pub settings_file: &'static str,
    /// How the settings list programs.
    pub shape: HookShape,
    /// The events at which to call Steno.
    pub events: &'static [&'static str],
    /// Returns whether the agent of a settings folder calls Steno through a plugin or an extension.
    pub has_plugin: fn(&Path) -> bool,
}

/// The format of hook settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookShape {
    /// `hooks.EVENT` has groups, each with a list `hooks` of commands.
    Groups,
    /// `hooks.EVENT` has commands, in a field of this name.
    Commands(&'static str),
    /// `notify` has one program for all events, as a list of arguments.
    Notify,
}
