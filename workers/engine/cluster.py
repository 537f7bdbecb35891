"""The processes of a cluster: its scheduler, and on each host a process above its workers."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import dask
from distributed import Nanny, Scheduler

from workers.child.runner import ChildRunner
from workers.engine import certificates
from workers.engine.batch_exchange import EXTENSIONS
from workers.engine.dask_settings import SETTINGS
from workers.engine.engine import ClusterAddress, EngineStartError
from workers.engine.host_workers import HostWorker, host_workers
from workers.engine.unpickling import restrict_dask
from workers.engine.worker_index import take_worker_index
from workers.health.ready_file import RENEW_SECS, ReadyFile
from workers.health.self_test import self_test
from workers.logs import configure_logs
from workers.startup_objects import keep_startup_objects

_BACK_SECS = 2.0
"""The delay before a host offers its workers again to a scheduler that disconnected."""


def run_scheduler(
    cluster: ClusterAddress, announce: Callable[[str], None], ready: ReadyFile | None = None
) -> None:
    """Run the scheduler of coordinators and workers until SIGINT or SIGTERM.

    Args:
        cluster: Where to listen; the certificate is made if there is none.
        announce: Called with the address as soon as connections are taken.
        ready: A file to renew from then on; removed at the end.

    Raises:
        OSError: If the port is taken, or the host is none of this one's.
        CertificateError: If others may read the key.
    """
    certificates.make(cluster.certificates)
    configure_logs()
    restrict_dask()
    _quiet()
    try:
        with dask.config.set(SETTINGS):
            asyncio.run(_schedule(cluster, announce, ready or ReadyFile(None)))
    except RuntimeError as error:
        # Dask's error says only that it failed to start; its cause says why.
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from None
        raise


def run_workers(
    cluster: ClusterAddress,
    num_workers: int,
    announce: Callable[[str], None],
    ready: ReadyFile | None = None,
) -> None:
    """Offer the workers of this host to a cluster until SIGINT or SIGTERM.

    If the scheduler disconnects, or does not answer yet, the connection is retried.

    Args:
        ready: A file to renew while all workers are connected; removed at the end.

    Raises:
        SelfTestError: If this host cannot measure a known kernel.
        CertificateError: If there is no certificate.
        EngineStartError: If there would be no worker.
    """
    if not host_workers(num_workers):
        raise EngineStartError("no worker: expected --workers of at least 1 on a host without GPUs")
    certificates.read(cluster.certificates)
    configure_logs()
    restrict_dask()
    with ChildRunner() as runner:
        self_test(runner)
    _quiet()
    with dask.config.set(SETTINGS):
        asyncio.run(_work(cluster, num_workers, announce, ready or ReadyFile(None)))


async def _schedule(
    cluster: ClusterAddress, announce: Callable[[str], None], ready: ReadyFile
) -> None:
    is_over = _signals()
    host, _, port = cluster.url.removeprefix("tls://").rpartition(":")
    scheduler = Scheduler(
        host=host,
        port=int(port),
        protocol="tls",
        security=certificates.read(cluster.certificates),
        dashboard=False,
        dashboard_address="127.0.0.1:0",
        extensions=EXTENSIONS,
    )
    async with scheduler:
        keep_startup_objects()
        announce(scheduler.address)
        await _renew(ready, is_over, lambda: True)


async def _work(
    cluster: ClusterAddress, num_workers: int, announce: Callable[[str], None], ready: ReadyFile
) -> None:
    is_over = _signals()
    workers = host_workers(num_workers)
    announce(f"{_summary(workers)} at {cluster.url}")
    certificate = (cluster.certificates / certificates.CERTIFICATE).read_text(encoding="utf-8")
    with ExitStack() as held:
        offers = []
        connected: set[str] = set()
        for worker in workers:
            number, holder = take_worker_index(certificate)
            held.enter_context(holder)
            name = worker.name if worker.settings else ""
            full_name = "-".join(filter(None, (socket.gethostname(), str(number), name)))
            offers.append(asyncio.create_task(_offer(cluster, worker, full_name, connected)))
        await _renew(ready, is_over, lambda: len(connected) == len(workers))
        for offer in offers:
            offer.cancel()
        await asyncio.gather(*offers, return_exceptions=True)


def _summary(workers: list[HostWorker]) -> str:
    """Return the number of workers for each label as text."""
    counts = Counter(worker.label for worker in workers)
    return ", ".join(f"{count} worker(s) for {label}" for label, count in counts.items())


async def _renew(ready: ReadyFile, is_over: asyncio.Event, is_ready: Callable[[], bool]) -> None:
    """Renew a file until the end, while the process is ready; then remove the file."""
    while not is_over.is_set():
        if is_ready():
            ready.renew()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(is_over.wait(), RENEW_SECS)
    ready.remove()


async def _offer(
    cluster: ClusterAddress, worker: HostWorker, name: str, connected: set[str]
) -> None:
    """Offer one worker; replace it when its scheduler disconnects.

    Args:
        connected: Contains `name` while the worker is connected.
    """
    while True:
        with suppress(OSError, asyncio.TimeoutError, RuntimeError):
            async with Nanny(
                cluster.url,
                name=name,
                security=certificates.read(cluster.certificates),
                protocol="tls",
                # Without it, the worker listens on all addresses of the host.
                host=_address_towards(cluster.url),
                death_timeout=60.0,
                **worker.nanny_options,
            ) as nanny:
                connected.add(name)
                await nanny.finished()
        connected.discard(name)
        await asyncio.sleep(_BACK_SECS)


def _address_towards(url: str) -> str:
    """Return the address of this host from which it reaches a scheduler; nothing is sent.

    Raises:
        OSError: If the host of the scheduler is unknown or unreachable.
    """
    parts = urlsplit(url)
    family, kind, protocol, _, address = socket.getaddrinfo(
        parts.hostname, parts.port, type=socket.SOCK_DGRAM
    )[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(address)
        return str(probe.getsockname()[0])


def _signals() -> asyncio.Event:
    is_over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, is_over.set)
    return is_over


def _quiet() -> None:
    logging.getLogger("distributed").setLevel(logging.ERROR)
