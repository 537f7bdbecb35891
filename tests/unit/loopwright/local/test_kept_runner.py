from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from loopwright.local import kept_runner as module
from loopwright.local.kept_runner import kept_runner
from tests.patience import PATIENCE_SECS
from workers.child.supervisor import RunnerClosedError


@pytest.fixture(autouse=True)
def _own_runners(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    idle = module._IdleRunners()
    monkeypatch.setattr(module, "_idle", idle)
    yield
    idle.close()


def test_the_next_call_has_the_same_child() -> None:
    with kept_runner(None) as runner:
        host, child = runner.host(), runner.child_pid
    with kept_runner(None) as again:
        assert again is runner
        assert (again.host(), again.child_pid) == (host, child)


def test_calls_at_the_same_time_have_their_own_runners() -> None:
    with kept_runner(None) as one, kept_runner(None) as other:
        assert one is not other


def test_a_runner_that_was_interrupted_is_closed() -> None:
    with pytest.raises(KeyboardInterrupt), kept_runner(None) as runner:
        raise KeyboardInterrupt
    with pytest.raises(RunnerClosedError):
        runner.host()
    with kept_runner(None) as other:
        assert other is not runner


def test_an_idle_runner_is_closed() -> None:
    with kept_runner(None) as runner:
        pass
    module._idle._drop(runner)
    with pytest.raises(RunnerClosedError):
        runner.host()
    with kept_runner(None) as other:
        assert other is not runner
        module._idle._drop(other)  # its timer rang too late: it is in use
        other.start()


def test_a_fork_has_children_of_its_own() -> None:
    with kept_runner(None) as runner:
        label = runner.host().label
    fork = os.fork()
    if fork == 0:
        signal.alarm(int(PATIENCE_SECS))
        try:
            with kept_runner(None) as other:
                os._exit(0 if other is not runner and other.host().label == label else 1)
        finally:
            os._exit(2)
    assert os.waitpid(fork, 0) == (fork, 0)
    with kept_runner(None) as again:
        assert again.host().label == label
