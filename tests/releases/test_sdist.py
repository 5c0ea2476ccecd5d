"""Source distributions: what a build would install, told without one, or refused.

The oracle is a real setuptools: it makes the source distribution, builds a wheel of it,
and both must have the same text at the same places.
"""

import gzip
import hashlib
import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from patchq.errors import UsageError
from patchq.releases import layout, pages, sdist, versions, wheel
from patchq.releases.fetch import FetchError, fetch
from patchq.releases.sdist import SdistError
from patchq.releases.store import Store, StoreError
from patchq.releases.wheel import WheelError

INFO = b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"
SETUP = (
    b"from setuptools import setup\nsetup(name='demo', packages=['demo'], py_modules=['one'])\n"
)
TEXT = {
    "demo/__init__.py": b"x = 1\n",
    "demo/core.py": b"def run():\n    return 1\n",
    "one.py": b"y = 1\n",
}


def made(texts=TEXT, *, setup=SETUP, top="demo\none\n", egg="demo.egg-info/", **more):
    """Return the files of a source distribution as setuptools leaves them."""
    files = {"PKG-INFO": INFO, "setup.py": setup, **texts}
    files |= {f"{egg}top_level.txt": top.encode(), f"{egg}PKG-INFO": INFO}
    files[f"{egg}SOURCES.txt"] = "\n".join(sorted(files)).encode()
    files |= {name.replace("__", "."): data for name, data in more.items()}
    return {name: data for name, data in files.items() if data is not None}


def tarball(files, *, top="demo-1.0", edit=lambda members: members):
    """Return the bytes of an archive; `edit` may change its list of (TarInfo, bytes)."""
    members = []
    for name, data in files.items():
        member = tarfile.TarInfo(f"{top}/{name}")
        member.size = len(data)
        members.append((member, data))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for member, data in edit(members):
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def read(data, filename="demo-1.0.tar.gz"):
    return sdist.read(io.BytesIO(data), pages.candidate(filename, "file:///x"))


def refused(data):
    with pytest.raises(SdistError, match=r"demo-1\.0\.tar\.gz is refused") as caught:
        read(data)
    return caught.value


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def offer(site):
    """Offer a source distribution on the index's page."""

    def put(files, filename="demo-1.0.tar.gz", *, digest=True):
        data = tarball(files)
        site.offer(f"/files/{filename}", data)
        fragment = f"#sha256={hashlib.sha256(data).hexdigest()}" if digest else ""
        link = f'<a href="/files/{filename}{fragment}">{filename}</a>\n'
        page = site.files.get("/simple/demo/", b"")
        site.offer("/simple/demo/", page + link.encode(), "text/html")
        return data

    return put


def test_modules_are_where_their_names_say():
    text = read(tarball(made()))

    assert {path: data for path, data, _ in text.files} == TEXT
    assert text.dist_info["demo-1.0.dist-info/METADATA"] == INFO
    rows = text.dist_info["demo-1.0.dist-info/RECORD"].decode().splitlines()
    assert [row.split(",")[0] for row in rows] == [*sorted(TEXT), "demo-1.0.dist-info/RECORD"]


def test_what_no_build_installs_is_not_there():
    files = made(
        {**TEXT, "tests/test_core.py": b"", "demo/data/x.json": b"{}", "demo/sub/a.py": b""}
    )

    assert [path for path, _, _ in read(tarball(files)).files] == sorted(TEXT)


def test_a_program_among_the_data_can_be_run_and_a_module_can_not():
    setup = SETUP.replace(b"py_modules=['one']", b"package_data={'demo': ['*.sh']}")
    texts = {"demo/__init__.py": b"", "demo/run.sh": b"#!/bin/sh\n"}

    def edit(members):
        for member, _ in members:
            member.mode = 0o755
        return members

    text = read(tarball(made(texts, setup=setup, top="demo\n"), edit=edit))

    assert [(path, runs) for path, _, runs in text.files] == [
        ("demo/__init__.py", False),
        ("demo/run.sh", True),
    ]


@pytest.mark.parametrize(
    ("setup", "why"),
    [
        ("setup(**metadata)", "its setup.py calls setup(**...)"),
        ("setup(packages=find_all())", "its setup.py computes packages"),
        ("setup(packages=PACKAGES)", "its setup.py computes packages"),
        ("setup(packages=['demo'], cmdclass={'build_py': Build})", "computes cmdclass"),
        ("setup(packages=['demo'], ext_modules=[Extension('c')])", "computes ext_modules"),
        ("setup(packages=['demo'], use_2to3=True)", "gives setup() use_2to3"),
        ("setup(packages=['demo'], package_dir={'demo': 'lib'})", "puts demo elsewhere"),
        ("setup(packages=['demo'], package_dir={'': '../x'})", "takes packages from ../x"),
        ("setup(packages=['demo'], setup_requires=['pbr'])", "its build needs pbr"),
        ("setup(packages='demo')", "what it declares cannot be read"),
        ("setup(packages=['demo', 'gone'])", "it was made with demo, and declares demo, gone"),
        ("setup(packages=['demo', 'demo.gone'])", "its package demo.gone is not there"),
        ("setup(packages=find_packages('src'))", "looked for in src, not in ."),
        ("setup(name='demo')", "it names no packages"),
        ("a = setup()\nsetup(packages=['demo'])", "calls setup() 2 times"),
        ("print 'hello'", "its setup.py cannot be read"),
        pytest.param(
            f"setup({'(' * 5000}1{')' * 5000})", "nested too deeply to be read safely", id="deep"
        ),
        ("setup(packages=['demo'], package_data=['x'])", "what it declares cannot be read"),
        ("setup(packages=['demo'], package_dir=['x'])", "what it declares cannot be read"),
        ("setup(packages=['demo'], package_dir={'': 1})", "what it declares cannot be read"),
        ("setup(packages=find_packages(where=['.', 'x']))", "in more than one folder"),
        ("setup(packages=find_packages(what='x'))", "its setup.py computes packages"),
        ("setup(py_modules=['demo'])", "it has no module demo"),
        ("setup(packages=[], py_modules=[])", "it was made with demo, and declares"),
    ],
)
def test_what_only_a_build_can_tell_is_refused(setup, why):
    error = refused(tarball(made(setup=setup.encode(), top="demo\n")))

    assert error.why.startswith("only a build can tell what it installs: ")
    assert why in error.why
    assert error.mend.startswith("pip wheel --no-deps demo==1.0")


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("setup__cfg", "[build_py]\ncompile=1\n", "its setup.cfg has [build_py]"),
        ("setup__cfg", "[options]\npackages=demo\n", "both setup.py and setup.cfg have packages"),
        ("setup__cfg", "[options]\ncmdclass=\n  x = y.Z\n", "its setup.cfg has cmdclass"),
        ("setup__cfg", "nonsense\n", "its setup.cfg cannot be read"),
        ("setup__cfg", "[options]\nsetup_requires=\n  pbr>=1\n", "its build needs pbr"),
        ("setup__cfg", "[options]\nsetup_requires=a b\n", "its build needs a b"),
        ("pyproject__toml", "[tool.setuptools.packages]\nx=1\n", "packages of another kind"),
        (
            "pyproject__toml",
            "[build-system]\nbuild-backend='flit_core.buildapi'\n",
            "by flit_core",
        ),
        ("pyproject__toml", "[build-system]\nbackend-path=['.']\n", "built by its own code"),
        ("pyproject__toml", "[build-system]\nrequires=['cython>=3']\n", "its build needs cython"),
        ("pyproject__toml", "[tool.setuptools_scm]\nversion_file='v.py'\n", "version into a file"),
        ("pyproject__toml", "[tool.setuptools]\next-modules=[]\n", "has ext_modules"),
        ("pyproject__toml", "[", "its pyproject.toml cannot be read"),
    ],
)
def test_a_setup_file_that_says_more_than_can_be_read_is_refused(name, text, why):
    assert why in refused(tarball(made(**{name: text.encode()}))).why


def test_what_setuptools_did_not_make_is_refused():
    files = {name: data for name, data in made().items() if "egg-info" not in name}

    assert "it was not made by setuptools" in refused(tarball(files)).why


def test_a_module_that_is_not_there_is_no_release():
    files = made({"demo/__init__.py": b"x = 1\n"})

    assert "it has no module one" in refused(tarball(files)).why


def test_an_archive_without_metadata_is_refused():
    files = {name: data for name, data in made().items() if name != "PKG-INFO"}

    assert "it has no PKG-INFO" in refused(tarball(files)).why


def test_a_file_that_is_never_installed_anywhere_is_refused():
    setup = SETUP.replace(b"py_modules=['one']", b"package_data={'demo': ['**/*']}")
    texts = {"demo/__init__.py": b"", "demo/.git/config": b""}

    error = refused(tarball(made(texts, setup=setup, top="demo\n")))

    assert "'demo/.git/config' is refused: it names .git" in error.why


def test_a_link_among_the_packages_is_refused_and_one_elsewhere_is_none_of_ours():
    def link(path):
        def edit(members):
            member = tarfile.TarInfo(f"demo-1.0/{path}")
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            return [*members, (member, b"")]

        return tarball(made(), edit=edit)

    assert "demo/more.py is a link" in refused(link("demo/more.py")).why
    assert len(read(link("README")).files) == 3


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("demo-1.0/../x.py", "is not where it must be"),
        ("other/x.py", "is not where it must be"),
        ("demo-1.0/demo/core.py", "is not where it must be"),
    ],
)
def test_an_odd_path_is_refused(name, why):
    def edit(members):
        return [*members, (tarfile.TarInfo(name), b"")]

    assert why in refused(tarball(made(), edit=edit)).why


@pytest.mark.parametrize("info", [INFO.replace(b"demo", b"evil"), INFO.replace(b"1.0", b"x")])
def test_metadata_of_another_name_or_version_is_refused(info):
    assert "its PKG-INFO is of" in refused(tarball({**made(), "PKG-INFO": info})).why


@pytest.mark.parametrize("data", [b"", b"no archive", gzip.compress(b"no tar" * 200, mtime=0)])
def test_what_is_no_archive_is_refused(data):
    assert refused(data).mend


def test_a_file_with_holes_is_refused():
    member = tarfile.TarInfo("demo-1.0/demo/big.txt")
    member.type = tarfile.GNUTYPE_SPARSE
    block = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    block[386:410] = b"%011o\0%011o\0" % (0, 0)
    block[483:495] = b"%011o\0" % (1 << 30)
    block[148:156] = b"        "
    block[148:156] = b"%06o\0 " % sum(block)

    assert "has holes" in refused(gzip.compress(bytes(block) + bytes(1024), mtime=0)).why


def test_an_archive_that_is_cut_off_is_refused():
    data = tarball(made({"demo/a.py": bytes(range(256)) * 4000}))

    assert refused(data[: len(data) // 2]).mend


@pytest.mark.slow
def test_a_bomb_is_refused_before_it_takes_memory():
    member = tarfile.TarInfo("demo-1.0/demo/big.txt")
    member.size = sdist._TOTAL + 1
    out = io.BytesIO()
    with gzip.open(out, "wb", compresslevel=1) as file:
        file.write(member.tobuf())
        for _ in range(257):
            file.write(bytes(1 << 20))

    assert "it unpacks to more than" in refused(out.getvalue()).why


def test_a_release_without_a_wheel_is_read_from_its_source(site, settings, offer, cache):
    data = offer(made())

    got = fetch("demo==1.0", cache=cache, settings=settings())

    assert (got.release, got.verified, got.files) == ("1.0", "sdist", 3)
    assert (got.wheel, got.wheel_size) == ("demo-1.0.tar.gz", len(data))
    assert got.notes == ()
    store = Store("demo", cache)
    assert store.read("1.0", "demo/core.py") == TEXT["demo/core.py"]
    assert store.installed("1.0") == {*TEXT, "demo-1.0.dist-info/RECORD"}
    site.asked.clear()
    assert fetch("demo==1.0", cache=cache, settings=settings()).already
    assert site.asked == []
    assert fetch("demo", cache=cache, settings=settings()).already
    assert [each.path for each in site.asked] == ["/simple/demo/"]


def test_a_source_that_is_not_the_indexs_is_refused(site, settings, offer, cache):
    offer(made())
    site.files["/files/demo-1.0.tar.gz"] = tarball(made({**TEXT, "demo/core.py": b"evil\n"}))

    with pytest.raises(WheelError, match="is refused") as caught:
        fetch("demo==1.0", cache=cache, settings=settings())

    assert "the index says" in caught.value.why
    assert Store("demo", cache).releases() == ()


def test_without_a_digest_that_is_said(settings, offer, cache):
    offer(made(), digest=False)

    got = fetch("demo==1.0", cache=cache, settings=settings())

    assert got.notes == ("nobody gives its sha256: it was not checked",)


def test_where_there_is_a_wheel_no_source_is_asked_for(site, settings, wheel, offer, cache):
    offer(made())
    site.offer_wheel(wheel())

    got = fetch("demo", cache=cache, settings=settings())

    assert (got.verified, got.wheel) == ("record", "demo-1.0-py3-none-any.whl")
    assert not any(each.path.endswith(".tar.gz") for each in site.asked)


def test_a_wheel_that_comes_later_with_another_text_is_not_put_behind_the_source(
    site, settings, wheel, offer, cache
):
    offer(made())
    fetch("demo==1.0", cache=cache, settings=settings())

    with pytest.raises(StoreError, match=r"another text is kept as 1\.0") as caught:
        fetch(str(wheel()), cache=cache, settings=settings())

    assert "as read from demo-1.0.tar.gz" in caught.value.why


def test_a_name_with_dashes_and_a_local_file_are_understood(tmp_path, settings, cache):
    info = INFO.replace(b"demo", b"My.demo-x")
    files = made(PKG__INFO=info) | {"PKG-INFO": info}
    path = tmp_path / "My.demo-x-1.0.tar.gz"
    path.write_bytes(tarball(files, top="My.demo-x-1.0"))

    got = fetch(str(path), cache=cache, settings=settings())

    assert (got.distribution, got.wheel) == ("my-demo-x", "my_demo_x-1.0.tar.gz")


def test_a_file_whose_name_is_no_distributions_is_a_usage_error(settings, cache):
    with pytest.raises(UsageError, match="nor a source distribution"):
        fetch("./demo.tar.gz", cache=cache, settings=settings())


def test_a_requirement_that_no_source_answers_is_an_error(settings, offer, cache):
    offer(made())

    with pytest.raises(FetchError, match="no wheel answers to demo==2"):
        fetch("demo==2", cache=cache, settings=settings())


def test_a_release_from_source_can_be_laid_out(settings, offer, cache, tmp_path):
    offer(made())
    fetch("demo==1.0", cache=cache, settings=settings())

    layout.lay_out(Store("demo", cache), "1.0", tmp_path / "site")

    code = "import importlib.metadata as m, demo.core, one; print(m.version('demo'))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "site", capture_output=True, text=True
    )
    assert done.stdout == "1.0\n", done.stderr


def test_versions_from_source_are_offered_only_where_there_is_no_wheel(
    site, settings, wheel, offer
):
    offer(made())
    offer(made(), "demo-2.0.tar.gz")
    alone = versions.offered("demo", ">=1", settings=settings())
    site.offer_wheel(wheel())

    assert alone == (("1.0", "2.0"), ())
    assert versions.offered("demo", ">=1", settings=settings()) == (("1.0",), ())


CFG = """
[metadata]
name = demo
version = 1.0
[options]
packages = find:
package_dir =
    = src
include_package_data = true
[options.packages.find]
where = src
exclude =
    demo.tests*
"""
TOML = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "demo"
version = "1.0"
"""
TREE = {
    "demo/__init__.py": "x = 1\n",
    "demo/core.py": "y = 1\n",
    "demo/data/table.json": "{}\n",
    "demo/data/deep/more.txt": "more\n",
    "demo/sub/__init__.py": "",
    "demo/sub/mod.py": "z = 1\n",
    "demo/sub/notes.txt": "n\n",
    "demo/tests/__init__.py": "",
    "demo/tests/test_core.py": "",
    "demo/plain/script.py": "p = 1\n",
    "demo/plain/inner/__init__.py": "",
}
ALL = "recursive-include demo *\nrecursive-include src *\n"
LAYOUTS = {
    "packages": ({}, "setup(name='demo', version='1.0', packages=['demo', 'demo.sub'])", ""),
    "modules": ({"one.py": "1\n"}, "setup(name='demo', version='1.0', py_modules=['one'])", ""),
    "typed": (
        {"demo/py.typed": "", "demo/core.pyi": "y: int\n", "demo/data/more.pyi": ""},
        "setup(name='demo', version='1.0', packages=['demo'])",
        ALL,
    ),
    "find": ({}, "setup(name='demo', version='1.0', packages=find_packages())", ""),
    "excluded": (
        {},
        "setup(name='demo', version='1.0', include_package_data=True, "
        "packages=find_packages(exclude=['demo.tests', 'demo.s*']))",
        ALL,
    ),
    "namespaces": (
        {},
        "setup(name='demo', version='1.0', packages=find_namespace_packages(include=['demo*']))",
        ALL,
    ),
    "data": (
        {},
        "setup(name='demo', version='1.0', packages=['demo', 'demo.sub'], "
        "package_data={'demo': ['data/*', '**/more.txt', 'plain/*.py'], '': ['*.txt']}, "
        "exclude_package_data={'demo.sub': ['notes*']})",
        ALL,
    ),
    "manifest without include": (
        {}, "setup(name='demo', version='1.0', packages=['demo', 'demo.sub'])", ALL
    ),
    "src": (
        {f"src/{path}": text for path, text in TREE.items()},
        "setup(name='demo', version='1.0', packages=find_packages(where='src'), "
        "package_dir={'': 'src'}, include_package_data=True)",
        ALL,
    ),
    "cfg": (
        {"setup.cfg": CFG, **{f"src/{path}": text for path, text in TREE.items()}}, "setup()", ALL
    ),
}  # fmt: skip
TOMLS = {
    "listed": ('[tool.setuptools]\npackages = ["demo", "demo.sub"]\n', ALL),
    "found": (
        '[tool.setuptools.packages.find]\ninclude = ["demo*"]\nexclude = ["demo.tests*"]\n', ALL
    ),
    "no data": (
        '[tool.setuptools]\ninclude-package-data = false\n'
        '[tool.setuptools.packages.find]\nnamespaces = false\ninclude = ["demo*"]\n',
        ALL,
    ),
    "patterns": (
        '[tool.setuptools]\npackages = ["demo"]\n'
        '[tool.setuptools.package-data]\n"*" = ["data/*.json"]\n', ""
    ),
}  # fmt: skip


def setuptools(folder, kind, target):
    """Let the real setuptools make a ``sdist`` or a ``wheel`` of a folder; return its path."""
    target.mkdir()
    code = f"from setuptools import build_meta as b; b.build_{kind}({str(target)!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (path,) = target.iterdir()
    return path


def built(tmp_path, files):
    """Return what patchq tells of a project's source distribution, and what its wheel has."""
    source = tmp_path / "source"
    for name, text in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    archive = setuptools(source, "sdist", tmp_path / "sdist")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path, filter="data")
    made = setuptools(tmp_path / "demo-1.0", "wheel", tmp_path / "wheel")
    with archive.open("rb") as told, made.open("rb") as true:
        found = sdist.read(told, pages.candidate(Path(archive).name, ""))
        return found.files, wheel.read(true, made.name, "demo").files


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_told_of_a_setup_py_is_what_setuptools_builds(tmp_path, name):
    more, call, manifest = LAYOUTS[name]
    tree = {} if any(path.startswith("src/") for path in more) else TREE
    files = {"setup.py": f"from setuptools import *\n{call}\n", **tree, **more}
    files |= {"MANIFEST.in": manifest} if manifest else {}

    told, true = built(tmp_path, files)

    assert told == true
    assert told


@pytest.mark.slow
@pytest.mark.parametrize("name", TOMLS)
def test_what_is_told_of_a_pyproject_toml_is_what_setuptools_builds(tmp_path, name):
    table, manifest = TOMLS[name]
    files = {"pyproject.toml": TOML + table, **TREE}
    files |= {"MANIFEST.in": manifest} if manifest else {}

    told, true = built(tmp_path, files)

    assert told == true
    assert told


@pytest.mark.slow
def test_a_real_release_that_has_no_wheel_is_read(cache):
    got = fetch("docopt==0.6.2", cache=cache)

    assert (got.verified, got.files) == ("sdist", 1)
    assert got.tree.startswith("1573bb217f34")
