//! Encrypted files, their names and keys, and conversions.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::conversion::{decrypt_store, encrypt_store, finish_conversion};
use super::key_change::{StoreKeys, change_master_key};
use super::*;
use crate::key_wrapping::UnlockSecret;

fn new_file(dir: &Path) -> (PathBuf, StoreFile) {
    let path = dir.join("file");
    let mut options = File::options();
    let file = options.read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    (path, StoreFile::create_encrypted(file, &[1; 32], "vault/a/s/file").unwrap())
}

fn reopen(path: &Path) -> std::io::Result<StoreFile> {
    let file = File::options().read(true).write(true).open(path).unwrap();
    StoreFile::open_encrypted(file, &[1; 32], "vault/a/s/file")
}

fn content(file: &mut StoreFile) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn writes_cuts_and_reads_are_those_of_a_plain_file(
        steps in proptest::collection::vec((0_u8..4, 0_usize..3000), 1..30)
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (path, mut file) = new_file(dir.path());
        let mut expected: Vec<u8> = Vec::new();
        for (number, (kind, size)) in steps.into_iter().enumerate() {
            match kind {
                0 | 1 => {
                    let bytes = vec![number as u8; size];
                    file.seek(SeekFrom::End(0)).unwrap();
                    file.write_all(&bytes).unwrap();
                    expected.extend(bytes);
                }
                2 => {
                    let length = size.min(expected.len());
                    file.set_len(length as u64).unwrap();
                    expected.truncate(length);
                }
                _ => {
                    let at = size.min(expected.len());
                    file.seek(SeekFrom::Start(at as u64)).unwrap();
                    file.write_all(b"over").unwrap();
                    expected.truncate(at);
                    expected.extend(b"over");
                }
            }
            prop_assert_eq!(file.length().unwrap(), expected.len() as u64);
        }
        prop_assert_eq!(&content(&mut file), &expected);
        prop_assert_eq!(&content(&mut reopen(&path).unwrap()), &expected);
        let raw = File::open(&path).unwrap();
        let stated = store_file::stated_length(&raw).unwrap();
        prop_assert_eq!(stated, Some(expected.len() as u64));
    }
}

#[test]
fn every_flipped_bit_changes_only_its_chunk() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mut file) = new_file(dir.path());
    let lines: Vec<String> = (0..3).map(|line| format!("line {line} of the log\n")).collect();
    lines.iter().for_each(|line| file.write_all(line.as_bytes()).unwrap());
    let whole = fs::read(&path).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut changed = whole.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &changed).unwrap();
        let Ok(mut file) = reopen(&path) else { continue };
        let read = content(&mut file);
        assert_eq!(read.len(), lines.concat().len(), "bit {bit}");
        let intact = lines.iter().zip(read.split_inclusive(|byte| *byte == b'\n'));
        let intact = intact.filter(|(line, read)| line.as_bytes() == *read).count();
        assert_eq!(intact, lines.len() - 1, "bit {bit}");
        let mut strict = reopen(&path).unwrap().failing_on_damage();
        assert!(strict.read_to_end(&mut Vec::new()).is_err(), "bit {bit}");
    }
}

#[test]
fn a_torn_write_is_no_part_of_the_file_and_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mut file) = new_file(dir.path());
    file.write_all(b"first\n").unwrap();
    let size = fs::metadata(&path).unwrap().len() as usize;
    file.write_all(b"second line\n").unwrap();
    let whole = fs::read(&path).unwrap();
    for cut in size..whole.len() {
        for torn in [whole[..cut].to_vec(), [&whole[..cut], &vec![0; whole.len() - cut]].concat()] {
            fs::write(&path, &torn).unwrap();
            let mut file = reopen(&path).unwrap();
            let read = content(&mut file);
            let rest = read.strip_prefix(b"first\n").expect("what was complete stays");
            let is_unreadable =
                |bytes: &[u8]| bytes.iter().all(|byte| [0, 0xff, b'\n'].contains(byte));
            // The last bytes of a chunk are zeros anyway.
            assert!(is_unreadable(rest) || rest == b"second line\n", "{cut}: {rest:?}");
            file.set_len(6).unwrap();
            file.seek(SeekFrom::End(0)).unwrap();
            file.write_all(b"third\n").unwrap();
            assert_eq!(content(&mut reopen(&path).unwrap()), b"first\nthird\n");
        }
    }
}

#[test]
fn sectors_that_a_power_failure_left_unwritten_are_read_as_zeros() {
    let lines = [vec![b'a'; 300], vec![b'b'; 400]];
    for before in 1..=512 {
        let dir = tempfile::tempdir().unwrap();
        let (path, mut file) = new_file(dir.path());
        file.write_all(&vec![b'-'; before]).unwrap();
        let begin = fs::metadata(&path).unwrap().len() as usize;
        lines.iter().for_each(|line| file.write_all(line).unwrap());
        let whole = fs::read(&path).unwrap();
        let sectors: Vec<usize> = (begin / 512..whole.len().div_ceil(512)).collect();
        for unwritten in 1..1 << sectors.len() {
            let mut torn = whole.clone();
            for (bit, sector) in sectors.iter().enumerate() {
                if unwritten & 1 << bit != 0 {
                    torn[begin.max(sector * 512)..whole.len().min(sector * 512 + 512)].fill(0);
                }
            }
            fs::write(&path, &torn).unwrap();
            let read = content(&mut reopen(&path).unwrap());
            let rest = read.get(before..).expect("what was complete stays");
            let ends = [0, lines[0].len(), lines[0].len() + lines[1].len()];
            assert!(ends.contains(&rest.len()), "{before} {unwritten:b}: {}", rest.len());
            let (first, second) = rest.split_at(rest.len().min(lines[0].len()));
            for (line, read) in lines.iter().zip([first, second]) {
                let is_zero = read.iter().all(|byte| *byte == 0);
                assert!(is_zero || line.starts_with(read), "{before} {unwritten:b}: {read:?}");
            }
        }
    }
}

#[test]
fn a_file_opens_only_with_its_key_and_path() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mut file) = new_file(dir.path());
    file.write_all(b"x").unwrap();
    let open = |key: u8, name: &str| {
        StoreFile::open_encrypted(File::open(&path).unwrap(), &[key; 32], name).is_ok()
    };
    assert!(open(1, "vault/a/s/file") && open(1, "vault/a/s/file.new"));
    assert!(!open(2, "vault/a/s/file") && !open(1, "vault/a/s/other"));
}

#[test]
fn keys_are_wrapped_for_recipients_and_passphrases() {
    let master = MasterKey::generate();
    let [mine, other] = [AgeIdentity::generate(), AgeIdentity::generate()];
    let slot = KeySlot::for_recipient(&master, &mine.recipient()).unwrap();
    let mut file = KeyFile::new(slot);
    file.add_slot(KeySlot::for_passphrase(&master, "open sesame").unwrap()).unwrap();
    let unwrap = |secret| file.unwrap_key(&secret);
    assert_eq!(
        unwrap(UnlockSecret::Identities(vec![other.clone(), mine.clone()])).unwrap(),
        master
    );
    assert_eq!(unwrap(UnlockSecret::Passphrase("open sesame".into())).unwrap(), master);
    assert!(unwrap(UnlockSecret::Identities(vec![other])).is_err());
    assert!(unwrap(UnlockSecret::Passphrase("wrong".into())).is_err());
    let text = format!("# created\n{}\n", mine.to_secret_text());
    assert_eq!(AgeIdentity::parse_file(&text).unwrap(), std::slice::from_ref(&mine));
    let recipient = mine.recipient().to_string();
    assert_eq!(recipient.parse::<AgeRecipient>().unwrap(), mine.recipient());
    file.remove_slot("passphrase").unwrap();
    assert!(matches!(file.remove_slot(&recipient), Err(KeyFileError::LastKey)));
}

/// The pair that the documentation of age uses.
#[test]
fn the_notation_of_keys_is_that_of_age() {
    let identity = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
    let identity = AgeIdentity::parse_file(identity).unwrap().remove(0);
    let recipient = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";
    assert_eq!(identity.recipient().to_string(), recipient);
}

fn plain_store() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let session = dir.path().join("vault/agent/secret-project");
    fs::create_dir_all(&session).unwrap();
    fs::write(session.join("long.zst"), vec![7; 700_000]).unwrap();
    fs::write(session.join(format!("{}.zst", "n".repeat(190))), "named").unwrap();
    fs::write(session.join(".lock"), "").unwrap();
    fs::write(session.join("empty"), "").unwrap();
    fs::write(dir.path().join("vault/journal.jsonl"), "{\"line\":\"secret-text\"}\n").unwrap();
    fs::write(dir.path().join("seen.json"), "{\"secret-path\":1}").unwrap();
    fs::write(dir.path().join("index.db"), "secret-index").unwrap();
    fs::write(dir.path().join("config.toml"), "").unwrap();
    dir
}

fn all_files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for item in fs::read_dir(dir).unwrap() {
        let path = item.unwrap().path();
        match path.is_dir() {
            true => found.extend(all_files(&path)),
            false => found.push((path.clone(), fs::read(&path).unwrap())),
        }
    }
    found.sort();
    found
}

#[test]
fn a_store_is_encrypted_read_and_decrypted() {
    let dir = plain_store();
    let store = dir.path();
    let is_content = |path: &Path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        !name.contains("lock") && name != "index.db"
    };
    let before = all_files(store);
    let master = MasterKey::generate();
    let slot = KeySlot::for_passphrase(&master, "p").unwrap();
    encrypt_store(store, KeyFile::new(slot), &master, &mut |_| ()).unwrap();
    for (path, bytes) in all_files(store) {
        let name = path.strip_prefix(store).unwrap().to_string_lossy().into_owned();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!name.contains("secret") && !name.contains("agent"), "{name}");
        assert!(!text.contains("secret") && !text.contains("agent"), "{name}");
    }
    let log = store.join("vault/journal.jsonl");
    assert!(store_fs::append_lines(&log, b"x\n").is_err());
    unlock_store(store, master.clone(), &KeyFile::read(store).unwrap().unwrap());
    assert_eq!(store_fs::read(&log).unwrap(), b"{\"line\":\"secret-text\"}\n");
    let session = store.join("vault/agent/secret-project");
    let mut names: Vec<_> =
        store_fs::read_dir(&session).unwrap().map(|entry| entry.unwrap().name).collect();
    names.sort();
    assert_eq!(names, ["empty", "long.zst", &format!("{}.zst", "n".repeat(190))]);
    assert_eq!(store_fs::file_length(&session.join("long.zst")).unwrap(), 700_000);
    assert_eq!(store_fs::file_length(&session.join("empty")).unwrap(), 0);
    lock_store(store);
    decrypt_store(store, &master, &mut |_| ()).unwrap();
    let content = |files: Vec<(PathBuf, Vec<u8>)>| -> Vec<_> {
        files.into_iter().filter(|(path, _)| is_content(path)).collect()
    };
    assert_eq!(content(all_files(store)), content(before));
    assert!(!is_encrypted(store) && !store.join("encrypted").exists());
}

#[test]
fn a_removed_session_key_makes_the_session_unreadable() {
    let dir = plain_store();
    let master = MasterKey::generate();
    let slot = KeySlot::for_passphrase(&master, "p").unwrap();
    encrypt_store(dir.path(), KeyFile::new(slot), &master, &mut |_| ()).unwrap();
    unlock_store(dir.path(), master.clone(), &KeyFile::read(dir.path()).unwrap().unwrap());
    let session = dir.path().join("vault/agent/secret-project");
    assert_eq!(store_fs::read(&session.join("empty")).unwrap(), b"");
    store_fs::remove_session_key(&session).unwrap();
    assert!(store_fs::read(&session.join("long.zst")).is_err());
    lock_store(dir.path());
}

#[test]
fn a_changed_session_key_is_an_error_and_no_other_key() {
    let dir = plain_store();
    let store = dir.path();
    let master = MasterKey::generate();
    let keys = KeyFile::new(KeySlot::for_passphrase(&master, "p").unwrap());
    encrypt_store(store, keys.clone(), &master, &mut |_| ()).unwrap();
    unlock_store(store, master.clone(), &keys);
    let session = store.join("vault/agent/secret-project");
    let key = store_fs::session_key_path(&session).unwrap();
    lock_store(store);
    let whole = fs::read(&key).unwrap();
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&key, &changed).unwrap();
        unlock_store(store, master.clone(), &keys);
        assert!(store_fs::read(&session.join("long.zst")).is_err(), "byte {at}");
        let new = store_fs::write_atomic(&session.join("new"), b"text");
        assert!(new.is_err(), "byte {at}");
        lock_store(store);
    }
}

#[test]
fn an_interrupted_conversion_leaves_one_valid_form() {
    let dir = plain_store();
    let store = dir.path();
    let master = MasterKey::generate();
    let keys = KeyFile::new(KeySlot::for_passphrase(&master, "p").unwrap());
    let files = 4;
    for stop in 0..files {
        let mut count = 0;
        let mut killed = |_: &Path| {
            count += 1;
            if count > stop {
                std::panic::panic_any("killed");
            }
        };
        let run = std::panic::AssertUnwindSafe(|| {
            encrypt_store(store, keys.clone(), &master, &mut killed)
        });
        assert!(std::panic::catch_unwind(run).is_err());
        finish_conversion(store).unwrap();
        assert!(!is_encrypted(store));
        assert!(store.join("vault/journal.jsonl").exists());
    }
    encrypt_store(store, keys.clone(), &master, &mut |_| ()).unwrap();
    // Killed after the rename: plain files are still there.
    let unfinished = KeyFile { has_plain_files: true, ..keys };
    unfinished.write(store).unwrap();
    fs::create_dir(store.join("vault")).unwrap();
    finish_conversion(store).unwrap();
    assert!(is_encrypted(store) && !store.join("vault").exists());
    let mut killed = |_: &Path| std::panic::panic_any("killed");
    let run = std::panic::AssertUnwindSafe(|| decrypt_store(store, &master, &mut killed));
    assert!(std::panic::catch_unwind(run).is_err());
    finish_conversion(store).unwrap();
    assert!(is_encrypted(store) && !store.join("vault").exists());
    decrypt_store(store, &master, &mut |_| ()).unwrap();
    assert!(store.join("vault/journal.jsonl").exists());
}

/// Changes the master key of a store. `killed` stops it at a file.
fn change_key(store: &Path, old: &MasterKey, killed: &mut dyn FnMut(&Path)) -> Option<MasterKey> {
    let file = KeyFile::read(store).unwrap().unwrap();
    let master = MasterKey::generate();
    let keys = file.next_generation(vec![KeySlot::for_passphrase(&master, "p").unwrap()]);
    let (from, to) =
        (StoreKeys { master: old, file: &file }, StoreKeys { master: &master, file: &keys });
    let run = std::panic::AssertUnwindSafe(|| change_master_key(store, from, to, killed).unwrap());
    std::panic::catch_unwind(run).ok().map(|()| master)
}

/// What the store has, and the inodes of the files of its session.
fn read_store(store: &Path, master: &MasterKey) -> Vec<(String, Vec<u8>)> {
    unlock_store(store, master.clone(), &KeyFile::read(store).unwrap().unwrap());
    let session = store.join("vault/agent/secret-project");
    let mut found =
        vec![("journal".into(), store_fs::read(&store.join("vault/journal.jsonl")).unwrap())];
    for entry in store_fs::read_dir(&session).unwrap() {
        let path = session.join(entry.unwrap().name);
        found.push((path.display().to_string(), store_fs::read(&path).unwrap()));
    }
    lock_store(store);
    found.sort();
    found
}

#[test]
fn a_new_master_key_opens_the_same_files() {
    let dir = plain_store();
    let store = dir.path();
    let master = MasterKey::generate();
    let keys = KeyFile::new(KeySlot::for_passphrase(&master, "p").unwrap());
    encrypt_store(store, keys.clone(), &master, &mut |_| ()).unwrap();
    let before = read_store(store, &master);
    let sizes = |folder: &str| -> Vec<_> {
        let mut sizes: Vec<_> =
            all_files(&store.join(folder)).iter().map(|(_, bytes)| bytes.clone()).collect();
        sizes.sort();
        sizes
    };
    let stored = sizes("encrypted");
    let second = change_key(store, &master, &mut |_| ()).unwrap();
    assert_eq!(read_store(store, &second), before);
    assert!(!store.join("encrypted").exists(), "no file of the old key is left");
    // The session's files are the same bytes, under other names.
    let shared = sizes("encrypted-1").iter().filter(|bytes| stored.contains(bytes)).count();
    assert!(shared >= 3, "{shared}");
    // The old key opens neither the files nor an old name.
    unlock_store(store, master.clone(), &KeyFile::read(store).unwrap().unwrap());
    assert!(store_fs::read(&store.join("vault/journal.jsonl")).is_err());
    // A process that still has the old key does not write.
    unlock_store(store, master.clone(), &keys);
    assert!(store_fs::check_is_current(&store.join("vault")).is_err());
    assert!(store_fs::create_private_dir(&store.join("vault/agent/new")).is_err());
    lock_store(store);
    decrypt_store(store, &second, &mut |_| ()).unwrap();
    assert!(store.join("vault/journal.jsonl").exists() && !store.join("encrypted-1").exists());
}

#[test]
fn a_killed_change_of_the_key_leaves_one_valid_key() {
    let dir = plain_store();
    let store = dir.path();
    let mut master = MasterKey::generate();
    let keys = KeyFile::new(KeySlot::for_passphrase(&master, "p").unwrap());
    encrypt_store(store, keys, &master, &mut |_| ()).unwrap();
    let before = read_store(store, &master);
    let mut stop = 0;
    loop {
        let mut count = 0;
        let mut killed = |_: &Path| {
            count += 1;
            if count > stop {
                std::panic::panic_any("killed");
            }
        };
        if let Some(changed) = change_key(store, &master, &mut killed) {
            master = changed;
            break;
        }
        assert_eq!(read_store(store, &master), before, "before anything is cleaned");
        finish_conversion(store).unwrap();
        assert_eq!(read_store(store, &master), before);
        assert!(!store.join("encrypted-1").exists());
        stop += 1;
    }
    assert!(stop >= 4, "{stop}");
    assert_eq!(read_store(store, &master), before);
    // Killed after the rename: files of the old key are still there.
    let file = KeyFile::read(store).unwrap().unwrap();
    KeyFile { has_old_files: true, ..file }.write(store).unwrap();
    fs::create_dir(store.join("encrypted")).unwrap();
    fs::write(store.join("encrypted/old"), b"old").unwrap();
    finish_conversion(store).unwrap();
    assert!(!store.join("encrypted").exists());
    assert_eq!(read_store(store, &master), before);
}
