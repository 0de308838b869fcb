//! leslie's `run`: a new objective, and its threads, each with an agent of its own, at the same time. A thread that waits for
//! others goes on once they are over.

use std::collections::{HashMap, HashSet};
use std::process::Child;
use std::thread as threads;
use std::time::Duration;

use serde_json::json;
use steno_core::thread::{
    Action, Executor, Lifecycle, Objective, ObjectiveStatus, Operator, Spawn, Status, Thread,
};

use super::super::answer::{Answer, Failure};
use super::runtime::{Runtime, State};
use super::{Desk, approval, start};

/// How often one looks how the threads stand.
const LOOK: Duration = Duration::from_millis(100);

/// `run`: a new objective, worked on until all its threads are over or nobody works on those that are left.
pub(in super::super) fn run(desk: &mut Desk<'_>) -> Result<Answer, Failure> {
    let title = desk.flags.required("title")?.to_owned();
    let objective = desk.store.create_objective(&title)?;
    desk.store.spawn(&Spawn::new(title, objective.id.as_str()))?;
    let runtime = Runtime::begin(desk, &objective)?;
    let mut monitor = Monitor {
        objective,
        runtime,
        workers: HashMap::new(),
        started: HashSet::new(),
        failed: Vec::new(),
        asked: HashSet::new(),
    };
    while monitor.look(desk)? {
        threads::sleep(LOOK);
    }
    monitor.answer(desk)
}

/// A run while it goes on.
struct Monitor {
    objective: Objective,
    runtime: Runtime,
    /// The workers that were started from here.
    workers: HashMap<String, (Thread, Child)>,
    /// The threads that an agent was started for.
    started: HashSet<String>,
    /// Those whose agents have failed.
    failed: Vec<String>,
    /// The questions that were put to a person.
    asked: HashSet<String>,
}

impl Monitor {
    /// Does what there is to do; whether somebody still works.
    fn look(&mut self, desk: &mut Desk<'_>) -> Result<bool, Failure> {
        self.reap(desk)?;
        let mut threads = desk.store.threads(None)?;
        threads.retain(|thread| thread.objective == self.objective.id);
        let busy = self.busy(&threads);
        for thread in threads.iter().filter(|thread| !busy.contains(thread.id.as_str())) {
            let id = thread.id.as_str();
            let is_new = thread.status == Status::Active && !self.started.contains(id);
            if is_new && thread.executor != Executor::Human {
                self.start(desk, thread, "run")?;
            } else if is_ready(thread, &threads) && !self.failed.iter().any(|failed| failed == id) {
                let resumed = resume(desk, thread)?;
                self.start(desk, &resumed, "resume")?;
            }
        }
        approval::answer_all(desk, &self.runtime, &mut self.asked)?;
        self.objective = desk.store.objective(self.objective.id.as_str())?;
        let is_over = self.objective.status == ObjectiveStatus::Completed;
        Ok(!self.workers.is_empty() || !busy.is_empty() && !is_over)
    }

    /// The threads that somebody works on, be it from here or because an agent has spawned them.
    fn busy(&self, threads: &[Thread]) -> HashSet<String> {
        let states = self.runtime.states();
        let is_busy = |id: &&str| match states.get(*id) {
            _ if self.started.contains(*id) => self.workers.contains_key(*id),
            Some(State::Busy(pid)) => is_alive(*pid),
            _ => false,
        };
        threads.iter().map(|thread| thread.id.as_str()).filter(is_busy).map(str::to_owned).collect()
    }

    fn start(&mut self, desk: &mut Desk<'_>, thread: &Thread, source: &str) -> Result<(), Failure> {
        desk.ui.note(format_args!("thread {} started", thread.id));
        let worker = start(desk, thread, Some((&self.runtime, source)))?;
        self.started.insert(thread.id.to_string());
        self.workers.insert(thread.id.to_string(), (thread.clone(), worker));
        Ok(())
    }

    /// Takes leave of workers that have ended.
    fn reap(&mut self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let mut over = Vec::new();
        for (id, (_, worker)) in &mut self.workers {
            if let Ok(Some(status)) = worker.try_wait() {
                over.push((id.clone(), status.success()));
            }
        }
        for (id, ended_well) in over {
            let Some((thread, _)) = self.workers.remove(&id) else { continue };
            let state = self.runtime.states().get(&id).copied();
            if let Some(State::Busy(_)) | None = state {
                // One that was killed could not say so itself.
                self.runtime.note(desk, &thread, "worker_exit", json!({ "success": false }))?;
            }
            let went_well = ended_well && state == Some(State::Over { went_well: true });
            desk.ui
                .note(format_args!("thread {id} {}", if went_well { "ended" } else { "failed" }));
            if !went_well {
                self.failed.push(id);
            }
        }
        Ok(())
    }

    fn answer(self, desk: &Desk<'_>) -> Result<Answer, Failure> {
        if let Some(thread) = self.failed.first() {
            let log = format!(".leslie/logs/workers/{thread}.ndjson");
            let message = format!("Agent of thread '{thread}' failed, see {log}");
            return Err(Failure::unknown(message));
        }
        Ok(Answer::new(json!({
            "objective_id": self.objective.id,
            "title": self.objective.title,
            "status": self.objective.status,
            "runtime_dir": self.runtime.folder,
            "logs_dir": desk.store.log_folder(&self.objective.id),
        })))
    }
}

/// Whether a thread waited for others which are over.
fn is_ready(thread: &Thread, threads: &[Thread]) -> bool {
    let is_child = |child: &&Thread| child.parent_id.as_ref() == Some(&thread.id);
    let mut children = threads.iter().filter(is_child).peekable();
    thread.status == Status::Suspended
        && children.peek().is_some()
        && children.all(|child| child.status.is_over())
}

fn resume(desk: &Desk<'_>, thread: &Thread) -> Result<Thread, Failure> {
    Ok(desk.store.lifecycle(&Lifecycle {
        thread: thread.id.to_string(),
        action: Action::Resume,
        reason: Some("Children completed".to_owned()),
        operator: Operator::System,
    })?)
}

/// Whether a process is there; one that nobody has named may be.
fn is_alive(pid: Option<u64>) -> bool {
    #[cfg(unix)]
    if let Some(pid) = pid.and_then(|pid| i32::try_from(pid).ok()) {
        use rustix::process::{Pid, test_kill_process};
        return Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid).is_ok());
    }
    pid.is_some()
}
