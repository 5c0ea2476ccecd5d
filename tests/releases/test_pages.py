"""Pages of indexes, and folders of wheels."""

import json

import pytest

from patchq.releases import pages
from patchq.releases.index import Session
from patchq.releases.settings import Settings

NAME = "demo-1.0-py3-none-any.whl"


@pytest.fixture
def read(site):
    def from_page(page, distribution="demo"):
        with Session(Settings(timeout=5.0, retries=0)) as session:
            return pages.read(session, page, distribution)

    return from_page


def test_an_html_page_is_read(site, read):
    body = f"""<!DOCTYPE html><html><head><base href="/base/"></head><body><a name="x">y</a>
    <a href="../f/{NAME}#sha256=abc" data-requires-python="&gt;=3.8" data-yanked>x</a>
    <a href="demo-1.1%2Bcu130-1-py3-none-any.whl#md5=1" data-yanked="bad">x</a>
    <a href="demo-1.0.tar.gz">x</a><a href="other-1.0-py3-none-any.whl">x</a>
    <a href="demo-broken.whl">x</a></body></html>"""
    site.offer("/simple/demo/", body.encode(), "text/html")

    one, two, source = read(f"{site.url}/simple/demo/")

    assert (one.url, one.sha256) == (f"{site.url}/f/{NAME}", "abc")
    assert (one.requires_python, one.yanked) == (">=3.8", "")
    assert (two.release, two.sha256, two.yanked) == ("1.1+cu130-1", None, "bad")
    assert (source.filename, source.release, source.tags) == (
        "demo-1.0.tar.gz",
        "1.0",
        frozenset(),
    )


def test_a_json_page_is_read(site, read):
    files = [
        {"filename": NAME, "url": "../../f/x", "hashes": {"sha256": "abc"}, "yanked": False},
        {"filename": NAME, "url": "https://other/y", "hashes": {}, "yanked": "bad"},
        {"filename": NAME, "url": "z", "yanked": True, "requires-python": ">=3.8"},
    ]
    body = json.dumps({"files": files}).encode()
    site.offer("/simple/demo/", body, "application/vnd.pypi.simple.v1+json")

    one, two, three = read(f"{site.url}/simple/demo/")

    assert (one.url, one.sha256, one.yanked) == (f"{site.url}/f/x", "abc", None)
    assert (two.url, two.sha256, two.yanked) == ("https://other/y", None, "bad")
    assert (three.yanked, three.requires_python) == ("", ">=3.8")


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"files": [1]}', b'{"files": [{}]}'])
def test_a_page_that_is_not_one_is_named(site, read, body):
    site.offer("/simple/demo/", body, "application/json")

    with pytest.raises(pages.PageError, match="is not a page of an index"):
        read(f"{site.url}/simple/demo/")


def test_a_page_on_a_server_cannot_name_a_file_here(site, read, wheel):
    made = wheel()
    site.offer("/simple/demo/", f'<a href="{made.as_uri()}">x</a>'.encode(), "text/html")

    assert read(f"{site.url}/simple/demo/") == []


def test_an_encoded_page_is_decoded(site, read):
    site.offer("/simple/demo/", f'<a href="{NAME}">x</a>'.encode(), "text/html")
    site.gzip = True

    assert len(read(f"{site.url}/simple/demo/")) == 1


def test_folders_and_file_indexes_are_read(wheel, tmp_path, read):
    made = wheel()
    index = tmp_path / "index" / "demo"
    index.mkdir(parents=True)
    (index / "index.html").write_text(f'<a href="../../wheels/{NAME}">x</a>')

    by_folder = read(made.parent.as_uri())
    by_index = read(index.as_uri() + "/")
    by_index_bare = read(index.as_uri())
    by_page = read((index / "index.html").as_uri())

    for found in (by_folder, by_index, by_index_bare, by_page):
        assert [each.local for each in found] == [made]


def test_every_place_is_asked_in_pips_order(site, wheel, tmp_path, monkeypatch):
    made = wheel()
    site.offer_wheel(made)
    (tmp_path / "local" / "demo").mkdir(parents=True)
    (tmp_path / "local" / "demo" / NAME).write_bytes(made.read_bytes())
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "index.html").symlink_to("index.html")
    monkeypatch.chdir(tmp_path)
    given = Settings(
        indexes=(f"{site.url}/simple/", f"{site.url}/absent", "none", str(tmp_path / "local")),
        find_links=("wheels", str(tmp_path / "gone"), str(tmp_path / "bad")),
        timeout=5.0,
        retries=0,
    )

    with Session(given) as session:
        found, failed = pages.candidates(session, given, "demo")

    assert [each.local is not None for each in found] == [True, False, True]
    assert failed == ()


def test_an_index_that_refuses_is_told(site):
    site.before = lambda asked, number: 403
    given = Settings(indexes=(f"{site.url}/simple",), timeout=5.0, retries=0)

    with Session(given) as session:
        found, failed = pages.candidates(session, given, "demo")

    assert found == ()
    assert "answered 403" in failed[0]
