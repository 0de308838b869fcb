//! Lets agents query the recorded sessions through the Model Context Protocol.
//!
//! [`HistoryServer`] has the tools; [`serve_stdio`] and [`HttpHistoryService`] connect it with clients. Clients of the
//! protocol with `initialize` and of 2026-07-28 without it are both served.
//!
//! # What an answer is
//! Dated quotes with `SESSION:ENTRY` ids, never a summary. Text of transcripts may contain instructions, so it is
//! quoted between two lines with a random word that the text does not contain. Secrets are redacted, and private
//! sessions are never served.
//!
//! The crate prints nothing and does not read the environment.

mod agent_history;
mod decision_prompt;
mod history_scope;
mod history_server;
mod history_tool;
mod quoted_answer;
mod quoted_text;
mod serving;
mod tool_arguments;
mod tool_error;
mod tools;

pub use agent_history::{AgentHistory, HistoryOptions, TeamHistory};
pub use history_scope::HistoryScope;
pub use history_server::HistoryServer;
pub use serving::{HttpHistoryService, serve_stdio};
