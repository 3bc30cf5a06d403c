"""The help of `gateway clients`."""

from click.testing import CliRunner

from gateway.cli import clients
from gateway.contract import CAPABILITIES


def test_help_of_ensure_names_the_capabilities_and_shows_an_example_as_it_is_typed() -> None:
    text = CliRunner().invoke(clients.command, ["ensure", "--help"]).output
    option = text[text.index("--capability TEXT") : text.index("--help")]
    assert all(capability in option for capability in CAPABILITIES)
    assert "\b" not in text
    assert (
        r"""
  gateway clients ensure cluster-a --type cloudly \
      --pattern 'relay.*.example.com' --allow 198.51.100.0/24 \
      --capability syncDnsRecords"""
        in text
    )
