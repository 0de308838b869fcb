//! Killed commands on threads: the stores open again and agree.

use std::process::Stdio;
use std::time::Duration;

use super::*;
use crate::harness::Dice;

const KILLS: u64 = 120;

/// Runs a command and kills it after a delay. Returns whether it was still running.
fn killed_after(project: &Project, args: &[&str], delay: Duration) -> bool {
    let mut command = project.home.command(args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    std::thread::sleep(delay);
    child.kill().unwrap();
    !child.wait().unwrap().success()
}

/// Checks that the stores agree, and that every thread has its folder.
fn assert_agree(project: &Project) -> u64 {
    let lines = |args: &[&str]| -> Vec<Value> {
        let text = project.home.finish(project.home.command(args), b"").ok();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let threads = lines(&["status", "--json"]);
    for objective in lines(&["objective", "list", "--json"]) {
        let own = threads.iter().filter(|thread| thread["objective"] == objective["id"]);
        let mut ids: Vec<_> = own.map(|thread| thread["id"].as_str().unwrap()).collect();
        ids.sort_unstable();
        assert_eq!(objective["thread_ids"], json!(ids));
    }
    for thread in &threads {
        let folder = project.home.path().join(thread["storage_path"].as_str().unwrap());
        assert!(folder.join("context/inherited").is_dir(), "{}", folder.display());
    }
    threads.len() as u64
}

#[test]
fn killed_at_any_instant_the_stores_agree() {
    let project = Project::new();
    let (first, second) = (project.first.as_str(), project.second.as_str());
    project.asset(first, "plan.md", "first");
    project.asset(second, "plan.md", "second");
    let commands: [&[&str]; 8] = [
        &["spawn", "x", "--parent", first, "--inherit", "--ref", second],
        &["merge", first, second, "--into", "latest"],
        &["init", "--yes"],
        &["inject", first, "hello"],
        &["transfer", first, "request_approval"],
        &["lifecycle", first, "resume"],
        &["reference", "latest", first],
        &["objective", "create", "x"],
    ];
    let mut dice = Dice(0x5eed_0003);
    let (mut killed, mut count) = (0, 2);
    for at in 0..KILLS {
        let args = commands[(at % 8) as usize];
        let delay = Duration::from_micros(1000 + dice.below(15_000));
        killed += u64::from(killed_after(&project, args, delay));
        let now = assert_agree(&project);
        assert!(now == count || now == count + 1, "{count} threads became {now}");
        count = now;
    }
    assert!(killed > KILLS / 4, "most commands ended before they were killed: {killed}");
    assert_eq!(project.text(&format!(".leslie/threads/{first}/plan.md")), "first");
    project.ok(&["spawn", "last", "--objective", &project.objective]);
    let base = fs::read_dir(project.home.path().join(".leslie")).unwrap();
    let left = base.map(|item| item.unwrap().file_name().into_string().unwrap());
    let left: Vec<_> =
        left.filter(|name| name.contains("steno") || name.ends_with(".lock")).collect();
    assert_eq!(left, [""; 0]);
}
