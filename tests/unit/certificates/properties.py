"""How property tests run here: on a busy machine as on an idle one."""

from hypothesis import HealthCheck, settings

untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Decorator: no example fails for being slow."""
