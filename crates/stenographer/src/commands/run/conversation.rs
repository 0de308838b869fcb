//! A conversation with an agent, from its start to the report.

use steno_acp::client::{self, AgentClient, AgentExit, ClientError, ClientHandle, ClientSettings};
use steno_acp::recording::{ConnectionSettings, KeptSession};
use steno_model::{SessionStatus, Transcript};
use steno_store::transcript::ReadTranscript;
use steno_vault::record::RecordingClosing;

use super::RunOptions;
use super::report::{FinishedRun, RunReport};
use super::run_display::RunDisplay;
use super::run_gateway::RunGateway;
use super::thread_work::ThreadWork;
use crate::config::RunSettings;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::runnable_agent::{self, RunnableAgent};
use crate::thread_run::{RunOutcome, find_session};
use crate::ui::Ui;

/// Exit code after an interrupt.
const INTERRUPTED_EXIT_CODE: u8 = 130;

/// An agent and its thread.
pub(crate) struct AgentConversation<'a> {
    pub(crate) env: &'a ProcessEnvironment,
    pub(crate) agent: RunnableAgent,
    pub(crate) work: ThreadWork,
    pub(crate) options: &'a RunOptions,
    pub(crate) settings: RunSettings,
}

/// A session to continue.
pub(crate) struct PreviousSession {
    /// Session id in the protocol.
    pub(crate) name: String,
    /// The conversation so far, for an agent that has lost the session.
    pub(crate) history: String,
}

/// The prompts of a conversation, and how to ask the user.
struct ConversationInput<'u> {
    ui: &'u mut Ui,
    voice: ClientHandle,
    prompts: Vec<String>,
    previous: Option<PreviousSession>,
}

/// Progress of a conversation.
#[derive(Default)]
struct ConversationProgress {
    session: Option<String>,
    /// Number of prompts sent.
    prompts: usize,
    stop_reason: Option<String>,
    /// Whether a failure to write transcripts was already reported.
    has_reported_unwritten: bool,
}

impl AgentConversation<'_> {
    /// Sends the prompts one after the other, and records the conversation.
    pub(crate) fn run(
        mut self,
        ui: &mut Ui,
        prompts: Vec<String>,
        previous: Option<PreviousSession>,
    ) -> Result<CommandExit, CommandError> {
        self.work.activate(prompts.len())?;
        let (voice, ears) = client::client_channel();
        let interrupting = voice.clone();
        // Without the handler, Ctrl-C ends this process at once; the recording up to then is kept.
        let _ = ctrlc::set_handler(move || interrupting.interrupt());
        let api_traffic = match self.options.no_gateway {
            true => None,
            false => RunGateway::start(ui, self.env, &self.agent),
        };
        let assignment = self.recording_assignment(api_traffic.as_ref());
        self.work.remember_agent(&self.agent.name)?;
        let RunSettings { limits, answer_timeout, .. } = self.settings;
        let settings = ClientSettings {
            policy: self.options.policy(ui),
            limits,
            response_timeout: answer_timeout,
        };
        let mut client = match AgentClient::start(
            assignment,
            &runnable_agent::child_launcher()?,
            settings,
            ears,
        ) {
            Ok(client) => client,
            Err(error) => {
                self.work.finish_run(self.env, &RunOutcome::Open(error.to_string()))?;
                return Err(error.into());
            }
        };
        let mut progress = ConversationProgress::default();
        let input = ConversationInput { ui, voice, prompts, previous };
        let sent = self.send_prompts(&mut client, input, &mut progress);
        let closing = closing_status(&progress, sent.as_ref().err());
        let left = client.shut_down(closing.clone());
        self.sync_session_files(ui, &progress, &left.sessions);
        if let Some(api_traffic) = api_traffic {
            api_traffic.finish(ui, &closing);
        }
        let finished = self.finish(ui, &mut progress, &left.sessions, sent.as_ref().err());
        match sent {
            Ok(()) => finished,
            Err(error) if is_interrupt(&error) => {
                finished.map(|_| CommandExit::Child(INTERRUPTED_EXIT_CODE))
            }
            Err(error) => {
                // An error of `finish` takes precedence.
                finished?;
                Err(add_agent_output(error, &left))
            }
        }
    }

    /// Returns the agent's command and where to record its connection.
    fn recording_assignment(&self, api_traffic: Option<&RunGateway>) -> ConnectionSettings {
        let launch = api_traffic.map(RunGateway::build_launch);
        let (command, variables) = launch.unwrap_or((self.agent.command.clone(), Vec::new()));
        ConnectionSettings {
            thread: Some(self.work.id().to_owned()),
            launch: Some(self.agent.name.clone()),
            project: self.work.root().to_owned(),
            variables,
            ..runnable_agent::new_assignment(self.env, &command)
        }
    }

    /// Syncs the session files that the agent wrote.
    fn sync_session_files(
        &self,
        ui: &mut Ui,
        progress: &ConversationProgress,
        kept: &[KeptSession],
    ) {
        let Some(kept) = progress.recorded_session(kept) else { return };
        if let Err(error) = runnable_agent::sync_agent_files(self.env, kept) {
            // The next `steno sync` copies them.
            let reason = error.error;
            ui.warning(format_args!("could not sync the agent's session files: {reason}"));
        }
    }

    fn send_prompts(
        &mut self,
        client: &mut AgentClient,
        input: ConversationInput<'_>,
        progress: &mut ConversationProgress,
    ) -> Result<(), CommandError> {
        let ConversationInput { ui, voice, prompts, previous } = input;
        let mut display = RunDisplay::new(ui, voice, self.options.json, &self.agent.name);
        let mut show_event = |event: client::ClientEvent<'_>| display.show_event(&event);
        client.initialize(env!("CARGO_PKG_VERSION"), &mut show_event)?;
        let folder = self.work.root().to_owned();
        let known = previous.as_ref().map(|previous| previous.name.as_str());
        let is_known = match known {
            Some(name) => client.reopen_session(name, &folder, &mut show_event)?,
            None => false,
        };
        let session = match known.filter(|_| is_known) {
            Some(name) => name.to_owned(),
            None => client
                .open_session(&folder, &mut show_event)
                .map_err(|error| add_login_hint(client, error))?,
        };
        self.work.remember_session(&session)?;
        progress.session = Some(session.clone());
        if let Some(mode) = &self.options.mode {
            client.set_mode(mode, &mut show_event)?;
        }
        display.show_begin(self.work.id(), &session);
        let mut history = previous.filter(|_| !is_known).map(|previous| previous.history);
        let mut has_context = false;
        for task in prompts {
            let task = history.take().unwrap_or_default() + &task;
            let (prompt, waiting) = self.work.build_prompt(display.ui(), &task, has_context)?;
            if !has_context {
                client.note_context_given();
            }
            progress.prompts += 1;
            progress.stop_reason = None;
            let turn = client.send_prompt(&prompt, &mut |event| display.show_event(&event));
            display.end_turn();
            progress.stop_reason = Some(turn?.stop_reason);
            client.sync_record();
            self.work.note_turn();
            self.write_transcripts(display.ui(), progress);
            self.work.mark_delivered(&waiting)?;
            if progress.stop_reason.as_deref() == Some("cancelled") {
                return Err(ClientError::Interrupted.into());
            }
            has_context = !client.needs_context();
        }
        Ok(())
    }

    /// Writes the transcripts of the turns so far. A failure is reported once; the next turn and the end of the run
    /// try again.
    fn write_transcripts(&self, ui: &mut Ui, progress: &mut ConversationProgress) {
        let Some(session) = &progress.session else { return };
        let found = find_session(self.env, &self.work.thread.id, session).ok().flatten();
        // A paused recording was already reported.
        let Some(transcript) = found.and_then(|dir| dir.read_transcript().ok()) else { return };
        let written = self.work.write_transcripts(self.env, transcript);
        progress.report_unwritten(ui, written.err());
    }

    /// Writes transcripts, updates the index and the thread's status, and prints the report.
    fn finish(
        self,
        ui: &mut Ui,
        progress: &mut ConversationProgress,
        kept: &[KeptSession],
        failure: Option<&CommandError>,
    ) -> Result<CommandExit, CommandError> {
        let kept = progress.recorded_session(kept);
        let transcript = kept.map(|kept| kept.dir.read_transcript()).transpose()?;
        let paths = match transcript.clone().filter(|_| progress.prompts > 0) {
            Some(transcript) => {
                self.work.write_transcripts(self.env, transcript).unwrap_or_else(|error| {
                    progress.report_unwritten(ui, Some(error));
                    Vec::new()
                })
            }
            None => Vec::new(),
        };
        let outcome = run_outcome(progress, failure);
        let Self { env, agent, work, options, .. } = self;
        let thread = work.thread.clone();
        let status = work.finish_run(env, &outcome)?;
        let session = transcript.map(|Transcript { session, .. }| session);
        let stop_reason = progress.stop_reason.clone();
        let report = RunReport::new(FinishedRun {
            thread: &thread,
            agent: &agent,
            status,
            session,
            transcripts: paths,
            stop_reason,
        });
        report.print(ui, env, options.json)?;
        Ok(if outcome == RunOutcome::Done { CommandExit::Done } else { CommandExit::Failed })
    }
}

impl ConversationProgress {
    /// Returns the recorded session.
    fn recorded_session<'a>(&self, kept: &'a [KeptSession]) -> Option<&'a KeptSession> {
        kept.iter().find(|kept| Some(&kept.name) == self.session.as_ref())
    }

    /// Reports a failure to write transcripts once.
    fn report_unwritten(&mut self, ui: &mut Ui, error: Option<CommandError>) {
        let Some(error) = error.filter(|_| !self.has_reported_unwritten) else { return };
        self.has_reported_unwritten = true;
        ui.warning(format_args!("could not write transcripts: {}", error.error));
    }
}

/// Adds the last line of the agent's standard error, and what to do, to an error.
fn add_agent_output(error: CommandError, left: &AgentExit) -> CommandError {
    let complaint =
        last_error_line(&left.stderr_tail).map(|line| format!("the agent's last output: {line}"));
    let error = complaint.into_iter().fold(error, CommandError::hint);
    match (is_answer_timeout(&error), left.signal) {
        (true, _) => error.hint("set [run] answer_timeout in config.toml to wait longer"),
        (false, Some(signal)) => CommandError { exit: CommandExit::Signalled(signal), ..error },
        (false, None) => error,
    }
}

/// Returns the outcome of the run.
fn run_outcome(progress: &ConversationProgress, failure: Option<&CommandError>) -> RunOutcome {
    match (failure, progress.stop_reason.as_deref()) {
        (Some(failure), _) if is_interrupt(failure) => RunOutcome::Open("cancelled".to_owned()),
        (Some(failure), _) => RunOutcome::Open(failure.error.to_string()),
        (None, Some("end_turn")) => RunOutcome::Done,
        (None, reason) => RunOutcome::Open(reason.unwrap_or("no response").to_owned()),
    }
}

/// Returns the status that the recording ends with.
fn closing_status(
    progress: &ConversationProgress,
    failure: Option<&CommandError>,
) -> RecordingClosing {
    match run_outcome(progress, failure) {
        RunOutcome::Done => RecordingClosing { status: SessionStatus::Completed, reason: None },
        RunOutcome::Open(reason) if reason == "cancelled" => {
            RecordingClosing { status: SessionStatus::Canceled, reason: None }
        }
        RunOutcome::Open(reason) if failure.is_some() => {
            RecordingClosing { status: SessionStatus::Failed, reason: Some(reason) }
        }
        RunOutcome::Open(_) => RecordingClosing { status: SessionStatus::Completed, reason: None },
    }
}

/// Returns the most useful line of an agent's standard error: the last that starts with "error", else the last.
fn last_error_line(text: &str) -> Option<&str> {
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let is_error = |line: &&str| line.to_lowercase().starts_with("error");
    lines().rfind(is_error).or_else(|| lines().next_back())
}

fn is_interrupt(error: &CommandError) -> bool {
    error.error.downcast_ref::<ClientError>().is_some_and(ClientError::is_interrupt)
}

fn is_answer_timeout(error: &CommandError) -> bool {
    matches!(error.error.downcast_ref(), Some(ClientError::ResponseTimeout { .. }))
}

/// Adds the agent's logins to an error that asks for one.
fn add_login_hint(client: &AgentClient, error: ClientError) -> CommandError {
    let wants = error.needs_login();
    let error = CommandError::user(error);
    match client.capabilities().login_methods.as_slice() {
        _ if !wants => error,
        [] => error.hint("log in with the agent's own program first"),
        logins => error.hint(format!("log in with the agent's own program: {}", logins.join(", "))),
    }
}
