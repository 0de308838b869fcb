//! The name of the user, under which sessions are pushed to a folder, and which tombstones state.

use std::ffi::OsString;
use std::fs;

use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;

/// Variables with the name, the first that is set wins. cron and containers set few of them.
const VARIABLES: [&str; 3] = ["USER", "LOGNAME", "USERNAME"];

/// Returns the name from the environment, else that of the process's user id. A push by somebody without a name would
/// mix the sessions of several people.
pub(crate) fn find_user_name() -> Result<String, CommandError> {
    let passwords = || fs::read_to_string("/etc/passwd").unwrap_or_default();
    choose_name(&ProcessEnvironment::variable, user_id(), &passwords).ok_or_else(|| {
        CommandError::user("your user name is unknown").hint("set USER, for example: USER=ada")
    })
}

fn choose_name(
    variable: &dyn Fn(&str) -> Option<OsString>,
    user_id: Option<u32>,
    passwords: &dyn Fn() -> String,
) -> Option<String> {
    let set = VARIABLES.into_iter().find_map(variable);
    set.map(|name| name.to_string_lossy().into_owned())
        .or_else(|| name_in_passwords(&passwords(), user_id?))
}

/// The name of a user id in `/etc/passwd`: lines `name:password:id:...`.
fn name_in_passwords(text: &str, user_id: u32) -> Option<String> {
    let names = text.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, _, id) = (fields.next()?, fields.next()?, fields.next()?);
        (id.parse() == Ok(user_id) && !name.is_empty()).then(|| name.to_owned())
    });
    names.into_iter().next()
}

#[cfg(unix)]
fn user_id() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

#[cfg(not(unix))]
fn user_id() -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_without_variables_has_the_name_of_the_user_id() {
        let passwords =
            || "root:x:0:0:root:/root:/bin/sh\n# ada\nada:x:1000:1000::/home/ada:\n".to_owned();
        let name = |set: &[&str], id| {
            let variable = |name: &str| set.contains(&name).then(|| format!("from {name}").into());
            choose_name(&variable, id, &passwords)
        };
        assert_eq!(name(&["LOGNAME", "USER"], Some(0)).as_deref(), Some("from USER"));
        assert_eq!(name(&["LOGNAME"], Some(0)).as_deref(), Some("from LOGNAME"));
        assert_eq!(name(&[], Some(1000)).as_deref(), Some("ada"));
        assert_eq!(name(&[], Some(10)), None);
        assert_eq!(name(&[], None), None);
    }
}
