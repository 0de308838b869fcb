//! Restores texts that a sample stores as attachments into the messages that refer to them.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead};

use super::super::output::Output;
use crate::agent::walk::Walk;
use crate::durable::FileError;
use crate::json::Value;
use crate::problem::Problem;
use crate::sums::{Short, SumMap, Sums};
use steno_vault::Source;

/// The prefix of a reference to an attachment.
const MOVED: &str = "attachment://";

/// Limit for messages and attachments held in memory, in bytes.
const ROOM: u64 = 8 << 20;

/// The attachments of a sample. Their texts stay in the file.
pub(super) struct Attachments<'s> {
    source: &'s Source,
    /// Length of each attachment, by its name.
    lengths: SumMap<u64>,
    sums: Sums,
}

/// Messages with missing texts, and the messages after them.
#[derive(Default)]
pub(super) struct Waiting {
    messages: Vec<(usize, Value)>,
    wanted: HashSet<Short>,
    size: u64,
}

impl Waiting {
    pub(super) fn is_begun(&self) -> bool {
        !self.wanted.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.size > ROOM
    }

    pub(super) fn push(&mut self, index: usize, message: Value, size: u64) {
        self.messages.push((index, message));
        self.size += size;
    }
}

impl<'s> Attachments<'s> {
    /// The field of a sample that holds its attachments.
    pub(super) const FIELD: &'static str = "attachments";

    pub(super) fn of(source: &'s Source) -> Self {
        Self { source, lengths: SumMap::default(), sums: Sums::default() }
    }

    /// Notes the lengths of the attachments in the next value.
    pub(super) fn note(&mut self, walk: &mut Walk<Box<dyn BufRead>>) -> io::Result<()> {
        walk.fields(&mut |walk, name| {
            let range = walk.place()?;
            self.lengths.put(self.sums.short(name), range.end - range.start);
            Ok(())
        })
    }

    /// Adds the attachments that `value` refers to.
    pub(super) fn look_for(&self, value: &Value, waiting: &mut Waiting) {
        match value {
            Value::String(text) => {
                let name = text.strip_prefix(MOVED).map(|name| self.sums.short(name));
                if let Some(name) = name
                    && let Some(length) = self.lengths.get(name)
                    && waiting.wanted.insert(name)
                {
                    waiting.size += length;
                }
            }
            Value::Array(values) => values.iter().for_each(|value| self.look_for(value, waiting)),
            Value::Object(fields) => {
                fields.values().for_each(|value| self.look_for(value, waiting));
            }
            _ => {}
        }
    }

    /// The waiting messages with their texts restored.
    pub(super) fn put_back(
        &self,
        mut waiting: Waiting,
        output: &mut Output<'_>,
    ) -> Result<Vec<(usize, Value)>, FileError> {
        if waiting.is_begun() {
            let texts = self.texts(&waiting.wanted, output)?;
            waiting.messages.iter_mut().for_each(|(_, message)| self.attach(message, &texts));
        }
        Ok(waiting.messages)
    }

    fn texts(
        &self,
        missing: &HashSet<Short>,
        output: &mut Output<'_>,
    ) -> Result<HashMap<Short, String>, FileError> {
        let mut texts = HashMap::new();
        let mut take = |walk: &mut Walk<Box<dyn BufRead>>, name: &str| {
            let hash = self.sums.short(name);
            if !missing.contains(&hash) {
                return walk.pass();
            }
            match walk.value::<Value>()? {
                Ok(Value::String(text)) => _ = texts.insert(hash, text),
                Ok(_) => {}
                Err(reason) => {
                    let reason = format!("attachment {name}: {reason}");
                    output.problem(Problem::of(self.source.path(), reason));
                }
            }
            Ok(())
        };
        Walk::again(self.source, &mut |walk| {
            walk.fields(&mut |walk, name| match name {
                Self::FIELD => walk.fields(&mut take),
                _ => walk.pass(),
            })
        })?;
        Ok(texts)
    }

    fn attach(&self, value: &mut Value, texts: &HashMap<Short, String>) {
        match value {
            Value::String(text) => {
                let moved =
                    text.strip_prefix(MOVED).and_then(|name| texts.get(&self.sums.short(name)));
                if let Some(moved) = moved {
                    moved.clone_into(text);
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.attach(value, texts)),
            Value::Object(fields) => {
                fields.values_mut().for_each(|value| self.attach(value, texts));
            }
            _ => {}
        }
    }
}
