"""The search space of each kind of target."""

from __future__ import annotations

from compiler.target.registry import KindRegistry
from compiler.target.target import Target
from tuner.space.search_space import SearchSpace


def _load_cpu() -> SearchSpace:
    # Imported on first use: it loads LLVM, which other search spaces do not need.
    from tuner.space.cpu_space import CPU_SPACE  # noqa: PLC0415

    return CPU_SPACE


def _load_cuda() -> SearchSpace:
    # Imported on first use, as that of CPUs: each process uses one of them.
    from tuner.space.cuda_space import CUDA_SPACE  # noqa: PLC0415

    return CUDA_SPACE


SEARCH_SPACES: KindRegistry[SearchSpace] = KindRegistry("search space")
SEARCH_SPACES.provide("cpu", _load_cpu)
SEARCH_SPACES.provide("cuda", _load_cuda)


def search_space_of(target: Target) -> SearchSpace:
    """Return the search space of a target.

    Raises:
        UnknownKindError: If none is registered for its kind.
    """
    return SEARCH_SPACES.find(target.kind)


def built_in_rules() -> tuple[str, ...]:
    """Return the names of the built-in rules of all kinds, each once, those for CPUs first."""
    kinds = sorted(SEARCH_SPACES.kinds, key=lambda kind: (kind != "cpu", kind))
    names = (name for kind in kinds for name in SEARCH_SPACES.find(kind).rule_names)
    return tuple(dict.fromkeys(names))
