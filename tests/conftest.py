"""Fixtures and the profile of property tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Shared machines are slow at times: examples are limited in number, never in time.
settings.register_profile("shine", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
settings.load_profile("shine")
