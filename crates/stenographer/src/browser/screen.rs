//! The terminal while the browser has it. However the browser ends, the terminal is given back as it was.

use std::io::{self, BufWriter, Stdout};
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Size;

use super::draw::{self, Palette};
use super::state::State;

/// Whether the terminal has to be given back.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The whole terminal.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn open() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(restore_when_killed);
        enable_raw_mode()?;
        // Each picture goes out at once.
        let output = BufWriter::with_capacity(1 << 16, io::stdout());
        TAKEN.store(true, Ordering::Relaxed);
        let terminal = Terminal::new(CrosstermBackend::new(output)).inspect_err(|_| restore())?;
        // From here on, dropping gives it back.
        let screen = Self { terminal };
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        Ok(screen)
    }

    pub(super) fn size(&self) -> io::Result<Size> {
        self.terminal.size()
    }

    pub(super) fn draw(&mut self, state: &mut State, palette: Palette) -> io::Result<()> {
        self.terminal.draw(|frame| draw::draw(frame, state, palette))?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back, once. Nothing can be done where that fails.
fn restore() {
    if !TAKEN.swap(false, Ordering::Relaxed) {
        return;
    }
    let _ = execute!(io::stdout(), DisableBracketedPaste, LeaveAlternateScreen);
    let _ = execute!(io::stdout(), ratatui::crossterm::cursor::Show);
    let _ = disable_raw_mode();
}

/// Gives the terminal back before a panic is told, and before a signal ends the program.
///
/// A panic of another thread is told by the browser, which goes on.
fn restore_when_killed() {
    let (tell, own) = (panic::take_hook(), thread::current().id());
    panic::set_hook(Box::new(move |info| {
        if thread::current().id() == own {
            restore();
            tell(info);
        }
    }));
    // Without it the program only ends less tidily.
    let _ = ctrlc::set_handler(|| {
        restore();
        std::process::exit(130);
    });
}
