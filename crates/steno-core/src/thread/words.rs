//! The words that the stores and the command line know, each a small enum.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// A word that is none of the known ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not one of {known}: {word}")]
pub struct WordError {
    /// The known words.
    pub known: String,
    /// What was said instead.
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
            /// All of them, in the order of the documentation.
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// How they are written, in the same order.
            pub const WORDS: &[&str] = &[$($word,)+];

            /// The word as it is written.
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
    /// Where a thread stands.
    Status {
        /// Being worked on.
        Active = "active",
        /// Set aside for now.
        Suspended = "suspended",
        /// Done.
        Completed = "completed",
        /// Given up.
        Cancelled = "cancelled",
        /// Put away for good.
        Archived = "archived",
        /// Not to be changed any more.
        Frozen = "frozen",
        /// Waiting for a person's answer.
        WaitingHuman = "waiting_human",
    }
}

words! {
    /// What can be done with a thread as a whole.
    Action {
        /// The work is done.
        Done = "done",
        /// Put it away.
        Archive = "archive",
        /// Give it up.
        Cancel = "cancel",
        /// Set it aside.
        Suspend = "suspend",
        /// Go on with it.
        Resume = "resume",
    }
}

words! {
    /// Where an objective stands.
    ObjectiveStatus {
        /// Some thread is not over, or there is none yet.
        Active = "active",
        /// All its threads are over.
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
        /// The program itself.
        System = "system",
    }
}

words! {
    /// Who asked for an operation.
    Operator {
        /// A person.
        User = "user",
        /// The program itself.
        System = "system",
        /// An agent.
        Agent = "agent",
    }
}

words! {
    /// What a new thread takes over from its parent.
    Inherit {
        /// Nothing.
        None = "none",
        /// All assets.
        Full = "full",
        /// The paths that are named.
        Partial = "partial",
    }
}

words! {
    /// How a reference follows its target.
    Binding {
        /// The target's files are copied as they are now.
        Frozen = "frozen",
        /// Nothing is copied: the target is read where it is.
        Live = "live",
    }
}

words! {
    /// To whom a thread is handed.
    Direction {
        /// A person is asked.
        RequestApproval = "request_approval",
        /// Somebody else does it.
        Delegate = "delegate",
        /// Somebody else takes it over.
        Handoff = "handoff",
    }
}

words! {
    /// What happens when two sources of a merge differ; all but `strict` take the last one and tell.
    ConflictStrategy {
        /// Somebody will look at them.
        Interactive = "interactive",
        /// The agent's is preferred.
        AgentFirst = "agent-first",
        /// A person decides.
        Human = "human",
        /// Nothing is merged.
        Strict = "strict",
    }
}

impl Status {
    /// Whether nothing more will happen in the thread.
    pub fn is_over(self) -> bool {
        matches!(self, Status::Completed | Status::Cancelled | Status::Archived)
    }

    /// Where an action leads from here, if it can be taken.
    pub fn after(self, action: Action) -> Option<Status> {
        match (self, action) {
            (Status::Active, Action::Suspend) => Some(Status::Suspended),
            (Status::Suspended | Status::WaitingHuman, Action::Resume) => Some(Status::Active),
            (Status::Active | Status::Suspended, Action::Done) => Some(Status::Completed),
            (Status::Active | Status::Suspended | Status::WaitingHuman, Action::Cancel) => {
                Some(Status::Cancelled)
            }
            (Status::Completed | Status::Cancelled | Status::Frozen, Action::Archive) => {
                Some(Status::Archived)
            }
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
        for from in Status::ALL {
            for action in Action::ALL {
                if let Some(to) = from.after(*action) {
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
    fn an_unknown_word_is_told_with_the_known_ones() {
        let error = "sideways".parse::<Direction>().unwrap_err();
        let expected = "not one of request_approval, delegate, handoff: sideways";
        assert_eq!(error.to_string(), expected);
    }
}
