"""The settings of traces: which collector takes them, and how many calls are traced.

Must not: read files, or look for the libraries that this takes; see `settings` and `loading`.
"""

import re
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationInfo, field_validator

from gateway.config.tables import Number, Table
from gateway.config.values import is_loopback, read_collector_url

# RFC 9110 sections 5.1 and 5.5, ASCII only.
_HEADER = re.compile(
    r"(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(?P<value>[!-~](?:[ -~]*[!-~])?)"
)


class TracesSettings(Table):
    """Without `endpoint` nothing is traced.

    `headers`, one a line, go with everything that is sent: a collector's token is in one of them.
    `sample` is the share of what begins here that is traced; a call that comes with a trace of its
    own goes by that.
    """

    endpoint: Annotated[str, AfterValidator(read_collector_url)] | None = None
    service_name: Annotated[str, Field(min_length=1, max_length=255)] = "gateway"
    sample: Annotated[float, Number, Field(ge=0, le=1)] = 1.0
    ca_bundle: Path | None = None
    hidden_headers: Annotated[SecretStr, Field(alias="headers")] = SecretStr("")

    @field_validator("hidden_headers", mode="after")
    @classmethod
    def _check_headers(cls, value: SecretStr, info: ValidationInfo) -> SecretStr:
        headers = _read_headers(value.get_secret_value())
        endpoint = info.data.get("endpoint")
        if headers and endpoint is not None:
            url = urlsplit(endpoint)
            if url.scheme != "https" and not is_loopback(url.hostname or ""):
                raise ValueError(
                    "must not go over the network in clear: traces.endpoint needs https"
                )
        return value

    @property
    def headers(self) -> dict[str, str]:
        """Names and values, in clear."""
        return _read_headers(self.hidden_headers.get_secret_value())


def _read_headers(text: str) -> dict[str, str]:
    headers = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        header = _HEADER.fullmatch(line)
        if header is None:
            raise ValueError("must be a header on each line, such as Authorization: Bearer ...")
        headers[header["name"]] = header["value"]
    return headers
