"""Start-up files and accounts that stand in the way, on a real sshd."""

import asyncio
import itertools
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from patchq.transport import bootstrap
from tests import hostile, shell_lab, ssh_lab

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.getuid() != 0, reason="only root can make users"),
]
PAGE = Path(__file__).parents[2] / "docs" / "hosts.md"


@pytest.fixture
def ground(world):
    with hostile.ground(world) as found:
        yield found


def test_no_login_gets_more_than_its_error_and_the_page_says_which(ground):
    results = asyncio.run(hostile.start_up_files(ground)) + asyncio.run(hostile.accounts(ground))

    assert not [(result, result.faults) for result in results if result.faults]
    assert {(r.title, r.client) for r in results if r.left} == {(hostile.LASTING, "command:ssh")}
    told = [r for r in results if r.word != "done"]
    assert all(r.what and r.why for r in told)
    page = set(PAGE.read_text().splitlines())
    assert [row for row in hostile.table(results).splitlines() if row not in page] == []


def test_canaries_sing_where_a_shell_reads_the_payload(ground):
    # What the test above proves by silence is worth something only if they can sing.
    account = ground.house.accounts["bash"]
    mark = bootstrap.nonce()
    _, payload = bootstrap.payload(mark, writing=True, packed=True).split(b"\n", 1)
    path = {"PATH": f"{ground.folder}:{ssh_lab.PATH}"}

    for shell, text in itertools.product(("bash", "dash", "zsh", "tcsh"), (payload, ground.song)):
        argv = [ssh_lab.tool("setpriv"), f"--reuid={account.name}", "--clear-groups"]
        argv += [ssh_lab.tool(shell)]
        subprocess.run(argv, input=text, env=path, capture_output=True)

        assert ground.sung(account), shell


@pytest.mark.parametrize("client", shell_lab.CLIENTS)
def test_nothing_is_left_on_a_host_whose_client_is_killed(ground, client):
    logins = [x for x in hostile.LOGINS if re.search("cat|fish|for ever|sleep", x.title)]
    # ssh(1) that lost its stderr goes on, as long as its host prints.
    lasting = {hostile.LASTING} | ({hostile.FLOOD} if client == "command:ssh" else set())

    def at_work(shell):
        return hostile.killed(ground, shell, client)

    with ThreadPoolExecutor(len(hostile.SHELLS)) as pool:
        assert list(pool.map(at_work, hostile.SHELLS)) == [[]] * len(hostile.SHELLS)
        for login in logins:
            for shell in hostile.SHELLS:
                ground.prepare(ground.house.accounts[shell], login.line(shell))
            left = dict(zip(hostile.SHELLS, pool.map(at_work, hostile.SHELLS), strict=True))

            wanted = login.title in lasting
            assert {bool(lines) for lines in left.values()} == {wanted}, (login.title, left)
