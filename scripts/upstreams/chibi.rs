//! What chibi itself does with the lines of a context: `resave IN OUT` reads every `context.jsonl` below IN with chibi's own
//! type and prints it again below OUT. A line that it cannot read ends the program.

#![allow(dead_code)]

mod context;

use std::{env, fs, path::Path};

fn main() {
    let args: Vec<String> = env::args().collect();
    let (source, target) = (Path::new(&args[1]).join("contexts"), Path::new(&args[2]).join("contexts"));
    for folder in fs::read_dir(source).expect("contexts") {
        let folder = folder.expect("a folder");
        let text = fs::read_to_string(folder.path().join("context.jsonl")).expect("a context");
        let mut out = String::new();
        for line in text.lines() {
            let entry: context::TranscriptEntry = serde_json::from_str(line).expect("an entry");
            out += &serde_json::to_string(&entry).expect("a line");
            out.push('\n');
        }
        let target = target.join(folder.file_name());
        fs::create_dir_all(&target).expect("a folder");
        fs::write(target.join("context.jsonl"), out).expect("a file");
    }
}
