"""The demo: the service's story, played on the lab's real servers and told as it goes.

Responsible for: real calls over HTTP, the zone looked at with `dig`, a conflict made with
`nsupdate`, the certificate judged by `openssl`; and for ending with a fault as soon as anything is
not as the story says. Must not: import the gateway's code, or print a secret.
Called by: `scripts/demo` (this package's `__main__`), `tests/integration/test_demo.py`.

    __main__   options, the lab around the story, how long it took
    story      the acts: what is done, why, and what must come of it
    keeping    `--keep`: the lines to try by hand
    caller     one call over HTTP, shown
    programs   dig, nsupdate and openssl, shown
    stages     how an issuance went, from the gateway's log
    telling    headings, checks, colours
    shapes     requests and answers as aligned text, secrets left out (pure)
"""
