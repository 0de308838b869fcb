use proptest::prelude::*;

use super::*;
use crate::reader;
use steno_model::session::Transcript;

const SAMPLE: &str = "
# aider chat started at 2025-07-15 11:38:37

> Main model: gpt-4o with diff edit format  
> Git repo: .git with 16 files  

#### Fix the parser  
####   and its tests  

I see:

```rust
# a comment
fn main() {}
```

> Tokens: 3.2k sent, 21 received. Cost: $0.0082 message, $0.0082 session.  
> Applied edit to src/parser.rs  

#### /undo  
#### <blank>  

#### Thanks  

Welcome.
";

fn bundle(text: &[u8]) -> SessionBundle {
    let path = "/repo/.aider.chat.history.md";
    let name = ".aider.chat.history.md";
    SessionBundle::new(path, vec![SessionFile::in_memory(name, path, text.to_vec())])
}

fn transcript(text: &str) -> Transcript {
    reader::read_transcript(&READER, &bundle(text.as_bytes())).unwrap()
}

fn prompts(transcript: &Transcript) -> Vec<&str> {
    let entries = transcript.entries.iter();
    let prompts = entries.filter(|entry| entry.role == Role::User && entry.kind == EntryKind::Text);
    prompts.map(|entry| entry.content.as_str()).collect()
}

#[test]
fn blocks_become_entries() {
    let transcript = transcript(SAMPLE);
    assert_eq!(prompts(&transcript), ["Fix the parser\n  and its tests", "Thanks"]);
    let entry = &transcript.entries[3];
    assert_eq!(entry.content, "I see:\n\n```rust\n# a comment\nfn main() {}\n```");
    assert_eq!(entry.model.as_deref(), Some("gpt-4o"));
    assert_eq!(entry.usage.map(|usage| (usage.input, usage.output)), Some((3200, 21)));
    assert_eq!(transcript.session.totals.cost, Some(0.0082));
    assert_eq!(transcript.session.project.as_deref(), Some("/repo"));
    let started = transcript.session.started.unwrap();
    assert_eq!(started.to_string(), "2025-07-15T11:38:37");
}

#[test]
fn commands_and_their_output_are_no_prompts() {
    let transcript = transcript("# aider chat started at 2025-01-01 00:00:00\n\n#### /add x  \n");
    assert_eq!(prompts(&transcript), [""; 0]);
    assert_eq!(transcript.entries[1].content, "/add x");
}

#[test]
fn an_empty_prompt_is_one() {
    let transcript = transcript("# aider chat started at 2025-01-01 00:00:00\n\n#### <blank>  \n");
    assert_eq!(prompts(&transcript), [""]);
}

#[test]
fn a_report_without_an_answer_counts_too() {
    let transcript =
        transcript("> Tokens: 10 sent, 0 received.  \n> Tokens: 5 sent, 1 received.  \n");
    assert_eq!(transcript.session.totals.usage.input, 15);
}

#[test]
fn windows_line_ends_are_none_of_the_text() {
    let transcript = transcript(&SAMPLE.replace('\n', "\r\n"));
    assert_eq!(prompts(&transcript), ["Fix the parser\n  and its tests", "Thanks"]);
}

#[test]
fn recognises_histories_by_content() {
    let recognised = |name: &str, text: &str| {
        is_history(&SessionFile::in_memory(name, name, text.as_bytes().to_vec())).unwrap()
    };
    assert!(recognised("any.txt", SAMPLE));
    assert!(recognised("chat-history.md", &format!("cut off\n{SAMPLE}")));
    assert!(!recognised("README.md", &format!("How it looks:\n{SAMPLE}")));
    assert!(!recognised(".aider.chat.history.md", "# Notes\n"));
}

#[test]
fn each_chat_is_a_session_wherever_the_project_is() {
    let folder = tempfile::tempdir().unwrap();
    let chat = |time: &str, prompt: &str| {
        format!("\n# aider chat started at {time}\n\n#### {prompt}  \n\nOk.\n")
    };
    let history = [
        "cut off\n".to_owned(),
        chat("2025-07-15 11:38:37", "one"),
        chat("2025-07-15 11:38:37", "two"),
        chat("2025-07-16 00:00:00", "three"),
    ];
    let file = folder.path().join(".aider.chat.history.md");
    std::fs::write(&file, history.concat()).unwrap();
    let bundles = READER.find_at(&file).unwrap();
    let chats: Vec<_> =
        bundles.iter().map(|it| reader::read_transcript(&READER, it).unwrap()).collect();
    let ids: Vec<_> = chats.iter().map(|chat| chat.session.id.as_str()).collect();
    assert_eq!(
        ids,
        ["aider-2025-07-15T11-38-37", "aider-2025-07-15T11-38-37-2", "aider-2025-07-16T00-00-00"]
    );
    let asked: Vec<_> = chats.iter().flat_map(|chat| prompts(chat)).collect();
    assert_eq!(asked, ["one", "two", "three"]);
    assert_eq!(chats[0].entries[0].content, "cut off");
    assert_eq!(chats[1].session.started.unwrap().to_string(), "2025-07-15T11:38:37");
    let project = folder.path().display().to_string();
    assert_eq!(chats[2].session.project.as_deref(), Some(project.as_str()));
    assert_eq!(crate::decoding::temporary_vault::check_kept_sessions(&READER, &file), 3);
}

#[test]
fn a_history_that_was_kept_as_one_session_stays_one() {
    let two = SAMPLE.repeat(2);
    let whole = transcript(&two);
    assert_eq!(prompts(&whole).len(), 4);
    assert_eq!(whole.session.native_id.as_deref(), Some("aider-repo"));
    let chosen =
        SessionBundle { key: Some("2025-07-15T11-38-37-2".into()), ..bundle(two.as_bytes()) };
    assert_eq!(prompts(&reader::read_transcript(&READER, &chosen).unwrap()).len(), 2);
    let missing = SessionBundle { key: Some("2024".into()), ..chosen };
    assert!(reader::read_transcript(&READER, &missing).is_err());
}

#[test]
fn a_cut_anywhere_is_read() {
    for end in 0..SAMPLE.len() {
        reader::read_transcript(&READER, &bundle(&SAMPLE.as_bytes()[..end])).unwrap();
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        reader::read_transcript(&READER, &bundle(&bytes)).unwrap();
    }
}
