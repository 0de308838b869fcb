//! Traffic with model APIs, as the gateway records it: requests and responses, and the entries decoded from them.
//!
//! A capture only appends [`TrafficPiece`]s. The `TrafficDecoder` assembles them into exchanges, finds the conversation
//! that each request continues, and emits every message once. Nothing here knows sockets.

mod assembly;
pub mod attribution;
mod aws_event_stream;
pub mod body_decoder;
pub mod body_format;
pub mod body_meter;
mod conversations;
mod decoded_body;
mod decoded_request;
mod decoded_response;
pub mod dialect;
mod event_stream;
pub mod exchange;
mod gemini;
pub mod piece;
mod reader;
mod realtime;
mod request_fingerprint;
mod request_retries;
pub mod secrets;
mod single_call;
pub mod socket_audio;
mod socket_exchanges;
mod traffic_decoder;
mod translation;

#[cfg(test)]
mod tests;

pub use decoded_response::ResponseSummary;
pub use dialect::ApiDialect;
pub use exchange::ApiExchange;
pub use piece::TrafficPiece;
pub use reader::{AGENT, AGENT_NAME, READER};
pub use request_fingerprint::{IncomingRequest, RequestFingerprint};
pub use socket_exchanges::SocketExchanges;
pub use traffic_decoder::TrafficDecoder;

use steno_model::durable::FileError;
use steno_vault::recorder::Recorder;

/// Appends traffic pieces with one write. They are in the file when this returns, and on disk after the next
/// [`Recorder::commit`].
pub fn append_traffic(recorder: &Recorder, pieces: &[TrafficPiece<'_>]) -> Result<(), FileError> {
    recorder.append_wire_records(pieces.iter().map(TrafficPiece::to_line))
}
