//! Joins recorded API traffic.
//!
//! Entries that the agent's files also have only fill in missing fields. The others go to sources of their own, named
//! `wire`: instructions, reminders, and whole calls such as those for a title. Usage of an API message counts once: the
//! recorded one is dropped if the agent's file has the same answer.

use std::collections::HashSet;

use super::{AgentEntryIndex, EntryKey, WIRE_SOURCE, complete_entry};
use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE};

/// Joins both lists: the agent's own entries, completed from the traffic, then those that only the traffic has.
pub(super) fn join_traffic(mut own: Vec<Entry>, traffic: Vec<Entry>) -> Vec<Entry> {
    let mut known = AgentEntryIndex::new(&own, EntryKey::entry_keys);
    let is_billed = own.iter().any(|entry| entry.usage.is_some());
    let matches = match_entries(&mut known, &traffic);
    // If one entry of an answer matches, the whole answer is known. Its usage is on only one of its entries.
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
            Some(at) => complete_from_traffic(&mut own[*at], entry, !is_billed),
            None => only_on_wire.push((entry, is_known)),
        }
    }
    let rest: Vec<Entry> = only_on_wire
        .into_iter()
        .filter(|(entry, _)| {
            !entry.content.is_empty() || entry.usage.is_some() || is_call_or_result(entry)
        })
        .map(|(entry, is_known)| {
            let mut entry = entry.clone();
            entry.source = match entry.source.as_str() {
                PRIMARY_SOURCE => WIRE_SOURCE.to_owned(),
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

fn is_call_or_result(entry: &Entry) -> bool {
    matches!(entry.kind, EntryKind::ToolCall | EntryKind::ToolResult)
}

/// The agent's entry for each recorded entry, each at most once. Ids and texts match first, because the same call may
/// occur twice.
fn match_entries(known: &mut AgentEntryIndex, traffic: &[Entry]) -> Vec<Option<usize>> {
    let keys: Vec<Vec<EntryKey>> = traffic.iter().map(EntryKey::entry_keys).collect();
    let mut matches: Vec<Option<usize>> =
        keys.iter().map(|keys| known.find_unmatched(keys.first()?)).collect();
    for (keys, matched) in keys.iter().zip(&mut matches) {
        *matched =
            matched.or_else(|| keys.iter().skip(1).find_map(|key| known.find_unmatched(key)));
    }
    matches
}

/// Fills in missing fields of the agent's entry.
fn complete_from_traffic(own: &mut Entry, traffic: &Entry, with_usage: bool) {
    complete_entry(own, traffic, "wire");
    if with_usage {
        own.usage = own.usage.or(traffic.usage);
        own.message_id = own.message_id.take().or_else(|| traffic.message_id.clone());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use steno_model::entry::Role;
    use steno_model::usage::Usage;

    fn new_entry(role: Role, text: &str) -> Entry {
        Entry { source: PRIMARY_SOURCE.to_owned(), ..Entry::new(role, EntryKind::Text, text) }
    }

    fn billed(mut entry: Entry, message: &str, output: u64) -> Entry {
        entry.message_id = Some(message.to_owned());
        entry.usage = Some(Usage { output, ..Usage::default() });
        entry
    }

    #[test]
    fn each_message_counts_once_and_calls_for_titles_have_a_source_of_their_own() {
        let own = vec![
            new_entry(Role::User, "Count the herons."),
            billed(new_entry(Role::Assistant, "There are\nthree."), "own-1", 7),
        ];
        let traffic = vec![
            new_entry(Role::System, "You are an agent."),
            new_entry(Role::User, "Count the herons."),
            billed(new_entry(Role::Assistant, "There are three."), "resp_1", 7),
            new_entry(Role::User, "Give this a title."),
            billed(new_entry(Role::Assistant, "Herons"), "resp_2", 2),
        ];
        let joined = join_traffic(own, traffic);
        let sources: Vec<_> = joined.iter().map(|entry| entry.source.as_str()).collect();
        assert_eq!(sources, [PRIMARY_SOURCE, PRIMARY_SOURCE, "wire", "wire", "wire"]);
        let tokens = joined.iter().filter_map(|entry| entry.usage).map(|usage| usage.output);
        assert_eq!(tokens.sum::<u64>(), 9);
    }

    #[test]
    fn tokens_that_an_agent_does_not_write_down_come_from_the_traffic() {
        let own = vec![new_entry(Role::Assistant, "Three.")];
        let joined =
            join_traffic(own, vec![billed(new_entry(Role::Assistant, "Three."), "resp_1", 7)]);
        assert_eq!(joined.len(), 1);
        assert_eq!(joined[0].usage.map(|usage| usage.output), Some(7));
    }

    #[test]
    fn calls_that_the_api_gives_no_ids_are_recognised_by_their_input() {
        let call = |id: Option<&str>, path: &str| Entry {
            tool_call_id: id.map(str::to_owned),
            tool_name: Some("read".to_owned()),
            tool_input: Some(json!({"path": path})),
            ..Entry::new(Role::Assistant, EntryKind::ToolCall, "")
        };
        let own = vec![
            billed(call(Some("read-1"), "a"), "own-1", 7),
            billed(call(Some("read-2"), "a"), "own-2", 8),
            billed(call(Some("read-3"), "b"), "own-3", 9),
        ];
        let traffic = vec![
            billed(call(None, "a"), "resp_1", 7),
            billed(call(Some("read-1"), "a"), "resp_2", 8),
            billed(call(None, "c"), "resp_3", 5),
        ];
        let joined = join_traffic(own, traffic);
        let tokens = joined.iter().filter_map(|entry| entry.usage).map(|usage| usage.output);
        assert_eq!(tokens.collect::<Vec<_>>(), [7, 8, 9, 5]);
    }
}
