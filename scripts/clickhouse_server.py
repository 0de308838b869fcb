#!/usr/bin/env python3
"""A stand-in for a ClickHouse server: its HTTP interface in front of ClickHouse in this process (PyPI chdb-core).

    clickhouse_server.py FOLDER [--database NAME] [--password TEXT]

Prints its port. It knows what Steno uses: a POST with the query in the parameter `query`, in the body, or both; the
database as a parameter; user and password as headers; errors as status 500 with a text. It runs one query after the
other. What only a real server has, such as users, replication and settings of a session, is not there.
"""

import argparse, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from chdb.session import Session


def handler_for(session, password):
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length)
            if len(body) < length:
                # The client is gone.
                self.close_connection = True
                return
            if password is not None and self.headers.get("X-ClickHouse-Key") != password:
                return self.answer(403, b"Code: 516. DB::Exception: Authentication failed\n")
            options = {name: values[-1] for name, values in parse_qs(urlsplit(self.path).query).items()}
            query = "\n".join(part for part in [options.get("query", ""), body.decode()] if part)
            try:
                with lock:
                    session.query(f"USE {options.get('database', 'default')}")
                    answer = session.query(query, "TabSeparated").bytes() or b""
            except Exception as error:
                return self.answer(500, f"{error}\n".encode())
            self.answer(200, answer)

        def answer(self, status, content):
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, *_):
            pass

    return Handler


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--database", default="steno")
    parser.add_argument("--password")
    args = parser.parse_args()
    session = Session(args.folder)
    session.query(f"CREATE DATABASE IF NOT EXISTS {args.database}")
    # A client that was killed is nothing to report.
    ThreadingHTTPServer.handle_error = lambda *_: None
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_for(session, args.password))
    print(server.server_address[1], flush=True)
    # Ends with whoever started it.
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
