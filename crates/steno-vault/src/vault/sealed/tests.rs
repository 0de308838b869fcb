use std::fs;

use super::writer::MAX_SMALL_FRAMES;
use super::*;

fn header() -> SealedFileHeader {
    SealedFileHeader {
        steno: frame::VaultTag::Vault,
        version: frame::FORMAT_VERSION,
        agent: "test".into(),
        session: "s".into(),
        name: "log.jsonl".into(),
        path: "/tmp/log.jsonl".into(),
        root: "/tmp".into(),
        generation: 0,
        gone: false,
        key: None,
        form: frame::ContentForm::Bytes,
        bytes: None,
        upgraded: None,
    }
}

fn content(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    SealedFile::open(path).unwrap().reader_from(0).read_to_end(&mut bytes).unwrap();
    bytes
}

fn unlisted(path: &Path) -> SealedFileRef {
    SealedFileRef { path: path.to_owned(), listed: None }
}

/// Renames a new file, as a commit does.
fn publish(written: &WrittenFile) {
    if written.is_new {
        fs::rename(replacement_path(&written.path), &written.path).unwrap();
    }
}

fn grow(path: &Path, pieces: &[&[u8]]) -> WrittenFile {
    let mut writer = if path.exists() {
        SealedWriter::open(&unlisted(path))
    } else {
        SealedWriter::create(path, &header())
    }
    .unwrap();
    for piece in pieces {
        writer.push(piece).unwrap();
    }
    let written = writer.finish().unwrap();
    publish(&written);
    written
}

fn listed(written: &WrittenFile) -> SealedFileRef {
    let state = crate::vault::journal::FileState::Kept;
    let (length, size) = (written.length, Some(written.size));
    let link = Some(crate::vault::journal::JournalLink::Chain(written.chain));
    let listed = Some(ListedFile { state, length, size, link });
    SealedFileRef { path: written.path.clone(), listed }
}

#[test]
fn reads_the_listed_frames_whatever_follows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zst");
    let mut steps = Vec::new();
    for round in 0..80 {
        let written = grow(&path, &[format!("line {round}\n").as_bytes()]);
        steps.push((listed(&written), content(&path)));
    }
    let whole = fs::read(&path).unwrap();
    for tail in [b"".as_slice(), b"\0\0\0\0\0\0\0\0\0\0\0\0", b"half a frame", &whole[..300]] {
        fs::write(&path, [&whole, tail].concat()).unwrap();
        for (kept, expected) in &steps {
            let mut bytes = Vec::new();
            kept.open().unwrap().reader_from(0).read_to_end(&mut bytes).unwrap();
            assert_eq!(&bytes, expected, "each state that was listed is a part of the last one");
        }
        // The last listed state grows; unlisted bytes are cut off.
        let mut writer = SealedWriter::open(&steps.last().unwrap().0).unwrap();
        writer.push(b"more\n").unwrap();
        let written = writer.finish().unwrap();
        publish(&written);
        let expected = [steps.last().unwrap().1.as_slice(), b"more\n"].concat();
        assert_eq!(content(&path), expected);
    }
    let older = steps[steps.len() - 2].0.listed.as_ref().and_then(|listed| listed.size).unwrap();
    fs::write(&path, &whole[..older as usize]).unwrap();
    let reason = steps.last().unwrap().0.open().unwrap_err().source.to_string();
    assert!(reason.starts_with("shorter than it was"), "{reason}");
}

#[test]
fn a_new_file_is_there_when_it_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zst");
    let mut writer = SealedWriter::create(&path, &header()).unwrap();
    writer.push(b"one\n").unwrap();
    writer.finish().unwrap();
    assert!(!path.exists());
    drop(writer);
    grow(&path, &[b"one\n"]);
    assert_eq!(content(&path), b"one\n");
}

#[test]
fn restores_kept_bytes_and_zstd_agrees() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zst");
    let line = [b"x".repeat(1000), b"\n".to_vec()].concat();
    let pieces: Vec<&[u8]> = (0..3000).map(|_| line.as_slice()).collect();
    grow(&path, &pieces);
    assert_eq!(content(&path), line.repeat(3000));
    assert_eq!(SealedFile::open(&path).unwrap().frame_count(), 3);
    let plain = zstd::decode_all(fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(plain, line.repeat(3000));
    let (begin, frame) = SealedFile::open(&path).unwrap().frame_at(2_500_000).unwrap().unwrap();
    assert!(begin <= 2_500_000 && 2_500_000 < begin + frame.len() as u64);
    let mut tail = Vec::new();
    SealedFile::open(&path).unwrap().reader_from(2_999_000).read_to_end(&mut tail).unwrap();
    assert_eq!(tail, &line.repeat(3000)[2_999_000..]);
}

#[test]
fn small_growth_is_merged_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zst");
    let mut expected = Vec::new();
    for round in 0..100 {
        let line = format!("line {round}\n");
        grow(&path, &[line.as_bytes()]);
        expected.extend(line.into_bytes());
    }
    assert_eq!(content(&path), expected);
    assert!(SealedFile::open(&path).unwrap().frame_count() <= MAX_SMALL_FRAMES + 1);
}

#[test]
fn cut_anywhere_whole_frames_survive_and_growth_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zst");
    grow(&path, &[b"one\n"]);
    let one = fs::metadata(&path).unwrap().len();
    grow(&path, &[b"two\n"]);
    let whole = fs::read(&path).unwrap();
    let head = frame::encode_file_header(&header()).0.len();
    for cut in head..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let kept = content(&path);
        assert!(b"one\ntwo\n".starts_with(&kept), "cut at {cut}");
        assert!(cut < one as usize || !kept.is_empty(), "cut at {cut}");
        if kept.is_empty() {
            // No frame or trailer covers its header.
            assert!(SealedWriter::open(&unlisted(&path)).is_err(), "cut at {cut}");
            continue;
        }
        grow(&path, &[b"three\n"]);
        assert_eq!(content(&path), [kept, b"three\n".to_vec()].concat(), "cut at {cut}");
        assert!(SealedFile::open(&path).unwrap().torn_bytes().is_none());
    }
}

/// Records another location of the session file, without new bytes.
fn move_to(path: &Path, place: &str) {
    let mut writer = SealedWriter::open(&unlisted(path)).unwrap();
    writer.set_location(place.as_ref(), "/root".as_ref());
    assert!(writer.has_changes());
    publish(&writer.finish().unwrap());
    writer.set_location(place.as_ref(), "/root".as_ref());
    assert!(!writer.has_changes());
}

fn place(path: &Path) -> String {
    SealedFile::open(path).unwrap().header().path.clone()
}

#[test]
fn the_last_place_is_known_after_growth_merging_and_cuts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zst");
    grow(&path, &[b"one\n"]);
    move_to(&path, "/new/log.jsonl");
    let moved = fs::metadata(&path).unwrap().len();
    assert_eq!(place(&path), "/new/log.jsonl");
    grow(&path, &[b"two\n"]);
    let whole = fs::read(&path).unwrap();
    for cut in moved as usize..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        assert_eq!(place(&path), "/new/log.jsonl", "cut at {cut}");
        grow(&path, &[b"three\n"]);
        assert_eq!(place(&path), "/new/log.jsonl", "cut at {cut}");
    }
    let mut expected = content(&path);
    for round in 0..100 {
        move_to(&path, &format!("/{round}"));
        grow(&path, &[b"more\n"]);
        expected.extend(b"more\n");
        assert_eq!(place(&path), format!("/{round}"));
    }
    assert_eq!(content(&path), expected);
    assert!(SealedFile::open(&path).unwrap().frame_count() <= MAX_SMALL_FRAMES + 2);
    let plain = zstd::decode_all(fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(plain, expected);
}

/// A file of 12 lines in four frames, the second of which has two pieces.
fn file_with_lines(path: &Path) -> Vec<u8> {
    let lines = |from: u32| (from..from + 3).map(|n| format!("line {n:02} secret\n")).collect();
    for round in 0..4 {
        let text: String = lines(round * 3);
        grow(path, &[text.as_bytes()]);
    }
    content(path)
}

fn forget(path: &Path, ranges: &[(u64, u64)]) -> WrittenFile {
    let edit = |(offset, length): &(u64, u64)| ByteEdit {
        offset: *offset,
        bytes: vec![b'*'; *length as usize],
        is_forgotten: true,
    };
    let edits: Vec<_> = ranges.iter().map(edit).collect();
    let written = SealedFile::open(path).unwrap().write_edited(&edits).unwrap();
    publish(&written);
    written
}

#[test]
fn forgotten_bytes_leave_the_chain_and_all_other_bytes_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zst");
    let original = file_with_lines(&path);
    let end = SealedFile::open(&path).unwrap().chain_end();
    let ranges = [(8, 6), (39, 10), (100, 3)];
    let written = forget(&path, &ranges);
    assert_eq!((written.length, written.chain), end);
    let mut expected = original.clone();
    for (begin, length) in ranges {
        expected[begin as usize..(begin + length) as usize].fill(b'*');
    }
    assert_eq!(content(&path), expected);
    assert_eq!(zstd::decode_all(fs::File::open(&path).unwrap()).unwrap(), expected);
    let mut sealed = listed(&written).open().unwrap();
    sealed.check_chain().unwrap();
    sealed.check_every_frame().unwrap();
    let summary = sealed.mask_summary().unwrap();
    assert_eq!(summary.ranges, ranges);
    // A second forgetting adds to the first, and growth and merging leave both.
    forget(&path, &[(12, 4), (60, 5)]);
    for round in 0..100 {
        grow(&path, &[format!("more {round}\n").as_bytes()]);
    }
    let mut sealed = SealedFile::open(&path).unwrap();
    assert_eq!(sealed.mask_summary().unwrap().ranges, [(8, 8), (39, 10), (60, 5), (100, 3)]);
    sealed.check_chain().unwrap();
    sealed.check_every_frame().unwrap();
}

#[test]
fn no_hash_of_a_forgotten_piece_confirms_a_guess() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zst");
    grow(&path, &[b"the key is 1234\n"]);
    let before = SealedFile::open(&path).unwrap().frame_header(0).unwrap();
    forget(&path, &[(11, 4)]);
    let header = SealedFile::open(&path).unwrap().frame_header(0).unwrap();
    let (old, new) = (&before.pieces[0], &header.pieces[0]);
    assert_eq!(new.hash, old.hash);
    assert_ne!(new.salt, old.salt);
    let file = fs::read(&path).unwrap();
    let has = |text: &str| memchr::memmem::find(&file, text.as_bytes()).is_some();
    assert!(!has(&old.salt.to_string()));
    // With the right guess, no hash in the file is reproduced by anything that the file states.
    let guess = b"the key is 1234\n";
    for salt in [new.salt, uuid::Uuid::nil()] {
        let piece = FrameHeaderGuess { salt, guess };
        assert!(!has(&piece.keyed()) && !has(&piece.plain()));
    }
}

struct FrameHeaderGuess<'a> {
    salt: uuid::Uuid,
    guess: &'a [u8],
}

impl FrameHeaderGuess<'_> {
    fn keyed(&self) -> String {
        let mut key = [0; blake3::KEY_LEN];
        key[..16].copy_from_slice(self.salt.as_bytes());
        blake3::keyed_hash(&key, self.guess).to_hex().to_string()
    }

    fn plain(&self) -> String {
        blake3::hash(self.guess).to_hex().to_string()
    }
}
