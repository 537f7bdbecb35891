"""A private PostgreSQL server for a run of the tests, if its programs are installed."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
from sqlalchemy import URL

from service.store.database.database import Database, open_database
from service.store.schema import METADATA

_NOBODY = "nobody"


def find_programs() -> Path | None:
    """Return the folder of `initdb` and `pg_ctl`: the newest of Debian's, or that of the PATH."""
    of_debian = Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")
    newest = max(of_debian, key=lambda path: int(path.parts[-3]), default=None)
    found = newest or shutil.which("pg_ctl")
    return None if found is None else Path(found).resolve().parent


class Server:
    """A running server on a unix socket, with one database that each test finds empty."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.pid = int((folder / "data" / "postmaster.pid").read_text().split()[0])
        self._execute("CREATE DATABASE loopwright", database="postgres")
        self.url = URL.create(
            "postgresql", "loopwright", database="loopwright", query={"host": str(folder)}
        ).render_as_string()

    def _execute(self, *statements: str, database: str = "loopwright") -> None:
        with psycopg.connect(
            host=str(self._folder), user="loopwright", dbname=database, autocommit=True
        ) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    @contextmanager
    def database(self) -> Iterator[Database]:
        """Open the database, with the current tables and no rows."""
        with closing(open_database(self.url)) as opened:
            yield opened
        # Creating a database or truncating its tables takes longer than most tests.
        self._execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = 'loopwright' AND pid <> pg_backend_pid()",
            "SET session_replication_role = replica",  # foreign keys are not checked
            *(f'DELETE FROM "{table}"' for table in METADATA.tables),
            "SELECT setval(oid::regclass, 1, false) FROM pg_class WHERE relkind = 'S'",
        )


def unprivileged(*folders: Path) -> list[str]:
    """Return what precedes a command of PostgreSQL, which refuses to run as root.

    Root runs it as the user `nobody`, who then owns `folders`.
    """
    if os.geteuid() != 0:
        return []
    nobody = pwd.getpwnam(_NOBODY)
    for folder in folders:
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    ids = [f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
    return ["setpriv", *ids, "--"]


@contextmanager
def serving(
    programs: Path, settings: Sequence[str] = ("fsync=off", "full_page_writes=off")
) -> Iterator[Server]:
    """Run a server while the body runs.

    Args:
        settings: By default no data outlives the body, so writes need not reach the disk.
    """
    # A path in pytest's folders is too long for a socket.
    folder = Path(tempfile.mkdtemp(prefix="lw-pg-"))
    prefix = unprivileged(folder)

    def run(program: str, *options: str) -> None:
        command = [*prefix, str(programs / program), "-D", str(folder / "data"), *options]
        log = folder / "programs.log"
        with log.open("ab") as output:
            done = subprocess.run(
                command, check=False, cwd=folder, stdout=output, stderr=output, timeout=120
            )
        assert done.returncode == 0, log.read_text()

    try:
        run("initdb", "-U", "loopwright", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        options = " ".join(f"-c {setting}" for setting in ("listen_addresses=", *settings))
        log = str(folder / "server.log")
        run("pg_ctl", "-w", "-l", log, "-o", f"-k {folder} {options}", "start")
        try:
            yield Server(folder)
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
