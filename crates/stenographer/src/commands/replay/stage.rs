//! Plays a session on the terminal, entry by entry, with the pauses that it had.

use std::io;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use steno_acp::replay::ReplayPace;
use steno_core::Transcript;

use super::player::{Key, Player, Then};
use crate::commands::show::terminal;
use crate::error::CommandError;
use crate::ui::Ui;

/// How long a paused replay waits for a key before it looks again.
const IDLE: Duration = Duration::from_secs(60);

/// A session that is played.
pub(super) struct Stage<'a> {
    pub(super) transcript: &'a Transcript,
    pub(super) zone: &'a TimeZone,
    /// Whether it has the pauses that it had.
    pub(super) is_timed: bool,
}

/// The terminal while keys are heard as they are pressed; given back however it ends.
struct Keys;

impl Keys {
    fn open(ui: &Ui) -> io::Result<Option<Self>> {
        if !ui.is_interactive() {
            return Ok(None);
        }
        enable_raw_mode()?;
        Ok(Some(Self))
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // Nothing can be done where that fails.
        let _ = disable_raw_mode();
    }
}

impl Stage<'_> {
    /// Plays all entries from a number on.
    pub(super) fn play(
        &self,
        ui: &mut Ui,
        from: usize,
        pace: ReplayPace,
    ) -> Result<(), CommandError> {
        let entries = &self.transcript.entries;
        let keys = Keys::open(ui)?;
        self.print(ui, &terminal::heading(&self.transcript.session, self.zone), &keys)?;
        let mut player = Player::new(entries, from, pace.speed);
        let mut before = entries.get(from).and_then(|entry| entry.created_at);
        while let Some(entry) = entries.get(player.at) {
            let pace = ReplayPace { speed: player.speed, ..pace };
            let pause =
                Some(pace.pause_between(before, entry.created_at)).filter(|_| self.is_timed);
            let stood = player.at;
            if wait(&mut player, pause.unwrap_or_default(), &keys)? == Then::Quit {
                return Ok(());
            }
            let skipped = player.at - stood;
            if skipped > 0 {
                self.print(ui, &format!("\n... {skipped} entries\n"), &keys)?;
            }
            let Some(entry) = entries.get(player.at) else { break };
            self.print(ui, &format!("\n{}", terminal::entry(entry, self.zone)), &keys)?;
            before = entry.created_at.or(before);
            player.at += 1;
        }
        Ok(())
    }

    fn print(&self, ui: &mut Ui, text: &str, keys: &Option<Keys>) -> io::Result<()> {
        // While keys are heard, a line end does not go back to the left.
        match keys {
            Some(_) => {
                let text = crate::ui::defused(text).replace('\n', "\r\n");
                ui.out().write_all(text.as_bytes())?;
            }
            None => ui.transcript_text(text)?,
        }
        ui.flush()
    }
}

/// Waits until the next entry is due, or a key wants something else.
fn wait(player: &mut Player<'_>, pause: Duration, keys: &Option<Keys>) -> io::Result<Then> {
    if keys.is_none() {
        std::thread::sleep(pause);
        return Ok(Then::Show);
    }
    let due = Instant::now() + pause;
    loop {
        let left = due.saturating_duration_since(Instant::now());
        let left = if player.is_paused { IDLE } else { left };
        if !event::poll(left)? {
            if player.is_paused {
                continue;
            }
            return Ok(Then::Show);
        }
        let Event::Key(key) = event::read()? else { continue };
        match meaning(key).map(|key| player.press(key)) {
            None | Some(Then::Wait) => {}
            Some(then) => return Ok(then),
        }
    }
}

fn meaning(key: KeyEvent) -> Option<Key> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c') if is_control => Key::Quit,
        KeyCode::Char(' ') => Key::Pause,
        KeyCode::Char('n') | KeyCode::Enter | KeyCode::Right | KeyCode::Down => Key::Step,
        KeyCode::Char('e') => Key::NextError,
        KeyCode::Char('t') => Key::NextTool,
        KeyCode::Char('+') => Key::Faster,
        KeyCode::Char('-') => Key::Slower,
        KeyCode::Char('q') | KeyCode::Esc => Key::Quit,
        _ => return None,
    })
}
