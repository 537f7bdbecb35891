"""Record cases: `python -m tests.torch_programs [NAMES]`, with PyTorch installed."""

from __future__ import annotations

import sys

from tests.torch_programs.cases import CASES
from tests.torch_programs.record import record_case
from tests.torch_programs.storage import FILE, load_cases, save_cases

names = sys.argv[1:] or list(CASES)
recorded = {case.name: case for case in (load_cases() if FILE.exists() else [])}
recorded |= {name: record_case(name, CASES[name]) for name in names}
save_cases([recorded[name] for name in CASES])
