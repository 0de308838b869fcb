//! Traffic with model APIs, as the gateway records it: requests and responses, and the entries decoded from them.
//!
//! A capture only appends [`Piece`]s. The `TrafficDecoder` assembles them into exchanges, finds the conversation that
//! each request continues, and emits every message once. Nothing here knows sockets.

pub mod agent_session;
mod assemble;
pub(crate) mod attribution;
mod aws_event_stream;
mod body;
pub mod body_meter;
pub mod capture;
mod conversations;
pub mod debug;
pub mod decoder;
pub mod dialect;
mod event_stream;
pub mod exchange;
pub mod form_body;
mod gemini;
pub mod piece;
mod question;
mod reader;
mod realtime;
mod reply;
mod request;
mod retries;
pub mod secrets;
mod single_call;
pub mod socket_audio;
mod socket_exchanges;
mod telling;
mod translate;

#[cfg(test)]
mod tests;

/// The protocol name in a recording's notes that marks traffic of an agent with session files of its own.
pub const PROTOCOL: &str = "api";

pub use agent_session::AgentSession;
pub use dialect::Dialect;
pub use exchange::Exchange;
pub use piece::Piece;
pub use question::{AskedRequest, Question};
pub use reader::{AGENT, READER};
pub(crate) use socket_exchanges::SocketExchanges;
pub(crate) use telling::Telling;
