//! Replays a session on the terminal, entry by entry, with its original pauses.

use std::io;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use steno_acp::replay::ReplayPace;
use steno_model::{Entry, Transcript};
use steno_store::view::json_rows::EntryRow;

use super::player::{ReplayKey, ReplayPlayer, ReplayStep};
use crate::commands::show::terminal;
use crate::error::CommandError;
use crate::ui::Ui;

/// Poll timeout of a paused replay.
const PAUSED_POLL_TIMEOUT: Duration = Duration::from_secs(60);

/// A session to replay.
pub(super) struct TerminalReplay<'a> {
    pub(super) transcript: &'a Transcript,
    pub(super) zone: &'a TimeZone,
    /// Whether the original pauses are kept.
    pub(super) is_timed: bool,
    /// Whether entries are printed as JSON Lines, without a heading and without keys.
    pub(super) is_json: bool,
}

/// Raw mode for single keys; `drop` restores the terminal.
struct RawKeyInput;

impl RawKeyInput {
    fn open(ui: &Ui) -> io::Result<Option<Self>> {
        if !ui.is_interactive() {
            return Ok(None);
        }
        enable_raw_mode()?;
        Ok(Some(Self))
    }
}

impl Drop for RawKeyInput {
    fn drop(&mut self) {
        // Errors are ignored: nothing more can be done.
        let _ = disable_raw_mode();
    }
}

impl TerminalReplay<'_> {
    /// Replays all entries from `from` on.
    pub(super) fn play(
        &self,
        ui: &mut Ui,
        from: usize,
        pace: ReplayPace,
    ) -> Result<(), CommandError> {
        let entries = &self.transcript.entries;
        let keys = if self.is_json { None } else { RawKeyInput::open(ui)? };
        if !self.is_json {
            self.print(ui, &terminal::render_heading(&self.transcript.session, self.zone), &keys)?;
        }
        let mut player = ReplayPlayer::new(entries, from, pace.speed);
        let mut before = entries.get(from).and_then(|entry| entry.created_at);
        while let Some(entry) = entries.get(player.position) {
            let pace = ReplayPace { speed: player.speed, ..pace };
            let pause =
                Some(pace.pause_between(before, entry.created_at)).filter(|_| self.is_timed);
            let stood = player.position;
            if wait_for_next(&mut player, pause.unwrap_or_default(), &keys)? == ReplayStep::Quit {
                return Ok(());
            }
            let skipped = player.position - stood;
            if skipped > 0 {
                self.print(ui, &format!("\n... {skipped} entries\n"), &keys)?;
            }
            let Some(entry) = entries.get(player.position) else { break };
            match self.is_json {
                true => self.print_json_line(ui, entry)?,
                false => {
                    let text = format!("\n{}", terminal::render_entry(entry, self.zone));
                    self.print(ui, &text, &keys)?;
                }
            }
            before = entry.created_at.or(before);
            player.position += 1;
        }
        Ok(())
    }

    fn print_json_line(&self, ui: &mut Ui, entry: &Entry) -> Result<(), CommandError> {
        serde_json::to_writer(ui.out(), &EntryRow::from_entry(entry, &self.transcript.notes))?;
        writeln!(ui.out())?;
        Ok(ui.flush()?)
    }

    fn print(&self, ui: &mut Ui, text: &str, keys: &Option<RawKeyInput>) -> io::Result<()> {
        // In raw mode a newline does not return to the first column.
        match keys {
            Some(_) => {
                let text = crate::ui::escape_control(text).replace('\n', "\r\n");
                ui.out().write_all(text.as_bytes())?;
            }
            None => ui.transcript_text(text)?,
        }
        ui.flush()
    }
}

/// Waits until the next entry is due, or a key changes the replay.
fn wait_for_next(
    player: &mut ReplayPlayer<'_>,
    pause: Duration,
    keys: &Option<RawKeyInput>,
) -> io::Result<ReplayStep> {
    if keys.is_none() {
        std::thread::sleep(pause);
        return Ok(ReplayStep::Show);
    }
    let due = Instant::now() + pause;
    loop {
        let left = due.saturating_duration_since(Instant::now());
        let left = if player.is_paused { PAUSED_POLL_TIMEOUT } else { left };
        if !event::poll(left)? {
            if player.is_paused {
                continue;
            }
            return Ok(ReplayStep::Show);
        }
        let Event::Key(key) = event::read()? else { continue };
        match parse_key(key).map(|key| player.handle_key(key)) {
            None | Some(ReplayStep::Wait) => {}
            Some(then) => return Ok(then),
        }
    }
}

fn parse_key(key: KeyEvent) -> Option<ReplayKey> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c') if is_control => ReplayKey::Quit,
        KeyCode::Char(' ') => ReplayKey::Pause,
        KeyCode::Char('n') | KeyCode::Enter | KeyCode::Right | KeyCode::Down => ReplayKey::Step,
        KeyCode::Char('e') => ReplayKey::NextError,
        KeyCode::Char('t') => ReplayKey::NextTool,
        KeyCode::Char('+') => ReplayKey::Faster,
        KeyCode::Char('-') => ReplayKey::Slower,
        KeyCode::Char('q') | KeyCode::Esc => ReplayKey::Quit,
        _ => return None,
    })
}
