//! leslie's flags: `--name value` or `--name=value`. Errors are returned when a command reads a flag.

use std::str::FromStr;

use steno_seeds::thread::WordError;

use super::response::LeslieFailure;

/// Flags with a value.
const VALUE_FLAGS: [&str; 31] = [
    "action",
    "assistant",
    "binding",
    "chat",
    "config",
    "conflict_strategy",
    "content",
    "direction",
    "end",
    "executor",
    "format",
    "from",
    "id",
    "inherit",
    "intent",
    "mode",
    "objective",
    "parent",
    "query",
    "reason",
    "ref",
    "scope",
    "sources",
    "start",
    "status",
    "stop_reason",
    "tags",
    "target",
    "thread",
    "title",
    "type",
];

/// Flags without a value.
const SWITCH_FLAGS: [&str; 8] =
    ["debug", "force", "foreground", "from_env", "help", "no_run", "no_tui", "yes"];

/// A parsed command line.
pub(super) struct LeslieFlags {
    /// Words other than flags: the command first.
    pub(super) words: Vec<String>,
    /// Flags with their values, in order.
    given: Vec<(String, Option<String>)>,
}

impl LeslieFlags {
    pub(super) fn parse(args: impl Iterator<Item = String>) -> Self {
        let mut args = args.peekable();
        let mut flags = Self { words: Vec::new(), given: Vec::new() };
        while let Some(arg) = args.next() {
            if arg == "--" {
                flags.words.extend(args.by_ref());
            } else if let Some((name, value)) = parse_flag(&arg) {
                let takes_value =
                    value.is_none() && !SWITCH_FLAGS.contains(&normalize_name(&name).as_str());
                let next = takes_value.then(|| args.next_if(|next| !is_flag(next))).flatten();
                flags.given.push((name, value.or(next)));
            } else {
                flags.words.push(arg);
            }
        }
        flags
    }

    pub(super) fn asks_for_help(&self) -> bool {
        let command = self.words.first().map_or("", String::as_str);
        matches!(command, "" | "help") || self.has("help")
    }

    /// Returns flags that no command has.
    pub(super) fn unknown_flags(&self) -> impl Iterator<Item = String> {
        let is_known = |name: &str| VALUE_FLAGS.contains(&name) || SWITCH_FLAGS.contains(&name);
        let names = self.given.iter().map(|(name, _)| name);
        names.filter(move |name| !is_known(&normalize_name(name))).map(|name| format!("--{name}"))
    }

    /// Returns whether a switch is given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.given.iter().any(|(given, _)| normalize_name(given) == name)
    }

    /// Returns the last value of a flag that may be repeated.
    pub(super) fn last_value(&self, name: &str) -> Option<&str> {
        self.all_values(name).last().copied().flatten()
    }

    /// Returns a required text.
    pub(super) fn required_text(&self, name: &str) -> Result<&str, LeslieFailure> {
        match self.all_values(name).as_slice() {
            [Some(text)] if !text.trim().is_empty() => Ok(text),
            [_, _, ..] => Err(repeated_flag_error(name)),
            _ => Err(LeslieFailure::without_code(format!("Missing required flag --{name}"))),
        }
    }

    /// Returns an optional text.
    pub(super) fn optional_text(&self, name: &str) -> Result<Option<&str>, LeslieFailure> {
        match self.all_values(name).as_slice() {
            [] => Ok(None),
            [Some(text)] => Ok(Some(text)),
            [None] => Err(missing_value_error(name)),
            _ => Err(repeated_flag_error(name)),
        }
    }

    /// Returns the parts of a comma-separated list.
    pub(super) fn comma_list(&self, name: &str) -> Result<Vec<String>, LeslieFailure> {
        let mut parts = Vec::new();
        for value in self.all_values(name) {
            let value = value.ok_or_else(|| missing_value_error(name))?;
            let named = value.split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.extend(named.map(str::to_owned));
        }
        Ok(parts)
    }

    /// Returns the parts of a comma-separated list with at least one part.
    pub(super) fn required_list(&self, name: &str) -> Result<Vec<String>, LeslieFailure> {
        let missing = || LeslieFailure::without_code(format!("Missing required flag --{name}"));
        Some(self.comma_list(name)?).filter(|parts| !parts.is_empty()).ok_or_else(missing)
    }

    /// Parses one of leslie's enumerated words.
    pub(super) fn parse_word<T>(&self, name: &str) -> Result<Option<T>, LeslieFailure>
    where
        T: FromStr<Err = WordError>,
    {
        let invalid =
            |error| LeslieFailure::without_code(format!("Invalid value of flag --{name}: {error}"));
        self.optional_text(name)?.map(|text| text.parse().map_err(invalid)).transpose()
    }

    fn all_values(&self, name: &str) -> Vec<Option<&str>> {
        let given = self.given.iter().filter(|(given, _)| normalize_name(given) == name);
        given.map(|(_, value)| value.as_deref()).collect()
    }
}

fn repeated_flag_error(name: &str) -> LeslieFailure {
    LeslieFailure::without_code(format!("Flag --{name} is given more than once"))
}

fn missing_value_error(name: &str) -> LeslieFailure {
    LeslieFailure::without_code(format!("Missing value of flag --{name}"))
}

/// Normalizes a flag's name: hyphens equal underscores.
fn normalize_name(name: &str) -> String {
    name.replace('-', "_")
}

/// Parses a flag's name and the value after `=`.
fn parse_flag(arg: &str) -> Option<(String, Option<String>)> {
    match arg {
        "-c" => return Some(("config".to_owned(), None)),
        "-h" => return Some(("help".to_owned(), None)),
        _ if !is_flag(arg) => return None,
        _ => {}
    }
    let text = arg.trim_start_matches('-');
    let (name, value) =
        text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    Some((name.to_owned(), value.map(str::to_owned)))
}

/// Returns whether an argument is a flag, rather than a value that begins with hyphens.
fn is_flag(arg: &str) -> bool {
    let name = arg.strip_prefix("--").map(|text| text.split('=').next().unwrap_or_default());
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && !name.contains(char::is_whitespace)
    };
    matches!(arg, "-c" | "-h") || name.is_some_and(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(line: &[&str]) -> LeslieFlags {
        LeslieFlags::parse(line.iter().map(|arg| (*arg).to_owned()))
    }

    #[test]
    fn flags_may_come_anywhere() {
        let flags =
            flags(&["--debug", "objective", "--title=a=b", "create", "-c", "x", "--", "--y"]);
        assert_eq!(flags.words, ["objective", "create", "--y"]);
        assert_eq!(flags.required_text("title").unwrap(), "a=b");
        assert_eq!(flags.optional_text("config").unwrap(), Some("x"));
        assert!(flags.has("debug"));
    }

    #[test]
    fn values_may_be_numbers_and_begin_with_a_hyphen() {
        let line =
            ["--intent", "123", "--content", "- a\n--b c", "--reason", "-5", "--title", "--yes"];
        let flags = flags(&line);
        assert_eq!(flags.required_text("intent").unwrap(), "123");
        assert_eq!(flags.required_text("content").unwrap(), "- a\n--b c");
        assert_eq!(flags.required_text("reason").unwrap(), "-5");
        assert!(flags.required_text("title").is_err());
        assert!(flags.has("yes"));
    }

    #[test]
    fn lists_are_split_and_put_together() {
        let flags = flags(&["--ref", "a, b,,", "--ref=c", "--scope", ""]);
        assert_eq!(flags.comma_list("ref").unwrap(), ["a", "b", "c"]);
        assert_eq!(flags.comma_list("scope").unwrap(), [""; 0]);
        assert!(flags.required_list("scope").is_err());
    }

    #[test]
    fn underscores_equal_hyphens_and_unknown_flags_are_listed() {
        let flags =
            flags(&["--stop_reason", "x", "--conflict-strategy", "strict", "--bo-gus", "1"]);
        assert_eq!(flags.required_text("stop_reason").unwrap(), "x");
        assert_eq!(flags.optional_text("conflict_strategy").unwrap(), Some("strict"));
        assert_eq!(flags.unknown_flags().collect::<Vec<_>>(), ["--bo-gus"]);
        assert_eq!(flags.words, [""; 0]);
    }
}
