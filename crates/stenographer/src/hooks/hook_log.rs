//! `hook.log`: errors of hooks, which must not print anything. Limited in size.
//!
//! A hook that cannot unlock an encrypted store cannot write there. It appends only the time and a fixed reason to the
//! plain file `locked-hook.log`, which has no names, paths or texts.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use steno_cipher::store_fs;
use steno_model::{Timestamp, durable};

/// A longer log is cut to half of this.
const MAX_LOG_BYTES: usize = 64 << 10;

/// Limit of a line in characters.
const MAX_LINE_CHARS: usize = 2000;

/// Who is named in the log of a locked store, which does not name the agent.
const ANY_AGENT: &str = "hook";

/// The log of hook errors.
#[derive(Debug)]
pub(crate) struct HookLog {
    path: PathBuf,
    /// The log of hooks that could not unlock the store.
    locked_path: PathBuf,
}

impl HookLog {
    pub(crate) fn new(store: &Path) -> Self {
        Self { path: store.join("hook.log"), locked_path: store.join("locked-hook.log") }
    }

    /// Appends an error with its causes; a failure to write is ignored. In a locked store, only the time is written.
    pub(crate) fn append_error(&self, at: Timestamp, agent: &str, error: &(dyn Error + 'static)) {
        if store_fs::check_is_unlocked(&self.path).is_err() {
            return self.append_locked(at);
        }
        let mut text = format!("{at} {agent}: {error}");
        let mut source = error.source();
        while let Some(cause) = source {
            text.push_str(&format!(": {cause}"));
            source = cause.source();
        }
        let line: String = text
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(MAX_LINE_CHARS)
            .collect();
        let _ = store_fs::create_private_dir(durable::parent_folder(&self.path));
        if let Some(tail) = store_fs::read(&self.path).ok().and_then(shortened_log) {
            let _ = store_fs::write_atomic(&self.path, &tail);
        }
        let _ = store_fs::append_lines(&self.path, format!("{line}\n").as_bytes());
    }

    fn append_locked(&self, at: Timestamp) {
        let path = &self.locked_path;
        if let Some(tail) = fs::read(path).ok().and_then(shortened_log) {
            let _ = durable::write_atomic(path, &tail);
        }
        let line = format!(
            "{at} {ANY_AGENT}: the store is encrypted, and the hook has no key that opens it\n"
        );
        let _ = durable::append_lines(path, line.as_bytes());
    }

    /// Returns the last error of an agent's hook, or that of a hook of any agent that could not unlock the store.
    pub(crate) fn last_error(&self, agent: &str) -> Option<String> {
        let own = store_fs::read(&self.path).ok().and_then(|log| last_line_of(&log, agent));
        let locked = fs::read(&self.locked_path).ok().and_then(|log| last_line_of(&log, ANY_AGENT));
        [own, locked].into_iter().flatten().max_by_key(|line| line_time(line))
    }
}

/// Returns the last line of a log that names an agent.
fn last_line_of(log: &[u8], agent: &str) -> Option<String> {
    let text = String::from_utf8_lossy(log);
    let of_agent = |line: &&str| {
        let name = line.split_once(' ').and_then(|(_, rest)| rest.split_once(": "));
        name.is_some_and(|(name, _)| name == agent)
    };
    text.lines().rfind(of_agent).map(str::to_owned)
}

fn line_time(line: &str) -> Option<jiff::Timestamp> {
    line.split_once(' ').and_then(|(at, _)| at.parse().ok())
}

/// Returns the last lines of a log that is too long.
fn shortened_log(mut log: Vec<u8>) -> Option<Vec<u8>> {
    if log.len() <= MAX_LOG_BYTES {
        return None;
    }
    let mut tail = log.split_off(log.len() - MAX_LOG_BYTES / 2);
    let start = tail.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    Some(tail.split_off(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_stays_small_and_has_the_last_error_of_each_agent() {
        let dir = tempfile::tempdir().unwrap();
        let log = HookLog::new(dir.path());
        let at: Timestamp = "2026-01-05T09:15:32Z".parse().unwrap();
        for number in 0..200 {
            let error = std::io::Error::other(format!("{number} {}\n", "x".repeat(1000)));
            log.append_error(at, "codex", &error);
        }
        log.append_error(at, "cursor", &std::io::Error::other("none"));
        assert!(fs::metadata(&log.path).unwrap().len() < 70_000);
        assert!(
            log.last_error("codex").unwrap().starts_with("2026-01-05T09:15:32Z codex: 199 xxx")
        );
        assert_eq!(log.last_error("cursor").unwrap(), "2026-01-05T09:15:32Z cursor: none");
        assert_eq!(log.last_error("gemini"), None);
    }
}
