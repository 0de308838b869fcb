//! Permission rules for leslie's agents: they may do everything except write the stores and run some commands. The
//! commands come from built-in lists, `leslie.permissions.json`, and the private `.leslie/permissions.json`.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

/// Rule files, relative to the project; later ones take precedence.
const RULE_FILES: [&str; 2] = ["leslie.permissions.json", ".leslie/permissions.json"];

/// Commands that are always denied.
const DENIED_COMMANDS: [&str; 6] = [
    r"\brm\s+-rf\b",
    r"\b(mkfs|fdisk|parted|shutdown|reboot|halt|poweroff)\b",
    r"\bdd\s.*\bof=/dev/",
    r"\bchmod\s+-R\s+777\s+/",
    r"\bchown\s+-R\b.*\s/",
    r">\s*/dev/(sd|disk)",
];

/// Commands that need approval.
const CONFIRMED_COMMANDS: [&str; 3] = [
    r"\b(curl|wget)\b.+\|\s*(sh|bash)\b",
    r"\bgit\s+push\s.*--force\b",
    r"\bdocker\s+system\s+prune\b",
];

/// Files that only commands may change.
const STORE_FILES: [&str; 2] = [".leslie/thread_relations.json", ".leslie/objectives.json"];

/// Words in the names of tools that change files.
const WRITE_WORDS: [&str; 7] = ["write", "edit", "replace", "delete", "remove", "rename", "move"];

/// Whether a tool may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ToolDecision {
    Allow,
    /// Ask the user.
    Confirm,
    Deny,
}

/// Rules for commands.
pub(super) struct CommandRules {
    denied: Vec<Regex>,
    confirmed: Vec<Regex>,
    /// Decision for all other commands.
    default: ToolDecision,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RuleFile {
    default: Option<ToolDecision>,
    bash: CommandLists,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CommandLists {
    deny: Vec<String>,
    confirm: Vec<String>,
}

impl CommandRules {
    /// Reads the rules of a project. Also returns the errors in its rule files.
    pub(super) fn for_project(root: &Path) -> (Self, Vec<String>) {
        let mut problems = Vec::new();
        let mut compile = |pattern: &str| {
            Regex::new(pattern).map_err(|_| problems.push(format!("not a pattern: {pattern}"))).ok()
        };
        let mut rules = Self {
            denied: DENIED_COMMANDS.iter().filter_map(|pattern| compile(pattern)).collect(),
            confirmed: CONFIRMED_COMMANDS.iter().filter_map(|pattern| compile(pattern)).collect(),
            default: ToolDecision::Allow,
        };
        let mut unread = Vec::new();
        for name in RULE_FILES {
            let path = root.join(name);
            let rule_file: RuleFile = match read_rules(&path) {
                Ok(rule_file) => rule_file,
                Err(reason) => {
                    unread.push(format!("could not read rules from {}: {reason}", path.display()));
                    continue;
                }
            };
            rules.denied.extend(rule_file.bash.deny.iter().filter_map(|it| compile(it)));
            rules.confirmed.extend(rule_file.bash.confirm.iter().filter_map(|it| compile(it)));
            rules.default = rule_file.default.unwrap_or(rules.default);
        }
        problems.extend(unread);
        (rules, problems)
    }

    /// Decides whether a tool may be used, by all known fields of the call.
    pub(super) fn decide(&self, call: &Value) -> ToolDecision {
        if is_writing(call) && touches_stores(call) {
            return ToolDecision::Deny;
        }
        let Some(command) = shell_command(call) else { return ToolDecision::Allow };
        let is_in = |list: &[Regex]| list.iter().any(|pattern| pattern.is_match(&command));
        match () {
            () if is_in(&self.denied) => ToolDecision::Deny,
            () if is_in(&self.confirmed) => ToolDecision::Confirm,
            () => self.default,
        }
    }
}

fn read_rules(path: &Path) -> Result<RuleFile, String> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(RuleFile::default()),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the name of a tool, or its kind.
pub(super) fn tool_name(call: &Value) -> &str {
    let named = [&call["name"], &call["_meta"]["claudeCode"]["toolName"], &call["kind"]];
    named.into_iter().find_map(Value::as_str).unwrap_or("tool")
}

/// Returns the command that a tool would run.
fn shell_command(call: &Value) -> Option<String> {
    let is_shell = call["kind"] == "execute" || tool_name(call).eq_ignore_ascii_case("bash");
    let command = match &call["rawInput"]["command"] {
        Value::String(command) => Some(command.clone()),
        Value::Array(words) => {
            Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
        }
        _ => call["title"].as_str().map(str::to_owned),
    };
    command.filter(|_| is_shell)
}

fn is_writing(call: &Value) -> bool {
    let name = tool_name(call).to_lowercase();
    WRITE_WORDS.iter().any(|word| name.contains(word))
}

fn touches_stores(call: &Value) -> bool {
    let mut texts = Vec::new();
    for part in ["rawInput", "locations", "content"] {
        push_texts(&call[part], &mut texts);
    }
    let is_store = |text: &&str| {
        let path = text.trim().replace('\\', "/");
        STORE_FILES.iter().any(|store| Path::new(&path).ends_with(store))
    };
    texts.iter().any(is_store)
}

fn push_texts<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| push_texts(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| push_texts(field, texts)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(command: &str) -> Value {
        json!({ "kind": "execute", "rawInput": { "command": command } })
    }

    #[test]
    fn only_some_commands_are_held_back() {
        let (rules, problems) = CommandRules::for_project(Path::new("/nowhere"));
        assert_eq!(problems, Vec::<String>::new());
        for (command, decision) in [
            ("ls -la", ToolDecision::Allow),
            ("rm -rf /", ToolDecision::Deny),
            ("sudo reboot", ToolDecision::Deny),
            ("dd if=x of=/dev/sda", ToolDecision::Deny),
            ("curl https://x | sh", ToolDecision::Confirm),
            ("git push origin --force", ToolDecision::Confirm),
        ] {
            assert_eq!(rules.decide(&run(command)), decision, "{command}");
        }
        let words =
            json!({ "kind": "execute", "rawInput": { "command": ["sh", "-c", "rm -rf x"] } });
        assert_eq!(rules.decide(&words), ToolDecision::Deny);
        let titled = json!({ "name": "Bash", "title": "mkfs /dev/x" });
        assert_eq!(rules.decide(&titled), ToolDecision::Deny);
    }

    #[test]
    fn stores_are_never_written_by_tools() {
        let (rules, _) = CommandRules::for_project(Path::new("/nowhere"));
        let edit = |path: &str| json!({ "kind": "edit", "rawInput": { "file_path": path } });
        assert_eq!(rules.decide(&edit("/w/.leslie/objectives.json")), ToolDecision::Deny);
        assert_eq!(rules.decide(&edit("./.leslie/thread_relations.json")), ToolDecision::Deny);
        assert_eq!(rules.decide(&edit(".leslie/threads/t/plan.md")), ToolDecision::Allow);
        let read = json!({ "kind": "read", "locations": [{ "path": ".leslie/objectives.json" }] });
        assert_eq!(rules.decide(&read), ToolDecision::Allow);
    }
}
