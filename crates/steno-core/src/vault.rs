//! Where bytes are kept verbatim.
