//! Redaction of whole transcripts.

use serde_json::json;
use steno_model::entry::EntryKind;
use steno_model::note::Note;
use steno_secrets::made_up::MadeUpTexts;
use steno_secrets::planted::{harmless_texts, planted_secrets};

use super::*;
use crate::format::native;

fn redacted(text: &str) -> (String, u64) {
    let mut redactor = SecretRedactor::default();
    let text = redactor.redact_text(text).into_owned();
    (text, redactor.count())
}

fn transcript() -> Transcript {
    Transcript::new(Session::new("s".parse().unwrap(), "x"))
}

fn made_up(template: &str) -> String {
    MadeUpTexts::new(7).fill(template)
}

#[test]
fn secrets_are_found_among_words_of_any_script() {
    let (text, count) = redacted("ключ: é MY_API_KEY=q7Rz0vXw93LkTn5Yb2Hd8Fg1 日本");
    assert_eq!((text.as_str(), count), ("ключ: é MY_API_KEY=[redacted secret] 日本", 1));
    let (text, _) = redacted("пароль password=\"日本語é!7x\"é");
    assert!(text.starts_with("пароль password=") && text.ends_with('é'), "{text}");
}

#[test]
fn keeps_the_text_around_a_secret() {
    let (text, count) = redacted("git clone https://me:hunter2hunter2@example.org/x and more");
    assert_eq!(text, "git clone https://me:[redacted password in URL]@example.org/x and more");
    assert_eq!(count, 1);
}

#[test]
fn a_title_never_has_a_part_of_a_secret() {
    let prompt =
        "Please deploy the whole webshop to the staging server; the password is Tr0ub4dor&3xYz now";
    for cut in 60..prompt.len() {
        for end in ["…", ""] {
            let mut transcript = transcript();
            transcript.push(Entry::new(Role::User, EntryKind::Text, prompt));
            transcript.session.title = Some(format!("{}{end}", &prompt[..cut]));
            SecretRedactor::default().redact_transcript(&mut transcript);
            let title = transcript.session.title.unwrap();
            assert!(!title.contains("Tr0u"), "{title}");
        }
    }
}

#[test]
fn every_field_is_searched() {
    let mut transcript = transcript();
    let mut secrets = Vec::new();
    let mut texts = MadeUpTexts::new(3);
    let mut key = || {
        let key = texts.fill("ghp_{A36}");
        secrets.push(key.clone());
        key
    };
    transcript.session.title = Some(key());
    transcript.session.project = Some(format!("/home/{}", key()));
    transcript.session.branch = Some(key());
    transcript.session.models = vec![key()];
    let id = uuid::Uuid::nil();
    let at = "2026-01-01T00:00:00Z".parse().unwrap();
    transcript.notes.push(Note { id, at, entry: None, text: key() });
    let mut call = Entry::new(Role::Assistant, EntryKind::ToolCall, key());
    call.tool_name = Some(key());
    call.model = Some(key());
    call.tool_input = Some(json!({"command": ["curl", {key(): key()}], key(): 1}));
    call.metadata = json!({"path": key()}).as_object().cloned();
    call.extra.insert(key(), key().into());
    transcript.push(call);
    let mut redactor = SecretRedactor::default();
    redactor.redact_transcript(&mut transcript);
    let printed = format!("{transcript:?}");
    for secret in &secrets {
        assert!(!printed.contains(secret.as_str()), "{secret}: {printed}");
    }
    // The session lists the model of the entry too.
    assert_eq!(redactor.count(), secrets.len() as u64 + 1);
}

#[test]
fn names_of_fields_and_options_make_values_secret() {
    let mut value = json!({
        "password": "hunter2",
        "pin": 3,
        "env": [{"name": "DB_PASSWORD", "value": "kestrel99"}, {"name": "MODE", "value": "plain"}],
        "argv": ["mysql", "--password", "kestrel98", "-v"],
        "numbers": {"db_password": 12345678},
    });
    let mut redactor = SecretRedactor::default();
    redactor.redact_value(None, &mut value);
    let expected = json!({
        "password": "[redacted secret]",
        "pin": 3,
        "env": [{"name": "DB_PASSWORD", "value": "[redacted secret]"}, {"name": "MODE", "value": "plain"}],
        "argv": ["mysql", "--password", "[redacted secret]", "-v"],
        "numbers": {"db_password": "[redacted secret]"},
    });
    assert_eq!(value, expected);
    assert_eq!(redactor.count_by_rule(), [("secret", 4)].into());
}

#[test]
fn what_is_known_from_one_place_is_redacted_everywhere() {
    let mut transcript = transcript();
    transcript.push(Entry::new(Role::User, EntryKind::Text, "I typed kestrel-77-wing before."));
    transcript.push(Entry::new(Role::User, EntryKind::Text, "DB_PASSWORD=kestrel-77-wing"));
    SecretRedactor::default().redact_transcript(&mut transcript);
    let contents: Vec<_> = transcript.entries.iter().map(|entry| entry.content.as_str()).collect();
    assert_eq!(contents, ["I typed [redacted secret] before.", "DB_PASSWORD=[redacted secret]"]);
}

#[test]
fn redacted_json_is_json_and_can_be_read() {
    let mut transcript = transcript();
    for planted in planted_secrets(5) {
        let mut call = Entry::new(Role::Assistant, EntryKind::ToolCall, planted.text.clone());
        call.tool_input = Some(
            json!({"command": planted.text, "nested": json!({"x": planted.text}).to_string()}),
        );
        transcript.push(call);
    }
    let count = transcript.entries.len();
    SecretRedactor::default().redact_transcript(&mut transcript);
    let rendered = native::render_json(&transcript);
    let parsed: Value = serde_json::from_str(&rendered).unwrap();
    assert_eq!(parsed["entries"].as_array().unwrap().len(), count);
    for entry in &transcript.entries {
        let nested = entry.tool_input.as_ref().unwrap()["nested"].as_str().unwrap();
        serde_json::from_str::<Value>(nested).unwrap_or_else(|error| panic!("{error}: {nested}"));
    }
}

#[test]
fn planted_secrets_are_redacted_in_fields_of_all_kinds() {
    let (mut missed, mut total) = (Vec::new(), 0);
    for planted in planted_secrets(11) {
        let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
        entry.tool_input =
            Some(json!({"input": {"text": planted.text}, "lines": [planted.text, "x"]}));
        entry.extra.insert("raw".to_owned(), json!({"line": planted.text}).to_string().into());
        SecretRedactor::default().redact_entry(&mut entry);
        let escaped = serde_json::to_string(&planted.secret).unwrap();
        let printed = serde_json::to_string(&entry.to_object()).unwrap();
        total += 1;
        if printed.contains(&planted.secret) || printed.contains(escaped.trim_matches('"')) {
            missed.push(printed);
        }
    }
    assert!(missed.len() * 20 <= total, "{} of {total}: {missed:#?}", missed.len());
}

#[test]
fn look_alikes_stay_in_fields_of_all_kinds() {
    let (mut changed, mut total) = (Vec::new(), 0);
    for text in harmless_texts(11) {
        let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, text.clone());
        entry.tool_input = Some(json!({"text": text, "nested": json!({"line": text}).to_string()}));
        let before = entry.clone();
        SecretRedactor::default().redact_entry(&mut entry);
        total += 1;
        if entry != before {
            changed.push(entry.tool_input);
        }
    }
    assert!(changed.len() * 100 <= total, "{} of {total}: {changed:#?}", changed.len());
}

#[test]
fn files_are_redacted_line_by_line() {
    let key = made_up("ghp_{A36}");
    let file = format!("{{\"a\":1.50}}\n{{\"b\":\"{key}\"}}\nnot json {key}\n\u{fffd}");
    let mut redactor = SecretRedactor::default();
    let redacted = String::from_utf8(redact_file(&mut redactor, file.as_bytes())).unwrap();
    assert_eq!(redacted, file.replace(&key, "[redacted GitHub token]"));
    assert_eq!(redactor.count(), 2);
    let document = format!("{{\n  \"token\": \"{key}\"\n}}\n");
    let redacted = String::from_utf8(redact_file(&mut redactor, document.as_bytes())).unwrap();
    assert_eq!(redacted, "{\n  \"token\": \"[redacted GitHub token]\"\n}\n");
}
