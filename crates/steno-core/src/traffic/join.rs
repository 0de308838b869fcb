//! Joins what the gateway recorded of a session with what the agent wrote down itself.
//!
//! The agent's own files give the conversation. Of the traffic, what they have too only completes them. What they lack is
//! kept in sources of its own, named `wire`: instructions, reminders, and whole calls such as those for a title. Tokens of
//! an API message count once: the traffic's are dropped where the agent's file has the same answer.

use std::collections::{HashMap, HashSet};

use crate::entry::{Entry, Kind, PRIMARY, Role};
use crate::json::Value;

/// The source of what only the traffic has.
pub const WIRE_SOURCE: &str = "wire";

/// Whether an entry is known from the recorded traffic only.
pub fn is_only_on_wire(entry: &Entry) -> bool {
    entry.source == WIRE_SOURCE || entry.source.starts_with("wire:")
}

/// Whether an entry was made from recorded traffic.
pub(crate) fn is_of_traffic(entry: &Entry) -> bool {
    entry
        .metadata
        .as_ref()
        .is_some_and(|metadata| metadata.contains_key("adapter") && metadata.contains_key("api"))
}

/// The entries of both: the agent's own, each completed by the traffic, then what only the traffic has.
pub(crate) fn join_traffic(mut own: Vec<Entry>, traffic: Vec<Entry>) -> Vec<Entry> {
    let mut known = OwnEntries::new(&own);
    let is_billed = own.iter().any(|entry| entry.usage.is_some());
    let matches: Vec<Option<usize>> = traffic.iter().map(|entry| known.find(entry)).collect();
    // An answer is known as a whole: its tokens stand at one of its entries.
    let answered: HashSet<&str> = traffic
        .iter()
        .zip(&matches)
        .filter(|(_, own)| own.is_some())
        .filter_map(|(entry, _)| entry.message_id.as_deref())
        .collect();
    let mut only_on_wire = Vec::new();
    for (entry, at) in traffic.iter().zip(&matches) {
        let is_known = entry.message_id.as_deref().is_some_and(|id| answered.contains(id));
        match at {
            Some(at) => complete(&mut own[*at], entry, !is_billed),
            None => only_on_wire.push((entry, is_known)),
        }
    }
    let rest: Vec<Entry> = only_on_wire
        .into_iter()
        .filter(|(entry, _)| !entry.content.is_empty() || entry.usage.is_some() || has_call(entry))
        .map(|(entry, is_known)| {
            let mut entry = entry.clone();
            entry.source = match entry.source.as_str() {
                PRIMARY => WIRE_SOURCE.to_owned(),
                other => format!("{WIRE_SOURCE}:{other}"),
            };
            if is_billed && is_known {
                entry.usage = None;
            }
            entry
        })
        .collect();
    own.into_iter().chain(rest).collect()
}

fn has_call(entry: &Entry) -> bool {
    matches!(entry.kind, Kind::ToolCall | Kind::ToolResult)
}

/// What an entry of either side is known by.
#[derive(PartialEq, Eq, Hash)]
enum EntryKey {
    Tool(bool, String),
    Said(Role, Kind, String),
}

fn key_of(entry: &Entry) -> Option<EntryKey> {
    match (entry.kind, &entry.tool_call_id) {
        (Kind::ToolCall | Kind::ToolResult | Kind::Error, Some(id)) => {
            Some(EntryKey::Tool(entry.kind == Kind::ToolCall, id.clone()))
        }
        (Kind::Text | Kind::Thinking, _) => {
            let words: String = entry.content.split_whitespace().collect();
            let is_empty = words.is_empty();
            (!is_empty).then(|| EntryKey::Said(entry.role.clone(), entry.kind, words))
        }
        _ => None,
    }
}

/// The agent's own entries, each of which is found once.
struct OwnEntries {
    by_key: HashMap<EntryKey, Vec<usize>>,
}

impl OwnEntries {
    fn new(own: &[Entry]) -> Self {
        let mut by_key: HashMap<EntryKey, Vec<usize>> = HashMap::new();
        // From the end, so that the first is found first.
        for (at, entry) in own.iter().enumerate().rev() {
            if let Some(key) = key_of(entry) {
                by_key.entry(key).or_default().push(at);
            }
        }
        Self { by_key }
    }

    fn find(&mut self, entry: &Entry) -> Option<usize> {
        self.by_key.get_mut(&key_of(entry)?)?.pop()
    }
}

/// Fills in what an agent's own entry lacks.
fn complete(own: &mut Entry, traffic: &Entry, with_usage: bool) {
    own.created_at = own.created_at.or(traffic.created_at);
    own.model = own.model.take().or_else(|| traffic.model.clone());
    if with_usage {
        own.usage = own.usage.or(traffic.usage);
        own.message_id = own.message_id.take().or_else(|| traffic.message_id.clone());
    }
    if let Some(metadata) = &traffic.metadata {
        let metadata = Value::Object(metadata.clone());
        own.metadata.get_or_insert_default().insert("wire".to_owned(), metadata);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::Usage;

    fn said(role: Role, text: &str) -> Entry {
        Entry { source: PRIMARY.to_owned(), ..Entry::new(role, Kind::Text, text) }
    }

    fn billed(mut entry: Entry, message: &str, output: u64) -> Entry {
        entry.message_id = Some(message.to_owned());
        entry.usage = Some(Usage { output, ..Usage::default() });
        entry
    }

    #[test]
    fn each_message_counts_once_and_calls_for_titles_have_a_source_of_their_own() {
        let own = vec![
            said(Role::User, "Count the herons."),
            billed(said(Role::Assistant, "There are\nthree."), "own-1", 7),
        ];
        let traffic = vec![
            said(Role::System, "You are an agent."),
            said(Role::User, "Count the herons."),
            billed(said(Role::Assistant, "There are three."), "resp_1", 7),
            said(Role::User, "Give this a title."),
            billed(said(Role::Assistant, "Herons"), "resp_2", 2),
        ];
        let joined = join_traffic(own, traffic);
        let sources: Vec<_> = joined.iter().map(|entry| entry.source.as_str()).collect();
        assert_eq!(sources, [PRIMARY, PRIMARY, "wire", "wire", "wire"]);
        let tokens = joined.iter().filter_map(|entry| entry.usage).map(|usage| usage.output);
        assert_eq!(tokens.sum::<u64>(), 9);
    }

    #[test]
    fn tokens_that_an_agent_does_not_write_down_come_from_the_traffic() {
        let own = vec![said(Role::Assistant, "Three.")];
        let joined = join_traffic(own, vec![billed(said(Role::Assistant, "Three."), "resp_1", 7)]);
        assert_eq!(joined.len(), 1);
        assert_eq!(joined[0].usage.map(|usage| usage.output), Some(7));
    }
}
