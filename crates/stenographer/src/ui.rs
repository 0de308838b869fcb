//! Who may print what: results to stdout, everything else to stderr.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use steno_core::Problem;

use crate::error::{CommandError, Exit};
use crate::json_output::{JsonEscaper, escaped_json, is_unsafe};

/// The program's two outputs.
pub(crate) struct Ui {
    out: Box<dyn Write>,
    terminal: bool,
    styled: bool,
    quiet: bool,
    silent: bool,
    troubled: bool,
}

impl Ui {
    /// The process's own stdout and stderr.
    pub(crate) fn stdio() -> Self {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        let out = Box::new(io::BufWriter::new(stdout));
        Self { out, terminal, styled: terminal, quiet: false, silent: false, troubled: false }
    }

    /// Says nothing at all.
    pub(crate) fn silent() -> Self {
        Self {
            out: Box::new(io::sink()),
            terminal: false,
            styled: false,
            quiet: true,
            silent: true,
            troubled: false,
        }
    }

    /// Drops status messages; results, warnings and errors stay.
    pub(crate) fn set_quiet(&mut self, quiet: bool) {
        self.quiet = quiet;
    }

    /// Whether only results are wanted.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Whether a person looks at stdout.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Whether a person looks at stdout and can press keys.
    pub(crate) fn is_interactive(&self) -> bool {
        self.terminal && io::stdin().is_terminal()
    }

    /// Prints plain text even on a terminal.
    pub(crate) fn set_plain(&mut self) {
        self.styled = false;
    }

    /// Whether text may be bold or coloured.
    pub(crate) fn is_styled(&self) -> bool {
        self.styled
    }

    /// Columns that a line may take.
    pub(crate) fn width(&self) -> usize {
        match terminal_size::terminal_size() {
            Some((terminal_size::Width(width), _)) if self.terminal => usize::from(width),
            _ => 120,
        }
    }

    /// Where results go.
    pub(crate) fn out(&mut self) -> &mut dyn Write {
        &mut self.out
    }

    /// Has all results escaped as JSON must be before anybody sees it.
    pub(crate) fn set_json_output(&mut self) {
        self.out = Box::new(io::BufWriter::new(JsonEscaper::new(io::stdout())));
    }

    /// Prints a table or another list for people: escaped wherever it goes.
    pub(crate) fn listing_text(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(defused(text).as_bytes())
    }

    /// Prints JSON that is a result in itself: escaped on a terminal, as it is into a pipe.
    pub(crate) fn json_text(&mut self, text: &str) -> io::Result<()> {
        match self.terminal {
            true => self.out.write_all(&escaped_json(text)),
            false => self.out.write_all(text.as_bytes()),
        }
    }

    /// Prints a path in a line of its own: escaped on a terminal, as it is into a pipe.
    pub(crate) fn path_line(&mut self, path: &Path) -> io::Result<()> {
        self.transcript_text(&format!("{}\n", path.display()))
    }

    /// Prints text from a transcript: escaped on a terminal, as it is into a pipe.
    pub(crate) fn transcript_text(&mut self, text: &str) -> io::Result<()> {
        if self.terminal {
            self.out.write_all(defused(text).as_bytes())
        } else {
            self.out.write_all(text.as_bytes())
        }
    }

    /// Writes out what was buffered.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Tells what was done.
    pub(crate) fn status(&mut self, message: impl Display) {
        if !self.quiet {
            self.say(message);
        }
    }

    /// Tells what somebody may be waiting for, even when asked to be quiet.
    pub(crate) fn note(&mut self, message: impl Display) {
        self.say(message);
    }

    /// Whether a person can be asked: stdin and stderr are a terminal.
    pub(crate) fn can_ask(&self) -> bool {
        !self.silent && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Asks a question on stderr; only `y` or `yes` on standard input confirms it.
    pub(crate) fn confirms(&mut self, question: impl Display) -> bool {
        let _ = self.flush();
        let _ = write!(io::stderr(), "{}", defused(&question.to_string()));
        let mut answer = String::new();
        let _ = io::stdin().read_line(&mut answer);
        matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
    }

    /// Shows how far long work has come; only where a person looks.
    pub(crate) fn progress(&self, verb: &'static str) -> Progress {
        let shown = !self.quiet && io::stderr().is_terminal();
        Progress { verb, shown, count: 0, last: Instant::now() }
    }

    /// Tells what went wrong without ending the command.
    pub(crate) fn warning(&mut self, message: impl Display) {
        self.say(format_args!("warning: {message}"));
    }

    /// Tells of records that could not be read, each as `path:line: reason`; the program ends with 1 then.
    pub(crate) fn problems(&mut self, problems: &[Problem]) {
        for problem in problems {
            self.warning(problem);
        }
        self.troubled |= problems.iter().any(|problem| !problem.is_notice);
    }

    /// Warns that an answer is incomplete; the program ends with 1 then.
    pub(crate) fn incomplete(&mut self, warnings: impl Iterator<Item = String>) {
        for warning in warnings {
            self.warning(warning);
            self.troubled = true;
        }
    }

    /// How the program ends when a command ends with `exit`: not well if anything could not be read.
    pub(crate) fn settle(&self, exit: Exit) -> Exit {
        if self.troubled && exit == Exit::Done { Exit::Failed } else { exit }
    }

    /// Prints an error with its causes and hints, and says how the program ends.
    pub(crate) fn report(&mut self, error: &CommandError) -> Exit {
        if error.is_broken_pipe() {
            return Exit::Done;
        }
        self.say(format_args!("error: {}", error.error));
        let mut source = error.error.source();
        while let Some(cause) = source {
            self.say(format_args!("caused by: {cause}"));
            source = cause.source();
        }
        for hint in &error.hints {
            self.say(format_args!("hint: {hint}"));
        }
        error.exit
    }

    fn say(&mut self, message: impl Display) {
        if self.silent {
            return;
        }
        // What was printed before stands before; a closed stdout is found by the next result.
        let _ = self.flush();
        let text = message.to_string();
        let text = if io::stderr().is_terminal() { defused(&text) } else { text };
        // Nobody is left to tell when stderr is closed.
        let _ = writeln!(io::stderr(), "{text}");
    }
}

/// A line on the terminal that counts.
pub(crate) struct Progress {
    verb: &'static str,
    shown: bool,
    count: u64,
    last: Instant,
}

impl Progress {
    /// One more has come.
    pub(crate) fn step(&mut self, what: impl Display) {
        self.count += 1;
        if self.shown && self.last.elapsed() > Duration::from_millis(100) {
            self.last = Instant::now();
            let line: String =
                defused(&format!("{} {} {what}", self.verb, self.count)).chars().take(78).collect();
            let _ = write!(io::stderr(), "\r\x1b[K{line}");
        }
    }

    /// Removes the line; what comes later is not shown.
    pub(crate) fn finish(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// A number and what it counts.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let stem = noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
    match (number, stem) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {noun}s"),
    }
}

/// Text with control and bidirectional characters made visible, so that no transcript can drive a terminal.
pub(crate) fn defused(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c if is_unsafe(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        let entries = [0, 1, 2].map(|number| count(number, "entry"));
        assert_eq!(entries, ["0 entries", "1 entry", "2 entries"]);
        assert_eq!([1, 2].map(|number| count(number, "byte")), ["1 byte", "2 bytes"]);
    }

    #[test]
    fn terminals_cannot_be_driven_by_transcripts() {
        assert_eq!(
            defused("a\x1b[2Jb\u{202e}c\n\td\u{9b}e"),
            "a\\u{1b}[2Jb\\u{202e}c\n\td\\u{9b}e"
        );
    }
}
