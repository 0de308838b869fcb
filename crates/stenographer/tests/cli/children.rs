//! Child processes of `steno exec`, `steno acp` and `steno run`: they end with steno, keep the original limits, and
//! steno dies from the signal that ended them.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::harness::Home;

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "it never came: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A program with a child process that ignores the end of its input; writes the ids of both to `pids`.
const FAMILY: &str = "sh -c 'trap \"\" HUP; echo $$ >> pids; while :; do sleep 0.05; done' & \
    echo $$ >> pids; while :; do sleep 0.05; done";

/// Starts a command in its own process group, like a shell, and waits for the ids of the program and its child.
fn start(home: &Home, mut command: Command) -> (Child, Vec<Pid>) {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let steno = command.spawn().unwrap();
    let pids = || fs::read_to_string(home.path().join("pids")).unwrap_or_default();
    wait_until("the ids", || pids().lines().count() == 2);
    let pids = pids();
    (steno, pids.lines().map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()).collect())
}

/// Returns whether a process exists and is not a zombie.
pub(crate) fn is_alive(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    match stat {
        Ok(stat) => !stat.rsplit(')').next().unwrap_or_default().trim().starts_with('Z'),
        Err(_) => test_kill_process(pid).is_ok() && !fs::exists("/proc/self").unwrap_or(false),
    }
}

#[test]
fn killed_exec_acp_and_run_leave_no_orphans() {
    for (words, signal) in [
        (["exec", "--"].as_slice(), Signal::KILL),
        (&["exec", "--"], Signal::TERM),
        (&["acp", "--"], Signal::KILL),
        (&["acp", "--"], Signal::TERM),
    ] {
        let home = Home::new();
        let mut args = words.to_vec();
        args.extend(["sh", "-c", FAMILY]);
        let (mut steno, pids) = start(&home, home.command(&args));
        kill_process(Pid::from_raw(steno.id() as i32).unwrap(), signal).unwrap();
        steno.wait().unwrap();
        for pid in pids {
            wait_until("the end of an orphan", || !is_alive(pid));
        }
    }
    let home = Home::new();
    home.file("family.sh", FAMILY);
    let (mut steno, pids) = start(&home, home.command(&["run", "--agent", "sh family.sh", "x"]));
    kill_process(Pid::from_raw(steno.id() as i32).unwrap(), Signal::KILL).unwrap();
    steno.wait().unwrap();
    for pid in pids {
        wait_until("the end of an orphan", || !is_alive(pid));
    }
}

#[test]
fn background_processes_of_a_program_survive_its_end() {
    for words in [["exec", "--"], ["acp", "--"]] {
        let home = Home::new();
        let script = "(exec </dev/null >/dev/null 2>&1; echo go >> left; while :; do sleep 0.05; done) & \
            echo $! >> pids; while [ ! -e left ]; do sleep 0.05; done";
        let mut steno = home.command(&[words[0], words[1], "sh", "-c", script]);
        let status =
            steno.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert_eq!(status.unwrap().code(), Some(0));
        let pid = fs::read_to_string(home.path().join("pids")).unwrap().trim().parse().unwrap();
        let pid = Pid::from_raw(pid).unwrap();
        assert!(is_alive(pid), "{words:?}");
        kill_process(pid, Signal::KILL).unwrap();
    }
}

#[test]
fn a_program_that_a_signal_ends_ends_us_by_the_same() {
    let home = Home::new();
    for signal in [Signal::SEGV, Signal::ABORT, Signal::TERM, Signal::KILL, Signal::USR1] {
        let script = format!("kill -{} $$", signal.as_raw());
        let mut steno = home.command(&["exec", "--", "sh", "-c", &script]);
        let status = steno.stdin(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status}");
        assert!(!status.core_dumped());
    }
    home.file("crash.sh", "read -r line; kill -SEGV $$");
    let mut steno = home.command(&["run", "--agent", "sh crash.sh", "x"]);
    let ran = steno.stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.signal(), Some(Signal::SEGV.as_raw()), "{stderr}");
    assert!(stderr.contains("error: the agent ended before it answered initialize"), "{stderr}");
}

#[test]
fn the_limit_of_open_files_is_raised_but_not_for_programs() {
    let home = Home::new();
    let steno = env!("CARGO_BIN_EXE_steno");
    // The program prints its own limit, and that of its parent.
    let look = "ulimit -Sn; grep 'open files' /proc/$PPID/limits | awk '{print $4, $5}'";
    for command in ["exec", "acp"] {
        let script = format!("ulimit -Sn 256; exec {steno} {command} -- sh -c \"$LOOK\"");
        let mut shell = home.program("sh", &["-c", &script]);
        shell.env("LOOK", look);
        let ran = home.finish(shell, b"");
        let lines: Vec<&str> = ran.stdout.lines().collect();
        assert_eq!(lines[0], "256", "{ran}");
        let (soft, hard) = lines[1].split_once(' ').unwrap();
        // `acp` opens few files, so it keeps its limit.
        assert_eq!(soft == hard, command == "exec", "{ran}");
    }
}
