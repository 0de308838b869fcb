//! Enums for the fixed words in the stores and on the command line.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// A word that is not one of the known ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not one of {known}: {word}")]
pub struct WordError {
    /// The known words.
    pub known: String,
    /// The unknown word.
    pub word: String,
}

macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// All values, in the order of leslie's documentation.
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// The words, in the same order.
            pub const WORDS: &[&str] = &[$($word,)+];

            /// The word for the value.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = WordError;

            fn from_str(text: &str) -> Result<Self, WordError> {
                let found = Self::ALL.iter().find(|word| word.as_str() == text);
                found.copied().ok_or_else(|| WordError {
                    known: Self::WORDS.join(", "),
                    word: text.to_owned(),
                })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

words! {
    /// The status of a thread.
    ThreadStatus {
        /// In progress.
        Active = "active",
        /// Paused.
        Suspended = "suspended",
        /// Finished.
        Completed = "completed",
        /// Given up.
        Cancelled = "cancelled",
        /// Archived.
        Archived = "archived",
        /// Read-only.
        Frozen = "frozen",
        /// Waiting for a person's decision.
        WaitingHuman = "waiting_human",
    }
}

words! {
    /// An action that changes a thread's status.
    LifecycleAction {
        /// Complete it.
        Done = "done",
        /// Archive it.
        Archive = "archive",
        /// Give it up.
        Cancel = "cancel",
        /// Pause it.
        Suspend = "suspend",
        /// Continue it.
        Resume = "resume",
    }
}

words! {
    /// The status of an objective.
    ObjectiveStatus {
        /// It has no threads, or one that is not finished.
        Active = "active",
        /// All its threads are finished.
        Completed = "completed",
    }
}

words! {
    /// Who works on a thread.
    Executor {
        /// A person.
        Human = "human",
        /// An agent.
        Agent = "agent",
        /// Steno or leslie itself.
        System = "system",
    }
}

words! {
    /// Who requested an operation.
    Operator {
        /// A person.
        User = "user",
        /// Steno or leslie itself.
        System = "system",
        /// An agent.
        Agent = "agent",
    }
}

words! {
    /// What a new thread inherits from its parent.
    Inheritance {
        /// Nothing.
        None = "none",
        /// All assets.
        Full = "full",
        /// Only the given paths.
        Partial = "partial",
    }
}

words! {
    /// How a reference treats the target's files.
    ReferenceBinding {
        /// The files are copied when the reference is added.
        Frozen = "frozen",
        /// The files are not copied.
        Live = "live",
    }
}

words! {
    /// The direction of a transfer.
    TransferDirection {
        /// Ask a person to approve.
        RequestApproval = "request_approval",
        /// Let another executor do it.
        Delegate = "delegate",
        /// Hand it over to another executor.
        Handoff = "handoff",
    }
}

words! {
    /// What to do if two sources of a merge differ. All but `strict` take the last source and report the conflict.
    ConflictStrategy {
        /// A person will review the conflicts.
        Interactive = "interactive",
        /// The agent's version is preferred.
        AgentFirst = "agent-first",
        /// A person decides.
        Human = "human",
        /// Merge nothing.
        Strict = "strict",
    }
}

impl ThreadStatus {
    /// Whether the thread is finished: completed, cancelled or archived.
    pub fn is_over(self) -> bool {
        matches!(self, ThreadStatus::Completed | ThreadStatus::Cancelled | ThreadStatus::Archived)
    }

    /// Returns the status after an action; `None` if the action is not allowed.
    pub fn after_action(self, action: LifecycleAction) -> Option<ThreadStatus> {
        match (self, action) {
            (ThreadStatus::Active, LifecycleAction::Suspend) => Some(ThreadStatus::Suspended),
            (ThreadStatus::Suspended | ThreadStatus::WaitingHuman, LifecycleAction::Resume) => {
                Some(ThreadStatus::Active)
            }
            (ThreadStatus::Active | ThreadStatus::Suspended, LifecycleAction::Done) => {
                Some(ThreadStatus::Completed)
            }
            (
                ThreadStatus::Active | ThreadStatus::Suspended | ThreadStatus::WaitingHuman,
                LifecycleAction::Cancel,
            ) => Some(ThreadStatus::Cancelled),
            (
                ThreadStatus::Completed | ThreadStatus::Cancelled | ThreadStatus::Frozen,
                LifecycleAction::Archive,
            ) => Some(ThreadStatus::Archived),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_these_transitions_exist() {
        let mut found = Vec::new();
        for from in ThreadStatus::ALL {
            for action in LifecycleAction::ALL {
                if let Some(to) = from.after_action(*action) {
                    found.push(format!("{from} {action} {to}"));
                }
            }
        }
        assert_eq!(
            found,
            [
                "active done completed",
                "active cancel cancelled",
                "active suspend suspended",
                "suspended done completed",
                "suspended cancel cancelled",
                "suspended resume active",
                "completed archive archived",
                "cancelled archive archived",
                "frozen archive archived",
                "waiting_human cancel cancelled",
                "waiting_human resume active",
            ]
        );
    }

    #[test]
    fn an_unknown_word_is_an_error_with_the_known_ones() {
        let error = "sideways".parse::<TransferDirection>().unwrap_err();
        let expected = "not one of request_approval, delegate, handoff: sideways";
        assert_eq!(error.to_string(), expected);
    }
}
