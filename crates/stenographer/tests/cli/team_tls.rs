//! Connections with TLS to the database of a team: the server's certificate, passwords and client certificates.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::harness::{Home, Output};
use crate::postgres_server::PostgresServer;

/// Only these roles may connect: ada with a password, bob with a certificate. Both need TLS.
const RULES: &str =
    "hostssl all ada 127.0.0.1/32 scram-sha-256\nhostssl all bob 127.0.0.1/32 cert\n";

/// A certificate that signs others.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// A certificate for a person or a host, and its key.
    fn sign(&self, common_name: &str, hosts: &[&str]) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name.push(DnType::CommonName, common_name);
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        (signed.pem(), key.serialize_pem())
    }
}

/// A server with TLS, and the files of its members.
struct TlsTeam {
    server: PostgresServer,
    home: Home,
    password: String,
}

impl TlsTeam {
    fn start() -> Option<Self> {
        let server = PostgresServer::start()?;
        if server.sql("postgres", "SHOW ssl_library").trim().is_empty() {
            eprintln!("left out: this PostgreSQL server is built without TLS");
            return None;
        }
        let home = Home::new();
        home.steno(&["remote", "add", "owner", &server.url("postgres")]).ok();
        home.steno(&["remote", "init", "owner"]).ok();
        let authority = Authority::new("Shop");
        let (certificate, key) = authority.sign("localhost", &["localhost"]);
        for role in ["ada", "bob"] {
            server.add_member(role, "shop");
            let (certificate, key) = authority.sign(role, &[]);
            home.file(&format!("{role}.pem"), certificate);
            home.file(&format!("{role}.key"), key);
        }
        home.file("ca.pem", &authority.pem);
        home.file("other ca.pem", Authority::new("Other").pem);
        let password = ["hunter", "2"].concat();
        server.sql("postgres", "SET password_encryption = 'scram-sha-256'");
        server.sql("postgres", &format!("ALTER ROLE ada PASSWORD '{password}'"));
        let files =
            [("server.pem", certificate), ("server.key", key), ("clients.pem", authority.pem)];
        server.enable_tls(files, RULES);
        Some(Self { server, home, password })
    }

    fn path(&self, name: &str) -> String {
        let path: PathBuf = self.home.path().join(name);
        path.display().to_string().replace(' ', "%20")
    }

    /// Pushes as a role with these options of the URL.
    fn push(&self, role: &str, host: &str, options: &str) -> Output {
        let url = self.server.url_with(role, host, options);
        self.home.steno(&["remote", "remove", "team"]);
        self.home.steno(&["remote", "add", "team", &url]).ok();
        let mut command = self.home.command(&["push", "team"]);
        if role == "ada" {
            command.env("PGPASSWORD", &self.password);
        }
        self.home.finish(command, b"")
    }
}

#[test]
fn only_a_trusted_server_is_told_a_password() {
    let Some(team) = TlsTeam::start() else { return };
    let trusted = format!("sslrootcert={}", team.path("ca.pem"));
    for mode in ["", "sslmode=require&", "sslmode=verify-full&"] {
        team.push("ada", "localhost", &format!("{mode}{trusted}")).ok();
    }
    let refused = [
        ("localhost", "sslmode=disable".to_owned(), "no encryption"),
        (
            "localhost",
            "sslmode=require".to_owned(),
            "not trusted; name its issuer with sslrootcert",
        ),
        (
            "localhost",
            format!("sslmode=verify-full&sslrootcert={}", team.path("other ca.pem")),
            "not trusted; name its issuer with sslrootcert",
        ),
        ("127.0.0.1", format!("sslmode=verify-full&{trusted}"), "for another host name"),
        ("localhost", format!("sslrootcert={}", team.path("none.pem")), "none.pem"),
        ("localhost", "sslmode=always".to_owned(), "unknown sslmode: always"),
    ];
    for (host, options, reason) in refused {
        let output = team.push("ada", host, &options);
        assert_eq!(output.code, 1, "{options}: {output}");
        assert!(output.stderr.contains(reason), "{options}: {output}");
        assert!(!output.stderr.contains(&team.password), "{options}: {output}");
    }
}

#[test]
fn a_role_can_have_a_certificate_instead_of_a_password() {
    let Some(team) = TlsTeam::start() else { return };
    let with = |role: &str| {
        let [ca, certificate, key] =
            ["ca.pem", &format!("{role}.pem"), &format!("{role}.key")].map(|name| team.path(name));
        format!("sslmode=verify-full&sslrootcert={ca}&sslcert={certificate}&sslkey={key}")
    };
    team.push("bob", "localhost", &with("bob")).ok();
    let pretending = team.push("bob", "localhost", &with("ada"));
    assert_eq!(pretending.code, 1, "{pretending}");
    assert!(pretending.stderr.contains("authentication failed"), "{pretending}");
    let without = team.push("bob", "localhost", &format!("sslrootcert={}", team.path("ca.pem")));
    assert_eq!(without.code, 1, "{without}");
    assert!(without.stderr.contains("certificate"), "{without}");
}
