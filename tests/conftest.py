"""What every test runs under."""

from __future__ import annotations

import os

from hypothesis import settings

# No test fails because the machine is slow. CI tries the same examples each time, so that it is red
# for a change and not by chance; a developer's run tries new ones.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

# A comparison with libraries takes most of a short job. The tests of it ask for it.
os.environ.setdefault("LOOPWRIGHT_BASELINES", "none")
