//! The run as devflow's files state it: metadata, turns and tool calls.
//!
//! A zero value and an absent field are the same thing here, as they are in Go.

use crate::json::Object;
use crate::session::Status;
use crate::timestamp::Timestamp;

/// One run of a flow: what `transcript.json` holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The run's name, which is also its folder's.
    pub run_id: String,
    /// What is known about the run as a whole.
    pub metadata: RunMeta,
    /// What was said, in order.
    pub turns: Vec<Turn>,
    /// Fields that devflow does not know.
    pub extra: Object,
}

/// What is known about a run as a whole: `metadata.json`, and a part of `transcript.json`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunMeta {
    /// The run's name; ADR-011 leaves it out here.
    pub run_id: String,
    /// The flow that ran.
    pub flow_id: String,
    /// The node of the flow, where only one ran.
    pub node_id: String,
    /// What the flow was given.
    pub input: Object,
    /// When the run began.
    pub started_at: Option<Timestamp>,
    /// When the run ended; absent while it runs.
    pub ended_at: Option<Timestamp>,
    /// `running`, `completed`, `failed` or `canceled`; upstream checks none of them.
    pub status: String,
    /// Prompt tokens of all turns.
    pub total_tokens_in: u64,
    /// Answer tokens of all turns.
    pub total_tokens_out: u64,
    /// Dollars, as the caller stated them.
    pub total_cost: f64,
    /// The number of turns, where it was stated and is not simply the number of turns at hand.
    pub turn_count: Option<u64>,
    /// What went wrong.
    pub error: String,
    /// Fields that devflow does not know.
    pub extra: Object,
}

/// One turn of the conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    /// Counted from 1.
    pub id: u64,
    /// `system`, `user`, `assistant`, `tool_result`, or any other text.
    pub role: String,
    /// What was said.
    pub content: String,
    /// Prompt tokens.
    pub tokens_in: u64,
    /// Answer tokens.
    pub tokens_out: u64,
    /// When it was said.
    pub timestamp: Option<Timestamp>,
    /// The tools that were called in it.
    pub tool_calls: Vec<ToolCall>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Fields that devflow does not know.
    pub extra: Object,
}

/// One call of a tool, with what came of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolCall {
    /// The provider's name for the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments; absent is not the same as none.
    pub input: Option<Object>,
    /// What it answered.
    pub output: String,
    /// How it failed.
    pub error: String,
    /// Fields that devflow does not know.
    pub extra: Object,
}

impl Run {
    /// Adds a turn: numbers it, and counts its tokens.
    ///
    /// Every token that a turn states is counted. Upstream forgets those of tool results and the
    /// prompt tokens of assistant turns.
    pub fn push(&mut self, mut turn: Turn) -> &mut Turn {
        turn.id = self.turns.len() as u64 + 1;
        self.metadata.total_tokens_in += turn.tokens_in;
        self.metadata.total_tokens_out += turn.tokens_out;
        self.metadata.turn_count = None;
        self.turns.push(turn);
        self.turns.last_mut().expect("a turn was just added")
    }

    /// The number of turns, as stated or as counted.
    pub fn turn_count(&self) -> u64 {
        self.metadata.turn_count.unwrap_or(self.turns.len() as u64)
    }
}

impl RunMeta {
    /// Ends the run.
    pub fn end(&mut self, status: Status, at: Timestamp, error: &str) {
        self.status = status.as_str().to_owned();
        self.ended_at = Some(at);
        self.error = error.to_owned();
    }

    /// Whether the run has not ended.
    pub fn is_running(&self) -> bool {
        self.status == Status::Running.as_str()
    }

    /// The status in our words; one that nobody knows is told from whether the run ended.
    pub fn known_status(&self) -> Status {
        match self.status.as_str() {
            "running" => Status::Running,
            "completed" => Status::Completed,
            "failed" => Status::Failed,
            "canceled" | "cancelled" => Status::Canceled,
            _ if self.ended_at.is_some() => Status::Completed,
            _ => Status::Running,
        }
    }

    /// Seconds from start to end, or to `now` while there is no end.
    pub fn duration(&self, now: Timestamp) -> jiff::SignedDuration {
        let end = self.ended_at.unwrap_or(now).instant();
        let start = self.started_at.map_or(jiff::Timestamp::MIN, |at| at.instant());
        end.duration_since(start)
    }
}

impl Turn {
    /// A turn with the tokens that a caller counted for it: an assistant's are answer tokens, all
    /// others prompt tokens.
    pub fn new(role: impl Into<String>, content: impl Into<String>, tokens: u64) -> Self {
        let role = role.into();
        let (tokens_in, tokens_out) = match role.as_str() {
            "assistant" => (0, tokens),
            _ => (tokens, 0),
        };
        Self { role, content: content.into(), tokens_in, tokens_out, ..Self::default() }
    }
}

impl ToolCall {
    /// A call that was answered.
    pub fn answered(
        name: impl Into<String>,
        input: Option<Object>,
        output: impl Into<String>,
    ) -> Self {
        Self { name: name.into(), input, output: output.into(), ..Self::default() }
    }

    /// A call that failed.
    pub fn failed(
        name: impl Into<String>,
        input: Option<Object>,
        error: impl Into<String>,
    ) -> Self {
        Self { name: name.into(), input, error: error.into(), ..Self::default() }
    }
}
