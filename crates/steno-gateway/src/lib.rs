//! The gateway: a recording proxy on loopback for model APIs, and a server that answers from what was recorded.
//!
//! Bytes pass through as they are; what passed is appended to the vault as pieces of traffic. What they say is for
//! `steno_core::traffic` to tell. The crate reads no environment and prints nothing.

mod connect;
pub mod gateway;
mod guard;
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

pub use connect::Proxies;
pub use gateway::{
    Bound, DEFAULT_BODY_LIMIT, Gateway, GatewayError, Options, RecordingChange, TrafficSession,
};
pub use sessions::{OpenSession, TrafficRouting};
pub use upstream::{Upstream, Upstreams};
