"""Trees that pip and uv did not lay out as plain wheels: they work, or are refused."""

import json
import os
import shutil
import sys
import zipfile

import pytest

from patchq.agent import record
from tests.torture import form, packager_lab
from tests.torture.installer_lab import Pip, Uv, fresh
from tests.torture.packager_lab import differing, holds, quiet, run, snapshot

INFO = "demo-1.0.dist-info"
DEBIAN = "/usr/lib/python3/dist-packages"
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    return packager_lab.make(tmp_path_factory.mktemp("trees"))


@pytest.fixture
def tree(lab):
    """The lab with an environment that uv made."""
    fresh(lab, Uv())
    return lab


def push(lab, *where, **more):
    return lab.patchq("push", "-a", "--queue", lab.queue("q"), *where, check=False, **more)


def refused(lab, *sayings, where=(), **more):
    """Check that a push is refused in three parts that say all this, and changes nothing."""
    before = snapshot(lab.place)

    done = push(lab, *where, **more)

    assert done.returncode in (1, 3)
    assert done.stderr.startswith("patchq: ")
    assert "\n  why: " in done.stderr
    assert "\n  mend: " in done.stderr
    assert "Traceback" not in done.stderr
    for saying in sayings:
        assert saying in done.stderr
    assert not differing(before, snapshot(lab.place))


def round_trip(lab, *where, **more):
    """Check that push and pop work, and that the tree is then as it was."""
    before = snapshot(lab.place)
    assert push(lab, *where, **more).returncode == 0
    assert lab.words(*where, **more)["q"] == "current"
    holds(lab, "q")
    lab.patchq("pop", "-a", "--queue", lab.queue("q"), *where, **more)
    assert not differing(before, snapshot(lab.place))


def active(lab):
    """Return options of `patchq` for an environment that is active, and not named."""
    return {"aim": False, "VIRTUAL_ENV": str(lab.place)}


def conda_meta(lab):
    (lab.place / "conda-meta").mkdir()
    files = {"files": [f"lib/python3/site-packages/{INFO}/METADATA"]}
    (lab.place / "conda-meta/demo-1.0-py_0.json").write_text(json.dumps(files))
    return "conda (demo-1.0-py_0)"


def by_conda(lab):
    (lab.site / INFO / "INSTALLER").write_text("conda\n")
    return "installed by conda"


def by_nobody(lab):
    (lab.site / INFO / "INSTALLER").unlink()
    return "no installer that says its name"


@pytest.mark.parametrize("owned", [conda_meta, by_conda, by_nobody])
def test_a_tree_of_another_packager_is_refused_unless_it_is_named(tree, owned):
    refused(tree, owned(tree), "name the environment with --python", **active(tree))
    round_trip(tree)
    form.count("trees", owned.__name__.replace("_", " "), "refused, named works")


def egg_info(site):
    (site / INFO).rename(site / "demo-1.0-py3.11.egg-info")


def egg_link(site):
    (site / "demo.egg-link").write_text("/some/where\n.")
    shutil.rmtree(site / INFO)


def zipped_egg(site):
    shutil.rmtree(site / INFO)
    with zipfile.ZipFile(site / "demo-1.0-py3.11.egg", "w") as egg:
        egg.writestr("demo/a.py", "x = 1\n")
    (site / "easy-install.pth").write_text("./demo-1.0-py3.11.egg\n")


def egg_folder(site):
    (site / "demo-1.0-py3.11.egg").mkdir()
    (site / INFO).rename(site / "demo-1.0-py3.11.egg" / "EGG-INFO")


@pytest.mark.parametrize("make", [egg_info, egg_link, zipped_egg, egg_folder])
def test_an_egg_is_refused_by_its_name(tree, make):
    make(tree.site)

    refused(tree, "demo is installed without a RECORD", "egg", "reinstall it with pip or uv")
    form.count("trees", make.__name__.replace("_", " "), "refused")


def edit_record(site, change):
    path = site / INFO / "RECORD"
    rows = path.read_text().splitlines()
    path.write_text("".join(change(row) + "\n" for row in rows))


RECORDS = {
    "gone": lambda site: (site / INFO / "RECORD").unlink(),
    "empty": lambda site: (site / INFO / "RECORD").write_text(""),
    "absolute": lambda site: edit_record(
        site, lambda row: row.replace("demo/a.py", f"{site}/demo/a.py")
    ),
    "absolute in quotes": lambda site: edit_record(
        site, lambda row: row.replace('"demo/', f'"{site}/demo/')
    ),
    "dotted": lambda site: edit_record(site, lambda row: row.replace("demo/a.py", "./demo/a.py")),
}


@pytest.mark.parametrize("form_of", RECORDS)
def test_a_record_that_does_not_name_the_files_is_refused(tree, form_of):
    RECORDS[form_of](tree.site)

    refused(tree, "RECORD", "reinstall it with pip or uv")
    form.count("trees", f"RECORD {form_of}", "refused")


def quoted(row):
    name, digest, size = row.rsplit(",", 2)
    name = name.strip('"')
    return f'"{name}",{digest},{size}'


def test_a_record_in_quotes_has_one_row_a_file_and_comes_back_as_it_was(tree):
    plain = (tree.site / INFO / "RECORD").read_bytes()
    edit_record(tree.site, quoted)
    before = (tree.site / INFO / "RECORD").read_bytes()

    assert record.digest(before, "demo/a.py") == record.digest(plain, "demo/a.py")
    assert push(tree).returncode == 0

    rows = (tree.site / INFO / "RECORD").read_text().splitlines()
    names = [row.rsplit(",", 2)[0].strip('"') for row in rows]
    assert len(names) == len(set(names))
    assert "demo/b.py" not in names
    assert "demo/with, comma.txt" in names
    tree.patchq("pop", "-a", "--queue", tree.queue("q"))
    assert (tree.site / INFO / "RECORD").read_bytes() == before
    form.count("trees", "RECORD in quotes", "works")


def test_what_pip_left_of_an_interrupted_uninstall_owns_nothing(tree):
    left = tree.site / "~emo-1.0.dist-info"
    shutil.copytree(tree.site / INFO, left)

    round_trip(tree)
    form.count("trees", "~emo of an interrupted pip", "works")


def test_two_owners_of_one_path_are_named(tree):
    packager_lab.packed(tree.wheels, {"demo/a.py": "x = 1\n"}, name="third")
    Uv()(
        *(tree, "pip", "install", "-q", "--python", tree.python, "--no-deps"),
        tree.wheels / "third-1.0-py3-none-any.whl",
    )
    shutil.copy(
        tree.root / "kept" / "uv None" / tree.site.relative_to(tree.place) / "demo/a.py",
        tree.site / "demo/a.py",
    )

    refused(tree, "RECORD of third-1.0.dist-info lists it too")
    form.count("trees", "two owners of one path", "refused")


def test_a_ghost_beside_it_is_told_with_what_removes_it(tree):
    ghost = tree.site / "demo-0.9.dist-info"
    ghost.mkdir()

    refused(tree, "installed twice", f"mend: rm -r {ghost}")
    ghost.rmdir()
    round_trip(tree)
    form.count("trees", "two dist-infos in one folder", "refused")


def test_the_dist_info_that_has_the_files_is_the_one_that_counts(tree):
    shutil.copytree(tree.site / INFO, tree.site / "demo-0.9.dist-info")
    text = (tree.site / "demo-0.9.dist-info/RECORD").read_text()
    rows = [row for row in text.splitlines() if not row.startswith("demo/a.py")]
    (tree.site / "demo-0.9.dist-info/RECORD").write_text("\n".join([*rows, "demo/a.py,,"]) + "\n")

    refused(tree, f"mend: rm -r {tree.site}/demo-0.9.dist-info")
    form.count("trees", "two dist-infos in one folder", "refused")


def test_namespace_packages_that_share_a_folder_do_not_touch_each_other(lab, tmp_path):
    """Queue and wheel are the demo's; another distribution puts a module into its folder."""
    fresh(lab, Uv())
    packager_lab.packed(tmp_path, {"demo/new/theirs.py": "t = 1\n"}, name="theirs")
    Uv()(
        *(lab, "pip", "install", "-q", "--python", lab.python, "--no-deps"),
        tmp_path / "theirs-1.0-py3-none-any.whl",
    )
    before = snapshot(lab.place)

    lab.push("q", "r")
    Uv()(lab, "pip", "uninstall", "-q", "--python", lab.python, "theirs")
    assert lab.words() == {"q": "current", "r": "current"}
    lab.pop("r", "q")
    assert not [path for path in differing(before, snapshot(lab.place)) if "heirs" not in path]
    Uv()(
        *(lab, "pip", "install", "-q", "--python", lab.python, "--no-deps"),
        tmp_path / "theirs-1.0-py3-none-any.whl",
    )
    lab.push("q")
    Uv().uninstall(lab)
    assert {path.name for path in (lab.site / "demo").rglob("*")} == {"new", "theirs.py"}
    form.count("trees", "two distributions share a folder", "works")


BACKEND = """
import os, zipfile
HERE = os.path.dirname(os.path.abspath(__file__))
FINDER = {"__editable___demo_finder.py": "", "__editable__.demo.pth": "import os\\n"}
LINE = {"__editable__.demo.pth": HERE + "\\n"}
def build_editable(folder, config_settings=None, metadata_directory=None):
    info, name = "demo-1.0.dist-info/", "demo-1.0-py3-none-any.whl"
    files = dict(FINDER if os.path.exists(HERE + "/finder") else LINE)
    files[info + "METADATA"] = "Metadata-Version: 2.1\\nName: demo\\nVersion: 1.0\\n"
    files[info + "WHEEL"] = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    files[info + "RECORD"] = "".join(f"{one},,\\n" for one in [*files, info + "RECORD"])
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    return name
"""


def editable(lab, tool, style):
    """Install the demo from a source tree with ``-e``; the backend is in that tree."""
    source = lab.root / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir()
    packager_lab.lay_out(source, packager_lab.files("1.0"))
    (source / "backend.py").write_text(BACKEND)
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "demo"\nversion = "1.0"\n'
    )
    if style == "finder":
        (source / "finder").touch()
    fresh(lab, None)
    words = ("install", "-q", "--no-build-isolation", "--no-index", "-e", source)
    if isinstance(tool, Uv):
        tool(lab, "pip", *words, "--python", lab.python)
    else:
        tool(lab, *words)
    return source


@pytest.mark.parametrize("tool", [Uv(), pytest.param(Pip("newest"), marks=pytest.mark.slow)])
@pytest.mark.parametrize("style", ["pth", "finder"])
@pytest.mark.parametrize("noted", [True, False])
def test_an_editable_install_is_refused_and_its_work_tree_left_alone(lab, tool, style, noted):
    source = editable(lab, tool, style)
    if not noted:  # as tools before PEP 610 leave it
        (lab.site / INFO / "direct_url.json").unlink()
    before = snapshot(source)

    refused(lab, "demo is an editable install", "use git in that tree")

    assert not differing(before, snapshot(source))
    row = lab.audit()["q"]
    assert row["word"] == "no series"
    assert "editable" in row["why"]
    form.count("trees", f"editable, {style}, {tool.name}", "refused")


def test_a_package_that_is_a_link_to_a_work_tree_is_refused(tree):
    """As flit install --symlink does it."""
    away = tree.root / "work-tree"
    shutil.rmtree(away, ignore_errors=True)
    (tree.site / "demo").rename(away)
    (tree.site / "demo").symlink_to(away)
    before = snapshot(away)

    refused(tree, "leads out of the environment")

    assert not differing(before, snapshot(away))
    form.count("trees", "a package that is a link", "refused")


def test_a_target_tree_needs_no_interpreter_and_no_installer(lab):
    shutil.rmtree(lab.place, ignore_errors=True)
    lab.patchq("fetch", lab.wheel("1.0"), "--into", lab.place, aim=False)
    before = snapshot(lab.place)
    where = ("--target", lab.place)

    assert push(lab, *where, aim=False).returncode == 0
    assert lab.words(*where, aim=False)["q"] == "current"
    lab.patchq("pop", "-a", "--queue", lab.queue("q"), *where, aim=False)

    assert not differing(before, snapshot(lab.place))
    form.count("trees", "fetch --into", "works")


def test_scripts_and_headers_keep_their_rows_and_go_with_an_uninstall(tree):
    path = tree.site / INFO / "RECORD"
    outside = [row for row in path.read_text().splitlines() if row.startswith("../")]
    assert len(outside) == 3

    tree.push("q", "r")

    assert [row for row in path.read_text().splitlines() if row.startswith("../")] == outside
    Uv().uninstall(tree)
    left = [path for path in tree.place.rglob("*demo*") if ".patchq" not in path.parts]
    assert [path for path in left if not path.is_dir()] == []  # uv leaves include/.../demo
    form.count("trees", "scripts, headers, data", "works")


def user_site(lab, tmp_path):
    """Install the demo into a user site of the system's Python."""
    env = {"PYTHONUSERBASE": str(tmp_path / "base"), "PATH": "/usr/bin:/bin"}
    packages = run("/usr/bin/python3", "-m", "site", "--user-site", check=False, env=quiet(**env))
    site = packages.stdout.strip()
    where = ("--target", site, "--link-mode", "copy", "--python", "/usr/bin/python3")
    source = ("--no-index", "--find-links", lab.wheels)
    Uv()(lab, "pip", "install", "-q", *source, *where, "demo==1.0")
    return site, env


def test_a_user_site_is_refused_with_its_system_python_unless_that_is_named(lab, tmp_path):
    site, env = user_site(lab, tmp_path)
    before = snapshot(tmp_path)
    named = ("--python", "/usr/bin/python3")

    if os.path.exists(run("/usr/bin/python3", "-c", MARKER).stdout.strip()):
        refused(lab, "managed by the operating system", "name the environment", aim=False, **env)
    assert push(lab, *named, aim=False, **env).returncode == 0

    assert lab.words(*named, aim=False, **env)["q"] == "current"
    code = "import demo.new.n as n; print(n.__file__)"
    assert run("/usr/bin/python3", "-c", code, env=quiet(**env)).stdout.startswith(site)
    lab.patchq("pop", "-a", "--queue", lab.queue("q"), *named, aim=False, **env)
    left = {path for path in differing(before, snapshot(tmp_path)) if "__pycache__" not in path}
    assert not left
    form.count("trees", "user site", "refused, named works")


MARKER = "import os; print(os.path.dirname(os.__file__) + '/EXTERNALLY-MANAGED')"


def test_a_user_site_behind_a_venv_is_installed_twice(lab, tmp_path):
    _, env = user_site(lab, tmp_path)
    fresh(lab, Uv())
    config = lab.place / "pyvenv.cfg"
    plain = config.read_text()
    seen = plain.replace("site-packages = false", "site-packages = true")
    config.write_text(seen)
    if (
        run(lab.python, "-c", "import sys; print(sys.version_info[:2])").stdout
        == run("/usr/bin/python3", "-c", "import sys; print(sys.version_info[:2])").stdout
    ):
        refused(lab, "installed twice", "--target", where=(), PYTHONUSERBASE=env["PYTHONUSERBASE"])
        assert push(lab, "--target", lab.site, aim=False).returncode == 0
    config.write_text(plain)
    assert push(lab).returncode in (0, 2)
    form.count("trees", "one distribution twice on sys.path", "refused")


def deb(lab, version):
    """Build a Debian package of the demo, as dh-python lays it out."""
    root = lab.root / f"deb-{version}"
    site = root / DEBIAN[1:]
    site.mkdir(parents=True)
    run(sys.executable, "-m", "zipfile", "-e", lab.wheel(version), site)
    shutil.rmtree(site / f"demo-{version}.data")
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN/control").write_text(
        f"Package: python3-demo-of-patchq\nVersion: {version}\nArchitecture: all\n"
        "Maintainer: nobody <nobody@example.org>\nDescription: a test\n"
    )
    run("dpkg-deb", "-b", "--root-owner-group", root, lab.root / f"demo-{version}.deb")
    return lab.root / f"demo-{version}.deb"


OVERLAY = """
set -eu
mount --make-rprivate /
mount -t tmpfs none {upper}
for folder in {site} /var/lib/dpkg /var/log /usr/share/doc; do
    new={upper}/new/$folder pad={upper}/pad/$folder
    mkdir -p $new $pad
    mount -t overlay none -o lowerdir=$folder,upperdir=$new,workdir=$pad $folder
done
dpkg -i {first} >&2
say() {{ code=0; "$@" 2>&1 || code=$?; echo "exit $code"; echo ----; }}
say {push}
say {push} --python /usr/bin/python3
say {audit} --python /usr/bin/python3
say dpkg --verify python3-demo-of-patchq
dpkg -i {second} >&2
say {audit} --python /usr/bin/python3
say ls -A {site}/demo {site}/demo/new
say {recover} --python /usr/bin/python3
say ls -A {site}/demo
say dpkg --verify python3-demo-of-patchq
dpkg -r python3-demo-of-patchq >&2
say find {site} -name "demo*"
"""


@only_root
@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir(DEBIAN), reason="no Debian: dpkg puts no Python files here")
def test_a_debian_package_is_refused_unless_named_and_an_upgrade_is_noticed(lab, tmp_path):
    """Real dpkg, in a mount namespace of its own."""
    (tmp_path / "upper").mkdir()
    env = quiet(
        PATH="/usr/bin:/bin:/usr/sbin:/sbin",
        PATCHQ_CACHE=str(lab.root / "cache"),
        PATCHQ_QUEUES=str(lab.root / "queues"),
        HOME=str(lab.root),
        TMPDIR=str(tmp_path),
    )
    patchq = f"{sys.executable} -m patchq"
    queue = f"--queue {lab.queue('q')}"
    script = OVERLAY.format(
        upper=tmp_path / "upper",
        site=DEBIAN,
        first=deb(lab, "1.0"),
        second=deb(lab, "1.1"),
        push=f"{patchq} push -a {queue}",
        audit=f"{patchq} audit {queue}",
        recover=f"{patchq} recover {queue}",
    )
    done = run("unshare", "-m", "bash", "-c", script, env=env, cwd=lab.root, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.split("----\n")

    assert "dpkg (python3-demo-of-patchq)" in said[0]
    assert "mend: name the environment with --python" in said[0]
    assert "Now at patch 60-renamed.patch" in said[1]
    assert "current" in said[2]
    assert f"{DEBIAN}/demo/a.py" in said[3]  # dpkg knows its files by their digests
    assert "orphaned" in said[4]
    assert "demo-1.1.dist-info is there" in said[4]
    assert "n.py" in said[5]  # dpkg takes away what it lists, and no more
    assert "Removing demo/new/n.py, which no installer took away" in said[6]
    assert "new" not in said[7].split()
    assert said[8] == "exit 0\n"
    assert [
        line for line in said[9].splitlines() if "/demo" in line and "/.patchq/" not in line
    ] == []
    form.count("trees", "dpkg", "refused, named works")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["develop", "egg"])
def test_what_old_setuptools_installs_is_refused(lab, how, tmp_path):
    """Real setuptools: develop leaves an egg-link, install an egg."""
    old = tmp_path / "old"
    wanted = ("setuptools==66.1.1", "wheel")
    run(sys.executable, "-m", "pip", "install", "-q", "--target", old, *wanted)
    source = tmp_path / "source"
    packager_lab.lay_out(source, packager_lab.files("1.0"))
    (source / "setup.py").write_text(
        "from setuptools import setup\nsetup(name='demo', version='1.0', packages=['demo'])\n"
    )
    fresh(lab, None)
    words = {"develop": ["develop", "--no-deps"], "egg": ["install"]}[how]
    run(lab.python, "setup.py", "-q", *words, cwd=source, env=quiet(PYTHONPATH=str(old)))
    before = snapshot(source)

    refused(lab, "demo is installed without a RECORD", "egg", "reinstall it with pip or uv")

    assert not differing(before, snapshot(source))
    form.count("trees", f"setuptools {how}", "refused")
