//! `hook.log`: errors of hooks, which must not print anything. Limited in size.

use std::error::Error;
use std::path::{Path, PathBuf};

use steno_cipher::store_fs;
use steno_model::{Timestamp, durable};

/// A longer log is cut to half of this.
const MAX_LOG_BYTES: usize = 64 << 10;

/// Limit of a line in characters.
const MAX_LINE_CHARS: usize = 2000;

/// The log of hook errors.
#[derive(Debug)]
pub(crate) struct HookLog(PathBuf);

impl HookLog {
    pub(crate) fn new(store: &Path) -> Self {
        Self(store.join("hook.log"))
    }

    /// Appends an error with its causes; a failure to write is ignored.
    pub(crate) fn append_error(&self, at: Timestamp, agent: &str, error: &(dyn Error + 'static)) {
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
        let _ = store_fs::create_private_dir(durable::parent_folder(&self.0));
        self.shorten();
        let _ = store_fs::append_lines(&self.0, format!("{line}\n").as_bytes());
    }

    /// Returns the last error of an agent's hook.
    pub(crate) fn last_error(&self, agent: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&store_fs::read(&self.0).ok()?).into_owned();
        let of_agent = |line: &&str| {
            let name = line.split_once(' ').and_then(|(_, rest)| rest.split_once(": "));
            name.is_some_and(|(name, _)| name == agent)
        };
        text.lines().rfind(of_agent).map(str::to_owned)
    }

    fn shorten(&self) {
        let Ok(bytes) = store_fs::read(&self.0) else { return };
        if bytes.len() > MAX_LOG_BYTES {
            let tail = &bytes[bytes.len() - MAX_LOG_BYTES / 2..];
            let start = tail.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let _ = store_fs::write_atomic(&self.0, &tail[start..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        assert!(fs::metadata(&log.0).unwrap().len() < 70_000);
        assert!(
            log.last_error("codex").unwrap().starts_with("2026-01-05T09:15:32Z codex: 199 xxx")
        );
        assert_eq!(log.last_error("cursor").unwrap(), "2026-01-05T09:15:32Z cursor: none");
        assert_eq!(log.last_error("gemini"), None);
    }
}
