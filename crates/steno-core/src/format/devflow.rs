//! devflow.
