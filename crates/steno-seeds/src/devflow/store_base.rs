//! Finds the folder of a store: the one with `runs/`.

use std::path::{Path, PathBuf};

use super::{folder, index, store};

/// Returns the store's folder for a folder that the user names.
///
/// devflow's examples open a store on `.devflow/runs` or `.devflow/transcripts`, so that runs are one folder deeper
/// than documented. Those are found too.
pub fn find_store_base(folder: &Path) -> PathBuf {
    let deeper = [store::RUNS_FOLDER, "transcripts"].map(|name| folder.join(name));
    if !has_runs(folder)
        && let Some(base) = deeper.into_iter().find(|base| has_runs(base))
    {
        return base;
    }
    folder.to_owned()
}

fn has_runs(base: &Path) -> bool {
    let runs = base.join(store::RUNS_FOLDER);
    let names = index::list_run_ids(&runs).unwrap_or_default();
    let mut folders = names.iter().map(|id| runs.join(id.as_str()));
    folders.any(|folder| !folder::run_bundle(&folder).files.is_empty())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn runs_one_folder_too_deep_are_found() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(find_store_base(dir.path()), dir.path());
        let run = dir.path().join("runs/runs/r");
        fs::create_dir_all(&run).unwrap();
        assert_eq!(find_store_base(dir.path()), dir.path());
        fs::write(run.join("metadata.json"), "{}").unwrap();
        assert_eq!(find_store_base(dir.path()), dir.path().join("runs"));
    }
}
