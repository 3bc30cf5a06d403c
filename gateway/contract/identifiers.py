"""The names that clients and operators choose: `appId`, `clientId`, `clientType`.

Responsible for their form only; whether a name exists is the business of the access layer. Used by
the schemas.
"""

import re
from typing import Final

from gateway.contract.bounds import GATEWAY_CLIENT_HOSTNAME_CONTRACT as BOUNDS
from gateway.contract.faults import described, quoted

_VISIBLE_ASCII: Final = re.compile(rf"[!-~]{{1,{BOUNDS.max_app_id_characters}}}")
_CLIENT_TYPE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


def app_id_fault(value: object) -> str | None:
    """What keeps a value from being an `appId`: 1 to 128 of 0x21 to 0x7e."""
    return _form_fault(
        value,
        _VISIBLE_ASCII,
        f"1 to {BOUNDS.max_app_id_characters} printable ASCII characters without a space",
    )


def client_id_fault(value: object) -> str | None:
    """What keeps a value from being a `clientId`; the rule is that of an `appId`."""
    return app_id_fault(value)


def client_type_fault(value: object) -> str | None:
    """What keeps a value from being a `clientType`: 1 to 64 of `A-Z a-z 0-9 . _ -`."""
    return _form_fault(value, _CLIENT_TYPE, "1 to 64 characters out of A-Z a-z 0-9 . _ -")


def _form_fault(value: object, form: re.Pattern[str], wanted: str) -> str | None:
    if type(value) is not str:
        return f"must be text of {wanted}, not {described(value)}"
    return None if form.fullmatch(value) else f"must be {wanted}, not {quoted(value)}"
