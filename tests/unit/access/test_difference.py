"""What differs between a file and what there is, and that doing it leaves no difference."""

from hypothesis import given, strategies as st

from gateway.access.clients import Client, Credential
from gateway.access.declared import Declared, DeclaredClaim
from gateway.access.difference import Action, Detail, Difference, difference
from gateway.access.untold import judged
from gateway.contract import ClientSpec
from gateway.contract.names import ClientId, CredentialId, Hostname

PATTERNS = ["a.example.com", "*.b.example.com", "c.example.com"]
PREFIXES = ["198.51.100.0/24", "2001:db8::/32"]
CAPABILITIES = ["syncDnsRecords", "requestCertificates", "readCertificates"]
IDS = ["a", "b", "c", "d"]
HOSTNAMES = [Hostname(f"{name}.example.com") for name in "wxyz"]

specs = st.builds(
    lambda client_id, kind, patterns, prefixes, capabilities: ClientSpec.of(
        client_id,
        kind,
        hostname_patterns=patterns,
        allowed_dns_record_addresses=prefixes,
        capabilities=capabilities,
    ),
    st.sampled_from(IDS),
    st.sampled_from(["t", "u"]),
    st.lists(st.sampled_from(PATTERNS), unique=True),
    st.lists(st.sampled_from(PREFIXES), unique=True),
    st.lists(st.sampled_from(CAPABILITIES), unique=True),
)
several = st.lists(specs, unique_by=lambda spec: spec.client_id)
notes = st.dictionaries(st.sampled_from(HOSTNAMES), st.sampled_from(["", "n", "m"]))


def client_of(spec: ClientSpec, generation: int = 1) -> Client:
    return Client(
        client_id=spec.client_id,
        client_type=spec.client_type,
        hostname_patterns=spec.hostname_patterns,
        allowed_dns_record_addresses=spec.allowed_dns_record_addresses,
        capabilities=frozenset(spec.capabilities),
        policy_generation=generation,
    )


def declared_of(wanted: list[ClientSpec], claims: dict[Hostname, str]) -> Declared:
    return Declared(tuple(wanted), tuple(DeclaredClaim(*each) for each in claims.items()))


def applied(
    differs: Difference, clients: list[Client], claims: dict[Hostname, str]
) -> tuple[list[Client], dict[Hostname, str]]:
    """What there is once all of it was done."""
    after = {client.client_id: client for client in clients}
    notes = dict(claims)
    for step in differs.clients:
        if step.spec is None:
            del after[step.client_id]
        else:
            after[step.client_id] = client_of(step.spec)
    for claim in differs.claims:
        if claim.action is Action.REMOVE:
            del notes[claim.hostname]
        else:
            notes[claim.hostname] = claim.note
    return list(after.values()), notes


@given(wanted=several, there=several, claims=notes, present=notes, prune=st.booleans())
def test_nothing_differs_once_it_was_applied(
    wanted: list[ClientSpec],
    there: list[ClientSpec],
    claims: dict[Hostname, str],
    present: dict[Hostname, str],
    prune: bool,
) -> None:
    declared = declared_of(wanted, claims)
    clients = [client_of(spec) for spec in there]
    differs = difference(declared, clients, present, {}, prune=prune)
    after, notes = applied(differs, clients, present)
    assert difference(declared, after, notes, {}, prune=prune).is_empty
    assert ({each.client_id for each in after} == {each.client_id for each in wanted}) or not prune
    assert prune or {each.client_id for each in after} >= {each.client_id for each in clients}
    assert differs.is_empty == (after == clients and notes == present)
    kept = difference(declared, after, notes, {}, prune=False)
    assert prune or (kept.left_clients, kept.left_claims) == (
        differs.left_clients,
        differs.left_claims,
    )


@given(spec=specs, data=st.data())
def test_order_is_no_difference(spec: ClientSpec, data: st.DataObject) -> None:
    """So a policy that says the same keeps its generation."""
    shuffled = ClientSpec.of(
        spec.client_id,
        spec.client_type,
        hostname_patterns=data.draw(st.permutations(spec.hostname_patterns)),
        allowed_dns_record_addresses=data.draw(st.permutations(spec.allowed_dns_record_addresses)),
        capabilities=data.draw(st.permutations(sorted(spec.capabilities))),
    )
    assert difference(
        declared_of([shuffled], {}), [client_of(spec, 7)], {}, {}, prune=True
    ).is_empty


def test_each_field_says_what_it_gains_and_loses() -> None:
    there = ClientSpec.of("a", "t", hostname_patterns=PATTERNS[:2], capabilities=CAPABILITIES[:1])
    wanted = ClientSpec.of(
        "a",
        "u",
        hostname_patterns=PATTERNS[1:],
        allowed_dns_record_addresses=PREFIXES[:1],
        capabilities=CAPABILITIES[:1],
    )
    (step,) = difference(declared_of([wanted], {}), [client_of(there)], {}, {}, prune=True).clients
    assert step.action is Action.CHANGE
    assert step.details == (
        Detail("type", ("u",), ("t",)),
        Detail("patterns", ("c.example.com",), ("a.example.com",)),
        Detail("allow", ("198.51.100.0/24",), ()),
    )


def test_what_a_file_does_not_speak_of_stays_when_pruned() -> None:
    spec = ClientSpec.of("a", "t", hostname_patterns=[], capabilities=[])
    nothing = Declared(None, None)
    assert difference(nothing, [client_of(spec)], {HOSTNAMES[0]: ""}, {}, prune=True).is_empty
    empty = Declared((), ())
    differs = difference(
        empty, [client_of(spec)], {HOSTNAMES[0]: ""}, {spec.client_id: HOSTNAMES[:2]}, prune=True
    )
    (client,), (claim,) = differs.clients, differs.claims
    assert (client.action, client.held) == (Action.REMOVE, tuple(HOSTNAMES[:2]))
    assert (claim.action, claim.hostname) == (Action.REMOVE, HOSTNAMES[0])


def test_token_is_lost_only_while_it_is_the_newest() -> None:
    def client(client_id: str, *credentials: str) -> Client:
        spec = ClientSpec.of(client_id, "t", hostname_patterns=[], capabilities=[])
        made = tuple(Credential(CredentialId(each), "", 1) for each in credentials)
        return Client(**{**_fields(client_of(spec)), "credentials": made})

    noted = {CredentialId(f"{name}1"): ClientId(name) for name in "abcd"}
    clients = [client("a", "a1"), client("b", "b1", "b2"), client("c")]
    assert judged(noted, clients) == (["a"], ["b1", "c1"])


def _fields(client: Client) -> dict[str, object]:
    return {name: getattr(client, name) for name in Client.__slots__}
