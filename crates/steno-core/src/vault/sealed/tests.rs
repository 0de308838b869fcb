use std::fs;

use super::writer::SMALL_FRAMES;
use super::*;

fn header() -> FileHeader {
    FileHeader {
        steno: frame::Tag::Vault,
        version: frame::VERSION,
        agent: "test".into(),
        session: "s".into(),
        name: "log.jsonl".into(),
        path: "/tmp/log.jsonl".into(),
        root: "/tmp".into(),
        generation: 0,
        gone: false,
        key: None,
        form: frame::Form::Bytes,
        bytes: None,
    }
}

fn content(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    Sealed::open(path).unwrap().reader(0).read_to_end(&mut bytes).unwrap();
    bytes
}

fn grow(path: &Path, pieces: &[&[u8]]) {
    let mut writer = if path.exists() {
        SealedWriter::open(path)
    } else {
        SealedWriter::create(path, &header())
    }
    .unwrap();
    for piece in pieces {
        writer.push(piece).unwrap();
    }
    writer.finish().unwrap();
    writer.sync().unwrap();
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
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    grow(&path, &[b"one\n"]);
    assert_eq!(content(&path), b"one\n");
}

#[test]
fn what_was_kept_comes_back_and_zstd_agrees() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zst");
    let line = [b"x".repeat(1000), b"\n".to_vec()].concat();
    let pieces: Vec<&[u8]> = (0..3000).map(|_| line.as_slice()).collect();
    grow(&path, &pieces);
    assert_eq!(content(&path), line.repeat(3000));
    assert_eq!(Sealed::open(&path).unwrap().frame_count(), 3);
    let plain = zstd::decode_all(fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(plain, line.repeat(3000));
    let (begin, frame) = Sealed::open(&path).unwrap().frame_at(2_500_000).unwrap().unwrap();
    assert!(begin <= 2_500_000 && 2_500_000 < begin + frame.len() as u64);
    let mut tail = Vec::new();
    Sealed::open(&path).unwrap().reader(2_999_000).read_to_end(&mut tail).unwrap();
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
    assert!(Sealed::open(&path).unwrap().frame_count() <= SMALL_FRAMES + 1);
}

#[test]
fn cut_anywhere_whole_frames_survive_and_growth_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zst");
    grow(&path, &[b"one\n"]);
    let one = fs::metadata(&path).unwrap().len();
    grow(&path, &[b"two\n"]);
    let whole = fs::read(&path).unwrap();
    let head = frame::begin(&header()).0.len();
    for cut in head..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let kept = content(&path);
        assert!(b"one\ntwo\n".starts_with(&kept), "cut at {cut}");
        assert!(cut < one as usize || !kept.is_empty(), "cut at {cut}");
        assert!(Sealed::open(&path).unwrap().torn().is_some());
        grow(&path, &[b"three\n"]);
        assert_eq!(content(&path), [kept, b"three\n".to_vec()].concat(), "cut at {cut}");
        assert!(Sealed::open(&path).unwrap().torn().is_none());
    }
}

/// Notes that the source was found at `path`, without anything new in it.
fn move_to(path: &Path, place: &str) {
    let mut writer = SealedWriter::open(path).unwrap();
    writer.set_place(place.as_ref(), "/root".as_ref());
    assert!(writer.has_news());
    writer.finish().unwrap();
    writer.set_place(place.as_ref(), "/root".as_ref());
    assert!(!writer.has_news());
}

fn place(path: &Path) -> String {
    Sealed::open(path).unwrap().header().path.clone()
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
    assert!(Sealed::open(&path).unwrap().frame_count() <= SMALL_FRAMES + 2);
    let plain = zstd::decode_all(fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(plain, expected);
}
