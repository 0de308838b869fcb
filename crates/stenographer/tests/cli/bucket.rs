//! Tests of a bucket as a remote, with moto as the bucket and PostgreSQL for people and keys.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use steno_cipher::DataKey;

use crate::harness::Home;
use crate::moto_server::MotoServer;
use crate::postgres_server::PostgresServer;
use crate::team::{
    ID, Member, OTHER, RemoteSetup, below, check_a_team_of_two, check_forgetting, content, has,
    secret, turn,
};

const URL: &str = "s3://team/org/steno";

/// A bucket with its database, which knows ada and bob of one team, and eve of another.
struct BucketTeam {
    moto: MotoServer,
    database: PostgresServer,
}

impl BucketTeam {
    fn start() -> Option<Self> {
        let (moto, database) = (MotoServer::start()?, PostgresServer::start()?);
        let team = Self { moto, database };
        let owner = team.member("postgres");
        let refused = owner.steno(&["push"]);
        assert!(refused.stderr.contains("steno remote init team"), "{refused}");
        owner.steno(&["remote", "init", "team"]).ok();
        let again = owner.steno(&["remote", "init", "team"]);
        assert!(again.stderr.contains("up to date"), "{again}");
        for (role, name) in [("ada", "shop"), ("bob", "shop"), ("eve", "bank")] {
            team.database.sql("steno", &format!("CREATE ROLE {role} LOGIN IN ROLE steno_member"));
            team.database
                .sql("steno", &format!("SELECT steno_keys.add_member('{role}', '{name}')"));
        }
        team.database.sql("steno", "CREATE ROLE mallory LOGIN");
        Some(team)
    }

    fn member(&self, role: &str) -> Member {
        let keys = self.database.url(role);
        Member::with_setup(
            role,
            RemoteSetup {
                url: URL.to_owned(),
                arguments: vec!["--keys".to_owned(), keys],
                variables: self.moto.client_variables(),
            },
        )
    }

    /// The data keys in the database, by owner, agent and id.
    fn keys(&self) -> BTreeMap<[String; 3], DataKey> {
        let sql = "SELECT owner, agent, id, encode(key, 'hex') FROM steno_keys.session_key";
        let rows = self.database.sql("steno", sql);
        let key = |line: &str| {
            let fields: Vec<&str> = line.split('|').collect();
            let byte = |at: usize| u8::from_str_radix(&fields[3][at..at + 2], 16).unwrap();
            let bytes: Vec<u8> = (0..fields[3].len()).step_by(2).map(byte).collect();
            let names = [fields[0], fields[1], fields[2]].map(str::to_owned);
            (names, DataKey::from_bytes(&bytes).unwrap())
        };
        rows.lines().map(key).collect()
    }

    /// All pieces that the records name which the present keys open: segment, offset, length.
    fn pieces(&self) -> Vec<SealedPiece> {
        let objects: BTreeMap<String, Vec<u8>> = self.moto.objects().into_iter().collect();
        let keys = self.keys();
        let mut pieces = Vec::new();
        for (name, bytes) in &objects {
            let Some(owner) = name.strip_prefix("org/steno/manifests/") else { continue };
            let owner = owner.trim_end_matches(".json.zst");
            let manifest: Value =
                serde_json::from_slice(&zstd::decode_all(&bytes[..]).unwrap()).unwrap();
            for session in manifest["sessions"].as_array().unwrap() {
                let names = ["owner", "agent", "id"].map(|part| text(&session["key"][part]));
                let Some(key) = keys.get(&names) else { continue };
                let segment = text(&session["record"]["segment"]);
                let context = |kind: &str| format!("{kind}\n{}", names.join("\n"));
                let mut add = |kind: &str, place: &Value| {
                    let segment = place["segment"].as_str().unwrap_or(&segment);
                    let object = &objects[&format!("org/steno/segments/{owner}/{segment}")];
                    let start = place["offset"].as_u64().unwrap() as usize;
                    let length = place["length"].as_u64().unwrap() as usize;
                    let sealed = object[start..start + length].to_vec();
                    let piece = SealedPiece { context: context(kind), sealed };
                    let opened = piece.open(key);
                    pieces.push(piece);
                    opened
                };
                // The record of a key that was replaced cannot be opened.
                let Some(record) = add("record", &session["record"]) else { continue };
                let record: Value = serde_json::from_slice(&record).unwrap();
                for place in record["places"].as_object().unwrap().values() {
                    add("frame", place).expect("the key of the record opens its frames");
                }
            }
        }
        pieces
    }

    /// Every byte of the bucket, and everything that the present keys open of `pieces`.
    fn everything(&self, pieces: &[SealedPiece]) -> Vec<u8> {
        let mut all: Vec<u8> = Vec::new();
        for (name, bytes) in self.moto.objects() {
            all.extend(name.as_bytes());
            all.extend(zstd::decode_all(&bytes[..]).unwrap_or_default());
            all.extend(bytes);
        }
        for key in self.keys().values() {
            let opened = pieces.iter().filter_map(|piece| piece.open(key));
            opened.for_each(|content| all.extend(content));
        }
        all
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// A piece of a segment.
struct SealedPiece {
    context: String,
    sealed: Vec<u8>,
}

impl SealedPiece {
    fn open(&self, key: &DataKey) -> Option<Vec<u8>> {
        let packed = key.open_piece(&self.context, &self.sealed)?;
        Some(zstd::decode_all(&packed[..]).unwrap())
    }
}

#[test]
fn a_bucket_is_a_remote() {
    let Some(team) = BucketTeam::start() else { return };
    let (ada, bob) = (team.member("ada"), team.member("bob"));
    check_a_team_of_two(&ada, &bob);
    // What was in the bucket at any time.
    let seen = std::cell::RefCell::new(team.pieces());
    assert!(has(&team.everything(&seen.borrow()), "walnut"), "the test opens pieces");
    check_forgetting(&ada, &bob, &|| {
        seen.borrow_mut().extend(team.pieces());
        team.everything(&seen.borrow())
    });
    assert!(!team.keys().contains_key(&["ada", "claude-code", ID].map(str::to_owned)));
    assert!(team.keys().contains_key(&["bob", "claude-code", OTHER].map(str::to_owned)));
}

#[test]
fn a_bucket_alone_has_keys_for_a_file_of_the_team() {
    let Some(moto) = MotoServer::start() else { return };
    let shared = tempfile::tempdir().unwrap();
    let file = shared.path().join("team.key");
    let member = |user: &str| {
        let arguments = vec!["--keys".to_owned(), format!("file://{}", file.display())];
        let variables = moto.client_variables();
        Member::with_setup(user, RemoteSetup { url: "s3://team".to_owned(), arguments, variables })
    };
    let (ada, bob) = (member("ada"), member("bob"));
    let refused = ada.steno(&["push"]);
    assert!(refused.code == 1 && refused.stderr.contains("steno remote init"), "{refused}");
    ada.steno(&["remote", "init", "team"]).ok();
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o077, 0, "only its owner can read the key");
    check_a_team_of_two(&ada, &bob);
    ada.steno(&["forget", ID, "--yes"]).ok();
    assert_eq!(ada.push()["forgotten"], 1);
    assert_eq!(bob.pull()["removed"], 1);
    // The key of another team does not open it.
    let secret_text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let eve = member("eve");
    eve.steno(&["remote", "init", "team"]);
    let refused = eve.steno(&["list", "--from", "team"]);
    assert!(refused.code == 1 && refused.stderr.contains("key file of the team"), "{refused}");
    let key = secret_text.lines().last().unwrap();
    assert!(!refused.stderr.contains(key) && key.starts_with("AGE-SECRET-KEY-1"));
    for (name, bytes) in moto.objects() {
        assert!(!has(&bytes, "plum") && !has(&bytes, key), "{name}");
    }
}

#[test]
fn only_those_who_may_see_a_session_get_its_key() {
    let Some(team) = BucketTeam::start() else { return };
    for (word, visibility) in [("apricot", "private"), ("banana", "team"), ("cherry", "everyone")] {
        let mut ada = team.member("ada");
        ada.setup.arguments.extend(["--visibility".to_owned(), visibility.to_owned()]);
        let ada = Member::with_setup("ada", ada.setup);
        let id = format!("{word}-0000-4000-8000-000000000001");
        ada.work(&id, &content(&id, &[word]));
        ada.push();
    }
    team.database.sql(
        "steno",
        "INSERT INTO steno_keys.forgotten VALUES ('shop', 'ada', 'claude-code', 'x', '{}')",
    );
    let sees = [("ada", 3), ("bob", 2), ("eve", 1)];
    for (role, sessions) in sees {
        let member = team.member(role);
        assert_eq!(member.ids(&["list", "--from", "team", "--json"]).len(), sessions, "{role}");
        let shown = member.steno(&["show", "apricot", "--from", "team"]);
        assert_eq!(shown.code == 0, role == "ada", "{role}: {shown}");
    }
    let refused = team.member("mallory").steno(&["list", "--from", "team"]);
    assert!(refused.code == 1 && refused.stderr.contains("permission denied"), "{refused}");
    check_rights(&team.database);
}

/// Every table and function of the schema against every role.
fn check_rights(database: &PostgresServer) {
    const ROLES: [&str; 4] = ["ada", "bob", "eve", "mallory"];
    // Rows that each role gets; `-` is a refusal.
    let expected: [(&str, [&str; 4]); 11] = [
        ("meta", ["2", "2", "2", "-"]),
        ("member", ["2", "2", "1", "-"]),
        ("session_key", ["3", "2", "1", "-"]),
        ("forgotten", ["1", "1", "0", "-"]),
        ("own_team()", ["1", "1", "1", "-"]),
        ("may_see('ada', 'shop', 'private', 'shop')", ["1", "1", "1", "-"]),
        (
            "create_key('claude-code', 'x', 'team', '1', repeat('k', 32)::bytea)",
            ["0", "1", "1", "-"],
        ),
        ("replace_key('claude-code', 'none', '1', repeat('k', 32)::bytea)", ["1", "1", "1", "-"]),
        ("forget('claude-code', 'none', '{}')", ["1", "1", "1", "-"]),
        ("lock_session('claude-code', 'none')", ["-", "-", "-", "-"]),
        ("add_member('mallory', 'shop')", ["-", "-", "-", "-"]),
    ];
    let all = "SELECT relname FROM pg_class WHERE relnamespace = 'steno_keys'::regnamespace
        AND relkind IN ('r', 'p', 'v', 'm') UNION
        SELECT proname FROM pg_proc WHERE pronamespace = 'steno_keys'::regnamespace ORDER BY 1";
    let mut known: Vec<&str> =
        expected.iter().map(|(name, _)| name.split('(').next().unwrap()).collect();
    known.sort_unstable();
    assert_eq!(database.sql("steno", all).lines().collect::<Vec<_>>(), known);
    let open = "SELECT relname FROM pg_class WHERE relnamespace = 'steno_keys'::regnamespace
        AND relkind = 'r' AND NOT relrowsecurity UNION
        SELECT proname FROM pg_proc WHERE pronamespace = 'steno_keys'::regnamespace
        AND NOT coalesce(proconfig::text LIKE '%search_path=%', false)";
    assert_eq!(database.sql("steno", open), "");
    for (from, rows) in expected {
        let count = |role: &str| {
            let sql = format!("SELECT count(*) FROM steno_keys.{from}");
            let output = database.psql(role, "steno", &sql);
            match output.status.success() {
                true => String::from_utf8(output.stdout).unwrap().trim().to_owned(),
                false => "-".to_owned(),
            }
        };
        assert_eq!(ROLES.map(count), rows.map(str::to_owned), "{from}");
    }
    let before = database.sql("steno", "SELECT * FROM steno_keys.session_key ORDER BY owner, id");
    for attempt in [
        "INSERT INTO steno_keys.session_key VALUES ('shop', 'ada', 'a', 'b', 'team', '1', repeat('k', 32)::bytea)",
        "UPDATE steno_keys.session_key SET visibility = 'everyone'",
        "DELETE FROM steno_keys.session_key",
        "DELETE FROM steno_keys.forgotten",
        "INSERT INTO steno_keys.member VALUES ('eve', 'shop')",
        "UPDATE steno_keys.member SET team = 'shop'",
        "UPDATE steno_keys.meta SET value = '2'",
        "CREATE TABLE steno_keys.mine ()",
    ] {
        for role in ROLES {
            assert!(!database.psql(role, "steno", attempt).status.success(), "{role}: {attempt}");
        }
    }
    // A function of another role concerns only rows of its own.
    for call in [
        "replace_key('claude-code', id, '1', repeat('k', 32)::bytea)",
        "forget('claude-code', id, '{}')",
    ] {
        let sql =
            format!("SELECT steno_keys.{call} FROM steno_keys.session_key WHERE owner = 'ada'");
        assert!(database.psql("bob", "steno", &sql).status.success());
    }
    let after = database.sql("steno", "SELECT * FROM steno_keys.session_key ORDER BY owner, id");
    assert_eq!(before, after);
}

#[test]
fn secrets_never_reach_a_bucket() {
    let Some(team) = BucketTeam::start() else { return };
    let ada = team.member("ada");
    ada.work(ID, &content(ID, &["apricot", &format!("token {}", secret())]));
    let pushed = ada.steno(&["push", "--json"]);
    assert!(serde_json::from_str::<Value>(&pushed.ok()).unwrap()["secrets"].as_u64() > Some(0));
    let all = team.everything(&team.pieces());
    assert!(has(&all, "apricot") && !has(&all, &secret()));
    assert!(!has(&team.database.dump(), &secret()));
    // What is encrypted is not there in plain.
    for (name, bytes) in team.moto.objects() {
        for word in ["apricot", "/home/ada", "team-password"] {
            assert!(!has(&bytes, word) && !name.contains(word), "{word} in {name}");
        }
    }
}

#[test]
fn killed_pushes_to_a_bucket_are_completed() {
    let Some(team) = BucketTeam::start() else { return };
    let (desktop, laptop) = (team.member("ada"), team.member("ada"));
    let mut text = String::new();
    // 25 rounds in which two machines push at once, and both are killed.
    for round in 1..=25 {
        text += &turn(ID, round, &format!("word{round} {}", "filler ".repeat(500)));
        for machine in [&desktop, &laptop] {
            machine.work(ID, &text);
        }
        let other = format!("{round:08}-0000-4000-8000-000000000001");
        desktop.work(&other, &content(&other, &[&format!("other{round}")]));
        let mut pushes =
            [&desktop, &laptop].map(|machine| machine.command(&["push"]).spawn().unwrap());
        std::thread::sleep(Duration::from_millis(u64::from(round) * 20));
        for push in &mut pushes {
            let _ = push.kill();
            push.wait().unwrap();
        }
    }
    desktop.push();
    laptop.push();
    for machine in [&desktop, &laptop] {
        let again = machine.push();
        assert_eq!((&again["frames"], &again["sessions"]), (&json!(0), &json!(0)), "{again}");
    }
    let verified = laptop.steno(&["verify", "--from", "team"]);
    assert_eq!(verified.code, 0, "{verified}");
    assert!(verified.stderr.contains("team: 26 sessions"), "{verified}");
    let restored = laptop.home.path().join("restored");
    laptop.steno(&["restore", ID, "--from", "team", "--to", restored.to_str().unwrap()]).ok();
    assert!(has(&below(&restored), &text), "equal to the byte");
    for round in 1..=25 {
        assert_eq!(laptop.hits(&[&format!("word{round}"), "--from", "team"]).len(), 2, "{round}");
        assert_eq!(laptop.hits(&[&format!("other{round}"), "--from", "team"]).len(), 2, "{round}");
    }
}

#[test]
fn two_machines_at_once_lose_nothing() {
    let Some(team) = BucketTeam::start() else { return };
    let machines = ["desktop", "laptop", "server"].map(|name| (name, team.member("ada")));
    let start = content(ID, &["apricot"]);
    for (number, (name, machine)) in machines.iter().enumerate() {
        machine
            .work(ID, &(start.clone() + &turn(ID, 7 + number as u32, &format!("on the {name}"))));
        let own = format!("{name}-0000-4000-8000-000000000001");
        machine.work(&own, &content(&own, &[&format!("only{name}")]));
    }
    let pushes =
        machines.each_ref().map(|(_, machine)| machine.command(&["push"]).spawn().unwrap());
    for push in pushes {
        assert!(push.wait_with_output().unwrap().status.success());
    }
    let bob = team.member("bob");
    assert_eq!(bob.pull()["sessions"], 4);
    assert_eq!(bob.steno(&["verify", "--from", "team"]).code, 0);
    let all = team.everything(&team.pieces());
    for (name, _) in &machines {
        assert!(
            has(&all, &format!("on the {name}")) && has(&all, &format!("only{name}")),
            "{name}"
        );
    }
}

#[test]
fn damage_in_a_bucket_is_found() {
    let Some(team) = BucketTeam::start() else { return };
    let (ada, mut bob) = (team.member("ada"), team.member("bob"));
    move_to_aws_files(&mut bob);
    ada.work(ID, &content(ID, &["apricot"]));
    ada.push();
    let names = team.moto.object_names();
    let segment = names.iter().find(|name| name.contains("/segments/")).unwrap();
    let path = format!("/team/{segment}");
    let original = team.moto.request("GET", &path, b"");
    let mut changed = original.clone();
    changed[100] ^= 1;
    for (bytes, reason) in [(changed, "was changed"), (original[..50].to_vec(), "truncated")] {
        team.moto.request("PUT", &path, &bytes);
        let verified = bob.steno(&["verify", "--from", "team"]);
        assert!(verified.code == 1 && verified.stderr.contains(reason), "{verified}");
    }
    team.moto.request("DELETE", &path, b"");
    let verified = bob.steno(&["verify", "--from", "team"]);
    assert!(verified.code == 1 && verified.stderr.contains("missing"), "{verified}");
    team.moto.request("PUT", &path, &original);
    assert_eq!(bob.steno(&["verify", "--from", "team"]).code, 0);
}

/// Writes the variables of a member to the files of AWS.
fn move_to_aws_files(member: &mut Member) {
    let mut files = [String::from("[profile work]\n"), String::from("[work]\n")];
    for (name, value) in std::mem::take(&mut member.setup.variables) {
        let setting = match name.as_str() {
            "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => name.to_lowercase(),
            other => other.trim_start_matches("AWS_").to_lowercase(),
        };
        files[usize::from(setting.starts_with("aws_"))] += &format!("{setting} = {value}\n");
    }
    member.home.file(".aws/config", &files[0]);
    member.home.file(".aws/credentials", &files[1]);
    member.setup.variables = vec![("AWS_PROFILE".to_owned(), "work".to_owned())];
}

#[test]
fn a_bucket_without_keys_or_server_is_explained() {
    let ada = Member {
        home: Home::new(),
        user: "ada".to_owned(),
        setup: RemoteSetup {
            url: URL.to_owned(),
            arguments: Vec::new(),
            variables: [
                ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
                ("AWS_ACCESS_KEY_ID", "team-id"),
                ("AWS_SECRET_ACCESS_KEY", "team-password"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        },
    };
    ada.steno(&["remote", "add", "team", URL]).ok();
    let refused = ada.steno(&["push"]);
    assert!(refused.code == 1 && refused.stderr.contains("keys = "), "{refused}");
    let file = ada.home.path().join("team.key");
    let keys = format!("file://{}", file.display());
    ada.steno(&["remote", "add", "other", URL, "--keys", &keys]).ok();
    let refused = ada.steno(&["remote", "init", "other"]);
    assert!(refused.code == 1 && refused.stderr.contains("could not read an object"), "{refused}");
    assert!(!refused.stderr.contains("team-password"), "{refused}");
    assert!(refused.stderr.contains("AWS_ENDPOINT_URL"), "{refused}");
    let signed = ["s3://bucket/x?X-Amz-Signature=", "abc"].concat();
    for url in [signed.as_str(), "s3://id:key@bucket/x", "s3://bucket//x"] {
        let refused = ada.steno(&["remote", "add", "third", url]);
        assert!(refused.code == 2 && !refused.stderr.contains("abc"), "{refused}");
    }
}
