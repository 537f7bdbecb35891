"""`loopwright workers`: the workers of a server."""

from __future__ import annotations

from rich.table import Table

from loopwright.cli.shared.options import JsonOption, TokenOption, UrlOption
from loopwright.cli.shared.output import console, moment, print_json, print_table
from loopwright.cli.shared.where import server
from service.wire.server_models import WorkerRead


def workers(
    url: UrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the workers of a server."""
    with server(url, token) as client:
        listed = client.workers()
    if as_json:
        print_json(listed)
    elif listed:
        print_table(_table(listed))
    else:
        console.print("no workers: embedded workers start with the next job")


def _table(workers: tuple[WorkerRead, ...]) -> Table:
    table = Table("worker", "host", "measures for", "state", "last seen")
    for worker in workers:
        table.add_row(
            worker.name, worker.host, worker.label, worker.state.value, moment(worker.last_seen_at)
        )
    return table
