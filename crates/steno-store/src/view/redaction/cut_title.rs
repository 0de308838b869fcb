//! Titles that were cut. A title is the beginning of a prompt, so a cut can leave a part of a secret that no rule
//! recognises.

use super::SecretText;

/// Fewer characters of a secret at the end of a title are taken for chance.
const MIN_SECRET_PART: usize = 4;

/// Removes the last word of a title that was cut within it: `the password is Tr0ub4…` becomes `the password is …`. A
/// word in a script without spaces stays, because a secret has ASCII characters.
pub(super) fn remove_cut_word(title: &mut String) {
    let Some(kept) = title.strip_suffix('…') else { return };
    let end = kept.trim_end_matches(|c: char| c.is_ascii_graphic()).len();
    if end < kept.len() {
        title.truncate(end);
        title.push('…');
    }
}

/// Removes the beginning of a secret at the end of a title. A secret can have several words, and not every agent marks a
/// title that it cut.
pub(super) fn remove_cut_secrets(title: &mut String, found: &[SecretText]) {
    let kept = title.strip_suffix('…').unwrap_or(title).trim_end();
    let part_length = |secret: &SecretText| {
        let ends = secret.text.char_indices().map(|(end, _)| end).skip(MIN_SECRET_PART);
        ends.filter(|end| kept.ends_with(&secret.text[..*end])).last()
    };
    if let Some(length) = found.iter().filter_map(part_length).max() {
        title.truncate(kept.len() - length);
        title.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without_cut_word(title: &str) -> String {
        let mut title = title.to_owned();
        remove_cut_word(&mut title);
        title
    }

    #[test]
    fn only_a_cut_word_is_removed() {
        assert_eq!(without_cut_word("the password is Tr0ub4…"), "the password is …");
        assert_eq!(without_cut_word("wait for the answer …"), "wait for the answer …");
        assert_eq!(without_cut_word("all of it"), "all of it");
        assert_eq!(without_cut_word("把密码改成新的…"), "把密码改成新的…");
    }

    #[test]
    fn the_beginning_of_a_secret_of_several_words_is_removed() {
        let secret = |text: &str| SecretText { text: text.to_owned(), rule: "password" };
        let found = [secret("heron"), secret("heron gate opens at dawn")];
        let mut title = "the passphrase is heron gate …".to_owned();
        remove_cut_secrets(&mut title, &found);
        assert_eq!(title, "the passphrase is …");
        let mut title = "the passphrase is heron g".to_owned();
        remove_cut_secrets(&mut title, &found);
        assert_eq!(title, "the passphrase is …");
        let mut title = "look at the …".to_owned();
        remove_cut_secrets(&mut title, &found);
        assert_eq!(title, "look at the …");
    }
}
