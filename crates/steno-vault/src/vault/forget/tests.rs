use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::SessionFile;
use crate::vault::frame;
use crate::vault::verify::VerifyReport;

struct Bench {
    temp: tempfile::TempDir,
    vault: Vault,
}

impl Bench {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let vault = Vault::new(temp.path().join("store/vault"));
        Self { temp, vault }
    }

    fn session(&self, id: &str) -> SessionDir {
        self.vault.session_dir(&"a".parse().unwrap(), &id.parse().unwrap())
    }

    /// Keeps a file of the session.
    fn keep(&self, id: &str, text: &str) {
        let path = self.temp.path().join(format!("{id}.jsonl"));
        fs::write(&path, text).unwrap();
        let file = SessionFile::on_disk("log.jsonl", &path);
        self.session(id).keep_file(&file, self.temp.path()).unwrap();
    }

    fn read(&self, id: &str) -> String {
        let bundle = self.session(id).kept_bundle().unwrap();
        String::from_utf8(bundle.files[0].read_bytes().unwrap()).unwrap()
    }

    fn verify(&self) -> VerifyReport {
        self.vault.verify(&mut |_| ()).unwrap()
    }

    fn finish(&self) {
        for tombstone in self.vault.unfinished_removals().unwrap() {
            self.vault.remove_forgotten(&tombstone).unwrap();
            self.vault.complete_removal(&tombstone, request().at).unwrap();
        }
    }
}

fn request() -> ForgetRequest {
    let at = "2026-01-05T09:00:00Z".parse().unwrap();
    ForgetRequest { at, by: "me".to_owned(), reason: Some("tests".to_owned()) }
}

/// Decides to mask a word in a session.
fn decide(bench: &Bench, id: &str, word: &str) -> Tombstone {
    let dir = bench.session(id);
    let find = |unit: TextUnit<'_>| {
        memchr::memmem::find_iter(unit.bytes, word).map(|at| at..at + word.len()).collect()
    };
    let plan = dir.plan_masks(&find).unwrap();
    let tombstone = dir.tombstone_for_parts(&request(), &plan, Vec::new()).unwrap().unwrap();
    bench.vault.add_tombstones(std::slice::from_ref(&tombstone)).unwrap();
    tombstone
}

const LINES: &str = "{\"t\":\"the secret one\"}\n{\"t\":\"two\"}\n{\"t\":\"a secret three\"}\n";

#[test]
fn a_masked_word_does_not_come_back_and_the_file_still_grows() {
    let bench = Bench::new();
    bench.keep("s", LINES);
    decide(&bench, "s", "secret");
    bench.finish();
    let masked = LINES.replace("secret", "******");
    assert_eq!(bench.read("s"), masked);
    bench.keep("s", LINES);
    assert_eq!(bench.read("s"), masked);
    bench.keep("s", &format!("{LINES}more\n"));
    assert_eq!(bench.read("s"), format!("{masked}more\n"));
    assert_eq!(bench.session("s").sealed_files().unwrap().len(), 1, "no new generation");
    // The agent rewrites the file.
    bench.keep("s", "{\"t\":\"a secret three\"}\nmore\n");
    assert_eq!(bench.read("s"), "{\"t\":\"a ****** three\"}\nmore\n");
    // Another session has a copy.
    bench.keep("copy", LINES);
    assert_eq!(bench.read("copy"), masked);
    let report = bench.verify();
    assert_eq!(report.damage, []);
    assert_eq!(report.forgotten.len(), 1);
}

#[test]
fn a_forgotten_session_is_never_kept_again() {
    let bench = Bench::new();
    bench.keep("s", LINES);
    bench.keep("other", LINES);
    let head = bench.vault.journal_head().unwrap().unwrap();
    let tombstone = bench.session("s").tombstone_for_all(&request()).unwrap();
    bench.vault.add_tombstones(&[tombstone]).unwrap();
    let report = bench.verify();
    assert_eq!((report.damage.len(), report.interrupted.len()), (0, 1), "it is not yet removed");
    bench.finish();
    assert!(!bench.session("s").exists() && bench.session("other").exists());
    let path = bench.temp.path().join("s.jsonl");
    let file = SessionFile::on_disk("log.jsonl", &path);
    let error = bench.session("s").keep_file(&file, bench.temp.path()).unwrap_err();
    assert!(ForgottenSessionError::is_cause_of(&error), "{error}");
    let mut report = bench.verify();
    bench.vault.verify_since(head, &mut report).unwrap();
    assert_eq!(report.damage, []);
    assert_eq!(bench.vault.missing_sessions().unwrap(), []);
}

/// Copies a folder.
fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[test]
fn a_removal_that_was_interrupted_after_any_step_is_completed() {
    let bench = Bench::new();
    bench.keep("s", LINES);
    let store = bench.temp.path().join("store");
    let undecided = bench.temp.path().join("undecided");
    copy_folder(&store, &undecided);
    let tombstone = decide(&bench, "s", "secret");
    let file = bench.session("s").sealed_path("log.jsonl", 0);
    let plain = fs::read(&file).unwrap();
    bench.vault.remove_forgotten(&tombstone).unwrap();
    let masked = fs::read(&file).unwrap();
    let new = file.with_extension("zst.new");
    // Listed but not renamed, written but not listed, half written, and renamed.
    let states: [(&[u8], Option<&[u8]>); 4] = [
        (&plain, Some(&masked)),
        (&plain, None),
        (&plain, Some(&masked[..masked.len() / 2])),
        (&masked, None),
    ];
    for (old, replacement) in states {
        fs::write(&file, old).unwrap();
        replacement.into_iter().for_each(|bytes| fs::write(&new, bytes).unwrap());
        assert_eq!(bench.vault.unfinished_removals().unwrap().len(), 1);
        bench.vault.remove_forgotten(&tombstone).unwrap();
        assert_eq!(bench.read("s"), LINES.replace("secret", "******"));
        assert!(!new.exists());
    }
    bench.finish();
    assert_eq!(bench.verify().damage, []);
    let before = Vault::new(undecided.join("vault"));
    assert_eq!(before.verify(&mut |_| ()).unwrap().damage, []);
}

#[test]
fn a_file_of_version_1_is_rewritten_and_states_its_old_end() {
    let bench = Bench::new();
    bench.keep("s", LINES);
    let path = bench.session("s").sealed_path("log.jsonl", 0);
    let header = bench.session("s").open_sealed("log.jsonl", 0).unwrap().header().clone();
    let (bytes, chain) = frame::encode_version_1(&header, LINES.as_bytes());
    fs::write(&path, bytes).unwrap();
    let end = (LINES.len() as u64, chain);
    fs::remove_file(bench.vault.root().join("journal.jsonl")).unwrap();
    fs::remove_file(bench.vault.root().join("journal.jsonl.head")).unwrap();
    let vault = Vault::new(bench.vault.root());
    let bench = Bench { vault, ..bench };
    assert_eq!(bench.session("s").open_sealed("log.jsonl", 0).unwrap().version(), 1);
    decide(&bench, "s", "secret");
    bench.finish();
    let sealed = bench.session("s").open_sealed("log.jsonl", 0).unwrap();
    assert_eq!((sealed.version(), sealed.header().upgraded), (frame::FORMAT_VERSION, Some(end)));
    assert_eq!(bench.read("s"), LINES.replace("secret", "******"));
    assert_eq!(bench.verify().damage, []);
}

/// The files that belong to forgetting: the masked file, the tombstones and their head.
fn forgotten_files(bench: &Bench) -> [PathBuf; 3] {
    let root = bench.vault.root();
    let sealed = bench.session("s").sealed_path("log.jsonl", 0);
    [sealed, root.join("forgotten.jsonl"), root.join("forgotten.jsonl.head")]
}

#[test]
fn flipped_bits_of_masked_files_and_tombstones_are_found() {
    let bench = Bench::new();
    bench.keep("s", LINES);
    decide(&bench, "s", "secret");
    bench.finish();
    for path in forgotten_files(&bench) {
        let whole = fs::read(&path).unwrap();
        for bit in (0..whole.len() * 8).step_by(7) {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &flipped).unwrap();
            let report = Vault::new(bench.vault.root()).verify(&mut |_| ()).unwrap();
            assert!(!report.damage.is_empty(), "{} bit {bit}", path.display());
        }
        fs::write(&path, &whole).unwrap();
    }
    assert_eq!(bench.verify().damage, []);
}

#[test]
fn masks_without_a_tombstone_are_found() {
    let bench = Bench::new();
    bench.keep("s", LINES);
    let (listed, path) = (bench.session("s"), bench.session("s").sealed_path("log.jsonl", 0));
    let edit = mask_edit(10, 6, "00000000");
    let mut commit = listed.begin_commit();
    commit.lock_session(&listed).unwrap();
    let sealed = listed.open_sealed("log.jsonl", 0).unwrap();
    commit.add_file(&listed, sealed.write_edited(&[edit]).unwrap());
    commit.finish().unwrap();
    let report = bench.verify();
    assert_eq!(report.damage.len(), 1);
    assert_eq!(report.damage[0].path, path);
}

#[test]
fn a_damaged_journal_does_not_make_a_forgotten_session_look_missing() {
    let bench = Bench::new();
    bench.keep("s", LINES);
    let tombstone = bench.session("s").tombstone_for_all(&request()).unwrap();
    bench.vault.add_tombstones(&[tombstone]).unwrap();
    bench.finish();
    let path = bench.vault.root().join("journal.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"state\":\"removed\"", "\"state\":\"removee\"")).unwrap();
    let vault = Vault::new(bench.vault.root());
    assert_eq!(vault.missing_sessions().unwrap(), []);
    assert!(!vault.verify(&mut |_| ()).unwrap().damage.is_empty(), "the journal is damaged");
}

#[test]
fn a_head_from_before_proves_that_nothing_else_changed() {
    let bench = Bench::new();
    bench.keep("s", LINES);
    let head = bench.vault.journal_head().unwrap().unwrap();
    decide(&bench, "s", "secret");
    bench.finish();
    bench.keep("s", &format!("{LINES}more\n"));
    let mut report = bench.verify();
    bench.vault.verify_since(head, &mut report).unwrap();
    assert_eq!(report.damage, []);
}
