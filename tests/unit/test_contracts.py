"""Every public Protocol with several implementations has a contract suite that holds them all.

Protocols are matched by their methods: a class (or a module of functions) implements one if it
defines all of its methods with as many parameters and the same kind of result.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("compiler", "tuner", "workers", "service", "loopwright")
Shape = tuple[int, str]


def shapes(body: list[ast.stmt]) -> dict[str, Shape]:
    """Return the number of parameters and the kind of result of each function of a body."""
    found = {}
    for stmt in body:
        if isinstance(stmt, ast.FunctionDef):
            parameters = [*stmt.args.posonlyargs, *stmt.args.args, *stmt.args.kwonlyargs]
            num = len([p for p in parameters if p.arg not in ("self", "cls")])
            found[stmt.name] = (num, ast.unparse(stmt.returns or ast.Constant(None)).split("[")[0])
    return found


@cache
def definitions() -> list[tuple[str, list[ast.stmt], set[str]]]:
    """Return the name, the body and the bases of each module and of each class."""
    listed: list[tuple[str, list[ast.stmt], set[str]]] = []
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            tree = ast.parse(file.read_text())
            listed.append(
                (".".join(file.relative_to(ROOT).with_suffix("").parts), tree.body, set())
            )
            for node in classes(tree.body):
                bases = {ast.unparse(base).split("[")[0] for base in node.bases}
                listed.append((node.name, node.body, bases))
    return listed


def classes(body: list[ast.stmt]) -> Iterator[ast.ClassDef]:
    """Yield the classes of a module, and the classes inside them."""
    for stmt in body:
        if isinstance(stmt, ast.ClassDef):
            yield stmt
            yield from classes(stmt.body)


def bodies() -> dict[str, dict[str, Shape]]:
    """Return the functions of each class and of each module, without the Protocols."""
    return {name: shapes(body) for name, body, bases in definitions() if "Protocol" not in bases}


def protocols() -> dict[str, dict[str, Shape]]:
    """Return the public Protocols that have methods of their own, except functions' ones."""
    of = {
        name: {n: shape for n, shape in shapes(body).items() if n != "__call__"}
        for name, body, bases in definitions()
        if "Protocol" in bases and not name.startswith("_")
    }
    return {name: methods for name, methods in of.items() if methods}


@pytest.fixture(scope="module")
def implementations() -> dict[str, list[str]]:
    """Return the implementations of each Protocol that has several.

    A fixture, because reading all modules takes seconds, also if other tests run.
    """
    defined = bodies()
    by_protocol = {
        protocol: [name for name, own in defined.items() if methods.items() <= own.items()]
        for protocol, methods in protocols().items()
    }
    return {protocol: names for protocol, names in by_protocol.items() if len(names) > 1}


def test_the_protocols_are_found(implementations: dict[str, list[str]]) -> None:
    expected = {"Measurer", "Comparer", "Library", "ScheduleRule", "JobDriver"}
    assert expected <= implementations.keys()
    assert {"ReplayMeasurer", "WorkerMeasurer"} <= set(implementations["Measurer"])
    assert "workers.libraries.numpy" in implementations["Library"]


def test_a_suite_holds_every_implementation(implementations: dict[str, list[str]]) -> None:
    files = [file.read_text() for file in (ROOT / "tests").rglob("*.py")]
    for protocol, names in implementations.items():
        suite = f"{protocol}Contract"
        assert sum(f"class {suite}" in text for text in files) == 1, f"there is no {suite}"
        holders = "\n".join(text for text in files if re.search(rf"[(,] ?{suite}[,)]", text))
        missing = [name for name in names if name.split(".")[-1] not in holders]
        assert not missing, f"{suite} does not hold {missing}"


def test_every_contract_is_run() -> None:
    """A suite that no test class inherits runs for nothing."""
    contracts: set[str] = set()
    bases: set[str] = set()
    for file in (ROOT / "tests").rglob("*.py"):
        text = file.read_text()
        for node in ast.walk(ast.parse(text)) if "Contract" in text else ():
            if isinstance(node, ast.ClassDef):
                if file.parent.name == "contracts" and node.name.endswith("Contract"):
                    contracts.add(node.name)
                elif file.parent.name != "contracts":
                    bases |= {ast.unparse(base).split("[")[0] for base in node.bases}
    assert contracts
    assert contracts <= bases, f"no test class inherits {sorted(contracts - bases)}"
