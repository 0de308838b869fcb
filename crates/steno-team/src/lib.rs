//! The record of a team: pushes sessions to a shared folder, a bucket or PostgreSQL, and pulls what others pushed.
//!
//! - [`RemoteUrl`] and [`RemoteSettings`] state where a remote is and what goes there.
//! - [`RedactedCopy`] makes the bytes that leave the machine; [`SessionPush`] sends them.
//! - [`SessionLoader`] fills a [`ClickHouseIndex`], which searches and counts for large organisations.
//! - [`TeamMirror`] is the local copy of what the remote shows to this user; it is a store like any other.
//!
//! A bucket needs the feature `bucket`.
//!
//! The crate is synchronous and prints nothing. Paths, the clock, the user's name and passwords come in as arguments.

#[cfg(feature = "bucket")]
mod bucket_remote;
mod clickhouse;
mod clickhouse_url;
mod copy_content;
mod folder_remote;
mod frame_chain;
mod manifest;
mod mirror;
mod mirror_owners;
mod postgres_remote;
mod prune_summary;
mod push;
mod push_summary;
mod redacted_copy;
mod remote;
mod remote_members;
mod remote_settings;
mod remote_tombstone;
mod remote_url;
mod session_receiver;
mod session_sender;
mod team_error;

#[cfg(feature = "bucket")]
pub use bucket_remote::{BucketAccess, BucketOptions, BucketRemote, KeyAccess};
pub use clickhouse::{ClickHouseIndex, LoadSummary, SessionLoader};
pub use clickhouse_url::{ClickHouseUrl, ClickHouseUrlError};
pub use copy_content::CopySpace;
pub use folder_remote::FolderRemote;
pub use frame_chain::{FrameHash, FrameLink};
pub use manifest::{FileStream, SessionKey, SessionManifest, StreamRedaction};
pub use mirror::{PullSummary, TeamMirror};
pub use mirror_owners::MirrorOwners;
pub use postgres_remote::{PostgresPassword, PostgresRemote};
pub use prune_summary::PruneSummary;
pub use push::SessionPush;
pub use push_summary::PushSummary;
pub use redacted_copy::RedactedCopy;
pub use remote::TeamRemote;
pub use remote_settings::{KeyLocation, RemoteSettings};
pub use remote_tombstone::RemoteTombstone;
pub use remote_url::{RemoteUrl, RemoteUrlError};
pub use session_sender::OutgoingSession;
pub use steno_store::session_owners::SessionVisibility;
pub use team_error::TeamError;
