import json

from compiler.schedule.trace.trace import Trace
from compiler.script.parser import parse
from workers.health.self_test import PROGRAM, TRACE


def test_the_known_program_and_trace_are_of_today() -> None:
    assert parse(PROGRAM).name == "self_test"
    assert Trace.from_json(json.loads(TRACE)) == Trace()
