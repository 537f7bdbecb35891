"""Models in a fork: it has the memory of its parent, but none of its threads."""

from __future__ import annotations

import os
import subprocess
import sys

USE_MODELS = """
import faulthandler, os, threading
from dataclasses import replace
import numpy as np
from tuner.cost_model.boosting import STORE, boost, score
from tuner.cost_model.cost_model import Samples
from tuner.cost_model.stored_model import decode, encode
from tuner.space.registry import SEARCH_SPACES

rows = np.random.default_rng(0).random((300, SEARCH_SPACES.find("cpu").num_features), np.float32)
samples = [Samples("task", rows, 0.1 + rows[:, 0])]

def use() -> None:
    members = decode(encode(boost(samples, 0, replace(STORE, num_trees=3))))
    score(members, rows)

use()
in_thread = threading.Thread(target=use)  # a search uses its models in a thread
in_thread.start()
in_thread.join()
if (pid := os.fork()) == 0:
    faulthandler.dump_traceback_later(60, exit=True)
    use()
    os._exit(0)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_a_fork_trains_loads_and_asks_models_as_its_parent_did() -> None:
    # Several threads on any host: with a single one, no model ever hung in a fork.
    ran = subprocess.run(
        [sys.executable, "-c", USE_MODELS],
        env={**os.environ, "OMP_NUM_THREADS": "4"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
