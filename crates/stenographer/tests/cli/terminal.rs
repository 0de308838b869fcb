//! A real terminal: runs the program, presses keys, and checks the screen.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::AsFd;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command, Pty};
use vt100::Parser;

use crate::harness::Home;

/// Timeout for the screen; far longer than needed.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A terminal with a program in it.
pub(crate) struct Terminal {
    pty: Pty,
    child: Child,
    reader: Option<JoinHandle<()>>,
    parser: Arc<Mutex<Parser>>,
    home: String,
}

impl Terminal {
    /// Runs a program in a terminal of 80 columns and 24 rows, in the home folder and at a fixed time.
    pub(crate) fn run(
        home: &Home,
        program: &str,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        Self::run_sized(home, (80, 24), &[&[program], args].concat(), variables)
    }

    /// Runs a program and its arguments in a terminal with this number of columns and rows.
    pub(crate) fn run_sized(
        home: &Home,
        (columns, rows): (u16, u16),
        words: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let (program, args) = words.split_first().unwrap();
        let (pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(Size::new(rows, columns)).unwrap();
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", home.path().join("bin").display());
        let command = Command::new(program).args(args).current_dir(home.path()).env_clear();
        let command = command.env("HOME", home.path()).env("STENO_HOME", home.path().join("store"));
        let command = command.env("STENO_SYNC_AUTOMATIC", "false");
        let command = command.env("TZ", "UTC").env("PATH", path).env("TERM", "xterm-256color");
        let command = command.env("STENO_NOW", "2026-01-05T09:15:32.5Z");
        let child = command.envs(variables.iter().copied()).spawn(pts).unwrap();
        let parser = Arc::new(Mutex::new(Parser::new(size(rows), size(columns), 0)));
        let mut output = std::fs::File::from(pty.as_fd().try_clone_to_owned().unwrap());
        let screen = Arc::clone(&parser);
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The program's end ends the reading.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                screen.lock().unwrap().process(&bytes[..count]);
            }
        });
        let home = home.path().canonicalize().unwrap().to_string_lossy().into_owned();
        Self { pty, child, reader: Some(reader), parser, home }
    }

    /// Runs `steno` without arguments.
    pub(crate) fn browser(home: &Home) -> Self {
        Self::run(home, env!("CARGO_BIN_EXE_steno"), &[], &[])
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.pty.write_all(keys.as_bytes()).unwrap();
    }

    /// Resizes the window.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.parser.lock().unwrap().screen_mut().set_size(size(rows), size(columns));
        self.pty.resize(Size::new(rows, columns)).unwrap();
    }

    /// Waits until the screen shows all `texts`. Returns the screen.
    #[track_caller]
    pub(crate) fn shows(&self, texts: &[&str]) -> String {
        self.until(|screen| texts.iter().all(|text| screen.contains(text)), texts)
    }

    /// Waits until a text has disappeared from the screen.
    #[track_caller]
    pub(crate) fn hides(&self, text: &str) {
        self.until(|screen| !screen.contains(text), &["not", text]);
    }

    /// Like `shows`, once the screen no longer changes: a frame may arrive in parts.
    #[track_caller]
    pub(crate) fn rests_at(&self, texts: &[&str]) -> String {
        loop {
            let screen = self.shows(texts);
            thread::sleep(Duration::from_millis(150));
            if self.screen() == screen {
                return screen;
            }
        }
    }

    #[track_caller]
    fn until(&self, is_there: impl Fn(&str) -> bool, wanted: &[&str]) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let screen = self.screen();
            if is_there(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "waited for {wanted:?}, but saw:\n{screen}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns the screen as text.
    pub(crate) fn screen(&self) -> String {
        let parser = self.parser.lock().unwrap();
        let columns = parser.screen().size().1.get();
        let rows = parser.screen().rows(0, columns).map(|row| row.trim_end().to_owned());
        rows.collect::<Vec<_>>().join("\n").replace(&self.home, "$HOME")
    }

    /// Inspects the emulated terminal.
    pub(crate) fn look<T>(&self, look: impl Fn(&vt100::Screen) -> T) -> T {
        look(self.parser.lock().unwrap().screen())
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the program's end and all its output. Returns its exit code.
    pub(crate) fn ends(&mut self) -> Option<i32> {
        let code = self.child.wait().unwrap().code();
        self.reader.take().unwrap().join().unwrap();
        code
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn size(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap()
}
