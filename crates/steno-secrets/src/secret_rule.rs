//! What a rule of the table says: which words hint at a secret, and what the secret looks like.

/// A rule for one kind of secret.
#[derive(Debug)]
pub(crate) struct SecretRule {
    /// The name in reports and redaction markers. Several rules may share one.
    pub(crate) name: &'static str,
    /// A text with such a secret contains at least one of these. A token starts with one of them.
    pub(crate) hints: &'static [&'static str],
    pub(crate) form: SecretForm,
    /// Whether the form alone proves a secret. Other rules also depend on names and on how random a value looks.
    pub(crate) is_certain: bool,
    /// A template of a text with such a secret.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests check each rule with it"))]
    pub(crate) finds: &'static str,
    /// A template of a similar text without a secret.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests check each rule with it"))]
    pub(crate) leaves: &'static str,
}

/// The form of a secret.
#[derive(Debug)]
pub(crate) enum SecretForm {
    /// A hint in its exact case, then characters of an alphabet.
    Token {
        alphabet: TokenAlphabet,
        /// The least and the greatest number of characters after the hint.
        length: (usize, usize),
    },
    /// A pattern that is searched near each hint. Its first group that matched, or the whole match, is the secret.
    Pattern {
        pattern: &'static str,
        /// How many bytes before and after a hint are searched. With 1 before, the match starts with the hint and the
        /// hint with a word; with 0, the hint may be within a word.
        window: (usize, usize),
        /// What is in the window of each match. It is looked for first, because compiling a pattern takes long.
        needs: NeededPart,
    },
    /// A pattern that is searched near the start of a long run of letters and digits.
    Run {
        pattern: &'static str,
        /// How many bytes before the run the match starts, with a hint in its exact case, and where it ends at the
        /// latest.
        window: (usize, usize),
    },
}

/// A part of each text that a pattern matches.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NeededPart {
    /// Nothing that is quickly found.
    Any,
    /// One of these, in its exact case.
    OneOf(&'static [&'static str]),
    /// A digit.
    Digit,
    /// So many neighbouring letters and digits.
    LongWord(usize),
}

impl NeededPart {
    pub(crate) fn is_in(self, window: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::OneOf(parts) => {
                parts.iter().any(|part| memchr::memmem::find(window, part.as_bytes()).is_some())
            }
            Self::Digit => window.iter().any(u8::is_ascii_digit),
            Self::LongWord(length) => {
                window.split(|byte| !byte.is_ascii_alphanumeric()).any(|word| word.len() >= length)
            }
        }
    }
}

/// The characters of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenAlphabet {
    LowerHex,
    UpperAlnum,
    LowerAlnum,
    Alnum,
    /// Letters, digits and `_`.
    Word,
    /// Letters, digits, `_` and `-`.
    Kebab,
    /// Letters, digits, `_`, `-` and `.`.
    Dotted,
    /// Letters, digits, `+`, `/` and `=`.
    Base64,
    /// Letters, digits and `+/=_-.%|!~`.
    Loose,
}

impl TokenAlphabet {
    pub(crate) fn contains(self, byte: u8) -> bool {
        match self {
            Self::LowerHex => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            Self::UpperAlnum => matches!(byte, b'0'..=b'9' | b'A'..=b'Z'),
            Self::LowerAlnum => matches!(byte, b'0'..=b'9' | b'a'..=b'z'),
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Word => byte.is_ascii_alphanumeric() || byte == b'_',
            Self::Kebab => byte.is_ascii_alphanumeric() || b"_-".contains(&byte),
            Self::Dotted => byte.is_ascii_alphanumeric() || b"_-.".contains(&byte),
            Self::Base64 => byte.is_ascii_alphanumeric() || b"+/=".contains(&byte),
            Self::Loose => byte.is_ascii_alphanumeric() || b"+/=_-.%|!~".contains(&byte),
        }
    }
}

/// A table of rules for tokens: name, prefixes, alphabet, length after the prefix, and examples.
macro_rules! token_rules {
    ($($name:literal $hints:tt $alphabet:ident $least:literal..=$most:literal finds $finds:literal leaves $leaves:literal;)*) => {
        &[$(crate::secret_rule::SecretRule {
            name: $name,
            hints: &$hints,
            form: crate::secret_rule::SecretForm::Token {
                alphabet: crate::secret_rule::TokenAlphabet::$alphabet,
                length: ($least, $most),
            },
            is_certain: true,
            finds: $finds,
            leaves: $leaves,
        }),*]
    };
}

/// A table of rules with patterns: name, hints, bytes before and after a hint, what a match contains, certainty, pattern,
/// and examples. What a match contains is left out, or `, needs ["x", "y"]`, `, needs digit` or `, needs (24)` letters and digits.
macro_rules! pattern_rules {
    ($($name:literal $hints:tt within $before:literal, $after:literal $(, needs $needs:tt)? $certain:ident $pattern:literal finds $finds:literal leaves $leaves:literal;)*) => {
        &[$(crate::secret_rule::SecretRule {
            name: $name,
            hints: &$hints,
            form: crate::secret_rule::SecretForm::Pattern {
                pattern: $pattern,
                window: ($before, $after),
                needs: pattern_rules!(@needs $($needs)?),
            },
            is_certain: pattern_rules!(@ $certain),
            finds: $finds,
            leaves: $leaves,
        }),*]
    };
    (@ certain) => { true };
    (@ guessed) => { false };
    (@needs) => { crate::secret_rule::NeededPart::Any };
    (@needs digit) => { crate::secret_rule::NeededPart::Digit };
    (@needs ($length:literal)) => { crate::secret_rule::NeededPart::LongWord($length) };
    (@needs $parts:tt) => { crate::secret_rule::NeededPart::OneOf(&$parts) };
}

/// A table of rules for runs: name, hints, bytes before the start of the run and after, pattern, and examples.
macro_rules! run_rules {
    ($($name:literal $hints:tt from $before:literal to $after:literal $pattern:literal finds $finds:literal leaves $leaves:literal;)*) => {
        &[$(crate::secret_rule::SecretRule {
            name: $name,
            hints: &$hints,
            form: crate::secret_rule::SecretForm::Run { pattern: $pattern, window: ($before, $after) },
            is_certain: true,
            finds: $finds,
            leaves: $leaves,
        }),*]
    };
}

pub(crate) use {pattern_rules, run_rules, token_rules};
