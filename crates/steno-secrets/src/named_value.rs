//! Finds secrets by the names that they are given: in settings, code, headers, markup, command lines and sentences.
//!
//! Reads from the name on: what closes the name, what separates it from the value, and how the value is written.

use std::ops::Range;

use memchr::memmem;

use crate::cookie_values::find_cookie_values;
use crate::field_names::{FieldNameClass, classify_field_name};
use crate::literal_forms::{
    TYPE_ANNOTATION, index_length, read_list, scheme_length, wrapped_literal_offset,
};
use crate::name_bounds::{
    assignment_length, comparison_length, follows_key_word, follows_service_word,
    is_inside_secret_object, is_name_byte, may_have_value, name_bounds,
};
use crate::paired_value::{following_element_offset, paired_value_offset};
use crate::quoted_value::QuotedValue;
use crate::table_values::find_column_cells;
use crate::value_plausibility::{FieldCandidate, ValueStyle, is_passphrase};

/// Longer values without quotes are not read.
const MAX_BARE_BYTES: usize = 2048;

/// How many bytes after a name its value in a pair is looked for.
const MAX_PAIR_BYTES: usize = 240;

/// How long a type between a name and its value may be.
const MAX_TYPE_BYTES: usize = 64;

/// What separates a name from its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameSeparator {
    Equals,
    Colon,
    /// A comma or a bracket, as between arguments. The value must be in quotes.
    Argument,
    /// `>` of a start tag.
    Tag,
    /// `|` between the cells of a table.
    Cell,
    /// A space after an option of a command.
    Option,
    /// `is`, or only a space, in a sentence.
    Words,
}

/// Secrets with one name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedSecrets {
    /// The offset at which the name starts.
    pub(crate) start: usize,
    /// The offset at which the name ends.
    pub(crate) name_end: usize,
    pub(crate) values: Vec<Range<usize>>,
}

/// A name that was found in a text.
struct FoundName<'t> {
    text: &'t [u8],
    start: usize,
    end: usize,
    class: FieldNameClass,
    is_option: bool,
}

/// Finds the secrets whose name contains the hint at `hint`.
pub(crate) fn find_named_secrets(text: &[u8], hint: Range<usize>) -> NamedSecrets {
    let Some(bounds) = name_bounds(text, &hint) else {
        return NamedSecrets { start: hint.start, name_end: hint.end, values: Vec::new() };
    };
    let mut secrets =
        NamedSecrets { start: bounds.start, name_end: bounds.end, values: Vec::new() };
    let cells = find_column_cells(text, &bounds);
    if let Some(name) = FoundName::new(text, bounds.clone()) {
        secrets.values = name.find_values();
    }
    if !cells.is_empty() {
        let cells = cells.into_iter().filter(|cell| is_secret_cell(text, &bounds, cell));
        secrets.values.extend(cells);
    }
    secrets
}

/// Whether a cell under the head `name` is a secret.
fn is_secret_cell(text: &[u8], name: &Range<usize>, cell: &Range<usize>) -> bool {
    let (Ok(name), Ok(value)) =
        (std::str::from_utf8(&text[name.clone()]), std::str::from_utf8(&text[cell.clone()]))
    else {
        return false;
    };
    classify_field_name(name).is_some_and(|class| {
        FieldCandidate { name, class, value, style: ValueStyle::Bare }.is_plausible()
    })
}

impl<'t> FoundName<'t> {
    fn new(text: &'t [u8], bounds: Range<usize>) -> Option<Self> {
        let whole = &text[bounds.clone()];
        let dashes = whole.iter().take_while(|byte| **byte == b'-').count();
        let trailing = whole.iter().rev().take_while(|byte| b".-".contains(byte)).count();
        // A property of Java: `-Dsonar.login=...`.
        let is_property = dashes == 1 && whole[1..].starts_with(b"D") && whole.contains(&b'.');
        let start = bounds.start + dashes + usize::from(is_property);
        let end = (bounds.end - trailing).max(start);
        if !may_have_value(&text[end..], dashes > 0) {
            return None;
        }
        let name = std::str::from_utf8(&text[start..end]).ok()?;
        let is_option_of = (1..=2).contains(&dashes);
        let is_parameter = start > 0 && b"?&;".contains(&text[start - 1]);
        let class = match name {
            "key" | "Key" | "KEY" if follows_key_word(&text[..start]) => FieldNameClass::Random,
            "key" | "Key" if is_inside_secret_object(text, start) => FieldNameClass::Random,
            "key" | "sig" | "signature" | "code" | "appid" if is_parameter => {
                FieldNameClass::Random
            }
            "key" if is_option_of => FieldNameClass::UnknownKey,
            "key" | "Key" | "KEY"
                if matches!(text.get(end), Some(b':' | b' ' | b'='))
                    && follows_service_word(&text[..start]) =>
            {
                FieldNameClass::UnknownKey
            }
            name => classify_field_name(name)?,
        };
        if names_public_value(&text[start.saturating_sub(400)..start], &text[end..]) {
            return None;
        }
        let is_option = (1..=2).contains(&dashes)
            && (bounds.start == 0 || !is_name_byte(text[bounds.start - 1]));
        Some(Self { text, start, end, class, is_option })
    }

    fn name(&self) -> &'t str {
        std::str::from_utf8(&self.text[self.start..self.end]).unwrap_or_default()
    }

    fn find_values(&self) -> Vec<Range<usize>> {
        let after = &self.text[self.end..self.text.len().min(self.end + MAX_PAIR_BYTES)];
        if let Some(paired) = paired_value_offset(after) {
            return self.read_value(NameSeparator::Colon, self.end + paired);
        }
        if let Some(element) = following_element_offset(after) {
            return self.read_value(NameSeparator::Tag, self.end + element);
        }
        // A field of a form.
        if let Some(start) = ["\"\r\n\r\n", "\"\n\n", "\"\\r\\n\\r\\n", "\\\"\\r\\n\\r\\n"]
            .iter()
            .find(|start| after.starts_with(start.as_bytes()))
        {
            return self.read_value(NameSeparator::Colon, self.end + start.len());
        }
        let found = self.read_separator();
        // Alone, `pass` is mostly the result of a test.
        let is_result = self.name().eq_ignore_ascii_case("pass")
            && !self.follows_account()
            && !after.starts_with(b" is ");
        let is_loose = |separator| {
            matches!(
                separator,
                NameSeparator::Cell | NameSeparator::Words | NameSeparator::Argument
            )
        };
        let found = found.filter(|(separator, _)| !(is_result && is_loose(*separator)));
        let Some((separator, at)) = found else { return Vec::new() };
        if self.class == FieldNameClass::Cookies {
            return match separator {
                NameSeparator::Words => Vec::new(),
                _ => find_cookie_values(self.text, at),
            };
        }
        self.read_value(separator, at)
    }

    /// The separator, and the offset after it.
    fn read_separator(&self) -> Option<(NameSeparator, usize)> {
        let text = self.text;
        let closing =
            text[self.end..].iter().take(8).take_while(|byte| b"\"'`\\]*)".contains(byte)).count();
        let closers = &text[self.end..self.end + closing];
        let is_quoted = closers.iter().any(|byte| b"\"'`".contains(byte));
        let spaces = self.count_spaces(self.end + closing);
        let at = self.end + closing + spaces;
        let rest = &text[at..];
        let adjacent = closing + spaces == 0;
        let index = if adjacent { index_length(rest) } else { 0 };
        let (at, rest) = (at + index, &rest[index..]);
        let (at, rest) = if index > 0 { self.skip_spaces(at) } else { (at, rest) };
        if let Some(comparison) = comparison_length(rest) {
            return Some((NameSeparator::Argument, at + comparison));
        }
        if let Some(operator) = assignment_length(rest, spaces) {
            return Some((NameSeparator::Equals, at + operator));
        }
        let name = self.name();
        let is_constant = name.contains('_') && name.bytes().all(|byte| !byte.is_ascii_lowercase());
        match rest.first()? {
            b'=' => Some((NameSeparator::Equals, at + 1)),
            b':' if !closers.ends_with(b"]") && !matches!(rest.get(1), Some(b':' | b'?')) => {
                Some((NameSeparator::Colon, at + 1))
            }
            b',' if is_quoted || self.is_symbol() => Some((NameSeparator::Argument, at + 1)),
            b'<' if rest.starts_with(b"<- ") && spaces > 0 => Some((NameSeparator::Equals, at + 2)),
            b',' if is_constant && adjacent => Some((NameSeparator::Cell, at + 1)),
            b'"' | b'\'' if is_quoted && spaces > 0 => Some((NameSeparator::Argument, at)),
            b'{' => {
                let space = rest[1..].iter().take(60).take_while(|b| b.is_ascii_whitespace());
                Some((NameSeparator::Argument, at + 1 + space.count()))
            }
            b'(' if adjacent => Some((NameSeparator::Argument, at + 1)),
            b'>' if is_quoted || self.start > 0 && text[self.start - 1] == b'<' => {
                Some((NameSeparator::Tag, at + 1))
            }
            b'|' if spaces > 0 && !name.contains('.') => Some((NameSeparator::Cell, at + 1)),
            _ if (self.is_option || self.follows_env()) && closing == 0 && spaces > 0 => {
                Some((NameSeparator::Option, at))
            }
            // A table without borders.
            _ if closing == 0 && (2..30).contains(&spaces) && self.starts_line() => {
                Some((NameSeparator::Cell, at))
            }
            _ if closing == 0 && spaces == 1 => {
                let verbs: [&[u8]; 8] =
                    [b"is ", b"was ", b"to ", b"= ", b"- ", b"of ", b"lautet ", b"ist "];
                let verb =
                    verbs.iter().find(|verb| rest.starts_with(verb)).map_or(0, |verb| verb.len());
                let verb = if rest.starts_with(b"is: ") { 4 } else { verb };
                Some((NameSeparator::Words, at + verb))
            }
            _ => None,
        }
    }

    fn skip_spaces(&self, at: usize) -> (usize, &'t [u8]) {
        let at = at + self.count_spaces(at);
        (at, &self.text[at..])
    }

    /// Whether the name is a symbol of Ruby or an atom of a tuple: `:password, "..."`, `{password, "..."}`.
    fn is_symbol(&self) -> bool {
        self.start > 0 && b":{".contains(&self.text[self.start - 1])
    }

    /// Whether the words before the name speak of an account: `user admin pass ...`.
    fn follows_account(&self) -> bool {
        let before = self.text[self.start.saturating_sub(40)..self.start].to_ascii_lowercase();
        ["user", "login", "wifi", "wi-fi", "admin", "root "]
            .iter()
            .any(|word| memmem::find(&before, word.as_bytes()).is_some())
    }

    /// Whether the name follows an instruction that sets a variable: `ENV NAME value`.
    fn follows_env(&self) -> bool {
        ["ENV ", "setenv ", "SetEnv ", "set -gx ", "set -x ", "set -Ux ", "setx "]
            .iter()
            .any(|word| self.text[..self.start].ends_with(word.as_bytes()))
    }

    fn count_spaces(&self, from: usize) -> usize {
        self.text[from..].iter().take(40).take_while(|byte| b" \t".contains(byte)).count()
    }

    fn read_value(&self, separator: NameSeparator, at: usize) -> Vec<Range<usize>> {
        let text = self.text;
        if separator == NameSeparator::Equals && text[at..].starts_with(b"***") {
            return Vec::new();
        }
        let at = self.skip_decoration(separator, at);
        let rest = &text[at..];
        let near = &rest[..rest.len().min(MAX_TYPE_BYTES)];
        if separator == NameSeparator::Colon
            && near.contains(&b'=')
            && let Some(typed) = TYPE_ANNOTATION.match_start(near)
        {
            return self.read_quoted(at + typed.whole.end - 1).into_iter().flatten().collect();
        }
        let scheme = scheme_length(rest);
        // `r"..."`, `b'...'` and `$"..."` are literals too.
        let prefix = usize::from(matches!(
            rest,
            [b'r' | b'b' | b'u' | b'f' | b'$' | b'@' | b'N' | b'L', b'"' | b'\'', ..]
        ));
        if let Some(offset) = wrapped_literal_offset(rest)
            && let Some(literal) = QuotedValue::read(text, at + offset)
        {
            let value = std::str::from_utf8(&text[literal.range.clone()]).unwrap_or_default();
            let is_secret = self.is_secret(value, ValueStyle::Bare);
            return is_secret.then_some(literal.range).into_iter().collect();
        }
        if let Some(values) = self.read_quoted(at + prefix) {
            // What a colon follows is the next key of an object, not an argument.
            let is_key = |value: &Range<usize>| {
                let after = text[value.end..].iter().find(|byte| !b"\\\"'` ".contains(byte));
                separator == NameSeparator::Argument && after == Some(&b':')
            };
            return values.into_iter().filter(|value| !is_key(value)).collect();
        }
        if matches!(separator, NameSeparator::Argument) {
            return Vec::new();
        }
        if rest.first() == Some(&b'[') {
            return self.read_list(at);
        }
        // The text may be cut before the closing quote.
        let opening = usize::from(matches!(rest.first(), Some(b'"' | b'\'')));
        let value = self.read_bare(separator, at + opening + scheme);
        value.map(|value| self.extend_block(value)).into_iter().collect()
    }

    /// Adds the next lines of a YAML block: its lines have one indentation, and no spaces in a secret.
    fn extend_block(&self, value: Range<usize>) -> Range<usize> {
        let text = self.text;
        let indent = text[..value.start].iter().rev().take(80).take_while(|b| **b == b' ').count();
        let line_break = (value.start - indent).checked_sub(1);
        let is_block = line_break.is_some_and(|at| at > self.end && text[at] == b'\n');
        let mut end = value.end;
        while is_block && indent > 0 && text.get(end) == Some(&b'\n') {
            let line = end + 1 + indent;
            let is_indented = text.get(end + 1..line).is_some_and(|it| it.trim_ascii().is_empty());
            let is_inner = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/=_-.".contains(byte);
            let length = text.get(line..).unwrap_or_default().iter().take_while(is_inner).count();
            if !is_indented || length < 4 || !matches!(text.get(line + length), None | Some(b'\n'))
            {
                break;
            }
            end = line + length;
        }
        value.start..end
    }

    fn read_list(&self, at: usize) -> Vec<Range<usize>> {
        let mut values = read_list(self.text, at);
        values.retain(|range| {
            let value = std::str::from_utf8(&self.text[range.clone()]).unwrap_or_default();
            self.is_secret(value, ValueStyle::Bare)
        });
        values
    }

    /// Skips spaces, emphasis, and the line break before a value on a line of its own.
    fn skip_decoration(&self, separator: NameSeparator, at: usize) -> usize {
        let text = self.text;
        let mut at = at + self.count_spaces(at);
        while matches!(text.get(at), Some(b'*')) && matches!(text.get(at + 1), Some(b'*' | b' ')) {
            at += 1;
        }
        at += self.count_spaces(at);
        if separator == NameSeparator::Tag {
            return at + text[at..].iter().take(80).take_while(|b| b.is_ascii_whitespace()).count();
        }
        // A template of Ruby.
        if text[at..].starts_with(b"<%=") {
            at += 3 + self.count_spaces(at + 3);
        }
        // A tag of YAML, such as `!!str`.
        if text[at..].starts_with(b"!!") {
            at += text[at..].iter().take(12).take_while(|byte| **byte != b' ').count();
            at += self.count_spaces(at);
        }
        if matches!(separator, NameSeparator::Colon | NameSeparator::Equals)
            && let Some(next) = self.literal_on_next_line(at)
        {
            return next;
        }
        let is_block = match separator {
            NameSeparator::Colon | NameSeparator::Equals => {
                matches!(text.get(at), Some(b'|' | b'>' | b'(' | b'\\'))
            }
            // A command that continues on the next line.
            NameSeparator::Option => text.get(at) == Some(&b'\\'),
            _ => false,
        };
        if is_block {
            let mark =
                text[at..].iter().take(3).take_while(|byte| b"|>(\\-+".contains(byte)).count();
            if text.get(at + mark) == Some(&b'\n') {
                at += mark + 1;
                at += self.count_spaces(at);
            }
        }
        at
    }

    /// The offset of a literal that a line break separates from its name.
    fn literal_on_next_line(&self, at: usize) -> Option<usize> {
        let line = match &self.text[at..] {
            [b'\r', b'\n', ..] => at + 2,
            [b'\n', ..] => at + 1,
            _ => return None,
        };
        let value = line + self.count_spaces(line);
        let rest = &self.text[value..];
        (rest.starts_with(b"\"") || rest.starts_with(b"'") || rest.starts_with(b"string("))
            .then_some(value)
    }

    /// Reads a value in quotes: its range if it is a secret. `None` if there is no such value.
    fn read_quoted(&self, at: usize) -> Option<Vec<Range<usize>>> {
        let (value, parts) = QuotedValue::read_joined(self.text, at)?;
        let joined: Vec<u8> = parts.into_iter().flat_map(|part| self.text[part].to_vec()).collect();
        let joined = String::from_utf8_lossy(&joined).replace("\\\n", "");
        let scheme = scheme_length(joined.as_bytes());
        let is_secret = self.is_secret(&joined[scheme..], ValueStyle::Quoted);
        Some(is_secret.then(|| value.range.start + scheme..value.range.end).into_iter().collect())
    }

    fn read_bare(&self, separator: NameSeparator, at: usize) -> Option<Range<usize>> {
        let text = self.text;
        let name = self.name();
        let is_capitals = name.bytes().all(|byte| !byte.is_ascii_lowercase()) && name.len() >= 2;
        let is_adjacent = separator == NameSeparator::Equals && at == self.end + 1
            || self.is_default(separator, at);
        let before = &self.text[..self.start];
        let is_property = self.is_option
            || self.is_default(separator, at)
            || before.ends_with(b"/p:")
            || separator == NameSeparator::Equals && self.follows_user_pair();
        let is_assigned =
            (is_capitals || is_property) && is_adjacent || separator == NameSeparator::Option;
        let is_setting =
            matches!(separator, NameSeparator::Colon | NameSeparator::Equals) && self.starts_line();
        let ends = |byte: u8| match separator {
            NameSeparator::Tag => byte == b'<' || byte == b'\n',
            _ if is_assigned || is_setting => {
                byte.is_ascii_whitespace() || b"\"'`;\\".contains(&byte)
            }
            _ => byte.is_ascii_whitespace() || b"\"'`;,&<>|\\".contains(&byte),
        };
        let mut end =
            at + text[at..].iter().take(MAX_BARE_BYTES).take_while(|byte| !ends(**byte)).count();
        while end > at
            && b".,:)]}?".contains(&text[end - 1])
            && !(text[end - 1] == b')' && text[at..end].contains(&b'('))
        {
            end -= 1;
        }
        if let Some(phrase) = self.read_passphrase(separator, at) {
            return Some(phrase);
        }
        let value = std::str::from_utf8(&text[at..end]).ok()?;
        let style = match separator {
            NameSeparator::Tag => ValueStyle::Quoted,
            NameSeparator::Words => ValueStyle::Prose,
            _ if is_assigned => ValueStyle::Assigned,
            _ if self.is_whole_line(end) => ValueStyle::WholeLine,
            _ => ValueStyle::Bare,
        };
        // In a sentence without a verb, only what is long and random is a key.
        let is_sentence = separator == NameSeparator::Words
            && self.class != FieldNameClass::Password
            && at == self.end + 1
            && !(value.len() >= 20 && value.bytes().any(|byte| byte.is_ascii_digit()));
        // `PASS: TestLogin2` is a test that passed.
        let is_test = name.eq_ignore_ascii_case("pass")
            && value.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("test"));
        let before_value = &text[..at];
        // Another pair of a log, or a class of a style sheet: `token length=32`, `Login_password__x7Qz0 wide`.
        let is_other = (separator == NameSeparator::Words || before_value.ends_with(b"token "))
            && (name.contains("__")
                || value.split_once('=').is_some_and(|pair| is_pair_name(pair.0)));
        // What is cut off is masked.
        let is_masked = value.len() < 20 && text[end..].starts_with(b"...");
        (!is_sentence && !is_test && !is_other && !is_masked && self.is_secret(value, style))
            .then_some(at..end)
    }

    /// Whether the value is what a shell or Spring takes if a variable has none: `${DB_PASSWORD:-...}`.
    fn is_default(&self, separator: NameSeparator, at: usize) -> bool {
        let is_colon = matches!(separator, NameSeparator::Colon | NameSeparator::Equals);
        is_colon
            && self.text[..self.start].ends_with(b"${")
            && (at == self.end + 1 || at == self.end + 2)
    }

    /// Whether a user's name is directly before, as in `user=bob,password=...`.
    fn follows_user_pair(&self) -> bool {
        let before = &self.text[self.start.saturating_sub(40)..self.start];
        let mut pairs = before.rsplit(|byte| b",; &\n".contains(byte));
        pairs.nth(1).is_some_and(|pair| {
            pair.to_ascii_lowercase().starts_with(b"user") && pair.contains(&b'=')
        })
    }

    /// Reads several words up to the end of the line, where a name says that they are a secret.
    fn read_passphrase(&self, separator: NameSeparator, at: usize) -> Option<Range<usize>> {
        let name = self.name().to_ascii_lowercase();
        let is_variable = separator == NameSeparator::Equals && at == self.end + 1;
        let is_spoken = separator == NameSeparator::Colon
            && (name.contains("phrase") || self.text[..self.start].ends_with(b"wifi "));
        if !(is_variable || is_spoken)
            || !matches!(self.class, FieldNameClass::Password | FieldNameClass::Chosen)
        {
            return None;
        }
        let line = &self.text[at..self.text.len().min(at + 200)];
        let line = line.split(|byte| b"\r\n#".contains(byte)).next()?.trim_ascii_end();
        is_passphrase(std::str::from_utf8(line).ok()?).then_some(at..at + line.len())
    }

    /// Whether only an indentation or a list's mark is before the name, and nothing after the value.
    fn is_whole_line(&self, end: usize) -> bool {
        let after = &self.text[end..];
        self.starts_line()
            && (after.is_empty()
                || after.starts_with(b"\n")
                || after.starts_with(b"\r")
                || after.starts_with(b"\\n"))
    }

    /// Whether only an indentation or a list's mark is before the name.
    fn starts_line(&self) -> bool {
        let mut before =
            self.text[..self.start].iter().rev().take(40).take_while(|byte| **byte != b'\n');
        before.all(|byte| b" \t-\"'*#>$".contains(byte))
    }

    fn is_secret(&self, value: &str, style: ValueStyle) -> bool {
        // A literal of one language within one of another.
        let value = match value.starts_with(['\\', '"', '\'']) {
            true => value.trim_matches(['\\', '"', '\'']),
            false => value,
        };
        FieldCandidate { name: self.name(), class: self.class, value, style }.is_plausible()
    }
}

/// Whether what is before a name says that its value is public: the name of a secret in a cloud, a hash of a file of
/// secrets, or what was encrypted to be published.
fn names_public_value(before: &[u8], after: &[u8]) -> bool {
    let near = &before[before.len().saturating_sub(100)..];
    near.ends_with(b":") && memmem::find(near, b"arn:").is_some()
        || near.ends_with(b"checksum/")
        || starts_with_sealed_value(after) && memmem::find(before, b"encryptedData").is_some()
}

/// Whether a name is followed by a value that was sealed for a cluster, whose first bytes state the length of a key.
fn starts_with_sealed_value(after: &[u8]) -> bool {
    let Some(value) = after.strip_prefix(b": Ag") else { return false };
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    value.iter().take(100).take_while(|byte| is_base64(byte)).count() == 100
}

/// Whether a word is the name of a pair in a log: `length` in `length=32`.
fn is_pair_name(word: &str) -> bool {
    word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

/// Whether the whole value of a field with this name is a secret.
pub(crate) fn is_secret_field(name: &str, value: &str) -> bool {
    let Some(class) = classify_field_name(name) else { return false };
    let scheme = scheme_length(value.as_bytes());
    class != FieldNameClass::Cookies
        && FieldCandidate { name, class, value: &value[scheme..], style: ValueStyle::Quoted }
            .is_plausible()
}
