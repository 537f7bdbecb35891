"""Benchmarks: each prints a table and writes JSON with its machine, versions, commit and spread.

All are about one core unless they are told otherwise, for the libraries that are compared with
too: they read how many threads they may start when they load, so this is said before anything
else.
"""

import os
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

RESULTS = Path(__file__).parent / "results"
