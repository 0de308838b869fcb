use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use serde_json::json;

use crate::agents::gemini::READER;
use crate::reader;
use steno_model::entry::EntryKind;
use steno_vault::{SessionBundle, SessionFile};

/// A message: its id, whether a person typed it, and whether it has usage.
type Message = (u8, bool, bool);

#[derive(Clone, Debug)]
enum Line {
    Put(Message),
    Rewind(u8),
    Set(Vec<Message>),
}

/// The final chat: each message with the number in its last version.
#[derive(Default)]
struct Chat {
    seams: Vec<HashSet<u8>>,
    messages: Vec<(u8, u32)>,
    counted: HashMap<u8, u32>,
    next: u32,
}

impl Chat {
    fn apply(&mut self, line: &Line) -> String {
        match line {
            Line::Put(message) => {
                let number = self.number();
                self.put(message, number);
                message_json(message, number).to_string()
            }
            Line::Rewind(id) => {
                match self.messages.iter().position(|(own, _)| own == id) {
                    Some(at) => self.messages.truncate(at),
                    None => {
                        *self = Self {
                            counted: self.counted.clone(),
                            next: self.next,
                            ..Self::default()
                        }
                    }
                }
                json!({"$rewindTo": id.to_string()}).to_string()
            }
            Line::Set(messages) => {
                let stated: HashSet<_> = messages.iter().map(|(id, ..)| *id).collect();
                self.seams.push(self.messages.drain(..).map(|(id, _)| id).collect());
                self.seams.iter_mut().for_each(|lost| lost.retain(|id| !stated.contains(id)));
                self.seams.retain(|lost| !lost.is_empty());
                let new_messages = messages.iter().map(|message| {
                    let number = self.number();
                    let counted = self.counted.get(&message.0).filter(|_| !message.1);
                    self.put(message, counted.copied().unwrap_or(number));
                    message_json(message, number)
                });
                json!({"$set": {"messages": new_messages.collect::<Vec<_>>()}}).to_string()
            }
        }
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    fn put(&mut self, (id, _, is_counted): &Message, number: u32) {
        if *is_counted {
            self.counted.insert(*id, number);
        }
        match self.messages.iter_mut().find(|(own, _)| own == id) {
            Some(message) => message.1 = number,
            None => self.messages.push((*id, number)),
        }
    }
}

fn message_json((id, is_user, is_counted): &Message, number: u32) -> serde_json::Value {
    let kind = if *is_user { "user" } else { "gemini" };
    let mut message = json!({"id": id.to_string(), "type": kind, "content": number.to_string()});
    if *is_counted {
        message["tokens"] = json!({"output": 1});
    }
    message
}

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let message = || (0..5_u8, any::<bool>(), any::<bool>());
    let line = prop_oneof![
        4 => message().prop_map(Line::Put),
        1 => (0..6_u8).prop_map(Line::Rewind),
        1 => prop::collection::vec(message(), 0..4).prop_map(Line::Set),
    ];
    prop::collection::vec(line, 0..30)
}

proptest! {
    #[test]
    fn a_chat_ends_as_its_log_leaves_it(lines in lines()) {
        let mut chat = Chat::default();
        let mut log = "{\"sessionId\":\"s\",\"projectHash\":\"0\"}\n".to_owned();
        lines.iter().for_each(|line| log += &format!("{}\n", chat.apply(line)));
        let source = SessionFile::in_memory("chat.jsonl", "chat.jsonl", log.into_bytes());
        let read = reader::read_transcript(&READER, &SessionBundle::new("chat.jsonl", vec![source])).unwrap();
        let (seams, messages): (Vec<_>, Vec<_>) =
            read.entries.into_iter().partition(|entry| entry.kind == EntryKind::Compaction);
        prop_assert_eq!(seams.len(), chat.seams.len());
        let numbers: Vec<_> = chat.messages.iter().map(|(_, number)| number.to_string()).collect();
        let actual: Vec<_> = messages.into_iter().map(|message| message.content).collect();
        prop_assert_eq!(actual, numbers);
    }
}
