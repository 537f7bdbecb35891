"""The build backend: setuptools, and the dashboard before a wheel is made.

An editable install leaves the dashboard to `make dashboard`.
"""

from __future__ import annotations

from typing import Any

from npm import NODE_PACKAGE, has_node, run
from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def get_requires_for_build_wheel(settings: Any = None) -> list[str]:
    """Return what a build needs: a Node.js too, if the machine has none."""
    required: list[str] = build_meta.get_requires_for_build_wheel(settings)
    return required if has_node() else [*required, NODE_PACKAGE]


def build_wheel(folder: str, settings: Any = None, metadata: str | None = None) -> str:
    """Build the dashboard, and the wheel that it goes into."""
    run("build")
    name: str = build_meta.build_wheel(folder, settings, metadata)
    return name
