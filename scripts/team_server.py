"""A PostgreSQL server for the scripts of the team store, in a temporary folder and on a free port."""

import glob, os, socket, subprocess, tempfile


class Server:
    def __init__(self, programs=None):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        self.programs = programs or (found[-1] if found else None)
        if not self.programs:
            raise SystemExit("no PostgreSQL server program; apt-get install postgresql-15, or --postgres FOLDER")
        self.folder = tempfile.mkdtemp(prefix="steno-postgres")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        if os.geteuid() == 0:
            subprocess.run(["chown", "postgres", self.folder], check=True)
        self.run(f"initdb -D {self.folder}/data -A trust -U postgres --no-sync")
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1"
        self.run(f"pg_ctl -D {self.folder}/data -l {self.folder}/log -o '{options}' -w start")
        self.sql("CREATE DATABASE steno", "postgres")

    def run(self, line):
        line = f"{self.programs}/{line}"
        command = ["su", "postgres", "-c", line] if os.geteuid() == 0 else ["sh", "-c", line]
        subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def restart(self):
        """Ends the server as a power failure would, and starts it again."""
        self.run(f"pg_ctl -D {self.folder}/data -m immediate stop")
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1"
        self.run(f"pg_ctl -D {self.folder}/data -l {self.folder}/log -o '{options}' -w start")

    def sql(self, text, database="steno", role="postgres"):
        command = [f"{self.programs}/psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p",
                   str(self.port), "-U", role, "-d", database, "-c", text]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def url(self, role):
        return f"postgres://{role}@127.0.0.1:{self.port}/steno"

    def add_member(self, role, team):
        self.sql(f"CREATE ROLE {role} LOGIN IN ROLE steno_member")
        self.sql(f"SELECT steno.add_member('{role}', '{team}')")

    def stop(self):
        self.run(f"pg_ctl -D {self.folder}/data -m immediate stop")
        subprocess.run(["rm", "-rf", self.folder])
