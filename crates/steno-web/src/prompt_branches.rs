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

    fn entry(id: u8, role: Role, parent: Option<&Entry>) -> Entry {
        let mut entry = Entry::new(role, EntryKind::Text, "x");
        let id = format!("00000000-0000-4000-8000-0000000000{id:02}");
        entry.entry_id = id.parse().expect("the id is valid");
        entry.parent_id = parent.map(|parent| parent.entry_id.to_string());
        entry
    }

    #[test]
    fn a_prompt_that_goes_back_is_a_branch() {
        let start = entry(1, Role::User, None);
        let asked = entry(2, Role::Assistant, Some(&start));
        let first = entry(3, Role::User, Some(&asked));
        let answer = entry(4, Role::Assistant, Some(&first));
        let second = entry(5, Role::User, Some(&asked));
        let entries = [start, asked, first, answer, second];
        let branches = find_branches(&entries);
        assert_eq!(branches, [PromptBranch { prompt: 4, left: 2, parent: Some(1) }]);
    }

    #[test]
    fn parts_of_one_prompt_are_no_branches() {
        let start = entry(6, Role::Assistant, None);
        let words = entry(7, Role::User, Some(&start));
        let picture = entry(8, Role::User, Some(&start));
        assert!(find_branches(&[start, words, picture]).is_empty());
        let alone = || entry(9, Role::User, None);
        assert!(find_branches(&[alone(), entry(10, Role::Assistant, None), alone()]).is_empty());
    }
}
