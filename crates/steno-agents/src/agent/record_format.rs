//! Recognises the agent that wrote a file by content alone, for example the recorded lines of a session.

use steno_model::durable::FileError;
use steno_vault::{SessionBundle, SessionFile};

use crate::decoding::file_head::FileHead;

/// How the records of a format are recognised, and which of them other formats have too.
#[derive(Clone, Copy, Debug)]
pub struct RecordFormat {
    recogniser: FormatRecogniser,
    /// Which chat messages can be records of it.
    pub messages: ChatMessages,
    /// Whether requests and responses of model APIs can be records of it.
    pub has_api_calls: bool,
}

/// How a format is recognised.
#[derive(Clone, Copy, Debug)]
enum FormatRecogniser {
    /// By the first bytes.
    Head(fn(&FileHead) -> bool),
    /// By records near the beginning.
    Records(fn(&SessionFile) -> Result<bool, FileError>),
    /// By the sessions in it, where there may be several.
    Sessions(fn(SessionBundle) -> Result<Vec<SessionBundle>, FileError>),
}

/// Which records of a format look like chat messages or Steno's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatMessages {
    /// None.
    Never,
    /// Those that state their type.
    Typed,
    /// Any.
    Always,
}

impl RecordFormat {
    /// A format that the first bytes show.
    pub const fn by_head(recognises: fn(&FileHead) -> bool) -> Self {
        Self::new(FormatRecogniser::Head(recognises))
    }

    /// A format that records near the beginning show.
    pub const fn by_records(recognises: fn(&SessionFile) -> Result<bool, FileError>) -> Self {
        Self::new(FormatRecogniser::Records(recognises))
    }

    /// A format that has several sessions in a file.
    pub const fn by_sessions(
        find: fn(SessionBundle) -> Result<Vec<SessionBundle>, FileError>,
    ) -> Self {
        Self::new(FormatRecogniser::Sessions(find))
    }

    const fn new(recogniser: FormatRecogniser) -> Self {
        Self { recogniser, messages: ChatMessages::Never, has_api_calls: false }
    }

    /// The same, with these chat messages as records.
    pub const fn with_messages(self, messages: ChatMessages) -> Self {
        Self { messages, ..self }
    }

    /// The same, with requests and responses of model APIs as records.
    pub const fn with_api_calls(self) -> Self {
        Self { has_api_calls: true, ..self }
    }

    /// The sessions in a file, whose first bytes are `head`. Empty if it has another format.
    pub fn sessions_in(
        &self,
        file: &SessionBundle,
        head: &FileHead,
    ) -> Result<Vec<SessionBundle>, FileError> {
        let is_own = match self.recogniser {
            FormatRecogniser::Head(recognises) => recognises(head),
            FormatRecogniser::Records(recognises) => recognises(&file.files[0])?,
            FormatRecogniser::Sessions(find) => return find(file.clone()),
        };
        Ok(is_own.then(|| file.clone()).into_iter().collect())
    }
}
