//! The client: runs an agent, speaks with it, and records every byte of that.
//!
//! It offers neither files nor terminals, so that agents use their own. Whoever runs it is told what happens by a
//! function, and speaks to it by a [`Voice`].

mod error;
mod guard;
mod link;
mod permission;
mod session;
mod voice;
mod wait;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steno_core::json::Object;
use steno_core::vault::record::Closing;

pub use self::error::ClientError;
pub use self::guard::{Guard, Limits};
use self::link::Link;
pub use self::permission::{Choice, Policy};
use self::voice::Heard;
pub use self::voice::{Ears, Voice, voice};
use self::wait::{AnswerWait, WaitStep};
use crate::child::ChildLauncher;
use crate::recording::{Assignment, Kept};

/// How long an agent may take to end a turn that was cancelled.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an agent may take to end when nothing more is asked of it; some write their files then.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// How long it may take if nobody wants to wait for it.
const SHORT_END_TIMEOUT: Duration = Duration::from_millis(500);

/// How a client speaks with its agent.
#[derive(Clone, Copy, Debug)]
pub struct ClientSettings {
    /// Who decides what the agent may do.
    pub policy: Policy,
    /// When the agent is told of its thread again.
    pub limits: Limits,
    /// How long the agent may say nothing while a session is opened.
    pub answer_timeout: Duration,
}

/// Something that happens while an agent works.
#[derive(Debug)]
pub enum Event<'a> {
    /// The agent tells something: the `update` of a `session/update`.
    Update(&'a Object),
    /// The agent asks for permission, and a person has to answer.
    Asks(&'a Object),
    /// A request for permission was answered.
    Decided(&'a Object, &'a Choice),
    /// The turn is being cancelled.
    Cancelling,
    /// The agent has not answered this request yet.
    Waiting(&'static str),
}

/// Whoever is told what happens.
pub type Tell<'a> = &'a mut dyn FnMut(Event<'_>);

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Why, in the words of the protocol: `end_turn`, `cancelled`, `max_tokens`, ...
    pub stop_reason: String,
}

/// What an agent says that it can do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// Whether it goes on with a session without telling it again.
    pub resumes: bool,
    /// Whether it goes on with a session, and tells it again.
    pub loads: bool,
    /// Its ways to log in.
    pub logins: Vec<String>,
}

/// What is left of an agent that has ended.
#[derive(Clone, Debug)]
pub struct Left {
    /// The sessions that were taken down.
    pub kept: Vec<Kept>,
    /// The last that it wrote to its standard error.
    pub complaint: String,
    /// The signal that ended it, unless we sent it.
    pub signal: Option<i32>,
}

/// An agent that is being spoken with.
#[derive(Debug)]
pub struct Client {
    link: Link,
    ears: Ears,
    settings: ClientSettings,
    guard: Guard,
    offers: Offers,
    next: u64,
    /// The session that is spoken in.
    session: Option<String>,
    /// What of its mode can be set.
    modes: session::Modes,
    /// Requests for permission that wait for a person.
    asked: VecDeque<(Value, Object)>,
    is_prompting: bool,
    /// What an agent tells again is not told to anybody.
    is_replaying: bool,
    /// When an agent that was asked to stop has had time enough.
    deadline: Option<Instant>,
    /// The agent does not answer, or a person does not want to wait for it.
    is_hurried: bool,
}

impl Client {
    /// Starts the agent of `assignment`.
    pub fn start(
        assignment: Assignment,
        launcher: &ChildLauncher,
        settings: ClientSettings,
        ears: Ears,
    ) -> Result<Self, ClientError> {
        Ok(Self {
            link: Link::start(assignment, launcher, ears.voice())?,
            ears,
            settings,
            guard: Guard::new(settings.limits),
            offers: Offers::default(),
            next: 0,
            session: None,
            modes: session::Modes::default(),
            asked: VecDeque::new(),
            is_prompting: false,
            is_replaying: false,
            deadline: None,
            is_hurried: false,
        })
    }

    /// What the agent said that it can do.
    pub fn offers(&self) -> &Offers {
        &self.offers
    }

    /// Whether the agent may have lost what it was told of its thread.
    pub fn needs_context(&self) -> bool {
        self.guard.needs_context()
    }

    /// Gives the agent a prompt; returns when it has ended the turn.
    pub fn prompt(&mut self, text: &str, tell: Tell<'_>) -> Result<Turn, ClientError> {
        let session = self.session.clone().ok_or(ClientError::NoSession)?;
        self.guard.prompted(text);
        self.is_prompting = true;
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        let result = self.request("session/prompt", params, tell);
        self.is_prompting = false;
        self.deadline = None;
        let result = result?;
        let reason = result.get("stopReason").and_then(Value::as_str).unwrap_or("end_turn");
        Ok(Turn { stop_reason: reason.to_owned() })
    }

    /// Notes that the agent was told of its thread.
    pub fn gave_context(&mut self) {
        self.guard.given();
    }

    /// Waits a while for all that was said so far to be on disk.
    pub fn commit(&self) {
        self.link.commit();
    }

    /// Lets the agent go, and waits until all is recorded. An interrupt has it end at once.
    pub fn end(self, closing: Closing) -> Left {
        let time = if self.is_hurried { SHORT_END_TIMEOUT } else { END_TIMEOUT };
        self.link.end(closing, time, &self.ears)
    }

    /// Asks the agent for something; returns with its answer.
    fn request(
        &mut self,
        method: &'static str,
        params: Value,
        tell: Tell<'_>,
    ) -> Result<Value, ClientError> {
        let id = self.next;
        self.next += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        let timeout = self.settings.answer_timeout;
        let mut wait = (!self.is_prompting).then(|| AnswerWait::new(timeout, Instant::now()));
        loop {
            let deadline = wait.as_ref().map_or(self.deadline, AnswerWait::deadline);
            match self.ears.hear(deadline) {
                Some(Heard::Line(line)) => {
                    wait.iter_mut().for_each(|wait| wait.note_message(Instant::now()));
                    if let Some(answer) = self.line(&line, id, tell)? {
                        return answer.map_err(|error| ClientError::refused(method, &error));
                    }
                }
                Some(Heard::Typed(line)) => self.typed(&line, tell)?,
                Some(Heard::Interrupt) => self.interrupted(tell)?,
                Some(Heard::End) => return Err(ClientError::Ended(method)),
                Some(Heard::Deaf(error)) => return Err(ClientError::Deaf(error)),
                None => match wait.as_mut().map(AnswerWait::step) {
                    Some(WaitStep::Notice) => tell(Event::Waiting(method)),
                    Some(WaitStep::GiveUp) => {
                        self.is_hurried = true;
                        return Err(ClientError::NoAnswer { method, seconds: timeout.as_secs() });
                    }
                    None => return Err(ClientError::Unresponsive),
                },
            }
        }
    }

    fn say(&mut self, message: &Value) -> Result<(), ClientError> {
        self.link.say(message)
    }

    /// Takes a line of the agent's; gives its answer to the request of this number.
    fn line(&mut self, line: &Value, id: u64, tell: Tell<'_>) -> Result<Answer, ClientError> {
        let mut answer = None;
        let messages = line.as_array().map_or(std::slice::from_ref(line), Vec::as_slice);
        for message in messages.iter().filter_map(Value::as_object) {
            match (message.get("method").and_then(Value::as_str), message.get("id")) {
                (Some(method), asked) => {
                    let params = message.get("params").and_then(Value::as_object);
                    self.called(method, asked, &params.cloned().unwrap_or_default(), tell)?;
                }
                (None, Some(number)) if number.as_u64() == Some(id) => {
                    answer = Some(match message.get("error") {
                        Some(error) if !error.is_null() => Err(error.clone()),
                        _ => Ok(message.get("result").cloned().unwrap_or_default()),
                    });
                }
                _ => {}
            }
        }
        Ok(answer)
    }

    /// The agent asks or tells something.
    fn called(
        &mut self,
        method: &str,
        id: Option<&Value>,
        params: &Object,
        tell: Tell<'_>,
    ) -> Result<(), ClientError> {
        match (method, id) {
            ("session/update", _) => {
                let update = params.get("update").and_then(Value::as_object);
                if let Some(update) = update.filter(|_| self.is_of_session(params)) {
                    self.guard.hear(update);
                    if !self.is_replaying {
                        tell(Event::Update(update));
                    }
                }
                Ok(())
            }
            ("session/request_permission", Some(id)) => self.permission(id, params, tell),
            (_, Some(id)) => {
                let error =
                    json!({ "code": -32601, "message": format!("no such method: {method}") });
                self.say(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))
            }
            (_, None) => Ok(()),
        }
    }

    /// Whether a message is about the session that is spoken in. An agent may have others, such as those of subagents.
    fn is_of_session(&self, params: &Object) -> bool {
        let named = params.get("sessionId").and_then(Value::as_str);
        named.is_none_or(|named| self.session.as_deref() == Some(named))
    }

    /// A person wants it to stop: the turn at first, then everything.
    fn interrupted(&mut self, tell: Tell<'_>) -> Result<(), ClientError> {
        let session = self.session.clone().filter(|_| self.is_prompting);
        let Some(session) = session.filter(|_| self.deadline.is_none()) else {
            self.is_hurried = true;
            return Err(ClientError::Interrupted);
        };
        self.deadline = Some(Instant::now() + CANCEL_TIMEOUT);
        let params = json!({ "sessionId": session });
        self.say(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": params }))?;
        while let Some((id, params)) = self.asked.pop_front() {
            self.decide(&id, &params, &Choice::cancelled(), tell)?;
        }
        tell(Event::Cancelling);
        Ok(())
    }
}

/// What an agent answers, once it does.
type Answer = Option<Result<Value, Value>>;
