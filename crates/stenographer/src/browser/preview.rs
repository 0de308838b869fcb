//! The selected session beside the list, on wide screens.

use super::SessionName;
use super::reader::SessionReader;

/// A longer session is not read for a preview.
pub(crate) const MAX_PREVIEW_ENTRIES: u64 = 20_000;

/// A session beside the list.
#[derive(Debug)]
pub(crate) struct SessionPreview {
    pub(crate) name: SessionName,
    pub(crate) content: PreviewContent,
}

/// What is known of the session.
#[derive(Debug)]
pub(crate) enum PreviewContent {
    /// It is being read.
    Reading,
    /// It was read.
    Read(Box<SessionReader>),
    /// It is not shown, for this reason.
    Unavailable(String),
}
