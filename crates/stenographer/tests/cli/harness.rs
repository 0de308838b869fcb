//! A separate home folder for each test, and output that can be compared with a snapshot.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use steno_vault::Vault;
use tempfile::TempDir;

/// An empty machine.
pub(crate) struct Home {
    dir: TempDir,
}

/// Output and exit code of a command.
pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn vault(&self) -> Vault {
        Vault::new(self.path().join("store/vault"))
    }

    /// Writes a file in the home folder.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Returns all files below the home folder except the store.
    pub(crate) fn files_outside_store(&self) -> Vec<(String, Vec<u8>)> {
        let files = steno_store::format::list_file_paths(self.path()).unwrap();
        let files = files.iter().filter(|path| !path.starts_with(self.path().join("store")));
        let name = |path: &Path| path.strip_prefix(self.path()).unwrap().to_string_lossy().into();
        files.map(|path| (name(path), std::fs::read(path).unwrap())).collect()
    }

    /// Returns agents and states that a command such as `hooks status` prints.
    pub(crate) fn agent_states(&self, args: &[&str]) -> Vec<(String, String)> {
        let rows = self.steno(&[args, &["--json"]].concat()).ok();
        let state = |line: &str| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            (row["agent"].as_str().unwrap().to_owned(), row["state"].as_str().unwrap().to_owned())
        };
        rows.lines().map(state).collect()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.program(env!("CARGO_BIN_EXE_steno"), args)
    }

    /// Returns a command for any program, in the home folder and with an empty environment.
    pub(crate) fn program(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.path()).env_clear();
        command.env("HOME", self.path()).env("STENO_HOME", self.path().join("store"));
        command.env("STENO_SYNC_AUTOMATIC", "false");
        command.env("TZ", "UTC").env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    /// Runs `steno` with empty standard input, at a fixed time.
    pub(crate) fn steno(&self, args: &[&str]) -> Output {
        self.steno_with(args, b"")
    }

    /// Runs `steno` with `input` on its standard input, at a fixed time.
    pub(crate) fn steno_with(&self, args: &[&str], input: &[u8]) -> Output {
        let mut command = self.command(args);
        command.env("STENO_NOW", "2026-01-05T09:15:32.5Z");
        self.finish(command, input)
    }

    pub(crate) fn finish(&self, mut command: Command, input: &[u8]) -> Output {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let feeder = std::thread::spawn(move || {
            // The program may end before it has read everything.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        feeder.join().unwrap();
        let text = |bytes| self.normalised(&String::from_utf8_lossy(bytes));
        Output {
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
            code: output.status.code().unwrap_or(-1),
        }
    }

    fn normalised(&self, text: &str) -> String {
        let path = self.path().to_string_lossy().into_owned();
        let real = self.path().canonicalize().unwrap().to_string_lossy().into_owned();
        text.replace(&real, "$HOME").replace(&path, "$HOME")
    }
}

impl Output {
    /// Returns the output of a command that must have succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self}");
        self.stdout
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.stdout)?;
        if !self.stderr.is_empty() {
            write!(f, "--- stderr\n{}", self.stderr)?;
        }
        write!(f, "--- exit {}", self.code)
    }
}

/// Deterministic pseudo-random numbers.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
