"""Programs that can be scheduled, but not built."""

from __future__ import annotations

import pytest

from compiler.backends.error import BuildError
from compiler.driver import build, lower
from compiler.passes.common.error import LoweringError
from compiler.schedule.schedule import Schedule
from compiler.script import parse
from loopwright.local.tuning import tune

WITHOUT_RESULT = """
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    B = T.sblock_alloc_buffer((8,))
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + 1.0
"""


def test_a_program_without_a_result_is_scheduled_and_not_built() -> None:
    sch = Schedule(parse(WITHOUT_RESULT))
    sch.split(sch.get_loops("B")[0], [2, 4])
    message = "main: the program writes none of its parameters: it has no result"
    for program in (parse(WITHOUT_RESULT), sch):
        with pytest.raises(BuildError, match=message):
            build(program, "cpu -mcpu=x86-64")
    with pytest.raises(LoweringError, match=message.removeprefix("main: ")):
        lower(parse(WITHOUT_RESULT))
    with pytest.raises(ValueError, match=message):
        tune(parse(WITHOUT_RESULT), max_trials=1)
