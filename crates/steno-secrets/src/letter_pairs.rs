//! Distinguishes words from random letters by which letters follow each other.

/// For each letter, the letters that often follow it in English words and in names of programs, as bits.
const COMMON_FOLLOWERS: [u32; 26] = [
    0x13ebd4e, 0x0104911, 0x01a4d91, 0x0144119, 0x0afb97d, 0x0124931, 0x0060190, 0x0084111,
    0x22ef87f, 0x0000000, 0x0000110, 0x11c4919, 0x000d113, 0x03c697d, 0x07efd4e, 0x11ec911,
    0x0100000, 0x11e715d, 0x11cc995, 0x11ec195, 0x00eb917, 0x0000111, 0x0026191, 0x0080000,
    0x0088000, 0x0000010,
];

/// The share of neighbouring letters that are common in words: about 0.9 for words, and about 0.4 for random letters.
/// `None` if the text has no two neighbouring letters of the same case.
pub(crate) fn word_likeness(text: &[u8]) -> Option<f64> {
    let (mut pairs, mut common) = (0_u32, 0_u32);
    for pair in text.windows(2) {
        let (first, second) = (pair[0], pair[1]);
        let is_inner = first.is_ascii_alphabetic()
            && second.is_ascii_alphabetic()
            // A capital after a small letter starts a word.
            && !(first.is_ascii_lowercase() && second.is_ascii_uppercase());
        if is_inner {
            pairs += 1;
            let follower = second.to_ascii_lowercase() - b'a';
            common +=
                COMMON_FOLLOWERS[usize::from(first.to_ascii_lowercase() - b'a')] >> follower & 1;
        }
    }
    (pairs > 0).then(|| f64::from(common) / f64::from(pairs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_differ_from_random_letters() {
        for words in ["authenticationHandler", "preprocessing", "correcthorse", "READ_ONLY_MODE"] {
            assert!(word_likeness(words.as_bytes()).unwrap() > 0.75, "{words}");
        }
        for random in ["qxzvkplmwtgh", "kJhGfDsAqWeRtYuIoPzX", "XQZPVKJWMHGB"] {
            assert!(word_likeness(random.as_bytes()).unwrap() < 0.65, "{random}");
        }
        assert_eq!(word_likeness(b"1-2"), None);
    }
}
