//! Speaks as an agent, after a script.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steno_core::SessionId;
use steno_core::json::Object;

use super::Pace;
use super::script::{Act, End, Script, ToolCondition, Turn, is_same};

/// The modes that a session can be in; they change nothing.
const MODES: [&str; 4] = ["agent", "plan", "duet", "review"];

/// How a script is played.
#[derive(Clone, Debug)]
pub struct Playing {
    /// What the agent calls itself.
    pub name: String,
    /// Fails on a prompt that is not the recorded one.
    pub is_strict: bool,
    /// Begins again when all turns are played.
    pub is_endless: bool,
    /// Keeps the times of what was said; without it nobody waits.
    pub pace: Option<Pace>,
}

/// Plays a script to whoever speaks on `input`, until nothing more comes; whether all prompts were as recorded.
pub fn serve(
    script: &Script,
    playing: &Playing,
    input: impl BufRead + Send + 'static,
    output: impl Write,
) -> io::Result<bool> {
    let (told, heard) = mpsc::channel();
    thread::spawn(move || {
        let lines = input.split(b'\n').map_while(Result::ok);
        let messages = lines.filter_map(|line| serde_json::from_slice(&line).ok());
        messages.map(|message| told.send(message)).take_while(Result::is_ok).for_each(drop);
    });
    let (played, denied) = (HashMap::new(), HashSet::new());
    let mut player =
        Player { script, playing, heard, output, played, denied, asked: 0, is_same: true };
    while let Ok(message) = player.heard.recv() {
        player.message(&message)?;
    }
    Ok(player.is_same)
}

struct Player<'a, W> {
    script: &'a Script,
    playing: &'a Playing,
    heard: Receiver<Object>,
    output: W,
    /// Turns that were played, by session.
    played: HashMap<String, usize>,
    /// Tools that nobody has permitted this time.
    denied: HashSet<String>,
    /// Requests that were made.
    asked: u64,
    is_same: bool,
}

/// Whether a turn goes on.
#[derive(PartialEq, Eq)]
enum Goes {
    On,
    Cancelled,
}

impl<W: Write> Player<'_, W> {
    fn message(&mut self, message: &Object) -> io::Result<()> {
        let (Some(method), Some(id)) = (text(message, "method"), message.get("id")) else {
            return Ok(());
        };
        let empty = Object::new();
        let params = message.get("params").and_then(Value::as_object).unwrap_or(&empty);
        match method {
            "initialize" => self.answer(id, self.greeting()),
            "session/new" => {
                let session = self.begin();
                self.answer(id, session)
            }
            "session/set_mode" => self.answer(id, json!({})),
            "session/prompt" => self.prompt(id, params),
            _ => self.refuse(id, &json!({ "code": -32601, "message": "not recorded" })),
        }
    }

    fn greeting(&self) -> Value {
        json!({
            "protocolVersion": 1,
            "agentInfo": { "name": self.playing.name, "version": env!("CARGO_PKG_VERSION") },
            "agentCapabilities": { "loadSession": false },
            "authMethods": [],
        })
    }

    fn begin(&mut self) -> Value {
        let id = SessionId::fresh().to_string();
        self.played.insert(id.clone(), 0);
        let modes = MODES.map(|mode| json!({ "id": mode, "name": mode }));
        let modes = json!({ "currentModeId": MODES[0], "availableModes": modes });
        let mut session = json!({ "sessionId": id, "modes": modes });
        if let Some(model) = &self.script.model {
            let models = json!([{ "modelId": model, "name": model }]);
            session["models"] = json!({ "currentModelId": model, "availableModels": models });
        }
        session
    }

    fn prompt(&mut self, id: &Value, params: &Object) -> io::Result<()> {
        let session = text(params, "sessionId").unwrap_or_default().to_owned();
        let number = self.played.entry(session.clone()).or_default();
        let next = *number;
        *number += 1;
        let count = self.script.turns.len();
        let next = if self.playing.is_endless { next % count.max(1) } else { next };
        let Some(turn) = self.script.turns.get(next) else {
            let message = format!("only {count} prompts were recorded");
            return self.refuse(id, &json!({ "code": -32603, "message": message }));
        };
        let given = steno_core::agent::acp::texts(params.get("prompt").unwrap_or(&Value::Null));
        if self.playing.is_strict && !is_same(&turn.prompt, &given) {
            self.is_same = false;
            let data = json!({ "recorded": turn.prompt, "given": given });
            let message = format!("prompt {} is not the recorded one", next + 1);
            return self.refuse(id, &json!({ "code": -32602, "message": message, "data": data }));
        }
        if self.play(&session, turn)? == Goes::Cancelled {
            return self.answer(id, json!({ "stopReason": "cancelled" }));
        }
        match &turn.end {
            End::Result(result) => self.answer(id, result.clone()),
            End::Error(error) => self.refuse(id, error),
        }
    }

    fn play(&mut self, session: &str, turn: &Turn) -> io::Result<Goes> {
        let mut before = turn.steps.first().and_then(|step| step.at);
        for step in &turn.steps {
            if step.condition.as_ref().is_some_and(|condition| !self.is_met(condition)) {
                continue;
            }
            let pause = self.playing.pace.map(|pace| pace.pause(before, step.at));
            before = step.at.or(before);
            if self.is_cancelled_within(pause.unwrap_or_default()) {
                return Ok(Goes::Cancelled);
            }
            match &step.act {
                Act::Update(update) => self.update(session, update)?,
                Act::Ask(request) => {
                    if self.ask(session, request)? == Goes::Cancelled {
                        return Ok(Goes::Cancelled);
                    }
                }
            }
        }
        Ok(Goes::On)
    }

    fn is_met(&self, condition: &ToolCondition) -> bool {
        self.denied.contains(&condition.tool) == condition.is_denied
    }

    /// Tells something. A tool that was not permitted has failed, whatever it answered then.
    fn update(&mut self, session: &str, update: &Value) -> io::Result<()> {
        let id = update["toolCallId"].as_str();
        let is_denied = id.is_some_and(|id| self.denied.contains(id));
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
        self.say(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
    }

    /// Waits, unless the turn is cancelled meanwhile.
    fn is_cancelled_within(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        loop {
            match self.heard.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(message) if is_cancel(&message) => return true,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return false,
                // Nobody is left to hear the rest.
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Asks for permission.
    fn ask(&mut self, session: &str, request: &Object) -> io::Result<Goes> {
        let id = self.asked;
        self.asked += 1;
        let mut params = request.clone();
        params.insert("sessionId".to_owned(), session.into());
        let method = "session/request_permission";
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        while let Ok(message) = self.heard.recv() {
            if is_cancel(&message) {
                return Ok(Goes::Cancelled);
            }
            if message.get("method").is_none() && message.get("id") == Some(&id.into()) {
                let tool = request.get("toolCall").and_then(|tool| tool["toolCallId"].as_str());
                let tool = tool.unwrap_or_default();
                // The same script may be played again, and be permitted then.
                self.denied.remove(tool);
                if is_denial(request, &message) {
                    self.denied.insert(tool.to_owned());
                }
                break;
            }
        }
        Ok(Goes::On)
    }

    fn answer(&mut self, id: &Value, result: Value) -> io::Result<()> {
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    fn refuse(&mut self, id: &Value, error: &Value) -> io::Result<()> {
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))
    }

    fn say(&mut self, message: &Value) -> io::Result<()> {
        writeln!(self.output, "{message}")?;
        self.output.flush()
    }
}

fn text<'a>(object: &'a Object, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

fn is_cancel(message: &Object) -> bool {
    text(message, "method") == Some("session/cancel")
}

/// Whether an answer chooses an option that rejects.
fn is_denial(request: &Object, answer: &Object) -> bool {
    let chosen = answer.get("result").and_then(|result| result["outcome"]["optionId"].as_str());
    let options = request.get("options").and_then(Value::as_array).into_iter().flatten();
    let mut chosen =
        options.filter(|option| chosen.is_some() && option["optionId"].as_str() == chosen);
    chosen.any(|option| option["kind"].as_str().is_some_and(|kind| kind.starts_with("reject")))
}
