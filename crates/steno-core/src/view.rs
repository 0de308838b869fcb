//! What people see: views that are no format of anybody.

pub mod amount;
pub mod answer;
pub mod atif;
pub mod edits;
pub mod lanes;
pub mod markdown;
pub mod pictures;
pub mod redact;
