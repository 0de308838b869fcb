//! Every reader takes time in proportion to its input: four times the records may not cost more than eight times the
//! CPU. A reader with quadratic cost would need sixteen times as much.
//!
//! The inputs are the samples of each format, grown in every place where records, parts or files can repeat. Only
//! ratios are compared, of CPU time of one thread.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "linear/acp.rs"]
mod acp;
#[path = "linear/database.rs"]
mod database;
#[path = "readers/exercise.rs"]
#[expect(dead_code, reason = "only the samples' layout is needed here")]
mod exercise;
#[path = "linear/grow.rs"]
mod grow;
#[path = "linear/kept.rs"]
mod kept;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use steno_store::format::{self, FormatReader};
use tempfile::TempDir;

/// The files of an input, each with its name.
pub(crate) type InputFiles = Vec<(PathBuf, Vec<u8>)>;

/// An input that can be made of any size.
pub(crate) struct GrowingInput {
    pub(crate) name: String,
    pub(crate) make: Box<dyn Fn(usize) -> InputFiles>,
}

/// The least CPU time that is compared; less counts as much.
const LEAST_WORK: Duration = Duration::from_millis(10);

/// What four times the records may cost.
const MOST_RATIO: f64 = 8.0;

/// How often a ratio that is too large is measured again, because something else may have disturbed it.
const ROUNDS: usize = 4;

/// Inputs do not grow beyond this, whether they cost enough to be compared or not.
const MOST_BYTES: usize = 2 << 20;

/// Inputs that do not grow with the number of records stop here.
const MOST_RECORDS: usize = 1 << 17;

/// Sessions that are read of an input: reading all would cost the square if one file holds them.
const MOST_SESSIONS: usize = 2;

/// The CPU time that this thread spends on `work`.
pub(crate) fn cpu_time(work: impl FnOnce()) -> Duration {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
    };
    let begin = now();
    work();
    now() - begin
}

/// Fails if the cost of something grows faster than its size. `cost` measures it for so many records, or gives nothing
/// where that would be too much.
pub(crate) fn assert_linear(name: &str, mut cost: impl FnMut(usize) -> Option<Duration>) {
    let (mut next, mut largest) = (16, None);
    while let Some(time) = cost(4 * next).filter(|_| next <= MOST_RECORDS) {
        largest = Some((next, time));
        if time >= 4 * LEAST_WORK {
            break;
        }
        let missing = 4.0 * LEAST_WORK.as_secs_f64() / time.as_secs_f64().max(1e-6);
        next *= if missing > 16.0 { 8 } else { 2 };
    }
    let (count, mut more) = largest.unwrap();
    let mut time = cost(count).unwrap().max(LEAST_WORK);
    for _ in 0..ROUNDS {
        if more.as_secs_f64() <= MOST_RATIO * time.as_secs_f64() {
            return;
        }
        time = time.max(cost(count).unwrap());
        more = more.min(cost(4 * count).unwrap_or(more));
    }
    let ratio = more.as_secs_f64() / time.as_secs_f64();
    panic!("{name}: {count} records take {time:?}, four times as many {more:?} ({ratio:.1} times)");
}

/// Lays out the files of an input, and measures how long a reader takes to find and read the sessions in them.
fn reading_time(reader: &FormatReader, files: InputFiles) -> Duration {
    let folder = scratch_folder();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    cpu_time(|| {
        let found = reader.find_at(folder.path()).unwrap();
        for bundle in found.iter().take(MOST_SESSIONS) {
            drop(format::read_transcript(reader, bundle));
        }
    })
}

/// A folder in memory where there is one.
pub(crate) fn scratch_folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

/// The samples of a reader in the corpus.
fn samples(reader: &FormatReader) -> Vec<(String, InputFiles)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(reader.agent);
    let mut samples = Vec::new();
    let listing = fs::read_dir(folder).unwrap_or_else(|_| panic!("no corpus of {}", reader.agent));
    for item in listing {
        let path = item.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("sample") {
            let input = fs::read(path).unwrap();
            let files = exercise::files(&input).into_iter();
            samples.push((name, files.map(|(name, bytes)| (name, bytes.to_vec())).collect()));
        }
    }
    samples.sort();
    samples
}

fn check_reader(reader: &FormatReader) {
    let agent = reader.agent;
    let mut samples = samples(reader);
    let mut inputs = Vec::new();
    if agent == "acp" {
        samples.push(("wire".to_owned(), acp::sample()));
        inputs.extend(acp::inputs());
    }
    for (name, files) in &samples {
        inputs.extend(grow::inputs(name, files));
    }
    assert!(!inputs.is_empty(), "{agent} has no samples");
    let wanted = std::env::var("STENO_SHAPE").unwrap_or_default();
    for input in inputs.iter().filter(|input| input.name.contains(&wanted)) {
        assert_linear(&format!("{agent} {}", input.name), |count| {
            let files = (input.make)(count);
            let size: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
            (size <= MOST_BYTES || count < 64).then(|| reading_time(reader, files))
        });
    }
}

/// How many tests share the readers, so that several can run at once.
const SHARES: usize = 8;

/// Checks every eighth reader, or the one that `STENO_READER` names.
fn check_share(share: usize) {
    let wanted = std::env::var("STENO_READER").ok();
    for reader in format::all_readers().skip(share).step_by(SHARES) {
        if wanted.as_deref().is_none_or(|name| name == reader.agent) {
            check_reader(reader);
        }
    }
}

macro_rules! shares {
    ($($test:ident: $share:literal,)*) => {
        $(#[test]
        fn $test() {
            check_share($share);
        })*

        #[test]
        fn every_reader_is_in_a_share() {
            assert_eq!([$($share),*], std::array::from_fn::<usize, SHARES, _>(|share| share));
        }
    };
}

shares! {
    readers_0: 0,
    readers_1: 1,
    readers_2: 2,
    readers_3: 3,
    readers_4: 4,
    readers_5: 5,
    readers_6: 6,
    readers_7: 7,
}
