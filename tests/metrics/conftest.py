"""Settings for property tests of the metrics: no deadline, since the first call of a test imports scipy."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("metrics", deadline=None)
settings.load_profile("metrics")
