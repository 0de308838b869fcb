//! Finds where the user went back to an earlier answer of the same session and left what had followed.

use std::collections::HashMap;

use steno_model::{Entry, Role};
use steno_store::view::turns::is_prompt;

/// A prompt that continues an earlier entry, although another prompt had continued it before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PromptBranch {
    /// The number of the prompt.
    pub(crate) prompt: usize,
    /// The number of the prompt that was left, with all that followed it.
    pub(crate) left: usize,
    /// The number of the entry that both continue, if it is known.
    pub(crate) parent: Option<usize>,
}

/// The prompts of the main agent that continue the same entry as an earlier prompt, after an answer to that one.
pub(crate) fn find_branches(entries: &[Entry]) -> Vec<PromptBranch> {
    let mut last_prompts: HashMap<&str, usize> = HashMap::new();
    let mut branches = Vec::new();
    let mut last_answer = 0;
    for (prompt, entry) in entries.iter().enumerate() {
        if entry.role == Role::Assistant {
            last_answer = prompt;
        }
        let Some(parent) = entry.parent_id.as_deref().filter(|_| is_prompt(entry)) else {
            continue;
        };
        // The pictures of a prompt have the same parent, and no answer is between them.
        if let Some(left) = last_prompts.insert(parent, prompt).filter(|left| *left < last_answer) {
            let is_parent = |other: &Entry| other.entry_id.to_string() == parent;
            let parent = entries[..left].iter().position(is_parent);
            branches.push(PromptBranch { prompt, left, parent });
        }
    }
    branches
}

#[cfg(test)]
mod tests {
    use steno_model::EntryKind;

    use super::*;

    fn entry(role: Role, text: &str, parent: Option<&Entry>) -> Entry {
        let mut entry = Entry::new(role, EntryKind::Text, text);
        entry.parent_id = parent.map(|parent| parent.entry_id.to_string());
        entry
    }

    #[test]
    fn a_prompt_that_goes_back_is_a_branch() {
        let start = entry(Role::User, "Start", None);
        let asked = entry(Role::Assistant, "Left or right?", Some(&start));
        let first = entry(Role::User, "Left", Some(&asked));
        let answer = entry(Role::Assistant, "Went left", Some(&first));
        let second = entry(Role::User, "Right <b>", Some(&asked));
        let entries = [start, asked, first, answer, second];
        let branches = find_branches(&entries);
        assert_eq!(branches, [PromptBranch { prompt: 4, left: 2, parent: Some(1) }]);
    }

    #[test]
    fn parts_of_one_prompt_are_no_branches() {
        let start = entry(Role::Assistant, "Ready", None);
        let words = entry(Role::User, "Look", Some(&start));
        let picture = entry(Role::User, "at this", Some(&start));
        assert!(find_branches(&[start, words, picture]).is_empty());
        let alone = || entry(Role::User, "No parents are recorded", None);
        assert!(find_branches(&[alone(), entry(Role::Assistant, "Yes", None), alone()]).is_empty());
    }
}
