//! Renders the line above a prompt that goes back to an earlier answer.

use maud::{Markup, html};
use steno_model::Entry;

use super::plain::first_line;
use crate::addresses::entry_link;
use crate::prompt_branches::PromptBranch;

/// How many characters of an entry are quoted.
const QUOTE_CHARS: usize = 60;

/// Says where a prompt went back to, and what it left.
pub(super) fn branch_mark(branch: &PromptBranch, entries: &[Entry]) -> Markup {
    let quote = |number: usize| first_line(&entries[number].content, QUOTE_CHARS);
    html! {
        li.fork {
            span {
                @match branch.parent {
                    Some(parent) => { "Went back to “" (quote(parent)) "” (" (entry_link(parent)) "). " }
                    None => { "Went back to an earlier answer. " },
                }
                "What follows “" (quote(branch.left)) "” (" (entry_link(branch.left)) ") was left."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use steno_model::{EntryKind, Role};

    use super::*;

    #[test]
    fn what_was_left_is_quoted() {
        let entries =
            ["Left or <b>?", "Left"].map(|text| Entry::new(Role::User, EntryKind::Text, text));
        let mark = branch_mark(&PromptBranch { prompt: 2, left: 1, parent: Some(0) }, &entries).0;
        assert!(mark.contains("“Left or &lt;b&gt;?” (<a href=\"#e0\">entry 0</a>)"), "{mark}");
        assert!(mark.contains("What follows “Left” (<a href=\"#e1\">"), "{mark}");
    }
}
