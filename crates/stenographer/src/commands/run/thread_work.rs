//! The thread in which an agent works: what it is told of it, and what becomes of it.

use std::path::{Path, PathBuf};
use std::process;

use steno_core::Transcript;
use steno_core::thread::{
    Binding, Operator, Reference, Spawn, Status, Thread, ThreadError, ThreadStore, ThreadWorker,
    Waiting,
};

use super::Args;
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::{ProjectThreads, report_warnings};
use crate::thread_error::explain_thread_error;
use crate::thread_run::{RunOutcome, ThreadRun};
use crate::ui::Ui;

/// Letters of a task that name its objective.
const MAX_TITLE_CHARS: usize = 80;

/// A thread of the project, in which nobody else works.
pub(crate) struct ThreadWork {
    threads: ThreadStore,
    pub(crate) thread: Thread,
    worker: ThreadWorker,
}

impl ThreadWork {
    /// The thread that was asked for; a new one where none was.
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
        let mut spawn = Spawn::new(title, objective.id.as_str());
        spawn.references = references;
        let spawned = threads.store.spawn(&spawn).map_err(explain_thread_error)?;
        report_warnings(ui, &spawned.warnings);
        let worker = threads.store.begin_work(&spawned.thread.id, process::id(), false);
        Ok(Self {
            worker: worker.map_err(explain_thread_error)?,
            threads: threads.store,
            thread: spawned.thread,
        })
    }

    /// A thread that is there, and can be worked in. While another process works there, that is an error, or waited for.
    pub(crate) fn open(
        ui: &mut Ui,
        env: &ProcessEnvironment,
        id: &str,
        is_waiting: bool,
    ) -> Result<Self, CommandError> {
        let threads = ProjectThreads::for_working_folder(env);
        let thread = threads.find_thread(id)?;
        let threads = threads.store;
        let begun = threads.begin_work(&thread.id, process::id(), is_waiting);
        let mut worker = begun.map_err(|error| explain_busy_thread(env, error))?;
        let run = ThreadRun { env, threads: &threads, id: &thread.id };
        let finished = run.finish_killed(&worker);
        let thread = threads.thread(thread.id.as_str()).map_err(explain_thread_error)?;
        if matches!(thread.status, Status::Cancelled | Status::Archived | Status::Frozen) {
            finished.and_then(|()| Ok(worker.finish()?))?;
            let (id, status) = (&thread.id, thread.status);
            let error = CommandError::user(format!("thread {id} is {status}"));
            return Err(error.hint("leave --thread out, and name it with --ref"));
        }
        if let Err(error) = finished {
            ui.warning(format_args!("the last run is not finished: {}", error.error));
            // This run finishes it together with its own.
            let since = worker.killed().and_then(|killed| killed.since);
            worker.note(|state| state.since = since)?;
        }
        Ok(Self { threads, thread, worker })
    }

    fn add_references(&self, ui: &mut Ui, targets: &[String]) -> Result<(), CommandError> {
        for target in targets {
            let reference = Reference {
                from: self.id().to_owned(),
                target: target.clone(),
                binding: Binding::Frozen,
                scope: None,
                operator: Operator::User,
            };
            let made = self.threads.reference(&reference).map_err(explain_thread_error)?;
            report_warnings(ui, &made.warnings);
        }
        Ok(())
    }

    /// Somebody works in the thread from now on, who will give so many prompts.
    pub(super) fn activate(&mut self, prompts: usize) -> Result<(), CommandError> {
        self.worker.note(|state| state.prompts_planned = prompts)?;
        self.thread =
            self.threads.activate(self.id(), Operator::User).map_err(explain_thread_error)?;
        Ok(())
    }

    /// One more turn has ended.
    pub(super) fn note_turn(&mut self) {
        // A full disk must not end the run. Without this, a killed run is told by the times of its prompts alone.
        let _ = self.worker.note(|state| state.turns_ended += 1);
    }

    /// The project's folder, from which the paths of assets begin.
    pub(crate) fn root(&self) -> &Path {
        self.threads.root()
    }

    /// The thread's id.
    pub(crate) fn id(&self) -> &str {
        self.thread.id.as_str()
    }

    /// A prompt for a task, with what the agent has to be told before it, and what of that waited.
    pub(super) fn build_prompt(
        &self,
        ui: &mut Ui,
        task: &str,
        is_told: bool,
    ) -> Result<(String, Waiting), CommandError> {
        let mut prompt = String::new();
        if !is_told {
            let (context, warnings) =
                self.threads.context(self.id()).map_err(explain_thread_error)?;
            report_warnings(ui, &warnings);
            prompt = context + "\n\n";
        }
        let waiting = self.threads.waiting(self.id()).map_err(explain_thread_error)?;
        prompt.push_str(&waiting.text());
        prompt.push_str(task);
        Ok((prompt, waiting))
    }

    /// The agent was told what waited.
    pub(super) fn mark_delivered(&self, waiting: &Waiting) -> Result<(), CommandError> {
        self.threads.delivered(self.id(), waiting).map_err(explain_thread_error)
    }

    /// The agent that worked in the thread before.
    pub(crate) fn previous_agent(&self) -> Result<Option<String>, CommandError> {
        self.threads.agent(self.id()).map_err(explain_thread_error)
    }

    /// Remembers the agent, so that the same one goes on.
    pub(super) fn remember_agent(&self, name: &str) -> Result<(), CommandError> {
        self.threads.set_agent(self.id(), name).map_err(explain_thread_error)
    }

    /// Remembers the agent's session, so that it can go on after a crash.
    pub(super) fn remember_session(&self, session: &str) -> Result<(), CommandError> {
        self.threads.set_session(self.id(), session).map_err(explain_thread_error)?;
        Ok(())
    }

    /// Writes the transcripts of this run's prompts, or brings them up to date.
    pub(super) fn write_transcripts(
        &self,
        env: &ProcessEnvironment,
        transcript: Transcript,
    ) -> Result<Vec<PathBuf>, CommandError> {
        let run = ThreadRun { env, threads: &self.threads, id: &self.thread.id };
        run.write_transcripts(transcript, self.worker.state())
    }

    /// Gives the thread the status that follows; nothing is left to finish then.
    pub(super) fn finish_run(
        self,
        env: &ProcessEnvironment,
        outcome: &RunOutcome,
    ) -> Result<Status, CommandError> {
        let run = ThreadRun { env, threads: &self.threads, id: &self.thread.id };
        let status = run.update_status(outcome)?;
        self.worker.finish()?;
        Ok(status)
    }
}

/// The error for a thread that another process works in.
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
