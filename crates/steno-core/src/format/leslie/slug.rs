//! Names of transcript files: `{YYYYMMDD}-{HHmm}-{slug}.txt`.

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use crate::timestamp::Timestamp;

/// The most characters that a query gives to a file's name.
pub const SLUG_LIMIT: usize = 50;

/// What a file is called whose query has nothing to say.
const FALLBACK: &str = "task";

/// The part of a file's name that a query gives.
///
/// Letters, marks and numbers of all scripts, `_` and `-` stay; each run of anything else becomes one `-`.
pub fn slug(query: &str) -> String {
    let mut slug = String::new();
    for c in query.chars() {
        if is_kept(c) {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let short: String = slug.chars().take(SLUG_LIMIT).collect();
    match short.trim_end_matches('-') {
        "" => FALLBACK.to_owned(),
        slug => slug.to_owned(),
    }
}

/// The name, without `.txt`, of a unit that began at `start` with `query`, in `start`'s own offset.
pub fn stem(start: Timestamp, query: &str) -> String {
    let minute = start.wall().strftime("%Y%m%d-%H%M");
    format!("{minute}-{}", slug(query))
}

/// Sorts names as their files were written: by minute and query, then by the number that sets equals apart.
pub(super) fn order(name: &str) -> (&str, u64) {
    let stem = name.strip_suffix(".txt").unwrap_or(name);
    let (base, number) = stem.rsplit_once('-').unwrap_or((stem, ""));
    match number.parse() {
        Ok(number) => (base, number),
        Err(_) => (stem, 1),
    }
}

fn is_kept(c: char) -> bool {
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
            assert_eq!(slug(query), expected, "{query}");
        }
    }

    #[test]
    fn the_cut_leaves_no_hyphen_at_the_end() {
        let query = format!("{} tail", "x".repeat(49));
        assert_eq!(slug(&query), "x".repeat(49));
        assert_eq!(slug(&"é".repeat(60)).chars().count(), SLUG_LIMIT);
    }

    #[test]
    fn numbered_names_follow_the_plain_one() {
        let mut names = ["m-q-10.txt", "m-q-2.txt", "m-q.txt", "m-a.txt"];
        names.sort_by(|a, b| order(a).cmp(&order(b)));
        assert_eq!(names, ["m-a.txt", "m-q.txt", "m-q-2.txt", "m-q-10.txt"]);
    }

    #[test]
    fn the_minute_is_the_writers_own() {
        let start = "2026-02-08T00:30:59.9+08:00".parse().unwrap();
        assert_eq!(stem(start, "hi"), "20260208-0030-hi");
    }
}
