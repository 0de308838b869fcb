//! Answers `session/list` and `session/load` from the store, for an agent that can do neither itself.
//!
//! A loaded session becomes a new session of the agent. The editor keeps the id that it asked for, and the agent has its
//! own: ids are replaced in both directions. The first prompt gets the conversation so far. Other lines stay as they are.

mod forward;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use steno_model::Transcript;
use steno_model::json::Object;

pub(super) use self::forward::{HistoryForwarder, SharedOutput};
use crate::replay::ReplayScript;

/// The error code for a session that does not exist.
const RESOURCE_NOT_FOUND: i64 = -32002;

/// The beginning of the ids of our own requests to the agent.
const OWN_REQUEST_PREFIX: &str = "steno-load-";

/// The sessions of a store.
pub trait SessionHistory: Send + Sync {
    /// The sessions of a folder, or of all folders, newest first.
    fn list_sessions(&self, folder: Option<&str>) -> Vec<HistorySession>;

    /// The session with this id.
    fn load_session(&self, id: &str) -> Option<LoadedSession>;
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistorySession {
    /// Its id in the store.
    pub id: String,
    /// Its project folder.
    pub folder: String,
    /// Its title.
    pub title: Option<String>,
    /// When it ended.
    pub updated_at: Option<String>,
}

/// A session to continue.
#[derive(Clone, Debug)]
pub struct LoadedSession {
    /// The session.
    pub transcript: Transcript,
    /// The text that tells the agent the conversation so far.
    pub context: String,
}

/// Lines to send after a line was received.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RoutedLines {
    pub(super) to_agent: Vec<Vec<u8>>,
    pub(super) to_editor: Vec<Vec<u8>>,
}

/// Answers the editor from the store, and knows which sessions were loaded so.
pub(super) struct HistoryAnswerer {
    history: Arc<dyn SessionHistory>,
    state: Mutex<HistoryState>,
}

#[derive(Default)]
struct HistoryState {
    /// The id of the editor's `initialize` request.
    initialize: Option<Value>,
    /// Whether the agent answers `session/list` itself; unknown before its first response.
    lists_itself: Option<bool>,
    /// Whether the agent answers `session/load` itself.
    loads_itself: Option<bool>,
    /// Loads that wait for the agent's new session, by the id of our request.
    pending: HashMap<String, PendingLoad>,
    /// The agent's session ids by those of the editor, and the reverse.
    agent_ids: HashMap<String, String>,
    editor_ids: HashMap<String, String>,
    /// The conversation so far of sessions without a prompt yet, by the editor's id.
    contexts: HashMap<String, String>,
}

struct PendingLoad {
    /// The id of the editor's request.
    request: Value,
    session: String,
    loaded: LoadedSession,
}

impl HistoryAnswerer {
    pub(super) fn new(history: Arc<dyn SessionHistory>) -> Self {
        Self { history, state: Mutex::default() }
    }

    /// Routes a line of the editor.
    pub(super) fn route_editor_line(&self, line: &[u8]) -> RoutedLines {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(Value::Object(mut message)) = serde_json::from_slice(line) else {
            return to_agent(line.to_vec());
        };
        let id = message.get("id").cloned();
        match (message.get("method").and_then(Value::as_str), id) {
            (Some("initialize"), Some(id)) => state.initialize = Some(id),
            (Some("session/list"), Some(id)) if state.lists_itself == Some(false) => {
                return to_editor(&self.answer_list(id, &message));
            }
            (Some("session/load"), Some(id)) if state.loads_itself == Some(false) => {
                return self.start_load(&mut state, id, &message);
            }
            _ => {}
        }
        match state.translate_for_agent(&mut message) {
            true => to_agent(json_line(&Value::Object(message))),
            false => to_agent(line.to_vec()),
        }
    }

    /// Routes a line of the agent.
    pub(super) fn route_agent_line(&self, line: &[u8]) -> RoutedLines {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = RoutedLines::default();
        let Ok(Value::Object(mut message)) = serde_json::from_slice(line) else {
            lines.to_editor.push(line.to_vec());
            return lines;
        };
        let own = message.get("id").and_then(Value::as_str).and_then(|id| state.pending.remove(id));
        if let Some(pending) = own {
            lines.to_editor = state.finish_load(pending, message);
            return lines;
        }
        let is_changed =
            state.offer_history(&mut message) | state.translate_for_editor(&mut message);
        lines.to_editor.push(match is_changed {
            true => json_line(&Value::Object(message)),
            false => line.to_vec(),
        });
        lines
    }

    fn answer_list(&self, id: Value, message: &Object) -> Value {
        let folder = message.get("params").and_then(|params| params.get("cwd")?.as_str());
        let sessions = self.history.list_sessions(folder).into_iter().map(|session| {
            let HistorySession { id, folder, title, updated_at } = session;
            json!({ "sessionId": id, "cwd": folder, "title": title, "updatedAt": updated_at })
        });
        let sessions: Vec<Value> = sessions.collect();
        json!({ "jsonrpc": "2.0", "id": id, "result": { "sessions": sessions } })
    }

    /// Asks the agent for a new session that continues the one in the store.
    fn start_load(&self, state: &mut HistoryState, id: Value, message: &Object) -> RoutedLines {
        let params = message.get("params").cloned().unwrap_or_default();
        let session = params.get("sessionId").and_then(Value::as_str).unwrap_or_default();
        let Some(loaded) = self.history.load_session(session) else {
            let text = format!("no such session in the store: {session}");
            let error = json!({ "code": RESOURCE_NOT_FOUND, "message": text });
            return to_editor(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        };
        let own = format!("{OWN_REQUEST_PREFIX}{}", state.editor_ids.len() + state.pending.len());
        let pending = PendingLoad { request: id, session: session.to_owned(), loaded };
        state.pending.insert(own.clone(), pending);
        let mut params = params.as_object().cloned().unwrap_or_default();
        params.shift_remove("sessionId");
        let request =
            json!({ "jsonrpc": "2.0", "id": own, "method": "session/new", "params": params });
        to_agent(json_line(&request))
    }
}

impl HistoryState {
    /// Adds the abilities that the agent lacks to its response to `initialize`.
    fn offer_history(&mut self, message: &mut Object) -> bool {
        if self.initialize.is_none() || message.get("id") != self.initialize.as_ref() {
            return false;
        }
        let Some(Value::Object(result)) = message.get_mut("result") else { return false };
        self.initialize = None;
        let abilities = result.entry("agentCapabilities").or_insert_with(|| json!({}));
        let loads = abilities.get("loadSession") == Some(&Value::Bool(true));
        let lists = abilities.pointer("/sessionCapabilities/list").is_some_and(|it| !it.is_null());
        // An agent that loads its own sessions would not know those of the store.
        (self.loads_itself, self.lists_itself) = (Some(loads), Some(lists || loads));
        let Some(abilities) = abilities.as_object_mut().filter(|_| !loads && !lists) else {
            return false;
        };
        abilities.insert("loadSession".to_owned(), Value::Bool(true));
        let sessions = abilities.entry("sessionCapabilities").or_insert_with(|| json!({}));
        if let Some(sessions) = sessions.as_object_mut() {
            sessions.insert("list".to_owned(), json!({}));
        }
        true
    }

    /// Replaces the editor's session id, and adds the conversation so far to the first prompt.
    fn translate_for_agent(&mut self, message: &mut Object) -> bool {
        let is_prompt = message.get("method").and_then(Value::as_str) == Some("session/prompt");
        let Some(params) = message.get_mut("params") else { return false };
        let Some(session) = params.get("sessionId").and_then(Value::as_str) else { return false };
        let Some(agent_id) = self.agent_ids.get(session).cloned() else { return false };
        let context = is_prompt.then(|| self.contexts.remove(session)).flatten();
        if let (Some(context), Some(Value::Array(blocks))) = (context, params.get_mut("prompt")) {
            blocks.insert(0, json!({ "type": "text", "text": context }));
        }
        params["sessionId"] = agent_id.into();
        true
    }

    fn translate_for_editor(&self, message: &mut Object) -> bool {
        let Some(params) = message.get_mut("params") else { return false };
        let session = params.get("sessionId").and_then(Value::as_str);
        let Some(editor_id) = session.and_then(|session| self.editor_ids.get(session)) else {
            return false;
        };
        params["sessionId"] = editor_id.clone().into();
        true
    }

    /// Sends the conversation so far to the editor, then the response to its request.
    fn finish_load(&mut self, pending: PendingLoad, mut message: Object) -> Vec<Vec<u8>> {
        let PendingLoad { request, session, loaded } = pending;
        message.insert("id".to_owned(), request);
        let result = message.get_mut("result").and_then(Value::as_object_mut);
        let created = result.and_then(|result| result.shift_remove("sessionId"));
        let mut lines = Vec::new();
        if let Some(Value::String(created)) = created {
            let updates = ReplayScript::from_transcript(&loaded.transcript).history_updates();
            let update = |update| {
                let params = json!({ "sessionId": session, "update": update });
                json_line(
                    &json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }),
                )
            };
            lines.extend(updates.into_iter().map(update));
            self.contexts.insert(session.clone(), loaded.context);
            self.editor_ids.insert(created.clone(), session.clone());
            self.agent_ids.insert(session, created);
        }
        lines.push(json_line(&Value::Object(message)));
        lines
    }
}

fn to_agent(line: Vec<u8>) -> RoutedLines {
    RoutedLines { to_agent: vec![line], ..RoutedLines::default() }
}

fn to_editor(message: &Value) -> RoutedLines {
    RoutedLines { to_editor: vec![json_line(message)], ..RoutedLines::default() }
}

fn json_line(message: &Value) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("a JSON value is written to memory");
    line.push(b'\n');
    line
}
