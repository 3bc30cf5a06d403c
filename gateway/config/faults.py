"""What is wrong with a configuration, in sentences a person can act on.

Responsible for: naming the key (or the environment variable that set it), showing the value at
fault where it is no secret, and guessing which key a mistyped one was meant to be. Pure. Called by
`config.loading`.
"""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any, get_args, get_origin

from pydantic import BaseModel

from gateway.config.settings import ENVIRONMENT_PREFIX, Settings

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

Location = tuple[str | int, ...]

SECRETS: tuple[tuple[str, ...], ...] = (
    ("admin", "token_sha256"),
    ("redis", "url"),
    ("zones", "*", "tsig", "secret"),
    ("acme", "*", "eab", "hmac_key"),
    ("traces", "headers"),
)
"""Where a secret may be, `*` standing for an index. Each can be given as `<key>_file` instead."""

FILE_SUFFIX = "_file"

_SHOWN_VALUE_LIMIT = 80

# pydantic's words for a wrong type talk of Python; the person wrote TOML.
_SENTENCES = {
    "missing": "is required",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "dict_type": "must be a table",
    "tuple_type": "must be a list",
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "path_type": "must be a path",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
}

# What stands in the place of a table or a list may be a secret that belongs inside.
_HIDING_KINDS = {"missing", "model_type", "model_attributes_type", "dict_type", "tuple_type"}


class ConfigInvalid(Exception):
    """The configuration cannot be used; `faults` has every reason, each `key: sentence`."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = list(faults)


def faults_of(error: ValidationError) -> list[tuple[Location, str]]:
    """Every violation: its place and the sentence about it."""
    return [(item["loc"], _sentence(item)) for item in error.errors(include_url=False)]


def label(location: Location, variables: Collection[str]) -> str:
    """Name a place as whoever put the value there knows it.

    `zones[0].tsig.secret` for the file; `GATEWAY_REDIS__URL`, or `GATEWAY_ZONES[0].tsig.secret`
    for a part of a variable's JSON.
    """
    for length in range(len(location), 0, -1):
        variable = variable_name(location[:length])
        if variable in variables:
            return variable + _dotted(location[length:], ".")
    return _dotted(location, "")


def variable_name(location: Location) -> str:
    """The environment variable that sets this place."""
    return ENVIRONMENT_PREFIX + "__".join(str(part).upper() for part in location)


def suggestion(word: str, known: Sequence[str]) -> str:
    """A guess at what was meant, or all there is to choose from."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]}?" if close else f"known here: {', '.join(known)}"


def unknown_key(location: Location) -> str:
    """The sentence for a key that there is not; without its value: it may be a mistyped secret."""
    guess = suggestion(str(location[-1]), keys_at(location[:-1]))
    return f"is not a key of the configuration; {guess}"


def keys_at(location: Location) -> list[str]:
    """The keys of the table at a place, those for secrets' files included."""
    model = _model_at(location)
    fields = {} if model is None else model.model_fields
    keys = [field.alias or name for name, field in fields.items()]
    return keys + [f"{key}{FILE_SUFFIX}" for key in keys if is_secret((*location, key))]


def is_secret(location: Location) -> bool:
    """Whether the value at this place must never be shown."""
    pattern = tuple("*" if isinstance(part, int) else part for part in location)
    return pattern in SECRETS


def _sentence(item: ErrorDetails) -> str:
    location, kind = item["loc"], item["type"]
    if kind == "extra_forbidden":
        return unknown_key(location)
    if kind == "value_error":
        sentence = str(item["ctx"]["error"])
    elif kind == "literal_error":
        sentence = f"must be one of {item['ctx']['expected']}"
    else:
        sentence = _SENTENCES.get(kind, item["msg"].replace("Input should be", "must be"))
    if kind in _HIDING_KINDS or is_secret(location) or not _may_be_shown(item["input"]):
        return sentence
    return f"{sentence}, not {_shown(item['input'])}"


def _may_be_shown(value: object) -> bool:
    """No list or table, and no URL with a user's name, which may have a password beside it."""
    return isinstance(value, str | int | float) and "@" not in str(value).partition("://")[2]


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_VALUE_LIMIT else f"{text[:_SHOWN_VALUE_LIMIT]}…"


def _dotted(location: Location, before_first: str) -> str:
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += (before_first if not text else ".") + part
    return text


def _model_at(location: Location) -> type[BaseModel] | None:
    model: type[BaseModel] | None = Settings
    is_name = False
    # The items of a list have the model that their list names, and so have tables by a name.
    for key in [part for part in location if isinstance(part, str)]:
        if is_name:
            is_name = False
            continue
        fields = {} if model is None else model.model_fields
        found = [field for name, field in fields.items() if key == (field.alias or name)]
        model = _model_in(found[0].annotation) if found else None
        is_name = bool(found) and get_origin(found[0].annotation) is dict
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The one model named by a type such as `tuple[ZoneSettings, ...]` or `AcmeSettings | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)
