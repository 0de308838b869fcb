//! A conversation with an agent, from its start to what is left of it.

use steno_acp::client::{self, AgentClient, AgentExit, ClientError, ClientHandle, ClientSettings};
use steno_acp::recording::{ConnectionSettings, KeptSession};
use steno_core::vault::record::Closing;
use steno_core::{Status, Transcript};

use super::Manner;
use super::api_traffic::ApiTraffic;
use super::report::Report;
use super::screen::Screen;
use super::work::Work;
use crate::agents::{self, Agent};
use crate::config::RunSettings;
use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::thread_run::{Outcome, find_session};
use crate::ui::Ui;

/// How a program ends that the user has interrupted.
const INTERRUPTED: u8 = 130;

/// An agent and the thread that it works in.
pub(crate) struct Conversation<'a> {
    pub(crate) scene: &'a Scene,
    pub(crate) agent: Agent,
    pub(crate) work: Work,
    pub(crate) manner: &'a Manner,
    pub(crate) settings: RunSettings,
}

/// A session that goes on.
pub(crate) struct Earlier {
    /// Its name in the protocol.
    pub(crate) name: String,
    /// What was said in it, for an agent that has forgotten.
    pub(crate) told: String,
}

/// How far a conversation came.
#[derive(Default)]
struct Course {
    session: Option<String>,
    /// Prompts that were given.
    prompts: usize,
    stop_reason: Option<String>,
    /// Whether it was reported that transcripts cannot be written.
    has_reported: bool,
}

impl Conversation<'_> {
    /// Gives the agent the prompts, one after the other, and keeps what comes of it.
    pub(crate) fn hold(
        mut self,
        ui: &mut Ui,
        prompts: Vec<String>,
        earlier: Option<Earlier>,
    ) -> Result<Exit, CommandError> {
        self.work.activate(prompts.len())?;
        let (voice, ears) = client::client_channel();
        let interrupting = voice.clone();
        // Without it, Ctrl-C ends us at once; what was said until then is kept all the same.
        let _ = ctrlc::set_handler(move || interrupting.interrupt());
        let api_traffic = match self.manner.no_gateway {
            true => None,
            false => ApiTraffic::start(ui, self.scene, &self.agent),
        };
        let assignment = self.assignment(api_traffic.as_ref());
        self.work.remember_agent(&self.agent.name)?;
        let RunSettings { limits, answer_timeout, .. } = self.settings;
        let settings = ClientSettings {
            policy: self.manner.policy(ui),
            limits,
            response_timeout: answer_timeout,
        };
        let mut client =
            match AgentClient::start(assignment, &agents::child_launcher()?, settings, ears) {
                Ok(client) => client,
                Err(error) => {
                    self.work.settle(self.scene, &Outcome::Open(error.to_string()))?;
                    return Err(error.into());
                }
            };
        let mut course = Course::default();
        let spoken = self.speak(&mut client, (ui, voice), (prompts, earlier), &mut course);
        let closing = closing(&course, spoken.as_ref().err());
        let left = client.shut_down(closing.clone());
        self.keep_own_files(ui, &course, &left.sessions);
        if let Some(api_traffic) = api_traffic {
            api_traffic.finish(ui, &closing);
        }
        let finished = self.finish(ui, &mut course, &left.sessions, spoken.as_ref().err());
        match spoken {
            Ok(()) => finished,
            Err(error) if is_interrupt(&error) => finished.map(|_| Exit::Ended(INTERRUPTED)),
            Err(error) => {
                // What the agent failed of comes first.
                finished?;
                Err(explained(error, &left))
            }
        }
    }

    /// How the agent is started, and where its connection is recorded.
    fn assignment(&self, api_traffic: Option<&ApiTraffic>) -> ConnectionSettings {
        let launch = api_traffic.map(ApiTraffic::launch);
        let (command, variables) = launch.unwrap_or((self.agent.command.clone(), Vec::new()));
        ConnectionSettings {
            thread: Some(self.work.id().to_owned()),
            launch: Some(self.agent.name.clone()),
            project: self.work.root().to_owned(),
            variables,
            ..agents::assignment(self.scene, &command)
        }
    }

    /// Keeps what the agent itself wrote of the session.
    fn keep_own_files(&self, ui: &mut Ui, course: &Course, kept: &[KeptSession]) {
        let Some(kept) = course.kept_session(kept) else { return };
        if let Err(error) = agents::join(ui, self.scene, kept) {
            // The next `steno sync` keeps it.
            let reason = error.error;
            ui.warning(format_args!("what the agent wrote itself is not kept yet: {reason}"));
        }
    }

    fn speak(
        &mut self,
        client: &mut AgentClient,
        (ui, voice): (&mut Ui, ClientHandle),
        (prompts, earlier): (Vec<String>, Option<Earlier>),
        course: &mut Course,
    ) -> Result<(), CommandError> {
        let mut screen = Screen::new(ui, voice, self.manner.json, &self.agent.name);
        let mut tell = |event: client::ClientEvent<'_>| screen.show(&event);
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
                client.open_session(&folder, &mut tell).map_err(|error| login(client, error))?
            }
        };
        self.work.remember(&session)?;
        course.session = Some(session.clone());
        if let Some(mode) = &self.manner.mode {
            client.set_mode(mode, &mut tell)?;
        }
        screen.begin(self.work.id(), &session);
        let mut history = earlier.filter(|_| !is_known).map(|earlier| earlier.told);
        let mut is_told = false;
        for task in prompts {
            let task = history.take().unwrap_or_default() + &task;
            let (prompt, waiting) = self.work.prompt(screen.ui(), &task, is_told)?;
            if !is_told {
                client.note_context_given();
            }
            course.prompts += 1;
            course.stop_reason = None;
            let turn = client.send_prompt(&prompt, &mut |event| screen.show(&event));
            screen.end_turn();
            course.stop_reason = Some(turn?.stop_reason);
            client.sync_record();
            self.work.note_turn();
            self.write_transcripts(screen.ui(), course);
            self.work.delivered(&waiting)?;
            if course.stop_reason.as_deref() == Some("cancelled") {
                return Err(ClientError::Interrupted.into());
            }
            is_told = !client.needs_context();
        }
        Ok(())
    }

    /// Writes the transcripts of the turns so far. They can wait: those that cannot be written are reported once, and
    /// tried again after the next turn and at the end.
    fn write_transcripts(&self, ui: &mut Ui, course: &mut Course) {
        let Some(session) = &course.session else { return };
        let found = find_session(self.scene, &self.work.thread.id, session).ok().flatten();
        // That recording is paused was reported already.
        let Some(transcript) = found.and_then(|dir| dir.read().ok()) else { return };
        let written = self.work.write_transcripts(self.scene, transcript);
        course.report_unwritten(ui, written.err());
    }

    /// Leaves transcripts, the index, the thread's status, and tells of it.
    fn finish(
        self,
        ui: &mut Ui,
        course: &mut Course,
        kept: &[KeptSession],
        failure: Option<&CommandError>,
    ) -> Result<Exit, CommandError> {
        let kept = course.kept_session(kept);
        let transcript = kept.map(|kept| kept.dir.read()).transpose()?;
        let paths = match transcript.clone().filter(|_| course.prompts > 0) {
            Some(told) => self.work.write_transcripts(self.scene, told).unwrap_or_else(|error| {
                course.report_unwritten(ui, Some(error));
                Vec::new()
            }),
            None => Vec::new(),
        };
        let outcome = outcome(course, failure);
        let Self { scene, agent, work, manner, .. } = self;
        let thread = work.thread.clone();
        let status = work.settle(scene, &outcome)?;
        let session = transcript.map(|Transcript { session, .. }| session);
        let stop_reason = course.stop_reason.clone();
        let report = Report::new((&thread, &agent), status, (session, paths), stop_reason);
        report.print(ui, scene, manner.json)?;
        Ok(if outcome == Outcome::Done { Exit::Done } else { Exit::Failed })
    }
}

impl Course {
    /// The session as it was recorded.
    fn kept_session<'a>(&self, kept: &'a [KeptSession]) -> Option<&'a KeptSession> {
        kept.iter().find(|kept| Some(&kept.name) == self.session.as_ref())
    }

    /// Reports that transcripts could not be written, once.
    fn report_unwritten(&mut self, ui: &mut Ui, error: Option<CommandError>) {
        let Some(error) = error.filter(|_| !self.has_reported) else { return };
        self.has_reported = true;
        ui.warning(format_args!("the transcripts are not written: {}", error.error));
    }
}

/// An error with what the agent last wrote to its standard error, and what to do.
fn explained(error: CommandError, left: &AgentExit) -> CommandError {
    let complaint = complaint(&left.stderr_tail).map(|line| format!("it last said: {line}"));
    let error = complaint.into_iter().fold(error, CommandError::hint);
    match (is_unanswered(&error), left.signal) {
        (true, _) => error.hint("set [run] answer_timeout in config.toml to wait longer"),
        (false, Some(signal)) => CommandError { exit: Exit::Signalled(signal), ..error },
        (false, None) => error,
    }
}

/// What became of it.
fn outcome(course: &Course, failure: Option<&CommandError>) -> Outcome {
    match (failure, course.stop_reason.as_deref()) {
        (Some(failure), _) if is_interrupt(failure) => Outcome::Open("cancelled".to_owned()),
        (Some(failure), _) => Outcome::Open(failure.error.to_string()),
        (None, Some("end_turn")) => Outcome::Done,
        (None, reason) => Outcome::Open(reason.unwrap_or("nothing was said").to_owned()),
    }
}

/// How the record ends.
fn closing(course: &Course, failure: Option<&CommandError>) -> Closing {
    match outcome(course, failure) {
        Outcome::Done => Closing { status: Status::Completed, reason: None },
        Outcome::Open(reason) if reason == "cancelled" => {
            Closing { status: Status::Canceled, reason: None }
        }
        Outcome::Open(reason) if failure.is_some() => {
            Closing { status: Status::Failed, reason: Some(reason) }
        }
        Outcome::Open(_) => Closing { status: Status::Completed, reason: None },
    }
}

/// The line that tells most of what an agent complained of: the last that calls itself an error, else the last.
fn complaint(text: &str) -> Option<&str> {
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let is_error = |line: &&str| line.to_lowercase().starts_with("error");
    lines().rfind(is_error).or_else(|| lines().next_back())
}

fn is_interrupt(error: &CommandError) -> bool {
    error.error.downcast_ref::<ClientError>().is_some_and(ClientError::is_interrupt)
}

fn is_unanswered(error: &CommandError) -> bool {
    matches!(error.error.downcast_ref(), Some(ClientError::ResponseTimeout { .. }))
}

/// Says what to do where an agent wants to know who the user is.
fn login(client: &AgentClient, error: ClientError) -> CommandError {
    let wants = error.needs_login();
    let error = CommandError::user(error);
    match client.capabilities().login_methods.as_slice() {
        _ if !wants => error,
        [] => error.hint("log in with the agent's own program first"),
        logins => error.hint(format!("log in with the agent's own program: {}", logins.join(", "))),
    }
}
