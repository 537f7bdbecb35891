"""All services of `docker-compose.yml` as processes, because tests have no container engine.

Each service has an address of its own in 127.0.0.0/8, so ports stay as they are. A folder stands
for its files: its secrets and no others, its mounted files, its volumes. Commands, environment,
mounted files and health checks are those of the file; names of hosts, addresses and paths change.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.acceptance.deploy.compose_file import ROOT, read, start_order
from tests.acceptance.deploy.service_process import PostgresService, Service
from tests.patience import PATIENCE_SECS


class Stack:
    """The services without a profile, in a folder of their own.

    Attributes:
        services: Each service by its name.
        secrets: The folder that `deploy/make-secrets` has filled.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = read()
        used = {
            name: definition
            for name, definition in self._file["services"].items()
            if not definition.get("profiles")
        }
        # The process id keeps the addresses of concurrent runs apart.
        network = f"127.{64 + os.getpid() // 250 % 128}.{os.getpid() % 250}"
        hosts = {name: f"{network}.{number}" for number, name in enumerate(used, 1)}
        self.secrets = _make_secrets(folder)
        self.services = {name: self._service(name, used[name], hosts) for name in used}
        self._seen: set[psutil.Process] = set()

    def url(self, service: str, port: int) -> str:
        return f"http://{self.services[service].hosts[service]}:{port}"

    def start(self) -> None:
        """Start all services: each after those that it depends on are healthy."""
        definitions = {name: service.definition for name, service in self.services.items()}
        for group in start_order(definitions):
            for name in group:
                self.services[name].prepare()
                self.services[name].start()
            for name in group:
                self.services[name].wait()

    def kill(self, *names: str) -> None:
        """Kill services; they must have a policy that restarts them."""
        for name in names:
            assert self.services[name].definition["restart"] == "unless-stopped"
            self._seen.update(self.services[name].processes())
            self.services[name].kill()

    def restart(self, *names: str) -> None:
        """Start killed services again, as a container engine does, and wait for them."""
        for name in names:
            self.services[name].start()
        for name in names:
            self.services[name].wait(restarts=True)

    def stop(self) -> dict[str, int]:
        """Stop all services, those first on which none depends; return their exit codes."""
        definitions = {name: service.definition for name, service in self.services.items()}
        codes: dict[str, int] = {}
        for group in reversed(list(start_order(definitions))):
            services = [self.services[name] for name in group if self.services[name].process]
            for service in services:
                self._seen.update(service.processes())
                service.signal_stop()
            for service in services:
                assert service.process is not None
                codes[service.name] = service.process.wait(PATIENCE_SECS)
        return codes

    def orphans(self) -> list[psutil.Process]:
        """Return processes of the services that are still alive, after a while."""
        return list(psutil.wait_procs(self._seen, timeout=10)[1])

    def end(self) -> None:
        """Kill what is left, after any failure."""
        for service in self.services.values():
            if service.process is not None:
                service.kill()

    def _service(self, name: str, definition: dict[str, object], hosts: dict[str, str]) -> Service:
        kind = PostgresService if name == "postgres" else Service
        service = kind(name, definition, self._folder / name, hosts)
        service.folder.mkdir(mode=0o755)
        for entry in service.definition.get("tmpfs", ()):
            service.paths[entry.split(":")[0]] = service.folder / "tmpfs" / entry.split(":")[0][1:]
        for secret in service.definition.get("secrets", ()):
            given = ROOT / self._file["secrets"][secret]["file"]
            place = service.folder / "secrets" / secret
            place.parent.mkdir(exist_ok=True)
            shutil.copy(self.secrets / given.name, place)
            service.paths[f"/run/secrets/{secret}"] = place
        mounted = [entry.split(":") for entry in service.definition.get("volumes", ())]
        for source, target, *_ in mounted:
            is_volume = source in self._file["volumes"]
            place = self._folder / "volumes" / source if is_volume else service.folder / target[1:]
            service.paths[target] = place
        for folder in (path for path in service.paths.values() if not path.suffix):
            if not folder.is_file():
                folder.mkdir(parents=True, exist_ok=True)
        for source, target, *_ in mounted:
            if source not in self._file["volumes"]:
                place = service.paths[target]
                place.parent.mkdir(parents=True, exist_ok=True)
                text = (ROOT / source).read_text(encoding="utf-8")
                place.write_text(service.translated(text), encoding="utf-8")
        return service


def _make_secrets(folder: Path) -> Path:
    script = shutil.copy(ROOT / "deploy" / "make-secrets", folder)
    subprocess.run([script], check=True, capture_output=True)
    return folder / "secrets"


@contextmanager
def running(prepare: Callable[[Stack], object] | None = None) -> Iterator[Stack]:
    """Run the stack while the body runs; its files are removed at the end.

    Args:
        prepare: Called before anything starts.
    """
    # A path in pytest's folders is too long for a socket, and closed to PostgreSQL's user.
    folder = Path(tempfile.mkdtemp(prefix="lw-stack-"))
    folder.chmod(0o755)
    try:
        stack = Stack(folder)
        if prepare is not None:
            prepare(stack)
        try:
            stack.start()
            yield stack
        finally:
            stack.end()
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Run the stack until SIGINT or SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with running() as stack:
            token = (stack.secrets / "admin_token").read_text().strip()
            sys.stdout.write(f"export LOOPWRIGHT_URL={stack.url('proxy', 8080)}\n")
            sys.stdout.write(f"export LOOPWRIGHT_TOKEN={token}\n")
            sys.stdout.flush()
            signal.pause()
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")


if __name__ == "__main__":
    main()
