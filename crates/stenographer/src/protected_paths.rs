//! Paths that a restored session must never write, since other programs run or trust them.

use std::path::Path;

use steno_agents::registry;

/// Folders relative to the home folder.
const HOME_FOLDERS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".cargo",
    ".rustup",
    ".local/bin",
    ".local/lib",
    ".local/share/applications",
    ".local/share/dbus-1",
    ".local/share/systemd",
    ".config/autostart",
    ".config/environment.d",
    ".config/fish",
    ".config/gcloud",
    ".config/git",
    ".config/nvim",
    ".config/systemd",
    ".emacs.d",
    ".oh-my-zsh",
    ".vim",
    "bin",
    "Library/Application Scripts",
    "Library/LaunchAgents",
    "Library/LaunchDaemons",
    "Library/Services",
];

/// System folders; they contain no session files unless the home folder is inside.
const SYSTEM_FOLDERS: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/Library",
    "/proc",
    "/sbin",
    "/sys",
    "/System",
    "/usr",
    "/var/at",
    "/var/lib",
    "/var/spool",
    "/private/etc",
    "/private/var/at",
];

/// Folder names, at any depth.
const FOLDER_NAMES: &[&str] = &[".git", ".githooks", ".gnupg", ".husky", ".ssh", "LaunchAgents"];

/// File names, in any folder: startup files of shells, version control, editors, package managers and agents.
const FILE_NAMES: &[&str] = &[
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".cshrc",
    ".curlrc",
    ".emacs",
    ".env",
    ".envrc",
    ".exrc",
    ".forward",
    ".gdbinit",
    ".gitattributes",
    ".gitconfig",
    ".gitmodules",
    ".gvimrc",
    ".inputrc",
    ".irbrc",
    ".kshrc",
    ".lldbinit",
    ".login",
    ".mailcap",
    ".mcp.json",
    ".mkshrc",
    ".netrc",
    ".npmrc",
    ".pam_environment",
    ".pre-commit-config.yaml",
    ".profile",
    ".psqlrc",
    ".pypirc",
    ".pythonrc",
    ".rhosts",
    ".screenrc",
    ".shosts",
    ".tcshrc",
    ".tmux.conf",
    ".vimrc",
    ".wgetrc",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "auth.json",
    "authorized_keys",
    "config.toml",
    "crontab",
    "hooks.json",
    "mcp.json",
    "mcp_settings.json",
    "settings.json",
    "settings.local.json",
    "tasks.json",
];

/// Returns whether other programs run or trust a file at `path`, for a user with this home folder. Ignores case, as
/// some file systems do.
pub(crate) fn is_protected(path: &Path, home: &Path) -> bool {
    let (path, home) = (in_lower_case(path), in_lower_case(home));
    let is_below = |folder: &Path| path.starts_with(in_lower_case(folder));
    let has_name =
        |names: &[&str], name: &str| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    let mut parts = path.iter().map(|part| part.to_string_lossy());
    let file_name = parts.next_back().unwrap_or_default();
    let agent_folders = registry::all_agents().flat_map(|agent| agent.program_folders);
    let settings_files = registry::all_agents().filter_map(|agent| agent.hooks.as_ref());
    let mut settings_files = settings_files.map(|hooks| hooks.settings_file.to_lowercase());
    HOME_FOLDERS.iter().chain(agent_folders).any(|folder| is_below(&home.join(folder)))
        || !path.starts_with(&home)
            && SYSTEM_FOLDERS.iter().any(|folder| is_below(Path::new(folder)))
        || parts.any(|part| has_name(FOLDER_NAMES, &part))
        || has_name(FILE_NAMES, &file_name)
        || settings_files.any(|file| path.ends_with(file))
}

fn in_lower_case(path: &Path) -> std::path::PathBuf {
    path.to_string_lossy().to_lowercase().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_run_or_trust_is_protected() {
        let is_protected = |path: &str| is_protected(Path::new(path), Path::new("/home/Me"));
        for path in [
            "/home/Me/.ssh/authorized_keys",
            "/home/me/.SSH/rc",
            "/home/Me/.bashrc",
            "/home/Me/.config/autostart/x.desktop",
            "/home/Me/.config/systemd/user/x.service",
            "/home/Me/.local/bin/claude",
            "/home/Me/Library/LaunchAgents/x.plist",
            "/home/Me/.claude/settings.json",
            "/home/Me/.copilot/hooks/steno.json",
            "/home/Me/.local/share/opencode/bin/opencode",
            "/home/Me/code/app/.git/hooks/post-checkout",
            "/home/Me/code/app/.envrc",
            "/home/other/.ssh/id_ed25519",
            "/etc/cron.d/x",
            "/var/spool/cron/crontabs/me",
        ] {
            assert!(is_protected(path), "{path}");
        }
        for path in [
            "/home/Me/.claude/projects/-p/s.jsonl",
            "/home/Me/.config/Cursor/User/globalStorage/state.vscdb",
            "/home/Me/.local/share/opencode/storage/session/info/s.json",
            "/home/Me/code/app/.aider.chat.history.md",
            "/tmp/copy/s.jsonl",
        ] {
            assert!(!is_protected(path), "{path}");
        }
    }
}
