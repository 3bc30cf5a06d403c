"""Hostname patterns: which hostnames a client may ask for.

Responsible for the form of a pattern and for matching hostnames against a client's patterns.
Compares whole labels, never text ends. Used by the access layer (compiled, at every call), by the
provisioning schema and by clients.

`*` stands for exactly one label. `**`, only as the first label, stands for one or more. The last
two labels are always literal, so that no pattern spans a registry's names.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeGuard

from gateway.contract.bounds import GATEWAY_CLIENT_HOSTNAME_CONTRACT as BOUNDS
from gateway.contract.faults import Fault, described, quoted
from gateway.contract.hostnames import is_gateway_client_hostname, label_fault, labels_fault
from gateway.contract.lists import list_faults

# Possessive, so that a label is never tried again in parts.
_ONE_LABEL: Final = r"[^.]++"
_SOME_LABELS: Final = r"[^.]++(?:\.[^.]++)*"


@dataclass(frozen=True, slots=True)
class HostnamePatterns:
    """Valid patterns, made ready to be asked often."""

    _exact: frozenset[str]
    _wildcards: re.Pattern[str] | None

    def allows(self, hostname: str) -> bool:
        """Whether a valid hostname matches at least one of the patterns."""
        if hostname in self._exact:
            return True
        return self._wildcards is not None and self._wildcards.fullmatch(hostname) is not None


def compile_patterns(patterns: Iterable[str]) -> HostnamePatterns:
    """Make valid patterns ready for `allows`. No patterns allow nothing."""
    exact, wildcards = set(), []
    for pattern in patterns:
        if "*" in pattern:
            wildcards.append(r"\.".join(map(_label_expression, pattern.split("."))))
        else:
            exact.add(pattern)
    return HostnamePatterns(
        frozenset(exact), re.compile("|".join(wildcards)) if wildcards else None
    )


def is_gateway_hostname_pattern(value: object) -> bool:
    """Whether any value is a valid hostname pattern."""
    return pattern_fault(value) is None


def is_gateway_hostname_allowed(hostname: object, patterns: object) -> bool:
    """Whether a hostname matches one of a list of patterns; false when either is invalid."""
    if not _is_pattern_list(patterns) or not is_gateway_client_hostname(hostname):
        return False
    return compile_patterns(patterns).allows(hostname)


def _is_pattern_list(value: object) -> TypeGuard[Sequence[str]]:
    return not hostname_patterns_faults(value)


def hostname_patterns_faults(value: object) -> list[Fault]:
    """Every violation of a client's list of patterns; an empty list is valid and allows nothing."""
    return list_faults(
        value, pattern_fault, of="hostname patterns", max_entries=BOUNDS.max_hostname_patterns
    )


def pattern_fault(value: object) -> str | None:
    """What keeps a value from being a hostname pattern; names the canonical spelling if any."""
    if type(value) is not str:
        return f"must be a hostname pattern as text, not {described(value)}"
    fault = _spelling_fault(value)
    if fault is None:
        return None
    meant = value.lower().removesuffix(".")
    if _spelling_fault(meant) is None:
        return f'must be spelled "{meant}", not {quoted(value)}'
    return f"must be a hostname pattern, and {quoted(value)} {fault}"


def _spelling_fault(text: str) -> str | None:
    if len(text) > BOUNDS.max_hostname_characters:
        return f"has more than {BOUNDS.max_hostname_characters} characters"
    labels = text.split(".")
    literal = labels[-BOUNDS.min_literal_pattern_labels :]
    if len(literal) < BOUNDS.min_literal_pattern_labels or "*" in "".join(literal):
        return "does not end with two labels without a wildcard"
    return labels_fault(literal) or _leading_labels_fault(labels[: -len(literal)])


def _leading_labels_fault(labels: list[str]) -> str | None:
    for index, label in enumerate(labels):
        if label == "*" or (label == "**" and index == 0):
            continue
        if "*" in label:
            return (
                f"has the label {quoted(label)}: * must be a whole label, and ** only the first one"
            )
        fault = label_fault(label)
        if fault is not None:
            return fault
    return None


def _label_expression(label: str) -> str:
    if label == "**":
        return _SOME_LABELS
    return _ONE_LABEL if label == "*" else re.escape(label)
