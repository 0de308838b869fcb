//! Parses the command line and dispatches to the command.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args as _, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::CompleteEnv;
use steno_acp::child::raise_open_file_limit;

use crate::automatic_sync::AutomaticSyncFlag;
use crate::browser;
use crate::command_pages::{add_help_pages, find_page};
use crate::command_synonyms::suggest_other_name;
use crate::commands;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::store_key;
use crate::team_access::{RemoteFlag, mirror_environment};
use crate::ui::Ui;
use crate::value_completion::{COMPLETION_VARIABLE, add_completers};

/// The court reporter for AI agents.
///
/// Without a command, on a terminal, opens a browser of all recorded sessions.
#[derive(Debug, Parser)]
#[command(name = "steno", version, about, after_help = EXIT_CODES)]
struct CliArgs {
    #[command(flatten)]
    flags: ProgramFlags,
    #[command(subcommand)]
    command: Option<CliCommand>,
}

/// Flags that may be given before the command.
#[derive(Debug, clap::Args)]
struct ProgramFlags {
    /// Print results, warnings and errors only.
    #[arg(long, short, global = true, display_order = 1000)]
    quiet: bool,
    #[command(flatten)]
    sync: AutomaticSyncFlag,
}

const EXIT_CODES: &str = "Run `steno help COMMAND` for details and examples.\nExit codes: 0 done, 1 nothing found or bad input, 2 wrong command line";

#[derive(Debug, Subcommand)]
enum CliCommand {
    Run(commands::run::Args),
    Exec(commands::exec::Args),
    Gateway(commands::gateway::Args),
    Record(commands::record::Args),
    Acp(commands::acp::Args),
    Sync(commands::sync::Args),
    Watch(commands::watch::Args),
    Import(commands::import::Args),
    List(commands::list::Args),
    Search(commands::search::Args),
    Cost(commands::cost::Args),
    Stats(commands::stats::Args),
    Statusline(commands::statusline::Args),
    Show(commands::show::Args),
    Blame(commands::blame::Args),
    Log(commands::log::Args),
    Annotate(commands::annotate::Args),
    Serve(commands::serve::Args),
    Mcp(commands::mcp::Args),
    Diff(commands::diff::Args),
    Export(commands::export::Args),
    Convert(commands::convert::Args),
    Inspect(commands::inspect::Args),
    Secrets(commands::secrets::Args),
    Replay(commands::replay::Args),
    Restore(commands::restore::Args),
    Resume(commands::resume::Args),
    Handoff(commands::handoff::Args),
    Doctor(commands::doctor::Args),
    Verify(commands::verify::Args),
    Reindex(commands::reindex::Args),
    Forget(commands::forget::Args),
    Prune(commands::prune::Args),
    Remote(commands::remote::Args),
    Push(commands::push::Args),
    Pull(commands::pull::Args),
    Load(commands::load::Args),
    Encrypt(commands::encrypt::Args),
    Decrypt(commands::decrypt::Args),
    Cat(commands::cat::Args),
    #[command(flatten)]
    Thread(commands::thread::ThreadCommand),
    Hooks(commands::hooks::Args),
    #[command(hide = true)]
    Hook(commands::hook::Args),
    /// Use the command line of another system.
    #[command(subcommand)]
    As(commands::speak::ForeignCommand),
    Completions(commands::completions::Args),
    Man(commands::man::Args),
    #[command(hide = true)]
    Child(commands::child::Args),
}

/// Returns the whole command line, with its help pages.
fn program_command() -> clap::Command {
    add_help_pages(CliArgs::command())
}

/// Answers a shell that asks for completions. Returns whether it did.
pub(crate) fn complete_values() -> Result<bool, CommandError> {
    let request = CompleteEnv::with_factory(|| add_completers(program_command()));
    let cwd = std::env::current_dir().ok();
    Ok(request.var(COMPLETION_VARIABLE).try_complete(std::env::args_os(), cwd.as_deref())?)
}

/// Parses the command line and runs the command.
pub(crate) fn run_command_line(
    ui: &mut Ui,
    env: &ProcessEnvironment,
) -> Result<CommandExit, CommandError> {
    let args: Vec<OsString> = std::env::args_os().collect();
    let parsed = parse_arguments(args).and_then(|matches| {
        let is_json = prints_json(&matches);
        Ok((CliArgs::from_arg_matches(&matches)?, is_json))
    });
    let (cli, is_json) = match parsed {
        Err(error) if is_hook_call() && error.use_stderr() => return Ok(CommandExit::Done),
        other => other.unwrap_or_else(|error| exit_with_example(&error)),
    };
    ui.set_quiet(cli.flags.quiet);
    if is_json {
        ui.set_json_output();
    }
    if ProcessEnvironment::variable("NO_COLOR").is_some() {
        ui.set_plain();
    }
    let Some(mut command) = cli.command else { return open_browser(ui, env, &cli.flags.sync) };
    if cli.flags.sync.no_sync {
        command.disable_sync();
    }
    if command.reads_much_data() {
        use_small_pages();
    }
    if command.opens_many_files() {
        raise_open_file_limit();
    }
    let is_check = matches!(&command, CliCommand::Cost(args) if args.is_check());
    let exit = command.unlock_store(ui, env).and_then(|()| run_reading(ui, env, command));
    ui.end_pager();
    if is_check {
        // A script must be able to tell a crossed budget from one that was not checked.
        let exit = exit.map_err(|error| CommandError { exit: CommandExit::Usage, ..error })?;
        ui.flush()?;
        let is_complete = ui.adjust_exit(CommandExit::Done) == CommandExit::Done;
        return Ok(if is_complete || exit != CommandExit::Done {
            exit
        } else {
            CommandExit::Usage
        });
    }
    let exit = exit?;
    ui.flush()?;
    Ok(ui.adjust_exit(exit))
}

/// Adds the arguments of a command.
type AddArguments = fn(clap::Command) -> clap::Command;

/// Commands that people or agents run often.
const FREQUENT_COMMANDS: &[(&str, AddArguments)] = &[
    ("hook", commands::hook::Args::augment_args),
    ("statusline", commands::statusline::Args::augment_args),
    ("record", commands::record::Args::augment_args),
    ("list", commands::list::Args::augment_args),
    ("search", commands::search::Args::augment_args),
    ("show", commands::show::Args::augment_args),
    ("cost", commands::cost::Args::augment_args),
    ("blame", commands::blame::Args::augment_args),
];

/// Returns the program with this frequent command only. The arguments of all commands take as long to build as the
/// index takes to open.
fn frequent_command(wanted: &str) -> Option<clap::Command> {
    let (name, add_arguments) = FREQUENT_COMMANDS.iter().find(|(name, _)| *name == wanted)?;
    let program = ProgramFlags::augment_args(clap::Command::new("steno"));
    Some(program.subcommand(add_arguments(clap::Command::new(*name))))
}

/// Parses the command line. For `steno help serch`, returns the error of `steno serch`, which suggests a command.
fn parse_arguments(args: Vec<OsString>) -> clap::error::Result<ArgMatches> {
    let frequent = args.get(1).and_then(|name| frequent_command(name.to_str()?));
    // Help and errors come from the whole program.
    if let Some(Ok(matches)) =
        frequent.map(|command| command.try_get_matches_from(prepare_arguments(args.clone())))
    {
        return Ok(matches);
    }
    let parsed = program_command().try_get_matches_from(prepare_arguments(args.clone()));
    let is_help = args.get(1).is_some_and(|word| word == "help");
    let parsed = match parsed {
        Err(error) if is_help && error.kind() == ErrorKind::InvalidSubcommand => {
            let words = args.into_iter().enumerate().filter(|(at, _)| *at != 1);
            let direct = program_command().try_get_matches_from(words.map(|(_, word)| word));
            Err(direct.err().filter(|other| other.kind() == error.kind()).unwrap_or(error))
        }
        parsed => parsed,
    };
    parsed.map_err(suggest_other_name)
}

/// Prints a help page, or what is wrong with the command line and a line that is right.
fn exit_with_example(error: &clap::Error) -> ! {
    let page = std::env::args_os().skip(1).find_map(|word| find_page(word.to_str()?));
    // A closed output is ignored.
    let _ = error.print();
    if let Some(page) = page.filter(|_| error.use_stderr()) {
        let _ = writeln!(std::io::stderr(), "For example: {}", page.examples[0]);
    }
    std::process::exit(error.exit_code())
}

/// Runs a command; with `--from`, on the mirror of a remote.
fn run_reading(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    mut command: CliCommand,
) -> Result<CommandExit, CommandError> {
    let Some(name) = command.remote().and_then(|flag| flag.from.clone()) else {
        return run_command(ui, env, command);
    };
    command.disable_sync();
    match command {
        CliCommand::Search(args) if commands::search::is_answered_by_database(env, &args)? => {
            commands::search::run(ui, env, &args)
        }
        CliCommand::Cost(args) if commands::cost::is_answered_by_index(env, &args)? => {
            commands::cost::run(ui, env, &args)
        }
        CliCommand::Verify(args) => {
            let exit = commands::verify::verify_remote(ui, env, &name)?;
            let mirror = mirror_environment(ui, env, &name)?;
            let verified = commands::verify::run(ui, &mirror, &args)?;
            Ok(if exit == CommandExit::Done { verified } else { exit })
        }
        command => {
            let mirror = mirror_environment(ui, env, &name)?;
            run_command(ui, &mirror, command)
        }
    }
}

/// Dispatches to the module of the command.
fn run_command(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    command: CliCommand,
) -> Result<CommandExit, CommandError> {
    match command {
        CliCommand::Run(args) => commands::run::run(ui, env, &args),
        CliCommand::Exec(args) => commands::exec::run(ui, env, &args),
        CliCommand::Gateway(args) => commands::gateway::run(ui, env, args),
        CliCommand::Record(args) => commands::record::run(ui, env, args),
        CliCommand::Acp(args) => commands::acp::run(env, &args),
        CliCommand::Sync(args) => commands::sync::run(ui, env, &args),
        CliCommand::Watch(args) => commands::watch::run(ui, env, &args),
        CliCommand::Import(args) => commands::import::run(ui, env, &args),
        CliCommand::List(args) => commands::list::run(ui, env, &args),
        CliCommand::Search(args) => commands::search::run(ui, env, &args),
        CliCommand::Cost(args) => commands::cost::run(ui, env, &args),
        CliCommand::Stats(args) => commands::stats::run(ui, env, &args),
        CliCommand::Statusline(args) => commands::statusline::run(ui, env, &args),
        CliCommand::Show(args) => commands::show::run(ui, env, &args),
        CliCommand::Blame(args) => commands::blame::run(ui, env, &args),
        CliCommand::Log(args) => commands::log::run(ui, env, &args),
        CliCommand::Annotate(args) => commands::annotate::run(ui, env, &args),
        CliCommand::Serve(args) => commands::serve::run(ui, env, &args),
        CliCommand::Mcp(args) => commands::mcp::run(ui, env, &args),
        CliCommand::Diff(args) => commands::diff::run(ui, env, &args),
        CliCommand::Export(args) => commands::export::run(ui, env, &args),
        CliCommand::Convert(args) => commands::convert::run(ui, env, &args),
        CliCommand::Inspect(args) => commands::inspect::run(ui, env, &args),
        CliCommand::Secrets(args) => commands::secrets::run(ui, env, &args),
        CliCommand::Replay(args) => commands::replay::run(ui, env, &args),
        CliCommand::Restore(args) => commands::restore::run(ui, env, &args),
        CliCommand::Resume(args) => commands::resume::run(ui, env, &args),
        CliCommand::Handoff(args) => commands::handoff::run(ui, env, &args),
        CliCommand::Doctor(args) => commands::doctor::run(ui, env, &args),
        CliCommand::Verify(args) => commands::verify::run(ui, env, &args),
        CliCommand::Reindex(args) => commands::reindex::run(ui, env, &args),
        CliCommand::Forget(args) => commands::forget::run(ui, env, &args),
        CliCommand::Prune(args) => commands::prune::run(ui, env, &args),
        CliCommand::Remote(args) => commands::remote::run(ui, env, &args),
        CliCommand::Push(args) => commands::push::run(ui, env, &args),
        CliCommand::Pull(args) => commands::pull::run(ui, env, &args),
        CliCommand::Load(args) => commands::load::run(ui, env, &args),
        CliCommand::Encrypt(args) => commands::encrypt::run(ui, env, &args),
        CliCommand::Decrypt(args) => commands::decrypt::run(ui, env, &args),
        CliCommand::Cat(args) => commands::cat::run(ui, env, &args),
        CliCommand::Thread(command) => commands::thread::run(ui, env, &command),
        CliCommand::Hooks(args) => commands::hooks::run(ui, env, &args),
        CliCommand::Hook(args) => commands::hook::run(env, &args),
        CliCommand::As(command) => commands::speak::run(ui, env, command),
        CliCommand::Child(args) => commands::child::run(&args),
        CliCommand::Completions(args) => commands::completions::run(ui, &args),
        CliCommand::Man(args) => commands::man::run(ui, env, program_command(), &args),
    }
}

impl CliCommand {
    /// Returns whether the command may read gigabytes and starts no other program.
    fn reads_much_data(&self) -> bool {
        use CliCommand::{Cost, Import, Inspect, Reindex, Sync, Watch};
        matches!(self, Sync(_) | Watch(_) | Import(_) | Inspect(_) | Reindex(_) | Cost(_))
    }

    /// Unlocks an encrypted store, for commands that use one. What is shown or recorded beside an agent must not stop it.
    fn unlock_store(&self, ui: &mut Ui, env: &ProcessEnvironment) -> Result<(), CommandError> {
        use CliCommand::{
            Acp, Child, Completions, Convert, Decrypt, Encrypt, Exec, Gateway, Hook, Hooks,
            Inspect, Man, Run, Statusline,
        };
        match self {
            Encrypt(_) | Decrypt(_) | Completions(_) | Man(_) | Child(_) => Ok(()),
            Convert(_) | Inspect(_) => Ok(()),
            // What they start or serve must not wait for a key.
            Acp(_) | Exec(_) | Gateway(_) | Run(_) | Statusline(_) => {
                if let Err(error) = store_key::unlock_store(&mut Ui::silent(), env) {
                    ui.warning(error.to_line());
                }
                Ok(())
            }
            // Shows the last error of hooks also in a store that it cannot unlock.
            Hooks(_) => {
                let _ = store_key::unlock_store(&mut Ui::silent(), env);
                Ok(())
            }
            // Prints and asks nothing.
            Hook(args) => store_key::unlock_store(&mut Ui::silent(), env)
                .inspect_err(|error| commands::hook::log_error(env, args, error)),
            _ => store_key::unlock_store(ui, env),
        }
    }

    /// Disables the automatic sync, as `steno --no-sync COMMAND` asks for.
    fn disable_sync(&mut self) {
        let sync = match self {
            CliCommand::List(args) => &mut args.sync,
            CliCommand::Search(args) => &mut args.sync,
            CliCommand::Cost(args) => &mut args.sync,
            CliCommand::Stats(args) => &mut args.sync,
            CliCommand::Serve(args) => &mut args.sync,
            CliCommand::Blame(args) => &mut args.sync,
            CliCommand::Log(args) => &mut args.sync,
            CliCommand::Mcp(args) => &mut args.sync,
            _ => return,
        };
        sync.no_sync = true;
    }

    /// Returns the flag of a command that can read a remote.
    fn remote(&self) -> Option<&RemoteFlag> {
        Some(match self {
            CliCommand::List(args) => &args.remote,
            CliCommand::Search(args) => &args.remote,
            CliCommand::Show(args) => &args.remote,
            CliCommand::Cost(args) => &args.remote,
            CliCommand::Stats(args) => &args.remote,
            CliCommand::Diff(args) => &args.remote,
            CliCommand::Blame(args) => &args.remote,
            CliCommand::Log(args) => &args.remote,
            CliCommand::Handoff(args) => &args.remote,
            CliCommand::Export(args) => &args.remote,
            CliCommand::Restore(args) => &args.remote,
            CliCommand::Resume(args) => &args.remote,
            CliCommand::Verify(args) => &args.remote,
            _ => return None,
        })
    }

    /// Returns whether the command may open many connections, files or folders at once.
    fn opens_many_files(&self) -> bool {
        use CliCommand::{Decrypt, Encrypt, Exec, Gateway, Serve, Sync, Watch};
        let converts = matches!(self, Encrypt(_) | Decrypt(_));
        converts || matches!(self, Exec(_) | Gateway(_) | Serve(_) | Sync(_) | Watch(_))
    }
}

/// Returns whether `--json` was given. The commands of other systems print in those systems' formats.
fn prints_json(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some(("as", _)) => false,
        Some((_, inner)) => {
            matches!(inner.try_get_one::<bool>("json"), Ok(Some(true))) || prints_json(inner)
        }
        None => false,
    }
}

/// Disables transparent huge pages. The allocator cannot return part of a huge page to the system. Child processes
/// would inherit this setting.
fn use_small_pages() {
    #[cfg(target_os = "linux")]
    // On failure the process only uses more memory.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Opens the browser on a terminal, else prints the help.
fn open_browser(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    sync: &AutomaticSyncFlag,
) -> Result<CommandExit, CommandError> {
    if ui.is_interactive() {
        store_key::unlock_store(ui, env)?;
        return browser::run_browser(ui, env, sync);
    }
    ui.print_note(program_command().render_help().to_string().trim_end());
    Ok(CommandExit::Usage)
}

/// Returns whether an agent's hook called the program. Hooks must never make the agent fail.
pub(crate) fn is_hook_call() -> bool {
    std::env::args_os().nth(1).is_some_and(|command| command == "hook")
}

/// Prepares the arguments for the parser.
fn prepare_arguments(args: Vec<OsString>) -> Vec<OsString> {
    mark_excluded_words(expand_program_name(args))
}

/// Puts a space before words that a search excludes, such as `-test`, so that they are not parsed as options.
fn mark_excluded_words(mut args: Vec<OsString>) -> Vec<OsString> {
    let is_option = |arg: &OsString| arg.as_encoded_bytes().starts_with(b"-");
    let Some(begin) = args.iter().skip(1).position(|arg| !is_option(arg)).map(|at| at + 1) else {
        return args;
    };
    if args[begin] != "search" {
        return args;
    }
    let mut takes_value = false;
    for arg in &mut args[begin + 1..] {
        let Some(word) = arg.to_str() else { continue };
        if word == "--" {
            break;
        }
        let is_value = std::mem::replace(&mut takes_value, false);
        if is_value || !word.starts_with('-') {
            continue;
        }
        if let Some(long) = word.strip_prefix("--") {
            let flags = ["errors", "json", "no-sync", "quiet", "help"];
            takes_value = !long.contains('=') && !flags.contains(&long);
        } else if matches!(word, "-n" | "-C") {
            takes_value = true;
        } else if !is_short_option(word) {
            *arg = OsString::from(format!(" {word}"));
        }
    }
    args
}

/// Returns whether a word is a short option of the search, with or without a number.
fn is_short_option(word: &str) -> bool {
    let is_number = |rest: &str| {
        let digits = rest.strip_prefix('=').unwrap_or(rest);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let counted = word.strip_prefix("-n").or_else(|| word.strip_prefix("-C"));
    matches!(word, "-" | "-q" | "-h") || counted.is_some_and(is_number)
}

/// Expands the program names `devflow`, `chibi` and `leslie` to `steno as NAME`.
fn expand_program_name(args: Vec<OsString>) -> Vec<OsString> {
    let name =
        args.first().and_then(|arg| Path::new(arg).file_stem()).and_then(|stem| stem.to_str());
    match name {
        Some(language @ ("devflow" | "chibi" | "leslie")) => {
            let prefix = ["steno", "as", language].map(OsString::from);
            prefix.into_iter().chain(args.into_iter().skip(1)).collect()
        }
        _ => args,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_pages::COMMAND_GROUPS;

    fn visible_commands() -> Vec<String> {
        let command = program_command();
        let visible = command.get_subcommands().filter(|below| !below.is_hide_set());
        visible.map(|below| below.get_name().to_owned()).collect()
    }

    #[test]
    fn each_command_is_in_one_group() {
        let pages = COMMAND_GROUPS.iter().flat_map(|group| group.pages);
        let mut named: Vec<String> = pages.map(|page| page.name.to_owned()).collect();
        let mut visible = visible_commands();
        named.sort();
        visible.sort();
        assert_eq!(named, visible);
    }

    #[test]
    fn each_example_is_a_command_line() {
        for page in COMMAND_GROUPS.iter().flat_map(|group| group.pages) {
            for example in page.examples {
                let words = shlex::split(example).expect(example);
                let input = words.iter().position(|word| word == "<").unwrap_or(words.len());
                assert_eq!(words[..2], ["steno", page.name], "{example}");
                let words = prepare_arguments(words[..input].iter().map(OsString::from).collect());
                let parsed = program_command().try_get_matches_from(words);
                let parsed = parsed.and_then(|matches| CliArgs::from_arg_matches(&matches));
                assert!(parsed.is_ok(), "{example}: {parsed:?}");
            }
        }
    }

    #[test]
    fn frequent_commands_take_the_same_arguments_as_the_whole_program() {
        let mut whole = program_command();
        whole.build();
        for (name, _) in FREQUENT_COMMANDS {
            let mut frequent = frequent_command(name).unwrap();
            frequent.build();
            let arguments = |program: &clap::Command| {
                let command = program.find_subcommand(name).unwrap();
                let all = command.get_arguments();
                all.map(|argument| format!("{argument:?}")).collect::<Vec<_>>()
            };
            assert_eq!(arguments(&frequent), arguments(&whole), "{name}");
            assert!(!frequent.find_subcommand(name).unwrap().has_subcommands(), "{name}");
        }
    }

    #[test]
    fn words_that_a_search_excludes_are_no_options() {
        let prepared = |line: &str| {
            let words = shlex::split(line).unwrap().into_iter().map(OsString::from).collect();
            let words = prepare_arguments(words).into_iter();
            words.map(|word| word.into_string().unwrap()).collect::<Vec<_>>().join("|")
        };
        for (line, expected) in [
            ("steno search login -bug", "steno|search|login| -bug"),
            ("steno search -night -x login", "steno|search| -night| -x|login"),
            ("steno -q search a -n 5 -b", "steno|-q|search|a|-n|5| -b"),
            ("steno search a -n5 -C=2 -q", "steno|search|a|-n5|-C=2|-q"),
            ("steno search a --since -7d -b", "steno|search|a|--since|-7d| -b"),
            ("steno search a --json -b", "steno|search|a|--json| -b"),
            ("steno search a --since=7d -b", "steno|search|a|--since=7d| -b"),
            ("steno search -- a -b", "steno|search|--|a|-b"),
            ("steno list -bug", "steno|list|-bug"),
            ("steno", "steno"),
        ] {
            assert_eq!(prepared(line), expected);
        }
    }

    #[test]
    fn each_command_is_described_on_one_line_of_80_columns() {
        let help = program_command().render_long_help().to_string();
        let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
        assert_eq!(wide, Vec::<&str>::new());
        for name in visible_commands() {
            let lines = help.lines().filter(|line| line.starts_with(&format!("  {name} ")));
            assert_eq!(lines.count(), 1, "{name}\n{help}");
        }
    }

    #[test]
    fn quiet_is_the_last_option_of_each_page() {
        let mut command = program_command();
        command.build();
        for below in command.get_subcommands_mut().filter(|below| below.get_name() != "help") {
            let help = below.render_help().to_string();
            let mut options = help
                .lines()
                .filter(|line| line.trim_start().starts_with('-') && line.starts_with(' '));
            let last = options.next_back().unwrap_or_default().trim_start();
            assert!(last.starts_with("-q, --quiet"), "{}: {help}", below.get_name());
        }
    }
}
