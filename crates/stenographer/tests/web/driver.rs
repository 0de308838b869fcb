//! A headless Chromium, driven over WebDriver.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Timeout for something to appear.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Flags to run Chromium without a screen, also as root.
const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--disable-dev-shm-usage",
    "--lang=en-US",
];

/// True once the scripts of a page have run, so that its buttons work.
pub(crate) const SCRIPTS_RUN: &str = "document.documentElement.dataset.theme !== undefined";

/// An open browser; closed when dropped.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: TempDir,
}

impl Browser {
    /// Opens a browser with a window of this size; `None` if none is installed.
    ///
    /// With `STENO_BROWSER=required`, as in `scripts/check`, a missing browser is a failure.
    pub(crate) fn open(width: u32, height: u32) -> Option<Self> {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let started = Command::new("chromedriver")
            .arg(format!("--port={port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(driver) = started else {
            let is_required = std::env::var("STENO_BROWSER").is_ok_and(|text| text == "required");
            assert!(!is_required, "chromedriver is not installed");
            eprintln!("skipped: chromedriver is not installed");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        let mut browser = Self { driver, port, session: String::new(), _profile: profile };
        wait("the driver", || browser.ask("GET", "/status", &Value::Null).ok().map(|_| ()));
        let mut flags: Vec<String> = FLAGS.iter().map(|flag| (*flag).to_owned()).collect();
        flags.push(format!("--user-data-dir={}", browser._profile.path().display()));
        flags.push(format!("--window-size={width},{height}"));
        let options = json!({"args": flags});
        let asked = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}});
        let response = browser.ask("POST", "/session", &asked).unwrap();
        browser.session = response["sessionId"].as_str().unwrap().to_owned();
        Some(browser)
    }

    /// Opens an address, and waits until its scripts have run.
    pub(crate) fn go(&self, url: &str) {
        self.command("POST", "/url", &json!({"url": url}));
        self.until("document.readyState === 'complete'");
    }

    /// Runs a script and returns its result.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.command("POST", "/execute/sync", &json!({"script": script, "args": []}))
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(crate) fn until(&self, expression: &str) {
        let script = format!("return Boolean({expression})");
        wait(expression, || (self.run(&script) == json!(true)).then_some(()));
    }

    /// Presses keys in the focused element.
    pub(crate) fn press(&self, keys: &str) {
        let one = |key: char| {
            [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
        };
        let actions: Vec<Value> = keys.chars().flat_map(one).collect();
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": actions});
        self.command("POST", "/actions", &json!({"actions": [keyboard]}));
    }

    /// Runs a command of the browser's own protocol. Returns its result.
    pub(crate) fn emulate(&self, command: &str, parameters: &Value) -> Value {
        let body = json!({"cmd": command, "params": parameters});
        self.command("POST", "/goog/cdp/execute", &body)
    }

    /// Writes a screenshot.
    pub(crate) fn picture(&self, name: &str) {
        let response = self.command("GET", "/screenshot", &Value::Null);
        let bytes = STANDARD.decode(response.as_str().unwrap()).unwrap();
        std::fs::write(pictures().join(format!("{name}.png")), bytes).unwrap();
    }

    /// Returns the browser's log messages since the last call.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let response = self.command("POST", "/se/log", &json!({"type": "browser"}));
        let lines = response.as_array().unwrap().iter().filter(|line| line["level"] != "INFO");
        lines.map(|line| line["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    fn command(&self, method: &str, path: &str, body: &Value) -> Value {
        let path = format!("/session/{}{path}", self.session);
        self.ask(method, &path, body).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let to_text = |error: std::io::Error| error.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(to_text)?;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).map_err(to_text)?;
        let text = body_of(BufReader::new(stream)).map_err(to_text)?;
        let value: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        match value["value"]["error"].as_str() {
            Some(error) => Err(format!("{error}: {}", value["value"]["message"])),
            None => Ok(value["value"].clone()),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let _ = self.ask("DELETE", &format!("/session/{}", self.session), &Value::Null);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Reads the body of a response. The driver keeps connections open, so the length is counted.
fn body_of(mut answer: impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        answer.read_line(&mut line)?;
        let header = line.trim().to_lowercase();
        if let Some(stated) = header.strip_prefix("content-length:") {
            length = stated.trim().parse().unwrap_or(0);
        }
        if header.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    answer.read_exact(&mut body)?;
    Ok(body)
}

/// Waits until `look` returns something.
#[track_caller]
pub(crate) fn wait<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < TIMEOUT, "did not come: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the folder for screenshots.
fn pictures() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
