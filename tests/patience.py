"""Time limits of tests: long, because other programs may use the machine.

No test measures time. A test that waits longer fails, and pytest ends a test that hangs.
"""

PATIENCE_SECS = 240.0
