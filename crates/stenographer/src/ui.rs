//! Who may print what: results to stdout, everything else to stderr.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use steno_core::Problem;

use crate::error::{CommandError, CommandExit};
use crate::json_output::{JsonEscaper, escape_json, is_unsafe};

/// The program's two outputs.
pub(crate) struct Ui {
    out: Box<dyn Write>,
    is_stdout_terminal: bool,
    has_style: bool,
    hides_status: bool,
    hides_all: bool,
    has_problems: bool,
}

impl Ui {
    /// The process's own stdout and stderr.
    pub(crate) fn stdio() -> Self {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        let out = Box::new(io::BufWriter::new(stdout));
        Self {
            out,
            is_stdout_terminal: terminal,
            has_style: terminal,
            hides_status: false,
            hides_all: false,
            has_problems: false,
        }
    }

    /// Says nothing at all.
    pub(crate) fn silent() -> Self {
        Self {
            out: Box::new(io::sink()),
            is_stdout_terminal: false,
            has_style: false,
            hides_status: true,
            hides_all: true,
            has_problems: false,
        }
    }

    /// Drops status messages; results, warnings and errors stay.
    pub(crate) fn set_quiet(&mut self, quiet: bool) {
        self.hides_status = quiet;
    }

    /// Whether only results are wanted.
    pub(crate) fn is_quiet(&self) -> bool {
        self.hides_status
    }

    /// Whether a person looks at stdout.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_stdout_terminal
    }

    /// Whether a person looks at stdout and can press keys.
    pub(crate) fn is_interactive(&self) -> bool {
        self.is_stdout_terminal && io::stdin().is_terminal()
    }

    /// Prints plain text even on a terminal.
    pub(crate) fn set_plain(&mut self) {
        self.has_style = false;
    }

    /// Whether text may be bold or coloured.
    pub(crate) fn is_styled(&self) -> bool {
        self.has_style
    }

    /// Columns that a line may take.
    pub(crate) fn width(&self) -> usize {
        match terminal_size::terminal_size() {
            Some((terminal_size::Width(width), _)) if self.is_stdout_terminal => usize::from(width),
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
        self.out.write_all(escape_control(text).as_bytes())
    }

    /// Prints JSON that is a result in itself: escaped on a terminal, as it is into a pipe.
    pub(crate) fn json_text(&mut self, text: &str) -> io::Result<()> {
        match self.is_stdout_terminal {
            true => self.out.write_all(&escape_json(text)),
            false => self.out.write_all(text.as_bytes()),
        }
    }

    /// Prints a path in a line of its own: escaped on a terminal, as it is into a pipe.
    pub(crate) fn path_line(&mut self, path: &Path) -> io::Result<()> {
        self.transcript_text(&format!("{}\n", path.display()))
    }

    /// Prints text from a transcript: escaped on a terminal, as it is into a pipe.
    pub(crate) fn transcript_text(&mut self, text: &str) -> io::Result<()> {
        if self.is_stdout_terminal {
            self.out.write_all(escape_control(text).as_bytes())
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
        if !self.hides_status {
            self.print_message(message);
        }
    }

    /// Tells what somebody may be waiting for, even when asked to be quiet.
    pub(crate) fn print_note(&mut self, message: impl Display) {
        self.print_message(message);
    }

    /// Whether a person can be asked: stdin and stderr are a terminal.
    pub(crate) fn can_ask(&self) -> bool {
        !self.hides_all && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Asks a question on stderr; only `y` or `yes` on standard input confirms it.
    pub(crate) fn confirm(&mut self, question: impl Display) -> bool {
        let _ = self.flush();
        let _ = write!(io::stderr(), "{}", escape_control(&question.to_string()));
        let mut answer = String::new();
        let _ = io::stdin().read_line(&mut answer);
        matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
    }

    /// Shows how far long work has come; only where a person looks.
    pub(crate) fn start_progress(&self, verb: &'static str) -> ProgressLine {
        let shown = !self.hides_status && io::stderr().is_terminal();
        ProgressLine { verb, is_shown: shown, count: 0, last: Instant::now() }
    }

    /// Tells what went wrong without ending the command.
    pub(crate) fn warning(&mut self, message: impl Display) {
        self.print_message(format_args!("warning: {message}"));
    }

    /// Tells of records that could not be read, each as `path:line: reason`; the program ends with 1 then.
    pub(crate) fn report_problems(&mut self, problems: &[Problem]) {
        for problem in problems {
            self.warning(problem);
        }
        self.has_problems |= problems.iter().any(|problem| !problem.is_notice);
    }

    /// Warns that an answer is incomplete; the program ends with 1 then.
    pub(crate) fn report_incomplete(&mut self, warnings: impl Iterator<Item = String>) {
        for warning in warnings {
            self.warning(warning);
            self.has_problems = true;
        }
    }

    /// How the program ends when a command ends with `exit`: not well if anything could not be read.
    pub(crate) fn adjust_exit(&self, exit: CommandExit) -> CommandExit {
        if self.has_problems && exit == CommandExit::Done { CommandExit::Failed } else { exit }
    }

    /// Prints an error with its causes and hints, and says how the program ends.
    pub(crate) fn report_error(&mut self, error: &CommandError) -> CommandExit {
        if error.is_broken_pipe() {
            return CommandExit::Done;
        }
        self.print_message(format_args!("error: {}", error.error));
        let mut source = error.error.source();
        while let Some(cause) = source {
            self.print_message(format_args!("caused by: {cause}"));
            source = cause.source();
        }
        for hint in &error.hints {
            self.print_message(format_args!("hint: {hint}"));
        }
        error.exit
    }

    fn print_message(&mut self, message: impl Display) {
        if self.hides_all {
            return;
        }
        // What was printed before stands before; a closed stdout is found by the next result.
        let _ = self.flush();
        let text = message.to_string();
        let text = if io::stderr().is_terminal() { escape_control(&text) } else { text };
        // Nobody is left to tell when stderr is closed.
        let _ = writeln!(io::stderr(), "{text}");
    }
}

/// A line on the terminal that counts.
pub(crate) struct ProgressLine {
    verb: &'static str,
    is_shown: bool,
    count: u64,
    last: Instant,
}

impl ProgressLine {
    /// One more has come.
    pub(crate) fn step(&mut self, what: impl Display) {
        self.count += 1;
        if self.is_shown && self.last.elapsed() > Duration::from_millis(100) {
            self.last = Instant::now();
            let line: String = escape_control(&format!("{} {} {what}", self.verb, self.count))
                .chars()
                .take(78)
                .collect();
            let _ = write!(io::stderr(), "\r\x1b[K{line}");
        }
    }

    /// Removes the line; what comes later is not shown.
    pub(crate) fn finish(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// A number and what it counts.
pub(crate) fn count_noun(number: u64, noun: &str) -> String {
    let stem = noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
    match (number, stem) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {noun}s"),
    }
}

/// Text with control and bidirectional characters made visible, so that no transcript can drive a terminal.
pub(crate) fn escape_control(text: &str) -> String {
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
        let entries = [0, 1, 2].map(|number| count_noun(number, "entry"));
        assert_eq!(entries, ["0 entries", "1 entry", "2 entries"]);
        assert_eq!([1, 2].map(|number| count_noun(number, "byte")), ["1 byte", "2 bytes"]);
    }

    #[test]
    fn terminals_cannot_be_driven_by_transcripts() {
        assert_eq!(
            escape_control("a\x1b[2Jb\u{202e}c\n\td\u{9b}e"),
            "a\\u{1b}[2Jb\\u{202e}c\n\td\\u{9b}e"
        );
    }
}
