//! Kills processes after each step of a change. The next process finds the whole change or none of it.

use std::cell::Cell;
use std::process::{Command, Stdio};

use super::*;
use crate::thread::guide::LeslieGuide;
use steno_model::session::{Session, SessionId, Transcript};
use steno_model::{Entry, EntryKind, Role, step};

/// Environment variables for the child process: the work, the project, and the step after which it is killed.
const ORDER: [&str; 3] = ["STENO_TEST_WORK", "STENO_TEST_FOLDER", "STENO_TEST_STEPS"];

/// The child process: does the work and kills itself after a step.
#[test]
#[ignore = "runs in processes that the other tests start"]
fn worker() {
    let [work, folder, steps] = ORDER.map(|name| std::env::var(name).unwrap());
    let left = Cell::new(steps.parse::<u32>().unwrap());
    let store = open_now(Path::new(&folder));
    let watcher = move || {
        left.set(left.get() - 1);
        if left.get() == 0 {
            let _ = Command::new("sh").args(["-c", "kill -KILL $PPID"]).status();
            unreachable!("killed");
        }
    };
    step::watch(watcher, || perform(&work, &store));
}

/// Performs the work of this name on a project with three threads.
fn perform(work: &str, store: &ThreadStore) {
    let threads = store.list_threads(None).unwrap();
    let objective = || store.list_objectives().unwrap()[0].id.to_string();
    let first = || threads[0].id.to_string();
    let (reason, operator) = (None, Operator::User);
    match work {
        "init" => {
            store.init().unwrap();
            LeslieGuide::built_in().put_into(&store.root().join("AGENTS.md"), None).unwrap();
        }
        "objective" => drop(store.create_objective("another").unwrap()),
        "spawn" => {
            let references = vec![first()];
            let (parent, inherit) = (Some(first()), Inheritance::Full);
            let spawn = SpawnRequest::new("child", objective());
            drop(
                store.spawn_thread(&SpawnRequest { parent, inherit, references, ..spawn }).unwrap(),
            );
        }
        "merge" => {
            drop(store.merge_threads(&merge(&[&threads[0], &threads[1]], &threads[2])).unwrap())
        }
        "reference" => drop(store.add_reference(&reference(&threads[1], &first())).unwrap()),
        "lifecycle" => {
            drop(store.change_status(&lifecycle(&threads[0], LifecycleAction::Done)).unwrap())
        }
        "transfer" => {
            let (direction, executor) = (TransferDirection::RequestApproval, None);
            let (thread, scope) = (first(), vec!["design".to_owned()]);
            let transfer = ThreadTransfer { thread, direction, scope, reason, executor, operator };
            drop(store.transfer_thread(&transfer).unwrap());
        }
        "inject" => {
            let (kind, content) = ("note".to_owned(), "hi".to_owned());
            store
                .inject_text(&ThreadInjection { thread: first(), kind, content, operator })
                .unwrap();
        }
        "transcript" => drop(store.write_transcript(&first(), &transcript()).unwrap()),
        "read" => drop(store.load_relations().unwrap()),
        other => panic!("{other}"),
    }
}

fn transcript() -> Transcript {
    let mut transcript = Transcript::new(Session::new(SessionId::for_native("x", "y"), "x"));
    let mut entry = Entry::new(Role::User, EntryKind::Text, "hello");
    entry.created_at = Some(NOW.parse().unwrap());
    transcript.push(entry);
    transcript
}

/// Runs `work` in a child process that is killed after a number of steps. Returns whether there were that many.
fn killed(work: &str, folder: &Path, steps: u32) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "thread::tests::crash::worker", "--ignored"]);
    let order = [work.into(), folder.as_os_str().to_owned(), steps.to_string().into()];
    command.envs(ORDER.into_iter().zip(order)).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().unwrap();
    assert!(status.success() || status.code().is_none(), "{work} failed: {status}");
    !status.success()
}

/// A project with three threads and their assets.
fn prepared() -> Project {
    let project = Project::new();
    let objective = project.objective();
    let threads = ["a", "b", "target"].map(|name| project.spawn(&objective, name));
    let [a, b, target] = &threads;
    project.asset(a, "plan.md", "plan of a");
    project.asset(a, "design/api.md", "api of a");
    project.asset(b, "plan.md", "plan of b");
    project.asset(target, "plan.md", "plan of the target");
    project.asset(target, "design", "a file where a folder comes");
    project
}

/// Kills `work` after each of its steps, and also the next process during its recovery. Then calls `check` with each
/// project, which returns whether the work is done.
fn for_each_step(work: &str, project: &Project, check: impl Fn(&Path) -> bool) {
    let mut done = Vec::new();
    for steps in 1.. {
        let copy = tempfile::tempdir().unwrap();
        copy_folder(project.dir.path(), copy.path());
        let was_killed = killed(work, copy.path(), steps);
        killed("read", copy.path(), 1);
        done.push(check(copy.path()));
        if !was_killed {
            break;
        }
    }
    assert!(done.is_sorted() && !done[0] && done[done.len() - 1], "{work}: {done:?}");
    assert!(done.len() > 3, "{work}: {} steps", done.len());
}

/// Copies a folder.
fn copy_folder(from: &Path, to: &Path) {
    for item in fs::read_dir(from).unwrap() {
        let path = item.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            fs::create_dir(&target).unwrap();
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// Opens the store as another process would.
fn open_now(root: &Path) -> ThreadStore {
    ThreadStore::new(root, Clock::system(), IdSource::random())
}

/// Opens a project after a crash, reads it, changes it, and checks its consistency.
fn opened(root: &Path) -> ThreadRelations {
    let store = open_now(root);
    let relations = store.load_relations().unwrap();
    assert_eq!(store.problems().unwrap(), []);
    assert_agree(&store);
    store.init().unwrap();
    LeslieGuide::built_in().put_into(&root.join("AGENTS.md"), None).unwrap();
    let objective = store.create_objective("next").unwrap();
    let next =
        store.spawn_thread(&SpawnRequest::new("next", objective.id.as_str())).unwrap().thread;
    store.write_transcript(next.id.as_str(), &transcript()).unwrap();
    assert_agree(&store);
    let is_left = |path: &String| path.contains(".steno") || path.contains(".lock");
    let left: Vec<_> = tree(root).into_iter().filter(is_left).collect();
    assert_eq!(left, [""; 0]);
    relations
}

fn assert_agree(store: &ThreadStore) {
    let relations = store.load_relations().unwrap();
    for objective in store.list_objectives().unwrap() {
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

fn did(relations: &ThreadRelations, command: &str) -> bool {
    relations.operations.iter().rev().any(|operation| operation.command == command)
}

#[test]
fn init_killed_at_any_step_is_made_good() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("AGENTS.md"), "mine\n").unwrap();
    let project = Project { store: open(dir.path()), dir };
    for_each_step("init", &project, |root| {
        let guide = fs::read_to_string(root.join("AGENTS.md")).unwrap();
        let has_guide = guide.ends_with("</leslie_system_guide>\n");
        assert!(guide == "mine\n" || has_guide && guide.starts_with("mine\n\n<leslie"), "{guide}");
        assert_eq!(opened(root).threads.len(), 0);
        let again = fs::read_to_string(root.join("AGENTS.md")).unwrap();
        assert_eq!(again.matches("<leslie_system_guide").count(), 1);
        has_guide
    });
}

#[test]
fn spawn_killed_at_any_step_is_whole_or_nothing() {
    let project = prepared();
    for_each_step("spawn", &project, |root| {
        let relations = opened(root);
        let spawned = relations.threads.values().find(|thread| thread.title == "child");
        assert_eq!(relations.operations.len(), if spawned.is_some() { 5 } else { 3 });
        let Some(thread) = spawned else {
            assert_eq!(relations.threads.len(), 3);
            return false;
        };
        let copy = format!("context/inherited/{}", relations.threads[0].id);
        for path in ["plan.md", "design/api.md", &format!("{copy}/plan.md")] {
            assert!(root.join(&thread.storage_path).join(path).is_file(), "{path}");
        }
        true
    });
}

#[test]
fn merge_killed_at_any_step_loses_nothing() {
    let project = prepared();
    let target = project.store.list_threads(None).unwrap()[2].storage_path.clone();
    for_each_step("merge", &project, |root| {
        let is_merged = did(&opened(root), "merge");
        let text = |path: &str| fs::read_to_string(root.join(&target).join(path));
        let expected = if is_merged {
            ["plan of b", "plan of the target", "a file where a folder comes", "api of a"]
        } else {
            ["plan of the target", "", "", ""]
        };
        let places =
            ["plan.md", ".meta/replaced/plan.md", ".meta/replaced/design", "design/api.md"];
        assert_eq!(places.map(|path| text(path).unwrap_or_default()), expected);
        is_merged
    });
}

#[test]
fn references_and_injections_killed_at_any_step_are_recorded_with_their_files() {
    let project = prepared();
    let threads = project.store.list_threads(None).unwrap();
    let copy = format!("{}/context/inherited/{}", threads[1].storage_path, threads[0].id);
    for_each_step("reference", &project, |root| {
        let relations = opened(root);
        let is_linked = relations.links[&threads[1].id].references_to == [threads[0].id.clone()];
        assert_eq!(is_linked, did(&relations, "reference"));
        assert_eq!(is_linked, root.join(&copy).join("design/api.md").exists());
        is_linked
    });
    let log = Path::new(&threads[0].storage_path).join(".meta/injections.log");
    for_each_step("inject", &project, |root| {
        let is_told = did(&opened(root), "inject");
        assert_eq!(is_told, root.join(&log).exists());
        is_told
    });
}

#[test]
fn changes_of_state_killed_at_any_step_are_whole_or_nothing() {
    let project = prepared();
    for (work, after) in
        [("lifecycle", ThreadStatus::Completed), ("transfer", ThreadStatus::WaitingHuman)]
    {
        for_each_step(work, &project, |root| {
            let relations = opened(root);
            let status = relations.threads[0].status;
            assert_eq!(status, if did(&relations, work) { after } else { ThreadStatus::Active });
            status == after
        });
    }
    for_each_step("objective", &project, |root| {
        let objectives = open_now(root).list_objectives().unwrap();
        opened(root);
        let is_made = objectives.len() == 2;
        let logs = fs::read_dir(root.join(".leslie/logs")).unwrap().count();
        assert_eq!(logs, objectives.len() + 1, "each has a log, and so has the next one");
        is_made
    });
}

#[test]
fn a_transcript_killed_at_any_step_is_whole_or_nothing() {
    let project = prepared();
    let folder = project.store.transcripts_folder(&project.store.list_threads(None).unwrap()[0].id);
    let folder = folder.strip_prefix(project.dir.path()).unwrap().to_owned();
    for_each_step("transcript", &project, |root| {
        let is_written = tree(&root.join(&folder)).iter().any(|name| name.ends_with(".txt"));
        perform("transcript", &open_now(root));
        let names = tree(&root.join(&folder));
        opened(root);
        assert_eq!(names, ["20260222-1500-hello.txt"]);
        let text = fs::read_to_string(root.join(&folder).join(&names[0])).unwrap();
        assert!(text.ends_with("</user_query>\n"), "{text}");
        is_written
    });
}

#[test]
fn threads_of_many_writers_are_all_recorded() {
    let project = Project::new();
    let objective = project.objective();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let store = open_now(project.dir.path());
            let objective = &objective;
            scope.spawn(move || {
                for _ in 0..5 {
                    store.spawn_thread(&SpawnRequest::new("t", objective.id.as_str())).unwrap();
                }
            });
        }
    });
    assert_eq!(project.store.list_threads(None).unwrap().len(), 20);
    assert_agree(&project.store);
}
