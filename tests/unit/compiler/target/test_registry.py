"""Kinds of targets, and what is registered for them."""

from __future__ import annotations

import pytest

from compiler.target.registry import KindRegistry, UnknownKindError


def test_a_value_is_loaded_on_first_use_and_once() -> None:
    loads: list[str] = []

    def load() -> str:
        loads.append("cpu")
        return "of CPUs"

    registry: KindRegistry[str] = KindRegistry("thing")
    registry.provide("cpu", load)
    assert registry.kinds == ["cpu"]
    assert not loads
    assert [registry.find("cpu"), registry.find("cpu")] == ["of CPUs", "of CPUs"]
    assert loads == ["cpu"]


def test_a_kind_has_one_value() -> None:
    registry: KindRegistry[int] = KindRegistry("thing")
    registry.provide("cpu", lambda: 1)
    registry.register("toy", 2)
    for kind in ("cpu", "toy"):
        with pytest.raises(ValueError, match=f"'{kind}' targets have a thing already"):
            registry.register(kind, 3)
    assert (registry.find("cpu"), registry.find("toy")) == (1, 2)


def test_an_unknown_kind_is_refused_with_those_that_are_registered() -> None:
    registry: KindRegistry[int] = KindRegistry("thing")
    registry.provide("cpu", lambda: 1)
    registry.register("toy", 2)
    with pytest.raises(UnknownKindError, match=r"no thing for 'tpu' targets: registered: cpu, toy"):
        registry.find("tpu")
    registry.unregister("toy")
    with pytest.raises(UnknownKindError, match=r"registered: cpu$"):
        registry.find("toy")
    registry.unregister("cpu")
    assert registry.find("cpu") == 1
