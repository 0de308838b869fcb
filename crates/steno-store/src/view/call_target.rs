//! What a tool call is about, so that calls can be compared: the call itself, its files, and its command.

use std::collections::BTreeSet;

use super::edits::{PATH_FIELDS, find_edits, text_field};
use steno_model::entry::Entry;
use steno_model::json::Value;

/// Fields with a shell command.
const COMMAND_FIELDS: [&str; 3] = ["command", "cmd", "script"];

/// Programs that only change how the next word runs.
const PREFIX_PROGRAMS: [&str; 6] = ["sudo", "env", "time", "nice", "exec", "command"];

/// Commands of a shell that only prepare the next one.
const PREPARING_COMMANDS: [&str; 5] = ["cd", "export", "set", "source", "."];

/// Words that need the next word to say what runs: `npm run build`.
const LEADING_WORDS: [&str; 4] = ["run", "exec", "compose", "dlx"];

/// What two calls can have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum CallTarget<'a> {
    /// The tool, and its command or arguments.
    Call { tool: &'a str, input: String },
    /// A file, and what is done with it: `edit`, or the tool that reads it.
    File { access: &'a str, path: &'a str },
    /// The commands of a shell line without most arguments: `cargo test`.
    Command(String),
}

/// What a call is about, the most precise first.
pub(super) fn call_targets(call: &Entry) -> Vec<CallTarget<'_>> {
    let tool = call.tool_name.as_deref().unwrap_or_default();
    let command = call.tool_input.as_ref().and_then(command_text);
    let input = match (&command, &call.tool_input) {
        (Some(command), _) => command.trim().to_owned(),
        (None, Some(input)) => input.to_string(),
        (None, None) => call.content.clone(),
    };
    let mut targets = vec![CallTarget::Call { tool, input }];
    let edits = find_edits(call);
    targets.extend(edits.iter().map(|edit| CallTarget::File { access: "edit", path: edit.path }));
    let fields = call.tool_input.as_ref().and_then(Value::as_object);
    let path =
        fields.and_then(|fields| PATH_FIELDS.iter().find_map(|name| text_field(fields, name)));
    if let Some(path) = path.filter(|_| edits.is_empty()) {
        targets.push(CallTarget::File { access: tool, path });
    }
    targets.extend(command.as_deref().and_then(command_line_head).map(CallTarget::Command));
    targets
}

/// The shell command of a call. `["bash", "-lc", "make"]` is `make`.
fn command_text(input: &Value) -> Option<String> {
    let fields = input.as_object()?;
    match COMMAND_FIELDS.iter().find_map(|name| fields.get(*name))? {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            match words.as_slice() {
                [_, flag, script] if flag.starts_with('-') && flag.ends_with('c') => {
                    Some((*script).to_owned())
                }
                _ => Some(words.join(" ")),
            }
        }
        _ => None,
    }
}

/// The words of a shell line that are neither flags nor quoted.
pub(super) fn plain_words(call: &Entry) -> BTreeSet<String> {
    let line = call.tool_input.as_ref().and_then(command_text).unwrap_or_default();
    let line = line.split(['"', '\'']).next().unwrap_or_default();
    let parts = command_parts(line).map(without_redirections);
    let words = parts.flat_map(str::split_whitespace);
    words.filter(|word| !word.starts_with('-')).map(str::to_owned).collect()
}

/// A command up to its first pipe or redirection: `make` for `make 2>&1 | tail`.
fn without_redirections(command: &str) -> &str {
    match command.find(['|', '<', '>']) {
        Some(end) if command[end..].starts_with('>') => {
            command[..end].trim_end_matches(|last: char| last.is_ascii_digit()).trim_end()
        }
        Some(end) => command[..end].trim_end(),
        None => command,
    }
}

/// The commands of a shell line, without those that only prepare others.
fn command_parts(line: &str) -> impl Iterator<Item = &str> {
    let parts = line.split("&&").flat_map(|part| part.split(';')).map(str::trim);
    let is_preparing = |part: &str| {
        part.split_whitespace().next().is_none_or(|word| PREPARING_COMMANDS.contains(&word))
    };
    parts.filter(move |part| !is_preparing(part))
}

/// The programs of a shell line with their first arguments; `None` if those do not say what runs.
fn command_line_head(line: &str) -> Option<String> {
    if line.trim().contains('\n') {
        return None;
    }
    let heads: Option<Vec<String>> = command_parts(line).map(command_head).collect();
    heads.map(|heads| heads.join(" && ")).filter(|head| !head.is_empty())
}

/// The program of a command and its first argument: `cargo test` for `CI=1 cargo +nightly test --quiet | tail`.
fn command_head(command: &str) -> Option<String> {
    // A separator inside quotes separates nothing.
    let is_cut_quote = |quote: char| command.matches(quote).count() % 2 == 1;
    if is_cut_quote('"') || is_cut_quote('\'') {
        return None;
    }
    let takes_input = command.contains('<');
    let command = without_redirections(command);
    let is_prefix = |word: &&str| {
        PREFIX_PROGRAMS.contains(word)
            || (word.contains('=') && !word.starts_with(['-', '"', '\'']))
    };
    let mut words = command.split_whitespace().skip_while(is_prefix).peekable();
    let program = words.next()?;
    let program = program.rsplit('/').next().unwrap_or(program);
    if words.peek().is_none() && !takes_input {
        return Some(program.to_owned());
    }
    let mut head = vec![program];
    while let Some(word) = words.next() {
        match word {
            // The folder to run in.
            "-C" => _ = words.next(),
            _ if word.starts_with(['-', '+']) => {}
            _ if word.starts_with(['"', '\'', '$', '`', '(']) => return None,
            _ => {
                head.push(word);
                if !LEADING_WORDS.contains(&word) {
                    return Some(head.join(" "));
                }
            }
        }
    }
    (head.len() > 1).then(|| head.join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_command_is_known_by_its_program_and_first_argument() {
        let heads = [
            ("cargo test -p harbor login", Some("cargo test")),
            ("cd src && RUST_LOG=debug cargo +nightly test 2>&1 | tail -5", Some("cargo test")),
            ("make", Some("make")),
            ("/usr/bin/python3 scripts/check.py --all", Some("python3 scripts/check.py")),
            ("npm run build -- --prod", Some("npm run build")),
            ("git -C /srv/app commit -m \"a; b\"", None),
            ("git -C /srv/app status", Some("git status")),
            ("cargo fmt && cargo test", Some("cargo fmt && cargo test")),
        ];
        for (line, head) in heads {
            assert_eq!(command_line_head(line).as_deref(), head, "{line}");
        }
    }

    #[test]
    fn scripts_on_the_command_line_say_nothing_about_each_other() {
        let lines = [
            "python3 -c 'import os'",
            "python3 - <<EOF",
            "bash -c \"make\"",
            "sed -n '1p' a",
            "a\nb",
        ];
        assert_eq!(lines.map(command_line_head), [None, None, None, None, None]);
    }

    #[test]
    fn a_list_of_words_is_a_command_too() {
        assert_eq!(
            command_text(&json!({"command": ["bash", "-lc", "make test"]})).as_deref(),
            Some("make test")
        );
        assert_eq!(command_text(&json!({"cmd": ["ls", "src"]})).as_deref(), Some("ls src"));
        assert_eq!(command_text(&json!({"path": "a"})), None);
    }
}
