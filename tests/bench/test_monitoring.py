"""What a Redis tells of itself is counted by slots."""

from redis import Redis

from tests.bench.monitoring import monitored
from tests.lab.process import wait_until
from tests.lab.redis import RedisProcess

TWO = "return redis.call('GET', KEYS[1]) or redis.call('GET', KEYS[2])"


def test_scripts_are_told_by_the_slots_of_their_keys(redis_server: RedisProcess) -> None:
    with Redis.from_url(redis_server.url) as server, monitored([redis_server.port]) as (asked,):
        server.get("monitoring:a")
        server.eval(TWO, 2, "{monitoring}:a", "{monitoring}:b")
        wait_until(lambda: asked.scripts == 1, "the first script is told")
        assert (asked.commands, asked.most_slots) == (2, 1)
        server.eval(TWO, 2, "monitoring:a", "monitoring:b")
        wait_until(lambda: asked.scripts == 2, "the second script is told")
    assert (asked.commands, asked.most_slots) == (3, 2)
