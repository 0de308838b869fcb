//! The web page: read, search and replay sessions in a browser, or export them as HTML files.
//!
//! The server renders the HTML, with the same code for both. It uses the index only through `steno-store`.

mod api;
mod app;
mod assets;
mod chart;
mod connections;
mod error;
pub mod export;
mod filter_query;
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
pub use server::WebServer;
