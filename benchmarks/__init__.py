"""Benchmarks: each prints a table and writes JSON with its machine, versions, commit and spread.

By default all run on one core, and so do the compared libraries. Libraries read their number of
threads when they load, so it is set here, before anything else.
"""

import os
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

RESULTS = Path(__file__).parent / "results"
