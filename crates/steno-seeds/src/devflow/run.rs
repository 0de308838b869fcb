//! A run as in devflow's files: metadata, turns and tool calls.
//!
//! A zero value and an absent field are the same, as in Go.

use steno_model::json::Object;
use steno_model::session::SessionStatus;
use steno_model::timestamp::Timestamp;

/// One run of a flow: the content of `transcript.json`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DevflowRun {
    /// The run's name and folder name.
    pub run_id: String,
    /// The run's metadata.
    pub metadata: RunMetadata,
    /// The turns, in order.
    pub turns: Vec<RunTurn>,
    /// Unknown fields.
    pub extra: Object,
}

/// A run's metadata: the content of `metadata.json`, and a part of `transcript.json`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunMetadata {
    /// The run's name; ADR-011 omits it here.
    pub run_id: String,
    /// The flow's name.
    pub flow_id: String,
    /// The flow's node, if only one ran.
    pub node_id: String,
    /// The flow's input.
    pub input: Object,
    /// When the run started.
    pub started_at: Option<Timestamp>,
    /// When the run ended; absent while it is running.
    pub ended_at: Option<Timestamp>,
    /// `running`, `completed`, `failed` or `canceled`; upstream accepts any text.
    pub status: String,
    /// Prompt tokens of all turns.
    pub total_tokens_in: u64,
    /// Output tokens of all turns.
    pub total_tokens_out: u64,
    /// Cost in dollars, as the caller stated it.
    pub total_cost: f64,
    /// The stated number of turns, if it differs from the number of turns in the file.
    pub turn_count: Option<u64>,
    /// The error of a failed run.
    pub error: String,
    /// Unknown fields.
    pub extra: Object,
}

/// One turn of the conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunTurn {
    /// The turn's number, starting at 1.
    pub id: u64,
    /// `system`, `user`, `assistant`, `tool_result`, or any other text.
    pub role: String,
    /// The text.
    pub content: String,
    /// Prompt tokens.
    pub tokens_in: u64,
    /// Output tokens.
    pub tokens_out: u64,
    /// The time of the turn.
    pub timestamp: Option<Timestamp>,
    /// Tool calls of the turn.
    pub tool_calls: Vec<TurnToolCall>,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// Unknown fields.
    pub extra: Object,
}

/// One tool call with its result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnToolCall {
    /// The provider's call id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments. Absent and empty are different.
    pub input: Option<Object>,
    /// The output.
    pub output: String,
    /// The error of a failed call.
    pub error: String,
    /// Unknown fields.
    pub extra: Object,
}

impl DevflowRun {
    /// Adds a turn, numbers it, and adds its tokens to the totals.
    ///
    /// All tokens that a turn states are counted. Upstream omits those of tool results and the prompt tokens of
    /// assistant turns.
    pub fn push_turn(&mut self, mut turn: RunTurn) -> &mut RunTurn {
        turn.id = self.turns.len() as u64 + 1;
        self.metadata.total_tokens_in += turn.tokens_in;
        self.metadata.total_tokens_out += turn.tokens_out;
        self.metadata.turn_count = None;
        self.turns.push(turn);
        self.turns.last_mut().expect("a turn was just added")
    }

    /// The number of turns, as stated or counted.
    pub fn turn_count(&self) -> u64 {
        self.metadata.turn_count.unwrap_or(self.turns.len() as u64)
    }
}

impl RunMetadata {
    /// Ends the run.
    pub fn end_run(&mut self, status: SessionStatus, at: Timestamp, error: &str) {
        self.status = status.as_str().to_owned();
        self.ended_at = Some(at);
        self.error = error.to_owned();
    }

    /// Whether the run has not ended.
    pub fn is_running(&self) -> bool {
        self.status == SessionStatus::Running.as_str()
    }

    /// The status as Steno's enum. An unknown one is derived from whether the run ended.
    pub fn known_status(&self) -> SessionStatus {
        match self.status.as_str() {
            "running" => SessionStatus::Running,
            "completed" => SessionStatus::Completed,
            "failed" => SessionStatus::Failed,
            "canceled" | "cancelled" => SessionStatus::Canceled,
            _ if self.ended_at.is_some() => SessionStatus::Completed,
            _ => SessionStatus::Running,
        }
    }

    /// Duration from start to end, or to `now` if there is no end.
    pub fn duration(&self, now: Timestamp) -> jiff::SignedDuration {
        let end = self.ended_at.unwrap_or(now).instant();
        let start = self.started_at.map_or(jiff::Timestamp::MIN, |at| at.instant());
        end.duration_since(start)
    }
}

impl RunTurn {
    /// A turn with a token count: output tokens for an assistant, prompt tokens for all other roles.
    pub fn new(role: impl Into<String>, content: impl Into<String>, tokens: u64) -> Self {
        let role = role.into();
        let (tokens_in, tokens_out) = match role.as_str() {
            "assistant" => (0, tokens),
            _ => (tokens, 0),
        };
        Self { role, content: content.into(), tokens_in, tokens_out, ..Self::default() }
    }
}

impl TurnToolCall {
    /// A call with an output.
    pub fn with_output(
        name: impl Into<String>,
        input: Option<Object>,
        output: impl Into<String>,
    ) -> Self {
        Self { name: name.into(), input, output: output.into(), ..Self::default() }
    }

    /// A call that failed.
    pub fn with_error(
        name: impl Into<String>,
        input: Option<Object>,
        error: impl Into<String>,
    ) -> Self {
        Self { name: name.into(), input, error: error.into(), ..Self::default() }
    }
}
