//! A message that several sessions have is charged to the same one by every machine, by the database and by ClickHouse.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::clickhouse_server::ClickHouseServer;
use crate::postgres_server::PostgresServer;
use crate::team::{ID, Member, OTHER, content, member};

const THIRD: &str = "3b4e28ba-2fa1-41d2-883f-0016d3cca427";

/// The names of the two members. A path that begins with the second sorts before one that begins with the first.
const PEOPLE: [&str; 2] = ["ada", "ada-b"];

/// Sessions that start at the same moment with the same messages. The order in which they are copied and pushed decides
/// nothing.
fn push_shared_sessions(ada: &Member, other: &Member) {
    other.work(OTHER, &content(OTHER, &["apricot", "walnut", "plum"]));
    other.push();
    for id in [THIRD, ID] {
        ada.work(id, &content(id, &["apricot", "walnut"]));
        ada.push();
    }
}

/// Input tokens by person, and by session.
fn costs(member: &Member) -> [BTreeMap<String, u64>; 2] {
    ["person", "session"].map(|by| {
        let printed = member.steno(&["cost", "--json", "--from", "team", "--by", by]).ok();
        let rows = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let of =
            |row: Value| Some((row[by].as_str()?.to_owned(), row["tokens"]["input"].as_u64()?));
        rows.filter_map(of).filter(|(_, input)| *input > 0).collect()
    })
}

fn expected() -> [BTreeMap<String, u64>; 2] {
    let map = |rows: [(&str, u64); 2]| rows.map(|(name, input)| (name.to_owned(), input)).into();
    [map([("ada", 200), ("ada-b", 100)]), map([(ID, 200), (OTHER, 100)])]
}

#[test]
fn a_shared_message_is_charged_to_one_session_by_members_and_database() {
    let Some(server) = PostgresServer::start() else { return };
    member("postgres", &server.url("postgres")).steno(&["remote", "init", "team"]).ok();
    let [ada, other] = PEOPLE.map(|person| {
        server.add_member(person, "shop");
        member(person, &server.url(person))
    });
    push_shared_sessions(&ada, &other);
    for viewer in [&ada, &other] {
        assert_eq!(costs(viewer), expected(), "{}", viewer.user);
        let charged: [BTreeMap<String, u64>; 2] = ["owner", "id"].map(|column| {
            let sql = format!(
                "SELECT s.{column}, sum(c.input) FROM steno.charges() c JOIN steno.session s ON s.key = c.session GROUP BY 1"
            );
            let rows = String::from_utf8(server.psql(&viewer.user, "steno", &sql).stdout).unwrap();
            let rows = rows.lines().map(|line| line.split_once('|').unwrap());
            rows.map(|(name, input)| (name.to_owned(), input.parse().unwrap())).collect()
        });
        assert_eq!(charged, expected(), "{}", viewer.user);
    }
}

#[test]
fn a_shared_message_is_charged_to_one_session_by_members_and_clickhouse() {
    let Some(server) = ClickHouseServer::start(None) else { return };
    let shared = tempfile::tempdir().unwrap();
    let url = format!("file://{}", shared.path().display());
    let [ada, other] = PEOPLE.map(|person| member(person, &url));
    ada.steno(&["remote", "init", "team"]).ok();
    push_shared_sessions(&ada, &other);
    for viewer in [&ada, &other] {
        assert_eq!(costs(viewer), expected(), "{}", viewer.user);
    }
    let index = server.url("shop");
    ada.steno(&["load", "--from", "team", "--to", &index, "--init"]).ok();
    let analyst = Member::alone("eve");
    let settings = format!("[remote.team]\nurl = {url:?}\nindex = {index:?}\n");
    analyst.home.file("store/config.toml", settings);
    assert_eq!(costs(&analyst), expected());
}
