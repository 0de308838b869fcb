//! Tests of the whole reader.
