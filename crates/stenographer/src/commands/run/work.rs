//! The thread in which an agent works: what it is told of it, and what becomes of it.

use std::path::{Path, PathBuf};

use steno_core::entry::{Kind, PRIMARY, Role};
use steno_core::format::leslie;
use steno_core::thread::{
    Action, Binding, Lifecycle, Operator, Reference, Spawn, Status, Thread, ThreadStore, Waiting,
    task_of,
};
use steno_core::vault::UNENDED;
use steno_core::{Entry, Transcript};

use super::Args;
use crate::error::CommandError;
use crate::scene::Scene;
use crate::threads::{Threads, told, warn};
use crate::ui::Ui;

/// Letters of a task that name its objective.
const TITLE: usize = 80;

/// A thread of the project.
pub(crate) struct Work {
    threads: ThreadStore,
    pub(crate) thread: Thread,
    /// Whether a run in it was never brought to its end.
    pub(crate) is_unsettled: bool,
}

/// What became of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The agent has ended its turn.
    Done,
    /// It has not, for this reason.
    Open(String),
}

impl Work {
    /// The thread that was asked for; a new one where none was.
    pub(super) fn begin(
        ui: &mut Ui,
        scene: &Scene,
        args: &Args,
        task: &str,
    ) -> Result<Self, CommandError> {
        let threads = Threads::near(scene);
        let references = threads.ids(&args.references)?;
        if let Some(id) = &args.thread {
            let work = Self::of(threads, id)?;
            work.refer(ui, &references)?;
            return Ok(work);
        }
        let title: String = task.lines().next().unwrap_or_default().chars().take(TITLE).collect();
        let objective = match &args.objective {
            Some(id) => threads.objective(id)?,
            None => {
                threads.store.init().map_err(told)?;
                threads.store.create_objective(&title).map_err(told)?
            }
        };
        let mut spawn = Spawn::new(title, objective.id.as_str());
        spawn.references = references;
        let spawned = threads.store.spawn(&spawn).map_err(told)?;
        warn(ui, &spawned.warnings);
        Ok(Self { threads: threads.store, thread: spawned.thread, is_unsettled: false })
    }

    /// A thread that is there, and can be worked in.
    pub(crate) fn resume(scene: &Scene, id: &str) -> Result<Self, CommandError> {
        Self::of(Threads::near(scene), id)
    }

    fn of(threads: Threads, id: &str) -> Result<Self, CommandError> {
        let mut thread = threads.thread(id)?;
        let threads = threads.store;
        let is_unsettled = thread.status == Status::Active;
        match thread.status {
            Status::Active | Status::Completed => {}
            Status::Suspended | Status::WaitingHuman => {
                let change = Lifecycle {
                    thread: thread.id.to_string(),
                    action: Action::Resume,
                    reason: None,
                    operator: Operator::User,
                };
                thread = threads.lifecycle(&change).map_err(told)?;
            }
            status => {
                let error = CommandError::user(format!("thread {} is {status}", thread.id));
                return Err(error.hint("leave --thread out, and name it with --ref"));
            }
        }
        Ok(Self { threads, thread, is_unsettled })
    }

    fn refer(&self, ui: &mut Ui, targets: &[String]) -> Result<(), CommandError> {
        for target in targets {
            let reference = Reference {
                from: self.id().to_owned(),
                target: target.clone(),
                binding: Binding::Frozen,
                scope: None,
                operator: Operator::User,
            };
            let made = self.threads.reference(&reference).map_err(told)?;
            warn(ui, &made.warnings);
        }
        Ok(())
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
    pub(super) fn prompt(
        &self,
        ui: &mut Ui,
        task: &str,
        is_told: bool,
    ) -> Result<(String, Waiting), CommandError> {
        let mut prompt = String::new();
        if !is_told {
            let (context, warnings) = self.threads.context(self.id()).map_err(told)?;
            warn(ui, &warnings);
            prompt = context + "\n\n";
        }
        let waiting = self.threads.waiting(self.id()).map_err(told)?;
        prompt.push_str(&waiting.text());
        prompt.push_str(task);
        Ok((prompt, waiting))
    }

    /// The agent was told what waited.
    pub(super) fn delivered(&self, waiting: &Waiting) -> Result<(), CommandError> {
        self.threads.delivered(self.id(), waiting).map_err(told)
    }

    /// The agent that worked in the thread before.
    pub(crate) fn agent(&self) -> Result<Option<String>, CommandError> {
        self.threads.agent(self.id()).map_err(told)
    }

    /// Remembers the agent, so that the same one goes on.
    pub(super) fn remember_agent(&self, name: &str) -> Result<(), CommandError> {
        self.threads.set_agent(self.id(), name).map_err(told)
    }

    /// Remembers the agent's session, so that it can go on after a crash.
    pub(super) fn remember(&self, session: &str) -> Result<(), CommandError> {
        self.threads.set_session(self.id(), session).map_err(told)?;
        Ok(())
    }

    /// Writes the transcripts of the last prompts, as many as are told.
    pub(crate) fn write_transcripts(
        &self,
        mut transcript: Transcript,
        prompts: usize,
    ) -> Result<Vec<PathBuf>, CommandError> {
        let asks = |entry: &Entry| {
            entry.role == Role::User && entry.kind == Kind::Text && entry.source == PRIMARY
        };
        let begins = (0..transcript.entries.len()).rev();
        let mut begins = begins.filter(|at| asks(&transcript.entries[*at]));
        let begin = begins.nth(prompts.saturating_sub(1)).unwrap_or(0);
        transcript.entries.drain(..begin);
        for entry in transcript.entries.iter_mut().filter(|entry| asks(entry)) {
            entry.content = task_of(&entry.content).to_owned();
        }
        let session = &mut transcript.session;
        session.thread = Some(self.id().to_owned());
        session.stop_reason.take_if(|reason| reason == UNENDED);
        let mode = session.extra.get("acp").and_then(|wire| wire.get("set_mode")).cloned();
        session.extra.extend(mode.map(|mode| (leslie::AGENT_MODE.to_owned(), mode)));
        self.threads.write_transcript(self.id(), &transcript).map_err(told)
    }

    /// Gives the thread the status that follows, unless somebody has given it another meanwhile.
    pub(super) fn settle(&self, outcome: &Outcome) -> Result<Status, CommandError> {
        let thread = self.threads.thread(self.id()).map_err(told)?;
        if thread.status != Status::Active {
            return Ok(thread.status);
        }
        let (action, reason) = match outcome {
            Outcome::Done if self.has_open_children()? => {
                (Action::Suspend, Some("Waiting for child threads".to_owned()))
            }
            Outcome::Done => (Action::Done, None),
            Outcome::Open(reason) => (Action::Suspend, Some(reason.clone())),
        };
        let thread = self.id().to_owned();
        let change = Lifecycle { thread, action, reason, operator: Operator::System };
        Ok(self.threads.lifecycle(&change).map_err(told)?.status)
    }

    fn has_open_children(&self) -> Result<bool, CommandError> {
        let relations = self.threads.relations().map_err(told)?;
        let children = relations.links.get(self.id()).map_or(&[][..], |links| &links.children);
        let mut children = children.iter().filter_map(|id| relations.threads.get(id));
        Ok(children.any(|child| !child.status.is_over()))
    }
}
