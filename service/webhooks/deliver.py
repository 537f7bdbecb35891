"""Attempts to deliver events by HTTP: no redirects, no proxies, and a limit of time and size."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import datetime
from functools import partial

import anyio
import httpx2

from service.store.webhooks import Attempt
from service.webhooks.allowed_addresses import AllowedAddresses, RefusedAddressError
from service.webhooks.signature import signed_headers

TIMEOUT_SECS = 10.0
"""Limit of a whole attempt; a receiver should answer before it does slow work. Chosen."""


def deliver_all(
    attempts: Sequence[Attempt], allowed: AllowedAddresses, now: datetime
) -> list[str | None]:
    """Attempt to deliver events at the same time; return the error of each, None for a success."""
    return anyio.run(partial(_deliver_all, attempts, allowed, now))


async def _deliver_all(
    attempts: Sequence[Attempt], allowed: AllowedAddresses, now: datetime
) -> list[str | None]:
    errors: list[str | None] = [None] * len(attempts)

    async def run(index: int) -> None:
        errors[index] = await _deliver(client, attempts[index], allowed, now)

    # A proxy of the environment would connect to addresses that were not checked. One connection
    # for each attempt: connections to an address are not shared between names.
    limits = httpx2.Limits(max_keepalive_connections=0)
    async with (
        httpx2.AsyncClient(
            verify=ssl.create_default_context(),
            trust_env=False,
            follow_redirects=False,
            timeout=TIMEOUT_SECS,
            limits=limits,
        ) as client,
        anyio.create_task_group() as group,
    ):
        for index in range(len(attempts)):
            group.start_soon(run, index)
    return errors


async def _deliver(
    client: httpx2.AsyncClient, attempt: Attempt, allowed: AllowedAddresses, now: datetime
) -> str | None:
    try:
        with anyio.fail_after(TIMEOUT_SECS):
            url, address = await allowed.resolve(attempt.url)
            request = client.build_request(
                "POST",
                url.copy_with(host=address),
                content=attempt.body.encode(),
                headers={
                    "Host": url.netloc.decode("ascii"),
                    "Content-Type": "application/json",
                    "User-Agent": "loopwright",
                    **signed_headers(attempt, now),
                },
                extensions={"sni_hostname": url.host},
            )
            # The body of the answer is never read.
            response = await client.send(request, stream=True)
            await response.aclose()
    except TimeoutError:
        return f"no answer within {TIMEOUT_SECS:g} s"
    except RefusedAddressError as error:
        return str(error)
    except (httpx2.HTTPError, OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"[:500]
    if response.is_success:
        return None
    redirect = ": redirects are not followed" if response.is_redirect else ""
    return f"the receiver answered {response.status_code}{redirect}"
