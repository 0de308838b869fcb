//! Names of transcript files: `{YYYYMMDD}-{HHmm}-{slug}.txt`.

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use steno_model::timestamp::Timestamp;

/// Maximum number of characters of a slug.
pub const MAX_SLUG_CHARS: usize = 50;

/// The slug of a query without letters or digits.
const FALLBACK_SLUG: &str = "task";

/// Makes the slug of a file name from a query.
///
/// Letters, marks and numbers of all scripts, `_` and `-` are kept; each run of other characters becomes one `-`.
pub fn slug_from_query(query: &str) -> String {
    let mut slug = String::new();
    for c in query.chars() {
        if is_slug_char(c) {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let short: String = slug.chars().take(MAX_SLUG_CHARS).collect();
    match short.trim_end_matches('-') {
        "" => FALLBACK_SLUG.to_owned(),
        slug => slug.to_owned(),
    }
}

/// The file name, without `.txt`, of a unit that started at `start` with `query`. The time is in `start`'s own
/// offset.
pub fn unit_file_stem(start: Timestamp, query: &str) -> String {
    let minute = start.wall().strftime("%Y%m%d-%H%M");
    format!("{minute}-{}", slug_from_query(query))
}

/// Sort key for file names: minute and slug, then the number that is appended to duplicate names.
pub(super) fn file_sort_key(name: &str) -> (&str, u64) {
    let stem = name.strip_suffix(".txt").unwrap_or(name);
    let (base, number) = stem.rsplit_once('-').unwrap_or((stem, ""));
    match number.parse() {
        Ok(number) => (base, number),
        Err(_) => (stem, 1),
    }
}

fn is_slug_char(c: char) -> bool {
    c == '_'
        || matches!(
            c.general_category_group(),
            GeneralCategoryGroup::Letter
                | GeneralCategoryGroup::Mark
                | GeneralCategoryGroup::Number
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_characters_become_single_hyphens() {
        for (query, expected) in [
            ("Fix the: bug!", "Fix-the-bug"),
            ("--a -- b--", "a-b"),
            ("snake_case-name", "snake_case-name"),
            ("été в ночь 夜に 밤 ٣", "été-в-ночь-夜に-밤-٣"),
            ("e\u{301}t", "e\u{301}t"),
            ("../../etc/passwd", "etc-passwd"),
            (" \n\t", "task"),
            ("🔧", "task"),
        ] {
            assert_eq!(slug_from_query(query), expected, "{query}");
        }
    }

    #[test]
    fn the_cut_leaves_no_hyphen_at_the_end() {
        let query = format!("{} tail", "x".repeat(49));
        assert_eq!(slug_from_query(&query), "x".repeat(49));
        assert_eq!(slug_from_query(&"é".repeat(60)).chars().count(), MAX_SLUG_CHARS);
    }

    #[test]
    fn numbered_names_follow_the_plain_one() {
        let mut names = ["m-q-10.txt", "m-q-2.txt", "m-q.txt", "m-a.txt"];
        names.sort_by(|a, b| file_sort_key(a).cmp(&file_sort_key(b)));
        assert_eq!(names, ["m-a.txt", "m-q.txt", "m-q-2.txt", "m-q-10.txt"]);
    }

    #[test]
    fn the_minute_is_the_writers_own() {
        let start = "2026-02-08T00:30:59.9+08:00".parse().unwrap();
        assert_eq!(unit_file_stem(start, "hi"), "20260208-0030-hi");
    }
}
