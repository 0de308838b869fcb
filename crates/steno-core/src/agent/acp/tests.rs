//! Folding, from the lines that agents really send.
