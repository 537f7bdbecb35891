"""The commands of docs/rest.md, run one after another against a service."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn

from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.http.problems import KINDS
from service.store.database.database import Database
from tests.integration.service.tuned import tuned

PAGE = (Path(__file__).parents[3] / "docs" / "rest.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)


@contextmanager
def running(database: Database) -> Iterator[str]:
    """Serve the API alone while the body runs."""
    app = create_app(Dependencies(database))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    # What connects before the server runs waits for it.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_commands_of_the_page_do_what_it_says(database: Database, tmp_path: Path) -> None:
    tuned(database, "matmul:96,96,96")
    with running(database) as url:
        program = "set -euo pipefail\n" + "echo\n".join(COMMANDS)
        ran = subprocess.run(
            ["bash", "-c", program.replace("http://127.0.0.1:8080", url)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "\n304\n" in ran.stdout
    assert ran.stdout.count("event: state") == 1  # that it was queued is not told again
    assert '"pointer":"query/sort"' in ran.stdout


def test_every_type_of_problem_is_on_the_page() -> None:
    table = PAGE.split("## Errors")[1]
    assert set(re.findall(r"`([a-z-]+)`", table)) >= KINDS
