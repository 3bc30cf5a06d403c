"""The variables that begin with `GATEWAY_` and are no settings of the server.

Responsible for their names, in one place: a command line of clients reads them, and a server whose
environment has them too must not take them for misspelt settings. Must not: import anything. Used
by `cli` and by `config.environment`.
"""

from __future__ import annotations

from typing import Final

SERVER_CONFIG: Final = "GATEWAY_CONFIG"
"""Names the server's configuration file."""

AGENT_CONFIG: Final = "GATEWAY_AGENT_CONFIG"
"""Names the agent's configuration file."""

URL: Final = "GATEWAY_URL"
TOKEN: Final = "GATEWAY_TOKEN"  # noqa: S105  (a name)
TOKEN_FILE: Final = "GATEWAY_TOKEN_FILE"  # noqa: S105  (a name)
CA_FILE: Final = "GATEWAY_CA_FILE"
APP_ID: Final = "GATEWAY_APP_ID"

NO_SETTINGS: Final = frozenset(
    {SERVER_CONFIG, AGENT_CONFIG, URL, TOKEN, TOKEN_FILE, CA_FILE, APP_ID}
)
