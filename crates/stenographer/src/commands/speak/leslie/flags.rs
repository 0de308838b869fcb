//! leslie's flags: `--name value` or `--name=value`. What is missing or wrong is told when it is asked for.

use std::str::FromStr;

use steno_core::thread::WordError;

use super::answer::Failure;

/// The flags that take a value.
const VALUES: [&str; 31] = [
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

/// The flags that are there or not.
const SWITCHES: [&str; 8] =
    ["debug", "force", "foreground", "from_env", "help", "no_run", "no_tui", "yes"];

/// A command line taken apart.
pub(super) struct Flags {
    /// What is no flag: the command first.
    pub(super) words: Vec<String>,
    /// The flags as they were typed, with their values, in the order in which they were given.
    given: Vec<(String, Option<String>)>,
}

impl Flags {
    pub(super) fn parse(args: impl Iterator<Item = String>) -> Self {
        let mut args = args.peekable();
        let mut flags = Self { words: Vec::new(), given: Vec::new() };
        while let Some(arg) = args.next() {
            if arg == "--" {
                flags.words.extend(args.by_ref());
            } else if let Some((name, value)) = flag(&arg) {
                let takes_value = value.is_none() && !SWITCHES.contains(&known(&name).as_str());
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

    /// The flags that no command has.
    pub(super) fn unknown(&self) -> impl Iterator<Item = String> {
        let is_known = |name: &str| VALUES.contains(&name) || SWITCHES.contains(&name);
        let names = self.given.iter().map(|(name, _)| name);
        names.filter(move |name| !is_known(&known(name))).map(|name| format!("--{name}"))
    }

    /// Whether a switch is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.given.iter().any(|(given, _)| known(given) == name)
    }

    /// The last value of a flag, however often it is given.
    pub(super) fn last(&self, name: &str) -> Option<&str> {
        self.all(name).last().copied().flatten()
    }

    /// A text that must be there.
    pub(super) fn required(&self, name: &str) -> Result<&str, Failure> {
        match self.all(name).as_slice() {
            [Some(text)] if !text.trim().is_empty() => Ok(text),
            [_, _, ..] => Err(twice(name)),
            _ => Err(Failure::unknown(format!("Missing required flag --{name}"))),
        }
    }

    /// A text that may be left out.
    pub(super) fn optional(&self, name: &str) -> Result<Option<&str>, Failure> {
        match self.all(name).as_slice() {
            [] => Ok(None),
            [Some(text)] => Ok(Some(text)),
            [None] => Err(without_value(name)),
            _ => Err(twice(name)),
        }
    }

    /// The parts of a list between commas.
    pub(super) fn list(&self, name: &str) -> Result<Vec<String>, Failure> {
        let mut parts = Vec::new();
        for value in self.all(name) {
            let value = value.ok_or_else(|| without_value(name))?;
            let named = value.split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.extend(named.map(str::to_owned));
        }
        Ok(parts)
    }

    /// The parts of a list that must have some.
    pub(super) fn required_list(&self, name: &str) -> Result<Vec<String>, Failure> {
        let missing = || Failure::unknown(format!("Missing required flag --{name}"));
        Some(self.list(name)?).filter(|parts| !parts.is_empty()).ok_or_else(missing)
    }

    /// One of the words that leslie knows.
    pub(super) fn word<T>(&self, name: &str) -> Result<Option<T>, Failure>
    where
        T: FromStr<Err = WordError>,
    {
        let invalid = |error| Failure::unknown(format!("Invalid value of flag --{name}: {error}"));
        self.optional(name)?.map(|text| text.parse().map_err(invalid)).transpose()
    }

    fn all(&self, name: &str) -> Vec<Option<&str>> {
        let given = self.given.iter().filter(|(given, _)| known(given) == name);
        given.map(|(_, value)| value.as_deref()).collect()
    }
}

fn twice(name: &str) -> Failure {
    Failure::unknown(format!("Flag --{name} is given more than once"))
}

fn without_value(name: &str) -> Failure {
    Failure::unknown(format!("Missing value of flag --{name}"))
}

/// A flag's name as it is known: hyphens and underscores are the same.
fn known(name: &str) -> String {
    name.replace('-', "_")
}

/// The name of a flag, and the value that is tied to it.
fn flag(arg: &str) -> Option<(String, Option<String>)> {
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

/// Whether an argument is a flag and not a value that begins with hyphens.
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

    fn flags(line: &[&str]) -> Flags {
        Flags::parse(line.iter().map(|arg| (*arg).to_owned()))
    }

    #[test]
    fn flags_may_stand_anywhere() {
        let flags =
            flags(&["--debug", "objective", "--title=a=b", "create", "-c", "x", "--", "--y"]);
        assert_eq!(flags.words, ["objective", "create", "--y"]);
        assert_eq!(flags.required("title").unwrap(), "a=b");
        assert_eq!(flags.optional("config").unwrap(), Some("x"));
        assert!(flags.has("debug"));
    }

    #[test]
    fn values_may_be_numbers_and_begin_with_a_hyphen() {
        let line =
            ["--intent", "123", "--content", "- a\n--b c", "--reason", "-5", "--title", "--yes"];
        let flags = flags(&line);
        assert_eq!(flags.required("intent").unwrap(), "123");
        assert_eq!(flags.required("content").unwrap(), "- a\n--b c");
        assert_eq!(flags.required("reason").unwrap(), "-5");
        assert!(flags.required("title").is_err());
        assert!(flags.has("yes"));
    }

    #[test]
    fn lists_are_split_and_put_together() {
        let flags = flags(&["--ref", "a, b,,", "--ref=c", "--scope", ""]);
        assert_eq!(flags.list("ref").unwrap(), ["a", "b", "c"]);
        assert_eq!(flags.list("scope").unwrap(), [""; 0]);
        assert!(flags.required_list("scope").is_err());
    }

    #[test]
    fn underscores_are_hyphens_and_strangers_are_told() {
        let flags =
            flags(&["--stop_reason", "x", "--conflict-strategy", "strict", "--bo-gus", "1"]);
        assert_eq!(flags.required("stop_reason").unwrap(), "x");
        assert_eq!(flags.optional("conflict_strategy").unwrap(), Some("strict"));
        assert_eq!(flags.unknown().collect::<Vec<_>>(), ["--bo-gus"]);
        assert_eq!(flags.words, [""; 0]);
    }
}
