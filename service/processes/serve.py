"""Run the whole service in one process tree: HTTP, the coordinator, embedded workers."""

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

from compiler.driver import toolchains
from compiler.runtime.signature import KeyFileError, SigningKey
from service.common.errors import ServeError
from service.demo.recorded import import_recorded
from service.http.app import create_app
from service.http.cache.schedule_answers import ScheduleAnswers
from service.http.dependencies import Dependencies
from service.http.limits.connections import ConnectionLimits
from service.http.limits.http_protocol import limited
from service.http.pages import HOW_TO_BUILD, is_built
from service.http.rate_limit import DEFAULT_PER_SEC
from service.processes.cluster_sessions import ClusterSessions
from service.processes.coordinator_thread import STOP_SECS, CoordinatorThread
from service.processes.external_coordinator import ExternalCoordinator
from service.store import cache_entries, tokens
from service.store.database.database import Database, open_database
from service.webhooks.allowed_addresses import AllowedAddresses
from workers.engine.engine import ClusterAddress, SessionEngine
from workers.logs import configure_logs
from workers.startup_objects import keep_startup_objects

_log = structlog.get_logger()


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
    remotes: bool = False,
    cluster: ClusterAddress | None = None,
    demo: bool = False,
    announce: Callable[[str], None] = _print_url,
) -> None:
    """Serve until SIGINT or SIGTERM; the next start resumes the running jobs.

    Args:
        port: The port to listen on; 0 for any free port.
        token: An administrator token; beyond loopback this or a token of the database is required.
        num_workers: The number of embedded workers; with 0, external coordinators run the jobs.
        signing_key: A file with the key that signs kernels; if None, kernels are not signed.
        remotes: Offer remote sessions on the workers: holders of a token for submissions then run
            code of their own on them.
        cluster: The workers that serve these sessions, if they are not embedded.
        demo: Import the recorded jobs into an empty database, and replay them.
        announce: Called with the URL as soon as the service accepts connections.

    Raises:
        ServeError: If the host needs a token, the port is taken, the database cannot be used, or a
            setting is malformed. Nothing has started then.
    """
    configure_logs()
    signer = _read_key(signing_key)
    AllowedAddresses.of_environment()  # an invalid one is an error now, not at a submission
    cache_entries.quota_bytes()
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
            sessions=_sessions(background, cluster) if remotes else None,
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
        # Both take a while; requests are answered meanwhile.
        threading.Thread(target=database.look_for_damage, daemon=True).start()
        threading.Thread(target=_prepare, args=[app.state.schedule_answers], daemon=True).start()
        background.start()
        announce(f"http://{_in_url(host)}:{bound_port}")
        _log.info("serving", host=host, port=bound_port, database=database.shown)
        try:
            with _signals_end_quietly():
                server.run(sockets=[listener])
        finally:
            _log.info("stopping")
            background.stop(STOP_SECS)


def _prepare(answers: ScheduleAnswers) -> None:
    """Import what look-ups need, and compile their statements."""
    toolchains()
    answers.prepare()
    keep_startup_objects()


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


def _sessions(
    background: ExternalCoordinator | CoordinatorThread, cluster: ClusterAddress | None
) -> SessionEngine:
    if isinstance(background, CoordinatorThread):
        return background
    assert cluster is not None, "the command requires it"
    return ClusterSessions(cluster)


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
    """Return a listening socket, so that a second service fails at once."""
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
    """Return whether only this machine can reach `host`, for every address that it resolves to."""
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

    Uvicorn raises its caught signals again when it ends. At that time a job must still return to
    the queue, and a requested stop is no failure.
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
