//! leslie's `run`: a new objective, and its threads, each with an agent of its own, at the same time. A thread that waits for
//! others goes on once they are over.

use std::collections::{HashMap, HashSet};
use std::process::Child;
use std::thread as threads;
use std::time::Duration;

use serde_json::json;
use steno_core::thread::{
    Action, Executor, Id, Lifecycle, Objective, ObjectiveStatus, Operator, Spawn, Status, Thread,
};

use super::super::response::{LeslieFailure, LeslieResponse};
use super::runtime::{LeslieWorkerState, RuntimeFolder};
use super::{LeslieCall, approval, start_worker};
use crate::thread_run::finish_killed_runs;

/// How often one looks how the threads stand.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How often a thread is resumed in one run.
const MAX_RESUMES: usize = 20;

/// `run`: a new objective, worked on until all its threads are over or nobody works on those that are left.
pub(in super::super) fn run(desk: &mut LeslieCall<'_>) -> Result<LeslieResponse, LeslieFailure> {
    let title = desk.flags.required_text("title")?.to_owned();
    let objective = desk.store.create_objective(&title)?;
    desk.store.spawn(&Spawn::new(title, objective.id.as_str()))?;
    let runtime = RuntimeFolder::create(desk, &objective)?;
    let mut monitor = ObjectiveMonitor {
        objective,
        runtime,
        workers: HashMap::new(),
        started: HashMap::new(),
        resumes: ResumeCounts::default(),
        failed: Vec::new(),
        known_requests: HashSet::new(),
    };
    while monitor.poll(desk)? {
        threads::sleep(POLL_INTERVAL);
    }
    monitor.into_response(desk)
}

/// A run while it goes on.
struct ObjectiveMonitor {
    objective: Objective,
    runtime: RuntimeFolder,
    /// The workers that were started from here.
    workers: HashMap<String, (Thread, Child)>,
    /// The threads that an agent was started for, and which of their children were over then.
    started: HashMap<String, HashSet<Id>>,
    resumes: ResumeCounts,
    /// Those whose agents have failed.
    failed: Vec<String>,
    /// The questions that were put to a person.
    known_requests: HashSet<String>,
}

impl ObjectiveMonitor {
    /// Does what there is to do; whether somebody still works.
    fn poll(&mut self, desk: &mut LeslieCall<'_>) -> Result<bool, LeslieFailure> {
        self.reap_workers(desk)?;
        let mut threads = desk.store.threads(None)?;
        threads.retain(|thread| thread.objective == self.objective.id);
        let busy = self.busy_threads(&threads);
        for thread in threads.iter().filter(|thread| !busy.contains(thread.id.as_str())) {
            let id = thread.id.as_str();
            let is_new = thread.status == Status::Active
                && thread.executor != Executor::Human
                && !self.started.contains_key(id);
            let over = finished_children(thread, &threads);
            if is_new && self.runtime.claim_thread(thread)? {
                self.started.insert(id.to_owned(), over);
                self.start_worker(desk, thread, "run")?;
            } else if self.is_ready(thread, &threads) {
                self.started.insert(id.to_owned(), over);
                if self.resumes.count_resume(id) {
                    let resumed = resume_thread(desk, thread)?;
                    self.start_worker(desk, &resumed, "resume")?;
                } else {
                    desk.ui.warning(format_args!(
                        "thread {id} was resumed {MAX_RESUMES} times and still spawns children; it stays suspended"
                    ));
                }
            }
        }
        approval::answer_requests(desk, &self.runtime, &mut self.known_requests)?;
        self.objective = desk.store.objective(self.objective.id.as_str())?;
        let is_over = self.objective.status == ObjectiveStatus::Completed;
        Ok(!self.workers.is_empty() || !busy.is_empty() && !is_over)
    }

    /// The threads that somebody works on, be it from here or because an agent has spawned them.
    fn busy_threads(&self, threads: &[Thread]) -> HashSet<String> {
        let states = self.runtime.worker_states();
        let is_busy = |id: &&str| match states.get(*id) {
            _ if self.started.contains_key(*id) => self.workers.contains_key(*id),
            Some(LeslieWorkerState::Busy(pid)) => is_process_alive(*pid),
            _ => false,
        };
        threads.iter().map(|thread| thread.id.as_str()).filter(is_busy).map(str::to_owned).collect()
    }

    /// Whether a thread waited for others which are over, and one of those has ended since its agent was last started. Else
    /// the agent would only be told the same again.
    fn is_ready(&self, thread: &Thread, threads: &[Thread]) -> bool {
        let over = finished_children(thread, threads);
        let children = threads.iter().filter(|child| is_child(child, thread)).count();
        let has_failed = self.failed.iter().any(|failed| failed == thread.id.as_str());
        thread.status == Status::Suspended
            && !has_failed
            && children > 0
            && over.len() == children
            && self.started.get(thread.id.as_str()) != Some(&over)
    }

    fn start_worker(
        &mut self,
        desk: &mut LeslieCall<'_>,
        thread: &Thread,
        source: &str,
    ) -> Result<(), LeslieFailure> {
        desk.ui.print_note(format_args!("thread {} started", thread.id));
        let worker = start_worker(desk, thread, Some((&self.runtime, source)))?;
        self.workers.insert(thread.id.to_string(), (thread.clone(), worker));
        Ok(())
    }

    /// Takes leave of workers that have ended.
    fn reap_workers(&mut self, desk: &mut LeslieCall<'_>) -> Result<(), LeslieFailure> {
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
                // One that was killed could not say so itself.
                self.runtime.append_event(
                    desk,
                    &thread,
                    "worker_exit",
                    json!({ "success": false }),
                )?;
            }
            let went_well =
                ended_well && state == Some(LeslieWorkerState::Over { went_well: true });
            desk.ui.print_note(format_args!(
                "thread {id} {}",
                if went_well { "ended" } else { "failed" }
            ));
            if !went_well {
                finish_killed_runs(desk.ui, desk.env, &desk.store);
                self.failed.push(id);
            }
        }
        Ok(())
    }

    fn into_response(self, desk: &LeslieCall<'_>) -> Result<LeslieResponse, LeslieFailure> {
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
            "logs_dir": desk.store.log_folder(&self.objective.id),
        })))
    }
}

/// How often each thread was resumed because its children were over. An agent that spawns another child each time would go on
/// without end.
#[derive(Default)]
struct ResumeCounts(HashMap<String, usize>);

impl ResumeCounts {
    /// Counts one more time; whether the thread may be resumed.
    fn count_resume(&mut self, id: &str) -> bool {
        let count = self.0.entry(id.to_owned()).or_default();
        *count += 1;
        *count <= MAX_RESUMES
    }
}

/// The children of a thread that are over.
fn finished_children(thread: &Thread, threads: &[Thread]) -> HashSet<Id> {
    let over = threads.iter().filter(|child| is_child(child, thread) && child.status.is_over());
    over.map(|child| child.id.clone()).collect()
}

fn is_child(child: &Thread, parent: &Thread) -> bool {
    child.parent_id.as_ref() == Some(&parent.id)
}

fn resume_thread(desk: &LeslieCall<'_>, thread: &Thread) -> Result<Thread, LeslieFailure> {
    Ok(desk.store.lifecycle(&Lifecycle {
        thread: thread.id.to_string(),
        action: Action::Resume,
        reason: Some("Children completed".to_owned()),
        operator: Operator::System,
    })?)
}

/// Whether a process is there; one that nobody has named may be.
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
