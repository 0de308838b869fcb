//! `steno man`: prints the manual page of the program, or writes one page per command.

use std::io::{self, Write};
use std::path::PathBuf;

use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::command_pages::{COMMAND_GROUPS, find_page};
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::ui::Ui;

/// Shows a manual page that it reads from standard input.
const MAN_READER: &str = "man -l -";

/// Print the manual page, or write one page per command.
///
/// `steno man --dir DIR` writes `steno.1`, `steno-list.1` and so on, and prints their paths. Put them into a folder
/// `man1` below a folder of `MANPATH`, such as `~/.local/share/man/man1`; then `man steno-list` shows a page.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write one page per command to this folder, which is created if needed.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    command: clap::Command,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let Some(dir) = args.dir.as_ref().map(|dir| env.cwd.join(dir)) else {
        // A terminal gets the page as `man` shows it.
        ui.start_pager(Some(MAN_READER));
        ui.out().write_all(&render_page(&command)?)?;
        return Ok(CommandExit::Done);
    };
    std::fs::create_dir_all(&dir).map_err(|error| {
        let error =
            CommandError::user(format!("could not create folder {}: {error}", dir.display()));
        error.hint("give a folder that can be written")
    })?;
    for page in all_commands(command) {
        let name = page.get_display_name().unwrap_or_else(|| page.get_name());
        let path = dir.join(format!("{name}.1"));
        std::fs::write(&path, render_page(&page)?).map_err(|error| {
            CommandError::user(format!("could not write {}: {error}", path.display()))
        })?;
        ui.path_line(&path)?;
    }
    Ok(CommandExit::Done)
}

/// Returns a command and all visible commands below it.
fn all_commands(command: clap::Command) -> Vec<clap::Command> {
    let visible = command.get_subcommands().filter(|below| !below.is_hide_set());
    let below: Vec<_> = visible.cloned().flat_map(all_commands).collect();
    [vec![command], below].concat()
}

/// Renders the manual page of one command.
fn render_page(command: &clap::Command) -> io::Result<Vec<u8>> {
    let name = command.get_name().to_owned();
    let man = Man::new(command.clone()).source(concat!("steno ", env!("CARGO_PKG_VERSION")));
    let man = man.manual("Steno");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if name == "steno" {
        write_command_groups(&mut page, command)?;
    } else if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(described) = find_page(&name) {
        let lines = described.examples.map(str::to_owned);
        write_section(&mut page, "EXAMPLES", &lines)?;
    }
    let exits = "0 done, 1 nothing found or bad input, 2 wrong command line".to_owned();
    write_section(&mut page, "EXIT STATUS", &[exits])?;
    Ok(page)
}

/// Writes the commands of the program by group.
fn write_command_groups(page: &mut impl Write, command: &clap::Command) -> io::Result<()> {
    for group in COMMAND_GROUPS {
        let line = |name: &str| {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            format!("steno-{name}(1): {}", about.map(ToString::to_string).unwrap_or_default())
        };
        let lines: Vec<String> = group.pages.iter().map(|page| line(page.name)).collect();
        write_section(page, &group.title.to_uppercase(), &lines)?;
    }
    Ok(())
}

/// Writes a section with one line per item.
fn write_section(page: &mut impl Write, title: &str, lines: &[String]) -> io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    for (at, line) in lines.iter().enumerate() {
        if at > 0 {
            roff.control("br", []);
        }
        roff.text([roman(line.as_str())]);
    }
    roff.to_writer(page)
}
