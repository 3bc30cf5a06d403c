"""A folder with a configuration that is right, for tests to spoil."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gateway.config import ConfigInvalid, Settings, load_settings

TOKEN_SHA256 = "ab" * 32
SECRET_BASE64 = "c2VjcmV0LXNlY3JldC1zZWNyZXQ="
SECRET = b"secret-secret-secret"

MINIMAL = f"""
[admin]
token_sha256 = "{TOKEN_SHA256}"
"""

ZONE = f"""
[[zones]]
name = "example.test"
primary = "192.0.2.53"

[zones.tsig]
name = "gateway"
secret = "{SECRET_BASE64}"
"""

ACME = """
[[acme]]
directory = "https://ca.example.test/dir"
"""

Load = Callable[..., Settings]
Faults = Callable[..., list[str]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Load a file with this text, in `tmp_path`, under this environment."""

    def run(text: str = MINIMAL, environ: Mapping[str, str] | None = None) -> Settings:
        file = tmp_path / "gateway.toml"
        file.write_text(text)
        return load_settings(file, environ or {})

    return run


@pytest.fixture
def faults(load: Load) -> Faults:
    """The faults that loading such a file tells."""

    def run(text: str = MINIMAL, environ: Mapping[str, str] | None = None) -> list[str]:
        with pytest.raises(ConfigInvalid) as caught:
            load(text, environ)
        return caught.value.faults

    return run
