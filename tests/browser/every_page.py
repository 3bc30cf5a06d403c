"""Every page of the scene, by a name for each, and what it is answered with.

Used by the tests of this folder.
"""

from tests.lab.browser import Visit
from tests.screenshots import scene

PAGES = {
    "overview": "",
    "hostnames": "/hostnames",
    "hostnames, by prefix": "/hostnames?prefix=relay-0",
    "hostnames, none": "/hostnames?prefix=nobody-has-this",
    "hostnames, a prefix that is none": "/hostnames?prefix=%3Cb%3E",
    "hostnames, of a client": "/hostnames?client=platform",
    "hostname, issued": f"/hostnames/{scene.ISSUED}",
    "hostname, under way": f"/hostnames/{scene.UNDER_WAY}",
    "hostname, refused": f"/hostnames/{scene.REFUSED}",
    "hostname, limited": f"/hostnames/{scene.LIMITED}",
    "hostname, ends soon": f"/hostnames/{scene.ENDING}",
    "hostname, a conflict": f"/hostnames/{scene.CONFLICT}",
    "hostname, claimed": f"/hostnames/{scene.CLAIMED}",
    "hostname, whose zone is away": f"/hostnames/{scene.AWAY}",
    "hostname, in a zone that is away": f"/hostnames/{scene.AWAY}/zone",
    "hostname, in no zone": "/hostnames/www.example.edu",
    "hostname, in the zone": f"/hostnames/{scene.ISSUED}/zone",
    "hostname, the verdict": f"/hostnames/{scene.ISSUED}/verdict",
    "clients": "/clients",
    "clients, none": "/clients?prefix=nobody-has-this",
    "client": "/clients/platform",
    "client, new": "/clients/new",
    "client, its policy": "/clients/platform/policy",
    "audit": "/audit",
    "audit, none": "/audit?client=nobody-has-this",
    "audit, a hostname that is none": "/audit?hostname=%3Cb%3E",
    "nothing there": "/nothing",
    "no hostname": "/hostnames/not%20a%20hostname",
    "no client": "/clients/nobody-has-this",
}
ACTIONS = {
    "retry": f"/hostnames/{scene.REFUSED}/retry",
    "release": f"/hostnames/{scene.ISSUED}/release",
    "withdraw": f"/hostnames/{scene.ISSUED}/withdraw",
    "renew": f"/hostnames/{scene.ISSUED}/renew",
    "claim": f"/hostnames/{scene.CONFLICT}/claim",
    "unclaim": f"/hostnames/{scene.CLAIMED}/unclaim",
    "an action that is refused": f"/hostnames/{scene.CONFLICT}/release",
    "rotate": "/clients/platform/rotate",
    "revoke": "/clients/platform/revoke",
    "remove": "/clients/platform/remove",
}
ALL = PAGES | ACTIONS
REFUSED = {
    "hostnames, a prefix that is none": 400,
    "audit, a hostname that is none": 400,
    "nothing there": 404,
    "no hostname": 404,
    "no client": 404,
    "an action that is refused": 409,
}


def go(visit: Visit, kind: str) -> None:
    """Open a page; it has the status that it should have."""
    answer = visit.page.goto(f"/operator{ALL[kind]}")
    assert answer is not None
    assert answer.status == REFUSED.get(kind, 200), visit.page.get_by_role("main").inner_text()
