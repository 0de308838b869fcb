//! leslie.
