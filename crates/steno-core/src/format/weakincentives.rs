//! weakincentives.
