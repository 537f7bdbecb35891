"""A service of `docker-compose.yml` as a process of this host."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests import postgres
from tests.acceptance.deploy.compose_file import ROOT
from tests.patience import PATIENCE_SECS

_IN_IMAGE = re.findall(
    r"\b(LOOPWRIGHT_\w+)=(\S+)", (ROOT / "Dockerfile").read_text(encoding="utf-8")
)
_OF_TESTS = {"LOOPWRIGHT_BASELINES": "none", "LOOPWRIGHT_LOGS": "text"}
"""Comparisons with libraries would take seconds of each job."""
_PATH = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin"))


@dataclass
class Service:
    """A service, its address, and what stands for its files.

    Attributes:
        definition: Its part of the file.
        folder: A folder for what only it reads or writes.
        hosts: The address of each service.
        paths: The file or folder of this host that stands for a path in the container.
        more_environment: Variables of a test, beside those of the file.
    """

    name: str
    definition: Mapping[str, Any]
    folder: Path
    hosts: Mapping[str, str]
    paths: dict[str, Path] = field(default_factory=dict)
    more_environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def log_end(self) -> str:
        return f"{self.name}:\n{self.log.read_text(errors='replace')[-5000:]}"

    def translated(self, text: str) -> str:
        """Replace names of services, addresses of this service, and paths."""
        names = "|".join(sorted(map(re.escape, self.hosts), key=len, reverse=True))
        text = re.sub(rf"(?<![\w.-])({names})(?=:\d)", lambda found: self.hosts[found[1]], text)
        text = re.sub(r"\b(?:0\.0\.0\.0|127\.0\.0\.1)\b", self.hosts[self.name], text)
        paths = "|".join(sorted(map(re.escape, self.paths), key=len, reverse=True))
        return re.sub(
            rf"(?<![\w.-])({paths})(?![\w.-])" if paths else r"(?!)",
            lambda found: str(self.paths[found[1]]),
            text,
        )

    def prepare(self) -> None:
        """Do what its image does before its command."""

    def command(self) -> list[str]:
        words = [self.translated(word) for word in self.definition["command"]]
        if "build" in self.definition:  # its image has the entry point
            return [sys.executable, "-m", "loopwright", *words]
        return [_program(words[0]), *words[1:]]

    def environment(self) -> dict[str, str]:
        """Return what the image and the file set, and where programs and modules are."""
        given = {**dict(_IN_IMAGE), **self.definition.get("environment", {})}
        return {
            **{name: self.translated(value) for name, value in given.items()},
            **_OF_TESTS,
            "HOME": str(self.folder),
            "PATH": _PATH,
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(self.paths.get("/tmp", self.folder)),
            **self.more_environment,
        }

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=self.environment(),
                start_new_session=True,
            )

    def is_healthy(self) -> bool:
        """Run the health check of the file once."""
        kind, *words = [self.translated(word) for word in self.definition["healthcheck"]["test"]]
        command = ["sh", "-c", *words] if kind == "CMD-SHELL" else [_program(words[0]), *words[1:]]
        checked = subprocess.run(
            command, env=self.environment(), capture_output=True, check=False, timeout=60
        )
        return checked.returncode == 0

    def wait(self, *, restarts: bool = False) -> None:
        """Wait until it is healthy; a step without a health check ends without an error.

        Args:
            restarts: Start it again if it ends, as its policy says: a restarted service does not
                wait for those that it depends on.
        """
        assert self.process is not None
        if "healthcheck" not in self.definition:
            assert self.process.wait(PATIENCE_SECS) == 0, self.log_end()
            return
        deadline = time.monotonic() + PATIENCE_SECS
        while not self.is_healthy():
            if self.process.poll() is not None:
                assert restarts, self.log_end()
                self.start()
            assert time.monotonic() < deadline, self.log_end()
            time.sleep(0.2)

    def processes(self) -> list[psutil.Process]:
        """Return its processes: those of its container."""
        if self.process is None or self.process.poll() is not None:
            return []
        top = psutil.Process(self.process.pid)
        return [top, *top.children(recursive=True)]

    def listening(self) -> list[str]:
        """Return the addresses of its open ports. Children of workers come and go meanwhile."""
        addresses = []
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                sockets = process.net_connections("inet")
                addresses += [s.laddr.ip for s in sockets if s.status == psutil.CONN_LISTEN]
        return addresses

    def kill(self) -> None:
        """Kill all its processes at once, as a container ends."""
        processes = self.processes()
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        assert self.process is not None
        self.process.wait()
        psutil.wait_procs(processes, PATIENCE_SECS)

    def signal_stop(self) -> None:
        """Ask it to stop as a container engine does."""
        if self.process is not None and self.process.poll() is None:
            name = self.definition.get("stop_signal", "SIGTERM")
            self.process.send_signal(signal.Signals[name])


class PostgresService(Service):
    """PostgreSQL of this host, and what its image does at the first start."""

    def prepare(self) -> None:
        postgres.unprivileged(self.folder, self._data, self._sockets)
        superuser = self.translated(self.definition["environment"]["POSTGRES_PASSWORD_FILE"])
        rules = ("--auth-host=scram-sha-256", "--auth-local=trust")
        options = (
            "-U",
            "postgres",
            "-E",
            "UTF8",
            "--locale=C",
            f"--pwfile={superuser}",
            *rules,
            "--no-sync",
        )
        self._run("initdb", "-D", self._data, *options)
        alone = f"-k {self._sockets} -c listen_addresses="
        self._run("pg_ctl", "-D", self._data, "-o", alone, "-w", "-l", self.log, "start")
        try:
            scripts = [path for path in self.paths.values() if path.suffix == ".sh"]
            for script in scripts:
                self._run("sh", script)
        finally:
            self._run("pg_ctl", "-D", self._data, "-w", "stop")

    def command(self) -> list[str]:
        program, *options = super().command()
        listen = ("-D", str(self._data), "-k", str(self._sockets), "-h", self.hosts[self.name])
        return [*postgres.unprivileged(), program, *options, *listen]

    def environment(self) -> dict[str, str]:
        path = os.pathsep.join((str(postgres.find_programs()), _PATH))
        return {**super().environment(), "PATH": path, "PGHOST": str(self._sockets)}

    @property
    def _data(self) -> Path:
        return self.paths["/var/lib/postgresql/data"]

    @property
    def _sockets(self) -> Path:
        return self.paths["/var/run/postgresql"]

    def _run(self, *words: object) -> None:
        done = subprocess.run(
            [*postgres.unprivileged(), *map(str, words)],
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=PATIENCE_SECS,
        )
        assert done.returncode == 0, done.stderr


def _program(name: str) -> str:
    """Return the path of a program: of this Python, of PostgreSQL, or of the host."""
    if name == "python":
        return sys.executable
    found = find_program(name)
    assert found is not None, name
    return found


def find_program(name: str) -> str | None:
    """Return the path of a program of the host; Debian's HAProxy is in a folder of root."""
    return shutil.which(name, path=os.pathsep.join((str(postgres.find_programs()), _PATH)))
