//! A picture of the project is taken after every step of a change; each is opened as after a crash.

use std::cell::RefCell;
use std::fs::File;
use std::rc::Rc;

use super::*;
use crate::thread::step;

/// Runs `work` and gives a copy of the project as it was after every step.
fn pictures(project: &Project, work: impl FnOnce(&ThreadStore)) -> Vec<tempfile::TempDir> {
    let taken = Rc::new(RefCell::new(Vec::new()));
    let (root, list) = (project.dir.path().to_owned(), Rc::clone(&taken));
    let watcher = move || {
        let picture = tempfile::tempdir().unwrap();
        copy(&root, picture.path());
        list.borrow_mut().push(picture);
    };
    step::watch(watcher, || work(&project.store));
    Rc::into_inner(taken).unwrap().into_inner()
}

/// Copies a folder with the times of its folders.
fn copy(from: &Path, to: &Path) {
    for item in fs::read_dir(from).unwrap() {
        let path = item.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&path, &target);
            let time = fs::metadata(&path).unwrap().modified().unwrap();
            File::open(&target).unwrap().set_modified(time).unwrap();
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// Opens a picture, reads it, changes it, and looks for anything that does not fit.
fn check(picture: &Path) -> (Relations, Vec<String>) {
    let store = open_later(picture);
    let relations = store.relations().unwrap();
    let found = tree(picture);
    assert_agree(&store);
    store.init().unwrap();
    let objective = store.create_objective("next").unwrap();
    let next = store.spawn(&Spawn::new("next", objective.id.as_str())).unwrap().thread;
    assert_agree(&store);
    assert!(picture.join(&next.storage_path).join(".meta/transcripts").is_dir());
    let left: Vec<_> = tree(picture)
        .into_iter()
        .filter(|path| path.contains(".steno") || path.contains(".lock"))
        .collect();
    assert_eq!(left, [""; 0]);
    (relations, found)
}

fn assert_agree(store: &ThreadStore) {
    let relations = store.relations().unwrap();
    for objective in store.objectives().unwrap() {
        let threads = relations.threads.values();
        let own = threads.filter(|thread| thread.objective == objective.id);
        let mut ids: Vec<_> = own.map(|thread| thread.id.clone()).collect();
        ids.sort();
        assert_eq!(objective.thread_ids, ids);
    }
    for thread in relations.threads.values() {
        assert!(store.root().join(&thread.storage_path).is_dir(), "{}", thread.id);
        assert!(relations.links.contains_key(&thread.id));
    }
}

#[test]
fn init_is_whole_or_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let project = Project { store: open(dir.path()), dir };
    let pictures = pictures(&project, |store| store.init().unwrap());
    assert!(pictures.len() > 10, "{}", pictures.len());
    for picture in pictures {
        let (relations, _) = check(picture.path());
        assert_eq!(relations.threads.len(), 0);
    }
}

#[test]
fn spawn_is_whole_or_nothing() {
    let project = Project::new();
    let objective = project.objective();
    let parent = project.spawn(&objective, "parent");
    project.asset(&parent, "plan.md", "the plan");
    project.asset(&parent, "design/api.md", "the api");
    let spawn = Spawn {
        parent: Some(parent.id.to_string()),
        inherit: Inherit::Full,
        references: vec![parent.id.to_string()],
        ..Spawn::new("child", objective.id.as_str())
    };
    let pictures = pictures(&project, |store| {
        store.spawn(&spawn).unwrap();
    });
    let mut counts = Vec::new();
    for picture in pictures {
        let (relations, found) = check(picture.path());
        counts.push(relations.threads.len());
        let copies = found.iter().filter(|path| path.ends_with("plan.md")).count();
        let expected = if relations.threads.len() == 2 { 3 } else { 1 };
        let staged = found.iter().any(|path| path.contains(".steno-staging"));
        assert!(copies == expected || staged, "{copies}");
        assert_eq!(relations.operations.len(), if relations.threads.len() == 2 { 3 } else { 1 });
    }
    assert!(counts.is_sorted() && counts.first() == Some(&1) && counts.last() == Some(&2));
}

#[test]
fn merge_is_whole_or_nothing_and_loses_nothing() {
    let project = Project::new();
    let objective = project.objective();
    let (a, b) = (project.spawn(&objective, "a"), project.spawn(&objective, "b"));
    let target = project.spawn(&objective, "target");
    project.asset(&a, "plan.md", "plan of a");
    project.asset(&a, "design/api.md", "api of a");
    project.asset(&b, "plan.md", "plan of b");
    project.asset(&target, "plan.md", "plan of the target");
    project.asset(&target, "design", "a file where a folder comes");
    let pictures = pictures(&project, |store| {
        store.merge(&merge(&[&a, &b], &target)).unwrap();
    });
    let mut merged = Vec::new();
    for picture in pictures {
        let (relations, _) = check(picture.path());
        let done = relations.operations.iter().any(|operation| operation.command == "merge");
        let folder = picture.path().join(&target.storage_path);
        let text = |path: &str| fs::read_to_string(folder.join(path)).ok();
        let expected = if done {
            ["plan of b", "plan of the target", "a file where a folder comes", "api of a"]
        } else {
            ["plan of the target", "", "", ""]
        };
        let places =
            ["plan.md", ".meta/replaced/plan.md", ".meta/replaced/design", "design/api.md"];
        assert_eq!(places.map(|path| text(path).unwrap_or_default()), expected);
        merged.push(done);
    }
    assert!(merged.is_sorted() && !merged[0] && merged[merged.len() - 1]);
}

#[test]
fn an_injection_is_recorded_and_logged_or_neither() {
    let project = Project::new();
    let thread = project.spawn(&project.objective(), "t");
    let inject = Inject {
        thread: thread.id.to_string(),
        kind: "note".to_owned(),
        content: "hi".to_owned(),
        operator: Operator::User,
    };
    let log = Path::new(&thread.storage_path).join(".meta/injections.log");
    let pictures = pictures(&project, |store| {
        store.inject(&inject).unwrap();
    });
    for picture in pictures {
        let (relations, _) = check(picture.path());
        let logged = picture.path().join(&log).exists();
        assert_eq!(relations.operations.len() == 2, logged);
    }
}

#[test]
fn threads_of_many_writers_are_all_recorded() {
    let project = Project::new();
    let objective = project.objective();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let store = ThreadStore::new(project.dir.path(), Clock::system(), IdSource::random());
            let objective = &objective;
            scope.spawn(move || {
                for _ in 0..5 {
                    store.spawn(&Spawn::new("t", objective.id.as_str())).unwrap();
                }
            });
        }
    });
    assert_eq!(project.store.threads(None).unwrap().len(), 20);
    assert_agree(&project.store);
}
