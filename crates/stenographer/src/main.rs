//! The steno binary.
fn main() {}
