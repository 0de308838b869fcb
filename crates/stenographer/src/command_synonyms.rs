//! Suggests a command for the name that another program gives it, such as `search` for `grep`.

use clap::error::{ContextKind, ContextValue};

/// Names of commands in other programs, and our own commands.
const COMMAND_SYNONYMS: &[(&[&str], &str)] = &[
    (&["find", "grep", "query"], "search"),
    (&["delete", "erase", "remove", "rm"], "forget"),
    (&["clean", "gc"], "prune"),
    (&["history", "ls", "sessions"], "list"),
    (&["open", "print", "read", "view"], "show"),
    (&["page", "ui", "web"], "serve"),
    (&["price", "spend", "tokens", "usage"], "cost"),
    (&["continue"], "resume"),
    (&["compare"], "diff"),
    (&["check", "setup"], "doctor"),
    (&["scan"], "secrets"),
];

/// Suggests our command instead of one that is merely spelled alike, else the most alike one first.
pub(crate) fn suggest_other_name(mut error: clap::Error) -> clap::Error {
    let name = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(name)) => name.as_str(),
        _ => return error,
    };
    let synonym = COMMAND_SYNONYMS.iter().find(|(names, _)| names.contains(&name));
    if let Some((_, command)) = synonym {
        let command = ContextValue::Strings(vec![(*command).to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, command);
    } else if let Some(ContextValue::Strings(alike)) = error.get(ContextKind::SuggestedSubcommand) {
        // clap has the most alike one last.
        let alike = alike.iter().rev().cloned().collect();
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(alike));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_pages::find_page;

    #[test]
    fn synonyms_lead_to_commands_and_are_none_themselves() {
        for (names, command) in COMMAND_SYNONYMS {
            assert!(find_page(command).is_some(), "{command}");
            assert!(names.iter().all(|name| find_page(name).is_none()), "{names:?}");
        }
    }
}
