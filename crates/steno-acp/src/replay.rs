//! An agent that answers as a recorded session did: a test double for editors, and the rehearsal on a machine that has
//! no agent.
//!
//! Any session can be played, whatever agent it came from. What its agent had the editor do, such as writing files, is
//! not done again, and what its subagents said is left out; their tools are shown.

mod agent;
mod script;
mod steps;

use std::time::Duration;

use steno_core::entry::{Entry, Numbering};
use steno_core::{Session, SessionId, Timestamp, Transcript};

pub use self::agent::{Playing, serve};
pub use self::script::Script;

/// The name of the bundled session, and of the agent that plays it.
pub const REHEARSAL: &str = "rehearsal";

const BUNDLED: &str = include_str!("replay/rehearsal.jsonl");

/// The bundled session.
pub fn rehearsal() -> Transcript {
    let id: SessionId = REHEARSAL.parse().expect("a plain word");
    let mut transcript = Transcript::new(Session::new(id, REHEARSAL));
    let mut numbering = Numbering::new(REHEARSAL, REHEARSAL);
    for line in BUNDLED.lines() {
        let object = serde_json::from_str(line).expect("our own lines can be read");
        let mut entry = Entry::from_object(object).expect("our own lines are entries");
        numbering.assign(&mut entry);
        transcript.push(entry);
    }
    transcript
}

/// How fast a session is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// How many times as fast as it was.
    pub speed: f64,
    /// The longest that anybody waits.
    pub max_pause: Duration,
}

impl Pace {
    /// How long to wait between two things that were said.
    pub fn pause(&self, before: Option<Timestamp>, after: Option<Timestamp>) -> Duration {
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
    fn waits_are_scaled_and_bounded() {
        let at = |second: i64| Timestamp::from_unix(1_770_000_000 + second);
        let pace = Pace { speed: 2.0, max_pause: Duration::from_secs(3) };
        assert_eq!(pace.pause(at(0), at(4)), Duration::from_secs(2));
        assert_eq!(pace.pause(at(0), at(400)), Duration::from_secs(3));
        assert_eq!(pace.pause(at(4), at(0)), Duration::ZERO);
        assert_eq!(pace.pause(None, at(0)), Duration::ZERO);
    }

    #[test]
    fn the_bundled_session_has_a_tool_and_an_answer() {
        let kinds: Vec<_> = rehearsal().entries.iter().map(|entry| entry.kind).collect();
        for kind in ["user", "tool_call", "tool_result"] {
            assert!(BUNDLED.contains(kind), "{kind}");
        }
        assert!(kinds.len() > 6);
    }
}
