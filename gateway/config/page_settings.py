"""The settings of the operator's page.

Must not: read files; see `settings`, which knows from the listener whether the page is on.
"""

from gateway.config.tables import Table


class PageSettings(Table):
    """Without `enabled` the page is on where nobody but this machine reaches the listener."""

    enabled: bool | None = None
