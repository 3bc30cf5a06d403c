"""Moments as a person reads them, the same in every sentence and table of the client's side.

Must not: import anything of the package. Used by the SDK, the agent and the command line.
"""

from datetime import UTC, datetime


def moment_words(moment: datetime) -> str:
    """An aware moment as UTC to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
