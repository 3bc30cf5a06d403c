"""How hypothesis runs here: the same cases every time, and no test is judged by its speed."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "contract",
    deadline=None,
    derandomize=True,
    max_examples=75,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("contract")
