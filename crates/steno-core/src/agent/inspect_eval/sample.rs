//! Reads one sample and restores texts that it stores as attachments.
//!
//! The file is scanned several times, so that only a few messages are in memory: the first scan reads all other
//! fields.

use std::io::{self, BufRead};

use serde::Deserialize;

use super::super::fields::string;
use super::super::output::Output;
use super::attachments::{Attachments, Waiting};
use super::{KEPT, message};
use crate::agent::walk::{Walk, malformed};
use crate::durable::FileError;
use crate::entry::{Entry, EntryError, Kind, Role};
use crate::json::{Object, Value};
use crate::problem::Problem;
use crate::sums::{Short, SumMap, Sums};
use crate::timestamp::Timestamp;
use steno_vault::Source;

/// Fields of a sample to parse, in addition to the extra fields.
const STATED: [&str; 6] = ["uuid", "started_at", "completed_at", "error", "output", "model_usage"];

/// A sample with its messages still unread.
pub(super) struct Sample<'s> {
    source: &'s Source,
    /// The parsed fields.
    pub(super) stated: Value,
    messages: usize,
    /// Times of messages and tool results, by their ids.
    times: SumMap<Timestamp>,
    attachments: Attachments<'s>,
    sums: Sums,
}

impl<'s> Sample<'s> {
    /// Scans the sample in `source`. The inner error says why it is not a sample.
    pub(super) fn of(source: &'s Source) -> Result<Result<Self, Problem>, FileError> {
        let mut stated = Object::new();
        let (mut messages, mut times, sums) = (0, SumMap::default(), Sums::default());
        let mut attachments = Attachments::of(source);
        let passed = Walk::over(source, &mut |walk| {
            walk.fields(&mut |walk, name| match name {
                "messages" => walk.items(&mut |walk| {
                    messages += 1;
                    walk.pass()
                }),
                "events" => walk.items(&mut |walk| {
                    let time = walk.value::<Event>()?.ok().and_then(|event| event.time(&sums));
                    if let Some((id, time)) = time
                        && let Some(before) = times.put(id, time)
                    {
                        *before = time;
                    }
                    Ok(())
                }),
                Attachments::FIELD => attachments.note(walk),
                _ if STATED.contains(&name) || KEPT.contains(&name) => {
                    stated.insert(name.to_owned(), walk.value()?.map_err(malformed)?);
                    Ok(())
                }
                _ => walk.pass(),
            })
        })?;
        let stated = Value::Object(stated);
        Ok(passed.map(|()| Self { source, stated, messages, times, attachments, sums }))
    }

    /// Emits the entries.
    pub(super) fn tell(&self, output: &mut Output<'_>) -> Result<(), FileError> {
        let mut emitter = Telling { sample: self, output, answered: false };
        let mut taken = 0;
        while taken < self.messages {
            let waiting = self.tell_from(&mut taken, &mut emitter)?;
            for (index, message) in self.attachments.put_back(waiting, emitter.output)? {
                emitter.message(index, Ok(message));
            }
        }
        if let Some(reason) = string(&self.stated["error"]["message"]) {
            output.entry(Entry::new(Role::System, Kind::Error, reason));
        }
        Ok(())
    }

    /// Emits the messages after the first `taken` ones, up to the first with a missing text. Returns that message and
    /// as many of the following ones as fit in memory.
    fn tell_from(
        &self,
        taken: &mut usize,
        emitter: &mut Telling<'_, '_, '_>,
    ) -> Result<Waiting, FileError> {
        let (mut waiting, mut index) = (Waiting::default(), 0);
        let mut take = |walk: &mut Walk<Box<dyn BufRead>>| -> io::Result<()> {
            let at = index;
            index += 1;
            if at < *taken || waiting.is_full() {
                return walk.pass();
            }
            *taken = index;
            let start = walk.start()?;
            let message = walk.value::<Value>()?;
            let size = walk.start()? - start;
            if let Ok(message) = &message {
                self.attachments.look_for(message, &mut waiting);
            }
            match message {
                Ok(message) if waiting.is_begun() => waiting.push(at, message, size),
                message => emitter.message(at, message),
            }
            Ok(())
        };
        Walk::again(self.source, &mut |walk| {
            walk.fields(&mut |walk, name| match name {
                "messages" => walk.items(&mut take),
                _ => walk.pass(),
            })
        })?;
        Ok(waiting)
    }
}

/// The fields of an event that give a time.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Event {
    event: Value,
    id: Value,
    output: Value,
    completed: Value,
    timestamp: Value,
}

impl Event {
    /// The message or tool call of the event, and its time.
    fn time(&self, sums: &Sums) -> Option<(Short, Timestamp)> {
        let id = match self.event.as_str()? {
            "model" => &self.output["choices"][0]["message"]["id"],
            "tool" => &self.id,
            _ => return None,
        };
        let times = [&self.completed, &self.timestamp];
        let at = times.iter().find_map(|time| time.as_str()?.parse().ok())?;
        Some((sums.short(id.as_str()?), at))
    }
}

/// Emits the entries of a sample.
struct Telling<'t, 's, 'e> {
    sample: &'t Sample<'s>,
    output: &'t mut Output<'e>,
    answered: bool,
}

impl Telling<'_, '_, '_> {
    fn message(&mut self, index: usize, message: Result<Value, String>) {
        let not_an_object = || EntryError::NotAnObject.to_string();
        let message = match message.and_then(|message| match message.is_object() {
            true => Ok(message),
            false => Err(not_an_object()),
        }) {
            Ok(message) => message,
            Err(reason) => {
                let reason = format!("message {}: {reason}", index + 1);
                return self.output.problem(Problem::of(self.sample.source.path(), reason));
            }
        };
        let Sample { times, sums, .. } = self.sample;
        let ids = [&message["id"], &message["tool_call_id"]];
        let at = ids.iter().find_map(|id| times.get(sums.short(id.as_str()?))).copied();
        for mut entry in message::entries(&message, self.answered) {
            entry.created_at = at;
            entry.message_id = Some(string(&message["id"]).unwrap_or(format!("message-{index}")));
            self.output.entry(entry);
        }
        self.answered |= message["role"] == "assistant";
    }
}
