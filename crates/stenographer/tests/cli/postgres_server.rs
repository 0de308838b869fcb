//! A PostgreSQL server for a test, in a temporary folder and on a free port.
//!
//! Without a server program, tests that need one print a notice and pass, unless `STENO_POSTGRES=required`.
//! `STENO_POSTGRES_BIN` names the folder of another version's programs.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// Where Debian keeps the server programs.
const DEBIAN_FOLDER: &str = "/usr/lib/postgresql";

/// The user who runs the server where the tests run as root, which PostgreSQL refuses.
const SERVER_USER: &str = "postgres";

/// A running server. Roles log in without a password, except from the test that sets one.
pub(crate) struct PostgresServer {
    folder: TempDir,
    programs: PathBuf,
    port: u16,
}

impl PostgresServer {
    /// Starts a server with an empty database `steno`; `None` without a server program.
    pub(crate) fn start() -> Option<Self> {
        let Some(programs) = find_programs() else {
            let is_required = std::env::var("STENO_POSTGRES").is_ok_and(|text| text == "required");
            assert!(!is_required, "PostgreSQL is required, but there is no server program");
            eprintln!("left out: there is no PostgreSQL server program");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("steno-postgres").tempdir_in("/tmp").unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Self { folder, programs, port };
        if is_root() {
            run_checked(Command::new("chown").arg(SERVER_USER).arg(server.folder.path()));
        }
        let data = server.data();
        server.run_as_server(&format!("initdb -D {data} -A trust -U postgres --no-sync"));
        let options = format!(
            "-p {port} -k {} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=50",
            server.folder.path().display()
        );
        let log = server.folder.path().join("log");
        server.run_as_server(&format!(
            "pg_ctl -D {data} -l {} -o \"{options}\" -w start",
            log.display()
        ));
        server.sql("postgres", "CREATE DATABASE steno");
        Some(server)
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    /// The URL of the database for a role.
    pub(crate) fn url(&self, role: &str) -> String {
        format!("postgres://{role}@127.0.0.1:{}/steno", self.port)
    }

    /// The URL of the database under a host name, with options such as `sslmode=require`.
    pub(crate) fn url_with(&self, role: &str, host: &str, options: &str) -> String {
        format!("postgres://{role}@{host}:{}/steno?{options}", self.port)
    }

    /// Lets the server speak TLS. `rules` are the lines of `pg_hba.conf` for other roles than the owner.
    pub(crate) fn enable_tls(&self, files: [(&str, String); 3], rules: &str) {
        let data = PathBuf::from(self.data());
        let settings = "ssl = on\nssl_cert_file = 'server.pem'\nssl_key_file = 'server.key'\n\
            ssl_ca_file = 'clients.pem'\npassword_encryption = 'scram-sha-256'\n";
        let access = format!("host all postgres 127.0.0.1/32 trust\n{rules}");
        let settings = [("postgresql.auto.conf", settings.to_owned()), ("pg_hba.conf", access)];
        for (name, content) in files.into_iter().chain(settings) {
            let path = data.join(name);
            std::fs::write(&path, content).unwrap();
            run_checked(Command::new("chmod").arg("600").arg(&path));
            if is_root() {
                run_checked(Command::new("chown").arg(SERVER_USER).arg(&path));
            }
        }
        self.run_as_server(&format!("pg_ctl -D {} -w restart", self.data()));
    }

    /// Ends the server without writing what it has in memory, and starts it again.
    pub(crate) fn crash(&self) {
        self.run_as_server(&format!("pg_ctl -D {} -m immediate -w restart", self.data()));
    }

    /// The folder of the programs.
    pub(crate) fn programs(&self) -> std::path::Display<'_> {
        self.programs.display()
    }

    /// A command line of a page, with this server instead of the example.
    pub(crate) fn localised(&self, line: &str) -> String {
        line.replace("db.example.com", &format!("127.0.0.1:{}", self.port))
    }

    /// Variables with which PostgreSQL's own programs find the server.
    pub(crate) fn client_variables(&self) -> [(&'static str, String); 3] {
        let (host, user) = ("127.0.0.1".to_owned(), "postgres".to_owned());
        [("PGHOST", host), ("PGPORT", self.port.to_string()), ("PGUSER", user)]
    }

    /// Runs SQL as the owner of the server. Returns the rows, with `|` between columns.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        let output = self.psql("postgres", database, sql);
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs SQL as any role.
    pub(crate) fn psql(&self, role: &str, database: &str, sql: &str) -> Output {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1"]);
        psql.args(["-p", &self.port.to_string(), "-U", role, "-d", database, "-c", sql]);
        psql.output().unwrap()
    }

    /// Creates a role for a member of a team.
    pub(crate) fn add_member(&self, role: &str, team: &str) {
        self.sql("steno", &format!("CREATE ROLE \"{role}\" LOGIN IN ROLE steno_member"));
        self.sql("steno", &format!("SELECT steno.add_member('{role}', '{team}')"));
    }

    /// Everything in the database, as text.
    pub(crate) fn dump(&self) -> Vec<u8> {
        let mut dump = Command::new(self.programs.join("pg_dump"));
        dump.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", "postgres", "steno"]);
        let output = dump.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// What the server has logged.
    pub(crate) fn log(&self) -> Vec<u8> {
        std::fs::read(self.folder.path().join("log")).unwrap()
    }

    fn run_as_server(&self, command: &str) {
        let line = format!("{}/{command}", self.programs.display());
        let mut shell = match is_root() {
            true => {
                let mut shell = Command::new("su");
                shell.args([SERVER_USER, "-c", &line]);
                shell
            }
            false => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &line]);
                shell
            }
        };
        // The server keeps the output open, so it is not read.
        let null = || std::process::Stdio::null();
        let status = shell.current_dir("/").stdin(null()).stdout(null()).stderr(null()).status();
        assert!(status.unwrap().success(), "{line}");
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.run_as_server(&format!("pg_ctl -D {} -m immediate stop", self.data()));
        if is_root() {
            // The files of the server's user, which the temporary folder removes.
            let _ = std::fs::remove_dir_all(self.folder.path().join("data"));
        }
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn run_checked(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

fn find_programs() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("STENO_POSTGRES_BIN") {
        return Some(PathBuf::from(named));
    }
    let versions = std::fs::read_dir(DEBIAN_FOLDER).ok()?.flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.retain(|folder: &PathBuf| has_server(folder));
    folders.sort();
    folders.pop()
}

fn has_server(folder: &Path) -> bool {
    folder.join("initdb").exists() && folder.join("psql").exists()
}
