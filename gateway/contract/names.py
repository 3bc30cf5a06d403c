"""Distinct types for the texts that must not be mistaken for one another.

Responsible for the types only: a value gets one of them after the rule for it was applied (or
when it comes out of the gateway's own storage). Used by every layer.
"""

from typing import NewType

AppId = NewType("AppId", str)
"""What a client calls the application it holds a hostname for."""

ClientId = NewType("ClientId", str)
"""The operator's name for a client; unique in the gateway."""

CredentialId = NewType("CredentialId", str)
"""The public part of a token; it proves nothing by itself."""

Hostname = NewType("Hostname", str)
"""A hostname in its only accepted spelling: lower case, A-labels, no trailing dot."""

ZoneName = NewType("ZoneName", str)
"""The apex of a configured zone, spelled like a hostname."""
