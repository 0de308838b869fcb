//! Output of the program: results to stdout, everything else to stderr.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use steno_model::Problem;

use crate::error::{CommandError, CommandExit};
use crate::json_output::{JsonEscaper, escape_json};
use crate::pager::Pager;
use crate::progress_line::ProgressLine;
pub(crate) use crate::terminal_text::{count_bytes, count_noun, escape_control, group_digits};

/// Width of a terminal that does not report its own.
const DEFAULT_COLUMNS: usize = 80;

/// The two outputs of the program.
pub(crate) struct Ui {
    out: Box<dyn Write>,
    is_stdout_terminal: bool,
    has_style: bool,
    hides_status: bool,
    hides_all: bool,
    has_problems: bool,
    pager: Option<Pager>,
}

impl Ui {
    /// Creates an output to stdout and stderr.
    pub(crate) fn stdio() -> Self {
        let stdout = io::stdout();
        let is_stdout_terminal = stdout.is_terminal();
        let out = Box::new(io::BufWriter::new(stdout));
        Self {
            out,
            is_stdout_terminal,
            has_style: is_stdout_terminal,
            hides_status: false,
            hides_all: false,
            has_problems: false,
            pager: None,
        }
    }

    /// Creates an output that prints nothing.
    pub(crate) fn silent() -> Self {
        Self {
            out: Box::new(io::sink()),
            is_stdout_terminal: false,
            has_style: false,
            hides_status: true,
            hides_all: true,
            has_problems: false,
            pager: None,
        }
    }

    /// Hides status messages; results, warnings and errors are still printed.
    pub(crate) fn set_quiet(&mut self, quiet: bool) {
        self.hides_status = quiet;
    }

    /// Returns whether status messages are hidden.
    pub(crate) fn is_quiet(&self) -> bool {
        self.hides_status
    }

    /// Returns whether stdout is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_stdout_terminal
    }

    /// Returns whether stdout and stdin are terminals.
    pub(crate) fn is_interactive(&self) -> bool {
        self.is_stdout_terminal && io::stdin().is_terminal()
    }

    /// Disables styles, even on a terminal.
    pub(crate) fn set_plain(&mut self) {
        self.has_style = false;
    }

    /// Returns whether text may be bold or coloured.
    pub(crate) fn is_styled(&self) -> bool {
        self.has_style
    }

    /// Returns the width of a line in columns.
    pub(crate) fn width(&self) -> usize {
        match terminal_size::terminal_size() {
            Some((terminal_size::Width(width), _)) if self.is_stdout_terminal => usize::from(width),
            _ => 120,
        }
    }

    /// Returns the writer for results.
    pub(crate) fn out(&mut self) -> &mut dyn Write {
        &mut self.out
    }

    /// Escapes all results as JSON.
    pub(crate) fn set_json_output(&mut self) {
        self.out = Box::new(io::BufWriter::new(JsonEscaper::new(io::stdout())));
    }

    /// Prints a table or list for people: always escaped.
    pub(crate) fn listing_text(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(escape_control(text).as_bytes())
    }

    /// Prints JSON: escaped on a terminal, unchanged into a pipe.
    pub(crate) fn json_text(&mut self, text: &str) -> io::Result<()> {
        match self.is_stdout_terminal {
            true => self.out.write_all(&escape_json(text)),
            false => self.out.write_all(text.as_bytes()),
        }
    }

    /// Prints a path on a line: escaped on a terminal, unchanged into a pipe.
    pub(crate) fn path_line(&mut self, path: &Path) -> io::Result<()> {
        self.transcript_text(&format!("{}\n", path.display()))
    }

    /// Prints text of a transcript: escaped on a terminal, unchanged into a pipe.
    pub(crate) fn transcript_text(&mut self, text: &str) -> io::Result<()> {
        if self.is_stdout_terminal {
            self.out.write_all(escape_control(text).as_bytes())
        } else {
            self.out.write_all(text.as_bytes())
        }
    }

    /// Prints a part of a transcript: escaped and coloured on a terminal, unchanged into a pipe.
    pub(crate) fn styled_text(&mut self, part: &StyledText) -> io::Result<()> {
        let code = part.style.ansi_code().filter(|_| self.has_style);
        let Some(code) = code else { return self.transcript_text(&part.text) };
        // Each line has its own style, as a pager ends styles at the end of a line.
        for line in part.text.split_inclusive('\n') {
            let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
            match text {
                "" => self.out.write_all(end.as_bytes())?,
                text => write!(self.out, "\x1b[{code}m{}\x1b[0m{end}", escape_control(text))?,
            }
        }
        Ok(())
    }

    /// Sends all further results through a pager, if stdout is a terminal. Without one that starts, they are printed
    /// directly.
    pub(crate) fn start_pager(&mut self, command: Option<&str>) {
        let Some(command) = command.filter(|_| self.is_stdout_terminal) else { return };
        if self.flush().is_ok()
            && let Some((pager, input)) = Pager::start(command)
        {
            self.out = Box::new(io::BufWriter::new(input));
            self.pager = Some(pager);
        }
    }

    /// Waits until the user leaves the pager.
    pub(crate) fn end_pager(&mut self) {
        if let Some(pager) = self.pager.take() {
            // A pager that the user has left takes no more; closing its input ends it otherwise.
            let _ = self.flush();
            self.out = Box::new(io::BufWriter::new(io::stdout()));
            pager.wait();
        }
    }

    /// Flushes the buffer.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Prints a status message.
    pub(crate) fn status(&mut self, message: impl Display) {
        if !self.hides_status {
            self.print_message(message);
        }
    }

    /// Prints a message even with `--quiet`.
    pub(crate) fn print_note(&mut self, message: impl Display) {
        self.print_message(message);
    }

    /// Returns whether the user can be asked: stdin and stderr are terminals.
    pub(crate) fn can_ask(&self) -> bool {
        !self.hides_all && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Asks a question on stderr; only `y` or `yes` confirms it.
    pub(crate) fn confirm(&mut self, question: impl Display) -> bool {
        let _ = self.flush();
        let _ = write!(io::stderr(), "{}", escape_control(&question.to_string()));
        let mut answer = String::new();
        let _ = io::stdin().read_line(&mut answer);
        matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
    }

    /// Asks a question on stderr, and returns the line that the user types.
    pub(crate) fn ask_line(&mut self, question: &str) -> io::Result<String> {
        self.flush()?;
        write!(io::stderr(), "{question}")?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(answer)
    }

    /// Creates a progress line; it is shown only on a terminal.
    pub(crate) fn start_progress(&self, verb: &'static str) -> ProgressLine {
        let is_shown = !self.hides_status && io::stderr().is_terminal();
        let columns = || match terminal_size::terminal_size_of(io::stderr()) {
            Some((terminal_size::Width(width), _)) => usize::from(width),
            None => DEFAULT_COLUMNS,
        };
        ProgressLine::new(verb, is_shown.then(columns))
    }

    /// Prints a warning.
    pub(crate) fn warning(&mut self, message: impl Display) {
        self.print_message(format_args!("warning: {message}"));
    }

    /// Prints records that could not be parsed, each as `path:line: reason`. The program then exits with 1.
    pub(crate) fn report_problems(&mut self, problems: &[Problem]) {
        for problem in problems {
            self.warning(problem);
        }
        self.has_problems |= problems.iter().any(|problem| !problem.is_notice());
    }

    /// Warns that a result is incomplete. The program then exits with 1.
    pub(crate) fn report_incomplete(&mut self, warnings: impl Iterator<Item = String>) {
        for warning in warnings {
            self.warning(warning);
            self.has_problems = true;
        }
    }

    /// Returns the exit of the program after a command: failed if anything could not be read.
    pub(crate) fn adjust_exit(&self, exit: CommandExit) -> CommandExit {
        if self.has_problems && exit == CommandExit::Done { CommandExit::Failed } else { exit }
    }

    /// Prints an error with its causes and hints. Returns the exit.
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
        if error.hints.is_empty() && error.is_missing_path() {
            self.print_message("hint: check that the path exists");
        }
        error.exit
    }

    fn print_message(&mut self, message: impl Display) {
        if self.hides_all {
            return;
        }
        // Flush first, to keep the order of messages; a closed stdout is detected at the next result.
        let _ = self.flush();
        let text = message.to_string();
        let text = if io::stderr().is_terminal() { escape_control(&text) } else { text };
        // A closed stderr is ignored.
        let _ = writeln!(io::stderr(), "{text}");
    }
}

/// A part of a text with one style.
pub(crate) struct StyledText {
    pub(crate) style: TextStyle,
    pub(crate) text: String,
}

/// The styles of a text on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextStyle {
    Plain,
    Title,
    Faint,
    User,
    Assistant,
    Tool,
    Note,
}

impl TextStyle {
    /// Returns the parameters of the terminal's own colours, which every theme makes readable.
    fn ansi_code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Title => Some("1"),
            Self::Faint => Some("2"),
            Self::User => Some("1;36"),
            Self::Assistant => Some("1;32"),
            Self::Tool => Some("33"),
            Self::Note => Some("35"),
        }
    }
}
