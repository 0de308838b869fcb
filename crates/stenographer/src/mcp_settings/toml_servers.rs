//! Servers in Codex's settings: the table `mcp_servers`.

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::{SERVER_NAME, STORE_VARIABLE, ServerCommand};
use crate::agent_settings::SettingsRefusal;
use crate::agent_settings::toml_settings::{parse_toml_settings, restore_line_ends};

const SECTION_NAME: &str = "mcp_servers";

/// Returns the command of the server with our name.
pub(super) fn find_server(text: &str) -> Result<Option<ServerCommand>, SettingsRefusal> {
    let settings = parse_toml_settings(text)?;
    let Some(servers) = settings.get(SECTION_NAME) else { return Ok(None) };
    let servers = servers.as_table_like().ok_or_else(not_a_table)?;
    let Some(server) = servers.get(SERVER_NAME) else { return Ok(None) };
    let server = server.as_table_like().ok_or_else(not_a_table)?;
    let program = server.get("command").and_then(Item::as_str).map(str::to_owned);
    let arguments = server.get("args").and_then(Item::as_array);
    let arguments = arguments.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    let words = program.into_iter().chain(arguments).collect();
    let variables = server.get("env").and_then(Item::as_table_like);
    let store = variables.and_then(|variables| variables.get(STORE_VARIABLE)?.as_str());
    Ok(Some(ServerCommand { words, store: store.map(str::to_owned) }))
}

/// Adds the server as a table of its own, after all others.
pub(super) fn add_server(text: &str, command: &ServerCommand) -> Result<String, SettingsRefusal> {
    let mut settings = parse_toml_settings(text)?;
    let (program, arguments) = command.words.split_first().expect("a command has a program");
    let mut server = Table::new();
    server.insert("command", toml_edit::value(program));
    server.insert("args", toml_edit::value(arguments.iter().collect::<Array>()));
    if let Some(store) = &command.store {
        let variables: InlineTable = [(STORE_VARIABLE, store)].into_iter().collect();
        server.insert("env", toml_edit::value(variables));
    }
    if !text.is_empty() {
        server.decor_mut().set_prefix("\n");
    }
    servers_table(&mut settings)?.insert(SERVER_NAME, Item::Table(server));
    Ok(restore_line_ends(text, &settings.to_string()))
}

/// Removes the server, and the section if it becomes empty.
pub(super) fn remove_server(text: &str) -> Result<String, SettingsRefusal> {
    let mut settings = parse_toml_settings(text)?;
    let servers = servers_table(&mut settings)?;
    servers.remove(SERVER_NAME);
    if servers.is_empty() {
        settings.remove(SECTION_NAME);
    }
    Ok(restore_line_ends(text, &settings.to_string()))
}

fn servers_table(settings: &mut DocumentMut) -> Result<&mut dyn TableLike, SettingsRefusal> {
    let section = settings.entry(SECTION_NAME).or_insert_with(|| {
        let mut section = Table::new();
        section.set_implicit(true);
        Item::Table(section)
    });
    section.as_table_like_mut().ok_or_else(not_a_table)
}

fn not_a_table() -> SettingsRefusal {
    SettingsRefusal { line: 1, reason: format!("`{SECTION_NAME}` should be a table of tables") }
}
