"""Settings, options and fixtures of all tests."""

from __future__ import annotations

import gc
import os
import re
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from compiler.executor.cores import available_cores

# No test fails because the machine is slow. CI tries the same examples each time, so that it fails
# because of a change and not by chance. A developer's run tries new ones.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

# A comparison with libraries takes most of a short job, so only tests of it enable it.
os.environ.setdefault("LOOPWRIGHT_BASELINES", "none")


# The tests of such a folder share a server and its first jobs, which take seconds to begin.
_SHARED_SERVERS = ("tests/browser/", "tests/public/")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadfile`, keep all files of a folder with a shared server in one process."""
    if config.getoption("dist") != "loadfile":
        return None
    scheduling = LoadFileScheduling(config, log)
    file_of = scheduling._split_scope

    def file_or_folder(test: str) -> str:
        return next(
            (folder for folder in _SHARED_SERVERS if test.startswith(folder)), file_of(test)
        )

    scheduling._split_scope = file_or_folder
    return scheduling


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return one process more than cores, because tests of the service wait for other processes."""
    return min(4, available_cores() + 1)


def pytest_collection() -> None:
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave what the collection made to no garbage collector: it lives as long as the process."""
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the skips that `EXPECTED_SKIPS`, if it is set, does not expect."""
    unexpected = _unexpected_skips(terminalreporter)
    if unexpected:
        terminalreporter.section("unexpected skips")
        for name, reason in unexpected:
            terminalreporter.line(f"{name}: {reason}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run with unexpected skips: a missing browser would skip fifty tests."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and _unexpected_skips(reporter) and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _unexpected_skips(reporter: pytest.TerminalReporter) -> list[tuple[str, str]]:
    expected = os.environ.get("EXPECTED_SKIPS")
    if expected is None:
        return []
    skips = [(report.nodeid, str(report.longrepr)) for report in reporter.getreports("skipped")]
    return [(name, why) for name, why in skips if not re.search(expected, why)]
