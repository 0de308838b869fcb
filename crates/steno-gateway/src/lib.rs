//! The gateway: a recording proxy on loopback for model APIs, and a server that answers from what was recorded.
//!
//! Bytes pass through as they are; what passed is appended to the vault as pieces of traffic. What they say is for
//! `steno_core::traffic` to tell. The crate reads no environment and prints nothing.

mod abrupt_close;
mod authority;
mod body;
mod connector;
mod delivery;
mod exchange;
mod exchange_recorder;
mod forward_proxy;
mod forwarder;
pub mod gateway;
mod gateway_handler;
mod guard;
mod http_headers;
mod locking;
mod model_hosts;
mod recorded_body;
mod recording;
mod redacted_body;
mod refusal;
pub mod replay;
mod request_body;
mod request_slot;
pub mod sdk;
mod server;
mod sessions;
mod trust;
mod upload;
pub mod upstream;
mod upstream_clients;
mod websocket;
mod websocket_frames;

pub use authority::{CertificateAuthority, CertificateError};
pub use connector::OutboundProxies;
pub use forward_proxy::ForwardProxy;
pub use gateway::{
    Bound, DEFAULT_BODY_LIMIT, Gateway, GatewayError, Options, RecordingChange, TrafficSession,
};
pub use model_hosts::RecordedHosts;
pub use sessions::{OpenSession, TrafficRouting};
pub use upstream::{Upstream, Upstreams};
