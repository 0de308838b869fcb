//! Prints the planted secrets and the look-alikes as JSON Lines, each with what Steno makes of it, to compare scanners.

use steno_secrets::planted::{harmless_texts, planted_secrets};
use steno_secrets::{SecretRuleSet, SecretScanner};

fn main() {
    let seed = std::env::args().nth(1).and_then(|seed| seed.parse().ok()).unwrap_or(1);
    for planted in planted_secrets(seed) {
        let is_found = !redact(&planted.text).contains(&planted.secret);
        print_line(&planted.text, Some(&planted.secret), is_found);
    }
    for text in harmless_texts(seed) {
        print_line(&text, None, redact(&text) != text);
    }
}

fn redact(text: &str) -> String {
    let mut redacted = text.to_owned();
    let found = SecretScanner::built_in().find_secrets(text.as_bytes(), SecretRuleSet::All);
    for secret in found.iter().rev() {
        redacted.replace_range(secret.range.clone(), "[redacted]");
    }
    redacted
}

fn print_line(text: &str, secret: Option<&str>, is_found: bool) {
    let secret = secret.map_or("null".to_owned(), quote_json);
    println!("{{\"text\":{},\"secret\":{secret},\"found\":{is_found}}}", quote_json(text));
}

fn quote_json(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if (letter as u32) < 0x20 => {
                quoted.push_str(&format!("\\u{:04x}", letter as u32))
            }
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}
