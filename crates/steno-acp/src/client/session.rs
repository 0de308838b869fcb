//! How a session begins, or goes on.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steno_core::json::Object;

use super::voice::Heard;
use super::{Client, ClientError, Offers, Tell};

/// The version of the protocol that is spoken.
const VERSION: u64 = 1;

/// An agent that tells a session again may begin with that after it has answered; it is over once nothing comes.
const QUIET: Duration = Duration::from_millis(300);

/// The modes of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct Modes {
    /// Their ids.
    ids: Vec<String>,
    /// The setting that holds them, where they are one of the agent's settings.
    option: Option<String>,
}

impl Client {
    /// Greets the agent, and learns what it can do.
    pub fn initialize(&mut self, version: &str, tell: Tell<'_>) -> Result<(), ClientError> {
        let params = json!({
            "protocolVersion": VERSION,
            "clientInfo": { "name": "steno", "version": version },
            "clientCapabilities": {
                "fs": { "readTextFile": false, "writeTextFile": false },
                "terminal": false,
                "session": { "compaction": {}, "notices": {} },
            },
        });
        let result = self.request("initialize", params, tell)?;
        match result.get("protocolVersion") {
            Some(told) if told.as_u64() != Some(VERSION) => {
                return Err(ClientError::Version(told.clone()));
            }
            _ => {}
        }
        let offered = result.get("agentCapabilities");
        let offer = |name| offered.and_then(|offered| offered.get(name));
        let resume = offer("sessionCapabilities").and_then(|session| session.get("resume"));
        let logins = result.get("authMethods").and_then(Value::as_array).into_iter().flatten();
        let named = |login: &Value| Some(login.get("name")?.as_str()?.to_owned());
        self.offers = Offers {
            resumes: resume.is_some_and(|resume| !resume.is_null()),
            loads: offer("loadSession").and_then(Value::as_bool).unwrap_or(false),
            logins: logins.filter_map(named).collect(),
        };
        Ok(())
    }

    /// Begins a session in a folder; gives its name.
    pub fn open(&mut self, folder: &Path, tell: Tell<'_>) -> Result<String, ClientError> {
        let params = json!({ "cwd": folder.to_string_lossy(), "mcpServers": [] });
        let result = self.request("session/new", params, tell)?;
        let id = result.get("sessionId").and_then(Value::as_str).ok_or(ClientError::NoSession)?;
        self.session = Some(id.to_owned());
        self.modes = Modes::of(&result);
        Ok(id.to_owned())
    }

    /// Goes on with a session, where the agent can do that; what it tells again is not told to anybody.
    pub fn reopen(
        &mut self,
        session: &str,
        folder: &Path,
        tell: Tell<'_>,
    ) -> Result<bool, ClientError> {
        let method = match &self.offers {
            Offers { resumes: true, .. } => "session/resume",
            Offers { loads: true, .. } => "session/load",
            _ => return Ok(false),
        };
        let cwd = folder.to_string_lossy();
        let params = json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] });
        self.is_replaying = true;
        self.session = Some(session.to_owned());
        let result = self.request(method, params, tell);
        if result.is_ok() && method == "session/load" {
            self.hear_out(tell)?;
        }
        self.is_replaying = false;
        match result {
            Ok(result) => {
                self.modes = Modes::of(&result);
                Ok(true)
            }
            // One that no longer knows the session can still be told of it.
            Err(ClientError::Refused { .. }) => {
                self.session = None;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Sets the session's mode.
    pub fn set_mode(&mut self, mode: &str, tell: Tell<'_>) -> Result<(), ClientError> {
        let session = self.session.clone().ok_or(ClientError::NoSession)?;
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
        self.request(method, params, tell).map(drop)
    }

    /// Hears an agent until it says nothing for a while.
    fn hear_out(&mut self, tell: Tell<'_>) -> Result<(), ClientError> {
        while let Some(heard) = self.ears.hear(Some(Instant::now() + QUIET)) {
            match heard {
                Heard::Line(line) => drop(self.line(&line, u64::MAX, tell)?),
                Heard::Interrupt => return Err(ClientError::Interrupted),
                Heard::End => return Err(ClientError::Ended("session/load")),
                Heard::Deaf(error) => return Err(ClientError::Deaf(error)),
                Heard::Typed(_) => {}
            }
        }
        Ok(())
    }
}

impl Modes {
    fn of(result: &Value) -> Self {
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
