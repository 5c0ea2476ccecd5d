"""Settings are pip's; where pip is at hand, pip itself is the oracle."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from patchq.releases import settings

ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path):
    """Return environment variables of a user without any settings."""
    for name in ("home", "xdg", "venv"):
        (tmp_path / name).mkdir()
    return {
        "HOME": str(tmp_path / "home"),
        "XDG_CONFIG_DIRS": str(tmp_path / "xdg"),
        "VIRTUAL_ENV": str(tmp_path / "venv"),
        "PIP_CONFIG_FILE": os.devnull,
    }


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def conf(index):
    return f"[global]\nindex-url = {index}\n"


def test_without_settings_pips_own_default_is_asked(home):
    command = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
    pips = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True)

    assert settings.load(home).indexes == (pips.stdout.strip(),)


@pytest.mark.slow
def test_without_pip_the_default_is_that_of_the_pip_that_python_brings(home):
    command = (
        f"import sys; sys.path.append({str(ROOT)!r}); from patchq.releases import settings;"
        "print(*settings.load().indexes)"
    )
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", command], env=home, capture_output=True, text=True
    )

    assert said.stdout.split() == list(settings.load(home).indexes), said.stderr


def test_each_level_overrides_the_one_before(home, tmp_path):
    del home["PIP_CONFIG_FILE"]
    named = tmp_path / "named.conf"
    steps = [
        tmp_path / "xdg" / "pip" / "pip.conf",
        tmp_path / "home" / ".pip" / "pip.conf",
        tmp_path / "home" / ".config" / "pip" / "pip.conf",
        tmp_path / "venv" / "pip.conf",
        named,
    ]
    seen = []
    for number, path in enumerate(steps):
        write(path, conf(f"https://{number}"))
        if path is named:
            home["PIP_CONFIG_FILE"] = str(named)
        seen.append(settings.load(home).indexes[0])
    home["PIP_INDEX_URL"] = "https://variable"

    assert seen[1:] == [f"https://{number}" for number in range(1, 5)]
    assert settings.load(home).indexes[0] == "https://variable"


def test_a_named_file_puts_the_users_away_and_the_null_device_all(home, tmp_path):
    write(tmp_path / "home" / ".pip" / "pip.conf", "[global]\nfind-links = /user\n")
    write(tmp_path / "named.conf", conf("https://named"))
    plain = settings.load(home).find_links
    home["PIP_CONFIG_FILE"] = str(tmp_path / "named.conf")

    assert plain == ()
    assert "/user" not in settings.load(home).find_links


@pytest.mark.slow
def test_pip_reads_the_same_files_as_we_do(home, tmp_path):
    del home["PIP_CONFIG_FILE"]
    text = (
        "[global]\nindex-url = https://a\n[install]\nindex-url = https://b\nfind-links =\n x\n y\n"
    )
    write(tmp_path / "home" / ".config" / "pip" / "pip.conf", text)
    command = (
        "import json; from pip._internal.cli.main_parser import parse_command;"
        "from pip._internal.commands import create_command;"
        "options, _ = create_command('install').parse_args(['x']);"
        "print(json.dumps([options.index_url, options.extra_index_urls, options.find_links]))"
    )
    environ = {**home, "PIP_EXTRA_INDEX_URL": "https://c https://d"}
    path = os.pathsep.join(["/usr/bin", "/bin"])
    said = subprocess.run(
        [sys.executable, "-c", command],
        env={**environ, "PATH": path},
        check=True,
        capture_output=True,
        text=True,
    )
    index, extra, links = json.loads(said.stdout)

    ours = settings.load(environ)

    assert ours.indexes == (index, *extra)
    assert ours.find_links == tuple(links)


def test_no_index_leaves_only_links(home):
    home |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/a https://b/links"}

    assert settings.load(home).indexes == ()
    assert settings.load(home).find_links == ("/a", "https://b/links")


def test_uvs_variables_count_where_pips_are_not_set(home):
    home |= {"UV_DEFAULT_INDEX": "mine=https://uv", "UV_INDEX": "https://x y=https://z?a=b"}
    uv = settings.load(home).indexes
    home |= {"PIP_INDEX_URL": "https://pip", "PIP_EXTRA_INDEX_URL": "https://more"}

    assert uv == ("https://uv", "https://x", "https://z?a=b")
    assert settings.load(home).indexes == ("https://pip", "https://more")


def test_certificates_and_hosts_are_read(home):
    home |= {"REQUESTS_CA_BUNDLE": "/r.pem", "SSL_CERT_FILE": "/s.pem"}
    assert settings.load(home).cert == "/r.pem"
    home |= {
        "PIP_CERT": "/p.pem",
        "PIP_CLIENT_CERT": "/c.pem",
        "PIP_TRUSTED_HOST": "a b:81",
        "PIP_TIMEOUT": "7",
        "PIP_RETRIES": "2",
    }

    got = settings.load(home)

    assert (got.cert, got.client_cert, got.trusted_hosts) == ("/p.pem", "/c.pem", ("a", "b:81"))
    assert (got.timeout, got.retries) == (7.0, 2)


@pytest.mark.parametrize(
    ("environ", "host", "found"),
    [
        ({"HTTPS_PROXY": "http://upper", "https_proxy": "http://lower"}, "x", "http://lower"),
        ({"all_proxy": "http://all"}, "x", "http://all"),
        ({"https_proxy": "http://p", "no_proxy": "x.org,y"}, "a.x.org", None),
        ({"https_proxy": "http://p", "PIP_PROXY": "http://pip"}, "x", "http://pip"),
        ({}, "x", None),
    ],
)
def test_the_proxy_of_a_host_is_found(home, environ, host, found):
    assert settings.proxy(settings.load(home | environ), "https", host) == found


def test_netrc_is_the_users_or_the_named_one(home, tmp_path):
    assert settings.load(home).netrc is None
    write(tmp_path / "home" / ".netrc", "")
    assert settings.load(home).netrc == str(tmp_path / "home" / ".netrc")
    assert settings.load(home | {"NETRC": "/other"}).netrc == "/other"


@pytest.mark.parametrize("text", ["index-url = x\n", "[global\n", "[global]\nx\n", "\udcff"])
def test_a_file_that_is_not_pips_format_is_named(home, tmp_path, text):
    path = tmp_path / "venv" / "pip.conf"
    path.write_text(text, errors="surrogateescape")
    del home["PIP_CONFIG_FILE"]

    with pytest.raises(settings.SettingsError, match=r"pip\.conf cannot be read"):
        settings.load(home)


def test_a_number_that_is_none_is_named(home):
    with pytest.raises(settings.SettingsError, match="'retries' is 'many'"):
        settings.load(home | {"PIP_RETRIES": "many"})
