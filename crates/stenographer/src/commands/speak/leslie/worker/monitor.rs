//! leslie's `run`: creates an objective and runs an agent per thread in parallel. A thread that waits for others
//! continues once they end.

use std::collections::{HashMap, HashSet};
use std::process::Child;
use std::thread as threads;
use std::time::Duration;

use serde_json::json;
use steno_seeds::thread::{
    Executor, LeslieId, LifecycleAction, Objective, ObjectiveStatus, Operator, SpawnRequest,
    StatusChange, Thread, ThreadStatus,
};

use super::super::response::{LeslieFailure, LeslieResponse};
use super::runtime::{LeslieWorkerState, RuntimeFolder};
use super::{LeslieContext, approval, start_worker};
use crate::thread_run::finish_killed_runs;

/// Interval between checks of the threads.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Limit of resumes per thread in one run.
const MAX_RESUMES: usize = 20;

/// `run`: creates an objective and works on it until all its threads end, or none of the rest has a worker.
pub(in super::super) fn run(
    context: &mut LeslieContext<'_>,
) -> Result<LeslieResponse, LeslieFailure> {
    let title = context.flags.required_text("title")?.to_owned();
    let objective = context.store.create_objective(&title)?;
    context.store.spawn_thread(&SpawnRequest::new(title, objective.id.as_str()))?;
    let runtime = RuntimeFolder::create(context, &objective)?;
    let mut monitor = ObjectiveMonitor {
        objective,
        runtime,
        workers: HashMap::new(),
        started: HashMap::new(),
        resumes: ResumeCounts::default(),
        failed: Vec::new(),
        known_requests: HashSet::new(),
    };
    while monitor.poll(context)? {
        threads::sleep(POLL_INTERVAL);
    }
    monitor.into_response(context)
}

/// A running objective.
struct ObjectiveMonitor {
    objective: Objective,
    runtime: RuntimeFolder,
    /// Workers that this process started.
    workers: HashMap<String, (Thread, Child)>,
    /// Threads with a started agent, each with the children that had ended then.
    started: HashMap<String, HashSet<LeslieId>>,
    resumes: ResumeCounts,
    /// Threads of agents that failed.
    failed: Vec<String>,
    /// Requests that were already shown.
    known_requests: HashSet<String>,
}

impl ObjectiveMonitor {
    /// Starts, resumes and reaps workers. Returns whether any work is left.
    fn poll(&mut self, context: &mut LeslieContext<'_>) -> Result<bool, LeslieFailure> {
        self.reap_workers(context)?;
        let mut threads = context.store.list_threads(None)?;
        threads.retain(|thread| thread.objective == self.objective.id);
        let busy = self.busy_threads(&threads);
        for thread in threads.iter().filter(|thread| !busy.contains(thread.id.as_str())) {
            let id = thread.id.as_str();
            let is_new = thread.status == ThreadStatus::Active
                && thread.executor != Executor::Human
                && !self.started.contains_key(id);
            let over = finished_children(thread, &threads);
            if is_new && self.runtime.claim_thread(thread)? {
                self.started.insert(id.to_owned(), over);
                self.start_worker(context, thread, "run")?;
            } else if self.is_ready(thread, &threads) {
                self.started.insert(id.to_owned(), over);
                if self.resumes.count_resume(id) {
                    let resumed = resume_thread(context, thread)?;
                    self.start_worker(context, &resumed, "resume")?;
                } else {
                    context.ui.warning(format_args!(
                        "thread {id} was resumed {MAX_RESUMES} times and still spawns children; leaving it suspended"
                    ));
                }
            }
        }
        approval::answer_requests(context, &self.runtime, &mut self.known_requests)?;
        self.objective = context.store.objective(self.objective.id.as_str())?;
        let is_over = self.objective.status == ObjectiveStatus::Completed;
        Ok(!self.workers.is_empty() || !busy.is_empty() && !is_over)
    }

    /// Returns the threads with a running worker, started here or by an agent.
    fn busy_threads(&self, threads: &[Thread]) -> HashSet<String> {
        let states = self.runtime.worker_states();
        let is_busy = |id: &&str| match states.get(*id) {
            _ if self.started.contains_key(*id) => self.workers.contains_key(*id),
            Some(LeslieWorkerState::Busy(pid)) => is_process_alive(*pid),
            _ => false,
        };
        threads.iter().map(|thread| thread.id.as_str()).filter(is_busy).map(str::to_owned).collect()
    }

    /// Returns whether a suspended thread can resume: all its children have ended, at least one of them since its
    /// agent last started. Otherwise the agent would get the same prompt again.
    fn is_ready(&self, thread: &Thread, threads: &[Thread]) -> bool {
        let over = finished_children(thread, threads);
        let children = threads.iter().filter(|child| is_child(child, thread)).count();
        let has_failed = self.failed.iter().any(|failed| failed == thread.id.as_str());
        thread.status == ThreadStatus::Suspended
            && !has_failed
            && children > 0
            && over.len() == children
            && self.started.get(thread.id.as_str()) != Some(&over)
    }

    fn start_worker(
        &mut self,
        context: &mut LeslieContext<'_>,
        thread: &Thread,
        source: &str,
    ) -> Result<(), LeslieFailure> {
        context.ui.print_note(format_args!("thread {} started", thread.id));
        let worker = start_worker(context, thread, Some((&self.runtime, source)))?;
        self.workers.insert(thread.id.to_string(), (thread.clone(), worker));
        Ok(())
    }

    /// Removes workers that have ended.
    fn reap_workers(&mut self, context: &mut LeslieContext<'_>) -> Result<(), LeslieFailure> {
        let mut over = Vec::new();
        for (id, (_, worker)) in &mut self.workers {
            if let Ok(Some(status)) = worker.try_wait() {
                over.push((id.clone(), status.success()));
            }
        }
        for (id, ended_well) in over {
            let Some((thread, _)) = self.workers.remove(&id) else { continue };
            let state = self.runtime.worker_states().get(&id).copied();
            if let Some(LeslieWorkerState::Busy(_)) | None = state {
                // A killed worker could not record its exit.
                self.runtime.append_event(
                    context,
                    &thread,
                    "worker_exit",
                    json!({ "success": false }),
                )?;
            }
            let went_well =
                ended_well && state == Some(LeslieWorkerState::Over { went_well: true });
            context.ui.print_note(format_args!(
                "thread {id} {}",
                if went_well { "ended" } else { "failed" }
            ));
            if !went_well {
                finish_killed_runs(context.ui, context.env, &context.store);
                self.failed.push(id);
            }
        }
        Ok(())
    }

    fn into_response(self, context: &LeslieContext<'_>) -> Result<LeslieResponse, LeslieFailure> {
        if let Some(thread) = self.failed.first() {
            let log = format!(".leslie/logs/workers/{thread}.ndjson");
            let message = format!("Agent of thread '{thread}' failed, see {log}");
            return Err(LeslieFailure::without_code(message));
        }
        Ok(LeslieResponse::new(json!({
            "objective_id": self.objective.id,
            "title": self.objective.title,
            "status": self.objective.status,
            "runtime_dir": self.runtime.folder,
            "logs_dir": context.store.log_folder(&self.objective.id),
        })))
    }
}

/// Counts resumes per thread. An agent that spawns another child each time would otherwise never end.
#[derive(Default)]
struct ResumeCounts(HashMap<String, usize>);

impl ResumeCounts {
    /// Counts one resume. Returns whether the thread may be resumed.
    fn count_resume(&mut self, id: &str) -> bool {
        let count = self.0.entry(id.to_owned()).or_default();
        *count += 1;
        *count <= MAX_RESUMES
    }
}

/// Returns the children of a thread that have ended.
fn finished_children(thread: &Thread, threads: &[Thread]) -> HashSet<LeslieId> {
    let over = threads.iter().filter(|child| is_child(child, thread) && child.status.is_over());
    over.map(|child| child.id.clone()).collect()
}

fn is_child(child: &Thread, parent: &Thread) -> bool {
    child.parent_id.as_ref() == Some(&parent.id)
}

fn resume_thread(context: &LeslieContext<'_>, thread: &Thread) -> Result<Thread, LeslieFailure> {
    Ok(context.store.change_status(&StatusChange {
        thread: thread.id.to_string(),
        action: LifecycleAction::Resume,
        reason: Some("Children completed".to_owned()),
        operator: Operator::System,
    })?)
}

/// Returns whether a process exists.
fn is_process_alive(pid: Option<u64>) -> bool {
    #[cfg(unix)]
    if let Some(pid) = pid.and_then(|pid| i32::try_from(pid).ok()) {
        use rustix::process::{Pid, test_kill_process};
        return Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid).is_ok());
    }
    pid.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_is_resumed_without_end() {
        let mut counts = ResumeCounts::default();
        assert!((0..MAX_RESUMES).all(|_| counts.count_resume("a")));
        assert!(!counts.count_resume("a"));
        assert!(counts.count_resume("b"));
    }
}
