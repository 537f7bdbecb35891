"""A pytest plugin: record which tests use a target, and which of these run code.

`tests/cpus.py` selects tests by this record. `--note-code FILE` appends a line for each such test:
"runs" or "looks", a space, and the name of the test.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from compiler.executor import executor
from compiler.executor.loaded_code import LoadedCode
from compiler.target import cpu as cpu_target

_seen: set[str] = set()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--note-code", metavar="FILE", help="note which tests look at or run code")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--note-code"):
        # The first function reads all facts of a target, the second one loads all code, and the
        # third one refuses packages before that.
        _watch(cpu_target, "parse_options", "looks")
        _watch(LoadedCode, "__init__", "runs")
        _watch(executor, "check_machine", "runs")


def _watch(module: Any, name: str, event: str) -> None:
    watched: Callable[..., Any] = getattr(module, name)

    def call(*args: Any) -> Any:
        _seen.add(event)
        return watched(*args)

    setattr(module, name, call)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    _seen.clear()
    yield
    notes = item.config.getoption("--note-code")
    if notes and _seen:
        event = "runs" if "runs" in _seen else "looks"
        with Path(notes).open("a", encoding="utf-8") as file:
            file.write(f"{event} {item.nodeid}\n")
