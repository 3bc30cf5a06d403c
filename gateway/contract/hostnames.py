"""Hostnames: the one spelling the gateway accepts, and why another one is refused.

Responsible for labels (also those of hostname patterns), whole hostnames and the naming of the
canonical spelling in a refusal. Never normalises: what it accepts is used as it is. Knows nothing
of zones or ownerships. Used by the schemas, the patterns and clients.
"""

import re
from typing import Final, TypeGuard

from gateway.contract.bounds import GATEWAY_CLIENT_HOSTNAME_CONTRACT as BOUNDS
from gateway.contract.faults import described, quoted
from gateway.contract.names import Hostname

_LABEL_FORM: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_LABEL: Final = re.compile(_LABEL_FORM)
_USUAL: Final = re.compile(rf"(?!.*xn--)(?:{_LABEL_FORM}\.)+{_LABEL_FORM}(?<=[a-z])")
"""Most hostnames, at one look: without IDNA, and with a letter at the end."""
_NOT_IN_LABELS: Final = re.compile(r"[^a-z0-9-]")
_ACE_PREFIX: Final = "xn--"


def is_gateway_client_hostname(value: object) -> TypeGuard[Hostname]:
    """Whether any value is an exact, canonical hostname."""
    return hostname_fault(value) is None


def hostname_fault(value: object) -> str | None:
    """What keeps a value from being a hostname; names the canonical spelling if it has one."""
    if type(value) is not str:
        return f"must be a hostname as text, not {described(value)}"
    fault = _spelling_fault(value)
    if fault is None:
        return None
    meant = _canonical_spelling(value)
    if meant is not None:
        return f'must be spelled "{meant}", not {quoted(value)}'
    return f"must be a hostname, and {quoted(value)} {fault}"


def labels_fault(labels: list[str]) -> str | None:
    """What keeps labels from being a hostname, or the literal end of a pattern."""
    for label in labels:
        fault = label_fault(label)
        if fault is not None:
            return fault
    # An all-numeric last label reads as an IPv4 address to many programs.
    return "ends with a label of digits only" if labels[-1].isdigit() else None


def label_fault(label: str) -> str | None:
    """What keeps a text from being a single label of a hostname."""
    if not _LABEL.fullmatch(label):
        return _label_form_fault(label)
    if label.startswith(_ACE_PREFIX) and not _is_a_label(label):
        return f"has the label {quoted(label)}, which does not decode as IDNA 2008"
    return None


def _label_form_fault(label: str) -> str:
    if not label:
        return "has an empty label"
    if len(label) > BOUNDS.max_label_characters:
        return f"has a label of more than {BOUNDS.max_label_characters} characters"
    odd = _NOT_IN_LABELS.search(label)
    if odd is not None:
        return f"has the character {quoted(odd.group())} where only a-z, 0-9 and - may be"
    return f"has the label {quoted(label)}, which begins or ends with a hyphen"


def _spelling_fault(text: str) -> str | None:
    if len(text) <= BOUNDS.max_hostname_characters and _USUAL.fullmatch(text):
        return None
    if not text:
        return "is empty"
    if len(text) > BOUNDS.max_hostname_characters:
        return f"has more than {BOUNDS.max_hostname_characters} characters"
    labels = text.split(".")
    if len(labels) < BOUNDS.min_hostname_labels:
        return label_fault(text) or f"has fewer than {BOUNDS.min_hostname_labels} labels"
    return labels_fault(labels)


def _is_a_label(label: str) -> bool:
    """Whether an `xn--` label of at most 63 characters survives the way to its U-label and back."""
    # Imported here since most callers never see such a label and the tables are large.
    import idna

    try:
        return idna.alabel(idna.ulabel(label)).decode("ascii") == label
    except (ValueError, LookupError, ArithmeticError):
        # idna.IDNAError is a ValueError; the others guard against faults in its tables.
        return False


def _canonical_spelling(text: str) -> str | None:
    """The accepted hostname that a text in another spelling means, if there is one."""
    if len(text) > BOUNDS.max_hostname_characters + 1:
        return None
    meant = text.lower() if text.isascii() else _from_unicode(text)
    meant = meant.removesuffix(".")
    return meant if _spelling_fault(meant) is None else None


def _from_unicode(text: str) -> str:
    """A hostname in its A-labels, by the mapping of UTS #46; empty where that has none."""
    import idna

    try:
        return idna.encode(text, uts46=True).decode("ascii")
    except (ValueError, LookupError, ArithmeticError):
        return ""
