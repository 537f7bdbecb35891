from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack

from workers.engine.worker_index import take_worker_index

CERTIFICATE = "-----BEGIN CERTIFICATE----- a"
HOLDS = f"""
from workers.engine.worker_index import take_worker_index
number, held = take_worker_index({CERTIFICATE!r})
print(number, flush=True)
input()
"""


def test_workers_of_a_host_have_different_numbers_also_in_other_processes() -> None:
    with ExitStack() as stack:
        (zero, first), (one, second) = (
            take_worker_index(CERTIFICATE),
            take_worker_index(CERTIFICATE),
        )
        stack.enter_context(first)
        stack.enter_context(second)
        elsewhere, other = take_worker_index("-----BEGIN CERTIFICATE----- b")
        stack.enter_context(other)
        assert (zero, one, elsewhere) == (0, 1, 0)
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "2\n"
        first.close()
        again, held = take_worker_index(CERTIFICATE)
        stack.enter_context(held)
        process.kill()
        process.communicate()
        freed, held = take_worker_index(CERTIFICATE)
        stack.enter_context(held)
        assert (again, freed) == (0, 2)
