"""`docker-compose.yml` as data: its variables replaced, its services in order of their start."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
COMPOSE_FILE = ROOT / "docker-compose.yml"
_VARIABLE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<name>\w+)(?:(?P<kind>:[-?])(?P<word>[^}]*))?\})")


def _untagged(loader: Any, _tag: str, node: yaml.Node) -> Any:
    match node:
        case yaml.MappingNode():
            return loader.construct_mapping(node, deep=True)
        case yaml.SequenceNode():
            return loader.construct_sequence(node, deep=True)
        case yaml.ScalarNode():
            return loader.construct_scalar(node)
        case _:
            raise AssertionError(node)


_LOADER: Any = type("Loader", (yaml.SafeLoader,), {})  # PyYAML has no types
"""Reads the tags `!override` and `!reset` of override files as the values below them."""
_LOADER.add_multi_constructor("!", _untagged)


def read(path: Path = COMPOSE_FILE, variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return a file with its variables replaced by `variables` and its own defaults.

    Raises:
        KeyError: If a variable that the file requires is missing.
    """
    text = path.read_text(encoding="utf-8")
    return dict(_replaced(yaml.load(text, _LOADER), variables or {}))


def start_order(services: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield services in groups: each depends on those of earlier groups only."""
    sorter = TopologicalSorter(
        {
            name: [other for other in service.get("depends_on", {}) if other in services]
            for name, service in services.items()
        }
    )
    sorter.prepare()
    while sorter.is_active():
        group = sorted(sorter.get_ready())
        yield group
        sorter.done(*group)


def _replaced(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, variables) for item in value]
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: _variable(match, variables), value)
    return value


def _variable(match: re.Match[str], variables: Mapping[str, str]) -> str:
    if match["dollar"]:
        return "$"
    if match["name"] in variables:
        return variables[match["name"]]
    if match["kind"] == ":?":
        raise KeyError(match["name"])
    return match["word"] or ""
