//! Recovery of damaged stores.

use super::*;

const MAIN: &str = ".leslie/thread_relations.json";

#[test]
fn a_damaged_store_costs_nothing_and_its_backup_stays() {
    for damage in ["{\"version\": \"1.", "", "[]", "{\"version\":\"1.0\"}"] {
        let project = Project::new();
        let objective = project.objective();
        let first = project.spawn(&objective, "first");
        let good = project.text(MAIN);
        fs::write(project.path(MAIN), damage).unwrap();
        assert_eq!(project.store.thread(first.id.as_str()).unwrap(), first);
        assert_eq!(project.text(MAIN), damage, "reading writes nothing");
        let problems = project.store.problems().unwrap();
        assert_eq!((problems.len(), &problems[0].path), (1, &project.path(MAIN)));
        for _ in 0..2 {
            let unknown =
                project.store.spawn_thread(&SpawnRequest::new("x", "obj-none")).unwrap_err();
            assert_eq!(unknown.code(), "T601");
        }
        assert_eq!(project.text(&format!("{MAIN}.bak")), good);
        let second = project.spawn(&objective, "second");
        let threads = project.store.list_threads(None).unwrap();
        assert_eq!(threads, [first, second]);
        assert_eq!(project.store.problems().unwrap(), []);
        assert_eq!(project.text(MAIN), project.text(&format!("{MAIN}.bak")));
        let kept = tree(project.dir.path()).into_iter().find(|path| path.contains(".damaged-"));
        assert_eq!(project.text(&kept.unwrap()), damage);
    }
}

#[test]
fn a_store_that_is_gone_comes_from_its_backup() {
    let project = Project::new();
    let objective = project.objective();
    let thread = project.spawn(&objective, "t");
    for name in ["thread_relations.json", "objectives.json"] {
        fs::remove_file(project.path(".leslie").join(name)).unwrap();
    }
    assert_eq!(project.store.list_objectives().unwrap().len(), 1);
    let reasons = project.store.problems().unwrap().into_iter().map(|problem| problem.reason);
    assert_eq!(reasons.collect::<Vec<_>>(), ["the file is missing; its backup is used"; 2]);
    project.store.init().unwrap();
    assert_eq!(project.store.list_threads(None).unwrap(), [thread]);
}

#[test]
fn reports_and_keeps_unreadable_files() {
    let project = Project::new();
    let backup = format!("{MAIN}.bak");
    fs::write(project.path(MAIN), "{").unwrap();
    fs::write(project.path(&backup), "}").unwrap();
    let error = project.store.create_objective("x").unwrap_err();
    assert_eq!(error.code(), "T502");
    let cause = error.details().unwrap()["cause"].as_str().unwrap().to_owned();
    assert!(cause.contains("EOF"), "{cause}");
    assert_eq!((project.text(MAIN).as_str(), project.text(&backup).as_str()), ("{", "}"));
}

#[test]
fn stores_that_disagree_are_brought_together() {
    let project = Project::new();
    let objective = project.objective();
    let objectives = ".leslie/objectives.json";
    let before = project.text(objectives);
    let thread = project.spawn(&objective, "t");
    fs::write(project.path(objectives), before).unwrap();
    let other = project.store.create_objective("other").unwrap();
    let healed = project.store.objective(objective.id.as_str()).unwrap();
    assert_eq!(healed.thread_ids, [thread.id]);
    assert_eq!(project.store.objective(other.id.as_str()).unwrap().thread_ids, []);
}

#[test]
fn repeated_init_writes_nothing() {
    let project = Project::new();
    let before = tree(project.dir.path());
    let stamp = |path: &str| fs::metadata(project.path(path)).unwrap().modified().unwrap();
    let time = stamp(MAIN);
    for _ in 0..3 {
        project.store.init().unwrap();
    }
    assert_eq!(tree(project.dir.path()), before);
    assert_eq!(stamp(MAIN), time);
}

#[test]
fn restores_lost_links_from_the_history() {
    let project = Project::new();
    let objective = project.objective();
    let parent = project.spawn(&objective, "parent");
    let spawn = SpawnRequest {
        parent: Some(parent.id.to_string()),
        ..SpawnRequest::new("child", objective.id.as_str())
    };
    let child = project.store.spawn_thread(&spawn).unwrap().thread;
    project.store.add_reference(&reference(&child, parent.id.as_str())).unwrap();
    project.store.add_reference(&reference(&child, "thread-none")).unwrap();
    let before = project.store.load_relations().unwrap().links;
    for lost in [vec![&parent], vec![&child], vec![&parent, &child]] {
        let mut value: steno_model::json::Value =
            serde_json::from_str(&project.text(MAIN)).unwrap();
        for thread in lost {
            value["relations"].as_object_mut().unwrap().shift_remove(thread.id.as_str());
        }
        fs::write(project.path(MAIN), value.to_string()).unwrap();
        project.store.create_objective("next").unwrap();
        assert_eq!(project.store.load_relations().unwrap().links, before);
    }
}
