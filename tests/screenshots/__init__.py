"""Pictures of the operator's page: a story in a lab, and the pages that tell it.

    __main__   options, where the pictures go
    scene      the story: clients, hostnames and some trouble on the lab's real servers
    stock      certificates of some age, which no call can make
    taking     which page is taken how

Responsible for: `docs/images`. Must not: show a name outside of RFC 2606's, or a secret.
Called by: `scripts/screenshots`; `tests.browser` looks at the same scene with axe.
"""
