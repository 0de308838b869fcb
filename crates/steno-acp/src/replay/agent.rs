//! Replays a script as an agent.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steno_model::json::Object;
use steno_model::{Clock, SessionId};

use super::ReplayPace;
use super::script::{
    ReplayScript, ScriptAction, ScriptTurn, ToolCondition, TurnEnd, is_same_prompt,
};

/// The modes of a session. They have no effect.
const MODES: [&str; 4] = ["agent", "plan", "duet", "review"];

/// Settings of a replay.
#[derive(Clone, Debug)]
pub struct ReplaySettings {
    /// The agent's name.
    pub name: String,
    /// Whether to refuse prompts that differ from the recorded ones.
    pub is_strict: bool,
    /// Whether to start again after the last turn.
    pub is_endless: bool,
    /// The pace; `None` replays without pauses.
    pub pace: Option<ReplayPace>,
    /// The source of the current time.
    pub clock: Clock,
}

/// Replays a script to the client on `input` until it closes. Returns whether all prompts matched the recorded ones.
pub fn serve_script(
    script: &ReplayScript,
    settings: &ReplaySettings,
    input: impl BufRead + Send + 'static,
    output: impl Write,
) -> io::Result<bool> {
    let (sender, received) = mpsc::channel();
    thread::spawn(move || {
        let lines = input.split(b'\n').map_while(Result::ok);
        let messages = lines.filter_map(|line| serde_json::from_slice(&line).ok());
        messages.map(|message| sender.send(message)).take_while(Result::is_ok).for_each(drop);
    });
    let mut player = ScriptPlayer {
        script,
        settings,
        messages: received,
        output,
        turns_played: HashMap::new(),
        denied_tools: HashSet::new(),
        next_request_id: 0,
        all_prompts_match: true,
    };
    while let Ok(message) = player.messages.recv() {
        player.handle_message(&message)?;
    }
    Ok(player.all_prompts_match)
}

struct ScriptPlayer<'a, W> {
    script: &'a ReplayScript,
    settings: &'a ReplaySettings,
    messages: Receiver<Object>,
    output: W,
    /// How many turns were replayed, by session.
    turns_played: HashMap<String, usize>,
    /// Tools denied in this replay.
    denied_tools: HashSet<String>,
    /// The id of the next request to the client.
    next_request_id: u64,
    all_prompts_match: bool,
}

/// Whether a turn continues.
#[derive(PartialEq, Eq)]
enum TurnProgress {
    Continues,
    Cancelled,
}

impl<W: Write> ScriptPlayer<'_, W> {
    fn handle_message(&mut self, message: &Object) -> io::Result<()> {
        let (Some(method), Some(id)) = (text_field(message, "method"), message.get("id")) else {
            return Ok(());
        };
        let empty = Object::new();
        let params = message.get("params").and_then(Value::as_object).unwrap_or(&empty);
        match method {
            "initialize" => self.send_result(id, self.initialize_result()),
            "session/new" => {
                let session = self.open_session();
                self.send_result(id, session)
            }
            "session/set_mode" => self.send_result(id, json!({})),
            "session/prompt" => self.play_prompt(id, params),
            _ => self.send_error(id, &json!({ "code": -32601, "message": "not recorded" })),
        }
    }

    fn initialize_result(&self) -> Value {
        json!({
            "protocolVersion": 1,
            "agentInfo": { "name": self.settings.name, "version": env!("CARGO_PKG_VERSION") },
            "agentCapabilities": { "loadSession": false },
            "authMethods": [],
        })
    }

    fn open_session(&mut self) -> Value {
        let id = SessionId::new_unique(self.settings.clock.now()).to_string();
        self.turns_played.insert(id.clone(), 0);
        let modes = MODES.map(|mode| json!({ "id": mode, "name": mode }));
        let modes = json!({ "currentModeId": MODES[0], "availableModes": modes });
        let mut session = json!({ "sessionId": id, "modes": modes });
        if let Some(model) = &self.script.model {
            let models = json!([{ "modelId": model, "name": model }]);
            session["models"] = json!({ "currentModelId": model, "availableModels": models });
        }
        session
    }

    fn play_prompt(&mut self, id: &Value, params: &Object) -> io::Result<()> {
        let session = text_field(params, "sessionId").unwrap_or_default().to_owned();
        let number = self.turns_played.entry(session.clone()).or_default();
        let next = *number;
        *number += 1;
        let count = self.script.turns.len();
        let next = if self.settings.is_endless { next % count.max(1) } else { next };
        let Some(turn) = self.script.turns.get(next) else {
            let message = format!("only {count} prompts were recorded");
            return self.send_error(id, &json!({ "code": -32603, "message": message }));
        };
        let given =
            steno_agents::protocols::acp::blocks_text(params.get("prompt").unwrap_or(&Value::Null));
        if self.settings.is_strict && !is_same_prompt(&turn.prompt, &given) {
            self.all_prompts_match = false;
            let data = json!({ "recorded": turn.prompt, "given": given });
            let message = format!("prompt {} differs from the recorded one", next + 1);
            return self
                .send_error(id, &json!({ "code": -32602, "message": message, "data": data }));
        }
        if self.play_turn(&session, turn)? == TurnProgress::Cancelled {
            return self.send_result(id, json!({ "stopReason": "cancelled" }));
        }
        match &turn.end {
            TurnEnd::Result(result) => self.send_result(id, result.clone()),
            TurnEnd::Error(error) => self.send_error(id, error),
        }
    }

    fn play_turn(&mut self, session: &str, turn: &ScriptTurn) -> io::Result<TurnProgress> {
        let mut before = turn.steps.first().and_then(|step| step.at);
        for step in &turn.steps {
            if step.condition.as_ref().is_some_and(|condition| !self.is_condition_met(condition)) {
                continue;
            }
            let pause = self.settings.pace.map(|pace| pace.pause_between(before, step.at));
            before = step.at.or(before);
            if self.is_cancelled_within(pause.unwrap_or_default()) {
                return Ok(TurnProgress::Cancelled);
            }
            match &step.action {
                ScriptAction::Update(update) => self.send_update(session, update)?,
                ScriptAction::RequestPermission(request) => {
                    if self.request_permission(session, request)? == TurnProgress::Cancelled {
                        return Ok(TurnProgress::Cancelled);
                    }
                }
            }
        }
        Ok(TurnProgress::Continues)
    }

    fn is_condition_met(&self, condition: &ToolCondition) -> bool {
        self.denied_tools.contains(&condition.tool) == condition.is_denied
    }

    /// Sends an update. A denied tool fails, whatever its recorded result.
    fn send_update(&mut self, session: &str, update: &Value) -> io::Result<()> {
        let id = update["toolCallId"].as_str();
        let is_denied = id.is_some_and(|id| self.denied_tools.contains(id));
        let update = match update["status"].as_str() {
            Some("completed") if is_denied => {
                let text = json!({ "type": "text", "text": "not permitted" });
                let content = json!([{ "type": "content", "content": text }]);
                let kind = &update["sessionUpdate"];
                json!({ "sessionUpdate": kind, "toolCallId": id, "status": "failed", "content": content })
            }
            _ => update.clone(),
        };
        let params = json!({ "sessionId": session, "update": update });
        self.send_message(
            &json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }),
        )
    }

    /// Waits; returns whether the turn was cancelled meanwhile.
    fn is_cancelled_within(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        loop {
            match self.messages.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(message) if is_cancel(&message) => return true,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return false,
                // The client has gone.
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Requests permission, and waits for the answer.
    fn request_permission(&mut self, session: &str, request: &Object) -> io::Result<TurnProgress> {
        let id = self.next_request_id;
        self.next_request_id += 1;
        let mut params = request.clone();
        params.insert("sessionId".to_owned(), session.into());
        let method = "session/request_permission";
        self.send_message(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }),
        )?;
        while let Ok(message) = self.messages.recv() {
            if is_cancel(&message) {
                return Ok(TurnProgress::Cancelled);
            }
            if message.get("method").is_none() && message.get("id") == Some(&id.into()) {
                let tool = request.get("toolCall").and_then(|tool| tool["toolCallId"].as_str());
                let tool = tool.unwrap_or_default();
                // An endless script may repeat the tool call, and it may be permitted then.
                self.denied_tools.remove(tool);
                if is_denial(request, &message) {
                    self.denied_tools.insert(tool.to_owned());
                }
                break;
            }
        }
        Ok(TurnProgress::Continues)
    }

    fn send_result(&mut self, id: &Value, result: Value) -> io::Result<()> {
        self.send_message(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    fn send_error(&mut self, id: &Value, error: &Value) -> io::Result<()> {
        self.send_message(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))
    }

    fn send_message(&mut self, message: &Value) -> io::Result<()> {
        writeln!(self.output, "{message}")?;
        self.output.flush()
    }
}

fn text_field<'a>(object: &'a Object, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

fn is_cancel(message: &Object) -> bool {
    text_field(message, "method") == Some("session/cancel")
}

/// Whether a response chooses an option that rejects.
fn is_denial(request: &Object, answer: &Object) -> bool {
    let chosen = answer.get("result").and_then(|result| result["outcome"]["optionId"].as_str());
    let options = request.get("options").and_then(Value::as_array).into_iter().flatten();
    let mut chosen =
        options.filter(|option| chosen.is_some() && option["optionId"].as_str() == chosen);
    chosen.any(|option| option["kind"].as_str().is_some_and(|kind| kind.starts_with("reject")))
}
