"""What the property tests draw from: valid values, JSON of any shape, and objects that bite.

Whatever may bite is drawn as a function that makes it, called by the test: hypothesis itself looks
at what it draws.
"""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NoReturn

from hypothesis import strategies as st

from gateway.contract import Ownership

KNOWN_KEYS = [
    *("appId", "hostname", "type", "value", "ttl", "ownership", "record", "delete", "action"),
    *("spec", "clientId", "clientType", "hostnamePatterns", "allowedDnsRecordAddresses"),
    *("capabilities", "overlapSeconds", "releaseHoldings", "identity", "syncDnsRecords"),
]


class Bite(BaseException):
    """Not an Exception, so that no broad `except` can hide that hostile code was run."""


def _bite(*_: object, **__: object) -> NoReturn:
    raise Bite


_SPECIAL = (
    *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__bool__"),
    *("__len__", "__iter__", "__contains__", "__getitem__", "__getattr__", "__repr__", "__str__"),
    *("__format__", "__int__", "__float__", "__index__", "__add__", "__radd__", "__call__"),
)
_BITING = dict.fromkeys(_SPECIAL, _bite) | {"__class__": property(_bite)}
_BITING_TYPE = dict.fromkeys(("__eq__", "__hash__", "__instancecheck__", "__repr__"), _bite)

_Hostile = type("Hostile", (), dict(_BITING))
_HostileMeta = type("HostileMeta", (type,), dict(_BITING_TYPE))


def _hostile_subclass(base: type, *arguments: object) -> Callable[[], object]:
    return lambda: type(f"Hostile{base.__name__}", (base,), dict(_BITING))(*arguments)


def _object_of_hostile_type() -> object:
    return _HostileMeta("Odd", (), {})()


class _Disguised:
    """Claims to be an ownership to everybody who asks politely."""

    __class__ = property(lambda _: Ownership)


def _deep_list() -> object:
    value: list[object] = []
    for _ in range(3_000):
        value = [value]
    return value


def _list_of_itself() -> object:
    value: list[object] = []
    value.append(value)
    return value


def _object_of_itself() -> object:
    value: dict[str, object] = {}
    for key in KNOWN_KEYS:
        value[key] = value
    return value


class _Impostor:
    """A key that claims to be a known one, and bites when it is asked for more."""

    def __init__(self, key: str) -> None:
        self.hash = hash(key)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        raise Bite


def _object_with_impostor_keys() -> object:
    return {_Impostor(key): None for key in KNOWN_KEYS}


_FACTORIES: list[Callable[[], object]] = [
    _Hostile,
    _object_of_hostile_type,
    _Disguised,
    _hostile_subclass(str, "a.example"),
    _hostile_subclass(int, 300),
    _hostile_subclass(float, 300.0),
    _hostile_subclass(dict),
    _hostile_subclass(list),
    _hostile_subclass(tuple),
    _hostile_subclass(frozenset),
    _deep_list,
    _list_of_itself,
    _object_of_itself,
    _object_with_impostor_keys,
    lambda: _HostileMeta("Odd", (), {}),
    lambda: 10**6000,
    lambda: -(10**6000),
    lambda: math.nan,
    lambda: math.inf,
    lambda: -math.inf,
    lambda: 300.0,
    lambda: Decimal(300),
    lambda: 300 + 0j,
    lambda: b"a.example",
    lambda: bytearray(b"a.example"),
    lambda: object,
    lambda: (number for number in range(3)),
    lambda: "\ud800.example",
    lambda: "a" * 100_000,
    lambda: "." * 100_000,
    lambda: "xn--" * 1000,
    lambda: "\u0301.\u0301",
    lambda: "*." * 1000,
    lambda: {1: 2, None: 3, ("a",): 4, "\udfff": 5, b"x": 6},
    lambda: {"app_id": "a", "hostname": "a.example"},
    lambda: ["198.51.100.0/24"] * 1000,
    lambda: set("ab"),
    lambda: frozenset({1, "syncDnsRecords"}),
]

Maker = Callable[[], Any]

numbers = st.one_of(st.integers(), st.floats(), st.sampled_from([59, 60, 300, 86_400, 86_401]))
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.text()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(KNOWN_KEYS), st.text()), inner, max_size=4),
    ),
    max_leaves=12,
)

makers: st.SearchStrategy[Maker] = st.one_of(
    json_values.map(lambda value: lambda: value), st.sampled_from(_FACTORIES)
)


def _maker_of_object(entries: dict[str, Maker]) -> Maker:
    return lambda: {key: make() for key, make in entries.items()}


def _maker_of_list(entries: list[Maker]) -> Maker:
    return lambda: [make() for make in entries]


makers_of_values: st.SearchStrategy[Maker] = st.one_of(
    makers,
    st.dictionaries(st.sampled_from(KNOWN_KEYS), makers, max_size=8).map(_maker_of_object),
    st.lists(makers, max_size=4).map(_maker_of_list),
)

# --- valid values -------------------------------------------------------------------------------

_ALNUM = "abcdefghijklmnopqrstuvwxyz0123456789"
labels = st.one_of(
    st.sampled_from(["a", "relay", "x1", "0", "xn--bcher-kva", "a--b", "a" * 63]),
    st.from_regex(rf"[{_ALNUM}]([{_ALNUM}]{{0,6}}-?[{_ALNUM}])?", fullmatch=True),
).filter(lambda label: not label.startswith("xn--") or label == "xn--bcher-kva")
hostnames = (
    st.tuples(st.lists(labels, min_size=1, max_size=3), st.sampled_from(["example", "test", "a1"]))
    .map(lambda parts: ".".join([*parts[0], parts[1]]))
    .filter(lambda name: len(name) <= 253)
)
app_ids = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=128)
ipv4_texts = st.builds(
    lambda first, rest: ".".join(map(str, (first, *rest))),
    st.sampled_from([10, 100, 172, 192, 198, 203, 223]),
    st.tuples(*[st.integers(0, 255)] * 3),
)


def ipv6_numbers() -> st.SearchStrategy[int]:
    """Numbers whose groups are often zero, so that every form of `::` comes up."""
    group = st.one_of(st.just(0), st.sampled_from([1, 0xF, 0x10, 0xFFFF]), st.integers(0, 0xFFFF))
    return st.lists(group, min_size=8, max_size=8).map(
        lambda groups: sum(part << 16 * place for place, part in enumerate(reversed(groups)))
    )


ownerships: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"appId": app_ids, "hostname": hostnames}
)
ttls = st.one_of(st.integers(60, 86_400), st.integers(60, 86_400).map(float))
records: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"type": st.just("A"), "value": ipv4_texts}, optional={"ttl": ttls}
)

patterns = st.builds(
    lambda first, middle, end: ".".join([*first, *middle, *end]),
    st.sampled_from([[], ["*"], ["**"]]),
    st.lists(st.sampled_from(["*", "a", "b"]), max_size=3),
    st.sampled_from([["a", "test"], ["b", "test"]]),
)
short_hostnames = st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=5).map(
    lambda parts: ".".join([*parts, "test"])
)
