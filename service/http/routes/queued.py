"""The answer to a request that queues jobs, which may be a repeated one."""

from __future__ import annotations

from fastapi import Response

from service.http.dependencies import Dependencies


def note_queued(parts: Dependencies, response: Response, path: str, is_new: bool) -> None:
    """Name what was queued in the headers of the answer; wake the coordinator if it is new.

    Args:
        path: The path of what was queued, such as `jobs/` and an id.
        is_new: Whether this request queued it: not if it repeats an earlier one.
    """
    response.headers["Location"] = f"/api/v1/{path}"
    if is_new:
        parts.wake()
    else:
        response.headers["Idempotent-Replayed"] = "true"
