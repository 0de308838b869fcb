//! The help of a page: what can be done there and with which keys, then the keys that work everywhere.

use maud::{Markup, html};

use crate::render::plain::clean_text;

/// A key, or several that belong together, and what they do, in this order.
type KeyHelp = (&'static str, &'static str);

/// What a page is for, so that its help comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HelpTopic {
    SessionList,
    Session,
    Subagent,
    Replay,
    Search,
    Activity,
    Trends,
    Quality,
    Cost,
    Edits,
    Compare,
    Threads,
    /// A file without a server.
    Export,
    /// Any other page, as of an error.
    Other,
}

/// A part of the help.
struct HelpGroup {
    title: &'static str,
    /// What can be done with the pointer.
    tips: &'static [&'static str],
    keys: &'static [KeyHelp],
}

const SESSION_LIST: HelpGroup = HelpGroup {
    title: "List of sessions",
    tips: &[
        "A click on a heading sorts; another one turns the order round.",
        "Filters say how many sessions each leaves. A day of the calendar is a filter, too.",
    ],
    keys: &[
        ("j k", "Next, previous session"),
        ("Enter", "Open the session"),
        ("g+g G", "First, last session"),
        ("t T", "Sort by the next column, turn the order round"),
        ("/", "Filter by words"),
    ],
};

/// The keys that move in a session, also in a file.
const READING_KEYS: &[KeyHelp] = &[
    ("j k", "Next, previous entry"),
    ("n p", "Next, previous prompt"),
    ("x X", "Next, previous error"),
    ("g+g G", "First, last entry"),
    ("Enter", "Fold or unfold the entry"),
    ("E C", "Unfold, fold all entries"),
    ("/", "Find; then Enter for the next match"),
    ("y Y", "Copy the entry, a link to it"),
];

const SESSION: HelpGroup = HelpGroup {
    title: "Session",
    tips: &[
        "The strip at the right edge is the whole session: a click goes there.",
        "Files changed, quality and many subagents are folded above the first entry.",
    ],
    keys: READING_KEYS,
};

const SESSION_MORE: HelpGroup = HelpGroup {
    title: "Around the session",
    tips: &[],
    keys: &[
        ("s S", "Next, previous subagent"),
        ("[ ]", "Previous, next session of the list"),
        ("u", "Back to the list; in a subagent, to its call"),
        ("a", "Add a note, where notes may be changed"),
    ],
};

const SUBAGENT: HelpGroup = HelpGroup {
    title: "Subagent",
    tips: &["These are the entries of one subagent, without the rest of its session."],
    keys: READING_KEYS,
};

const SUBAGENT_MORE: HelpGroup = HelpGroup {
    title: "Around the subagent",
    tips: &[],
    keys: &[("u", "Back to the call that started it"), ("s S", "Next, previous subagent inside")],
};

const REPLAY: HelpGroup = HelpGroup {
    title: "Replay",
    tips: &["The list beside the entries has the files as they were at that moment."],
    keys: &[
        ("← →", "Previous, next entry"),
        ("n p", "Next, previous prompt"),
        ("x X", "Next, previous error"),
        ("Home End", "First, last entry"),
        ("Space", "Play or pause"),
    ],
};

const SEARCH: HelpGroup = HelpGroup {
    title: "Search",
    tips: &[
        "All words must be in an entry, in any order: disk full",
        "Words in this order: \"disk full\". One of them: disk OR memory",
        "Words that begin so: conf*. Not this one: -warning. A regular expression: /E[0-9]+/",
        "A result opens its session at the entry, with the words marked.",
    ],
    keys: &[("/", "Enter other words")],
};

const ACTIVITY: HelpGroup = HelpGroup {
    title: "Activity",
    tips: &[
        "Point at a bar or an hour for its numbers; a click on a bar lists its sessions.",
        "The tabs choose what the bars count.",
    ],
    keys: &[],
};

const TRENDS: HelpGroup = HelpGroup {
    title: "Words over time",
    tips: &[
        "Enter words or phrases, one a line, as in the search.",
        "A click on a bar lists the entries with that word in that time.",
        "“Per 1,000 entries” makes busy and quiet times comparable.",
    ],
    keys: &[],
};

const QUALITY: HelpGroup = HelpGroup {
    title: "Quality",
    tips: &[
        "Point at a heading for what it counts.",
        "A click on a session shows its failed calls, retries and undone edits.",
        "A click on a project or model limits the page to it.",
    ],
    keys: &[],
};

const COST: HelpGroup = HelpGroup {
    title: "Cost",
    tips: &[
        "Point at a bar for its amounts; a click on it lists its sessions.",
        "The tabs above the chart group the costs, those below it colour the bars.",
        "Costs are the agent's own, or tokens at list prices. Prices and budgets are set in config.toml.",
    ],
    keys: &[],
};

const EDITS: HelpGroup = HelpGroup {
    title: "Recent edits",
    tips: &[
        "A file unfolds to its edits, the newest first; each leads to the entry that made it.",
        "The form limits the list to files with a text in their path.",
    ],
    keys: &[],
};

const COMPARE: HelpGroup = HelpGroup {
    title: "Compare",
    tips: &[
        "Choose two sessions by their words. What differs between them is marked with ≠.",
        "The steps are aligned, so that the first one that differs is seen at once.",
    ],
    keys: &[],
};

const THREADS: HelpGroup = HelpGroup {
    title: "Threads",
    tips: &["A thread is a line of work with its goal, its sessions and its files."],
    keys: &[],
};

const EVERYWHERE: HelpGroup = HelpGroup {
    title: "Everywhere",
    tips: &[],
    keys: &[
        ("Ctrl+K", "Go to a session, search, run a command"),
        ("/", "Enter words: find, filter or search"),
        ("1 … 9", "Open a page: 1 Sessions, 2 Search, … 9 Threads"),
        ("Esc", "Close a dialog, leave a field"),
        ("?", "Show this help"),
    ],
};

const EXPORT_EVERYWHERE: HelpGroup = HelpGroup {
    title: "Everywhere",
    tips: &[],
    keys: &[("Esc", "Close a dialog, leave a field"), ("?", "Show this help")],
};

impl HelpTopic {
    /// The topic of a page of the navigation bar.
    pub(crate) fn of_page(address: &str) -> Self {
        match address {
            "/" => Self::SessionList,
            "/search" => Self::Search,
            "/activity" => Self::Activity,
            "/trends" => Self::Trends,
            "/quality" => Self::Quality,
            "/cost" => Self::Cost,
            "/edits" => Self::Edits,
            "/compare" => Self::Compare,
            "/threads" => Self::Threads,
            _ => Self::Other,
        }
    }

    /// The parts that are about this page.
    fn own_groups(self) -> &'static [HelpGroup] {
        match self {
            Self::SessionList => &[SESSION_LIST],
            Self::Session => &[SESSION, SESSION_MORE],
            Self::Subagent => &[SUBAGENT, SUBAGENT_MORE],
            Self::Replay => &[REPLAY],
            Self::Search => &[SEARCH],
            Self::Activity => &[ACTIVITY],
            Self::Trends => &[TRENDS],
            Self::Quality => &[QUALITY],
            Self::Cost => &[COST],
            Self::Edits => &[EDITS],
            Self::Compare => &[COMPARE],
            Self::Threads => &[THREADS],
            Self::Export => &[SESSION],
            Self::Other => &[],
        }
    }

    /// The parts about other pages, for those who look up keys before they are there.
    fn other_groups(self) -> &'static [HelpGroup] {
        match self {
            Self::Export => &[EXPORT_EVERYWHERE],
            Self::SessionList => &[EVERYWHERE, SESSION, SESSION_MORE],
            Self::Session | Self::Subagent => &[EVERYWHERE, SESSION_LIST],
            _ => &[EVERYWHERE, SESSION_LIST, SESSION, SESSION_MORE],
        }
    }
}

/// The dialog with the help of a page.
pub(crate) fn help_dialog(topic: HelpTopic) -> Markup {
    html! {
        dialog #keys aria-labelledby="keys-title" {
            form method="dialog" {
                header { h2 #keys-title { "Help" } button aria-label="Close" title="Close (Esc)" { "×" } }
                .help {
                    @for group in topic.own_groups() { (draw_group(group, true)) }
                    @for group in topic.other_groups() { (draw_group(group, false)) }
                }
            }
        }
    }
}

/// A part of the help. Tips are only about the present page.
fn draw_group(group: &HelpGroup, is_here: bool) -> Markup {
    html! {
        section.here[is_here] {
            h3 { (group.title) }
            @if is_here && !group.tips.is_empty() { ul { @for tip in group.tips { li { (clean_text(tip)) } } } }
            @if !group.keys.is_empty() {
                dl.keys {
                    @for (key, does) in group.keys {
                        dt { @for (at, key) in key.split(' ').enumerate() { @if at > 0 { " " } (draw_key(key)) } }
                        dd { (does) }
                    }
                }
            }
        }
    }
}

/// A key, keys that are pressed one after the other (`g+g`) or together (`Ctrl+K`), or the sign between two keys.
fn draw_key(key: &str) -> Markup {
    html! {
        @if key == "…" { (key) }
        @else if key == "g+g" { kbd { "g" } " " kbd { "g" } }
        @else { kbd { (key) } }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// All topics.
    const TOPICS: [HelpTopic; 14] = [
        HelpTopic::SessionList,
        HelpTopic::Session,
        HelpTopic::Subagent,
        HelpTopic::Replay,
        HelpTopic::Search,
        HelpTopic::Activity,
        HelpTopic::Trends,
        HelpTopic::Quality,
        HelpTopic::Cost,
        HelpTopic::Edits,
        HelpTopic::Compare,
        HelpTopic::Threads,
        HelpTopic::Export,
        HelpTopic::Other,
    ];

    #[test]
    fn a_key_has_one_meaning_on_a_page() {
        for topic in TOPICS {
            let own: Vec<&str> = topic.own_groups().iter().flat_map(keys_of).collect();
            let distinct: BTreeSet<&str> = own.iter().copied().collect();
            assert_eq!(own.len(), distinct.len(), "{topic:?}");
        }
    }

    fn keys_of(group: &HelpGroup) -> impl Iterator<Item = &'static str> {
        group.keys.iter().flat_map(|(keys, _)| keys.split(' ')).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn the_present_page_comes_first_and_only_it_has_tips() {
        for topic in TOPICS.into_iter().filter(|topic| *topic != HelpTopic::Other) {
            let text = help_dialog(topic).0;
            let first = topic.own_groups()[0].title;
            let begin = format!("<div class=\"help\"><section class=\"here\"><h3>{first}</h3>");
            assert!(text.contains(&begin), "{text}");
            assert_eq!(text.matches("<ul>").count(), 1, "{topic:?}");
        }
        let list = help_dialog(HelpTopic::SessionList).0;
        assert!(list.contains("<dt><kbd>g</kbd> <kbd>g</kbd> <kbd>G</kbd></dt>"), "{list}");
        // A file has no server, so no keys for it.
        let export = help_dialog(HelpTopic::Export).0;
        for key in ["<kbd>u</kbd>", "<kbd>[</kbd>", "Ctrl+K"] {
            assert!(!export.contains(key), "{key}");
        }
    }
}
