//! Agents that Steno can run: a name from the settings, a command, or the built-in rehearsal. Also syncs the session
//! files that an agent wrote during a run.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use steno_acp::child::ChildLauncher;
use steno_acp::recording::{ConnectionSettings, KeptSession, RecordingError, RecordingStatus};
use steno_acp::replay::REHEARSAL;
use steno_agents::registry;
use steno_agents::registry::session_locations::session_locations;

use crate::config::{AgentSetting, Config};
use crate::error::CommandError;
use crate::hooks::session_sync;
use crate::process_environment::ProcessEnvironment;
use crate::session_paths::existing_roots;
use crate::ui::{Ui, count_noun};
use steno_store::sync::SessionSyncer;

/// An agent that Steno can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunnableAgent {
    /// Name that the user gave.
    pub(crate) name: String,
    pub(crate) command: Vec<OsString>,
}

impl RunnableAgent {
    /// Finds the agent by the given name, else by the setting, else the first installed one. Without any, returns the
    /// rehearsal.
    pub(crate) fn find(config: &Config, named: Option<&str>) -> Result<Self, CommandError> {
        let known = config.agents()?;
        let set = config.run_settings()?.agent;
        match named.or(set.as_deref()) {
            Some(REHEARSAL) => Self::new_rehearsal(),
            Some(name) => Self::from_name(&known, name),
            None => {
                let mut installed =
                    known.iter().filter(|agent| is_program_installed(&agent.command[0]));
                installed
                    .next()
                    .map_or_else(Self::new_rehearsal, |agent| Ok(Self::from_setting(agent)))
            }
        }
    }

    /// Returns whether this is the rehearsal, which calls no model.
    pub(crate) fn is_rehearsal(&self) -> bool {
        self.name == REHEARSAL
    }

    fn from_setting(setting: &AgentSetting) -> Self {
        let command = setting.command.iter().map(OsString::from).collect();
        Self { name: setting.name.clone(), command }
    }

    fn from_name(known: &[AgentSetting], name: &str) -> Result<Self, CommandError> {
        if let Some(agent) = known.iter().find(|agent| agent.name == name) {
            return match (is_program_installed(&agent.command[0]), &agent.install) {
                (true, _) => Ok(Self::from_setting(agent)),
                (false, install) => {
                    let program = &agent.command[0];
                    let error = CommandError::user(format!("no such program on PATH: {program}"));
                    Err(install.iter().fold(error, |error, how| error.hint(format!("run `{how}`"))))
                }
            };
        }
        let command: Vec<OsString> = split_command(name).into_iter().map(OsString::from).collect();
        match command.first().and_then(|program| program.to_str()) {
            Some(program) if is_program_installed(program) => {
                Ok(Self { name: name.to_owned(), command })
            }
            _ => {
                let names: Vec<_> = known.iter().map(|agent| agent.name.as_str()).collect();
                let error = CommandError::user(format!("no such agent or program: {name}"));
                Err(error.hint(format!("the agents are: {}, {REHEARSAL}", names.join(", "))))
            }
        }
    }

    fn new_rehearsal() -> Result<Self, CommandError> {
        let arguments = ["replay", REHEARSAL, "--as-agent"].map(OsString::from);
        let command =
            std::iter::once(ProcessEnvironment::program_path()?.into()).chain(arguments).collect();
        Ok(Self { name: REHEARSAL.to_owned(), command })
    }
}

/// Returns whether a program exists, as a path or on `PATH`.
pub(crate) fn is_program_installed(program: &str) -> bool {
    if program.contains('/') {
        return std::path::Path::new(program).is_file();
    }
    let folders = ProcessEnvironment::variable("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// Splits a command into words by a shell's quoting rules.
fn split_command(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = line.chars();
    while let Some(c) = letters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Settings for recording a connection with an agent.
pub(crate) fn new_assignment(env: &ProcessEnvironment, command: &[OsString]) -> ConnectionSettings {
    ConnectionSettings {
        store: env.store.clone(),
        clock: env.clock.clone(),
        project: env.cwd.clone(),
        command: command.to_vec(),
        variables: Vec::new(),
        agent: None,
        thread: None,
        launch: None,
        on_change: report_recording,
    }
}

/// Reports that recording paused, resumed or stopped.
fn report_recording(status: &RecordingStatus<'_>) {
    let mut ui = Ui::stdio();
    let cause = |error: &RecordingError| {
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
        format!("{error}{}", cause.unwrap_or_default())
    };
    match status {
        RecordingStatus::Paused(error) => {
            ui.warning(format_args!("recording paused, the agent continues: {}", cause(error)));
        }
        RecordingStatus::Resumed { lost } => {
            ui.print_note(format_args!(
                "recording resumed; {} not recorded",
                count_noun(*lost, "message")
            ));
        }
        RecordingStatus::Stopped(error) => {
            ui.warning(format_args!("recording stopped, the agent continues: {}", cause(error)));
        }
    }
}

/// Returns the launcher that starts agents and other child processes.
pub(crate) fn child_launcher() -> Result<ChildLauncher, CommandError> {
    Ok(ChildLauncher {
        program: ProcessEnvironment::program_path()?,
        arguments: vec![OsString::from("child")],
    })
}

/// Syncs the session files that the agent wrote for a session.
pub(crate) fn sync_agent_files(
    env: &ProcessEnvironment,
    kept: &KeptSession,
) -> Result<(), CommandError> {
    let agent = kept.dir.agent();
    if !has_known_files(env, agent) {
        return Ok(());
    }
    if names_files_by_session(agent) {
        return session_sync::sync_named_session(env, agent, &kept.name).map(drop);
    }
    let mut syncer = SessionSyncer::new(env.store_location())?;
    let agents = [agent.to_owned()];
    for root in existing_roots(env, &[], &agents) {
        syncer.sync_root(&root, &agents)?;
    }
    syncer.seen.save()?;
    syncer.failures.pop().map_or(Ok(()), |error| Err(error.into()))
}

/// Starts a background process that syncs the agent's session files.
pub(crate) fn spawn_agent_files_sync(env: &ProcessEnvironment, kept: &KeptSession) {
    let agent = kept.dir.agent();
    let Some(program) =
        ProcessEnvironment::program_path().ok().filter(|_| has_known_files(env, agent))
    else {
        return;
    };
    let mut steno = Command::new(program);
    if names_files_by_session(agent) {
        let payload = serde_json::json!({ "session_id": kept.name }).to_string();
        steno.args(["hook", agent, &payload]);
    } else {
        steno.args(["sync", "--quiet", "--agent", agent]);
    }
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut steno, 0);
    steno.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // If it fails to start, the next `steno sync` does the same.
    let _ = steno.spawn();
}

/// Returns whether the agent has a known session folder on this machine.
fn has_known_files(env: &ProcessEnvironment, agent: &str) -> bool {
    let folders = session_locations(&env.home, &ProcessEnvironment::variable);
    folders.iter().any(|folder| folder.agent == agent && folder.path.exists())
}

/// Returns whether the agent's file names contain the session's name.
fn names_files_by_session(agent: &str) -> bool {
    registry::agent_named(agent).is_none_or(|agent| agent.is_session_in_file_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_parted_as_a_shell_does() {
        assert_eq!(split_command(" a  b\tc "), ["a", "b", "c"]);
        assert_eq!(
            split_command(r#"sh -c 'echo "$1"' "a b" c\ d """#),
            ["sh", "-c", "echo \"$1\"", "a b", "c d", ""]
        );
        assert_eq!(split_command(""), [""; 0]);
    }
}
