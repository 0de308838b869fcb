//! devflow's own files, read and written back byte for byte.
//!
//! `STENO_GOLDEN` names a folder that holds them as `devflow/`; without it there is nothing to
//! compare.

use std::fs;
use std::path::{Path, PathBuf};

use steno_seeds::devflow;

use steno_seeds::devflow::{
    DevflowRun, RunFileShape, RunView, RunViewStyle, read_transcript, render_markdown,
};

fn golden() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("STENO_GOLDEN") else {
        eprintln!("STENO_GOLDEN is not set: nothing to compare with");
        return None;
    };
    Some(Path::new(&folder).join("devflow"))
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn transcript_json(folder: &Path) -> String {
    let compressed = folder.join("transcript.json.gz");
    match fs::File::open(&compressed) {
        Ok(file) => {
            let decoder = flate2::read::GzDecoder::new(file);
            std::io::read_to_string(decoder).expect("the golden gzip is whole")
        }
        Err(_) => text(&folder.join("transcript.json")),
    }
}

#[test]
fn runs_come_back_byte_for_byte() {
    let Some(golden) = golden() else { return };
    let found = devflow::READER.find_at(&golden.join("runs")).unwrap();
    let folders = fs::read_dir(golden.join("runs")).unwrap().count();
    assert_eq!(found.len(), folders);
    let base = tempfile::tempdir().unwrap();
    for bundle in found {
        let transcript = devflow::read_run(&bundle).unwrap();
        assert_eq!(transcript.problems, []);
        let written = devflow::write_run(&transcript, base.path(), RunFileShape::Shipped).unwrap();
        assert_eq!(written.file_name(), bundle.root.file_name());
        assert_eq!(transcript_json(&written), transcript_json(&bundle.root));
        assert_eq!(text(&written.join("metadata.json")), text(&bundle.root.join("metadata.json")));
        for name in ["transcript.json", "transcript.json.gz"] {
            let (ours, theirs) = (written.join(name), bundle.root.join(name));
            assert_eq!(ours.exists(), theirs.exists(), "{name}");
        }
    }
}

#[test]
fn gzip_headers_are_the_same() {
    let Some(golden) = golden() else { return };
    let base = tempfile::tempdir().unwrap();
    let folder = golden.join("runs/2025-01-15-manual-run-001");
    let found = devflow::READER.find_at(&folder).unwrap();
    let transcript = devflow::read_run(&found[0]).unwrap();
    let written = devflow::write_run(&transcript, base.path(), RunFileShape::Shipped).unwrap();
    let head = |folder: &Path| fs::read(folder.join("transcript.json.gz")).unwrap()[..10].to_vec();
    assert_eq!(head(&written), head(&folder));
}

#[test]
fn the_sample_of_the_decision_comes_back_in_its_own_shape() {
    let Some(golden) = golden() else { return };
    let path = golden.join("adr-011-sample/transcript.json");
    let found = devflow::READER.find_at(&path).unwrap();
    let transcript = devflow::read_run(&found[0]).unwrap();
    let run = DevflowRun::from(&transcript);
    assert_eq!(run.to_json(RunFileShape::Adr011), text(&path));
    assert!(run.to_json(RunFileShape::Shipped).contains("\"turnCount\": 3"));
}

#[test]
fn views_are_the_same() {
    let Some(golden) = golden() else { return };
    let path = golden.join("runs/2025-01-15-ticket-to-pr-TK421/transcript.json");
    let run = read_transcript(&path, text(&path).as_bytes()).unwrap().run;
    let now = "2030-01-01T00:00:00Z".parse().unwrap();
    let view = RunView { run: &run, now, style: RunViewStyle::Shipped };
    let expected = |name| text(&golden.join("views").join(name));
    assert_eq!(view.render_full(), expected("TK421.full.txt"));
    assert_eq!(view.render_summary(), expected("TK421.summary.txt"));
    assert_eq!(render_markdown(&run, now), expected("TK421.export.md"));
}
