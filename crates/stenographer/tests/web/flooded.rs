//! Many idle connections: the page still answers, and the server's memory does not grow.

use std::net::TcpStream;

use crate::guarded::{asked, site_headers};
use crate::site::{Site, user};

/// More than the server's limit of open files.
const HALF_OPEN: usize = 1_100;

#[test]
fn silent_connections_do_not_keep_the_user_out() {
    let mut site = Site::new();
    site.keep("one", &[user("Hello")]);
    site.serve_with_open_files(1_024);
    let headers = site_headers(&site);
    assert_eq!(asked(&site, "GET /session/claude-code/one", &headers).0, 200);
    let before = memory(&site);
    let address = site.at("").replace("http://", "");
    let silent: Vec<TcpStream> =
        (0..HALF_OPEN).map(|_| TcpStream::connect(&address).unwrap()).collect();
    for _ in 0..20 {
        assert_eq!(asked(&site, "GET /session/claude-code/one", &headers).0, 200);
    }
    let grown = memory(&site).saturating_sub(before);
    assert!(grown < 20 << 10, "{grown} kB more than {before} kB");
    drop(silent);
}

/// Resident memory of the server, in kB.
fn memory(site: &Site) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", site.server_id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
