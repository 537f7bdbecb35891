"""Files that earlier versions wrote: records of formats 1 and 2, and a database of revision 0012.

All three hold the same jobs. Version 0.1.0 wrote them before budgets and baselines had new names.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from service.reading.plots import Plots
from service.store.database.database import Database, open_database
from service.store.jobs import jobs
from tests.integration.service.recorded import get, put

EARLIER = Path(__file__).parent / "earlier"
NEW_NAMES = {
    "group": {"trials": "max_trials"},
    "job": {"trials": "max_trials", "seconds": "max_secs"},
    "baseline": {"number": "trial_number"},
}

PACKED = ("i of C, part 1|i of C, part 3|j of C, part 1|j of C, part 3|k of C, part 1"
          "|k of C, part 2")  # fmt: skip
TILED = ("i of C, part 1|i of C, part 2|i of C, part 3|i of C, part 4|j of C, part 1"
         "|j of C, part 2|j of C, part 3|j of C, part 4|k of C, part 1|k of C, part 2"
         "|k of C, part 3")  # fmt: skip
DECIDED: dict[str, tuple[str, list[tuple[tuple[int, ...], ...]]]] = {
    "default": ("", [((),)]),
    "packed_whole": (
        PACKED,
        [((1, 8, 1, 8, 4, 2), (1, 8, 1, 8, 1, 8)), ((1, 8, 1, 8, 4, 2), (2, 8, 1, 8, 1, 8))],
    ),
    "direct": (
        TILED,
        [((4, 2, 1, 1, 1, 2, 1, 4, 1, 1, 8),), ((4, 2, 1, 2, 2, 1, 1, 4, 2, 4, 1),)],
    ),
}
"""By sketches: labels, and what the trials of a job decided, as version 0.1.0 showed them."""


def earlier(name: str) -> bytes:
    return gzip.decompress((EARLIER / f"{name}.gz").read_bytes())


def lines_of(file: bytes) -> list[dict[str, Any]]:
    """Return the lines of a file but its header."""
    return [json.loads(line) for line in file.splitlines()[1:]]


def current(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line of version 2 with the names and fields of the current version."""
    names = NEW_NAMES.get(line["kind"], {})
    added: dict[str, dict[str, Any]] = {
        "job": {"name": None, "note": None, "tags": []},
        "trial": {"is_spot_checked": False, "resources": None, "conditions": None},
    }
    renamed = {names.get(name, name): value for name, value in line.items()}
    return renamed | added.get(line["kind"], {})


@pytest.fixture
def migrated(tmp_path: Path) -> Iterator[Database]:
    """Open a database that an earlier version wrote."""
    file = tmp_path / "earlier.db"
    file.write_bytes(earlier("revision_0012.db"))
    with closing(open_database(f"sqlite:///{file}")) as database:
        yield database


@pytest.mark.on_both_databases
def test_records_of_format_2_are_read(database: Database) -> None:
    file = earlier("records_2.jsonl")
    added = put(database, file)
    assert (added.jobs, added.trials, added.baselines) == (3, 18, 2)
    assert lines_of(get(database)) == [current(line) for line in lines_of(file)]


@pytest.mark.on_both_databases
def test_records_of_format_1_are_read(database: Database) -> None:
    file = earlier("records_1.jsonl")
    added = put(database, file)
    assert (added.jobs, added.trials, added.groups, added.baselines) == (3, 18, 0, 0)
    kinds = {"trial", "final"}
    assert [line for line in lines_of(get(database)) if line["kind"] in kinds] == [
        current(line) for line in lines_of(file) if line["kind"] in kinds
    ]
    jobs = [line for line in lines_of(get(database)) if line["kind"] == "job"]
    assert [(job["max_trials"], job["max_secs"]) for job in jobs] == [
        (job["trials"], job["seconds"]) for job in lines_of(file) if job["kind"] == "job"
    ]


def test_a_database_of_revision_0012_is_migrated(migrated: Database) -> None:
    expected = [current(line) for line in lines_of(earlier("records_2.jsonl"))]
    assert lines_of(get(migrated)) == expected


@pytest.mark.parametrize("earlier_form", ["database", "records"])
def test_decisions_of_earlier_versions_have_labels_and_numbers(
    tmp_path: Path, migrated: Database, earlier_form: str
) -> None:
    with closing(open_database(f"sqlite:///{tmp_path}/new.db")) as new:
        if earlier_form == "records":
            put(new, earlier("records_1.jsonl"))
        database = migrated if earlier_form == "database" else new
        with database.read() as session:
            for job in jobs.newest(session, limit=10):
                for sketch, (labels, rows) in DECIDED.items():
                    found = Plots().decisions(session, job, sketch)
                    assert [decision.name for decision in found.decisions] == list(
                        filter(None, labels.split("|"))
                    )
                    assert found.rows in rows
