"""Leave the objects of a server's start out of later garbage collections.

Modules and their tables are a quarter of a million objects, which a full collection goes through in
0.15 to 0.3 s of processor time (Zen 3). All threads stand still meanwhile, and with them each
request, each answer and each event. A server collects often enough for that to decide its slowest
percent.
"""

from __future__ import annotations

import gc


def keep_startup_objects() -> None:
    """Collect no object that exists now; call this once all modules are imported."""
    gc.collect()
    gc.freeze()
