//! Makes up secrets from templates, so that no real-looking key is in the source.
//!
//! `ghp_{A36}` is `ghp_` and 36 random letters and digits. The letter names the alphabet: `h` hexadecimal, `X` the same
//! in capitals, `d` digits, `U` capitals and digits, `l` small letters and digits, `A` letters and digits, `M` letters,
//! `a` small letters, `w` letters, digits, `_` and `-`, `b` base64, `B` base32, `p` a password, `u` a UUID.

/// A small generator of random numbers: the same seed gives the same texts.
#[derive(Clone, Debug)]
pub struct MadeUpTexts {
    state: u64,
}

impl MadeUpTexts {
    /// A generator that starts from a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d }
    }

    /// The next random number.
    pub fn next_number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// One of the items.
    pub fn choose<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[(self.next_number() % items.len() as u64) as usize]
    }

    /// Fills the gaps of a template.
    pub fn fill(&mut self, template: &str) -> String {
        let (mut filled, mut rest) = (String::new(), template);
        while let Some(start) = rest.find('{') {
            filled.push_str(&rest[..start]);
            let gap = rest[start + 1..].find('}').map(|end| &rest[start + 1..start + 1 + end]);
            match gap.and_then(|gap| self.fill_gap(gap).map(|text| (gap, text))) {
                Some((gap, text)) => {
                    filled.push_str(&text);
                    rest = &rest[start + gap.len() + 2..];
                }
                None => {
                    filled.push('{');
                    rest = &rest[start + 1..];
                }
            }
        }
        filled + rest
    }

    fn fill_gap(&mut self, gap: &str) -> Option<String> {
        if gap == "u" {
            return Some(self.fill("{h8}-{h4}-4{h3}-a{h3}-{h12}"));
        }
        let kind = gap.chars().next()?;
        let length: usize = gap[kind.len_utf8()..].parse().ok()?;
        if kind == 'p' {
            return Some(self.password(length));
        }
        let alphabet = alphabet_of(kind)?;
        // No token starts or ends with a mark, and random texts of this length have a digit.
        let plain: Vec<u8> = alphabet.bytes().filter(u8::is_ascii_alphanumeric).collect();
        let all: Vec<u8> = alphabet.bytes().collect();
        let text: Vec<u8> = (0..length)
            .map(|at| *self.choose(if at == 0 || at + 1 == length { &plain } else { &all }))
            .collect();
        let mut text = String::from_utf8(text).ok()?;
        if length >= 6 && alphabet.contains('7') && !text.bytes().any(|byte| byte.is_ascii_digit())
        {
            text.replace_range(length / 2..length / 2 + 1, "7");
        }
        Some(text)
    }

    /// A password with small letters, capitals, digits and a mark.
    fn password(&mut self, length: usize) -> String {
        let mut text = self.fill(&format!("{{A{}}}", length.saturating_sub(4).max(1)));
        for alphabet in
            ["abcdefghijkmnpqrstuvwxyz", "ABCDEFGHJKLMNPQRSTUVWXYZ", "23456789", "!#*+^~"]
        {
            let bytes = alphabet.as_bytes();
            text.push(char::from(*self.choose(bytes)));
        }
        text.push('z');
        text
    }
}

fn alphabet_of(kind: char) -> Option<&'static str> {
    Some(match kind {
        'h' => "0123456789abcdef",
        'X' => "0123456789ABCDEF",
        'd' => "0123456789",
        'U' => "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        'l' => "abcdefghijklmnopqrstuvwxyz0123456789",
        'A' => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        'M' => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        'a' => "abcdefghijklmnopqrstuvwxyz",
        'w' => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
        'b' => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        'B' => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_text() {
        let fill = |seed| MadeUpTexts::new(seed).fill("a-{A36} {u} {p12} {not a gap} {");
        assert_eq!(fill(1), fill(1));
        assert_ne!(fill(1), fill(2));
        assert!(fill(1).starts_with("a-") && fill(1).ends_with(" {not a gap} {"));
        assert_eq!(MadeUpTexts::new(3).fill("{h64}").len(), 64);
    }
}
