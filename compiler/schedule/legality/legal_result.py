"""The checks of a program that a primitive returns, the same for all primitives.

Its threads do not conflict, its indices have the types that the parser would give them, and the
verifier accepts it. A primitive checks its own requirements. This check is for interactions that
several primitives could violate: threads, views, extents that depend on loops, indices of two
types, predicates and values of iterators that read buffers. Programs without any of these are not
verified after each step, which would take longer than the step itself.
"""

from __future__ import annotations

from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.index_types import with_agreeing_types
from compiler.ir.verify.verify import VerifyError, verify
from compiler.schedule.error import ScheduleError
from compiler.schedule.legality.thread_memory import require_sound_threads
from compiler.schedule.tree.tree import statement_paths

# Primitives that move blocks or stores, or put new ones, under loops whose iterations may run in
# parallel, or that copy such loops: the copies share the buffers that an iteration had for itself.
_MOVES = frozenset(
    {
        "cache_index",
        "cache_inplace",
        "cache_read",
        "cache_write",
        "compute_at",
        "loop_partition",
        "online_softmax",
        "read_at",
        "reindex",
        "reindex_cache_read",
        "reindex_cache_write",
        "reverse_compute_at",
        "reverse_compute_inline",
        "rfactor",
        "write_at",
    }
)


def checked_step(
    primitive: str, before: PrimFunc, after: PrimFunc, *, with_threads: bool = True
) -> PrimFunc:
    """Return the result of a primitive with matching types of indices, its threads checked.

    Args:
        primitive: The name of the primitive.
        before: The program before it.
        after: The program after it.
        with_threads: Whether threads are checked; if not, the caller does so later.

    Raises:
        ScheduleError: If threads would not see what others wrote, or see what they must not.
    """
    paths = statement_paths(after)
    if not paths.is_plain:
        after = with_agreeing_types(after)
    if paths.declares_regions:
        # The next primitive may rely on a declared region.
        require_legal(primitive, before, after)
    if with_threads:
        require_sound_threads(primitive, before, after)
    return after


def must_be_verified(primitive: str, after: PrimFunc) -> bool:
    """Return whether the result of a primitive has something that several primitives may break."""
    paths = statement_paths(after)
    moves = paths.has_parallel and primitive in _MOVES
    return paths.has_threads or moves or not paths.is_plain


def require_legal(primitive: str, before: PrimFunc, after: PrimFunc) -> None:
    """Require that the verifier accepts the result of a primitive, or of several in a row.

    Faults that the program already had before are accepted.

    Raises:
        ScheduleError: If the result is not a legal program.
    """
    problem = _problem(after)
    if problem is not None and _problem(before) is None:
        reason = f"the result would not be a legal program: {problem}"
        raise ScheduleError(primitive, reason, before, before, "illegal_result")


def _problem(func: PrimFunc) -> VerifyError | None:
    try:
        verify(func)
    except VerifyError as error:
        return error
    return None
