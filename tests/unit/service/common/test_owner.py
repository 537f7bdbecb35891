from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

from service.common.owner import Owner


def test_an_owner_survives_its_text() -> None:
    owner = Owner.here()
    assert Owner.parse(str(owner)) == owner
    assert Owner.parse(str(Owner.here(lock=7))).lock == 7


def test_two_owners_in_one_process_differ() -> None:
    assert Owner.here() != Owner.here()


def test_a_living_process_is_not_gone() -> None:
    assert not Owner.here().is_gone()


def test_a_killed_process_is_gone_even_before_it_is_reaped() -> None:
    script = "from service.common.owner import Owner; print(Owner.here(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        owner = Owner.parse(child.stdout.readline().strip())
        assert owner.pid == child.pid
        assert not owner.is_gone()
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and a zombie from now on
        assert owner.is_gone()
    assert owner.is_gone()


def test_a_process_that_got_the_number_of_a_dead_one_is_another() -> None:
    owner = Owner.here()
    assert replace(owner, started=owner.started - 1).is_gone()


def test_nothing_is_known_of_another_place() -> None:
    assert not replace(Owner.here(), machine="elsewhere", pid=2**22, started=1).is_gone()
