//! Transcripts and status of a run in its thread. The next command finishes a run that was killed.

use std::path::PathBuf;

use steno_acp::recording::KeptSession;
use steno_agents::join::is_only_on_wire;
use steno_model::{SessionId, Transcript};
use steno_seeds::leslie;
use steno_seeds::thread::{
    LeslieId, LifecycleAction, Operator, StatusChange, ThreadRelations, ThreadStatus, ThreadStore,
    ThreadWorker, WorkerState,
};
use steno_store::transcript::ReadTranscript;
use steno_vault::SessionDir;

use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::runnable_agent;
use crate::session_store::SessionStore;
use crate::thread_error::explain_thread_error;
use crate::ui::Ui;

/// Reason for suspending the thread of a killed run.
const KILLED_REASON: &str = "the run was killed";

/// Outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RunOutcome {
    /// The agent has ended its turn.
    Done,
    /// It has not, for this reason.
    Open(String),
}

/// Finishes killed runs in the project's threads. A failure is reported, and the next command tries again.
pub(crate) fn finish_killed_runs(ui: &mut Ui, env: &ProcessEnvironment, threads: &ThreadStore) {
    // An unreadable store is reported by the command that reads it.
    let all = threads.list_threads(None).unwrap_or_default();
    for thread in all {
        let run = ThreadRun { env, threads, id: &thread.id };
        let finished = match threads.take_over_killed(&thread.id) {
            Ok(None) => continue,
            Ok(Some(worker)) => run.finish_killed(&worker).and_then(|()| Ok(worker.finish()?)),
            Err(error) => Err(explain_thread_error(error)),
        };
        if let Err(error) = finished {
            let id = &thread.id;
            ui.warning(format_args!("could not finish the killed run of {id}: {}", error.error));
        }
    }
}

/// A thread with a current or past run.
pub(crate) struct ThreadRun<'a> {
    pub(crate) env: &'a ProcessEnvironment,
    pub(crate) threads: &'a ThreadStore,
    pub(crate) id: &'a LeslieId,
}

impl ThreadRun<'_> {
    /// Writes the transcripts of a killed run and updates the thread's status.
    pub(crate) fn finish_killed(&self, worker: &ThreadWorker) -> Result<(), CommandError> {
        let Some(killed) = worker.killed() else { return Ok(()) };
        let thread = self.threads.thread(self.id.as_str()).map_err(explain_thread_error)?;
        let (mut recorded, mut last_turn, mut written) = (0, None, Ok(Vec::new()));
        if let Some(name) = thread.session_id
            && let Some(dir) = find_session(self.env, self.id, &name)?
        {
            // The agent's own files make the transcripts richer; without them the recorded traffic is used.
            let kept = KeptSession { dir: dir.clone(), name };
            let _ = runnable_agent::sync_agent_files(self.env, &kept);
            let mut transcript = dir.read_transcript()?;
            killed.retain_own_units(&mut transcript);
            recorded =
                transcript.entries.iter().filter(|entry| leslie::is_user_prompt(entry)).count();
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

    /// Writes or updates the transcripts of a worker's prompts, one each.
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
        leslie::localize_times(&mut transcript, &self.env.zone);
        self.threads.write_transcript(self.id.as_str(), &transcript).map_err(explain_thread_error)
    }

    /// Updates the thread's status, unless it was changed meanwhile.
    pub(crate) fn update_status(&self, outcome: &RunOutcome) -> Result<ThreadStatus, CommandError> {
        let relations = self.threads.load_relations().map_err(explain_thread_error)?;
        let status = self.threads.thread(self.id.as_str()).map_err(explain_thread_error)?.status;
        if status != ThreadStatus::Active {
            return Ok(status);
        }
        let (action, reason) = match outcome {
            RunOutcome::Done if has_open_children(&relations, self.id) => {
                (LifecycleAction::Suspend, Some("Waiting for child threads".to_owned()))
            }
            RunOutcome::Done => (LifecycleAction::Done, None),
            RunOutcome::Open(reason) => (LifecycleAction::Suspend, Some(reason.clone())),
        };
        let thread = self.id.to_string();
        let change = StatusChange { thread, action, reason, operator: Operator::System };
        Ok(self.threads.change_status(&change).map_err(explain_thread_error)?.status)
    }
}

/// Finds the session with this id in the protocol; if several agents have one, that of the thread.
pub(crate) fn find_session(
    env: &ProcessEnvironment,
    thread: &LeslieId,
    name: &str,
) -> Result<Option<SessionDir>, CommandError> {
    let vault = SessionStore::new(env).vault;
    let mut sessions = Vec::new();
    for agent in vault.list_agents()? {
        let Ok(known) = agent.parse() else { continue };
        let session = vault.session_dir(&known, &SessionId::for_native(&agent, name));
        sessions.extend(session.exists().then_some(session));
    }
    let is_own = |session: &SessionDir| {
        session
            .read_transcript()
            .is_ok_and(|kept| kept.session.thread.as_deref() == Some(thread.as_str()))
    };
    let own = if sessions.len() > 1 { sessions.iter().position(is_own) } else { None };
    Ok((!sessions.is_empty()).then(|| sessions.swap_remove(own.unwrap_or(0))))
}

fn has_open_children(relations: &ThreadRelations, id: &LeslieId) -> bool {
    let children = relations.links.get(id).map_or(&[][..], |links| &links.children);
    let mut children = children.iter().filter_map(|id| relations.threads.get(id));
    children.any(|child| !child.status.is_over())
}
