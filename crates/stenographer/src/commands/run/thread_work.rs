//! The thread in which an agent works: its prompts, transcripts and status.

use std::path::{Path, PathBuf};
use std::process;

use steno_model::Transcript;
use steno_seeds::thread::{
    Operator, ReferenceBinding, ReferenceRequest, SpawnRequest, Thread, ThreadError, ThreadStatus,
    ThreadStore, ThreadWorker, UndeliveredMessages,
};

use super::Args;
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::{ProjectThreads, report_warnings};
use crate::thread_error::explain_thread_error;
use crate::thread_run::{RunOutcome, ThreadRun};
use crate::ui::Ui;

/// Maximum number of characters of a title taken from the task.
const MAX_TITLE_CHARS: usize = 80;

/// A thread that this process has locked for its run.
pub(crate) struct ThreadWork {
    threads: ThreadStore,
    pub(crate) thread: Thread,
    worker: ThreadWorker,
}

impl ThreadWork {
    /// Opens the requested thread, or creates a new one.
    pub(super) fn begin(
        ui: &mut Ui,
        env: &ProcessEnvironment,
        args: &Args,
        task: &str,
    ) -> Result<Self, CommandError> {
        let threads = ProjectThreads::for_working_folder(env);
        let references = threads.find_ids(&args.references)?;
        if let Some(id) = &args.thread {
            let work = Self::open(ui, env, id, args.options.wait)?;
            work.add_references(ui, &references)?;
            return Ok(work);
        }
        let title: String =
            task.lines().next().unwrap_or_default().chars().take(MAX_TITLE_CHARS).collect();
        let objective = match &args.objective {
            Some(id) => threads.find_objective(id)?,
            None => {
                threads.store.init().map_err(explain_thread_error)?;
                threads.store.create_objective(&title).map_err(explain_thread_error)?
            }
        };
        let mut spawn = SpawnRequest::new(title, objective.id.as_str());
        spawn.references = references;
        let spawned = threads.store.spawn_thread(&spawn).map_err(explain_thread_error)?;
        report_warnings(ui, &spawned.warnings);
        let worker = threads.store.begin_work(&spawned.thread.id, process::id(), false);
        Ok(Self {
            worker: worker.map_err(explain_thread_error)?,
            threads: threads.store,
            thread: spawned.thread,
        })
    }

    /// Opens an existing thread. If another process works in it, waits or returns an error.
    pub(crate) fn open(
        ui: &mut Ui,
        env: &ProcessEnvironment,
        id: &str,
        is_waiting: bool,
    ) -> Result<Self, CommandError> {
        let threads = ProjectThreads::for_working_folder(env);
        let thread = threads.find_thread(id)?;
        let threads = threads.store;
        let started = threads.begin_work(&thread.id, process::id(), is_waiting);
        let mut worker = started.map_err(|error| explain_busy_thread(env, error))?;
        let run = ThreadRun { env, threads: &threads, id: &thread.id };
        let finished = run.finish_killed(&worker);
        let thread = threads.thread(thread.id.as_str()).map_err(explain_thread_error)?;
        if matches!(
            thread.status,
            ThreadStatus::Cancelled | ThreadStatus::Archived | ThreadStatus::Frozen
        ) {
            finished.and_then(|()| Ok(worker.finish()?))?;
            let (id, status) = (&thread.id, thread.status);
            let error = CommandError::user(format!("thread {id} is {status}"));
            return Err(error.hint("leave out --thread, and use --ref to refer to it"));
        }
        if let Err(error) = finished {
            ui.warning(format_args!("could not finish the previous run: {}", error.error));
            // This run also finishes the previous one.
            let since = worker.killed().and_then(|killed| killed.since);
            worker.record_progress(|state| state.since = since)?;
        }
        Ok(Self { threads, thread, worker })
    }

    fn add_references(&self, ui: &mut Ui, targets: &[String]) -> Result<(), CommandError> {
        for target in targets {
            let reference = ReferenceRequest {
                from: self.id().to_owned(),
                target: target.clone(),
                binding: ReferenceBinding::Frozen,
                scope: None,
                operator: Operator::User,
            };
            let made = self.threads.add_reference(&reference).map_err(explain_thread_error)?;
            report_warnings(ui, &made.warnings);
        }
        Ok(())
    }

    /// Marks the thread as active, with the number of prompts to come.
    pub(super) fn activate(&mut self, prompts: usize) -> Result<(), CommandError> {
        self.worker.record_progress(|state| state.prompts_planned = prompts)?;
        self.thread = self
            .threads
            .activate_thread(self.id(), Operator::User)
            .map_err(explain_thread_error)?;
        Ok(())
    }

    /// Records the end of a turn.
    pub(super) fn note_turn(&mut self) {
        // A full disk must not end the run. Without this count, a killed run is detected by the times of its prompts
        // alone.
        let _ = self.worker.record_progress(|state| state.turns_ended += 1);
    }

    /// Returns the project's folder; asset paths are relative to it.
    pub(crate) fn root(&self) -> &Path {
        self.threads.root()
    }

    /// Returns the thread's id.
    pub(crate) fn id(&self) -> &str {
        self.thread.id.as_str()
    }

    /// Builds the prompt for a task: the thread's context unless already sent, waiting messages, and the task. Also
    /// returns the messages.
    pub(super) fn build_prompt(
        &self,
        ui: &mut Ui,
        task: &str,
        has_context: bool,
    ) -> Result<(String, UndeliveredMessages), CommandError> {
        let mut prompt = String::new();
        if !has_context {
            let (context, warnings) =
                self.threads.render_thread_context(self.id()).map_err(explain_thread_error)?;
            report_warnings(ui, &warnings);
            prompt = context + "\n\n";
        }
        let waiting = self.threads.undelivered_messages(self.id()).map_err(explain_thread_error)?;
        prompt.push_str(&waiting.to_prompt_text());
        prompt.push_str(task);
        Ok((prompt, waiting))
    }

    /// Marks the waiting messages as delivered.
    pub(super) fn mark_delivered(&self, waiting: &UndeliveredMessages) -> Result<(), CommandError> {
        self.threads.mark_delivered(self.id(), waiting).map_err(explain_thread_error)
    }

    /// Returns the agent that worked in the thread before.
    pub(crate) fn previous_agent(&self) -> Result<Option<String>, CommandError> {
        self.threads.agent(self.id()).map_err(explain_thread_error)
    }

    /// Stores the agent's name for the next run.
    pub(super) fn remember_agent(&self, name: &str) -> Result<(), CommandError> {
        self.threads.set_agent(self.id(), name).map_err(explain_thread_error)
    }

    /// Stores the agent's session id, so that the session can continue after a crash.
    pub(super) fn remember_session(&self, session: &str) -> Result<(), CommandError> {
        self.threads.set_session(self.id(), session).map_err(explain_thread_error)?;
        Ok(())
    }

    /// Writes or updates the transcripts of this run's prompts.
    pub(super) fn write_transcripts(
        &self,
        env: &ProcessEnvironment,
        transcript: Transcript,
    ) -> Result<Vec<PathBuf>, CommandError> {
        let run = ThreadRun { env, threads: &self.threads, id: &self.thread.id };
        run.write_transcripts(transcript, self.worker.state())
    }

    /// Sets the thread's final status and releases the thread.
    pub(super) fn finish_run(
        self,
        env: &ProcessEnvironment,
        outcome: &RunOutcome,
    ) -> Result<ThreadStatus, CommandError> {
        let run = ThreadRun { env, threads: &self.threads, id: &self.thread.id };
        let status = run.update_status(outcome)?;
        self.worker.finish()?;
        Ok(status)
    }
}

/// Explains that another process works in the thread.
fn explain_busy_thread(env: &ProcessEnvironment, error: ThreadError) -> CommandError {
    let ThreadError::Busy { thread, worker } = error else { return explain_thread_error(error) };
    let who = match worker.pid {
        0 => "another process".to_owned(),
        pid => format!("process {pid}"),
    };
    let since = worker.since.map(|at| at.in_zone(&env.zone).date_and_clock());
    let since = since.map(|since| format!(" since {since}")).unwrap_or_default();
    let error = CommandError::user(format!("thread {thread} is busy: {who} works in it{since}"));
    error.hint("use --wait to wait until it is free")
}
