import pytest

from tests.unit.config.conftest import MINIMAL, Faults, Load

SENTINEL = "redis+sentinel://:hush@a:26379,b:26379/gateway"


def with_redis(*lines: str) -> str:
    return "\n".join([MINIMAL, "[redis]", *lines])


@pytest.mark.parametrize(
    ("lines", "several", "replicas"),
    [
        ([], False, 0),
        (['url = "redis://h"'], False, 0),
        (['url = "redis://h"', "replicas = 2"], False, 2),
        ([f'url = "{SENTINEL}"'], True, 1),
        (['url = "redis+cluster://h"'], True, 1),
        (['url = "redis+cluster://h"', "replicas = 0"], True, 0),
        (['url = "embedded"', "replicas = 0"], False, 0),
    ],
)
def test_one_replica_is_awaited_where_one_can_take_over(
    load: Load, lines: list[str], several: bool, replicas: int
) -> None:
    redis = load(with_redis(*lines)).redis
    assert (redis.has_several, redis.awaited_replicas) == (several, replicas)


def test_embedded_redis_has_no_replicas(faults: Faults) -> None:
    assert faults(with_redis("replicas = 1")) == [
        "redis.replicas: must be 0: the embedded Redis has no replicas, not 1"
    ]


@pytest.mark.parametrize("value", ["-1", "10", "true", '"one"'])
def test_replicas_are_a_small_number(faults: Faults, value: str) -> None:
    (fault,) = faults(with_redis('url = "redis://h"', f"replicas = {value}"))
    assert fault.startswith("redis.replicas: must be ")


def test_url_at_fault_is_not_shown(faults: Faults) -> None:
    (fault,) = faults(with_redis('url = "redis+sentinel://:hush@a:26379"'))
    assert fault.startswith("redis.url: must name the Sentinels' service")
    assert "hush" not in fault


def test_replicas_are_judged_beside_a_url_at_fault(faults: Faults) -> None:
    found = faults(with_redis('url = "http://h"', "replicas = 10"))
    assert [fault.partition(":")[0] for fault in found] == ["redis.url", "redis.replicas"]


@pytest.mark.parametrize(
    ("url", "is_secret"),
    [
        ("redis+sentinel://a/gateway?sentinel_password=hush", True),
        (SENTINEL, True),
        ("redis+sentinel://a/gateway", False),
    ],
)
def test_file_with_a_password_in_the_url_is_a_secret(load: Load, url: str, is_secret: bool) -> None:
    settings = load(with_redis(f'url = "{url}"'))
    assert any(path.name == "gateway.toml" for path in settings.secret_files) is is_secret


def test_variables_set_both(load: Load) -> None:
    environ = {"GATEWAY_REDIS__URL": SENTINEL, "GATEWAY_REDIS__REPLICAS": "2"}
    redis = load(MINIMAL, environ).redis
    assert (redis.url, redis.replicas) == (SENTINEL, 2)
