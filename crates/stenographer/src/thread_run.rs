//! What a run leaves in its thread, transcripts and a status, and how the next command finishes a run that was killed.

use std::path::PathBuf;

use steno_acp::recording::KeptSession;
use steno_core::format::leslie;
use steno_core::join::is_only_on_wire;
use steno_core::thread::{
    Action, Id, Lifecycle, Operator, Relations, Status, ThreadStore, ThreadWorker, WorkerState,
};
use steno_core::vault::SessionDir;
use steno_core::{SessionId, Transcript};

use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::runnable_agent;
use crate::session_store::SessionStore;
use crate::thread_error::explain_thread_error;
use crate::ui::Ui;

/// Why a thread is set aside whose run was killed.
const KILLED_REASON: &str = "the run was killed";

/// What became of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RunOutcome {
    /// The agent has ended its turn.
    Done,
    /// It has not, for this reason.
    Open(String),
}

/// Finishes the runs that were killed in the project's threads. What cannot be finished is reported, and tried again by the
/// next command.
pub(crate) fn finish_killed_runs(ui: &mut Ui, env: &ProcessEnvironment, threads: &ThreadStore) {
    // A store that cannot be read is reported by whoever wanted to read it.
    let all = threads.threads(None).unwrap_or_default();
    for thread in all {
        let run = ThreadRun { env, threads, id: &thread.id };
        let finished = match threads.take_over_killed(&thread.id) {
            Ok(None) => continue,
            Ok(Some(worker)) => run.finish_killed(&worker).and_then(|()| Ok(worker.finish()?)),
            Err(error) => Err(explain_thread_error(error)),
        };
        if let Err(error) = finished {
            let id = &thread.id;
            ui.warning(format_args!("the killed run of {id} is not finished: {}", error.error));
        }
    }
}

/// A thread in which an agent is run, or was.
pub(crate) struct ThreadRun<'a> {
    pub(crate) env: &'a ProcessEnvironment,
    pub(crate) threads: &'a ThreadStore,
    pub(crate) id: &'a Id,
}

impl ThreadRun<'_> {
    /// Writes the transcripts of a run that was killed, and gives its thread the status that follows.
    pub(crate) fn finish_killed(&self, worker: &ThreadWorker) -> Result<(), CommandError> {
        let Some(killed) = worker.killed() else { return Ok(()) };
        let thread = self.threads.thread(self.id.as_str()).map_err(explain_thread_error)?;
        let (mut recorded, mut last_turn, mut written) = (0, None, Ok(Vec::new()));
        if let Some(name) = thread.session_id
            && let Some(dir) = find_session(self.env, self.id, &name)?
        {
            // What the agent wrote itself makes the transcripts richer; without it the wire has to do.
            let kept = Kept { dir: dir.clone(), name };
            let _ = runnable_agent::sync_agent_files(&Ui::silent(), self.env, &kept);
            let mut transcript = dir.read()?;
            killed.retain_own_units(&mut transcript);
            recorded = transcript.entries.iter().filter(|entry| leslie::asks(entry)).count();
            last_turn = leslie::last_stop_reason(&transcript);
            written = self.write_transcripts(transcript, killed);
        }
        let is_done = killed.prompts_planned > 0
            && recorded >= killed.prompts_planned
            && last_turn.as_deref() == Some("end_turn");
        let outcome =
            if is_done { RunOutcome::Done } else { RunOutcome::Open(KILLED_REASON.to_owned()) };
        self.update_status(&outcome)?;
        written.map(drop)
    }

    /// Writes the transcripts of a worker's prompts, one for each; those that are there are brought up to date.
    pub(crate) fn write_transcripts(
        &self,
        mut transcript: Transcript,
        worker: &WorkerState,
    ) -> Result<Vec<PathBuf>, CommandError> {
        transcript.entries.retain(|entry| !is_only_on_wire(entry));
        worker.retain_own_units(&mut transcript);
        if transcript.entries.is_empty() {
            return Ok(Vec::new());
        }
        transcript.session.thread = Some(self.id.to_string());
        leslie::localize(&mut transcript, &self.env.zone);
        self.threads.write_transcript(self.id.as_str(), &transcript).map_err(explain_thread_error)
    }

    /// Gives the thread the status that follows, unless somebody has given it another meanwhile.
    pub(crate) fn update_status(&self, outcome: &RunOutcome) -> Result<Status, CommandError> {
        let relations = self.threads.relations().map_err(explain_thread_error)?;
        let status = self.threads.thread(self.id.as_str()).map_err(explain_thread_error)?.status;
        if status != Status::Active {
            return Ok(status);
        }
        let (action, reason) = match outcome {
            RunOutcome::Done if has_open_children(&relations, self.id) => {
                (Action::Suspend, Some("Waiting for child threads".to_owned()))
            }
            RunOutcome::Done => (Action::Done, None),
            RunOutcome::Open(reason) => (Action::Suspend, Some(reason.clone())),
        };
        let thread = self.id.to_string();
        let change = Lifecycle { thread, action, reason, operator: Operator::System };
        Ok(self.threads.lifecycle(&change).map_err(explain_thread_error)?.status)
    }
}

/// The kept session that has this name in the protocol: where several agents have one, that of the thread.
pub(crate) fn find_session(
    env: &ProcessEnvironment,
    thread: &Id,
    name: &str,
) -> Result<Option<SessionDir>, CommandError> {
    let vault = SessionStore::new(env).vault;
    let mut sessions = Vec::new();
    for agent in vault.agents()? {
        let Ok(known) = agent.parse() else { continue };
        let session = vault.session(&known, &SessionId::for_native(&agent, name));
        sessions.extend(session.exists().then_some(session));
    }
    let is_own = |session: &SessionDir| {
        session.read().is_ok_and(|kept| kept.session.thread.as_deref() == Some(thread.as_str()))
    };
    let own = if sessions.len() > 1 { sessions.iter().position(is_own) } else { None };
    Ok((!sessions.is_empty()).then(|| sessions.swap_remove(own.unwrap_or(0))))
}

fn has_open_children(relations: &Relations, id: &Id) -> bool {
    let children = relations.links.get(id).map_or(&[][..], |links| &links.children);
    let mut children = children.iter().filter_map(|id| relations.threads.get(id));
    children.any(|child| !child.status.is_over())
}
