"""The table `[traces]`: off unless it is told where, with a secret that stays one."""

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.config.conftest import MINIMAL, Faults, Load

SECRET = "hunter2hunter2"
ENDPOINT = 'endpoint = "https://otlp.example.org"'


def table(*lines: str) -> str:
    return "\n".join((MINIMAL, "[traces]", *lines))


def test_nothing_is_traced_unless_an_endpoint_is_given(load: Load) -> None:
    traces = load().traces
    assert traces.endpoint is None
    assert (traces.service_name, traces.sample, traces.headers) == ("gateway", 1.0, {})


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318"),
        ("http://[::1]:4318/", "http://[::1]:4318"),
        ("https://otlp.example.org/otlp/", "https://otlp.example.org/otlp"),
    ],
)
def test_endpoint_is_the_base_of_a_url(load: Load, written: str, read: str) -> None:
    assert load(table(f'endpoint = "{written}"')).traces.endpoint == read


@pytest.mark.parametrize(
    "endpoint",
    [
        "127.0.0.1:4318",
        "grpc://127.0.0.1:4317",
        "http://",
        "http://a:0",
        "http://a:b",
        "http://a?b",
    ],
)
def test_what_is_no_such_url_is_refused(faults: Faults, endpoint: str) -> None:
    (fault,) = faults(table(f'endpoint = "{endpoint}"'))
    assert fault.startswith("traces.endpoint: must be a URL, such as http://127.0.0.1:4318, not ")
    assert endpoint in fault


def test_path_that_is_added_is_not_to_be_written(faults: Faults) -> None:
    (fault,) = faults(table('endpoint = "https://otlp.example.org/v1/traces"'))
    assert fault.startswith("traces.endpoint: must be without /v1/traces, which is added")


def test_password_in_the_url_is_refused_and_not_shown(faults: Faults) -> None:
    (fault,) = faults(table(f'endpoint = "https://user:{SECRET}@otlp.example.org"'))
    assert fault == "traces.endpoint: must be a URL, such as http://127.0.0.1:4318"


def test_headers_come_from_a_file(load: Load, tmp_path: Path) -> None:
    (tmp_path / "headers").write_text(f"Authorization: Bearer {SECRET}\nX-Scope-OrgID:one\n")
    settings = load(table(ENDPOINT, 'headers_file = "headers"'))
    assert settings.traces.headers == {
        "Authorization": f"Bearer {SECRET}",
        "X-Scope-OrgID": "one",
    }
    assert SECRET not in repr(settings)
    assert tmp_path / "headers" in settings.secret_files


@pytest.mark.parametrize("headers", [SECRET, f"X Y: {SECRET}", f"X: {SECRET}\u00e9", "X:"])
def test_what_is_no_header_is_refused_and_not_shown(faults: Faults, headers: str) -> None:
    (fault,) = faults(table(ENDPOINT, f'headers = "{headers}"'))
    assert fault.startswith("traces.headers: must be a header on each line")
    assert SECRET not in fault


def test_headers_are_a_secret_and_need_https(load: Load, faults: Faults) -> None:
    header = f'headers = "Authorization: Bearer {SECRET}"'
    (fault,) = faults(table('endpoint = "http://otlp.example.org:4318"', header))
    assert fault.startswith("traces.headers: must not go over the network in clear")
    assert SECRET not in fault
    assert load(table('endpoint = "http://127.0.0.1:4318"', header)).traces.headers


def test_each_fault_of_the_table_is_told(faults: Faults, tmp_path: Path) -> None:
    (tmp_path / "roots").write_text("nothing of the kind")
    told = faults(
        table(
            'endpoint = "x"',
            "sample = 1.5",
            'service_name = ""',
            'headers_file = "none"',
            'ca_bundle = "roots"',
            "endpiont = 1",
        )
    )
    assert sorted(fault.partition(":")[0] for fault in told) == [
        "traces.ca_bundle",
        "traces.endpiont",
        "traces.endpoint",
        "traces.headers_file",
        "traces.sample",
        "traces.service_name",
    ]


class NotInstalled(MetaPathFinder):
    """Keeps Python from finding a package, as on a machine without it."""

    def find_spec(
        self, fullname: str, path: object, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname.partition(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(fullname, name=fullname)
        return None


def test_libraries_that_are_missing_are_told_with_what_to_install(
    load: Load, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load(table(ENDPOINT)).traces.endpoint is not None
    for name in [name for name in sys.modules if name.startswith("opentelemetry")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [NotInstalled(), *sys.meta_path])
    (fault,) = faults(table(ENDPOINT))
    assert fault == (
        "traces.endpoint: needs libraries that are not installed: "
        "pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"
    )
    assert load().traces.endpoint is None
