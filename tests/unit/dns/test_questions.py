"""The bytes of queries: those of dnspython's own."""

import dns.message
import pytest
from dns.rdatatype import RdataType

from gateway.dns.names import to_name
from gateway.dns.questions import make_query


@pytest.mark.parametrize("signatures", [False, True])
@pytest.mark.parametrize("rdtype", [RdataType.ANY, RdataType.SOA, RdataType.TXT])
@pytest.mark.parametrize("name", ["relay.example.test", "test", ".", "*.example.test"])
def test_query_is_rendered_as_dnspython_renders_it(
    name: str, rdtype: RdataType, signatures: bool
) -> None:
    ours = make_query(to_name(name), rdtype, signatures=signatures)
    theirs = dns.message.make_query(
        name, rdtype, flags=0, use_edns=0, want_dnssec=signatures, payload=1232, id=ours.id
    )
    assert ours.to_wire() == theirs.to_wire()


def test_each_query_has_an_id_of_its_own() -> None:
    queries = [make_query(to_name("relay.example.test"), RdataType.ANY) for _ in range(20)]
    assert len({query.id for query in queries}) > 10
