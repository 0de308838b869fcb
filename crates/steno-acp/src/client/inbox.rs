//! The inbox of a client: lines of the agent, and what the user does meanwhile.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Instant;

use serde_json::Value;

/// One item in the inbox.
#[derive(Debug)]
pub(super) enum ClientInput {
    /// A message of the agent.
    AgentLine(Value),
    /// A line that the user typed; empty if there is no terminal.
    UserLine(String),
    /// The user wants to stop.
    Interrupt,
    /// The agent closed its output.
    AgentClosed,
    /// Writing to the agent failed.
    WriteFailed(io::Error),
}

/// Sends to a client's inbox from other threads.
#[derive(Clone, Debug)]
pub struct ClientHandle(Sender<ClientInput>);

/// The receiving end of a client's inbox.
#[derive(Debug)]
pub struct ClientInbox {
    inputs: Receiver<ClientInput>,
    handle: ClientHandle,
}

/// Creates a channel to a client.
pub fn client_channel() -> (ClientHandle, ClientInbox) {
    let (sender, inputs) = mpsc::channel();
    let handle = ClientHandle(sender);
    (handle.clone(), ClientInbox { inputs, handle })
}

impl ClientHandle {
    /// Asks the client to cancel the turn; the second time, to stop.
    pub fn interrupt(&self) {
        self.send(ClientInput::Interrupt);
    }

    /// Answers a permission request.
    pub fn send_line(&self, line: String) {
        self.send(ClientInput::UserLine(line));
    }

    pub(super) fn send(&self, input: ClientInput) {
        // The client may have ended.
        let _ = self.0.send(input);
    }
}

impl ClientInbox {
    pub(super) fn handle(&self) -> ClientHandle {
        self.handle.clone()
    }

    /// Whether the user interrupted. Drops everything else in the inbox.
    pub(super) fn was_interrupted(&self) -> bool {
        self.inputs.try_iter().any(|input| matches!(input, ClientInput::Interrupt))
    }

    /// The next item; `None` once the deadline has passed.
    pub(super) fn receive(&self, deadline: Option<Instant>) -> Option<ClientInput> {
        let Some(deadline) = deadline else { return self.inputs.recv().ok() };
        let left = deadline.saturating_duration_since(Instant::now());
        self.inputs.recv_timeout(left).ok()
    }
}
