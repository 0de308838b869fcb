//! One module per command: its arguments, whose doc comments are its help, and one function.

pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod cost;
pub(crate) mod diff;
pub(crate) mod export;
pub(crate) mod hook;
pub(crate) mod hooks;
pub(crate) mod import;
pub(crate) mod inspect;
pub(crate) mod list;
pub(crate) mod record;
pub(crate) mod reindex;
pub(crate) mod restore;
pub(crate) mod resume;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod speak;
pub(crate) mod stats;
pub(crate) mod statusline;
pub(crate) mod sync;
pub(crate) mod verify;
pub(crate) mod watch;
