//! What the vault costs beside its floors: a plain write with `fdatasync`, and zstd on the same bytes.
//!
//! First prints ratios, each measured by taking turns with its floor in the same run, because the machines that run
//! this are noisy; then the single figures.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use divan::Bencher;
use divan::counter::BytesCount;
use steno_model::Clock;
use steno_store::transcript::record_reader::RECORD_DECODER;
use steno_vault::record::RecordingOpening;
use steno_vault::recorder::Recorder;
use steno_vault::sealed::SealedFile;
use steno_vault::{SessionDir, SessionFile, Vault};
use tempfile::TempDir;

fn main() {
    println!("durable append / write + fdatasync: {:.2} (at most 1.2)", append_ratio());
    let (appends, one) = group_ratio(|recorder, line| {
        (0..64).for_each(|_| drop(recorder.append_line(line).expect("there is room")));
        recorder.commit().expect("the disk works");
    });
    println!("64 appends and one commit / one by one: {appends:.1}, where one takes {one:.2} ms");
    println!("64 threads / one by one: {:.1} (at least 20)", caller_ratio(in_threads));
    let (seal, read) = zstd_ratios();
    println!("seal / zstd -3, bytes per second: {seal:.2} (at least 0.8)");
    println!("read / zstd -d, bytes per second: {read:.2} (at least 0.8)");
    divan::main();
}

fn session(root: &Path) -> SessionDir {
    Vault::new(root).session_dir(&"bench".parse().expect("a name"), &"s".parse().expect("an id"))
}

fn recorder(root: &Path) -> Recorder {
    let opening = RecordingOpening { agent: "bench".to_owned(), ..RecordingOpening::default() };
    Recorder::open(session(root), &opening, Clock::system(), RECORD_DECODER)
        .expect("the folder is ours")
}

/// A record of some 3 KB, the mean of real sessions.
fn line() -> Vec<u8> {
    line_of(66)
}

fn line_of(sentences: usize) -> Vec<u8> {
    let words = "the quick brown fox jumps over the lazy dog ".repeat(sentences);
    format!("{{\"role\":\"assistant\",\"content\":\"{words}\"}}").into_bytes()
}

fn append_durably(recorder: &Recorder, line: &[u8]) {
    recorder.record_line(line).expect("there is room");
}

fn write_durably(file: &mut File, line: &[u8]) {
    file.write_all(line).expect("there is room");
    file.sync_data().expect("the disk works");
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

/// Our record holds the line and some 140 bytes around it; the floor writes the line alone.
fn append_ratio() -> f64 {
    let dir = tempfile::tempdir().expect("a temp folder");
    let (recorder, line) = (recorder(dir.path()), line());
    let mut file =
        File::options().create(true).append(true).open(dir.path().join("plain")).expect("a file");
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..300 {
        floor.push(timed(|| write_durably(&mut file, &line)));
        ours.push(timed(|| append_durably(&recorder, &line)));
    }
    median(ours) / median(floor)
}

/// How many more appends a second are made durable when 64 share one sync, and how long a single one takes.
///
/// Records of 250 bytes: twenty times as many of 3 KB would ask more of a disk than it can write.
fn group_ratio(many: impl Fn(&Recorder, &[u8])) -> (f64, f64) {
    let dir = tempfile::tempdir().expect("a temp folder");
    let (recorder, line) = (recorder(dir.path()), line_of(5));
    let (mut ones, mut manys) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        ones.push(timed(|| append_durably(&recorder, &line)));
        manys.push(timed(|| many(&recorder, &line)) / 64);
    }
    let one = median(ones);
    (one / median(manys), one * 1000.0)
}

/// How many more appends a second are made durable when 64 callers make them at the same time, each waiting for its
/// own before it makes the next.
fn caller_ratio(many: impl Fn(&Arc<Recorder>, &[u8])) -> f64 {
    let dir = tempfile::tempdir().expect("a temp folder");
    let (recorder, line) = (Arc::new(recorder(dir.path())), line_of(5));
    let (mut ones, mut manys) = (Vec::new(), Vec::new());
    for _ in 0..9 {
        ones.push(timed(|| (0..100).for_each(|_| append_durably(&recorder, &line))) / 100);
        manys.push(timed(|| many(&recorder, &line)) / 6400);
    }
    median(ones) / median(manys)
}

/// A thread for each caller, where switching between them counts too: on two cores and a disk that syncs in 0.2 ms it
/// costs as much as the sync.
fn in_threads(recorder: &Arc<Recorder>, line: &[u8]) {
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| (0..100).for_each(|_| append_durably(recorder, line)));
        }
    });
}

/// JSON Lines that compress about as real sessions do.
fn corpus(megabytes: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(megabytes << 20);
    let mut state = 1_u64;
    let mut word = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Few words are frequent, many are rare, as in text and in code.
        let rank = ((state >> 40) as f64 / (1 << 24) as f64).powi(3) * 20_000.0;
        format!("w{:x}", (rank as u64).wrapping_mul(2_654_435_761) & 0xff_ffff)
    };
    while text.len() < megabytes << 20 {
        let words: Vec<String> = (0..300).map(|_| word()).collect();
        let content = words.join(" ");
        let id = &words[0];
        writeln!(
            text,
            "{{\"type\":\"assistant\",\"uuid\":\"{id}\",\"message\":{{\"content\":\"{content}\"}}}}"
        )
        .expect("a Vec takes all bytes");
    }
    text
}

/// A file of 64 MB, kept from and read back by turns with zstd.
fn zstd_ratios() -> (f64, f64) {
    let dir = memory();
    let source = dir.path().join("source.jsonl");
    fs::write(&source, corpus(64)).expect("there is room");
    let packed = dir.path().join("packed.zst");
    let (mut seals, mut floor_seals, mut reads, mut floor_reads) = (vec![], vec![], vec![], vec![]);
    for round in 0..7 {
        let root = dir.path().join(round.to_string());
        floor_seals.push(timed(|| zstd(&["-3", "-T1", "-qf"], &source, &packed)));
        seals.push(timed(|| seal(&root, &source)));
        floor_reads.push(timed(|| zstd(&["-d", "-T1", "-qf"], &packed, Path::new("/dev/null"))));
        reads.push(timed(|| assert!(read(&root) > 0)));
        fs::remove_dir_all(&root).expect("the folder is ours");
    }
    (median(floor_seals) / median(seals), median(floor_reads) / median(reads))
}

fn memory() -> TempDir {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() }
        .expect("a temp folder")
}

/// The program itself where there is one, else its library.
fn zstd(options: &[&str], input: &Path, output: &Path) {
    let status = Command::new("zstd").args(options).arg(input).arg("-o").arg(output).status();
    if status.is_ok_and(|status| status.success()) {
        return;
    }
    let bytes = fs::read(input).expect("the input is there");
    let result = if options.contains(&"-d") {
        zstd::decode_all(bytes.as_slice())
    } else {
        zstd::encode_all(bytes.as_slice(), 3)
    };
    fs::write(output, result.expect("zstd reads what it wrote")).expect("there is room");
}

fn seal(root: &Path, source: &Path) {
    let source = SessionFile::on_disk("source.jsonl", source);
    session(root).keep_file(&source, root).expect("there is room");
}

fn read(root: &Path) -> usize {
    let path = session(root).path().join("source.jsonl.zst");
    let mut reader = SealedFile::open(&path).expect("the file is whole").reader_from(0);
    let (mut buffer, mut total) = (vec![0; 1 << 20], 0);
    loop {
        match reader.read(&mut buffer).expect("the file is whole") {
            0 => return total,
            count => total += count,
        }
    }
}

#[divan::bench]
fn write_and_fdatasync(bencher: Bencher) {
    let dir = tempfile::tempdir().expect("a temp folder");
    let mut file = File::create(dir.path().join("plain")).expect("a file");
    let line = line();
    bencher.bench_local(|| write_durably(&mut file, &line));
}

#[divan::bench]
fn append_and_commit(bencher: Bencher) {
    let dir = tempfile::tempdir().expect("a temp folder");
    let (recorder, line) = (recorder(dir.path()), line());
    bencher.bench_local(|| append_durably(&recorder, &line));
}

#[divan::bench(threads = [1, 64])]
fn append_and_commit_in_threads(bencher: Bencher) {
    let dir = tempfile::tempdir().expect("a temp folder");
    let (recorder, line) = (recorder(dir.path()), line());
    bencher.bench(|| append_durably(&recorder, &line));
}

#[divan::bench(sample_count = 5)]
fn seal_16_megabytes(bencher: Bencher) {
    let dir = memory();
    let source = dir.path().join("source.jsonl");
    fs::write(&source, corpus(16)).expect("there is room");
    bencher
        .counter(BytesCount::new(16_usize << 20))
        .with_inputs(|| tempfile::tempdir_in(dir.path()).expect("a temp folder"))
        .bench_values(|root| seal(root.path(), &source));
}

#[divan::bench(sample_count = 5)]
fn read_16_megabytes(bencher: Bencher) {
    let dir = memory();
    let source = dir.path().join("source.jsonl");
    fs::write(&source, corpus(16)).expect("there is room");
    seal(dir.path(), &source);
    bencher.counter(BytesCount::new(16_usize << 20)).bench(|| read(dir.path()));
}

#[divan::bench]
fn read_one_frame(bencher: Bencher) {
    let dir = memory();
    let source = dir.path().join("source.jsonl");
    fs::write(&source, corpus(16)).expect("there is room");
    seal(dir.path(), &source);
    let path = session(dir.path()).path().join("source.jsonl.zst");
    bencher.bench(|| {
        SealedFile::open(&path).expect("the file is whole").frame_at(9 << 20).expect("it is there")
    });
}
