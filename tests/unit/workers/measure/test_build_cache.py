from __future__ import annotations

import pytest

from compiler.executor.artifact import Artifact
from compiler.ir.core.program import PrimFunc
from compiler.ops import matmul
from compiler.target.target import Target
from tests.faults.requests import DEFAULT_TRACE, TARGET
from workers.measure.build_cache import MAX_ARTIFACTS, BuildCache
from workers.measure.measure import build_candidate


class Counting:
    """Builds the same candidate each time, and counts."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._artifact = build_candidate(matmul(4, 4, 4), DEFAULT_TRACE, Target(TARGET))

    def __call__(self, func: PrimFunc, trace: str, target: Target) -> Artifact:
        self.asked.append(trace)
        if trace == "wrong":
            raise ValueError("no such loop")
        return self._artifact


FUNC, GOAL = matmul(4, 4, 4), Target(TARGET)


def test_a_candidate_is_built_once() -> None:
    build = Counting()
    cache = BuildCache(build)
    assert cache(FUNC, "a", GOAL) is cache(FUNC, "a", GOAL)
    cache(FUNC, "b", GOAL)
    cache(FUNC, "a", Target(f"{TARGET} -cache=cold"))
    assert build.asked == ["a", "b", "a"]


def test_an_artifact_of_another_process_is_kept() -> None:
    build = Counting()
    cache = BuildCache(build)
    artifact = build_candidate(FUNC, DEFAULT_TRACE, GOAL)
    cache.keep(FUNC, "a", GOAL, artifact)
    assert cache(FUNC, "a", GOAL) is artifact
    assert build.asked == []
    cache.keep(matmul(4, 4, 8), "a", GOAL, artifact)
    cache(FUNC, "a", GOAL)
    assert build.asked == ["a"]


def test_other_programs_do_not_share_artifacts() -> None:
    build = Counting()
    cache = BuildCache(build)
    for func in (FUNC, matmul(4, 4, 8), FUNC):
        cache(func, "a", GOAL)
    assert build.asked == ["a"] * 3


def test_errors_are_not_kept() -> None:
    build = Counting()
    cache = BuildCache(build)
    for _ in range(2):
        with pytest.raises(ValueError, match="no such loop"):
            cache(FUNC, "wrong", GOAL)
    assert build.asked == ["wrong", "wrong"]


def test_the_latest_artifacts_are_kept() -> None:
    build = Counting()
    cache = BuildCache(build)
    for number in range(MAX_ARTIFACTS + 1):
        cache(FUNC, str(number), GOAL)
    cache(FUNC, str(MAX_ARTIFACTS), GOAL)
    assert len(build.asked) == MAX_ARTIFACTS + 1
    cache(FUNC, "0", GOAL)
    assert len(build.asked) == MAX_ARTIFACTS + 2
