"""The two faults from the field, with real parts."""

import shutil
import subprocess

import pytest

from tests import ssh_lab
from tests.field_fault import split_import
from tests.real.conftest import QUEUE
from tests.real.test_kimi_series import digests

pytestmark = pytest.mark.slow

DEEPSEEK = "vllm/model_executor/models/deepseek_v2.py"


def test_an_import_list_without_parentheses_is_refused_before_anything_is_live(
    real, pristine, tmp_path
):
    tree = pristine("0.16.0")
    before = digests(tree)
    broken = tmp_path / "broken"
    shutil.copytree(QUEUE, broken)
    split_import(broken / "0.16.0" / "10-deepseek-v2-aux-states.patch")

    lint = real.run("lint", "--queue", broken, "--release", "0.16.0", "--write")
    push = real.run("push", "-a", "--queue", broken, "--target", tree)

    reason = f"{DEEPSEEK}:83: not Python at column 42: 'from .interfaces import MixtureOfExperts,'"
    assert lint.returncode == 1
    assert reason in lint.stdout
    assert push.returncode == 3
    assert reason in push.stderr
    assert "trailing comma not allowed without surrounding parentheses" in push.stderr
    assert digests(tree) == before
    assert not (tree / ".patchq").exists()


def test_an_annotation_goes_through_a_real_sshd_and_zsh_untouched(real):
    with ssh_lab.folder() as folder:
        home = ssh_lab.Home(folder / "client")
        with ssh_lab.sshd(folder, home.public, shell="zsh") as server:
            home.add("gpu01", server)
            tree, here = folder / "site", folder / "here"
            for place in (tree, here):
                real.good("fetch", "vllm==0.16.0", "--into", place)
            subprocess.run(["chown", "-R", f"{server.user}:", str(tree)], check=True)
            before = digests(tree)
            at = ("--queue", str(QUEUE), "--target", str(tree), "-H", "gpu01")

            real.good("push", "-a", *at, HOME=str(home.path))
            real.good("push", "-a", "--queue", QUEUE, "--target", here)

            text = (tree / DEEPSEEK).read_text()
            assert "aux_hidden_state_layers: tuple[int, ...] = ()" in text
            assert digests(tree) == digests(here)
            assert (tree / DEEPSEEK).owner() == server.user
            assert real.good("top", *at, HOME=str(home.path)).startswith("40-")
            real.good("pop", "-a", *at, HOME=str(home.path))
            assert digests(tree) == before


def test_ssh_itself_is_a_way_to_a_host_too(real):
    with ssh_lab.folder() as folder:
        home = ssh_lab.Home(folder / "client")
        with ssh_lab.sshd(folder, home.public, shell="zsh") as server:
            home.add("gpu01", server)
            tree = folder / "site"
            real.good("fetch", "vllm==0.16.0", "--into", tree)
            subprocess.run(["chown", "-R", f"{server.user}:", str(tree)], check=True)
            ssh = "command:" + " ".join(home.ssh_argv("gpu01"))
            at = ("--queue", str(QUEUE), "--target", str(tree), "-H", ssh)

            real.good("push", "-a", *at)

            assert real.good("check", *at).count(" holds (") == 4
