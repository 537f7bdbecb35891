from __future__ import annotations

from collections.abc import Iterator

from compiler.executor.cores import available_cores
from compiler.runtime.measurement import ErrorKind, Measurement
from workers.child.supervisor import ChildStartError
from workers.health.health import WorkerHealth
from workers.health.self_test import PROGRAM, SelfTest
from workers.measure.peak import peak_in_child
from workers.wire.request import MeasureRequest

TESTED = SelfTest("cpu/x", "llvm", run_secs=1.0, noise=0.5, test_secs=0.1)
REQUEST = MeasureRequest("\n@T.prim_func\ndef conv(A: T.handle):\n", "cpu", ("{}", "{}"))


class Runner:
    """Answers a request with what it was given, in place of a child."""

    def __init__(self, *answers: Measurement | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[MeasureRequest] = []

    def measure(self, request: MeasureRequest) -> Iterator[tuple[int, Measurement]]:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        yield 0, answer


def health(runner: Runner, every_secs: float = 0.0) -> WorkerHealth:
    return WorkerHealth(
        runner.measure, TESTED, every_secs=every_secs, measure_peak=lambda: {"1": 1e11}
    )


def test_the_first_sample_is_the_self_test() -> None:
    told = health(Runner()).report()
    assert (told["sample"]["secs"], told["sample"]["noise"]) == (1.5, 0.5)
    assert told["task"] is None


def test_a_sample_is_taken_when_it_is_due_and_not_before() -> None:
    runner = Runner()
    with health(runner, every_secs=3600).working_on(REQUEST):
        pass
    assert runner.asked == []
    runner = Runner(Measurement((2.0, 3.0, 4.0)))
    fit = health(runner)
    with fit.working_on(REQUEST):
        pass
    (asked,) = runner.asked
    assert asked.workload == PROGRAM
    taken = fit.report()["sample"]
    assert (taken["secs"], taken["noise"]) == (3.0, 0.5)
    assert 0 < taken["utilisation"] <= 1


def test_what_it_works_on_is_told_while_it_lasts() -> None:
    fit = health(Runner(), every_secs=3600)
    with fit.working_on(REQUEST):
        task = fit.report()["task"]
        assert (task["workload"], task["target"], task["candidates"]) == ("conv", "cpu", 2)
        assert 0 < fit.report()["utilisation"] <= 1, "the work in hand counts"
    assert fit.report()["task"] is None


def test_a_canary_that_fails_leaves_the_last_sample() -> None:
    failed = Measurement(error=ErrorKind.CRASH, message="it died")
    fit = health(Runner(failed, ChildStartError("no memory")))
    first = fit.report()["sample"]
    fit.look()
    fit.look()
    assert fit.report()["sample"] == first


def test_the_peak_is_measured_once_when_there_is_time() -> None:
    asked: list[int] = []

    def measure_peak() -> dict[str, float]:
        asked.append(1)
        return {"1": 1e11} if len(asked) > 1 else {}

    fit = WorkerHealth(Runner().measure, TESTED, every_secs=3600, measure_peak=measure_peak)
    assert fit.report()["peak_flops"] == {}
    for _ in range(3):
        fit.sample_when_idle()
    assert fit.report()["peak_flops"] == {"1": 1e11}
    assert len(asked) == 2, "what failed is tried again, and what is known is not"


def test_a_peak_is_measured_in_a_process_of_its_own() -> None:
    found = peak_in_child()
    assert set(found) == {"1", str(available_cores())}
    assert found["1"] > 1e8
