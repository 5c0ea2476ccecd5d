"""HTTP: credentials, redirects, certificates, proxies, failures."""

import pytest

from patchq.releases import index
from patchq.releases.index import Session
from patchq.releases.settings import Settings


def get(url, settings, limit=1 << 20):
    with Session(settings) as session, session.get(url, {}) as answer:
        return answer.body(limit)


def settings(**changes):
    return Settings(**({"timeout": 5.0, "retries": 0} | changes))


def authorizations(site):
    return [each.authorization for each in site.asked]


def test_credentials_of_the_index_are_sent_to_it(site):
    site.offer("/simple/demo/", b"page")
    site.password = "user:p@ss"
    url = site.url.replace("//", "//user:p%40ss@") + "/simple"

    with Session(settings(indexes=(url,))) as session:
        with session.get(f"{site.url}/simple/demo/", {}) as answer:
            assert answer.body(10) == b"page"
        assert "p%40ss" not in answer.url


def test_credentials_never_follow_a_redirect_to_another_origin(site, serve):
    storage = serve()
    storage.offer("/blob", b"data")
    site.redirects["/file"] = f"{storage.url}/blob"
    url = site.url.replace("//", "//user:secret@")

    assert get(f"{url}/file", settings(indexes=(f"{url}/simple",))) == b"data"

    assert authorizations(site) == ["Basic dXNlcjpzZWNyZXQ="]
    assert authorizations(storage) == [None]


def test_credentials_in_the_target_of_a_redirect_are_not_used(site, serve):
    storage = serve()
    storage.offer("/blob", b"data")
    site.redirects["/file"] = storage.url.replace("//", "//evil:pw@") + "/blob"

    assert get(f"{site.url}/file", settings()) == b"data"

    assert authorizations(storage) == [None]


def test_credentials_stay_with_a_redirect_on_the_same_origin(site):
    site.offer("/b", b"data")
    site.redirects["/a"] = "/b"

    get(site.url.replace("//", "//u:p@") + "/a", settings())

    assert authorizations(site) == ["Basic dTpw"] * 2


def test_netrc_gives_credentials_and_its_default_entry_goes_nowhere(site, tmp_path):
    site.offer("/a", b"data")
    entry = tmp_path / "netrc"
    entry.write_text("default login me password secret\n")
    get(f"{site.url}/a", settings(netrc=str(entry)))
    entry.write_text("machine 127.0.0.1 login me password secret\n")

    get(f"{site.url}/a", settings(netrc=str(entry)))

    assert authorizations(site) == [None, "Basic bWU6c2VjcmV0"]


def test_a_broken_netrc_is_named(site, tmp_path):
    entry = tmp_path / "netrc"
    entry.write_text("machine\n")

    with pytest.raises(index.ReadError, match="netrc cannot be read"):
        get(site.url, settings(netrc=str(entry)))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, index.ForbiddenError),
        (403, index.ForbiddenError),
        (404, index.AbsentError),
        (410, index.AbsentError),
        (500, index.UnreachableError),
    ],
)
def test_each_refusal_has_its_error(site, status, kind):
    site.before = lambda asked, number: status

    with pytest.raises(kind) as caught:
        get(site.url.replace("//", "//user:secret@") + "/x?signature=hidden", settings())

    assert str(status) in caught.value.why
    assert "secret" not in str(caught.value) + caught.value.why
    assert "hidden" not in str(caught.value) + caught.value.why


def test_what_may_pass_is_tried_again(site):
    site.offer("/a", b"data")
    site.before = lambda asked, number: 503 if number == 0 else None

    assert get(f"{site.url}/a", settings(retries=1)) == b"data"


def test_a_connection_that_dies_before_the_answer_is_tried_again(site):
    def before(asked, number):
        if number == 0:
            raise ConnectionAbortedError

    site.offer("/a", b"data")
    site.before = before

    assert get(f"{site.url}/a", settings(retries=1)) == b"data"


def test_a_redirect_in_circles_ends(site):
    site.redirects["/a"] = "/a"

    with pytest.raises(index.UnreachableError) as caught:
        get(f"{site.url}/a", settings())

    assert "10 redirects" in caught.value.why


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x"])
def test_a_redirect_to_another_scheme_is_refused(site, target):
    site.redirects["/a"] = target

    with pytest.raises(index.UnreachableError) as caught:
        get(f"{site.url}/a", settings())

    assert "redirects from http" in caught.value.why


def test_a_longer_body_than_expected_is_refused(site):
    site.offer("/a", b"x" * 100)

    with pytest.raises(index.UnreachableError) as caught:
        get(f"{site.url}/a", settings(), limit=10)

    assert "10 bytes" in caught.value.why


def test_nobody_there_is_an_error_in_three_parts():
    with pytest.raises(index.UnreachableError, match="cannot be read") as caught:
        get("http://127.0.0.1:9/", settings())

    assert "pip config debug" in caught.value.mend


def test_a_certificate_is_checked(serve, certificate):
    path, context = certificate
    site = serve(context)
    site.offer("/a", b"data")

    with pytest.raises(index.UnreachableError) as caught:
        get(f"{site.url}/a", settings())
    assert "certificate" in caught.value.why.lower()

    assert get(f"{site.url}/a", settings(cert=str(path))) == b"data"


@pytest.mark.parametrize("port", [True, False])
def test_a_trusted_host_is_not_checked(serve, certificate, port):
    site = serve(certificate[1])
    site.offer("/a", b"data")
    host = site.url.removeprefix("https://")

    trusted = (host if port else "127.0.0.1",)

    assert get(f"{site.url}/a", settings(trusted_hosts=trusted)) == b"data"


def test_a_redirect_out_of_https_is_refused(serve, site, certificate):
    safe = serve(certificate[1])
    safe.redirects["/a"] = f"{site.url}/a"

    with pytest.raises(index.UnreachableError) as caught:
        get(f"{safe.url}/a", settings(cert=str(certificate[0])))

    assert "from https to http" in caught.value.why
    assert site.asked == []


def test_a_proxy_is_asked_with_its_own_credentials(site):
    site.offer("http://elsewhere.invalid/a", b"data")
    proxy = site.url.replace("//", "//gate:key@")

    assert get("http://elsewhere.invalid/a", settings(proxies={"http": proxy})) == b"data"

    assert site.asked[0].path == "http://elsewhere.invalid/a"


def test_hosts_of_no_proxy_are_asked_directly(site):
    site.offer("/a", b"data")
    proxies = {"http": "http://127.0.0.1:9", "no": "127.0.0.1"}

    assert get(f"{site.url}/a", settings(proxies=proxies)) == b"data"
