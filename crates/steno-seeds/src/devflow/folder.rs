//! The run folder: `metadata.json`, `transcript.json` or `transcript.json.gz`, and the journal during recording.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::decode::{self, DecodedRun};
use super::encode::RunFileShape;
use super::error::file_problem;
use super::journal;
use super::run::{DevflowRun, RunMetadata};
use steno_model::durable::{self, FileError};
use steno_model::problem::Problem;
use steno_vault::{FormatError, MAX_DOCUMENT_SIZE, SessionBundle, SessionFile};

/// File of the run's metadata.
pub(super) const METADATA_FILE: &str = "metadata.json";
/// File of a small run.
pub(super) const PLAIN_FILE: &str = "transcript.json";
/// File of a large run.
pub(super) const COMPRESSED_FILE: &str = "transcript.json.gz";

/// Largest size of a transcript that is stored uncompressed, in bytes.
const MAX_PLAIN_BYTES: usize = 100 * 1024;

/// Number of bytes that are read to detect a transcript.
const PROBE_BYTES: u64 = 1 << 20;

/// Writes a run's two files, each atomically, and then removes the other form of the transcript.
pub(super) fn save_run(
    folder: &Path,
    run: &DevflowRun,
    shape: RunFileShape,
) -> Result<(), FileError> {
    durable::create_private_dir(folder)?;
    let json = run.to_json(shape);
    let (plain, compressed) = (folder.join(PLAIN_FILE), folder.join(COMPRESSED_FILE));
    if json.len() > MAX_PLAIN_BYTES {
        durable::replace_atomic(&compressed, |file| write_gzip(json.as_bytes(), file))?;
        durable::remove_file(&plain)?;
    } else {
        durable::write_atomic(&plain, json.as_bytes())?;
        durable::remove_file(&compressed)?;
    }
    save_metadata(folder, run, shape)
}

/// Writes `metadata.json`.
pub(super) fn save_metadata(
    folder: &Path,
    run: &DevflowRun,
    shape: RunFileShape,
) -> Result<(), FileError> {
    durable::write_atomic(&folder.join(METADATA_FILE), run.metadata_json(shape).as_bytes())
}

/// Collects the existing files of a run folder.
pub(super) fn run_bundle(folder: &Path) -> SessionBundle {
    let names = [METADATA_FILE, PLAIN_FILE, COMPRESSED_FILE, journal::JOURNAL_FILE];
    let sources = names
        .into_iter()
        .map(|name| (name, folder.join(name)))
        .filter(|(_, path)| is_plain_file(path))
        .map(|(name, path)| SessionFile::on_disk(name, path));
    SessionBundle::new(folder.to_owned(), sources.collect())
}

/// Whether the path is a plain file and not a symlink.
pub(super) fn is_plain_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// Reads a run from whichever files exist.
///
/// The compressed transcript is preferred, then the plain one, then the journal, then the metadata alone. A file that
/// cannot be read is a problem if another one can; an error if none can.
pub(super) fn load_run(bundle: &SessionBundle) -> Result<DecodedRun, FormatError> {
    let mut failed = Vec::new();
    let mut found = None;
    for source in files_by_preference(bundle) {
        match load_file(source) {
            Ok(decoded) => {
                found = Some(decoded);
                break;
            }
            Err(error) => failed.push(error),
        }
    }
    let Some(mut decoded) = found else {
        let nothing =
            || FormatError::Invalid(Problem::for_file(&bundle.root, "no devflow run here"));
        return Err(failed.into_iter().next().unwrap_or_else(nothing));
    };
    let mut problems: Vec<_> = failed.into_iter().map(problem_from_error).collect();
    problems.append(&mut decoded.problems);
    decoded.problems = problems;
    if decoded.run.run_id.is_empty() {
        decoded.run.run_id = folder_name(&bundle.root);
    }
    Ok(decoded)
}

/// Reads `metadata.json` alone.
pub(super) fn load_metadata(folder: &Path) -> Result<RunMetadata, FormatError> {
    let path = folder.join(METADATA_FILE);
    let bytes = SessionFile::on_disk(METADATA_FILE, &path).read_bytes()?;
    let (mut meta, _) = decode::read_metadata(&path, &bytes).map_err(FormatError::Invalid)?;
    if meta.run_id.is_empty() {
        meta.run_id = folder_name(folder);
    }
    Ok(meta)
}

fn problem_from_error(error: FormatError) -> Problem {
    match error {
        FormatError::Invalid(problem) => problem,
        FormatError::File(error) => file_problem(&error),
    }
}

fn files_by_preference(bundle: &SessionBundle) -> Vec<&SessionFile> {
    let known = [COMPRESSED_FILE, PLAIN_FILE, journal::JOURNAL_FILE, METADATA_FILE];
    let mut sources: Vec<_> = known.iter().filter_map(|name| bundle.file_named(name)).collect();
    let other = bundle.files.iter().filter(|source| !known.contains(&source.name()));
    sources.extend(other);
    sources
}

fn load_file(source: &SessionFile) -> Result<DecodedRun, FormatError> {
    let (path, bytes) = (source.path(), source.read_bytes()?);
    match source.name() {
        METADATA_FILE => {
            let (metadata, problems) =
                decode::read_metadata(path, &bytes).map_err(FormatError::Invalid)?;
            let run =
                DevflowRun { run_id: metadata.run_id.clone(), metadata, ..DevflowRun::default() };
            Ok(DecodedRun { run, problems })
        }
        journal::JOURNAL_FILE => journal::replay_journal(path, &bytes)
            .map(|replayed| replayed.decoded)
            .map_err(FormatError::Invalid),
        _ => {
            let bytes = decompress_bytes(path, bytes).map_err(FormatError::Invalid)?;
            decode::read_transcript(path, &bytes).map_err(FormatError::Invalid)
        }
    }
}

/// Decompresses the bytes if they are gzip.
pub(super) fn decompress_bytes(path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, Problem> {
    let named = path.extension().is_some_and(|ending| ending == "gz");
    if !named && !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut plain = Vec::new();
    MultiGzDecoder::new(bytes.as_slice())
        .take(MAX_DOCUMENT_SIZE + 1)
        .read_to_end(&mut plain)
        .map_err(|error| Problem::for_file(path, format_args!("corrupt gzip: {error}")))?;
    if plain.len() as u64 > MAX_DOCUMENT_SIZE {
        return Err(Problem::for_file(path, "too large when decompressed"));
    }
    Ok(plain)
}

/// Reads the first bytes of a file, decompressed if they are gzip, to detect its format.
pub(super) fn read_plain_start(path: &Path) -> io::Result<Vec<u8>> {
    let mut input = BufReader::new(File::open(path)?);
    let is_gzip = input.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    let input: Box<dyn Read> =
        if is_gzip { Box::new(MultiGzDecoder::new(input)) } else { Box::new(input) };
    let mut start = Vec::new();
    // A file that is corrupt further on still has a valid start.
    let _ = input.take(PROBE_BYTES).read_to_end(&mut start);
    Ok(start)
}

/// Writes one gzip member with Go's header: no name, no time, unknown system.
pub(super) fn write_gzip(bytes: &[u8], out: &mut fs::File) -> io::Result<()> {
    let mut encoder: GzEncoder<_> =
        flate2::GzBuilder::new().mtime(0).operating_system(255).write(out, Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish().map(|_| ())
}

fn folder_name(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::run::RunTurn;
    use super::*;

    /// A run with exactly `size` bytes of JSON.
    fn run_of(size: usize) -> DevflowRun {
        let mut run = DevflowRun { run_id: "r".to_owned(), ..DevflowRun::default() };
        run.metadata.flow_id = "size".to_owned();
        run.push_turn(RunTurn::new("user", "", 0));
        let missing = size - run.to_json(RunFileShape::Shipped).len();
        run.turns[0].content = "x".repeat(missing);
        assert_eq!(run.to_json(RunFileShape::Shipped).len(), size);
        run
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn one_byte_over_the_limit_is_compressed_and_the_sibling_goes() {
        let dir = tempfile::tempdir().unwrap();
        save_run(dir.path(), &run_of(102_400), RunFileShape::Shipped).unwrap();
        assert_eq!(names(dir.path()), [METADATA_FILE, PLAIN_FILE]);
        let large = run_of(102_401);
        save_run(dir.path(), &large, RunFileShape::Shipped).unwrap();
        assert_eq!(names(dir.path()), [METADATA_FILE, COMPRESSED_FILE]);
        let bytes = fs::read(dir.path().join(COMPRESSED_FILE)).unwrap();
        assert_eq!(bytes[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
        let loaded = load_run(&run_bundle(dir.path())).unwrap();
        assert_eq!(loaded.run.to_json(RunFileShape::Shipped), large.to_json(RunFileShape::Shipped));
        save_run(dir.path(), &run_of(800), RunFileShape::Shipped).unwrap();
        assert_eq!(names(dir.path()), [METADATA_FILE, PLAIN_FILE]);
    }

    #[test]
    fn a_corrupt_gzip_falls_back_with_a_problem() {
        let dir = tempfile::tempdir().unwrap();
        save_run(dir.path(), &run_of(102_401), RunFileShape::Shipped).unwrap();
        let gz = dir.path().join(COMPRESSED_FILE);
        let mut bytes = fs::read(&gz).unwrap();
        bytes.truncate(bytes.len() - 9);
        fs::write(&gz, &bytes).unwrap();
        let alone = load_run(&run_bundle(dir.path())).unwrap();
        assert!(alone.run.turns.is_empty(), "the bare metadata is left");
        assert!(alone.problems[0].reason.starts_with("corrupt gzip"));
        let plain = run_of(800).to_json(RunFileShape::Shipped);
        fs::write(dir.path().join(PLAIN_FILE), plain).unwrap();
        let both = load_run(&run_bundle(dir.path())).unwrap();
        assert_eq!(both.run.turns.len(), 1);
        assert!(both.problems[0].reason.starts_with("corrupt gzip"));
    }

    #[test]
    fn a_folder_without_a_run_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let error = load_run(&run_bundle(dir.path())).unwrap_err().to_string();
        assert!(error.ends_with("no devflow run here"), "{error}");
    }

    #[test]
    fn rejects_a_decompression_bomb() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        io::copy(&mut io::repeat(b' ').take(MAX_DOCUMENT_SIZE + 1), &mut encoder).unwrap();
        let error = decompress_bytes(Path::new("t.gz"), encoder.finish().unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "t.gz: too large when decompressed");
    }
}
