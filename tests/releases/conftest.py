"""Real parts for the tests of releases: wheels built by zipfile, and a server on loopback."""

import base64
import dataclasses
import datetime
import gzip
import hashlib
import http.server
import ipaddress
import re
import ssl
import threading
import zipfile

import pytest

from patchq.releases.settings import Settings

TEXT = {"demo/__init__.py": b"VERSION = 1\n", "demo/deep/core.py": b"def run():\n    return 1\n"}
METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
BINARY = {"demo/_C.so": bytes(range(256)) * 8192}


def row(path, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(data)}"


@pytest.fixture
def wheel(tmp_path):
    """Build a wheel and return its path.

    `edit` may change the list of (ZipInfo, bytes), and `record` RECORD's text.
    """

    def build(files=None, *, name="demo", version="1.0", build="", tag="py3-none-any", **edits):
        files = {**TEXT, **BINARY} if files is None else files
        info = f"{name}-{version}.dist-info"
        files = dict(files) | {
            f"{info}/METADATA": METADATA.format(name=name, version=version).encode(),
            f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\n",
        }
        rows = [*(row(path, data) for path, data in files.items()), f"{info}/RECORD,,"]
        text = "\n".join(rows) + "\n"
        files[f"{info}/RECORD"] = edits.get("record", lambda text: text)(text).encode()
        members = []
        for path, data in files.items():
            member = zipfile.ZipInfo(path)
            member.external_attr = 0o100644 << 16
            binary = path.endswith(".so")
            member.compress_type = zipfile.ZIP_STORED if binary else zipfile.ZIP_DEFLATED
            members.append((member, data))
        members = edits.get("edit", lambda members: members)(members)
        folder = tmp_path / edits.get("folder", "wheels")
        folder.mkdir(exist_ok=True)
        path = folder / "-".join(filter(None, (name, version, build, f"{tag}.whl")))
        with zipfile.ZipFile(path, "w") as archive:
            for member, data in members:
                archive.writestr(member, data)
        return path

    return build


@dataclasses.dataclass
class Asked:
    """One request as the server saw it."""

    path: str
    range: str | None
    authorization: str | None
    encoding: str | None


class Site:
    """What the server offers, how it behaves, and what it was asked."""

    def __init__(self, url):
        self.url = url
        self.files = {}
        self.types = {}
        self.redirects = {}
        self.asked = []
        self.ranges = True
        self.gzip = False
        self.password = None
        # Called with each request and its number for that path; may return a status to answer.
        self.before = lambda asked, number: None
        # Of this many next bodies only the first half is sent.
        self.broken = 0
        # Content-Range of answers from now on, if it is not to be the true one.
        self.lie = None
        self.weak = False

    def offer(self, path, data, kind="application/octet-stream"):
        self.files[path] = data
        self.types[path] = kind

    def offer_wheel(self, wheel, *, digest=True, page="/simple/demo/"):
        """Offer a wheel and add its link to the page of its distribution."""
        data = wheel.read_bytes()
        self.offer(f"/files/{wheel.name}", data)
        fragment = f"#sha256={hashlib.sha256(data).hexdigest()}" if digest else ""
        link = f'<a href="/files/{wheel.name}{fragment}">{wheel.name}</a>\n'
        self.offer(page, self.files.get(page, b"") + link.encode(), "text/html")

    def ranges_of(self, wheel):
        return [each.range for each in self.asked if each.path.endswith(wheel.name)]


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Say nothing: clients here hang up in the middle on purpose."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site = None

    def log_message(self, *_):
        pass

    def do_GET(self):
        site, path = self.site, self.path.partition("?")[0]
        asked = Asked(
            self.path,
            self.headers["Range"],
            self.headers["Authorization"],
            self.headers["Accept-Encoding"],
        )
        number = sum(each.path == self.path for each in site.asked)
        site.asked.append(asked)
        status = site.before(asked, number)
        wanted = site.password and "Basic " + base64.b64encode(site.password.encode()).decode()
        if status is None and wanted and asked.authorization != wanted:
            status = 401
        if status is None and path not in site.files and path not in site.redirects:
            status = 404
        if status is not None:
            return self.answer(status, b"")
        if path in site.redirects:
            return self.answer(302, b"", Location=site.redirects[path])
        return self.send(site.files[path], site.types.get(path))

    def send(self, data, kind):
        site = self.site
        tag = f'"{hashlib.sha256(data).hexdigest()[:12]}"'
        tag = f"W/{tag}" if site.weak else tag
        heads = {"ETag": tag, "Content-Type": kind or "application/octet-stream"}
        if site.gzip:
            return self.answer(200, gzip.compress(data), **heads, **{"Content-Encoding": "gzip"})
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"] or "")
        fresh = self.headers["If-Range"] in (None, None if site.weak else tag)
        if not (site.ranges and found and fresh):
            return self.answer(200, data, **heads)
        start, end = int(found[1]), min(int(found[2]), len(data) - 1)
        heads["Content-Range"] = site.lie or f"bytes {start}-{end}/{len(data)}"
        return self.answer(206, data[start : end + 1], **heads)

    def answer(self, status, data, **heads):
        self.send_response(status)
        for name, value in heads.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.site.broken and len(data) > 1:
            self.site.broken -= 1
            data = data[: len(data) // 2]
            self.close_connection = True
        self.wfile.write(data)


@pytest.fixture
def serve():
    """Start servers; each call returns the `Site` of another one."""
    servers = []

    def start(context=None):
        server = Server(("127.0.0.1", 0), type("Bound", (Handler,), {}))
        scheme = "http"
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
            scheme = "https"
        site = Site(f"{scheme}://127.0.0.1:{server.server_address[1]}")
        server.RequestHandlerClass.site = site
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        servers.append((server, thread))
        return site

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def site(serve):
    return serve()


@pytest.fixture
def settings(site):
    """Return the settings of pip that name the site's index, with changes."""

    def make(**changes):
        fields = {"indexes": (f"{site.url}/simple",), "timeout": 5.0, "retries": 1}
        return Settings(**(fields | changes))

    return make


@pytest.fixture
def certificate(tmp_path):
    """Return the path of a new certificate for 127.0.0.1, and a server's context with it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    start = datetime.datetime(2020, 1, 1)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, start, start.replace(year=2120))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "server.pem"
    plain = serialization.NoEncryption()
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    path.write_bytes(key.private_bytes(pem, form, plain) + made.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return path, context


@pytest.fixture
def rezip():
    """Return a function that changes bytes of a wheel in place."""

    def change(path, old, new, count=1):
        data = path.read_bytes()
        assert old in data
        path.write_bytes(data.replace(old, new, count))

    return change
