//! Messages: chunks add to the one that they belong to, whole messages replace what they say.

use super::super::block;
use super::Fold;
use crate::agent::fields;
use crate::entry::{Entry, Kind, Role};
use crate::json::{Object, Value};

/// What names a message: an agent's thought and its answer may share one id.
pub(super) type Key = (Role, Kind, String);

impl Fold {
    /// A chunk of a message.
    pub(super) fn chunk(&mut self, role: Role, kind: Kind, update: &Object) {
        let at = self.saying(role, kind, update);
        if let Some(content) = update.get("content") {
            block::push(&mut self.entries[at].content, content);
        }
        self.beside(at, update);
    }

    /// A whole message, which takes the place of what it said before.
    pub(super) fn whole(&mut self, role: Role, kind: Kind, update: &Object) {
        let at = self.saying(role, kind, update);
        match update.get("content") {
            None => {}
            Some(content) => self.entries[at].content = block::texts(content),
        }
        self.beside(at, update);
    }

    /// The entry that a message belongs to; a new one where none is known.
    fn saying(&mut self, role: Role, kind: Kind, update: &Object) -> usize {
        let id = fields::text(update, "messageId");
        let key = id.map(|id| (role.clone(), kind, id.to_owned()));
        let known = match &key {
            Some(key) => self.messages.get(key).copied(),
            None => self.open.filter(|at| {
                let open = &self.entries[*at];
                open.role == role && open.kind == kind && open.message_id.is_none()
            }),
        };
        let at = known.unwrap_or_else(|| {
            let mut entry = Entry::new(role, kind, "");
            entry.message_id = id.map(str::to_owned);
            self.push(entry)
        });
        self.messages.extend(key.map(|key| (key, at)));
        self.open = Some(at);
        at
    }

    /// What stands beside a message: the agent's own words, and the session of a subagent.
    fn beside(&mut self, at: usize, update: &Object) {
        let Some(meta) = update.get("_meta") else { return };
        let model = meta.get("_claude/model").and_then(Value::as_str);
        let entry = &mut self.entries[at];
        entry.model = model.map(str::to_owned).or(entry.model.take());
        self.note_meta(at, meta);
    }

    /// Adds a `_meta` value to those of an entry, unless it has the same one already.
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
