//! Identifies the Git checkout that contains a folder, from files only. Recognizes a moved checkout. Does
//! not run Git.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A Git checkout and the facts that identify it after a move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitCheckout {
    /// The root folder.
    pub root: PathBuf,
    /// The remote URL as `host/path`, without scheme, user and `.git` suffix.
    pub remote: Option<String>,
    /// The first reflog entry of this checkout, which moves with the folder.
    pub first: Option<String>,
}

/// What two checkouts have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckoutMatch {
    /// Both have the same remote.
    SameRemote,
    /// Both are the same checkout.
    SameCheckout,
}

impl GitCheckout {
    /// Finds the checkout that contains `folder`.
    pub fn containing_folder(folder: &Path) -> Option<Self> {
        folder.ancestors().find_map(Self::at_root)
    }

    /// The checkout with `folder` as its root, if it has a remote or a reflog.
    pub fn at_root(folder: &Path) -> Option<Self> {
        let own = git_folder(&folder.join(".git"))?;
        let shared = shared_git_folder(&own);
        let remote =
            fs::read_to_string(shared.join("config")).ok().and_then(|text| parse_remote(&text));
        let first = first_log_entry(&own.join("logs/HEAD"));
        let known = remote.is_some() || first.is_some();
        known.then(|| Self { root: folder.to_owned(), remote, first })
    }

    /// Compares two checkouts.
    pub fn match_with(&self, other: &Self) -> Option<CheckoutMatch> {
        if self.first.is_some() && self.first == other.first {
            Some(CheckoutMatch::SameCheckout)
        } else if self.remote.is_some() && self.remote == other.remote {
            Some(CheckoutMatch::SameRemote)
        } else {
            None
        }
    }
}

/// The checkouts of one repository, and the Git folder that they share.
pub(crate) struct CheckoutFolders {
    /// The root folders of all checkouts, without links. The first contains the folder that was asked about.
    pub(crate) roots: Vec<PathBuf>,
    /// The folder with refs, objects and configuration.
    pub(crate) git: PathBuf,
}

impl CheckoutFolders {
    /// Finds the checkouts of the repository that contains `folder`. Returns `None` if only Git itself knows them:
    /// there is no `.git`, or the configuration moves the root.
    pub(crate) fn containing(folder: &Path) -> Option<Self> {
        let folder = folder.canonicalize().ok()?;
        let root = folder.ancestors().find(|folder| folder.join(".git").exists())?;
        let own = git_folder(&root.join(".git"))?;
        let git = shared_git_folder(&own).canonicalize().ok()?;
        let config = fs::read_to_string(git.join("config")).ok()?;
        let moves_root =
            |line: &str| line.trim_start().to_ascii_lowercase().starts_with("worktree");
        if !own.join("HEAD").is_file() || config.lines().any(moves_root) {
            return None;
        }
        let mut roots = vec![root.to_owned()];
        let main = git.parent().filter(|_| git.file_name().is_some_and(|name| name == ".git"));
        let linked = fs::read_dir(git.join("worktrees")).into_iter().flatten().flatten();
        let linked = linked.filter_map(|entry| linked_root(&entry.path()));
        for root in main.map(Path::to_owned).into_iter().chain(linked) {
            let root = root.canonicalize().unwrap_or(root);
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
        Some(Self { roots, git })
    }
}

/// The root folder of a linked worktree, from its folder in the shared Git folder.
fn linked_root(worktree: &Path) -> Option<PathBuf> {
    let named = fs::read_to_string(worktree.join("gitdir")).ok()?;
    Some(worktree.join(named.trim_end()).parent()?.to_owned())
}

/// The Git folder that all worktrees share.
fn shared_git_folder(own: &Path) -> PathBuf {
    match fs::read_to_string(own.join("commondir")) {
        Ok(common) => own.join(common.trim_end()),
        Err(_) => own.to_owned(),
    }
}

/// The folder with Git's own files. In a worktree, `.git` is a file that names it.
fn git_folder(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    let text = fs::read_to_string(git).ok()?;
    let named = text.strip_prefix("gitdir:")?.trim();
    Some(git.parent()?.join(named))
}

/// Reads the remote `origin` from a Git config file, or the first remote if there is no `origin`.
fn parse_remote(config: &str) -> Option<String> {
    let mut found = None;
    let mut section = "";
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if section.starts_with("[remote ")
            && let Some((key, url)) = line.split_once('=')
            && key.trim() == "url"
        {
            if section == "[remote \"origin\"]" {
                return normalize_remote_url(url);
            }
            found = found.or_else(|| normalize_remote_url(url));
        }
    }
    found
}

/// Normalizes a remote URL to `host/path`. The result is the same for every protocol and contains no credentials.
pub fn normalize_remote_url(url: &str) -> Option<String> {
    let url = url.trim().trim_matches('"');
    let (host, path) = match url.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?,
        // `user@host:path`; a local path has no host.
        None => match url.split_once(':') {
            Some((host, path)) if !host.contains('/') => (host, path),
            _ => ("", url),
        },
    };
    let host = host.rsplit('@').next().unwrap_or(host);
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path).trim_matches('/');
    (!path.is_empty()).then(|| format!("{}/{path}", host.to_ascii_lowercase()))
}

/// The first entry of a reflog; `None` if the line is longer than Git writes.
fn first_log_entry(path: &Path) -> Option<String> {
    let mut line = String::new();
    let file = fs::File::open(path).ok()?;
    BufReader::new(file.take(4096)).read_line(&mut line).ok()?;
    // Author and message do not identify the checkout.
    let (hashes, rest) = line.split_at_checked(81)?;
    let at = rest.rsplit_once('>')?.1.split('\t').next()?;
    Some(format!("{}{}", hashes.trim(), at.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkouts_are_found_as_git_finds_them() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let (main, linked) = (home.join("main"), home.join("trees/linked"));
        let git = |folder: &Path, args: &[&str]| {
            let mut command = std::process::Command::new("git");
            command.arg("-C").arg(folder).args(["-c", "user.name=a", "-c", "user.email=a@b"]);
            assert!(command.args(args).output().unwrap().status.success(), "git {args:?}");
        };
        fs::create_dir_all(main.join("src")).unwrap();
        git(&main, &["init", "-q"]);
        git(&main, &["commit", "-q", "--allow-empty", "-m", "one"]);
        git(&main, &["worktree", "add", "-q", linked.to_str().unwrap()]);

        let found = |folder: &Path| CheckoutFolders::containing(folder).unwrap().roots;
        assert_eq!(found(&main.join("src")), [main.clone(), linked.clone()]);
        assert_eq!(found(&linked), [linked.clone(), main.clone()]);
        assert!(CheckoutFolders::containing(&home).is_none());
        git(&main, &["config", "core.worktree", home.to_str().unwrap()]);
        assert!(CheckoutFolders::containing(&main).is_none());
    }

    #[test]
    fn a_remote_has_one_name_however_it_is_reached() {
        for url in [
            "https://github.com/ada/engine.git",
            "https://token:x@GitHub.com/ada/engine",
            "git@github.com:ada/engine.git",
            "ssh://git@github.com/ada/engine/",
        ] {
            assert_eq!(
                normalize_remote_url(url).as_deref(),
                Some("github.com/ada/engine"),
                "{url}"
            );
        }
        assert_eq!(normalize_remote_url("/srv/engine.git").as_deref(), Some("/srv/engine"));
        assert_eq!(normalize_remote_url(" "), None);
    }

    #[test]
    fn origin_goes_before_other_remotes() {
        let config = "[core]\n\turl = no\n[remote \"fork\"]\n\turl = git@x.org:b/p\n\
                      [remote \"origin\"]\n\turl = git@x.org:a/p\n";
        assert_eq!(parse_remote(config).as_deref(), Some("x.org/a/p"));
        assert_eq!(parse_remote(&config.replace("origin", "up")).as_deref(), Some("x.org/b/p"));
        assert_eq!(parse_remote("[core]\n\tbare = false\n"), None);
    }

    #[test]
    fn a_checkout_is_known_again_where_it_moved() {
        let temp = tempfile::tempdir().unwrap();
        let log =
            format!("{} {} Ada <a@b> 1700000000 +0100\tcommit\n", "0".repeat(40), "a".repeat(40));
        let make = |name: &str, log: &str, url: &str| {
            let git = temp.path().join(name).join(".git");
            fs::create_dir_all(git.join("logs")).unwrap();
            fs::write(git.join("logs/HEAD"), log).unwrap();
            fs::write(git.join("config"), format!("[remote \"origin\"]\nurl = {url}\n")).unwrap();
            GitCheckout::containing_folder(&temp.path().join(name).join("src/deep")).unwrap()
        };
        let before = make("p", &log, "https://x.org/p");
        assert_eq!(before.root, temp.path().join("p"));
        fs::rename(temp.path().join("p"), temp.path().join("q")).unwrap();
        let moved = GitCheckout::at_root(&temp.path().join("q")).unwrap();
        assert_eq!(before.match_with(&moved), Some(CheckoutMatch::SameCheckout));
        let cloned = make("r", &log.replace("1700", "1800"), "git@x.org:p");
        assert_eq!(before.match_with(&cloned), Some(CheckoutMatch::SameRemote));
        let other = make("s", "", "https://x.org/other");
        assert_eq!(before.match_with(&other), None);
        assert_eq!(GitCheckout::at_root(temp.path()), None);
    }

    #[test]
    fn a_worktree_has_the_remote_of_its_repository() {
        let temp = tempfile::tempdir().unwrap();
        let main = temp.path().join("main/.git");
        fs::create_dir_all(main.join("worktrees/w")).unwrap();
        fs::write(main.join("config"), "[remote \"origin\"]\nurl = https://x.org/p\n").unwrap();
        fs::write(main.join("worktrees/w/commondir"), "../..\n").unwrap();
        let tree = temp.path().join("w");
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}/worktrees/w\n", main.display())).unwrap();
        assert_eq!(GitCheckout::at_root(&tree).unwrap().remote.as_deref(), Some("x.org/p"));
    }
}
