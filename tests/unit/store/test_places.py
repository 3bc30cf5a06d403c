import pytest

from gateway.store.places import Kind, read_place


@pytest.mark.parametrize(
    ("url", "kind", "members", "service"),
    [
        ("redis://h", Kind.SINGLE, (("h", 0),), ""),
        ("unix:///run/redis.sock?db=1", Kind.SINGLE, (("/run/redis.sock", 0),), ""),
        (
            "redis+sentinel://a:1,b,[2001:db8::1]:3/svc/2",
            Kind.SENTINEL,
            (("a", 1), ("b", 26379), ("2001:db8::1", 3)),
            "svc",
        ),
        ("rediss+cluster://a:7000,b", Kind.CLUSTER, (("a", 7000), ("b", 6379)), ""),
        ("redis+cluster://a/0", Kind.CLUSTER, (("a", 6379),), ""),
    ],
)
def test_url_names_its_servers(
    url: str, kind: Kind, members: tuple[tuple[str, int], ...], service: str
) -> None:
    place = read_place(url)
    assert (place.kind, place.members, place.service) == (kind, members, service)


def test_node_gets_user_password_database_and_options() -> None:
    place = read_place("redis+sentinel://u:p%40%7B@a/svc/2?ssl_ca_certs=/ca.pem&client_name=g")
    assert place.node_url(("h", 6)) == (
        "redis://u:p%40%7B@h:6/2?ssl_ca_certs=%2Fca.pem&client_name=g"
    )
    assert place.node_url(("2001:db8::1", 6)).startswith("redis://u:p%40%7B@[2001:db8::1]:6/2?")


def test_sentinel_gets_a_login_of_its_own_and_the_tls_options() -> None:
    place = read_place(
        "rediss+sentinel://u:p@a/svc?sentinel_username=s&sentinel_password=x%2Fy&ssl_ca_certs=/c"
    )
    assert place.member_url(("a", 26379)) == (
        "rediss://a:26379/?ssl_ca_certs=%2Fc&username=s&password=x%2Fy"
    )
    assert place.node_url(("h", 6)) == "rediss://u:p@h:6/?ssl_ca_certs=%2Fc"


def test_node_of_a_cluster_is_reached_as_the_members_are() -> None:
    place = read_place("rediss+cluster://u:p@a,b?ssl_ca_certs=/c")
    assert place.node_url(("h", 6)) == "rediss://u:p@h:6/?ssl_ca_certs=%2Fc"
    assert place.member_url(("a", 6379)) == "rediss://u:p@a:6379/?ssl_ca_certs=%2Fc"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://u:hush@h:1/2?password=hush", "redis://h:1/2"),
        ("redis+sentinel://u:hush@a:1,b/s/3?sentinel_password=hush", "redis+sentinel://a:1,b/s/3"),
        ("redis+cluster://:hush@a,b", "redis+cluster://a,b"),
    ],
)
def test_no_password_is_shown(url: str, shown: str) -> None:
    place = read_place(url)
    assert place.shown == shown
    assert "hush" not in repr(place)


@pytest.mark.parametrize(
    ("url", "phrase"),
    [
        ("redis+sentinel://a", "name the Sentinels' service"),
        ("redis+sentinel://a/", "name the Sentinels' service"),
        ("redis+sentinel:///svc", "list its servers"),
        ("redis+sentinel://a/svc/x", "/service/database"),
        ("redis+sentinel://a/svc/1/2", "/service/database"),
        ("redis+sentinel://u:p/w@a/svc", "percent-encoded"),
        ("redis+sentinel://a/svc?sentinel_name=x", "no other options"),
        ("redis+cluster://", "list its servers"),
        ("redis+cluster://a,,b", "list its servers"),
        ("redis+cluster://a:0", "list its servers"),
        ("redis+cluster://a:65536", "list its servers"),
        ("redis+cluster://[::1", "list its servers"),
        ("redis+cluster://a/1", "no database"),
        ("redis+cluster://a?db=1", "no database"),
        ("redis+cluster://a?sentinel_password=x", "no other options"),
        ("unix+cluster://a", "must be"),
        ("redis+other://a", "must be"),
        ("redis+cluster:a", "must be"),
        ("redis://h?socket_timeout=9", "no other options"),
        ("redis://h?db=x", "number as its option db"),
    ],
)
def test_other_urls_are_refused(url: str, phrase: str) -> None:
    with pytest.raises(ValueError, match=r"^must ") as caught:
        read_place(url)
    assert phrase in str(caught.value)
