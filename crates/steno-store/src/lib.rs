//! A store of agent sessions: keep them, search them, count their tokens and costs, compare them and show them.
//!
//! This is the crate for programs that build on Steno. It keeps whatever the agents of this machine wrote, verbatim,
//! and reads it back as entries:
//!
//! ```
//! use steno_model::Clock;
//! use steno_store::StoreLocation;
//! use steno_store::sync::SessionSyncer;
//! use steno_store::transcript::ReadTranscript;
//!
//! let folder = tempfile::tempdir()?;
//! let line = r#"{"type":"user","sessionId":"s1","uuid":"u1","message":{"role":"user","content":"Where is the bug?"}}"#;
//! std::fs::write(folder.path().join("s1.jsonl"), format!("{line}\n"))?;
//!
//! let store = StoreLocation::new(folder.path().join("store"), Clock::system());
//! SessionSyncer::new(store.clone())?.sync_folder(folder.path())?;
//! let hit = &store.search("bug", 10)?[0];
//! let session = &store.vault().sessions_with_id(hit.session.as_str())?[0];
//! let transcript = session.read_transcript()?;
//! assert_eq!(transcript.entries[hit.number as usize].content, "Where is the bug?");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`sync`] finds the sessions of this machine; [`keep`] writes one of them to the vault and the index.
//! - [`transcript`] reads sessions of the vault; [`format`](mod@format) finds and reads sessions in files.
//! - [`index`] answers searches and lists; [`cost`] counts and prices tokens.
//! - [`forget`] removes sessions and texts, and leaves tombstones.
//! - [`blame`] finds the session that wrote a line; [`compare`] compares two sessions; [`view`] renders them.
//! - [`secret_report`] finds the secrets that a store keeps.
//! - To record a running program, open a [`Recorder`](steno_vault::recorder::Recorder) with
//!   [`RECORD_DECODER`](transcript::record_reader::RECORD_DECODER).
//!
//! `examples/` has longer programs: `keep_and_search`, `record_a_program` and `capture_model_calls`.
//!
//! The crate is synchronous, prints nothing and does not read the environment. Callers pass in paths and the clock.

pub mod amount;
pub mod blame;
pub mod compare;
pub mod cost;
pub mod current_status;
pub mod entry_filter;
pub mod forget;
pub mod format;
pub mod index;
pub mod keep;
pub mod model_call_capture;
pub mod private_sessions;
pub mod repository;
pub mod secret_report;
pub mod session_owners;
mod store_error;
mod store_location;
pub mod sync;
pub mod transcript;
pub mod view;

pub use store_error::StoreError;
pub use store_location::StoreLocation;
