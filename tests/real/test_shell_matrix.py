"""Every login shell, rc noise, interpreter and client, on a real sshd."""

import os

import pytest

from tests import shell_lab, shell_matrix

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.getuid() != 0, reason="only root can make users"),
]


def test_every_shell_noise_interpreter_and_client_pushes_and_pops(world):
    with shell_lab.house() as house:
        cells = shell_matrix.run(house, world)
        left = {name: account.left() for name, account in house.accounts.items()}

    assert not [cell for cell in cells if cell.fault]
    assert not any(left.values()), left
    shells, pythons = len(shell_lab.SHELLS), len(house.pythons) + 1
    assert len(cells) == shells * pythons * len(shell_matrix.NOISE) * len(shell_lab.CLIENTS)
