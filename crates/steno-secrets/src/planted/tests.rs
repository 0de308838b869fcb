//! How much of the planted secrets is found, and how much else.

use super::*;
use crate::secret_scanner::{SecretRuleSet, SecretScanner};

const SEEDS: [u64; 3] = [1, 2, 3];

/// Whether nothing of the secret is left but what it shares with its surroundings.
fn is_covered(planted: &PlantedSecret) -> bool {
    let start = planted.text.find(&planted.secret).expect("the secret is in its text");
    let end = start + planted.secret.len();
    let found = SecretScanner::built_in().find_secrets(planted.text.as_bytes(), SecretRuleSet::All);
    found.iter().any(|secret| secret.range.start < end && start < secret.range.end)
        && !redact(&planted.text).contains(&planted.secret)
}

fn redact(text: &str) -> String {
    let mut redacted = text.to_owned();
    let found = SecretScanner::built_in().find_secrets(text.as_bytes(), SecretRuleSet::All);
    for secret in found.iter().rev() {
        redacted.replace_range(secret.range.clone(), "[redacted]");
    }
    redacted
}

fn check_recall(name: &str, planted: &[PlantedSecret]) {
    let missed: Vec<_> = planted
        .iter()
        .filter(|planted| !is_covered(planted))
        .map(|planted| &planted.text)
        .collect();
    let recall = 1.0 - missed.len() as f64 / planted.len() as f64;
    println!(
        "{name}: {} of {} found, without {missed:#?}",
        planted.len() - missed.len(),
        planted.len()
    );
    assert!(recall >= 0.95, "{name}: {recall:.3}\n{missed:#?}");
}

#[test]
fn the_lists_are_long_enough() {
    assert!(planted_secrets(1).len() >= 200, "{}", planted_secrets(1).len());
    assert!(harmless_texts(1).len() >= 500, "{}", harmless_texts(1).len());
}

#[test]
fn vendor_forms_are_found() {
    let planted: Vec<_> = SEEDS.into_iter().flat_map(planted_vendor_forms).collect();
    check_recall("vendor forms", &planted);
}

#[test]
fn secrets_in_the_wild_are_found() {
    let planted: Vec<_> = SEEDS.into_iter().flat_map(planted_in_the_wild).collect();
    check_recall("in the wild", &planted);
}

#[test]
fn look_alikes_are_left() {
    let texts: Vec<_> = SEEDS.into_iter().flat_map(harmless_texts).collect();
    let changed: Vec<_> = texts
        .iter()
        .filter(|text| redact(text) != **text)
        .map(|text| (text, redact(text)))
        .collect();
    println!("look-alikes: {} of {} changed: {changed:#?}", changed.len(), texts.len());
    assert!(changed.len() * 100 <= texts.len(), "{}\n{changed:#?}", changed.len());
}

#[test]
fn secrets_in_code_are_found() {
    let planted: Vec<_> = SEEDS.into_iter().flat_map(planted_in_code).collect();
    check_recall("in code", &planted);
}

#[test]
fn secrets_from_scratch_are_found() {
    let planted: Vec<_> = SEEDS.into_iter().flat_map(planted_from_scratch).collect();
    check_recall("from scratch", &planted);
}

#[test]
fn secrets_in_transcripts_are_found() {
    let planted: Vec<_> = SEEDS.into_iter().flat_map(planted_in_transcripts).collect();
    check_recall("in transcripts", &planted);
}

#[test]
fn typed_passwords_are_found() {
    let planted: Vec<_> = SEEDS.into_iter().flat_map(planted_typed_passwords).collect();
    check_recall("typed passwords", &planted);
}

#[test]
fn secrets_in_projects_are_found() {
    let planted: Vec<_> = SEEDS.into_iter().flat_map(planted_in_projects).collect();
    check_recall("in projects", &planted);
}

#[test]
fn secrets_in_odd_places_are_found() {
    let planted: Vec<_> = SEEDS.into_iter().flat_map(planted_in_odd_places).collect();
    check_recall("in odd places", &planted);
}
