"""Programs print and verify themselves by what higher rooms provide."""

from __future__ import annotations

import subprocess
import sys

import pytest

from compiler import ops
from compiler.ir.core.program import IRModule
from compiler.ir.text.printer import script


def test_a_program_prints_as_the_printer_does() -> None:
    func = ops.matmul(4, 4, 4)
    assert func.script() == script(func)
    assert IRModule((func,)).script() == script(IRModule((func,)))


@pytest.mark.parametrize("module", ["compiler.ir.core.program", "compiler.ops", "compiler.script"])
def test_whatever_is_imported_first_programs_print(module: str) -> None:
    code = f"import {module}; from compiler import ops; print(ops.relu(4).script())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert "def relu" in done.stdout
