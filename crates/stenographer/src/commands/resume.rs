//! `steno resume`: resumes a session in its agent, or a thread.

mod other_agent;
pub(crate) mod recall;
mod thread;
mod written_session;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use steno_agents::agent::resume::{ResumeCommand, ResumeLocationError, SessionFolderMove};
use steno_agents::agent::user_folders::UserFolders;
use steno_agents::registry;
use steno_agents::registry::session_locations::locate_for_user;
use steno_model::Transcript;
use steno_store::transcript::ReadTranscript;
use steno_vault::SessionDir;
use steno_vault::original_file::OriginalFile;
use steno_vault::restore::RestoreError;

use self::other_agent::{OtherAgentOptions, OtherAgentRequest, continue_in_agent};
use super::run::RunOptions;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_folder;
use crate::project_threads::ProjectThreads;
use crate::session_store::SessionStore;
use crate::team_access::RemoteFlag;
use crate::ui::Ui;
use crate::write_permission::WritePermission;

/// Resume a session in its agent.
///
/// Restores the session's files and rows that the agent has purged, then runs the agent's own resume command in the
/// session's folder. A folder that has moved is found by its repository, or given with `--project`. Existing files
/// are not changed. If something cannot be restored, the agent is not started. Files outside of the agent's session
/// folders are restored only after a yes at a terminal.
///
/// With `--in`, the session continues in another agent: Steno writes a session of that agent with the prompts, answers,
/// tool calls and results, reads it back, and starts that agent. The original session is not changed.
///
/// With `--from`, a session of a colleague continues here: its files go into this machine's folders of the agent. Secrets
/// in it were replaced before it was pushed. The folder is the session's own if it exists here, else the working folder if
/// it has the same name, else `--project`.
///
/// A thread of the project in the working folder continues as with `steno run`: in the agent's session if the agent
/// still has it, else in a new session that gets the conversation so far.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Session id, unique prefix or `latest`; or the id of a thread.
    #[arg(value_name = "ID")]
    session: String,
    /// Prompts for the agent of a thread [default: to continue].
    #[arg(value_name = "PROMPT", conflicts_with_all = ["print", "project"])]
    prompts: Vec<String>,
    /// Agent for a thread [default: its previous agent].
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    #[command(flatten)]
    options: RunOptions,
    /// Print the command and change nothing.
    #[arg(long)]
    print: bool,
    /// Folder to continue in [default: the session's own].
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    #[command(flatten)]
    other_agent: OtherAgentOptions,
    #[command(flatten)]
    pub(crate) remote: RemoteFlag,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    if !env.is_mirror {
        ProjectThreads::finish_killed_runs_near(ui, env);
    }
    if let Some(agent) = args.other_agent.in_agent {
        let session = SessionStore::new(env).find_session(&args.session)?;
        let (project, options) = (args.project.as_deref(), &args.other_agent);
        let is_printed = args.print;
        let request = OtherAgentRequest { session, agent, project, options, is_printed };
        return continue_in_agent(ui, env, &request);
    }
    if !env.is_mirror && thread::is_thread(env, &args.session)? {
        return thread::resume_thread(ui, env, args);
    }
    if !args.prompts.is_empty() {
        let error = CommandError::usage(format!("not a thread of this project: {}", args.session));
        return Err(error.hint("only threads accept a prompt"));
    }
    let session = SessionStore::new(env).find_session(&args.session)?;
    if let Some(agent) = &args.agent {
        let error = CommandError::usage(format!("--agent is for threads: {}", args.session));
        return Err(error.hint(format!("use --in {agent} to continue the session in that agent")));
    }
    let request =
        ResumeRequest { session, project: args.project.as_deref(), is_printed: args.print };
    resume_in_folder(ui, env, request)
}

/// Resumes a session in its own folder.
pub(crate) fn resume_session(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    session: SessionDir,
) -> Result<CommandExit, CommandError> {
    resume_in_folder(ui, env, ResumeRequest { session, project: None, is_printed: false })
}

/// The session to resume.
struct ResumeRequest<'a> {
    session: SessionDir,
    /// Folder to continue in, if not the session's own.
    project: Option<&'a Path>,
    /// Whether the command is only printed.
    is_printed: bool,
}

fn resume_in_folder(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    request: ResumeRequest<'_>,
) -> Result<CommandExit, CommandError> {
    let ResumeRequest { session, project, is_printed } = request;
    let line = plan_and_prepare(env, session, project, |plan| {
        if is_printed {
            plan.report_missing(ui);
            return Ok(());
        }
        plan.restore_missing(ui)
    })?;
    if is_printed {
        ui.transcript_text(&format!("{line}\n"))?;
        return Ok(CommandExit::Done);
    }
    ui.flush()?;
    exec_agent(line)
}

/// Restores missing files of a session and returns the command that resumes it.
pub(crate) fn prepare_resume(
    env: &ProcessEnvironment,
    session: SessionDir,
) -> Result<String, CommandError> {
    let line =
        plan_and_prepare(env, session, None, |plan| plan.restore_missing(&mut Ui::silent()))?;
    Ok(line.to_string())
}

/// Plans how to resume a session, and runs `prepare` on the plan. Returns the command.
fn plan_and_prepare(
    env: &ProcessEnvironment,
    session: SessionDir,
    project: Option<&Path>,
    prepare: impl FnOnce(&ResumePlan<'_>) -> Result<(), CommandError>,
) -> Result<AgentCommandLine, CommandError> {
    let resume = registry::resume_command(session.agent())
        .ok_or_else(|| no_resume_command_error(session.agent()))?;
    if !session.is_imported()? {
        return Err(RestoreError::Recorded.into());
    }
    let transcript = session.read_transcript()?;
    let folder = match project {
        Some(named) => project_folder::resolve_folder(&env.cwd.join(named))?,
        None => project_folder::session_folder(env, &transcript.session, resume.needs_folder())?,
    };
    let from = transcript.session.project.as_deref().map(Path::new);
    let plan = ResumePlan { env, session, resume, moved: SessionFolderMove { from, to: &folder } };
    let line = plan.command_line(&transcript)?;
    prepare(&plan)?;
    Ok(line)
}

fn no_resume_command_error(agent: &str) -> CommandError {
    let agents: Vec<&str> = registry::all_agents()
        .filter_map(ResumeCommand::of_agent)
        .map(|resume| resume.agent)
        .collect();
    CommandError::user(format!("{agent} has no command to resume a session"))
        .hint(format!("agents with such a command: {}", agents.join(", ")))
}

/// A session and the folder to resume it in.
struct ResumePlan<'a> {
    env: &'a ProcessEnvironment,
    session: SessionDir,
    resume: ResumeCommand,
    moved: SessionFolderMove<'a>,
}

impl ResumePlan<'_> {
    fn command_line(&self, transcript: &Transcript) -> Result<AgentCommandLine, CommandError> {
        let id = transcript.session.native_id.as_deref().unwrap_or(self.session.id().as_str());
        let file = self.find_target(&self.session.kept_bundle()?.root)?;
        let program = self.resume.program();
        let arguments = self
            .resume
            .arguments(id, &file)
            .ok_or_else(|| CommandError::user(format!("not a session id of {program}: {id:?}")))?;
        Ok(AgentCommandLine { folder: self.moved.to.to_owned(), program, arguments })
    }

    fn find_target(&self, file: &Path) -> Result<PathBuf, CommandError> {
        let colleague_file = match self.env.is_mirror {
            true => Some(self.locate_here(file)?),
            false => None,
        };
        let file = colleague_file.as_deref().unwrap_or(file);
        self.resume.locate_file(file, self.moved).map_err(|error| {
            let hint = match &error {
                ResumeLocationError::NoSessionsYet { .. } => {
                    format!("start `{}` there once", self.resume.program())
                }
                ResumeLocationError::OtherFolder { from, .. } if from.is_dir() => {
                    "leave out --project".to_owned()
                }
                ResumeLocationError::OtherFolder { from, .. } => {
                    let [to, from] =
                        [self.moved.to, from].map(|path| quote_for_shell(&path.to_string_lossy()));
                    format!("link the old path: ln -s {to} {from}")
                }
                ResumeLocationError::FolderNotInPath(_) => return CommandError::user(error),
            };
            CommandError::user(error).hint(hint)
        })
    }

    /// Returns where this machine's agent would keep a session file of a colleague.
    fn locate_here(&self, file: &Path) -> Result<PathBuf, CommandError> {
        if self.moved.from.is_some_and(|from| file.starts_with(from)) {
            return Ok(file.to_owned());
        }
        let agent = self.session.agent();
        let user = UserFolders { home: &self.env.home, variable: &ProcessEnvironment::variable };
        locate_for_user(agent, file, &user).ok_or_else(|| {
            let message = format!("not in a session folder of {agent}: {}", file.display());
            CommandError::user(message).hint("use --in AGENT to continue it in a new session")
        })
    }

    /// Returns the session's files that are missing where the agent expects them.
    fn find_missing_files(&self) -> Result<Vec<(OriginalFile, PathBuf)>, CommandError> {
        if self.session.has_only_excerpts()? {
            return Err(RestoreError::OnlyExcerpts.into());
        }
        let mut missing = Vec::new();
        for file in self.session.original_files(registry::database_schemas(self.session.agent()))? {
            let target = self.find_target(&file.path)?;
            if !file.is_missing_at(&target).map_err(|error| self.add_sync_hint(error))? {
                continue;
            }
            if target != file.path && file.has_changed()? {
                let path = file.path.display();
                let message = format!("the agent's file has changed since the last sync: {path}");
                return Err(CommandError::user(message).hint("run `steno sync` first"));
            }
            missing.push((file, target));
        }
        Ok(missing)
    }

    /// Adds a hint to the error of a file that cannot be restored.
    fn add_sync_hint(&self, error: RestoreError) -> CommandError {
        let id = self.session.id();
        let hint = error.is_taken().then(|| {
            format!("run `steno sync` first, or `steno restore {id} --force` to replace it")
        });
        hint.into_iter().fold(CommandError::user(error), CommandError::hint)
    }

    /// Reports the files that would have to be restored, or why they cannot be.
    fn report_missing(&self, ui: &mut Ui) {
        if let Err(error) = self.list_missing(ui) {
            ui.report_error(&error);
        }
    }

    fn list_missing(&self, ui: &mut Ui) -> Result<(), CommandError> {
        let targets: Vec<PathBuf> =
            self.find_missing_files()?.into_iter().map(|(_, target)| target).collect();
        let find_projects = || Ok(self.find_projects());
        let permission = WritePermission::new(self.env, &self.session, &find_projects);
        let foreign = permission.find_foreign(&targets)?;
        for target in &targets {
            ui.print_note(format_args!("would restore {}", target.display()));
        }
        if !foreign.is_empty() {
            let agent = self.session.agent();
            ui.print_note(format_args!(
                "would ask first: this is not in a session folder of {agent}"
            ));
        }
        Ok(())
    }

    /// The folders in which the session may be restored besides those of its agent.
    fn find_projects(&self) -> Vec<PathBuf> {
        // A colleague's session must not choose where it is written.
        let from = self.moved.from.filter(|_| !self.env.is_mirror);
        from.into_iter().chain([self.moved.to]).map(Path::to_owned).collect()
    }

    fn restore_missing(&self, ui: &mut Ui) -> Result<(), CommandError> {
        let missing = self.find_missing_files()?;
        let targets: Vec<PathBuf> = missing.iter().map(|(_, target)| target.clone()).collect();
        let find_projects = || Ok(self.find_projects());
        let permission = WritePermission::new(self.env, &self.session, &find_projects);
        permission.check_targets(ui, &targets)?;
        for (file, target) in missing {
            file.write_to(&target).map_err(|error| self.add_sync_hint(error))?;
            ui.status(format_args!("restored {}", target.display()));
        }
        Ok(())
    }
}

/// A program with its arguments and working folder.
struct AgentCommandLine {
    folder: PathBuf,
    program: &'static str,
    arguments: Vec<String>,
}

impl std::fmt::Display for AgentCommandLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cd {} && {}", quote_for_shell(&self.folder.to_string_lossy()), self.program)?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {}", quote_for_shell(argument)))
    }
}

/// Quotes text as one shell word.
fn quote_for_shell(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Replaces this process with the agent; on other systems than Unix, waits for it.
fn exec_agent(line: AgentCommandLine) -> Result<CommandExit, CommandError> {
    let mut command = Command::new(line.program);
    command.args(&line.arguments).current_dir(&line.folder).env("PWD", &line.folder);
    let error = match exec_command(&mut command) {
        Ok(exit) => return Ok(exit),
        Err(error) => error,
    };
    let message = match error.kind() {
        ErrorKind::NotFound => format!("no such program on PATH: {}", line.program),
        _ => format!("could not start {}: {error}", line.program),
    };
    Err(CommandError::user(message).hint(format!("the command is: {line}")))
}

#[cfg(unix)]
fn exec_command(command: &mut Command) -> Result<CommandExit, std::io::Error> {
    use std::os::unix::process::CommandExt;
    Err(command.exec())
}

#[cfg(not(unix))]
fn exec_command(command: &mut Command) -> Result<CommandExit, std::io::Error> {
    let status = command.status()?;
    Ok(if status.success() { CommandExit::Done } else { CommandExit::Failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quote_for_shell("/a/b-c_1.x"), "/a/b-c_1.x");
        assert_eq!(quote_for_shell("/a b"), "'/a b'");
        assert_eq!(quote_for_shell("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quote_for_shell(""), "''");
    }
}
