"""A registry of npm packages on loopback that serves tarballs from files. Python's standard library only."""

import base64
import hashlib
import io
import json
import tarfile
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class NpmRegistry(ThreadingHTTPServer):
    """The server, which runs while it is a context."""

    daemon_threads = True

    def __init__(self, tarballs):
        super().__init__(("127.0.0.1", 0), RegistryHandler)
        self.tarballs = {path.name: path.read_bytes() for path in tarballs}
        self.documents = dict(map(self.document, self.tarballs))

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"

    def document(self, name):
        """A package's name, and what the registry answers about it: its one version."""
        content = self.tarballs[name]
        manifest = read_manifest(content)
        version = manifest["version"]
        digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
        manifest["dist"] = {"tarball": f"{self.address}/-/{name}", "integrity": f"sha512-{digest}"}
        return manifest["name"], {"name": manifest["name"], "dist-tags": {"latest": version},
                                  "versions": {version: manifest}}

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


def read_manifest(content):
    with tarfile.open(fileobj=io.BytesIO(content)) as files:
        return json.load(files.extractfile("package/package.json"))


class RegistryHandler(BaseHTTPRequestHandler):
    def do_GET(self):
        path = urllib.parse.unquote(self.path).removeprefix("/")
        tarball = self.server.tarballs.get(path.removeprefix("-/"))
        document = self.server.documents.get(path)
        body = tarball or (json.dumps(document).encode() if document else b"{}")
        self.send_response(200 if tarball or document else 404)
        self.send_header("Content-Type", "application/octet-stream" if tarball else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Says nothing."""
