//! Agents that can be run: by a name that the settings know, by their command, or the built-in rehearsal. And what is
//! kept of what they write down themselves.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use steno_acp::child::ChildLauncher;
use steno_acp::recording::{ConnectionSettings, KeptSession, RecordingError, RecordingStatus};
use steno_acp::replay::REHEARSAL;
use steno_core::agent::places::places;
use steno_core::agent::{gemini, opencode};

use crate::config::{AgentSetting, Config};
use crate::error::CommandError;
use crate::hooks::session_sync;
use crate::process_environment::ProcessEnvironment;
use crate::session_syncer::{SessionSyncer, existing_roots};
use crate::ui::{Ui, count_noun};

/// An agent that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunnableAgent {
    /// As the user calls it.
    pub(crate) name: String,
    pub(crate) command: Vec<OsString>,
}

impl RunnableAgent {
    /// The agent that the user names, or else the one that is set, or else the first that is installed. Where none is,
    /// the rehearsal.
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

    /// Whether no model is asked.
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
                let error = CommandError::user(format!("no agent or program of this name: {name}"));
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

/// Whether a program is there: a path, or a name on the `PATH`.
pub(crate) fn is_program_installed(program: &str) -> bool {
    if program.contains('/') {
        return std::path::Path::new(program).is_file();
    }
    let folders = ProcessEnvironment::variable("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// The words of a command, as a shell would part them.
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

/// Where a connection with an agent is taken down.
pub(crate) fn new_assignment(env: &ProcessEnvironment, command: &[OsString]) -> Assignment {
    Assignment {
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

/// Says that recording has paused, resumed or stopped.
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

/// How agents and other programs are started.
pub(crate) fn child_launcher() -> Result<ChildLauncher, CommandError> {
    Ok(ChildLauncher {
        program: ProcessEnvironment::program_path()?,
        arguments: vec![OsString::from("child")],
    })
}

/// Keeps what the agent itself wrote of a session, right now.
pub(crate) fn sync_agent_files(
    ui: &Ui,
    env: &ProcessEnvironment,
    kept: &Kept,
) -> Result<(), CommandError> {
    let agent = kept.dir.agent();
    if !has_known_files(env, agent) {
        return Ok(());
    }
    if names_files_by_session(agent) {
        return session_sync::sync_named_session(ui, env, agent, &kept.name).map(drop);
    }
    let mut sweep = SessionSyncer::new(ui, env)?;
    let agents = [agent.to_owned()];
    for root in existing_roots(env, &[], &agents) {
        sweep.sync_root(&root, &agents)?;
    }
    sweep.seen.save()?;
    sweep.failures.pop().map_or(Ok(()), Err)
}

/// Has what the agent itself wrote of a session kept, in the background: nobody waits for that.
pub(crate) fn spawn_agent_files_sync(env: &ProcessEnvironment, kept: &Kept) {
    let agent = kept.dir.agent();
    let Some(program) =
        ProcessEnvironment::program_path().ok().filter(|_| has_known_files(env, agent))
    else {
        return;
    };
    let mut steno = Command::new(program);
    if names_files_by_session(agent) {
        let told = serde_json::json!({ "session_id": kept.name }).to_string();
        steno.args(["hook", agent, &told]);
    } else {
        steno.args(["sync", "--quiet", "--agent", agent]);
    }
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut steno, 0);
    steno.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Without it, the next `steno sync` does the same.
    let _ = steno.spawn();
}

/// Whether the agent writes its sessions down where we know of.
fn has_known_files(env: &ProcessEnvironment, agent: &str) -> bool {
    let places = places(&env.home, &ProcessEnvironment::variable);
    places.iter().any(|place| place.agent == agent && place.path.exists())
}

/// Whether the agent's files have the names of its sessions.
fn names_files_by_session(agent: &str) -> bool {
    !matches!(agent, gemini::AGENT | opencode::AGENT)
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
