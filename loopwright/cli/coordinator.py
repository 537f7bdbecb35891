"""`loopwright coordinator`: what drives jobs, alone."""

from __future__ import annotations

from loopwright.cli.options import NumWorkersOption, ServedDbOption
from service.run_coordinator import run_coordinator


def coordinator(
    db: ServedDbOption = "sqlite:///loopwright.db", workers: NumWorkersOption = 1
) -> None:
    """Drive the jobs of a database with workers of this host, until interrupted.

    Any number of coordinators share a database. One that ends, however it ends, leaves its job to
    the others, with all that was measured.
    """
    run_coordinator(db, workers)
