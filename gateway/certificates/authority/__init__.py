"""The certificate authority, as the rest of the gateway sees it (ACME, RFC 8555).

Responsible for talking to one CA under one account: each call is one short exchange that answers
or raises AuthorityFault. Nothing here waits for a CA to make up its mind, decides what comes next
or stores an issuance: the machine and the worker do. Only this part imports `acme` and `josepy`.

    client    Authority: the asyncio face
    account   the account: who signs, what is stored of it, key rollover
    registrar what the CA is asked about accounts, key by key
    settings  AuthoritySettings: which CA, and who we are there
    calls     how many are under way at once
    caller    directory, request, classification, log line
    network   nonces, and what is asked again
    connections   HTTP over kept connections
    signing   the account key and what is signed with it
    reading   what a CA's orders and authorizations say (pure)
    chains    which of several chains is wanted (pure)
    faults    which fault an answer means (pure)
    replies   one HTTP answer, Retry-After, problem documents (pure)

Answers are the plain values of `certificates.orders`; so are the faults. Called by the issuance
worker, by readiness, by `gateway check` and `gateway accounts`.
"""

from gateway.certificates.authority.client import Authority
from gateway.certificates.authority.settings import AuthoritySettings

__all__ = ["Authority", "AuthoritySettings"]
