//! How fast texts are searched for secrets.
//!
//! `cargo bench -p steno-secrets --bench scan --features test-support -- FILE...` reads the lines of files; without one, a
//! made-up session of prose, code, logs and a few secrets.

use std::hint::black_box;
use std::time::Instant;

use steno_secrets::planted::{harmless_texts, planted_secrets};
use steno_secrets::{SecretRuleSet, SecretScanner};

fn main() {
    let files: Vec<_> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let texts: Vec<Vec<u8>> = match files.as_slice() {
        [] => made_up_texts(),
        files => files.iter().flat_map(|file| read_lines(file)).collect(),
    };
    let bytes: usize = texts.iter().map(Vec::len).sum();
    let scanner = SecretScanner::built_in();
    for rules in [SecretRuleSet::All, SecretRuleSet::FormsOnly] {
        let mut fastest = f64::MAX;
        let mut found = 0;
        for _ in 0..5 {
            let start = Instant::now();
            found =
                texts.iter().map(|text| black_box(scanner.find_secrets(text, rules)).len()).sum();
            fastest = fastest.min(start.elapsed().as_secs_f64());
        }
        let megabytes = bytes as f64 / 1e6;
        println!("{rules:?}: {megabytes:.1} MB, {found} found, {:.0} MB/s", megabytes / fastest);
    }
}

fn read_lines(file: &str) -> Vec<Vec<u8>> {
    let text = std::fs::read(file).expect("the file can be read");
    text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

fn made_up_texts() -> Vec<Vec<u8>> {
    let prose =
        "The parser reads one record at a time and reports what it cannot read. ".repeat(20);
    let code = "    let token = tokens.next().ok_or(ParseError::Missing)?;\n    self.keys.push(key.to_owned());\n".repeat(30);
    let mut texts = Vec::new();
    for seed in 0..20 {
        texts.extend(
            harmless_texts(seed).into_iter().map(|text| format!("{prose}\n{text}\n{code}")),
        );
        texts.extend(
            planted_secrets(seed)
                .into_iter()
                .take(10)
                .map(|planted| format!("{prose}\n{}", planted.text)),
        );
    }
    texts.into_iter().map(String::into_bytes).collect()
}
