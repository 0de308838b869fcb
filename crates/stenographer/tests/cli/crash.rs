//! Killed recorders: every acknowledged entry exists afterwards, once and in order.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::time::Duration;

use steno_model::{SessionId, Transcript};
use steno_store::transcript::ReadTranscript;
use steno_vault::SessionDir;

use crate::harness::{Dice, Home};

const KILLS: u64 = 500;
const KILLS_PER_SESSION: u64 = 25;

#[test]
fn killed_at_any_instant_nothing_acknowledged_is_lost() {
    let home = Home::new();
    let mut dice = Dice(0x5eed_0001);
    let mut acknowledged = 0;
    for session in 0..KILLS / KILLS_PER_SESSION {
        let id: SessionId = format!("s{session}").parse().unwrap();
        let dir = home.vault().session_dir(&"test".parse().unwrap(), &id);
        let mut lives = Vec::new();
        for life in 0..KILLS_PER_SESSION {
            let child = recorder(&home, &id);
            let acks = killed_after(child, life, Duration::from_micros(dice.below(25_000)));
            acknowledged += acks;
            lives.push(acks);
            check(&dir, &lives);
        }
        let last = home.steno_with(&["record", "--session", id.as_str(), "--agent", "test"], b"");
        assert_eq!(last.code, 0, "{last}");
        check(&dir, &lives);
        let report = dir.verify().unwrap();
        assert_eq!(report.damage, [], "session {id}");
    }
    assert!(
        acknowledged > KILLS,
        "the recorders were killed before they did anything: {acknowledged}"
    );
}

fn recorder(home: &Home, id: &SessionId) -> Child {
    home.command(&["record", "--agent", "test", "--session", id.as_str(), "--ack"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Feeds a recorder until it is killed. Returns the number of acknowledged entries.
fn killed_after(mut child: Child, life: u64, delay: Duration) -> u64 {
    let mut stdin = child.stdin.take().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let feeder = std::thread::spawn(move || {
        for line in 0.. {
            let content = format!("{life} {line} {}", "x".repeat((line % 97) * 20));
            let entry = format!("{{\"role\":\"user\",\"content\":\"{content}\"}}\n");
            if stdin.write_all(entry.as_bytes()).is_err() {
                return;
            }
        }
    });
    let acks = std::thread::spawn(move || {
        // A killed process may leave an incomplete number; only whole lines are acknowledgements.
        let lines = stdout.split(b'\n').map_while(Result::ok);
        lines.filter(|line| line.iter().all(u8::is_ascii_digit) && !line.is_empty()).count() as u64
    });
    std::thread::sleep(Duration::from_millis(4) + delay);
    child.kill().unwrap();
    child.wait().unwrap();
    feeder.join().unwrap();
    acks.join().unwrap()
}

/// Checks that the entries of each recorder exist without a gap, at least as many as it acknowledged.
fn check(dir: &SessionDir, lives: &[u64]) {
    if !dir.exists() {
        assert!(lives.iter().all(|acks| *acks == 0));
        return;
    }
    let transcript = dir.read_transcript().unwrap();
    assert_eq!(transcript.problems, []);
    let mut counts = vec![0; lives.len()];
    let mut current = 0;
    for (index, entry) in transcript.entries.iter().enumerate() {
        assert_eq!(entry.sequence, index as u64);
        let mut words = entry.content.split(' ');
        let mut number = || words.next().unwrap().parse::<usize>().unwrap();
        let (life, line) = (number(), number());
        assert!(life >= current, "entries of an earlier life after a later one's");
        current = life;
        assert_eq!(line, counts[life], "life {life}: a line is missing or there twice");
        assert_eq!(words.next().unwrap().len(), (line % 97) * 20, "a torn line");
        counts[life] += 1;
    }
    for (life, acks) in lives.iter().enumerate() {
        // The last acknowledgement may be cut off in the pipe, so there may be more entries, never fewer.
        assert!(
            counts[life] as u64 >= *acks,
            "life {life}: {acks} acknowledged, {} kept",
            counts[life]
        );
    }
}

#[test]
fn eight_processes_record_one_session() {
    let home = Home::new();
    let id: SessionId = "shared".parse().unwrap();
    let children: Vec<Child> = (0..8).map(|_| recorder(&home, &id)).collect();
    let workers: Vec<_> = children
        .into_iter()
        .enumerate()
        .map(|(process, child)| std::thread::spawn(move || record_thousand(child, process)))
        .collect();
    let mut sequences = BTreeSet::new();
    for worker in workers {
        for sequence in worker.join().unwrap() {
            assert!(sequences.insert(sequence), "{sequence} was acknowledged twice");
        }
    }
    assert_eq!(sequences, (0..8000).collect());
    let dir = home.vault().session_dir(&"test".parse().unwrap(), &id);
    let transcript = dir.read_transcript().unwrap();
    assert_eq!((transcript.entries.len(), transcript.problems.len()), (8000, 0));
    each_process_in_order(&transcript);
    assert_eq!(dir.verify().unwrap().damage, []);
}

fn record_thousand(mut child: Child, process: usize) -> Vec<u64> {
    let mut stdin = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || {
        for line in 0..1000 {
            writeln!(stdin, "{{\"role\":\"user\",\"content\":\"{process} {line}\"}}").unwrap();
        }
    });
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let acks = stdout.lines().map(|line| line.unwrap().parse().unwrap()).collect();
    feeder.join().unwrap();
    assert!(child.wait().unwrap().success());
    acks
}

fn each_process_in_order(transcript: &Transcript) {
    let mut next = [0; 8];
    for entry in &transcript.entries {
        let (process, line) = entry.content.split_once(' ').unwrap();
        let process: usize = process.parse().unwrap();
        assert_eq!(line, next[process].to_string());
        next[process] += 1;
    }
    assert_eq!(next, [1000; 8]);
}
