use super::*;
use crate::transcript::record_reader::RECORD_DECODER;
use steno_model::timestamp::Clock;
use steno_vault::record::{ACP_PROTOCOL, RecordingOpening};
use steno_vault::recorder::Recorder;

struct Bench {
    _folder: tempfile::TempDir,
    location: StoreLocation,
    session: SessionDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let location = StoreLocation::new(folder.path().join("store"), clock());
        let session = location.vault().session_dir(&"a".parse().unwrap(), &"s".parse().unwrap());
        Self { _folder: folder, location, session }
    }

    fn record(&self, protocol: Option<&str>) -> Recorder {
        let protocol = protocol.map(str::to_owned);
        let opening =
            RecordingOpening { agent: "a".to_owned(), protocol, ..RecordingOpening::default() };
        Recorder::open(self.session.clone(), &opening, clock(), RECORD_DECODER).unwrap()
    }

    fn forget(&self, removal: PlannedRemoval) -> Result<Vec<Tombstone>, ForgetError> {
        let request = ForgetRequest { at: clock().now(), by: "me".to_owned(), reason: None };
        SessionForgetter::new(&self.location).forget(&request, &[removal])
    }

    fn entries(&self) -> PlannedRemoval {
        let entries = self.session.read_transcript().unwrap().entries;
        let finder = ForgottenTextFinder::for_entries((0..).zip(&entries));
        PlannedRemoval::Texts { session: self.session.clone(), finder }
    }
}

fn clock() -> Clock {
    Clock::fixed("2026-01-05T09:00:00Z".parse().unwrap())
}

const RECORD: &[u8] = br#"{"role":"user","content":"a text that is long enough"}"#;

#[test]
fn a_session_that_is_being_recorded_stays() {
    let bench = Bench::new();
    let recorder = bench.record(None);
    recorder.append_line(RECORD).unwrap();
    for removal in [PlannedRemoval::Session(bench.session.clone()), bench.entries()] {
        let error = bench.forget(removal).unwrap_err();
        assert!(matches!(error, ForgetError::Recording(_)), "{error}");
    }
    assert_eq!(bench.location.vault().tombstones().unwrap(), []);
    drop(recorder);
    // Its recorder was killed: the log is sealed first.
    bench.forget(bench.entries()).unwrap();
    let entries = bench.session.read_transcript().unwrap().entries;
    assert!(entries[0].content.starts_with("[forgotten "), "{entries:?}");
    assert_eq!(bench.location.vault().verify(&mut |_| ()).unwrap().damage, []);
}

#[test]
fn entries_of_a_recorded_stream_are_refused() {
    let bench = Bench::new();
    drop(bench.record(Some(ACP_PROTOCOL)));
    let entry = steno_model::entry::Entry::new(
        steno_model::entry::Role::User,
        steno_model::entry::EntryKind::Text,
        "a text that is long enough",
    );
    let finder = ForgottenTextFinder::for_entries([(0, &entry)]);
    let removal = PlannedRemoval::Texts { session: bench.session.clone(), finder };
    let error = bench.forget(removal).unwrap_err();
    assert!(matches!(error, ForgetError::Scattered { number: 0, .. }), "{error}");
    assert_eq!(bench.location.vault().tombstones().unwrap(), []);
}

#[test]
fn a_removal_that_was_only_decided_is_completed_by_the_next_import() {
    let bench = Bench::new();
    let recorder = bench.record(None);
    recorder.append_line(RECORD).unwrap();
    drop(recorder);
    let request = ForgetRequest { at: clock().now(), by: "me".to_owned(), reason: None };
    let tombstone = bench.session.tombstone_for_all(&request).unwrap();
    bench.location.vault().add_tombstones(&[tombstone]).unwrap();
    assert!(bench.session.exists());
    drop(crate::keep::SessionImporter::new(&bench.location).unwrap());
    assert!(!bench.session.exists());
    assert_eq!(bench.location.vault().unfinished_removals().unwrap(), []);
}
