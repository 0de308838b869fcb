//! The gateway: a recording proxy for model APIs on loopback, and a server that replays recorded responses.
//!
//! Bytes are forwarded unchanged and appended to the vault as traffic pieces. `steno_agents::protocols::traffic` decodes them. The
//! crate reads no environment variables and prints nothing.

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
    BoundAddress, DEFAULT_BODY_LIMIT, Gateway, GatewayError, GatewayOptions, RecordingChange,
    TrafficSession,
};
pub use model_hosts::RecordedHosts;
pub use sessions::{OpenSession, TrafficRouting};
pub use upstream::{Upstream, Upstreams};
