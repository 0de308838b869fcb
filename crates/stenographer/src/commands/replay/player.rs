//! The position of a replay, and the effect of keys on it. Does not access the terminal.

use steno_model::Entry;
use steno_model::entry::EntryKind;

/// Factor of one speed change.
const SPEED_STEP: f64 = 1.5;

/// Action of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplayKey {
    Pause,
    Step,
    NextError,
    NextTool,
    Faster,
    Slower,
    Quit,
}

/// Next step of the replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplayStep {
    /// Continues waiting.
    Wait,
    /// Shows the current entry.
    Show,
    /// Ends.
    Quit,
}

/// A running replay.
pub(super) struct ReplayPlayer<'a> {
    entries: &'a [Entry],
    /// Index of the next entry.
    pub(super) position: usize,
    pub(super) is_paused: bool,
    pub(super) speed: f64,
}

impl<'a> ReplayPlayer<'a> {
    pub(super) fn new(entries: &'a [Entry], position: usize, speed: f64) -> Self {
        Self { entries, position, is_paused: false, speed }
    }

    /// Handles a key.
    pub(super) fn handle_key(&mut self, key: ReplayKey) -> ReplayStep {
        match key {
            ReplayKey::Pause => self.is_paused = !self.is_paused,
            ReplayKey::Step => {
                self.is_paused = true;
                return ReplayStep::Show;
            }
            ReplayKey::NextError => return self.jump_to_next(is_error),
            ReplayKey::NextTool => {
                return self.jump_to_next(|entry| entry.kind == EntryKind::ToolCall);
            }
            ReplayKey::Faster => self.speed *= SPEED_STEP,
            ReplayKey::Slower => self.speed /= SPEED_STEP,
            ReplayKey::Quit => return ReplayStep::Quit,
        }
        ReplayStep::Wait
    }

    /// Moves to the next matching entry; stays if there is none.
    fn jump_to_next(&mut self, is_wanted: fn(&Entry) -> bool) -> ReplayStep {
        let rest = self.entries.get(self.position..).unwrap_or_default();
        match rest.iter().position(is_wanted) {
            Some(ahead) => {
                self.position += ahead;
                ReplayStep::Show
            }
            None => ReplayStep::Wait,
        }
    }
}

fn is_error(entry: &Entry) -> bool {
    entry.kind == EntryKind::Error || entry.is_tool_error()
}

#[cfg(test)]
mod tests {
    use steno_model::Role;

    use super::*;

    #[test]
    fn keys_step_jump_and_pause() {
        let kinds = [
            EntryKind::Text,
            EntryKind::ToolCall,
            EntryKind::ToolResult,
            EntryKind::Error,
            EntryKind::Text,
        ];
        let entries = kinds.map(|kind| Entry::new(Role::Assistant, kind, ""));
        let mut player = ReplayPlayer::new(&entries, 0, 1.0);
        assert_eq!(
            (player.handle_key(ReplayKey::NextTool), player.position),
            (ReplayStep::Show, 1)
        );
        assert_eq!(
            (player.handle_key(ReplayKey::NextError), player.position),
            (ReplayStep::Show, 3)
        );
        player.position = 4;
        assert_eq!(
            (player.handle_key(ReplayKey::NextError), player.position),
            (ReplayStep::Wait, 4)
        );
        assert_eq!(
            (player.handle_key(ReplayKey::Pause), player.is_paused),
            (ReplayStep::Wait, true)
        );
        assert_eq!(
            (player.handle_key(ReplayKey::Pause), player.is_paused),
            (ReplayStep::Wait, false)
        );
        assert_eq!(
            (player.handle_key(ReplayKey::Step), player.is_paused),
            (ReplayStep::Show, true)
        );
        player.handle_key(ReplayKey::Faster);
        assert!(player.speed > 1.0);
        assert_eq!(player.handle_key(ReplayKey::Quit), ReplayStep::Quit);
    }
}
