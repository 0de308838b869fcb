//! What reading costs beside its floor: skipping over the same JSON.
//!
//! `cargo bench -p steno-store --bench readers -- PATH` reads the sessions at a path; without one, a session of Claude
//! Code that is made up on the spot.

use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;
use steno_store::format;

fn main() {
    let dir = tempfile::tempdir().expect("a temp folder");
    let named = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let path = named.map_or_else(|| made_up(dir.path()), PathBuf::from);
    let files: Vec<_> = format::list_file_paths(&path).expect("the path can be read");
    let bytes: u64 = files.iter().filter_map(|file| file.metadata().ok()).map(|m| m.len()).sum();
    let (mut reads, mut skips) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        skips.push(timed(|| files.iter().for_each(|file| skip(file))));
        reads.push(timed(|| read(&path)));
    }
    let (read, skip) = (median(reads), median(skips));
    println!("{:.0} MB", bytes as f64 / 1e6);
    println!("read: {:.0} MB/s", bytes as f64 / 1e6 / read);
    println!("skip: {:.0} MB/s", bytes as f64 / 1e6 / skip);
    println!("read / skip, time: {:.2}", read / skip);
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}

fn read(path: &Path) {
    for found in format::find_sessions(path).expect("the path can be read") {
        let session = (found.reader.read)(&found.bundle, &mut |item| drop(black_box(item)));
        black_box(session.expect("the session can be read"));
    }
}

fn skip(file: &Path) {
    for line in fs::read(file).expect("the file can be read").split(|byte| *byte == b'\n') {
        let _ = black_box(serde_json::from_slice::<IgnoredAny>(line));
    }
}

/// A session of some 16 MB: answers, calls of tools, and what these gave.
fn made_up(dir: &Path) -> PathBuf {
    let id = "0b1e2d3c-4f5a-4b6c-8d7e-9f0a1b2c3d4e";
    let output = "fn main() {\\n    println!(\\\"it works\\\");\\n}\\n".repeat(60);
    let mut text = String::new();
    for turn in 0..2500 {
        let envelope = |line: u32| {
            format!(
                "\"parentUuid\":null,\"isSidechain\":false,\"cwd\":\"/home/me/code\",\"sessionId\":\"{id}\",\
                 \"version\":\"2.1.0\",\"gitBranch\":\"main\",\"uuid\":\"00000000-0000-4000-8000-{turn:08x}{line:04x}\",\
                 \"timestamp\":\"2026-01-01T00:00:00.000Z\""
            )
        };
        let (call, result) = (envelope(1), envelope(2));
        let message = format!(
            "\"message\":{{\"id\":\"msg_{turn:024}\",\"type\":\"message\",\"role\":\"assistant\",\
             \"model\":\"claude-opus-4-5\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"toolu_{turn:024}\",\
             \"name\":\"Bash\",\"input\":{{\"command\":\"cargo run\"}}}}],\
             \"usage\":{{\"input_tokens\":3,\"output_tokens\":90,\"cache_read_input_tokens\":20000}}}}"
        );
        writeln!(text, "{{{call},\"type\":\"assistant\",{message}}}").expect("a String takes all");
        writeln!(
            text,
            "{{{result},\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\
             \"tool_use_id\":\"toolu_{turn:024}\",\"content\":\"{output}\"}}]}},\
             \"toolUseResult\":{{\"stdout\":\"{output}\",\"stderr\":\"\"}}}}"
        )
        .expect("a String takes all");
    }
    let path = dir.join(format!("{id}.jsonl"));
    fs::write(&path, text).expect("there is room");
    path
}
