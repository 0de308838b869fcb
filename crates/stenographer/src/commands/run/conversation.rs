//! A conversation with an agent, from its start to what is left of it.

use steno_acp::client::{self, AgentClient, AgentExit, ClientError, ClientHandle, ClientSettings};
use steno_acp::recording::{ConnectionSettings, KeptSession};
use steno_core::vault::record::Closing;
use steno_core::{Status, Transcript};

use super::RunOptions;
use super::report::RunReport;
use super::run_display::RunDisplay;
use super::run_gateway::RunGateway;
use super::thread_work::ThreadWork;
use crate::config::RunSettings;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::runnable_agent::{self, RunnableAgent};
use crate::thread_run::{RunOutcome, find_session};
use crate::ui::Ui;

/// How a program ends that the user has interrupted.
const INTERRUPTED_EXIT_CODE: u8 = 130;

/// An agent and the thread that it works in.
pub(crate) struct AgentConversation<'a> {
    pub(crate) env: &'a ProcessEnvironment,
    pub(crate) agent: RunnableAgent,
    pub(crate) work: ThreadWork,
    pub(crate) options: &'a RunOptions,
    pub(crate) settings: RunSettings,
}

/// A session that goes on.
pub(crate) struct PreviousSession {
    /// Its name in the protocol.
    pub(crate) name: String,
    /// What was said in it, for an agent that has forgotten.
    pub(crate) history: String,
}

/// How far a conversation came.
#[derive(Default)]
struct ConversationProgress {
    session: Option<String>,
    /// Prompts that were given.
    prompts: usize,
    stop_reason: Option<String>,
    /// Whether it was reported that transcripts cannot be written.
    has_reported_unwritten: bool,
}

impl AgentConversation<'_> {
    /// Gives the agent the prompts, one after the other, and keeps what comes of it.
    pub(crate) fn run(
        mut self,
        ui: &mut Ui,
        prompts: Vec<String>,
        earlier: Option<PreviousSession>,
    ) -> Result<CommandExit, CommandError> {
        self.work.activate(prompts.len())?;
        let (voice, ears) = client::client_channel();
        let interrupting = voice.clone();
        // Without it, Ctrl-C ends us at once; what was said until then is kept all the same.
        let _ = ctrlc::set_handler(move || interrupting.interrupt());
        let api_traffic = match self.options.no_gateway {
            true => None,
            false => RunGateway::start(ui, self.env, &self.agent),
        };
        let assignment = self.recording_assignment(api_traffic.as_ref());
        self.work.remember_agent(&self.agent.name)?;
        let RunSettings { limits, answer_timeout, .. } = self.settings;
        let settings = ClientSettings { policy: self.options.policy(ui), limits, answer_timeout };
        let mut client =
            match Client::start(assignment, &runnable_agent::child_launcher()?, settings, ears) {
                Ok(client) => client,
                Err(error) => {
                    self.work.finish_run(self.env, &RunOutcome::Open(error.to_string()))?;
                    return Err(error.into());
                }
            };
        let mut course = ConversationProgress::default();
        let spoken = self.send_prompts(&mut client, (ui, voice), (prompts, earlier), &mut course);
        let closing = closing_status(&course, spoken.as_ref().err());
        let left = client.end(closing.clone());
        self.sync_session_files(ui, &course, &left.kept);
        if let Some(api_traffic) = api_traffic {
            api_traffic.finish(ui, &closing);
        }
        let finished = self.finish(ui, &mut course, &left.sessions, spoken.as_ref().err());
        match spoken {
            Ok(()) => finished,
            Err(error) if is_interrupt(&error) => {
                finished.map(|_| CommandExit::Child(INTERRUPTED_EXIT_CODE))
            }
            Err(error) => {
                // What the agent failed of comes first.
                finished?;
                Err(add_agent_output(error, &left))
            }
        }
    }

    /// How the agent is started, and where its connection is recorded.
    fn recording_assignment(&self, api_traffic: Option<&RunGateway>) -> Assignment {
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

    /// Keeps what the agent itself wrote of the session.
    fn sync_session_files(&self, ui: &mut Ui, course: &ConversationProgress, kept: &[Kept]) {
        let Some(kept) = course.recorded_session(kept) else { return };
        if let Err(error) = runnable_agent::sync_agent_files(ui, self.env, kept) {
            // The next `steno sync` keeps it.
            let reason = error.error;
            ui.warning(format_args!("what the agent wrote itself is not kept yet: {reason}"));
        }
    }

    fn send_prompts(
        &mut self,
        client: &mut Client,
        (ui, voice): (&mut Ui, Voice),
        (prompts, earlier): (Vec<String>, Option<PreviousSession>),
        course: &mut ConversationProgress,
    ) -> Result<(), CommandError> {
        let mut screen = RunDisplay::new(ui, voice, self.options.json, &self.agent.name);
        let mut tell = |event: client::Event<'_>| screen.show_event(&event);
        client.initialize(env!("CARGO_PKG_VERSION"), &mut tell)?;
        let folder = self.work.root().to_owned();
        let known = earlier.as_ref().map(|earlier| earlier.name.as_str());
        let is_known = match known {
            Some(name) => client.reopen_session(name, &folder, &mut tell)?,
            None => false,
        };
        let session = match known.filter(|_| is_known) {
            Some(name) => name.to_owned(),
            None => {
                client.open(&folder, &mut tell).map_err(|error| add_login_hint(client, error))?
            }
        };
        self.work.remember_session(&session)?;
        course.session = Some(session.clone());
        if let Some(mode) = &self.options.mode {
            client.set_mode(mode, &mut tell)?;
        }
        screen.show_begin(self.work.id(), &session);
        let mut history = earlier.filter(|_| !is_known).map(|earlier| earlier.history);
        let mut is_told = false;
        for task in prompts {
            let task = history.take().unwrap_or_default() + &task;
            let (prompt, waiting) = self.work.build_prompt(screen.ui(), &task, is_told)?;
            if !is_told {
                client.note_context_given();
            }
            course.prompts += 1;
            course.stop_reason = None;
            let turn = client.prompt(&prompt, &mut |event| screen.show_event(&event));
            screen.end_turn();
            course.stop_reason = Some(turn?.stop_reason);
            client.sync_record();
            self.work.note_turn();
            self.write_transcripts(screen.ui(), course);
            self.work.mark_delivered(&waiting)?;
            if course.stop_reason.as_deref() == Some("cancelled") {
                return Err(ClientError::Interrupted.into());
            }
            is_told = !client.needs_context();
        }
        Ok(())
    }

    /// Writes the transcripts of the turns so far. They can wait: those that cannot be written are reported once, and
    /// tried again after the next turn and at the end.
    fn write_transcripts(&self, ui: &mut Ui, course: &mut ConversationProgress) {
        let Some(session) = &course.session else { return };
        let found = find_session(self.env, &self.work.thread.id, session).ok().flatten();
        // That recording is paused was reported already.
        let Some(transcript) = found.and_then(|dir| dir.read().ok()) else { return };
        let written = self.work.write_transcripts(self.env, transcript);
        course.report_unwritten(ui, written.err());
    }

    /// Leaves transcripts, the index, the thread's status, and tells of it.
    fn finish(
        self,
        ui: &mut Ui,
        course: &mut ConversationProgress,
        kept: &[Kept],
        failure: Option<&CommandError>,
    ) -> Result<CommandExit, CommandError> {
        let kept = course.recorded_session(kept);
        let transcript = kept.map(|kept| kept.dir.read()).transpose()?;
        let paths = match transcript.clone().filter(|_| course.prompts > 0) {
            Some(told) => self.work.write_transcripts(self.env, told).unwrap_or_else(|error| {
                course.report_unwritten(ui, Some(error));
                Vec::new()
            }),
            None => Vec::new(),
        };
        let outcome = run_outcome(course, failure);
        let Self { env, agent, work, options: manner, .. } = self;
        let thread = work.thread.clone();
        let status = work.finish_run(env, &outcome)?;
        let session = transcript.map(|Transcript { session, .. }| session);
        let stop_reason = course.stop_reason.clone();
        let report = RunReport::new((&thread, &agent), status, (session, paths), stop_reason);
        report.print(ui, env, manner.json)?;
        Ok(if outcome == RunOutcome::Done { CommandExit::Done } else { CommandExit::Failed })
    }
}

impl ConversationProgress {
    /// The session as it was recorded.
    fn recorded_session<'a>(&self, kept: &'a [Kept]) -> Option<&'a Kept> {
        kept.iter().find(|kept| Some(&kept.name) == self.session.as_ref())
    }

    /// Reports that transcripts could not be written, once.
    fn report_unwritten(&mut self, ui: &mut Ui, error: Option<CommandError>) {
        let Some(error) = error.filter(|_| !self.has_reported_unwritten) else { return };
        self.has_reported_unwritten = true;
        ui.warning(format_args!("the transcripts are not written: {}", error.error));
    }
}

/// An error with what the agent last wrote to its standard error, and what to do.
fn add_agent_output(error: CommandError, left: &Left) -> CommandError {
    let complaint = last_error_line(&left.complaint).map(|line| format!("it last said: {line}"));
    let error = complaint.into_iter().fold(error, CommandError::hint);
    match (is_answer_timeout(&error), left.signal) {
        (true, _) => error.hint("set [run] answer_timeout in config.toml to wait longer"),
        (false, Some(signal)) => CommandError { exit: CommandExit::Signalled(signal), ..error },
        (false, None) => error,
    }
}

/// What became of it.
fn run_outcome(course: &ConversationProgress, failure: Option<&CommandError>) -> RunOutcome {
    match (failure, course.stop_reason.as_deref()) {
        (Some(failure), _) if is_interrupt(failure) => RunOutcome::Open("cancelled".to_owned()),
        (Some(failure), _) => RunOutcome::Open(failure.error.to_string()),
        (None, Some("end_turn")) => RunOutcome::Done,
        (None, reason) => RunOutcome::Open(reason.unwrap_or("nothing was said").to_owned()),
    }
}

/// How the record ends.
fn closing_status(course: &ConversationProgress, failure: Option<&CommandError>) -> Closing {
    match run_outcome(course, failure) {
        RunOutcome::Done => Closing { status: Status::Completed, reason: None },
        RunOutcome::Open(reason) if reason == "cancelled" => {
            Closing { status: Status::Canceled, reason: None }
        }
        RunOutcome::Open(reason) if failure.is_some() => {
            Closing { status: Status::Failed, reason: Some(reason) }
        }
        RunOutcome::Open(_) => Closing { status: Status::Completed, reason: None },
    }
}

/// The line that tells most of what an agent complained of: the last that calls itself an error, else the last.
fn last_error_line(text: &str) -> Option<&str> {
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let is_error = |line: &&str| line.to_lowercase().starts_with("error");
    lines().rfind(is_error).or_else(|| lines().next_back())
}

fn is_interrupt(error: &CommandError) -> bool {
    error.error.downcast_ref::<ClientError>().is_some_and(ClientError::is_interrupt)
}

fn is_answer_timeout(error: &CommandError) -> bool {
    matches!(error.error.downcast_ref(), Some(ClientError::NoAnswer { .. }))
}

/// Says what to do where an agent wants to know who the user is.
fn add_login_hint(client: &Client, error: ClientError) -> CommandError {
    let wants = error.wants_login();
    let error = CommandError::user(error);
    match client.capabilities().login_methods.as_slice() {
        _ if !wants => error,
        [] => error.hint("log in with the agent's own program first"),
        logins => error.hint(format!("log in with the agent's own program: {}", logins.join(", "))),
    }
}
