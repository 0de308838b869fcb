//! `steno verify`.

use std::fs;

use crate::harness::Home;

/// Records have ids of their own each time, so sizes differ.
const FILTERS: [(&str, &str); 3] = [
    (r"byte \d+", "byte [N]"),
    (r"\d+ bytes", "[N] bytes"),
    (r#""offset":\d+"#, r#""offset":[N]"#),
];

#[test]
fn damage_is_named_with_file_and_byte() {
    let home = Home::new();
    home.steno_with(
        &["record", "--agent", "a", "--session", "s"],
        b"{\"role\":\"user\",\"content\":\"x\"}\n",
    )
    .ok();
    insta::with_settings!({ filters => FILTERS.to_vec() }, {
        insta::assert_snapshot!(home.steno(&["verify"]), @"
        --- stderr
        1 session, 1 file, [N] bytes: all as it was written
        --- exit 0
        ");
    });
    let path = home.path().join("store/vault/a/s/record.jsonl.zst");
    let mut bytes = fs::read(&path).unwrap();
    let magic = [0x28, 0xb5, 0x2f, 0xfd];
    let frame = bytes.windows(4).position(|window| window == magic).unwrap();
    bytes[frame + 20] ^= 4;
    fs::write(&path, bytes).unwrap();
    insta::with_settings!({ filters => FILTERS.to_vec() }, {
        insta::assert_snapshot!(home.steno(&["verify"]), @"
        $HOME/store/vault/a/s/record.jsonl.zst: byte [N]: the frame was changed, or one is missing before it
        --- stderr
        1 session, 1 file, [N] bytes: damaged in 1 place
        --- exit 1
        ");
        insta::assert_snapshot!(home.steno(&["--quiet", "verify", "--json"]), @r#"
        {"path":"$HOME/store/vault/a/s/record.jsonl.zst","offset":[N],"reason":"the frame was changed, or one is missing before it"}
        --- exit 1
        "#);
    });
}
