//! One reader against bytes that a fuzzer makes up; `STENO_READER` names it.

#![no_main]

#[path = "../../crates/steno-store/tests/readers/exercise.rs"]
mod exercise;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use steno_store::format::{self, FormatReader};
use tempfile::TempDir;

static READER: LazyLock<&FormatReader> = LazyLock::new(|| {
    let name = std::env::var("STENO_READER").expect("STENO_READER names a reader");
    format::all_readers().find(|reader| reader.agent == name).expect("there is such a reader")
});

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

fuzz_target!(|input: &[u8]| exercise::exercise(&READER, input, &FOLDER.path().join("files")));
