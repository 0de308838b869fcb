//! An agent that replays a recorded session: a test double for editors, and a rehearsal for machines without an agent.
//!
//! Sessions of any agent can be replayed. Requests to the editor, such as writing files, are not repeated. Messages of
//! subagents are left out; their tool calls are shown.

mod agent;
mod script;
mod steps;

use std::time::Duration;

use steno_model::entry::Entry;
use steno_model::numbering::EntryNumbering;
use steno_model::{Session, SessionId, Timestamp, Transcript};

pub use self::agent::{ReplaySettings, serve_script};
pub use self::script::ReplayScript;

/// The name of the bundled session, and of the agent that replays it.
pub const REHEARSAL: &str = "rehearsal";

const REHEARSAL_LINES: &str = include_str!("replay/rehearsal.jsonl");

/// Parses the bundled session.
pub fn rehearsal_session() -> Transcript {
    let id: SessionId = REHEARSAL.parse().expect("a plain word");
    let mut transcript = Transcript::new(Session::new(id, REHEARSAL));
    let mut numbering = EntryNumbering::new(REHEARSAL, REHEARSAL);
    for line in REHEARSAL_LINES.lines() {
        let object = serde_json::from_str(line).expect("our own lines can be read");
        let mut entry = Entry::from_object(object).expect("our own lines are entries");
        numbering.assign_number(&mut entry);
        transcript.push(entry);
    }
    transcript
}

/// How fast a session is replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayPace {
    /// The speed, relative to the recording.
    pub speed: f64,
    /// The longest pause.
    pub max_pause: Duration,
}

impl ReplayPace {
    /// The pause between two entries.
    pub fn pause_between(&self, before: Option<Timestamp>, after: Option<Timestamp>) -> Duration {
        let (Some(before), Some(after)) = (before, after) else { return Duration::ZERO };
        let passed = after.instant().as_millisecond() - before.instant().as_millisecond();
        let seconds = passed.max(0) as f64 / 1000.0 / self.speed;
        Duration::try_from_secs_f64(seconds).unwrap_or(self.max_pause).min(self.max_pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_scaled_and_limited() {
        let at = |second: i64| Timestamp::from_unix(1_770_000_000 + second);
        let pace = ReplayPace { speed: 2.0, max_pause: Duration::from_secs(3) };
        assert_eq!(pace.pause_between(at(0), at(4)), Duration::from_secs(2));
        assert_eq!(pace.pause_between(at(0), at(400)), Duration::from_secs(3));
        assert_eq!(pace.pause_between(at(4), at(0)), Duration::ZERO);
        assert_eq!(pace.pause_between(None, at(0)), Duration::ZERO);
    }

    #[test]
    fn the_bundled_session_has_a_tool_and_a_result() {
        let kinds: Vec<_> = rehearsal_session().entries.iter().map(|entry| entry.kind).collect();
        for kind in ["user", "tool_call", "tool_result"] {
            assert!(REHEARSAL_LINES.contains(kind), "{kind}");
        }
        assert!(kinds.len() > 6);
    }
}
