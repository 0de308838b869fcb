//! The vault under damage: cut anywhere it gives back every whole record, and no flipped bit goes unseen.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use steno_model::{Clock, SessionStatus};
use steno_store::transcript::ReadTranscript;
use steno_store::transcript::record_reader::RECORD_DECODER;
use steno_vault::record::{RecordingClosing, RecordingOpening};
use steno_vault::recorder::Recorder;
use steno_vault::{SessionBundle, SessionDir, SessionFile, Vault};
use tempfile::TempDir;

/// A folder in memory where there is one: these tests write hundreds of thousands of files.
fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

fn session(root: &Path, id: &str) -> SessionDir {
    Vault::new(root).session_dir(&"test".parse().unwrap(), &id.parse().unwrap())
}

fn recorder(dir: &SessionDir) -> Recorder {
    let opening = RecordingOpening { agent: "test".to_owned(), ..RecordingOpening::default() };
    Recorder::open(dir.clone(), &opening, Clock::system(), RECORD_DECODER).unwrap()
}

fn record(recorder: &Recorder, content: &str) {
    let line = format!("{{\"role\":\"user\",\"content\":\"{content}\"}}");
    recorder.record_line(line.as_bytes()).unwrap();
}

fn contents(dir: &SessionDir) -> Vec<String> {
    dir.read_transcript().unwrap().entries.into_iter().map(|entry| entry.content).collect()
}

fn completed() -> RecordingClosing {
    RecordingClosing { status: SessionStatus::Completed, reason: None }
}

fn live_log(dir: &SessionDir) -> PathBuf {
    dir.path().join("record.jsonl.live.0")
}

/// A log of some 70 KiB, and its records.
fn long_log(root: &Path) -> (Vec<u8>, Vec<String>) {
    let dir = session(root, "whole");
    let recorder = recorder(&dir);
    let contents: Vec<String> = (0..40).map(|n| format!("{n} {}", "x".repeat(1600))).collect();
    for content in &contents {
        record(&recorder, content);
    }
    (fs::read(live_log(&dir)).unwrap(), contents)
}

#[test]
fn threads_record_together() {
    let scratch = scratch();
    let dir = session(scratch.path(), "threads");
    let recorder = recorder(&dir);
    std::thread::scope(|scope| {
        for caller in 0..17 {
            let recorder = &recorder;
            scope.spawn(move || {
                for round in 0..20 {
                    let line = format!("{{\"role\":\"user\",\"content\":\"{caller} {round}\"}}");
                    let recorded = recorder.record_line(line.as_bytes()).unwrap();
                    assert_eq!(recorded.entries.unwrap()[0].content, format!("{caller} {round}"));
                }
            });
        }
    });
    let contents = contents(&dir);
    assert_eq!(contents.len(), 17 * 20);
    for caller in 0..17 {
        let name = format!("{caller} ");
        let rounds: Vec<&str> =
            contents.iter().filter_map(|content| content.strip_prefix(&name)).collect();
        assert_eq!(rounds, (0..20).map(|round| round.to_string()).collect::<Vec<_>>());
    }
}

#[test]
fn cut_at_every_byte_of_its_last_64_kib() {
    let scratch = scratch();
    let (log, contents) = long_log(scratch.path());
    let first = log.len().checked_sub(64 << 10).expect("the log is longer than what is cut");
    let cuts: Vec<usize> = (first..=log.len()).collect();
    std::thread::scope(|scope| {
        for (worker, part) in cuts.chunks(cuts.len().div_ceil(2)).enumerate() {
            let (log, contents, root) = (&log, &contents, scratch.path());
            scope.spawn(move || {
                for cut in part {
                    check_cut(&root.join(worker.to_string()), &log[..*cut], contents);
                }
            });
        }
    });
}

/// Records go on after the last whole one; nothing is glued, lost or there twice.
fn check_cut(root: &Path, log: &[u8], whole: &[String]) {
    let dir = session(root, "cut");
    fs::create_dir_all(dir.path()).unwrap();
    fs::write(live_log(&dir), log).unwrap();
    let lines = log.iter().filter(|byte| **byte == b'\n').count();
    let recorder = recorder(&dir);
    record(&recorder, "after");
    let torn = log.len() - log.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    assert_eq!(recorder.bytes_cut(), torn as u64, "cut at {}", log.len());
    drop(recorder);
    let transcript = dir.read_transcript().unwrap();
    assert_eq!(transcript.problems, [], "cut at {}", log.len());
    let got: Vec<&str> = transcript.entries.iter().map(|entry| entry.content.as_str()).collect();
    // The first line of the log only marks the start of a recorder.
    let expected = lines.saturating_sub(1);
    let mut want: Vec<&str> = whole[..expected].iter().map(String::as_str).collect();
    want.push("after");
    assert_eq!(got, want, "cut at {}", log.len());
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_session_is_sealed_and_continued() {
    let scratch = scratch();
    let dir = session(scratch.path(), "s");
    for round in 0..3 {
        let recorder = recorder(&dir);
        record(&recorder, &format!("round {round}"));
        recorder.close(&completed()).unwrap();
        assert!(dir.path().join("record.jsonl.zst").exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "two locks, the sealed file");
    }
    assert_eq!(contents(&dir), ["round 0", "round 1", "round 2"]);
    let transcript = dir.read_transcript().unwrap();
    let sequences: Vec<u64> = transcript.entries.iter().map(|entry| entry.sequence).collect();
    assert_eq!(sequences, [0, 1, 2]);
    assert_eq!(transcript.session.status, SessionStatus::Completed);
    assert_eq!(dir.verify().unwrap().damage, []);
}

#[test]
fn sealing_that_was_interrupted_is_finished() {
    let scratch = scratch();
    let dir = session(scratch.path(), "s");
    let first = recorder(&dir);
    record(&first, "one");
    record(&first, "two");
    let log = fs::read(live_log(&dir)).unwrap();
    first.close(&completed()).unwrap();
    // As if the log had been sealed but not yet removed.
    fs::write(live_log(&dir), &log).unwrap();
    assert_eq!(contents(&dir), ["one", "two"]);
    let second = recorder(&dir);
    record(&second, "three");
    drop(second);
    assert_eq!(contents(&dir), ["one", "two", "three"]);
    assert_eq!(dir.verify().unwrap().damage, []);
}

#[test]
fn a_session_that_nobody_records_any_more_has_failed() {
    let scratch = scratch();
    let dir = session(scratch.path(), "s");
    let recorder = recorder(&dir);
    record(&recorder, "one");
    assert_eq!(dir.read_transcript().unwrap().session.status, SessionStatus::Running);
    drop(recorder);
    assert_eq!(dir.read_transcript().unwrap().session.status, SessionStatus::Failed);
}

#[test]
fn a_damaged_line_costs_only_itself() {
    let scratch = scratch();
    let (log, contents) = long_log(scratch.path());
    let dir = session(scratch.path(), "whole");
    let tenth = memchr::memchr_iter(b'\n', &log).nth(9).unwrap() + 1;
    for (place, what) in [(tenth + 12, "its sum"), (tenth + 200, "its text")] {
        let mut damaged = log.clone();
        damaged[place] ^= 1;
        fs::write(live_log(&dir), damaged).unwrap();
        let transcript = dir.read_transcript().unwrap();
        assert_eq!(transcript.problems.len(), 1, "{what}: {:?}", transcript.problems);
        assert_eq!(transcript.entries.len(), contents.len() - 1, "{what}");
    }
}

#[test]
fn damage_to_a_live_record_still_shows_after_it_is_sealed() {
    let scratch = scratch();
    let (log, _) = long_log(scratch.path());
    let dir = session(scratch.path(), "whole");
    let mut damaged = log;
    damaged[9000] ^= 1;
    fs::write(live_log(&dir), damaged).unwrap();
    recorder(&dir).close(&completed()).unwrap();
    assert!(dir.path().join("record.jsonl.zst").exists());
    assert_eq!(dir.verify().unwrap().damage.len(), 1);
    assert_eq!(dir.read_transcript().unwrap().problems.len(), 1);
}

#[test]
fn a_kept_record_that_lost_its_newline_is_not_cut_off() {
    let scratch = scratch();
    let (log, contents) = long_log(scratch.path());
    let dir = session(scratch.path(), "whole");
    let mut damaged = log.clone();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(live_log(&dir), &damaged).unwrap();
    assert_eq!(dir.read_transcript().unwrap().problems.len(), 1, "whoever reads it now is warned");
    let recorder = recorder(&dir);
    assert_eq!(recorder.bytes_cut(), 0);
    record(&recorder, "after");
    drop(recorder);
    assert!(fs::read(live_log(&dir)).unwrap().starts_with(&damaged));
    let transcript = dir.read_transcript().unwrap();
    assert_eq!((transcript.problems.len(), transcript.entries.len()), (1, contents.len()));
    assert_eq!(dir.verify().unwrap().damage.len(), 1);
}

#[test]
fn kept_records_that_are_missing_are_noted_in_the_record() {
    let scratch = scratch();
    let (log, _) = long_log(scratch.path());
    let dir = session(scratch.path(), "whole");
    fs::write(live_log(&dir), &log[..log.len() - 10]).unwrap();
    assert!(!dir.verify().unwrap().damage.is_empty());
    record(&recorder(&dir), "after");
    let transcript = dir.read_transcript().unwrap();
    assert_eq!(transcript.entries.len(), 40);
    let reasons: Vec<&str> =
        transcript.problems.iter().map(|problem| problem.reason.as_str()).collect();
    assert_eq!(reasons.len(), 1);
    assert!(reasons[0].ends_with("kept bytes are missing here"), "{reasons:?}");
    assert_eq!(dir.verify().unwrap().damage, []);
}

#[test]
fn files_that_are_removed_show() {
    let scratch = scratch();
    let dir = session(scratch.path(), "s");
    for name in ["a.json", "b.json"] {
        fs::write(scratch.path().join(name), "{}").unwrap();
    }
    let bundle = |names: &[&str]| {
        let source = |name: &&str| SessionFile::on_disk(*name, scratch.path().join(name));
        SessionBundle::new(scratch.path(), names.iter().map(source).collect())
    };
    dir.keep_session(&bundle(&["a.json", "b.json"])).unwrap();
    let names = || -> Vec<String> {
        dir.kept_bundle().unwrap().files.iter().map(|source| source.name().to_owned()).collect()
    };
    assert_eq!(names(), ["a.json", "b.json"]);
    dir.keep_session(&bundle(&["a.json"])).unwrap();
    assert_eq!(names(), ["a.json", "b.json"], "what the agent has purged stays visible");
    dir.keep_session(&bundle(&["a.json", "b.json"])).unwrap();
    assert_eq!(names(), ["a.json", "b.json"], "and is there once when it comes back");
    assert_eq!(dir.verify().unwrap().damage, []);
    fs::remove_file(dir.path().join("a.json.zst")).unwrap();
    assert_eq!(dir.verify().unwrap().damage[0].reason, "the file is missing");
}

#[test]
fn a_damaged_file_starts_a_new_generation() {
    let scratch = scratch();
    let dir = session(scratch.path(), "s");
    let path = scratch.path().join("a.jsonl");
    fs::write(&path, "one\n").unwrap();
    let keep = || dir.keep_file(&SessionFile::on_disk("a.jsonl", &path), scratch.path()).unwrap();
    assert_eq!(keep().generation, 0);
    fs::write(dir.path().join("a.jsonl.zst"), "").unwrap();
    assert_eq!(dir.kept_bundle().unwrap().files.len(), 0);
    assert_eq!((keep().generation, keep().generation), (1, 1));
    assert_eq!(dir.kept_bundle().unwrap().files[0].read_bytes().unwrap(), b"one\n");
}

#[test]
fn the_next_writer_keeps_lines_after_damage() {
    let scratch = scratch();
    let dir = session(scratch.path(), "s");
    let path = scratch.path().join("a.jsonl");
    let text: String = (0..200_000).map(|n| format!("{{\"line\":{n}}}\n")).collect();
    fs::write(&path, &text).unwrap();
    let keep = || dir.keep_file(&SessionFile::on_disk("a.jsonl", &path), scratch.path()).unwrap();
    keep();
    let sealed = dir.path().join("a.jsonl.zst");
    let mut damaged = fs::read(&sealed).unwrap();
    damaged[2000] ^= 1;
    damaged.push(b'x');
    fs::write(&sealed, &damaged).unwrap();
    assert!(!dir.verify().unwrap().damage.is_empty());
    assert_eq!(keep().generation, 1);
    assert_eq!(fs::read(&sealed).unwrap(), damaged);
    // What it held is kept anew: nothing is missing any more.
    let report = dir.verify().unwrap();
    assert_eq!((report.damage, report.replaced), (vec![], vec![sealed]));
    assert_eq!(dir.find_faults().unwrap(), []);
}

#[test]
fn a_damaged_record_is_left_as_it_is_and_recording_goes_on() {
    let scratch = scratch();
    let dir = session(scratch.path(), "s");
    let first = recorder(&dir);
    for n in 0..4000 {
        let line = format!("{{\"role\":\"user\",\"content\":\"{n} {}\"}}", "x".repeat(500));
        first.append_line(line.as_bytes()).unwrap();
    }
    first.close(&completed()).unwrap();
    let sealed = dir.path().join("record.jsonl.zst");
    let mut damaged = fs::read(&sealed).unwrap();
    damaged[5000] ^= 1;
    damaged.push(b'x');
    fs::write(&sealed, &damaged).unwrap();
    let second = recorder(&dir);
    record(&second, "after");
    second.close(&completed()).unwrap();
    assert_eq!(fs::read(&sealed).unwrap(), damaged);
    assert_eq!(contents(&dir).last().map(String::as_str), Some("after"));
    assert!(!dir.verify().unwrap().damage.is_empty());
}

#[test]
fn distinguishes_heads_without_a_log() {
    let scratch = scratch();
    let (_, _) = long_log(scratch.path());
    let dir = session(scratch.path(), "whole");
    let head = dir.path().join("record.jsonl.live.0.head");
    let kept = fs::read(&head).unwrap();
    recorder(&dir).close(&completed()).unwrap();
    fs::write(&head, &kept).unwrap();
    assert_eq!(dir.verify().unwrap().damage, [], "the log was sealed before its head was removed");
    let other = session(scratch.path(), "other");
    record(&recorder(&other), "one");
    fs::remove_file(live_log(&other)).unwrap();
    assert_eq!(other.verify().unwrap().damage[0].reason, "the file is missing");
}

#[test]
fn a_session_is_recorded_or_imported_never_both() {
    let scratch = scratch();
    let path = scratch.path().join("a.jsonl");
    fs::write(&path, "one\n").unwrap();
    let keep =
        |dir: &SessionDir| dir.keep_file(&SessionFile::on_disk("a.jsonl", &path), scratch.path());
    let imported = session(scratch.path(), "imported");
    keep(&imported).unwrap();
    assert!(
        Recorder::open(imported, &RecordingOpening::default(), Clock::system(), RECORD_DECODER)
            .is_err()
    );
    let recorded = session(scratch.path(), "recorded");
    record(&recorder(&recorded), "one");
    assert!(keep(&recorded).is_err());
}

#[test]
fn every_flipped_bit_is_found() {
    let scratch = scratch();
    let vault = Vault::new(scratch.path().join("vault"));
    let files = varied_vault(&vault, scratch.path());
    assert_eq!(vault.verify(&mut |_| {}).unwrap().damage, []);
    let mut state = 0x5eed_0002_u64;
    for round in 0..1000 {
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize
        };
        let path = &files[random() % files.len()];
        let original = fs::read(path).unwrap();
        let (byte, bit) = (random() % original.len(), random() % 8);
        let mut damaged = original.clone();
        damaged[byte] ^= 1 << bit;
        fs::write(path, damaged).unwrap();
        let damage = vault.verify(&mut |_| {}).unwrap().damage;
        let named = damage.iter().any(|damage| &damage.path == path);
        assert!(named, "round {round}: bit {bit} of byte {byte} of {}: {damage:?}", path.display());
        fs::write(path, original).unwrap();
    }
}

#[test]
fn every_bit_of_a_file_that_moved_counts() {
    let scratch = scratch();
    let kept = session(&scratch.path().join("vault"), "kept");
    for place in ["old", "new"] {
        let path = scratch.path().join(place);
        fs::write(&path, "one line\n").unwrap();
        let source = SessionFile::on_disk("source.jsonl", &path);
        kept.keep_file(&source, &path).unwrap();
    }
    assert_eq!(kept.verify().unwrap().damage, []);
    assert_eq!(kept.kept_bundle().unwrap().root, scratch.path().join("new"));
    let path = kept.path().join("source.jsonl.zst");
    let original = fs::read(&path).unwrap();
    for (byte, bit) in (0..original.len()).flat_map(|byte| (0..8).map(move |bit| (byte, bit))) {
        let mut damaged = original.clone();
        damaged[byte] ^= 1 << bit;
        fs::write(&path, damaged).unwrap();
        assert!(!kept.verify().unwrap().damage.is_empty(), "bit {bit} of byte {byte}");
    }
}

#[test]
fn missing_and_added_bytes_are_found() {
    let scratch = scratch();
    let vault = Vault::new(scratch.path().join("vault"));
    for path in varied_vault(&vault, scratch.path()) {
        let original = fs::read(&path).unwrap();
        let half = original.len() / 2;
        let mut changes = vec![
            original[..original.len() - 1].to_vec(),
            original[..half].to_vec(),
            original[1..].to_vec(),
            [&original[..half], &original[half + 1..]].concat(),
        ];
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".head") {
            // It may lag behind, and be cut short by a crash.
            changes.drain(..2);
        }
        for (index, changed) in changes.iter().enumerate() {
            fs::write(&path, changed).unwrap();
            let damage = vault.verify(&mut |_| {}).unwrap().damage;
            assert!(!damage.is_empty(), "change {index} of {}", path.display());
        }
        // Bytes after the end were never acknowledged.
        fs::write(&path, [original.as_slice(), b"x"].concat()).unwrap();
        let report = vault.verify(&mut |_| {}).unwrap();
        assert_eq!((report.damage, report.interrupted), (vec![], vec![path.clone()]));
        fs::write(&path, &original).unwrap();
    }
    fs::write(vault.root().join("test/stray"), "x").unwrap();
    assert_eq!(vault.verify(&mut |_| {}).unwrap().damage.len(), 1);
}

#[test]
fn a_log_cut_at_the_end_of_a_line_is_found() {
    let scratch = scratch();
    let (log, _) = long_log(scratch.path());
    let dir = session(scratch.path(), "whole");
    let line = memchr::memchr_iter(b'\n', &log).nth(20).unwrap() + 1;
    fs::write(live_log(&dir), &log[..line]).unwrap();
    let damage = dir.verify().unwrap().damage;
    assert_eq!((damage.len(), damage[0].offset), (1, line as u64), "{damage:?}");
}

/// A vault with a live log, a sealed one, and a kept file of several frames; gives its files.
fn varied_vault(vault: &Vault, scratch: &Path) -> Vec<PathBuf> {
    let live = session(vault.root(), "live");
    let sealed = session(vault.root(), "sealed");
    let recorders = [recorder(&live), recorder(&sealed)];
    for n in 0..20 {
        recorders.iter().for_each(|recorder| record(recorder, &format!("entry {n}")));
    }
    let [_, recorder_of_sealed] = recorders;
    recorder_of_sealed.close(&completed()).unwrap();
    let kept = session(vault.root(), "kept");
    let source = scratch.join("source.jsonl");
    for lines in [10, 500, 40_000] {
        let line =
            |n: u32| format!("{{\"line\":{n},\"text\":\"{}\"}}\n", "ab".repeat(n as usize % 13));
        fs::write(&source, (0..lines).map(line).collect::<String>()).unwrap();
        kept.keep_file(&SessionFile::on_disk("source.jsonl", &source), scratch).unwrap();
    }
    let mut files = Vec::new();
    for dir in [&live, &sealed, &kept] {
        files.extend(fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()));
    }
    files.extend(["journal.jsonl", "journal.jsonl.head"].map(|name| vault.root().join(name)));
    files.retain(|path| fs::metadata(path).unwrap().len() > 0);
    files.sort();
    assert_eq!(files.len(), 6, "a live log and the journal with their heads, two sealed files");
    files
}

/// Changes the root path in the header of a kept file.
fn misplace(kept: &Path, from: &str, to: &str) {
    let bytes = fs::read(kept).unwrap();
    assert_eq!(from.len(), to.len());
    let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
    let changed = [&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]].concat();
    fs::write(kept, changed).unwrap();
}

#[test]
fn a_journal_that_lost_its_last_newline_still_lists_what_follows() {
    let scratch = scratch();
    let vault = scratch.path().join("vault");
    let dir = session(&vault, "s");
    let first = recorder(&dir);
    record(&first, "before");
    first.close(&completed()).unwrap();
    let journal = vault.join("journal.jsonl");
    let mut bytes = fs::read(&journal).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&journal, bytes).unwrap();
    // A process that starts after the damage knows the journal only from disk.
    let dir = session(&vault, "s");
    let faults = dir.find_faults().unwrap();
    assert!(faults.iter().any(|fault| fault.path == journal), "{faults:?}");
    let second = recorder(&dir);
    record(&second, "after");
    second.close(&completed()).unwrap();
    assert_eq!(contents(&session(&vault, "s")), ["before", "after"]);
    assert!(!Vault::new(&vault).verify(&mut |_| {}).unwrap().damage.is_empty());
}

#[test]
fn a_damaged_trailer_is_reported_by_readers() {
    let scratch = scratch();
    let dir = session(&scratch.path().join("vault"), "s");
    let path = scratch.path().join("a.jsonl");
    fs::write(&path, "one\n").unwrap();
    dir.keep_file(&SessionFile::on_disk("a.jsonl", &path), scratch.path()).unwrap();
    assert_eq!(dir.find_faults().unwrap(), []);
    misplace(&dir.path().join("a.jsonl.zst"), "\"frames\"", "\"frimes\"");
    let faults = dir.find_faults().unwrap();
    assert!(faults[0].reason.contains("its trailer is damaged"), "{faults:?}");
    assert_eq!(dir.verify().unwrap().damage.len(), 1);
}

#[test]
fn a_header_that_was_changed_decides_nothing() {
    let scratch = scratch();
    for text in ["one\n", ""] {
        let dir = session(&scratch.path().join("vault"), &format!("s{}", text.len()));
        let path = scratch.path().join("a.jsonl");
        fs::write(&path, text).unwrap();
        let keep =
            || dir.keep_file(&SessionFile::on_disk("a.jsonl", &path), scratch.path()).unwrap();
        keep();
        misplace(&dir.path().join("a.jsonl.zst"), "a.jsonl\",\"root", "b.jsonl\",\"root");
        fs::remove_file(&path).unwrap();
        let error = dir.restore(None, true, &[]).unwrap_err();
        let source = std::error::Error::source(&error).map(ToString::to_string);
        assert!(source.is_some_and(|it| it.contains("was changed")), "{error}");
        assert!(dir.original_files(&[]).is_err());
        assert!(!scratch.path().join("b.jsonl").exists());
        // What comes next does not go where it does not belong.
        fs::write(&path, format!("{text}two\n")).unwrap();
        assert_eq!((keep().generation, keep().generation), (1, 1));
        fs::remove_file(&path).unwrap();
        dir.restore(None, false, &[]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{text}two\n"));
    }
}

#[test]
fn a_file_without_its_end_is_not_put_back_in_part() {
    let scratch = scratch();
    let dir = session(&scratch.path().join("vault"), "s");
    let path = scratch.path().join("a.jsonl");
    fs::write(&path, "one\n").unwrap();
    dir.keep_file(&SessionFile::on_disk("a.jsonl", &path), scratch.path()).unwrap();
    let kept = dir.path().join("a.jsonl.zst");
    misplace(&kept, "a.jsonl\",\"root", "b.jsonl\",\"root");
    let bytes = fs::read(&kept).unwrap();
    fs::write(&kept, &bytes[..bytes.len() - 1]).unwrap();
    assert!(dir.restore(None, true, &[]).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
}

#[test]
fn lines_that_take_the_place_of_a_torn_end_of_the_journal_are_seen() {
    let scratch = scratch();
    let (vault, copy) = (scratch.path().join("vault"), scratch.path().join("copy"));
    let dir = session(&vault, "s");
    let first = recorder(&dir);
    record(&first, "a");
    first.close(&completed()).unwrap();
    let second = recorder(&dir);
    record(&second, "b");
    copy_folder(&vault, &copy);
    second.close(&completed()).unwrap();
    // The power fails while the second log is being sealed: the journal has its new size, but not its new lines.
    let size = fs::metadata(vault.join("journal.jsonl")).unwrap().len();
    let journal = fs::File::options().write(true).open(copy.join("journal.jsonl")).unwrap();
    journal.set_len(size).unwrap();

    let dir = session(&copy, "s");
    assert_eq!(contents(&dir), ["a", "b"]);
    let third = recorder(&dir);
    record(&third, "c");
    third.close(&completed()).unwrap();
    assert_eq!(contents(&dir), ["a", "b", "c"]);
    assert_eq!(contents(&session(&copy, "s")), ["a", "b", "c"]);
    assert!(Vault::new(&copy).verify(&mut |_| ()).unwrap().damage.is_empty());
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
