//! Reads the `.env` file of the working folder. Many programs use it for variables that the environment does not set.
//!
//! The variables that the gateway sets would hide those of the file, and requests would go to another server.

use std::collections::HashMap;
use std::path::Path;

/// Returns the variables of `.env`. The last line wins if a name is repeated.
pub(super) fn read_dotenv(folder: &Path) -> HashMap<String, String> {
    let text = std::fs::read_to_string(folder.join(".env")).unwrap_or_default();
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
    let value = value.trim();
    let quoted = ['"', '\''].iter().find_map(|quote| {
        let rest = value.strip_prefix(*quote)?;
        rest.split_once(*quote).map(|(inner, _)| inner)
    });
    let value = quoted.unwrap_or_else(|| value.split(" #").next().unwrap_or_default().trim());
    (!value.is_empty()).then(|| (name.trim().to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_programs_read_them() {
        let line = |text: &str| parse_line(text).map(|(_, value)| value);
        assert_eq!(line("A=http://x/v1").as_deref(), Some("http://x/v1"));
        assert_eq!(line("export A = \"http://x\" # local").as_deref(), Some("http://x"));
        assert_eq!(line("A=http://x/#a # local").as_deref(), Some("http://x/#a"));
        assert_eq!(line("# A=http://x"), None);
        assert_eq!(line("A="), None);
    }
}
