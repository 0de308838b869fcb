//! Tests of the program under the name `leslie`, as scripts and agents call it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness;

mod errors;
mod formats;
mod golden;
mod guide;
mod sequences;
mod stores;
mod workers;

/// A project folder, and a link named `leslie`.
struct Project {
    home: harness::Home,
}

/// Response of a call.
struct Answer {
    envelope: Value,
    stderr: String,
    code: i32,
}

impl Project {
    fn new() -> Self {
        let home = harness::Home::new();
        let bin = home.path().join("bin");
        fs::create_dir(&bin).unwrap();
        symlink(env!("CARGO_BIN_EXE_steno"), bin.join("leslie")).unwrap();
        Self { home }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// Returns the content of one of the stores.
    fn store(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(&format!(".leslie/{name}.json"))).unwrap()
    }

    fn run(&self, args: &[&str], input: &str) -> harness::Output {
        let program = self.path("bin/leslie");
        let mut command = self.home.program(program.to_str().unwrap(), args);
        // No agent on this machine must be started.
        command.env("PATH", self.path("bin"));
        self.home.finish(command, input.as_bytes())
    }

    fn call(&self, args: &[&str]) -> Answer {
        self.call_with(args, "")
    }

    fn call_with(&self, args: &[&str], input: &str) -> Answer {
        let output = self.run(args, input);
        let envelope = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output}"));
        Answer { envelope, stderr: output.stderr, code: output.code }
    }

    /// Returns the data of a call that must succeed.
    #[track_caller]
    fn data(&self, args: &[&str]) -> Value {
        let answer = self.call(args);
        assert_eq!(answer.code, 0, "{args:?}: {}", answer.envelope);
        assert_eq!(answer.envelope["success"], true);
        answer.envelope["data"].clone()
    }

    /// Returns code and message of a call that must fail.
    #[track_caller]
    fn error(&self, args: &[&str]) -> (String, String) {
        let Answer { envelope, code, .. } = self.call(args);
        assert_eq!((code, &envelope["success"]), (1, &json!(false)), "{args:?}: {envelope}");
        assert_eq!(fields(&envelope), ["success", "error"]);
        let text = |name: &str| envelope["error"][name].as_str().unwrap().to_owned();
        (text("code"), text("message"))
    }

    fn objective(&self, title: &str) -> String {
        string(&self.data(&["objective", "create", "--title", title]), "objectiveId")
    }

    fn spawn(&self, objective: &str, intent: &str, more: &[&str]) -> String {
        let args = ["spawn", "--intent", intent, "--objective", objective, "--no-run"];
        string(&self.data(&[&args, more].concat()), "thread_id")
    }

    /// Writes an asset of a thread.
    fn asset(&self, thread: &str, path: &str, text: &str) {
        self.home.file(&format!(".leslie/threads/{thread}/{path}"), text);
    }
}

fn string(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}")).to_owned()
}

fn fields(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}
