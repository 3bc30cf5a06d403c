"""Certificates of some age, put into Redis as the gateway keeps them: no call can make one.

Responsible for: a chain of a root of its own with true dates, its key sealed by the lab's keyring,
the plan for its renewal, and the counts of the days before today.
Must not: be used on anything but a lab.
Called by: `scene`.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from redis import Redis

from gateway.certificates.binding import KEY_PURPOSE, key_binding
from gateway.certificates.keys import check_certificate
from gateway.certificates.renewal import renewal_times
from gateway.certificates.sealing import load_keyring
from gateway.certificates.states import StoredCertificate
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.store import keys
from gateway.store.documents import Holder
from gateway.store.notable import Counted
from tests.lab.certificates import LabAuthority

LIFETIME = timedelta(days=90)
DAYS = (
    *((2, 1, 0), (0, 3, 0), (0, 0, 0), (1, 2, 0), (4, 0, 1), (0, 1, 0), (0, 2, 0), (3, 4, 0)),
    *((0, 1, 0), (0, 0, 0), (1, 3, 2), (2, 2, 0), (0, 1, 0)),
)
"""How many were issued, renewed and failed on each of the days before today, the oldest first."""

_RENEW_AT = 0.66


class AgedCertificates:
    """Puts certificates with chosen ends beside records that calls have published."""

    def __init__(self, redis: Redis, keyring_file: Path, directory_url: str) -> None:
        self._redis = redis
        self._keyring = load_keyring(keyring_file)
        self._directory_url = directory_url
        self._authority = LabAuthority()

    def count_days(self) -> None:
        """Give the days before today their counts, as the audit trail's writer would have."""
        for ago, counts in enumerate(reversed(DAYS), 1):
            day = (datetime.now(UTC) - timedelta(days=ago)).date().isoformat()
            names = (Counted.ISSUED, Counted.RENEWED, Counted.FAILED)
            for name, count in zip(names, counts, strict=True):
                self._redis.hset(keys.audit_day_key(day), name.value, str(count))

    def put(self, hostname: str, client_id: str, app_id: str, ends_in: timedelta) -> None:
        """Give the holder of `hostname` a certificate that ends then, which is in the future."""
        name, now = Hostname(hostname), datetime.now(UTC)
        end = now + ends_in
        issued = self._authority.issue(hostname, not_before=end - LIFETIME, not_after=end)
        key_pem = issued.private_key_pem.encode()
        checked = check_certificate(issued.chain_pem, key_pem, hostname, now)
        times = renewal_times(checked.not_before_ms, checked.not_after_ms, _RENEW_AT, 0.5)
        binding = key_binding(Holder(ClientId(client_id), AppId(app_id)), name)
        stored = StoredCertificate(
            issuance_id=checked.serial_hex[:16],
            chain_pem=checked.chain_pem,
            sealed_key=self._keyring.seal(key_pem, purpose=KEY_PURPOSE, bound_to=binding),
            valid_from_ms=checked.not_before_ms,
            valid_until_ms=checked.not_after_ms,
            renew_at_ms=times.renew_at_ms,
            renew_after_ms=times.renew_after_ms,
            share_at_ms=times.share_at_ms,
            serial=checked.serial_hex,
            issuer=checked.issuer,
            directory_url=self._directory_url,
            ask_at_ms=int((now + timedelta(days=1)).timestamp() * 1000),
        )
        self._redis.hset(keys.host_key(name), "certificate", json.dumps(stored.to_json()))
        self._redis.zadd(keys.due_key(keys.bucket_of(name)), {hostname: times.renew_at_ms})
