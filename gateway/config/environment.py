"""Settings out of environment variables, laid over those of the file.

`GATEWAY_REDIS__URL` is `redis.url`: two underscores go one table down. Lists and whole tables are
written as JSON; an item of a list can be reached by its index, `GATEWAY_ZONES__0__PRIMARY`. A
variable that sets nothing is a fault, so that a misspelt one cannot go unnoticed.

Pure: the variables come in as a mapping. Called by `config.loading`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic_settings import EnvSettingsSource

from gateway.config.faults import FILE_SUFFIX, keys_at, suggestion, variable_name
from gateway.config.settings import ENVIRONMENT_PREFIX, Settings
from gateway.variables import NO_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic.fields import FieldInfo


def setting_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that are meant as settings.

    Those of `gateway client` and of the agent may be set for a person who runs a gateway and calls
    it.
    """
    return {
        name: value
        for name, value in environ.items()
        if name.startswith(ENVIRONMENT_PREFIX) and name not in NO_SETTINGS
    }


def read_variables(variables: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """The settings in the variables, nested as in the file, and the faults of their names.

    Items of lists come as a table by index, `{"0": …}`; `overlay` knows what that means.
    """
    settings = _Variables(variables)()
    unused = [name for name in variables if _depth(settings, name) < len(_keys(name))]
    return settings, [f"{name}: {_why_unused(name, settings, variables)}" for name in unused]


def overlay(below: Any, above: Any) -> Any:
    """Lay `above` over `below`: tables key by key, lists by index; anything else replaces.

    A `secret` takes the place of a `secret_file` and the other way round. Neither is changed.
    Raises ValueError for what is no index into a list, or leaves a gap after its last item.
    """
    if not isinstance(above, dict):
        return above
    if isinstance(below, list):
        return _overlay_items(below, above)
    if not isinstance(below, dict) and any(key.isdecimal() for key in above):
        return _overlay_items([], above)
    base = below if isinstance(below, dict) else {}
    kept = {key: value for key, value in base.items() if _other_form(key) not in above}
    return kept | {key: overlay(base.get(key), value) for key, value in above.items()}


def _overlay_items(below: list[Any], above: dict[str, Any]) -> list[Any]:
    strange = sorted(key for key in above if not key.isdecimal())
    if strange:
        raise ValueError(f"is a list, and {', '.join(strange)} is no index into it, as 0 is")
    items = list(below)
    for key in sorted(above, key=int):
        index, value = int(key), _decoded(above[key])
        if index > len(items):
            raise ValueError(f"index {index} leaves a gap: the next free one is {len(items)}")
        if index == len(items):
            items.append(overlay(None, value))
        else:
            items[index] = overlay(items[index], value)
    return items


def _other_form(key: str) -> str:
    return key.removesuffix(FILE_SUFFIX) if key.endswith(FILE_SUFFIX) else f"{key}{FILE_SUFFIX}"


def _decoded(value: Any) -> Any:
    """Read JSON below an index, where pydantic-settings 2.16 does not know which type to expect."""
    if isinstance(value, dict):
        return {key: _decoded(item) for key, item in value.items()}
    if isinstance(value, str) and value.startswith(("[", "{")):
        try:
            return json.loads(value)
        except ValueError:
            return value  # the model names it with the other faults
    return value


class _Variables(EnvSettingsSource):
    """The library's reader of variables, over a mapping instead of the process's own."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__(Settings)
        self.env_vars = {name.lower(): value for name, value in variables.items()}

    def decode_complex_value(self, field_name: str, field: FieldInfo | None, value: Any) -> Any:
        """Decode JSON, but leave what is none to the model: one fault must not hide the others."""
        try:
            return super().decode_complex_value(field_name, field, value)  # type: ignore[arg-type]
        except ValueError:
            return value


def _keys(name: str) -> list[str]:
    return name.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")


def _depth(settings: dict[str, Any], name: str) -> int:
    """How many of a variable's keys, from the first, lead to something that was read."""
    table: Any = settings
    for depth, key in enumerate(_keys(name)):
        if not isinstance(table, dict) or key not in table:
            return depth
        table = table[key]
    return len(_keys(name))


def _why_unused(name: str, settings: dict[str, Any], variables: Mapping[str, str]) -> str:
    keys = _keys(name)
    if keys[0] not in keys_at(()):
        return f"is not a setting; {suggestion(keys[0], keys_at(()))}"
    above = variable_name(tuple(keys[: max(1, _depth(settings, name))]))
    if above in variables:
        return f"sets nothing, since {above} is set as well"
    return f"sets nothing: {above} has no parts"
