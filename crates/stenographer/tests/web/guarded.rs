//! Access control: only a browser with the token, for this host, from this page.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use crate::driver::wait;
use crate::site::{Site, user};

/// Returns status and response of a request with these headers.
pub(crate) fn asked(site: &Site, request: &str, headers: &[String]) -> (u16, String) {
    sent(site, request, headers, "")
}

/// The same with a body.
pub(crate) fn sent(site: &Site, request: &str, headers: &[String], body: &str) -> (u16, String) {
    let address = site.at("").replace("http://", "");
    let mut stream = TcpStream::connect(&address).unwrap();
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let length = body.len();
    write!(
        stream,
        "{request} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

pub(crate) fn site() -> (Site, String, String) {
    site_with(&["--port", "0"])
}

/// Serves a site. Returns it with the headers it requires.
fn site_with(flags: &[&str]) -> (Site, String, String) {
    let mut site = Site::new();
    site.keep("one", &[user("Hello")]);
    site.serve_with(flags);
    let [host, cookie] = site_headers(&site);
    (site, host, cookie)
}

/// Returns the host and cookie headers that a site requires.
pub(crate) fn site_headers(site: &Site) -> [String; 2] {
    let host = site.at("").replace("http://", "");
    let token = site.first("/").split_once("token=").unwrap().1.to_owned();
    let cookie = format!("Cookie: steno-{}={token}", host.rsplit(':').next().unwrap());
    [format!("Host: {host}"), cookie]
}

#[test]
fn a_request_needs_the_token_and_our_name() {
    let (site, host, cookie) = site();
    let get = |headers: &[&str]| {
        let headers: Vec<String> = headers.iter().map(|header| (*header).to_owned()).collect();
        asked(&site, "GET /api/sessions", &headers).0
    };
    assert_eq!(get(&[&host, &cookie]), 200);
    assert_eq!(get(&[&host]), 401);
    assert_eq!(get(&[&host, "Cookie: steno-1=x"]), 401);
    assert_eq!(get(&["Host: evil.example:80", &cookie]), 421);
    assert_eq!(get(&[&host, &cookie, "Origin: http://evil.example"]), 403);
    assert_eq!(get(&[&host, &cookie, "Origin: null"]), 403);
    let (status, answer) = asked(&site, "GET /?token=wrong", &[host]);
    assert_eq!(status, 401, "{answer}");
}

#[test]
fn a_program_reads_the_api_with_the_token_in_a_header() {
    let (site, host, cookie) = site();
    let bearer = format!("Authorization: Bearer {}", cookie.split_once('=').unwrap().1);
    let ask = |request: &str, headers: &[&str]| {
        let headers: Vec<String> = headers.iter().map(|header| (*header).to_owned()).collect();
        asked(&site, request, &headers).0
    };
    assert_eq!(ask("GET /api/sessions", &[&host, &bearer]), 200);
    assert_eq!(ask("GET /api/sessions", &[&host, "Authorization: Bearer wrong"]), 401);
    assert_eq!(ask("GET /api/sessions", &[&host, &bearer, "Origin: http://evil.example"]), 403);
    assert_eq!(ask("GET /api/sessions", &["Host: evil.example:80", &bearer]), 421);
    assert_eq!(ask("GET /", &[&host, &bearer]), 401);
    assert_eq!(ask("POST /api/sessions/claude-code/one/resume", &[&host, &bearer]), 403);
}

#[test]
fn who_listens_everywhere_is_known_by_numbers_only() {
    let (site, host, cookie) = site_with(&["--port", "0", "--host", "0.0.0.0"]);
    let port = host.rsplit(':').next().unwrap().to_owned();
    let get = |host: &str, cookie: &str| {
        asked(&site, "GET /api/sessions", &[host.to_owned(), cookie.to_owned()]).0
    };
    assert_eq!(get(&format!("Host: 127.0.0.1:{port}"), &cookie), 200);
    assert_eq!(get(&format!("Host: 192.0.2.7:{port}"), &cookie), 200);
    assert_eq!(get(&format!("Host: rebound.example:{port}"), &cookie), 421);
    assert_eq!(get(&format!("Host: 127.0.0.1:{port}"), "Cookie: a=b"), 401);
}

#[test]
fn only_a_page_of_ours_may_change_anything() {
    let (site, host, cookie) = site();
    let origin = format!("Origin: {}", site.at(""));
    let post = "POST /api/sessions/claude-code/one/resume";
    assert_eq!(asked(&site, post, &[host.clone(), cookie.clone()]).0, 403);
    let (status, answer) = asked(&site, post, &[host.clone(), cookie.clone(), origin.clone()]);
    assert!(status == 400 && answer.contains("folder no longer exists"), "{answer}");
    let (status, _) = asked(&site, "POST /api/sessions", &[host, cookie, origin]);
    assert_eq!(status, 405);
}

#[test]
fn a_page_that_may_only_read_resumes_nothing() {
    let (site, host, cookie) = site_with(&["--port", "0", "--read-only"]);
    let origin = format!("Origin: {}", site.at(""));
    let post = "POST /api/sessions/claude-code/one/resume";
    let (status, answer) = asked(&site, post, &[host.clone(), cookie.clone(), origin]);
    assert!(status == 400 && answer.contains("this page is read-only"), "{answer}");
    let (_, page) = asked(&site, "GET /session/claude-code/one", &[host, cookie]);
    assert!(page.contains("Replay") && !page.contains("data-resume"), "{page}");
}

#[test]
fn only_a_page_of_ours_may_note_anything() {
    let (site, host, cookie) = site();
    let origin = format!("Origin: {}", site.at(""));
    let json = "Content-Type: application/json".to_owned();
    let post = "POST /api/sessions/claude-code/one/notes";
    let send = |headers: &[&String]| {
        let headers: Vec<String> = headers.iter().map(|header| (*header).clone()).collect();
        sent(&site, post, &headers, r#"{"text":"see <b>this</b>","entry":0}"#)
    };
    let foreign = "Origin: http://evil.example".to_owned();
    assert_eq!(send(&[&host, &origin, &json]).0, 401);
    assert_eq!(send(&[&host, &cookie, &json]).0, 403);
    assert_eq!(send(&[&host, &cookie, &foreign, &json]).0, 403);
    assert_eq!(send(&[&"Host: evil.example:80".to_owned(), &cookie, &origin, &json]).0, 421);
    assert_eq!(send(&[&host, &cookie, &origin, &"Content-Type: text/plain".to_owned()]).0, 400);
    assert_eq!(site.steno(&["annotate", "--json"]), "");
    let (status, answer) = send(&[&host, &cookie, &origin, &json]);
    assert_eq!(status, 200, "{answer}");
    let noted: serde_json::Value =
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(format!("{noted}\n"), site.steno(&["annotate", "one", "--json"]));
    let (_, page) = asked(&site, "GET /session/claude-code/one", &[host.clone(), cookie.clone()]);
    assert!(page.contains("see &lt;b&gt;this"), "{page}");
    let remove =
        format!("DELETE /api/sessions/claude-code/one/notes/{}", noted["id"].as_str().unwrap());
    assert_eq!(asked(&site, &remove, &[host.clone(), cookie.clone(), foreign]).0, 403);
    assert_eq!(asked(&site, &remove, &[host.clone(), cookie.clone(), origin.clone()]).0, 200);
    assert_eq!(asked(&site, &remove, &[host, cookie, origin]).0, 404);
    assert_eq!(site.steno(&["annotate", "--json"]), "");
}

#[test]
fn a_page_that_may_only_read_notes_nothing() {
    let (site, host, cookie) = site_with(&["--port", "0", "--read-only"]);
    let headers = [
        host.clone(),
        cookie.clone(),
        format!("Origin: {}", site.at("")),
        "Content-Type: application/json".to_owned(),
    ];
    let (status, answer) =
        sent(&site, "POST /api/sessions/claude-code/one/notes", &headers, r#"{"text":"x"}"#);
    assert!(status == 400 && answer.contains("this page is read-only"), "{answer}");
    let (_, page) = asked(&site, "GET /session/claude-code/one", &[host, cookie]);
    assert!(!page.contains("data-notes"), "{page}");
}

#[test]
fn a_used_port_is_reported() {
    let (site, _, _) = site();
    let port = site.at("").rsplit(':').next().unwrap().to_owned();
    let printed = site.try_steno(&["serve", "--port", &port]);
    let expected = format!(
        "error: could not listen on 127.0.0.1:{port}: Address already in use (os error 98)\n\
         hint: leave out --port to use a free one\n"
    );
    assert_eq!(printed, expected);
}

#[test]
fn an_address_of_another_machine_is_reported() {
    let printed = Site::new().try_steno(&["serve", "--host", "192.0.2.1"]);
    assert_eq!(
        printed,
        "error: could not listen on 192.0.2.1:7473: Cannot assign requested address (os error 99)\n\
         hint: leave out --host to listen on this machine only\n"
    );
}

#[test]
fn the_system_is_asked_to_open_the_page() {
    use std::os::unix::fs::PermissionsExt;
    let mut site = Site::new();
    let program = site.path().join("bin/xdg-open");
    std::fs::create_dir(program.parent().unwrap()).unwrap();
    let opened = site.path().join("opened");
    std::fs::write(&program, format!("#!/bin/sh\necho \"$@\" > {}\n", opened.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    site.serve_with(&["--port", "0", "--open"]);
    let read = || std::fs::read_to_string(&opened).ok().filter(|text| text.ends_with('\n'));
    let arguments = wait("the browser", read);
    let token = site.first("").split_once("token=").unwrap().1.to_owned();
    assert!(!arguments.contains(&token), "{arguments}");
    let file = Path::new(arguments.trim());
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(file), mode(file.parent().unwrap())), (0o600, 0o700));
    let page = std::fs::read_to_string(file).unwrap();
    let address = page.split("url=").nth(1).unwrap().split('"').next().unwrap();
    assert!(address.contains(&token), "{page}");
    // The file is removed after it has redirected to the page; the page then redirects from our own origin, with the
    // cookie.
    let host = format!("Host: {}", site.at("").replace("http://", ""));
    let (status, answer) =
        asked(&site, &format!("GET {}", address.replace(&site.at(""), "")), &[host]);
    assert!(status == 200 && answer.contains("content=\"0;url=/\""), "{answer}");
    assert!(answer.contains("set-cookie: steno-"), "{answer}");
    assert!(!file.exists() && !file.parent().unwrap().exists());
}

#[test]
fn stopping_the_server_removes_the_file_that_leads_to_the_page() {
    use std::os::unix::fs::PermissionsExt;
    let mut site = Site::new();
    let program = site.path().join("bin/xdg-open");
    std::fs::create_dir(program.parent().unwrap()).unwrap();
    std::fs::write(&program, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let folder = site.path().join("runtime");
    std::fs::create_dir(&folder).unwrap();
    site.serve_in_runtime_dir(&folder, &["--port", "0", "--open"]);
    let count = || std::fs::read_dir(&folder).unwrap().count();
    wait("the file", || (count() == 1).then_some(()));
    site.interrupt();
    assert_eq!(count(), 0);
}

#[test]
fn the_token_becomes_a_cookie_that_scripts_cannot_read() {
    let (site, host, _) = site();
    let first = site.first("/cost").replace(&site.at(""), "");
    let (status, answer) = asked(&site, &format!("GET {first}&by=model"), &[host]);
    assert_eq!(status, 303, "{answer}");
    assert!(answer.contains("location: /cost?by=model\r\n"), "{answer}");
    assert!(answer.contains("HttpOnly; SameSite=Strict"), "{answer}");
    assert!(
        answer.contains("content-security-policy: default-src 'none'; script-src 'self'"),
        "{answer}"
    );
}

#[test]
fn the_api_gives_the_objects_of_the_commands() {
    let (site, host, cookie) = site();
    let pairs = [
        ("/api/sessions", vec!["list", "--json"]),
        ("/api/sessions/claude-code/one/entries", vec!["show", "one", "--json"]),
        ("/api/search?q=hello", vec!["search", "hello", "--json"]),
        ("/api/cost?by=model", vec!["cost", "--by", "model", "--json"]),
        ("/api/cost?by=block", vec!["cost", "--by", "block", "--json"]),
    ];
    for (page, command) in pairs {
        let (status, answer) =
            asked(&site, &format!("GET {page}"), &[host.clone(), cookie.clone()]);
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let objects: Vec<serde_json::Value> = serde_json::from_str(body).unwrap();
        let lines: String = objects.iter().map(|object| format!("{object}\n")).collect();
        assert_eq!((status, lines), (200, site.steno(&command)), "{page}");
    }
}
