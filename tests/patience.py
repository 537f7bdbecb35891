"""How long tests wait for what must happen: long, since other programs may keep the machine busy.

No test measures time. A test that waits longer has failed, and pytest ends one that hangs later.
"""

PATIENCE_SECS = 240.0
