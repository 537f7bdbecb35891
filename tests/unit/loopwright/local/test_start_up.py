"""What the first `lw.tune` of a process loads: a user waits for each import."""

from __future__ import annotations

import subprocess
import sys

SLOW = ("asyncio", "compiler.backends.cuda", "pydantic", "sqlalchemy", "structlog", "xgboost")
"""Modules that take a tenth of a second or more, and that no search for a CPU needs at once."""
OF_THE_CALLER = "import loopwright as lw; lw.tune"
OF_THE_CHILD = "from workers.child.child import _host; _host(0, [])"


def loaded(code: str) -> set[str]:
    """Return the slow modules that a new process has loaded after running code."""
    report = f"import sys; print(*[name for name in {SLOW} if name in sys.modules])"
    command = [sys.executable, "-c", f"{code}\n{report}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return set(ran.stdout.split())


def test_slow_modules_are_not_loaded_before_the_child_starts() -> None:
    assert loaded(OF_THE_CALLER) == set()


def test_the_child_loads_none_of_them() -> None:
    assert loaded(OF_THE_CHILD) == set()
