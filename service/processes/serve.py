"""Run everything in one process tree: HTTP, the coordinator, embedded workers."""

from __future__ import annotations

import errno
import ipaddress
import signal
import socket
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import structlog
import uvicorn
from fastapi import FastAPI

from compiler.runtime.signature import KeyFileError, SigningKey
from service.common.errors import ServeError
from service.demo.recorded import import_recorded
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.http.limits.connections import ConnectionLimits
from service.http.limits.http_protocol import limited
from service.http.pages import HOW_TO_BUILD, is_built
from service.http.rate_limit import DEFAULT_PER_SEC
from service.processes.coordinator_thread import CoordinatorThread
from service.processes.external_coordinator import ExternalCoordinator
from service.store import tokens
from service.store.database.database import Database, open_database
from workers.logs import configure_logs

_log = structlog.get_logger()

STOP_SECS = 5.0
"""Time in which a stop waits for the current trial; a job that is not put back by then resumes too.
Chosen.
"""


def _print_url(url: str) -> None:
    sys.stdout.write(f"Loopwright is running at {url}\n")
    if not is_built():
        sys.stdout.write(f"The dashboard was not built; to see it, run: {HOW_TO_BUILD}\n")
    sys.stdout.flush()


def serve(
    host: str = "127.0.0.1",
    port: int = 8080,
    db_url: str = "sqlite:///loopwright.db",
    token: str | None = None,
    num_workers: int | None = 1,
    *,
    requests_per_sec: float = DEFAULT_PER_SEC,
    signing_key: Path | None = None,
    demo: bool = False,
    announce: Callable[[str], None] = _print_url,
) -> None:
    """Serve until SIGINT or SIGTERM. Jobs that run then are resumed by the next service.

    Args:
        port: Where to listen; 0 for any free port.
        token: One that may do everything; beyond loopback this or one of the database is needed.
        num_workers: How many workers to have here; none leaves jobs to coordinators elsewhere.
        signing_key: A file with the key that kernels are signed with; none signs none.
        demo: Begin with recorded jobs, and play them once more; for a database that is empty.
        announce: Called with the URL as soon as connections are taken.

    Raises:
        ServeError: If the host needs a token, the port is taken, or the database cannot be used.
            Nothing has started then.
    """
    configure_logs()
    signer = _read_key(signing_key)
    is_local = _is_loopback(host)
    with closing(_listen(host, port)) as listener, closing(open_database(db_url)) as database:
        is_open = not token and not _has_tokens(database)
        if is_open and not is_local:
            raise _no_token(host)
        if demo:
            import_recorded(database)
        background = _coordinator(database, num_workers, demo=demo)
        parts = Dependencies(
            database,
            signer=signer,
            wake=background.wake,
            is_stopping=lambda: server.should_exit,
            is_coordinating=lambda: background.is_running,
        )
        bound_port = listener.getsockname()[1]
        app = create_app(
            parts,
            token=token or None,
            hosts=_names(host) if is_open else None,
            requests_per_sec=requests_per_sec,
        )
        server = _http_server(app)
        # A large file takes a while to read, and is served meanwhile.
        threading.Thread(target=database.look_for_damage, daemon=True).start()
        background.start()
        announce(f"http://{_in_url(host)}:{bound_port}")
        _log.info("serving", host=host, port=bound_port, database=database.shown)
        try:
            with _signals_end_quietly():
                server.run(sockets=[listener])
        finally:
            _log.info("stopping")
            background.stop(STOP_SECS)


def _read_key(path: Path | None) -> SigningKey | None:
    try:
        return None if path is None else SigningKey.read(path)
    except KeyFileError as error:
        raise ServeError(str(error)) from error


def _no_token(host: str) -> ServeError:
    return ServeError(
        f"refusing to listen on {host} without a token: anyone on the network could run "
        "jobs; create a token with `loopwright token create`, or listen on 127.0.0.1"
    )


def _coordinator(
    database: Database, num_workers: int | None, *, demo: bool
) -> ExternalCoordinator | CoordinatorThread:
    if num_workers is None:
        return ExternalCoordinator(database)
    return CoordinatorThread(database, num_workers, plays=demo)


def _http_server(app: FastAPI) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=limited(ConnectionLimits.of_process()),
            ws="none",
            log_config=None,
            log_level="error",  # the operator can't act on an invalid HTTP request
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=3,
        )
    )


def _has_tokens(database: Database) -> bool:
    with database.read() as session:
        return tokens.any_was_made(session)


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens already, so that a second service learns it at once."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ServeError(f"cannot listen on {host}: {error.strerror}") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(256)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise ServeError(
                f"port {port} of {host} is in use, perhaps by another Loopwright: choose another "
                "port, or 0 for a free one"
            ) from error
        raise ServeError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return listener


def _is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach `host`, whatever it resolves to."""
    try:
        addresses = socket.getaddrinfo(host or None, 0, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ServeError(f"cannot listen on {host}: {error.strerror}") from error
    return bool(host) and all(
        ipaddress.ip_address(address[4][0]).is_loopback for address in addresses
    )


def _names(host: str) -> Collection[str]:
    return {host, _in_url(host), "localhost", "127.0.0.1", "[::1]"}


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


@contextmanager
def _signals_end_quietly() -> Iterator[None]:
    """Let uvicorn end at a signal, and keep the signal from ending the process afterwards.

    Uvicorn raises the signals that it took once more when it is done; there is still a job to put
    back by then, and a stop that was asked for is no failure.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.signal(s, lambda *_: None) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
