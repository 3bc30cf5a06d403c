"""What the sealed private key of a certificate is bound to: moved elsewhere, it does not open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.contract.names import Hostname
    from gateway.store.documents import Holder

KEY_PURPOSE: Final = "certificate-key"


def key_binding(holder: Holder, hostname: Hostname) -> tuple[str, str, str]:
    """The associated data of a key: client, appId and hostname."""
    return (holder.client_id, holder.app_id, hostname)
