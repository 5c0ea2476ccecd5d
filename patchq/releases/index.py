"""The only door to HTTP: bytes of an index's pages and wheels, by urllib3.

Nothing is decoded on the way: ``Accept-Encoding: identity`` is asked, and another
Content-Encoding on a wheel is refused, since offsets would be wrong. Redirects are
followed by hand: a credential belongs to one origin (scheme, host, port) and is
sent to no other. What the bytes mean is in `pages` and `ranges`.
"""

from __future__ import annotations

import logging
import netrc
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import urllib3

from patchq.errors import PatchqError
from patchq.releases.settings import Settings, proxy

_LOG = logging.getLogger(__name__)
_REDIRECTS = (301, 302, 303, 307, 308)
_TRANSIENT = (408, 429, 500, 502, 503, 504)
_CHUNK = 1 << 18


class ReadError(PatchqError):
    """An index or the server of a wheel could not be read."""


class UnreachableError(ReadError):
    """No answer, or one that broke off."""


class ForbiddenError(ReadError):
    """The server wants credentials, or other ones (401, 403)."""


class AbsentError(ReadError):
    """The server has no such page (404, 410)."""


@dataclass(slots=True)
class Answer:
    """The head of one answer; `chunks` and `body` read what follows, as it was sent."""

    url: str
    status: int
    headers: Mapping[str, str]
    session: Session
    _response: urllib3.BaseHTTPResponse

    def chunks(self, *, decode: bool = False) -> Iterator[bytes]:
        """Yield the body; raise `UnreachableError` where it ends early."""
        try:
            for chunk in self._response.stream(_CHUNK, decode_content=decode):
                self.session.received += len(chunk)
                yield chunk
        except urllib3.exceptions.HTTPError as error:
            raise _unreachable(self.url, error) from error

    def body(self, limit: int, *, decode: bool = False) -> bytes:
        """Return the body; raise `UnreachableError` if it is longer than `limit`."""
        parts, size = [], 0
        for chunk in self.chunks(decode=decode):
            size += len(chunk)
            if size > limit:
                raise _unreachable(self.url, f"more than the {limit} bytes that were expected")
            parts.append(chunk)
        return b"".join(parts)


class Session:
    """Connections to indexes, kept while the ``with`` block runs.

    `requests` and `received` count what went over the wire.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.requests = 0
        self.received = 0
        self._pools: dict[tuple[str | None, bool], urllib3.PoolManager] = {}
        self._netrc: netrc.netrc | None = None
        self._secrets: dict[tuple[str, str, int], str] = {}

    def __enter__(self) -> Session:
        for index in (*self.settings.indexes, *self.settings.find_links):
            self._learn(index)
        return self

    def __exit__(self, *_: object) -> None:
        for pool in self._pools.values():
            pool.clear()

    @contextmanager
    def get(self, url: str, headers: Mapping[str, str]) -> Iterator[Answer]:
        """Ask for `url`, follow redirects, and yield the last answer (2xx or 416).

        Raises: `ForbiddenError`, `AbsentError`, `UnreachableError`. An answer that
        is not read to its end costs its connection, and no more bytes.
        """
        self._learn(url)
        url = plain(url)
        for _ in range(10):
            response = self._send(url, headers)
            try:
                target = _target(url, response)
                if target is None:
                    if response.status not in (200, 206, 416):
                        raise _refused(url, response.status)
                    heads = {name.lower(): value for name, value in response.headers.items()}
                    yield Answer(url, response.status, heads, self, response)
                    return
            finally:
                response.close()
            url = target
        raise _unreachable(url, "more than 10 redirects")

    def _send(self, url: str, headers: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        """Send one request; what may pass with time is tried again."""
        fields = {"User-Agent": "patchq", "Accept-Encoding": "identity", **headers}
        secret = self._secret(url)
        if secret is not None:
            fields["Authorization"] = secret
        for attempt in range(self.settings.retries + 1):
            if attempt:
                time.sleep(min(0.25 * (2 ** (attempt - 1) - 1), 5))
            last = attempt == self.settings.retries
            self.requests += 1
            _LOG.debug("GET %s %s", shown(url), headers.get("Range", ""))
            try:
                response = self._pool(url).request(
                    "GET",
                    url,
                    headers=fields,
                    redirect=False,
                    retries=False,
                    preload_content=False,
                )
            except urllib3.exceptions.HTTPError as error:
                if last or isinstance(error, urllib3.exceptions.SSLError):
                    raise _unreachable(url, error) from error
                continue
            if response.status not in _TRANSIENT or last:
                break
            response.close()
        return response

    def _pool(self, url: str) -> urllib3.PoolManager:
        parts = urllib.parse.urlsplit(url)
        host = parts.hostname or ""
        trusted = any(
            name in (host, f"{host}:{parts.port}") for name in self.settings.trusted_hosts
        )
        through = proxy(self.settings, parts.scheme, host)
        if (through, trusted) not in self._pools:
            self._pools[through, trusted] = _manager(self.settings, through, trusted)
        return self._pools[through, trusted]

    def _learn(self, url: str) -> None:
        """Remember the credentials in a URL for the origin that it names."""
        parts = urllib.parse.urlsplit(url)
        if parts.username is not None and parts.hostname:
            user = urllib.parse.unquote(parts.username)
            password = urllib.parse.unquote(parts.password or "")
            self._secrets.setdefault(_origin(url), _basic(user, password))

    def _secret(self, url: str) -> str | None:
        """Return the Authorization for exactly this origin, or netrc's for this host."""
        known = self._secrets.get(_origin(url))
        if known is not None or self.settings.netrc is None:
            return known
        if self._netrc is None:
            try:
                self._netrc = netrc.netrc(self.settings.netrc)
            except (OSError, netrc.NetrcParseError) as error:
                raise ReadError(
                    f"{self.settings.netrc} cannot be read",
                    why=str(error),
                    mend=f"edit {self.settings.netrc}",
                ) from error
        # Not `authenticators`: its "default" entry would go to any host that is redirected to.
        entry = self._netrc.hosts.get(urllib.parse.urlsplit(url).hostname or "")
        return None if entry is None else _basic(entry[0], entry[2] or "")


def plain(url: str) -> str:
    """Return `url` without credentials and fragment."""
    parts = urllib.parse.urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl()


def shown(url: str) -> str:
    """Return `url` as messages show it: without credentials and a signature."""
    return urllib.parse.urlsplit(plain(url))._replace(query="").geturl()


def _manager(settings: Settings, through: str | None, trusted: bool) -> urllib3.PoolManager:
    options: dict[str, object] = {
        "timeout": urllib3.Timeout(connect=settings.timeout, read=settings.timeout),
        "cert_reqs": "CERT_NONE" if trusted else "CERT_REQUIRED",
        "cert_file": settings.client_cert,
    }
    if settings.cert is not None:
        folder = Path(settings.cert).is_dir()
        options["ca_cert_dir" if folder else "ca_certs"] = settings.cert
    if trusted:
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    if through is None:
        return urllib3.PoolManager(**options)  # type: ignore[arg-type]  # one dict for both
    parts = urllib.parse.urlsplit(through if "://" in through else f"http://{through}")
    secret = None
    if parts.username is not None:
        user, password = parts.username, parts.password or ""
        secret = _basic(urllib.parse.unquote(user), urllib.parse.unquote(password))
    return urllib3.ProxyManager(
        plain(parts.geturl()),
        proxy_headers=None if secret is None else {"Proxy-Authorization": secret},
        **options,  # type: ignore[arg-type]  # one dict for both
    )


def _target(url: str, response: urllib3.BaseHTTPResponse) -> str | None:
    """Return where a redirect leads, None if the answer is not one."""
    location = response.headers.get("Location")
    if response.status not in _REDIRECTS or location is None:
        return None
    target = plain(urllib.parse.urljoin(url, location))
    before, after = (urllib.parse.urlsplit(each).scheme for each in (url, target))
    if after not in ("http", "https") or (before, after) == ("https", "http"):
        raise _unreachable(url, f"it redirects from {before} to {after}: {shown(target)}")
    return target


def _origin(url: str) -> tuple[str, str, int]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"https": 443}.get(parts.scheme, 80)


def _basic(user: str, password: str) -> str:
    return urllib3.make_headers(basic_auth=f"{user}:{password}")["authorization"]


def _refused(url: str, status: int) -> ReadError:
    where = shown(url)
    if status in (401, 403):
        return ForbiddenError(
            f"{where} may not be read",
            why=f"the server answered {status}; the credentials are missing, wrong or expired",
            mend="put user and password into the index's URL or into ~/.netrc",
        )
    kind = AbsentError if status in (404, 410) else UnreachableError
    return kind(
        f"{where} cannot be read",
        why=f"the server answered {status}, expected 200",
        mend="pip config debug",
    )


def _unreachable(url: str, reason: object) -> UnreachableError:
    return UnreachableError(
        f"{shown(url)} cannot be read",
        why=str(reason),
        mend="check the index, certificate and proxy that pip uses: pip config debug",
    )
