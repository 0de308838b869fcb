//! The formats of other systems, one module each: a reader and a writer.
