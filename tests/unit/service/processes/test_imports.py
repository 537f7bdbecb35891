from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import sys
import loopwright.cli.deployment.coordinator
import service.processes.wiring
print([name for name in ("fastapi", "uvicorn", "service.http") if name in sys.modules])
"""


def test_a_coordinator_imports_no_http_application() -> None:
    """Its imports are most of the time in which it replaces another one."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]", done.stdout
