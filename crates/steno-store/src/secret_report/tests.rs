//! A report over a small store.

use steno_model::Clock;
use steno_secrets::made_up::MadeUpTexts;

use super::*;
use crate::sync::SessionSyncer;

#[test]
fn a_secret_is_reported_once_with_all_its_places() {
    let folder = tempfile::tempdir().unwrap();
    let mut texts = MadeUpTexts::new(1);
    let (key, hidden) = (texts.fill("ghp_{A36}"), texts.fill("glpat-{w20}"));
    let line = |id: &str, text: &str| {
        format!(
            "{{\"type\":\"user\",\"sessionId\":\"{id}\",\"uuid\":\"{text:.4}-u\",\"timestamp\":\"2026-01-02T03:04:05Z\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n"
        )
    };
    let unread = format!(
        "{{\"type\":\"file-history-snapshot\",\"messageId\":\"{hidden}\",\"snapshot\":{{}}}}\n"
    );
    let first = [line("s1", "hello"), line("s1", &format!("use {key} and {key}")), unread].concat();
    std::fs::write(folder.path().join("s1.jsonl"), first).unwrap();
    std::fs::write(folder.path().join("s2.jsonl"), line("s2", &format!("again {key}"))).unwrap();
    // Only the first of these says what it is.
    let password = texts.fill("{A12}7");
    let lines = [
        line("s3", &format!("url postgres://me:{password}@db.example.com/x")),
        line("s3", &format!("bare {password} alone")),
    ];
    std::fs::write(folder.path().join("s3.jsonl"), lines.concat()).unwrap();
    std::fs::write(folder.path().join("s4.jsonl"), line("s4", &format!("copy {password}")))
        .unwrap();
    let store = StoreLocation::new(folder.path().join("store"), Clock::system());
    SessionSyncer::new(store.clone()).unwrap().sync_folder(folder.path()).unwrap();

    let report = report_secrets(&store, &|_| ()).unwrap();
    assert!(report.is_complete());
    let find = |value: &str| report.secrets.iter().find(|secret| secret.value == value).unwrap();
    let secret = find(&key);
    assert_eq!(secret.rule, "GitHub token");
    let places: Vec<_> = secret
        .places
        .iter()
        .map(|place| (place.session.as_str(), place.entry, place.count))
        .collect();
    assert_eq!(places, [("s1", Some(1), 2), ("s2", Some(0), 1)]);
    assert_eq!(secret.count(), 3);
    assert_eq!(secret.masked_value(), "ghp_…(40)");
    assert!(secret.last_seen().is_some());
    assert_eq!(secret.entries_by_session().len(), 2);
    let places: Vec<_> = find(&password)
        .places
        .iter()
        .map(|place| (place.session.as_str(), place.entry, place.count))
        .collect();
    assert_eq!(places, [("s3", Some(0), 1), ("s3", Some(1), 1), ("s4", Some(0), 1)]);
    assert!(find(&hidden).places.iter().all(|place| place.session.as_str() == "s1"));
}
