//! The terminal while the browser uses it. It is restored however the browser ends.

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

use super::draw::{self, TerminalPalette};
use super::state::BrowserState;

/// Whether the terminal must be restored.
static IS_TERMINAL_TAKEN: AtomicBool = AtomicBool::new(false);

/// The whole terminal in raw mode.
pub(super) struct TerminalScreen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl TerminalScreen {
    /// Enters raw mode and the alternate screen.
    pub(super) fn open() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(install_restore_handlers);
        enable_raw_mode()?;
        // A buffer for a whole frame, so that it is written at once.
        let output = BufWriter::with_capacity(1 << 16, io::stdout());
        IS_TERMINAL_TAKEN.store(true, Ordering::Relaxed);
        let terminal =
            Terminal::new(CrosstermBackend::new(output)).inspect_err(|_| restore_terminal())?;
        // From here on, `drop` restores the terminal.
        let screen = Self { terminal };
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        Ok(screen)
    }

    pub(super) fn size(&self) -> io::Result<Size> {
        self.terminal.size()
    }

    pub(super) fn draw(
        &mut self,
        state: &mut BrowserState,
        palette: TerminalPalette,
    ) -> io::Result<()> {
        self.terminal.draw(|frame| draw::draw_browser(frame, state, palette))?;
        Ok(())
    }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        restore_terminal();
    }
}

/// Restores the terminal once. Errors are ignored: nothing more can be done.
fn restore_terminal() {
    if !IS_TERMINAL_TAKEN.swap(false, Ordering::Relaxed) {
        return;
    }
    let _ = execute!(io::stdout(), DisableBracketedPaste, LeaveAlternateScreen);
    let _ = execute!(io::stdout(), ratatui::crossterm::cursor::Show);
    let _ = disable_raw_mode();
}

/// Restores the terminal before a panic message is printed, and before a signal ends the program.
///
/// A panic in another thread is reported inside the browser, which continues.
fn install_restore_handlers() {
    let (tell, own) = (panic::take_hook(), thread::current().id());
    panic::set_hook(Box::new(move |info| {
        if thread::current().id() == own {
            restore_terminal();
            tell(info);
        }
    }));
    thread::spawn(exit_on_hangup);
    // Without a signal handler, only the cleanup on Ctrl-C is missing.
    let _ = ctrlc::set_handler(|| {
        restore_terminal();
        std::process::exit(130);
    });
}

/// Ends the program when the terminal is gone. Where it is not the controlling terminal, no signal says so, and crossterm
/// would read the end of the input forever.
#[cfg(unix)]
fn exit_on_hangup() {
    use rustix::event::{PollFd, PollFlags, poll};

    // A hangup is always reported, even if no event is asked for.
    let input = rustix::stdio::stdin();
    let mut watched = [PollFd::new(&input, PollFlags::empty())];
    loop {
        match poll(&mut watched, None) {
            Ok(_) if watched[0].revents().contains(PollFlags::HUP) => std::process::exit(129),
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

#[cfg(not(unix))]
fn exit_on_hangup() {}
