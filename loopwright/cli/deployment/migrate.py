"""`loopwright migrate`: create or upgrade the tables of a database, and end."""

from __future__ import annotations

from contextlib import closing

from loopwright.cli.shared.options import LogFormatOption, ServedDbOption
from loopwright.cli.shared.output import console
from service.store.database.database import open_database
from workers.log_format import LogFormat
from workers.logs import configure_logs


def migrate(
    db: ServedDbOption = "sqlite:///loopwright.db",
    _log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Create or upgrade the tables of a database.

    Every part does so when it opens a database. A separate step upgrades before any part starts.
    """
    configure_logs()
    with closing(open_database(db)) as database:
        console.print(f"{database.shown} has the current tables", markup=False, highlight=False)
