"""Optional parts of the installation: load a module that needs one, or say what to install."""

from __future__ import annotations

import importlib
from typing import Any

from compiler.user_errors import NoResultError

_OWN_PACKAGES = ("compiler", "loopwright", "migrations", "service", "tuner", "workers")


class MissingExtraError(NoResultError, ModuleNotFoundError):
    """A command or a function needs packages of an extra that is not installed."""


def load_extra(module: str, needed_by: str, extra: str = "server") -> Any:
    """Import a module that needs the packages of an extra.

    Args:
        module: The module's full name.
        needed_by: The command or function, as the user wrote it; the message begins with it.
        extra: The extra of `loopwright` that holds these packages.

    Raises:
        MissingExtraError: If one of the packages is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A missing module of our own is a bug, which no installation mends.
        if error.name is None or error.name.partition(".")[0] in _OWN_PACKAGES:
            raise
        raise MissingExtraError(
            f"{needed_by} needs {error.name}, which is not installed: "
            f"pip install 'loopwright[{extra}]'",
            name=error.name,
        ) from error
