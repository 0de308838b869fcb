//! `steno acp` killed in a flood of messages: every message that either side received is in the vault.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const KILLS: u64 = 50;

/// Writes endless lines of one session, of many sizes.
fn flood(mut input: ChildStdin, seed: u64) {
    let mut dice = Dice(seed);
    for n in 0_u64.. {
        let text = "word ".repeat(dice.below(400) as usize);
        let line = format!(
            "{{\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s\",\"n\":{n},\"text\":\"{text}\"}}}}\n"
        );
        if input.write_all(line.as_bytes()).is_err() {
            return;
        }
    }
}

/// Reads everything and counts it.
fn read_all(mut output: ChildStdout, count: &AtomicUsize) -> Vec<u8> {
    let (mut heard, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    while let Ok(read @ 1..) = output.read(&mut buffer) {
        heard.extend_from_slice(&buffer[..read]);
        count.store(heard.len(), Ordering::Release);
    }
    heard
}

#[test]
fn what_both_sides_got_before_a_kill_is_in_the_vault() {
    let mut dice = Dice(0x5eed_0acb);
    for kill in 0..KILLS {
        let home = Home::new();
        let mut steno = home.command(&["acp", "--", "cat"]);
        steno.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut steno = steno.spawn().unwrap();
        let (input, output) = (steno.stdin.take().unwrap(), steno.stdout.take().unwrap());
        let feeder = std::thread::spawn(move || flood(input, kill + 1));
        let count = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&count);
        let reader = std::thread::spawn(move || read_all(output, &counted));
        let enough = 1 + dice.below(3_000_000) as usize;
        wait_until(|| count.load(Ordering::Acquire) >= enough);
        steno.kill().unwrap();
        steno.wait().unwrap();
        feeder.join().unwrap();
        let heard = reader.join().unwrap();
        let heard = whole_lines(&heard);
        // The agent echoes only what it has received.
        for side in [AcpSide::Client, AcpSide::Agent] {
            let kept = kept(&home, side);
            assert!(
                kept.starts_with(heard),
                "kill {kill}, {side:?}: {} bytes of {} are kept",
                kept.len(),
                heard.len()
            );
        }
        home.steno(&["verify"]).ok();
    }
}
