//! zstd in one piece. What it works with is kept from call to call: to make it anew costs as much as a small piece.

use std::cell::RefCell;
use std::io;

use zstd::bulk::{Compressor, Decompressor};

/// Level 3 takes half as long again and saves 6 % more.
const LEVEL: i32 = 1;

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// A frame with a checksum.
pub(crate) fn compress(raw: &[u8]) -> io::Result<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|kept| {
        let compressor = match kept {
            Some(compressor) => compressor,
            None => {
                let mut compressor = Compressor::new(LEVEL)?;
                compressor.include_checksum(true)?;
                kept.insert(compressor)
            }
        };
        compressor.compress(raw)
    })
}

/// What is in a frame of at most `length` bytes.
pub(crate) fn decompress(data: &[u8], length: usize) -> io::Result<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            None => kept.insert(Decompressor::new()?),
        };
        decompressor.decompress(data, length)
    })
}
