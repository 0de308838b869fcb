//! The version of an installed agent, by its own `--version`.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::CommandError;

/// How long an agent may take to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Pause between two looks at the child process.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Runs `program --version`, and returns the version that it prints; `None` if it prints none.
pub(crate) fn installed_version(program: &str) -> Result<Option<String>, CommandError> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            CommandError::user(format!("no such program on PATH: {program}"))
                .hint(format!("install {program}, or use another agent"))
        }
        _ => CommandError::user(format!("could not start {program}: {error}")),
    })?;
    let mut output = child.stdout.take().expect("the output is piped");
    // A program that prints much and is never read would not end.
    let reading = thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).map(|_| text).unwrap_or_default()
    });
    if !wait_for_end(&mut child)? {
        child.kill()?;
        child.wait()?;
        return Ok(None);
    }
    let text = reading.join().unwrap_or_default();
    Ok(parse_version(&text).map(str::to_owned))
}

/// Waits for a child process. Returns whether it ended in time.
fn wait_for_end(child: &mut Child) -> io::Result<bool> {
    let end = Instant::now() + VERSION_TIMEOUT;
    while child.try_wait()?.is_none() {
        if Instant::now() > end {
            return Ok(false);
        }
        thread::sleep(POLL_INTERVAL);
    }
    Ok(true)
}

/// The first word that looks like a version: digits, a dot, and more.
fn parse_version(text: &str) -> Option<&str> {
    let words = text.split(|c: char| c.is_whitespace() || "(),".contains(c));
    words.map(|word| word.strip_prefix('v').unwrap_or(word)).find(|word| {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        word.split_once('.').is_some_and(|(major, rest)| {
            is_number(major) && rest.starts_with(|c: char| c.is_ascii_digit())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_agents_print() {
        for (text, version) in [
            ("2.1.325 (Claude Code)\n", Some("2.1.325")),
            ("codex-cli 0.166.0\n", Some("0.166.0")),
            ("v0.61.0\n", Some("0.61.0")),
            ("1.0.0-beta.2", Some("1.0.0-beta.2")),
            ("see /x/1.txt. No version", None),
            ("", None),
        ] {
            assert_eq!(parse_version(text), version, "{text}");
        }
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = installed_version("no-such-agent").unwrap_err();
        assert_eq!(error.error.to_string(), "no such program on PATH: no-such-agent");
    }
}
