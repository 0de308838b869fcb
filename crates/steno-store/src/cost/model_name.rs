//! Alternative spellings of model names: agents, providers and vendors each have their own.

/// Prefixes of vendors and regions, before a dot or a colon.
const PROVIDER_PREFIXES: [&str; 17] = [
    "us",
    "eu",
    "apac",
    "au",
    "jp",
    "global",
    "anthropic",
    "openai",
    "azure",
    "google",
    "deepseek",
    "moonshotai",
    "moonshot",
    "mistral",
    "qwen",
    "zai",
    "xai",
];

/// The names to look up for the price of `model`, the likeliest first.
pub(super) fn name_spellings(model: &str) -> Vec<String> {
    let bare = strip_provider(model);
    let mut names = vec![model.to_owned(), bare.to_owned(), strip_date(bare).to_owned()];
    let plain = strip_date(bare).to_ascii_lowercase();
    let plain = plain.strip_suffix("-latest").unwrap_or(&plain);
    names.push(plain.to_owned());
    names.push(replace_between_digits(plain, '.', '-'));
    names.push(replace_between_digits(plain, '-', '.'));
    names.extend(swap_version_and_family(&replace_between_digits(plain, '.', '-')));
    names
}

/// Strips what providers add to a name: `us.anthropic.claude-x-v1:0`, `openai/gpt-x`, `claude-x[1m]`.
fn strip_provider(model: &str) -> &str {
    let mut name = model.rsplit('/').next().unwrap_or(model);
    while let Some((vendor, rest)) = name.split_once(['.', ':'])
        && PROVIDER_PREFIXES.contains(&vendor.to_ascii_lowercase().as_str())
    {
        name = rest;
    }
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    let release = name.rsplit_once("-v").filter(|(_, release)| is_release(release));
    release.map_or(name, |(name, _)| name)
}

/// Whether a text is a Bedrock release as after `-v`: `1:0`.
fn is_release(text: &str) -> bool {
    text.split_once(':').is_some_and(|(major, minor)| is_number(major) && is_number(minor))
}

/// Strips a date: `-20250929`, `@20250929`, `-2025-08-07` or `@2025-08-07`.
fn strip_date(name: &str) -> &str {
    if let Some((head, date)) = name.rsplit_once(['-', '@'])
        && date.len() == 8
        && is_number(date)
    {
        return head;
    }
    let (head, date) = name.split_at_checked(name.len().saturating_sub(11)).unwrap_or((name, ""));
    let is_date = date.bytes().enumerate().all(|(at, byte)| match at {
        0 => matches!(byte, b'-' | b'@'),
        5 | 8 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    if date.len() == 11 && is_date { head } else { name }
}

/// Replaces the separator between the numbers of a version: `4.5` becomes `4-5`.
fn replace_between_digits(name: &str, from: char, to: char) -> String {
    let bytes = name.as_bytes();
    let is_digit =
        |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let changed = name.char_indices().map(|(at, c)| {
        let is_between = c == from && is_digit(at.checked_sub(1)) && is_digit(Some(at + 1));
        if is_between { to } else { c }
    });
    changed.collect()
}

/// Moves the version of an Anthropic name to the other side of the family: `claude-4-5-sonnet` becomes
/// `claude-sonnet-4-5`.
fn swap_version_and_family(name: &str) -> Option<String> {
    let rest = name.strip_prefix("claude-")?;
    let is_version = |text: &str| text.split('-').all(is_number);
    let is_family = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase());
    if let Some((version, family)) = rest.rsplit_once('-')
        && is_version(version)
        && is_family(family)
    {
        return Some(format!("claude-{family}-{version}"));
    }
    let (family, version) = rest.split_once('-')?;
    (is_family(family) && is_version(version)).then(|| format!("claude-{version}-{family}"))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
