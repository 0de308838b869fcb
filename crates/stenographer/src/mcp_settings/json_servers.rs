//! Servers in JSON settings with comments. Edits only the text of our own entry.

use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use steno_agents::agent::mcp_client::McpServerShape;

use super::{SERVER_NAME, STORE_VARIABLE, ServerCommand};
use crate::agent_settings::SettingsRefusal;
use crate::agent_settings::json_settings::{parse_json_settings, wrong_type};

/// Returns the setting that lists the servers.
fn section_name(shape: McpServerShape) -> &'static str {
    match shape {
        McpServerShape::ContextServers => "context_servers",
        McpServerShape::CommandList => "mcp",
        McpServerShape::Servers { .. } | McpServerShape::TomlTable => "mcpServers",
    }
}

/// Returns the field of a server that has its variables.
fn variables_name(shape: McpServerShape) -> &'static str {
    if shape == McpServerShape::CommandList { "environment" } else { "env" }
}

/// Returns the command of the server with our name.
pub(super) fn find_server(
    text: &str,
    shape: McpServerShape,
) -> Result<Option<ServerCommand>, SettingsRefusal> {
    let root = parse_json_settings(text)?;
    let Some(server) = server_property(&root, shape)? else { return Ok(None) };
    let Some(server) = server.object_value() else {
        return Err(wrong_type(&format!("the server `{SERVER_NAME}`"), "an object"));
    };
    let mut words = texts_of(&server, "command");
    words.extend(texts_of(&server, "args"));
    let variables = server.object_value(variables_name(shape));
    let store = variables.and_then(|variables| texts_of(&variables, STORE_VARIABLE).pop());
    Ok(Some(ServerCommand { words, store }))
}

/// Adds the server.
pub(super) fn add_server(
    text: &str,
    shape: McpServerShape,
    command: &ServerCommand,
) -> Result<String, SettingsRefusal> {
    let root = parse_json_settings(text)?;
    let top =
        root.object_value_or_create().ok_or_else(|| wrong_type("the settings", "an object"))?;
    let section = section_name(shape);
    let servers = top.object_value_or_create(section);
    let servers = servers.ok_or_else(|| wrong_type(&format!("`{section}`"), "an object"))?;
    servers.append(SERVER_NAME, server_value(shape, command));
    let end = if text.is_empty() { "\n" } else { "" };
    Ok(format!("{root}{end}"))
}

/// Removes the server, and the section if it becomes empty.
pub(super) fn remove_server(text: &str, shape: McpServerShape) -> Result<String, SettingsRefusal> {
    let root = parse_json_settings(text)?;
    if let Some(server) = server_property(&root, shape)? {
        server.remove();
    }
    let section = root.object_value().and_then(|top| top.get(section_name(shape)));
    let is_empty = |section: &CstObjectProp| {
        section.object_value().is_some_and(|servers| servers.properties().is_empty())
    };
    if let Some(section) = section.filter(is_empty) {
        section.remove();
    }
    Ok(root.to_string())
}

fn server_property(
    root: &CstRootNode,
    shape: McpServerShape,
) -> Result<Option<CstObjectProp>, SettingsRefusal> {
    let section = section_name(shape);
    let Some(property) = root.object_value().and_then(|top| top.get(section)) else {
        return Ok(None);
    };
    let servers = property.object_value();
    let servers = servers.ok_or_else(|| wrong_type(&format!("`{section}`"), "an object"))?;
    Ok(servers.get(SERVER_NAME))
}

/// Returns a text, or the texts of a list.
fn texts_of(object: &CstObject, field: &str) -> Vec<String> {
    let Some(value) = object.get(field).and_then(|property| property.value()) else {
        return Vec::new();
    };
    let text = |node: &CstNode| node.as_string_lit()?.decoded_value().ok();
    match value.as_array() {
        Some(list) => list.elements().iter().filter_map(text).collect(),
        None => text(&value).into_iter().collect(),
    }
}

/// Creates the server's entry.
fn server_value(shape: McpServerShape, command: &ServerCommand) -> CstInputValue {
    let text = |text: &str| CstInputValue::String(text.to_owned());
    let list =
        |words: &[String]| CstInputValue::Array(words.iter().map(|word| text(word)).collect());
    let (program, arguments) = command.words.split_first().expect("a command has a program");
    let mut fields: Vec<(&str, CstInputValue)> = Vec::new();
    match shape {
        McpServerShape::CommandList => {
            fields.push(("type", text("local")));
            fields.push(("command", list(&command.words)));
            fields.push(("enabled", CstInputValue::Bool(true)));
        }
        McpServerShape::ContextServers => {
            fields.push(("source", text("custom")));
            fields.push(("command", text(program)));
            fields.push(("args", list(arguments)));
        }
        McpServerShape::Servers { kind, lists_tools } => {
            fields.extend(kind.map(|kind| ("type", text(kind))));
            fields.push(("command", text(program)));
            fields.push(("args", list(arguments)));
            if lists_tools {
                fields.push(("tools", CstInputValue::Array(vec![text("*")])));
            }
        }
        McpServerShape::TomlTable => {}
    }
    if let Some(store) = &command.store {
        let variables = vec![(STORE_VARIABLE.to_owned(), text(store))];
        fields.push((variables_name(shape), CstInputValue::Object(variables)));
    }
    CstInputValue::Object(
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    )
}
