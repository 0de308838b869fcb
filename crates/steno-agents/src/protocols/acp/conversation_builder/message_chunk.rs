//! Builds messages: chunks extend a message, whole messages replace its content.

use super::super::content_block;
use super::AcpConversationBuilder;
use crate::decoding::json_fields;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};

/// Identifies a message. A thought and an answer may share one id, so role and kind are part of the key.
pub(super) type MessageKey = (Role, EntryKind, String);

impl AcpConversationBuilder {
    /// Appends a chunk to its message.
    pub(super) fn append_chunk(&mut self, role: Role, kind: EntryKind, update: &Object) {
        let at = self.message_index(role, kind, update);
        if let Some(content) = update.get("content") {
            content_block::push_block(&mut self.entries[at].content, content);
        }
        self.note_update_meta(at, update);
    }

    /// Replaces the content of a message.
    pub(super) fn replace_message(&mut self, role: Role, kind: EntryKind, update: &Object) {
        let at = self.message_index(role, kind, update);
        match update.get("content") {
            None => {}
            Some(content) => self.entries[at].content = content_block::blocks_text(content),
        }
        self.note_update_meta(at, update);
    }

    /// The index of the entry for a message. Adds an entry if there is none.
    fn message_index(&mut self, role: Role, kind: EntryKind, update: &Object) -> usize {
        let id = json_fields::text_field(update, "messageId");
        let key = id.map(|id| (role.clone(), kind, id.to_owned()));
        let known = match &key {
            Some(key) => self.messages.get(key).copied(),
            None => self.open_message.filter(|at| {
                let open = &self.entries[*at];
                open.role == role && open.kind == kind && open.message_id.is_none()
            }),
        };
        let at = known.unwrap_or_else(|| {
            let mut entry = Entry::new(role, kind, "");
            entry.message_id = id.map(str::to_owned);
            self.push_entry(entry)
        });
        self.messages.extend(key.map(|key| (key, at)));
        self.open_message = Some(at);
        at
    }

    /// Stores the `_meta` of an update, and the model that it names, in the message's entry.
    fn note_update_meta(&mut self, at: usize, update: &Object) {
        let Some(meta) = update.get("_meta") else { return };
        let model = meta.get("_claude/model").and_then(Value::as_str);
        let entry = &mut self.entries[at];
        entry.model = model.map(str::to_owned).or(entry.model.take());
        self.note_meta(at, meta);
    }

    /// Adds a `_meta` value to an entry unless the entry already has the same value.
    pub(super) fn note_meta(&mut self, at: usize, meta: &Value) {
        let metadata = self.entries[at].metadata.get_or_insert_default();
        if !self.noted_metas.insert((at, blake3::hash(meta.to_string().as_bytes()))) {
            return;
        }
        match metadata.get_mut("_meta") {
            None => drop(metadata.insert("_meta".to_owned(), meta.clone())),
            Some(Value::Array(all)) => all.push(meta.clone()),
            Some(one) => *one = Value::Array(vec![one.take(), meta.clone()]),
        }
    }
}
