//! `steno decrypt`: turns an encrypted store into a plain one.

use serde_json::json;
use steno_cipher::{KeyFile, conversion};

use crate::commands::encrypt::explain_conversion;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::store_key::StoreKeySource;
use crate::ui::Ui;

/// Decrypt an encrypted store.
///
/// All files become plain again, byte for byte. If it is interrupted, the store is still encrypted, or the next command
/// completes it. A store with damaged files is not decrypted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    conversion::finish_conversion(&env.store)?;
    let Some(keys) = KeyFile::read(&env.store)? else {
        return Err(CommandError::user("the store is not encrypted"));
    };
    let master = StoreKeySource::load(env)?.find_key(ui, &keys)?;
    let mut progress = ui.start_progress("decrypting");
    let result = conversion::decrypt_store(&env.store, &master, &mut |path| {
        progress.step(path.display());
    });
    drop(progress);
    result.map_err(explain_conversion)?;
    ui.status(format_args!("decrypted {}", env.store.display()));
    if args.json {
        ui.json_text(&format!("{}\n", json!({ "encrypted": false })))?;
    }
    Ok(CommandExit::Done)
}
