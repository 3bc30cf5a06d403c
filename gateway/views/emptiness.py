"""What is said where Redis holds no client: new, or emptied. For `gateway check` and the page."""

from __future__ import annotations

from typing import Final

NO_CLIENT: Final = "Redis holds no client: every token is answered unauthorized."
LOST: Final = 'if there were some, Redis has lost its data: see "Redis lost" in docs/operating.md.'
