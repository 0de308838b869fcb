//! Views: transcripts and sums rendered for people, in no agent's format.

mod call_target;
pub mod edits;
pub mod entry_totals;
pub mod failures;
pub mod file_changes;
pub mod handoff;
pub mod json_rows;
pub mod lanes;
pub mod markdown;
pub mod pictures;
pub mod quality;
pub mod redaction;
pub mod turns;
