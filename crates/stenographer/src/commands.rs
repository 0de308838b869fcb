//! One module per command: its arguments, whose doc comments are its help, and one function.

pub(crate) mod speak;
