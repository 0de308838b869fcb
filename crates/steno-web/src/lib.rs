//! The page: sessions read, searched and replayed in the browser, and as one file.
//!
//! HTML is made here, on the server, by the same code for both. The index is used through `steno-core` only.

mod api;
mod app;
mod asked;
mod assets;
mod chart;
mod connections;
mod error;
pub mod export;
mod guard;
mod heading;
mod library;
mod live;
mod options;
mod page;
mod pages;
mod render;
mod routes;
mod server;
mod write_timeout;

pub use connections::ConnectionLimits;
pub use error::WebError;
pub use options::{ResumeAction, ServerOptions};
pub use server::Server;
