//! What a client hears: the agent's lines, and what a person does meanwhile.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Instant;

use serde_json::Value;

/// Something that is heard.
#[derive(Debug)]
pub(super) enum Heard {
    /// A line of the agent's.
    Line(Value),
    /// A line that a person has typed; an empty one where nobody is there to type.
    Typed(String),
    /// A person wants it to stop.
    Interrupt,
    /// The agent says nothing more.
    End,
    /// The agent takes nothing more.
    Deaf(io::Error),
}

/// Speaks to a client from another thread.
#[derive(Clone, Debug)]
pub struct Voice(Sender<Heard>);

/// Where a client hears.
#[derive(Debug)]
pub struct Ears {
    heard: Receiver<Heard>,
    voice: Voice,
}

/// A voice, and the ears that hear it.
pub fn voice() -> (Voice, Ears) {
    let (told, heard) = mpsc::channel();
    let voice = Voice(told);
    (voice.clone(), Ears { heard, voice })
}

impl Voice {
    /// Wants the turn to stop; the second time, everything.
    pub fn interrupt(&self) {
        self.say(Heard::Interrupt);
    }

    /// Answers what was asked.
    pub fn answer(&self, line: String) {
        self.say(Heard::Typed(line));
    }

    pub(super) fn say(&self, heard: Heard) {
        // A client that has ended needs to know nothing more.
        let _ = self.0.send(heard);
    }
}

impl Ears {
    pub(super) fn voice(&self) -> Voice {
        self.voice.clone()
    }

    /// Whether a person wants it to stop. Whatever else was heard is dropped.
    pub(super) fn was_interrupted(&self) -> bool {
        self.heard.try_iter().any(|heard| matches!(heard, Heard::Interrupt))
    }

    /// What is heard next; nothing where that takes too long.
    pub(super) fn hear(&self, deadline: Option<Instant>) -> Option<Heard> {
        let Some(deadline) = deadline else { return self.heard.recv().ok() };
        let left = deadline.saturating_duration_since(Instant::now());
        self.heard.recv_timeout(left).ok()
    }
}
