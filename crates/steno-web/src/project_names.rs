//! Short names of project folders: as much of each path as makes it differ from all others.

use std::collections::HashMap;

use crate::addresses::{distinct_suffix, last_segment, short_path};

/// The names of some project folders.
#[derive(Debug, Default)]
pub(crate) struct ProjectNames {
    /// How many bytes at the end of each path are its name.
    lengths: HashMap<String, usize>,
}

impl ProjectNames {
    /// The names of these paths. A path may come several times.
    pub(crate) fn new<'a>(paths: impl Iterator<Item = &'a str>) -> Self {
        let mut by_name: HashMap<&str, Vec<&str>> = HashMap::new();
        for path in paths {
            let same = by_name.entry(last_segment(path)).or_default();
            if !same.contains(&path) {
                same.push(path);
            }
        }
        let names = by_name.values().flat_map(|same| {
            same.iter().map(move |path| ((*path).to_owned(), distinct_suffix(path, same).len()))
        });
        Self { lengths: names.collect() }
    }

    /// The name of a path: its last segment, or the last ones that no other path ends with.
    pub(crate) fn name<'p>(&self, path: &'p str) -> &'p str {
        let end = path.trim_end_matches('/');
        match self.lengths.get(path) {
            _ if end.is_empty() => path,
            Some(length) => &end[end.len() - length..],
            None => last_segment(path),
        }
    }

    /// The same, with the folder around it.
    pub(crate) fn name_in_folder<'p>(&self, path: &'p str) -> &'p str {
        let (name, short) = (self.name(path), short_path(path));
        if name.len() > short.len() { name } else { short }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_as_many_folders_as_it_needs() {
        let all = [
            "/home/ada/work/shop/api",
            "/home/ada/archive/shop/api",
            "/srv/mirror/shop/api/",
            "/home/ada/site",
            "/api",
            "relative",
            "/",
            "",
        ];
        let names = ProjectNames::new(all.iter().copied().chain(all));
        let shown = all.map(|path| names.name(path));
        let expected = [
            "work/shop/api",
            "archive/shop/api",
            "mirror/shop/api",
            "site",
            "/api",
            "relative",
            "/",
            "",
        ];
        assert_eq!(shown, expected);
        assert_eq!(names.name("/not/known"), "known");
        assert_eq!(names.name_in_folder("/home/ada/site"), "ada/site");
        assert_eq!(names.name_in_folder(all[0]), "work/shop/api");
    }
}
