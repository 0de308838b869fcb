//! Gives tool results the names of their tools, for formats whose results state only the id of the call.

use steno_model::entry::{Entry, EntryKind};

use crate::decoding::shared_texts::SharedTexts;

/// The names of the tools that were called, by the ids of the calls.
#[derive(Debug, Default)]
pub(crate) struct CalledToolNames(SharedTexts);

impl CalledToolNames {
    /// Remembers the tool of a call; sets the tool of a result that has none.
    pub(crate) fn name_tool(&mut self, entry: &mut Entry) {
        let Some(id) = &entry.tool_call_id else { return };
        match (entry.kind, &entry.tool_name) {
            (EntryKind::ToolCall, Some(name)) => self.0.set(id, name),
            (EntryKind::ToolResult, None) => entry.tool_name = self.0.get(id).map(str::to_owned),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use steno_model::entry::Role;

    use super::*;

    #[test]
    fn a_result_gets_the_tool_of_its_call_unless_it_states_one() {
        let mut names = CalledToolNames::default();
        let mut name = |kind, id: Option<&str>, tool: Option<&str>| {
            let mut entry = Entry::new(Role::Tool, kind, "");
            (entry.tool_call_id, entry.tool_name) =
                (id.map(str::to_owned), tool.map(str::to_owned));
            names.name_tool(&mut entry);
            entry.tool_name
        };
        let (call, result) = (EntryKind::ToolCall, EntryKind::ToolResult);
        assert_eq!(name(result, Some("1"), None), None);
        assert_eq!(name(call, Some("1"), Some("bash")).as_deref(), Some("bash"));
        assert_eq!(name(result, Some("1"), None).as_deref(), Some("bash"));
        assert_eq!(name(result, Some("1"), Some("sh")).as_deref(), Some("sh"));
        assert_eq!(name(result, Some("2"), None), None);
        assert_eq!(name(result, None, None), None);
        assert_eq!(name(EntryKind::Text, Some("1"), None), None);
    }
}
