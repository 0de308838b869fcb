//! Opens sessions with an agent, new ones or earlier ones.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steno_model::json::Object;

use super::inbox::ClientInput;
use super::{AgentCapabilities, AgentClient, ClientError, EventSink};

/// The supported version of the protocol.
const PROTOCOL_VERSION: u64 = 1;

/// An agent may send the history of a loaded session after its response. The history has ended once the agent is
/// silent for this long.
const QUIET_TIMEOUT: Duration = Duration::from_millis(300);

/// The modes of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionModes {
    /// The ids of the modes.
    ids: Vec<String>,
    /// The config option that holds the modes, for agents that offer them as one.
    option: Option<String>,
}

impl AgentClient {
    /// Sends `initialize`, and stores the agent's capabilities.
    pub fn initialize(
        &mut self,
        version: &str,
        on_event: EventSink<'_>,
    ) -> Result<(), ClientError> {
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientInfo": { "name": "steno", "version": version },
            "clientCapabilities": {
                "fs": { "readTextFile": false, "writeTextFile": false },
                "terminal": false,
                "session": { "compaction": {}, "notices": {} },
            },
        });
        let result = self.send_request("initialize", params, on_event)?;
        match result.get("protocolVersion") {
            Some(version) if version.as_u64() != Some(PROTOCOL_VERSION) => {
                return Err(ClientError::UnsupportedVersion(version.clone()));
            }
            _ => {}
        }
        let offered = result.get("agentCapabilities");
        let offer = |name| offered.and_then(|offered| offered.get(name));
        let resume = offer("sessionCapabilities").and_then(|session| session.get("resume"));
        let logins = result.get("authMethods").and_then(Value::as_array).into_iter().flatten();
        let named = |login: &Value| Some(login.get("name")?.as_str()?.to_owned());
        self.capabilities = AgentCapabilities {
            can_resume: resume.is_some_and(|resume| !resume.is_null()),
            can_load: offer("loadSession").and_then(Value::as_bool).unwrap_or(false),
            login_methods: logins.filter_map(named).collect(),
        };
        Ok(())
    }

    /// Opens a new session in a folder; returns its id.
    pub fn open_session(
        &mut self,
        folder: &Path,
        on_event: EventSink<'_>,
    ) -> Result<String, ClientError> {
        let params = json!({ "cwd": folder.to_string_lossy(), "mcpServers": [] });
        let result = self.send_request("session/new", params, on_event)?;
        let id = result.get("sessionId").and_then(Value::as_str).ok_or(ClientError::NoSession)?;
        self.session_id = Some(id.to_owned());
        self.modes = SessionModes::from_result(&result);
        Ok(id.to_owned())
    }

    /// Continues a session, if the agent can. The history that the agent sends causes no events. Returns whether it
    /// succeeded.
    pub fn reopen_session(
        &mut self,
        session: &str,
        folder: &Path,
        on_event: EventSink<'_>,
    ) -> Result<bool, ClientError> {
        let method = match &self.capabilities {
            AgentCapabilities { can_resume: true, .. } => "session/resume",
            AgentCapabilities { can_load: true, .. } => "session/load",
            _ => return Ok(false),
        };
        let cwd = folder.to_string_lossy();
        let params = json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] });
        self.is_replaying = true;
        self.session_id = Some(session.to_owned());
        let result = self.send_request(method, params, on_event);
        if result.is_ok() && method == "session/load" {
            self.drain_replay(on_event)?;
        }
        self.is_replaying = false;
        match result {
            Ok(result) => {
                self.modes = SessionModes::from_result(&result);
                Ok(true)
            }
            // An agent that no longer knows the session can get its context in a prompt.
            Err(ClientError::Refused { .. }) => {
                self.session_id = None;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Sets the session's mode.
    pub fn set_mode(&mut self, mode: &str, on_event: EventSink<'_>) -> Result<(), ClientError> {
        let session = self.session_id.clone().ok_or(ClientError::NoSession)?;
        if !self.modes.ids.iter().any(|id| id == mode) {
            let offered = self.modes.ids.clone();
            return Err(ClientError::NoMode { mode: mode.to_owned(), offered });
        }
        let (method, params) = match &self.modes.option {
            Some(option) => {
                let params = json!({ "sessionId": session, "configId": option, "value": mode });
                ("session/set_config_option", params)
            }
            None => ("session/set_mode", json!({ "sessionId": session, "modeId": mode })),
        };
        self.send_request(method, params, on_event).map(drop)
    }

    /// Handles messages until the agent is silent.
    fn drain_replay(&mut self, on_event: EventSink<'_>) -> Result<(), ClientError> {
        while let Some(input) = self.inbox.receive(Some(Instant::now() + QUIET_TIMEOUT)) {
            match input {
                ClientInput::AgentLine(line) => {
                    drop(self.handle_line(&line, u64::MAX, on_event)?)
                }
                ClientInput::Interrupt => return Err(ClientError::Interrupted),
                ClientInput::AgentClosed => return Err(ClientError::Ended("session/load")),
                ClientInput::WriteFailed(error) => return Err(ClientError::InputClosed(error)),
                ClientInput::UserLine(_) => {}
            }
        }
        Ok(())
    }
}

impl SessionModes {
    fn from_result(result: &Value) -> Self {
        let listed = |value: Option<&Value>, id: &str| -> Vec<String> {
            let items = value.and_then(Value::as_array).into_iter().flatten();
            items.filter_map(|item| Some(item.get(id)?.as_str()?.to_owned())).collect()
        };
        if let Some(modes) = result.get("modes").and_then(Value::as_object) {
            return Self { ids: listed(modes.get("availableModes"), "id"), option: None };
        }
        let options = result.get("configOptions").and_then(Value::as_array).into_iter().flatten();
        let is_mode =
            |option: &&Object| option.get("category").and_then(Value::as_str) == Some("mode");
        let option = options.filter_map(Value::as_object).find(is_mode);
        let id = option.and_then(|option| option.get("id")?.as_str().map(str::to_owned));
        let ids = listed(option.and_then(|option| option.get("options")), "value");
        Self { ids, option: id }
    }
}
