//! The client: runs an agent, exchanges messages with it, and records every byte.
//!
//! It offers the agent neither files nor terminals, so agents use their own. The caller gets events through a
//! callback, and controls the client from other threads through a [`ClientHandle`].

mod connection;
mod context_guard;
mod error;
mod inbox;
mod permission;
mod response_wait;
mod session;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steno_model::json::Object;
use steno_vault::record::RecordingClosing;

use self::connection::AgentConnection;
pub use self::context_guard::{ContextGuard, ContextLimits};
pub use self::error::ClientError;
use self::inbox::ClientInput;
pub use self::inbox::{ClientHandle, ClientInbox, client_channel};
pub use self::permission::{PermissionChoice, PermissionPolicy};
use self::response_wait::{ResponseWait, WaitStep};
use crate::child::ChildLauncher;
use crate::recording::{ConnectionSettings, KeptSession};

/// How long an agent may take to end a cancelled turn.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an agent may take to end by itself after the last prompt; some write their files then.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// The same, if the user does not want to wait.
const SHORT_END_TIMEOUT: Duration = Duration::from_millis(500);

/// Settings of a client.
#[derive(Clone, Copy, Debug)]
pub struct ClientSettings {
    /// Who decides what the agent may do.
    pub policy: PermissionPolicy,
    /// When the agent needs the context of its thread again.
    pub limits: ContextLimits,
    /// How long the agent may be silent while a session is opened.
    pub response_timeout: Duration,
}

/// What happens while an agent works.
#[derive(Debug)]
pub enum ClientEvent<'a> {
    /// A notification of the agent: the `update` of a `session/update`.
    Update(&'a Object),
    /// The agent requests permission, and the user has to answer.
    PermissionRequested(&'a Object),
    /// A permission request was answered.
    PermissionDecided(&'a Object, &'a PermissionChoice),
    /// The turn is being cancelled.
    Cancelling,
    /// The agent has not answered this request yet.
    AwaitingResponse(&'static str),
}

/// The callback for events.
pub type EventSink<'a> = &'a mut dyn FnMut(ClientEvent<'_>);

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnResult {
    /// The stop reason of the protocol: `end_turn`, `cancelled`, `max_tokens`, ...
    pub stop_reason: String,
}

/// The capabilities that an agent reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentCapabilities {
    /// Whether it can continue a session without sending its history.
    pub can_resume: bool,
    /// Whether it can continue a session, and sends its history first.
    pub can_load: bool,
    /// The names of its login methods.
    pub login_methods: Vec<String>,
}

/// How an agent ended.
#[derive(Clone, Debug)]
pub struct AgentExit {
    /// The recorded sessions.
    pub sessions: Vec<KeptSession>,
    /// The last bytes of its standard error.
    pub stderr_tail: String,
    /// The signal that ended it, unless it came from us.
    pub signal: Option<i32>,
}

/// A running agent and the session with it.
#[derive(Debug)]
pub struct AgentClient {
    connection: AgentConnection,
    inbox: ClientInbox,
    settings: ClientSettings,
    guard: ContextGuard,
    capabilities: AgentCapabilities,
    next_id: u64,
    /// The id of the current session.
    session_id: Option<String>,
    /// The modes that the session offers.
    modes: session::SessionModes,
    /// Permission requests that wait for the user.
    pending_permissions: VecDeque<(Value, Object)>,
    is_prompting: bool,
    /// Whether the agent is sending the history of a session, which causes no events.
    is_replaying: bool,
    /// When to stop waiting for a cancelled turn to end.
    deadline: Option<Instant>,
    /// Whether to end the agent without waiting: it does not respond, or the user does not want to wait.
    must_end_soon: bool,
}

impl AgentClient {
    /// Starts the agent.
    pub fn start(
        connection: ConnectionSettings,
        launcher: &ChildLauncher,
        settings: ClientSettings,
        inbox: ClientInbox,
    ) -> Result<Self, ClientError> {
        Ok(Self {
            connection: AgentConnection::start(connection, launcher, inbox.handle())?,
            inbox,
            settings,
            guard: ContextGuard::new(settings.limits),
            capabilities: AgentCapabilities::default(),
            next_id: 0,
            session_id: None,
            modes: session::SessionModes::default(),
            pending_permissions: VecDeque::new(),
            is_prompting: false,
            is_replaying: false,
            deadline: None,
            must_end_soon: false,
        })
    }

    /// The capabilities that the agent reported.
    pub fn capabilities(&self) -> &AgentCapabilities {
        &self.capabilities
    }

    /// Whether the agent may have lost the context of its thread.
    pub fn needs_context(&self) -> bool {
        self.guard.needs_context()
    }

    /// Sends a prompt; returns when the agent has ended the turn.
    pub fn send_prompt(
        &mut self,
        text: &str,
        on_event: EventSink<'_>,
    ) -> Result<TurnResult, ClientError> {
        let session = self.session_id.clone().ok_or(ClientError::NoSession)?;
        self.guard.note_prompt(text);
        self.is_prompting = true;
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        let result = self.send_request("session/prompt", params, on_event);
        self.is_prompting = false;
        self.deadline = None;
        let result = result?;
        let reason = result.get("stopReason").and_then(Value::as_str).unwrap_or("end_turn");
        Ok(TurnResult { stop_reason: reason.to_owned() })
    }

    /// Notes that the agent got the context of its thread.
    pub fn note_context_given(&mut self) {
        self.guard.note_context_given();
    }

    /// Waits until all messages so far are on disk, or a timeout passes.
    pub fn sync_record(&self) {
        self.connection.sync_record();
    }

    /// Ends the agent, and waits until everything is recorded. An interrupt ends the agent at once.
    pub fn shut_down(self, closing: RecordingClosing) -> AgentExit {
        let time = if self.must_end_soon { SHORT_END_TIMEOUT } else { END_TIMEOUT };
        self.connection.shut_down(closing, time, &self.inbox)
    }

    /// Sends a request and waits for its result. Meanwhile it handles whatever else the agent sends.
    fn send_request(
        &mut self,
        method: &'static str,
        params: Value,
        on_event: EventSink<'_>,
    ) -> Result<Value, ClientError> {
        let id = self.next_id;
        self.next_id += 1;
        self.send_message(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }),
        )?;
        let timeout = self.settings.response_timeout;
        let mut wait = (!self.is_prompting).then(|| ResponseWait::new(timeout, Instant::now()));
        loop {
            let deadline = wait.as_ref().map_or(self.deadline, ResponseWait::deadline);
            match self.inbox.receive(deadline) {
                Some(ClientInput::AgentLine(line)) => {
                    wait.iter_mut().for_each(|wait| wait.note_message(Instant::now()));
                    if let Some(response) = self.handle_line(&line, id, on_event)? {
                        return response
                            .map_err(|error| ClientError::from_response(method, &error));
                    }
                }
                Some(ClientInput::UserLine(line)) => self.handle_typed_line(&line, on_event)?,
                Some(ClientInput::Interrupt) => self.handle_interrupt(on_event)?,
                Some(ClientInput::AgentClosed) => return Err(ClientError::Ended(method)),
                Some(ClientInput::WriteFailed(error)) => {
                    return Err(ClientError::InputClosed(error));
                }
                None => match wait.as_mut().map(ResponseWait::step) {
                    Some(WaitStep::Notice) => on_event(ClientEvent::AwaitingResponse(method)),
                    Some(WaitStep::GiveUp) => {
                        self.must_end_soon = true;
                        return Err(ClientError::ResponseTimeout {
                            method,
                            seconds: timeout.as_secs(),
                        });
                    }
                    None => return Err(ClientError::Unresponsive),
                },
            }
        }
    }

    fn send_message(&mut self, message: &Value) -> Result<(), ClientError> {
        self.connection.send_message(message)
    }

    /// Handles a line of the agent. Returns the result of the request with this id, if the line has it.
    fn handle_line(
        &mut self,
        line: &Value,
        id: u64,
        on_event: EventSink<'_>,
    ) -> Result<PendingResult, ClientError> {
        let mut response = None;
        let messages = line.as_array().map_or(std::slice::from_ref(line), Vec::as_slice);
        for message in messages.iter().filter_map(Value::as_object) {
            match (message.get("method").and_then(Value::as_str), message.get("id")) {
                (Some(method), request_id) => {
                    let params = message.get("params").and_then(Value::as_object);
                    self.handle_call(
                        method,
                        request_id,
                        &params.cloned().unwrap_or_default(),
                        on_event,
                    )?;
                }
                (None, Some(number)) if number.as_u64() == Some(id) => {
                    response = Some(match message.get("error") {
                        Some(error) if !error.is_null() => Err(error.clone()),
                        _ => Ok(message.get("result").cloned().unwrap_or_default()),
                    });
                }
                _ => {}
            }
        }
        Ok(response)
    }

    /// Handles a request or notification of the agent.
    fn handle_call(
        &mut self,
        method: &str,
        id: Option<&Value>,
        params: &Object,
        on_event: EventSink<'_>,
    ) -> Result<(), ClientError> {
        match (method, id) {
            ("session/update", _) => {
                let update = params.get("update").and_then(Value::as_object);
                if let Some(update) = update.filter(|_| self.is_current_session(params)) {
                    self.guard.note_update(update);
                    if !self.is_replaying {
                        on_event(ClientEvent::Update(update));
                    }
                }
                Ok(())
            }
            ("session/request_permission", Some(id)) => {
                self.handle_permission(id, params, on_event)
            }
            (_, Some(id)) => {
                let error =
                    json!({ "code": -32601, "message": format!("no such method: {method}") });
                self.send_message(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))
            }
            (_, None) => Ok(()),
        }
    }

    /// Whether a message belongs to the current session. An agent may have others, such as those of subagents.
    fn is_current_session(&self, params: &Object) -> bool {
        let named = params.get("sessionId").and_then(Value::as_str);
        named.is_none_or(|named| self.session_id.as_deref() == Some(named))
    }

    /// Cancels the turn at the first interrupt, and fails at the second.
    fn handle_interrupt(&mut self, on_event: EventSink<'_>) -> Result<(), ClientError> {
        let session = self.session_id.clone().filter(|_| self.is_prompting);
        let Some(session) = session.filter(|_| self.deadline.is_none()) else {
            self.must_end_soon = true;
            return Err(ClientError::Interrupted);
        };
        self.deadline = Some(Instant::now() + CANCEL_TIMEOUT);
        let params = json!({ "sessionId": session });
        self.send_message(
            &json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": params }),
        )?;
        while let Some((id, params)) = self.pending_permissions.pop_front() {
            self.answer_permission(&id, &params, &PermissionChoice::cancelled(), on_event)?;
        }
        on_event(ClientEvent::Cancelling);
        Ok(())
    }
}

/// The result or error of a request, once it has arrived.
type PendingResult = Option<Result<Value, Value>>;
