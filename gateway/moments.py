"""Moments as a person reads them, in one form for the client's side and one for the server's.

Must not: import anything of the package. Used by the SDK, the agent and the command line, and by
`certificates`.
"""

from datetime import UTC, datetime


def moment_words(moment: datetime) -> str:
    """An aware moment as UTC to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def rfc3339_moment(at_ms: int) -> str:
    """An epoch time as RFC 3339 in UTC, rounded up to the second: never too early."""
    return datetime.fromtimestamp(-(-at_ms // 1000), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
