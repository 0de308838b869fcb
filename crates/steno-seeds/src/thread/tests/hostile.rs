//! Symlinks in threads, and paths that lead outside.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::operations::code;
use super::*;
use steno_model::session::{Session, SessionId, Transcript};

#[test]
fn nothing_outside_of_a_thread_is_copied() {
    let project = Project::new();
    let objective = project.objective();
    let (a, b) = (project.spawn(&objective, "a"), project.spawn(&objective, "b"));
    fs::write(project.path("secret.txt"), "secret").unwrap();
    let secret = project.path("secret.txt").display().to_string();
    project.asset(&a, "design/api.md", "api");
    let folder = project.path(&a.storage_path);
    symlink(project.dir.path(), folder.join("out")).unwrap();
    symlink(project.path("secret.txt"), folder.join("plan.md")).unwrap();
    let scope = ["../../../secret.txt", &secret, "out/secret.txt", "plan.md", "missing", "design"];
    let scope: Vec<_> = scope.map(str::to_owned).to_vec();
    let asked = ReferenceRequest { scope: Some(scope.clone()), ..reference(&b, a.id.as_str()) };
    let made = project.store.add_reference(&asked).unwrap();
    let expected: Vec<_> = scope[..4].iter().cloned().map(ThreadWarning::LeadsOut).collect();
    assert_eq!(made.warnings, expected);
    assert_eq!(made.copied.len(), 1);
    let spawn = SpawnRequest {
        parent: Some(a.id.to_string()),
        inherit: Inheritance::Partial,
        scope,
        ..SpawnRequest::new("child", objective.id.as_str())
    };
    let spawned = project.store.spawn_thread(&spawn).unwrap();
    assert_eq!(spawned.warnings, expected);
    project.store.add_reference(&reference(&spawned.thread, a.id.as_str())).unwrap();
    let merged = project.store.merge_threads(&merge(&[&a], &b)).unwrap();
    assert_eq!((merged.files.len(), merged.warnings.len()), (1, 2));
    let threads = project.path(".leslie/threads");
    let found: Vec<_> =
        tree(&threads).into_iter().filter(|path| path.ends_with("plan.md")).collect();
    assert_eq!(found, [format!("{}/plan.md", a.id)]);
    let texts = tree(&threads).into_iter().filter(|path| path.contains("secret"));
    assert_eq!(texts.count(), 0);
}

#[test]
fn rejects_a_thread_folder_that_is_a_link() {
    let project = Project::new();
    let objective = project.objective();
    let (a, b) = (project.spawn(&objective, "a"), project.spawn(&objective, "b"));
    let folder = project.path(&a.storage_path);
    fs::remove_dir_all(&folder).unwrap();
    fs::create_dir(project.path("elsewhere")).unwrap();
    symlink(project.path("elsewhere"), &folder).unwrap();
    project.asset(&b, "plan.md", "b");
    assert_eq!(code(project.store.merge_threads(&merge(&[&b], &a))), "T202");
    assert_eq!(code(project.store.add_reference(&reference(&b, a.id.as_str()))), "T202");
    assert_eq!(tree(&project.path("elsewhere")), [""; 0]);
}

#[test]
fn links_in_a_thread_are_moved_out_of_the_way_and_not_followed() {
    let project = Project::new();
    let objective = project.objective();
    let (a, b) = (project.spawn(&objective, "a"), project.spawn(&objective, "b"));
    project.asset(&a, "design/api.md", "api");
    let (outside, folder) = (project.path("outside"), project.path(&b.storage_path));
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("injections.log"), "secret").unwrap();
    for name in ["context", ".meta"] {
        fs::remove_dir_all(folder.join(name)).unwrap();
    }
    for name in ["context", ".meta", "design"] {
        symlink(&outside, folder.join(name)).unwrap();
    }
    let transcript = Transcript::new(Session::new(SessionId::for_native("x", "y"), "x"));
    assert_eq!(code(project.store.write_transcript(b.id.as_str(), &transcript)), "T202");
    project.store.add_reference(&reference(&b, a.id.as_str())).unwrap();
    project.store.merge_threads(&merge(&[&a], &b)).unwrap();
    let inject = ThreadInjection {
        thread: b.id.to_string(),
        kind: "note".to_owned(),
        content: "hi".to_owned(),
        operator: Operator::User,
    };
    project.store.inject_text(&inject).unwrap();
    assert_eq!(tree(&outside), ["injections.log"]);
    assert_eq!(fs::read_to_string(outside.join("injections.log")).unwrap(), "secret");
    for name in ["context~2", ".meta~2", "design~2"] {
        assert!(folder.join(name).is_symlink(), "{name}");
    }
    assert_eq!(fs::read_to_string(folder.join("design/api.md")).unwrap(), "api");
    assert_eq!(project.store.load_relations().unwrap().operations.len(), 5);
}

#[test]
fn copies_keep_their_mode_even_where_it_forbids_writing() {
    let project = Project::new();
    let objective = project.objective();
    let threads = ["a", "b", "target"].map(|name| project.spawn(&objective, name));
    let [a, b, target] = &threads;
    for thread in [a, b] {
        project.asset(thread, "design/run.sh", "#!/bin/sh");
        let path = project.path(&thread.storage_path).join("design/run.sh");
        fs::set_permissions(path, fs::Permissions::from_mode(0o555)).unwrap();
    }
    project.store.merge_threads(&merge(&[a, b], target)).unwrap();
    project.store.merge_threads(&merge(&[a, b], target)).unwrap();
    let path = project.path(&target.storage_path).join("design/run.sh");
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o555);
}
