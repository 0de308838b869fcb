//! chibi.
