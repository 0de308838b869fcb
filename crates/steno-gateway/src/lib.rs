//! The gateway: a recording proxy on loopback for model APIs, and a server that answers from what was recorded.
//!
//! Bytes pass through as they are; what passed is appended to the vault as pieces of traffic. What they say is for
//! `steno_core::traffic` to tell. The crate reads no environment and prints nothing.

mod abrupt_close;
mod authority;
mod connect;
mod delivery;
mod forward;
pub mod gateway;
mod guard;
mod model_hosts;
mod proxy;
mod recording;
mod refusal;
pub mod replay;
pub mod sdk;
mod server;
mod sessions;
mod tee;
mod trust;
mod upload;
pub mod upstream;
mod websocket;
mod websocket_frames;

pub use authority::{CertificateAuthority, CertificateError};
pub use connect::Proxies;
pub use forward::ForwardProxy;
pub use gateway::{
    Bound, DEFAULT_BODY_LIMIT, Gateway, GatewayError, Options, RecordingChange, TrafficSession,
};
pub use model_hosts::RecordedHosts;
pub use sessions::{OpenSession, TrafficRouting};
pub use upstream::{Upstream, Upstreams};
