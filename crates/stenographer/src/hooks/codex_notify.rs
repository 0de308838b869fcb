//! `notify` in Codex's settings: one program as a list of arguments. Our hook calls the program that was there before.

use toml_edit::{Array, DocumentMut, Item, RawString, Value};

use super::HookRegistration;
use crate::agent_settings::toml_settings::{parse_toml_settings, restore_line_ends};
use crate::agent_settings::{SettingsRefusal, is_steno};

const NOTIFY_KEY: &str = "notify";

/// The command of Steno that agents call.
const HOOK_COMMAND: &str = "hook";

/// The argument before a previous program.
const PREVIOUS_PROGRAM_MARK: &str = "--";

/// Returns the program, if it is Steno.
pub(super) fn find_calls(
    text: &str,
    registration: &HookRegistration<'_>,
) -> Result<Vec<(String, String)>, SettingsRefusal> {
    let settings = parse_toml_settings(text)?;
    let program = notify_list(&settings)?
        .filter(|list| is_steno_call(list, registration))
        .and_then(|list| list.get(0));
    let program = program.and_then(Value::as_str);
    Ok(program.map(|program| (NOTIFY_KEY.to_owned(), program.to_owned())).into_iter().collect())
}

/// Adds our program as the first call.
pub(super) fn add_notify(
    text: &str,
    registration: &HookRegistration<'_>,
) -> Result<String, SettingsRefusal> {
    let mut settings = parse_toml_settings(text)?;
    let before = notify_list(&settings)?.cloned().filter(|list| !list.is_empty());
    let mut call = vec![registration.program, HOOK_COMMAND, registration.agent.name];
    call.extend(before.is_some().then_some(PREVIOUS_PROGRAM_MARK));
    let mut called = before.unwrap_or_default();
    if let Some(first) = called.get_mut(0)
        && value_prefix(first).is_empty()
    {
        first.decor_mut().set_prefix(" ");
    }
    for (at, argument) in call.into_iter().enumerate() {
        called.insert(at, argument);
    }
    settings[NOTIFY_KEY] = Item::Value(Value::Array(called));
    Ok(restore_line_ends(text, &settings.to_string()))
}

/// Restores the program that was there before Steno.
pub(super) fn remove_notify(
    text: &str,
    registration: &HookRegistration<'_>,
) -> Result<String, SettingsRefusal> {
    let mut settings = parse_toml_settings(text)?;
    let Some(mut called) =
        notify_list(&settings)?.filter(|list| is_steno_call(list, registration)).cloned()
    else {
        return Ok(text.to_owned());
    };
    let ours = if called.get(3).and_then(Value::as_str) == Some(PREVIOUS_PROGRAM_MARK) {
        4
    } else {
        called.len()
    };
    for _ in 0..ours {
        called.remove(0);
    }
    match called.get_mut(0) {
        Some(first) => {
            if value_prefix(first) == " " {
                first.decor_mut().set_prefix("");
            }
            settings[NOTIFY_KEY] = Item::Value(Value::Array(called));
        }
        None => {
            settings.remove(NOTIFY_KEY);
        }
    }
    Ok(restore_line_ends(text, &settings.to_string()))
}

fn value_prefix(value: &Value) -> &str {
    value.decor().prefix().and_then(RawString::as_str).unwrap_or_default()
}

fn is_steno_call(list: &Array, registration: &HookRegistration<'_>) -> bool {
    let argument = |at| list.get(at).and_then(Value::as_str);
    argument(0).is_some_and(is_steno)
        && argument(1) == Some(HOOK_COMMAND)
        && argument(2) == Some(registration.agent.name)
}

fn notify_list(settings: &DocumentMut) -> Result<Option<&Array>, SettingsRefusal> {
    let Some(item) = settings.get(NOTIFY_KEY) else { return Ok(None) };
    let texts = item.as_array().filter(|list| list.iter().all(Value::is_str));
    texts.map(Some).ok_or_else(|| SettingsRefusal {
        line: 1,
        reason: format!("`{NOTIFY_KEY}` should be a list of strings"),
    })
}
