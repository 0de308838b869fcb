//! Where a replay stands, and what keys do to it. Touches no terminal.

use steno_core::Entry;
use steno_core::entry::Kind;

/// How much faster or slower one key makes it.
const STEP: f64 = 1.5;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Pause,
    Step,
    NextError,
    NextTool,
    Faster,
    Slower,
    Quit,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Goes on waiting.
    Wait,
    /// Shows the entry at which it stands now.
    Show,
    /// Ends.
    Quit,
}

/// A replay.
pub(super) struct Player<'a> {
    entries: &'a [Entry],
    /// The next entry to show.
    pub(super) at: usize,
    pub(super) is_paused: bool,
    pub(super) speed: f64,
}

impl<'a> Player<'a> {
    pub(super) fn new(entries: &'a [Entry], at: usize, speed: f64) -> Self {
        Self { entries, at, is_paused: false, speed }
    }

    /// The key was pressed.
    pub(super) fn press(&mut self, key: Key) -> Then {
        match key {
            Key::Pause => self.is_paused = !self.is_paused,
            Key::Step => {
                self.is_paused = true;
                return Then::Show;
            }
            Key::NextError => return self.jump(is_error),
            Key::NextTool => return self.jump(|entry| entry.kind == Kind::ToolCall),
            Key::Faster => self.speed *= STEP,
            Key::Slower => self.speed /= STEP,
            Key::Quit => return Then::Quit,
        }
        Then::Wait
    }

    /// Goes to the next entry of a kind; stays where there is none.
    fn jump(&mut self, is_wanted: fn(&Entry) -> bool) -> Then {
        let rest = self.entries.get(self.at..).unwrap_or_default();
        match rest.iter().position(is_wanted) {
            Some(ahead) => {
                self.at += ahead;
                Then::Show
            }
            None => Then::Wait,
        }
    }
}

fn is_error(entry: &Entry) -> bool {
    entry.kind == Kind::Error || entry.is_tool_error()
}

#[cfg(test)]
mod tests {
    use steno_core::Role;

    use super::*;

    #[test]
    fn keys_step_jump_and_pause() {
        let kinds = [Kind::Text, Kind::ToolCall, Kind::ToolResult, Kind::Error, Kind::Text];
        let entries = kinds.map(|kind| Entry::new(Role::Assistant, kind, ""));
        let mut player = Player::new(&entries, 0, 1.0);
        assert_eq!((player.press(Key::NextTool), player.at), (Then::Show, 1));
        assert_eq!((player.press(Key::NextError), player.at), (Then::Show, 3));
        player.at = 4;
        assert_eq!((player.press(Key::NextError), player.at), (Then::Wait, 4));
        assert_eq!((player.press(Key::Pause), player.is_paused), (Then::Wait, true));
        assert_eq!((player.press(Key::Pause), player.is_paused), (Then::Wait, false));
        assert_eq!((player.press(Key::Step), player.is_paused), (Then::Show, true));
        player.press(Key::Faster);
        assert!(player.speed > 1.0);
        assert_eq!(player.press(Key::Quit), Then::Quit);
    }
}
