"""Migrate the schema of a database from revision to revision.

The scripts are the files of the package `migrations`. The configuration is made here, so that an
installed Loopwright needs no `alembic.ini`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, text

from service.common.errors import ServeError

VERSION_TABLE = "alembic_version"


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Upgrade the schema within the current transaction of `connection`."""
    command.upgrade(_config(connection), revision)


def downgrade(connection: Connection, revision: str = "base") -> None:
    """Downgrade the schema within the current transaction of `connection`."""
    command.downgrade(_config(connection), revision)


@cache
def head() -> str:
    """Return the newest revision of this version."""
    revision = ScriptDirectory.from_config(_config()).get_current_head()
    assert revision is not None
    return revision


@cache
def is_known(revision: str) -> bool:
    """Return whether this version has the script of `revision`."""
    try:
        return ScriptDirectory.from_config(_config()).get_revision(revision) is not None
    except CommandError:
        return False


def is_current(connection: Connection) -> bool:
    """Return whether a database has exactly this version's schema."""
    versions = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalars().all()
    return versions == [head()]


def refuse_newer(revisions: Iterable[str], database_name: str) -> None:
    """Refuse a database with a revision of a newer version.

    Raises:
        ServeError: If a revision is unknown to this version.
    """
    for revision in revisions:
        if not is_known(revision):
            raise ServeError(
                f"{database_name} was written by a newer version of Loopwright: its schema "
                f"revision is {revision!r}, this version knows up to {head()!r}; "
                "upgrade Loopwright, or use another database"
            )


def _config(connection: Connection | None = None) -> Config:
    spec = find_spec("migrations")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    config = Config()
    # A percent sign in a path would be read as interpolation.
    location = spec.submodule_search_locations[0].replace("%", "%%")
    config.set_main_option("script_location", location)
    config.attributes["connection"] = connection
    return config
