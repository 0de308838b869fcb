//! Hooks in JSON settings with comments. Edits only the text of our own entries.

use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use steno_agents::agent::hooks::HookShape;

use super::HookRegistration;
use crate::agent_settings::SettingsRefusal;
use crate::agent_settings::json_settings::{parse_json_settings, wrong_type};

/// Returns the events at which Steno is called, with the command.
pub(super) fn find_calls(
    text: &str,
    registration: &HookRegistration<'_>,
) -> Result<Vec<(String, String)>, SettingsRefusal> {
    let root = parse_json_settings(text)?;
    let mut calls = Vec::new();
    for event in event_properties(&root) {
        let name = event.decoded_name().unwrap_or_default();
        for entry in find_entries(&event, registration) {
            calls.push((name.clone(), entry.command));
        }
    }
    Ok(calls)
}

/// Adds Steno to each event.
pub(super) fn add_hooks(
    text: &str,
    registration: &HookRegistration<'_>,
) -> Result<String, SettingsRefusal> {
    let root = parse_json_settings(text)?;
    let top =
        root.object_value_or_create().ok_or_else(|| wrong_type("the settings", "an object"))?;
    let known = registration.agent.hooks;
    if known.shape != HookShape::Groups && top.get("version").is_none() {
        top.append("version", CstInputValue::Number("1".to_owned()));
    }
    let hooks =
        top.object_value_or_create("hooks").ok_or_else(|| wrong_type("`hooks`", "an object"))?;
    for event in known.events {
        let list = hooks.array_value_or_create(event);
        let list = list.ok_or_else(|| wrong_type(&format!("`hooks.{event}`"), "a list"))?;
        list.append(new_entry(registration));
    }
    let end = if text.is_empty() { "\n" } else { "" };
    Ok(format!("{root}{end}"))
}

/// Removes Steno, and the lists that become empty.
pub(super) fn remove_hooks(
    text: &str,
    registration: &HookRegistration<'_>,
) -> Result<String, SettingsRefusal> {
    let root = parse_json_settings(text)?;
    let mut any = false;
    for event in event_properties(&root) {
        for entry in find_entries(&event, registration) {
            any = true;
            entry.node.remove();
            if let Some((list, group)) = entry.group
                && list.elements().is_empty()
            {
                group.remove();
            }
        }
        if any && event.array_value().is_some_and(|list| list.elements().is_empty()) {
            event.remove();
        }
    }
    let hooks = root.object_value().and_then(|top| top.get("hooks"));
    if let Some(hooks) = hooks.filter(|hooks| any && is_empty(hooks)) {
        hooks.remove();
    }
    Ok(root.to_string())
}

fn is_empty(property: &CstObjectProp) -> bool {
    property.object_value().is_some_and(|object| object.properties().is_empty())
}

/// One of our commands in the settings.
struct JsonHookEntry {
    command: String,
    node: CstNode,
    /// The list that contains it, and the group of the list.
    group: Option<(CstArray, CstNode)>,
}

fn find_entries(event: &CstObjectProp, registration: &HookRegistration<'_>) -> Vec<JsonHookEntry> {
    let mut entries = Vec::new();
    let mut add = |field: &str, node: CstNode, group: Option<(CstArray, CstNode)>| {
        let command = node.as_object().and_then(|object| text_field(&object, field));
        if let Some(command) = command.filter(|command| registration.is_ours(command)) {
            entries.push(JsonHookEntry { command, node, group });
        }
    };
    for node in event.array_value().iter().flat_map(CstArray::elements) {
        match registration.agent.hooks.shape {
            HookShape::Commands(field) => add(field, node, None),
            _ => {
                let list = node.as_object().and_then(|group| group.array_value("hooks"));
                for command in list.iter().flat_map(CstArray::elements) {
                    add("command", command, list.clone().map(|list| (list, node.clone())));
                }
            }
        }
    }
    entries
}

fn text_field(object: &CstObject, field: &str) -> Option<String> {
    object.get(field)?.value()?.as_string_lit()?.decoded_value().ok()
}

fn event_properties(root: &CstRootNode) -> Vec<CstObjectProp> {
    let hooks = root.object_value().and_then(|top| top.object_value("hooks"));
    hooks.map(|hooks| hooks.properties()).unwrap_or_default()
}

/// Creates the entry for an event's list.
fn new_entry(registration: &HookRegistration<'_>) -> CstInputValue {
    let text = |text: &str| CstInputValue::String(text.to_owned());
    let kind = || ("type".to_owned(), text("command"));
    let command = |field: &str| (field.to_owned(), text(&registration.hook_command()));
    match registration.agent.hooks.shape {
        HookShape::Commands("command") => CstInputValue::Object(vec![command("command")]),
        HookShape::Commands(field) => CstInputValue::Object(vec![kind(), command(field)]),
        _ => {
            let call = CstInputValue::Object(vec![kind(), command("command")]);
            CstInputValue::Object(vec![("hooks".to_owned(), CstInputValue::Array(vec![call]))])
        }
    }
}
