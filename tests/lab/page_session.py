"""Reads the operator's page by plain HTTP, as a browser without script does, in one session.

Responsible for the login, the cookie and one kept connection. Must not: know what a page shows.
Called by: `tests.bench`.
"""

import httpx

from tests.lab.process import LabFault

PREFIX = "/operator"
_LIMIT_SECONDS = 15.0


class PageSession:
    """Somebody who has logged in at the gateway at `base_url`. Close it at the end."""

    def __init__(self, base_url: str, admin_token: str) -> None:
        """Log in.

        Raises: LabFault when that is refused.
        """
        self._client = httpx.Client(
            base_url=base_url,
            headers={"Origin": base_url},
            trust_env=False,
            timeout=_LIMIT_SECONDS,
        )
        answer = self._client.post(f"{PREFIX}/login", data={"token": admin_token})
        if answer.status_code != 303:
            self._client.close()
            raise LabFault(f"the login was answered with {answer.status_code}: {answer.text}")

    def get(self, path: str) -> httpx.Response:
        """Read one page by its path below the page's own; redirects are not followed."""
        return self._client.get(f"{PREFIX}{path}")

    def close(self) -> None:
        """Close its connection."""
        self._client.close()
