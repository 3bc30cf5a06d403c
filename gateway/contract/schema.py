"""How objects of the wire become models, and what is said when they do not.

Responsible for the exact schema (no unknown key, no missing one, camelCase on the wire), for
handing values to the plain functions that judge them, and for turning what pydantic reports into
faults. Holds no rule about any value. Used by the modules that define requests and responses.

The values come from anybody, so pydantic sees only what cannot run code: real `dict` objects with
plain text keys. Everything else is refused, or renamed where it is a key, before pydantic looks.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Final, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from gateway.contract.envelope import NO_STATUS, Written, written
from gateway.contract.errors import RequestInvalid
from gateway.contract.faults import Check, Fault, described, path_text, plain

_CUSTOM: Final = "gateway_fault"
_IDENTITY: Final = "identity"
# What pydantic says may quote the value, whatever that is.
_LONGEST_MESSAGE: Final = 300


class WireModel(BaseModel):
    """Base of every object on the wire: exact keys, immutable, snake_case in Python only."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        strict=True,
        validate_by_alias=True,
        validate_by_name=True,
    )

    def to_wire(self) -> dict[str, Any]:
        """The object as it goes over the wire: camelCase keys, JSON values only."""
        return self.model_dump(mode="json", by_alias=True)

    def written(self) -> Written:
        """The object as the `response` of an answer."""
        try:
            body = self.__pydantic_serializer__.to_json(self, by_alias=True)
        except ValueError:  # a text that UTF-8 cannot hold
            return written(self.to_wire())
        return Written(str(getattr(self, "status", NO_STATUS)), body)

    @classmethod
    def from_wire(cls, value: object) -> tuple[Self | None, list[Fault]]:
        """The model that a value of the wire spells, or None and every violation of it."""
        if type(value) is not dict:
            return None, [_not_an_object(value)]
        wire = plain_object(value)
        faults: list[Fault] = []
        parsed = None
        try:
            parsed = cls.model_validate(wire, by_alias=True, by_name=False)
        except ValidationError as error:
            faults.extend(_faults_of(error))
        faults.extend(cls.rules(wire))
        return (None, faults) if faults else (parsed, faults)

    @classmethod
    def from_answer(cls, value: object) -> tuple[Self | None, list[Fault]]:
        """Like `from_wire`, for what a gateway answers: keys of a newer one are ignored."""
        if type(value) is not dict:
            return None, [_not_an_object(value)]
        wire = plain_object(value)
        try:
            return cls.model_validate(wire, by_alias=True, by_name=False, extra="ignore"), []
        except ValidationError as error:
            return None, list(_faults_of(error))

    @classmethod
    def rules(cls, wire: dict[str, object]) -> Iterable[Fault]:
        """Violations that concern several keys at once; `wire` holds unjudged values."""
        return ()

    @model_validator(mode="wrap")
    @classmethod
    def _accept_only_objects(cls, value: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        # Around the whole validation, since pydantic begins with isinstance, which asks the value
        # for its `__class__` and would take whatever claims to be this model.
        if type(value) is cls:
            return value
        if type(value) is not dict:
            raise refusal([_not_an_object(value)])
        return handler(plain_object(value))


RequestT = TypeVar("RequestT", bound=WireModel)


def read_request(model: type[RequestT], value: object) -> RequestT:
    """Read the `request` object of a call (without its `apiToken`).

    Raises:
        RequestInvalid: with every violation, each beginning with its path.

    """
    parsed, faults = model.from_wire(value)
    if parsed is None:
        raise RequestInvalid(
            [str(fault) if fault.path else f"request {fault.sentence}" for fault in faults]
        )
    return parsed


def violations(model: type[WireModel], value: object, path: str) -> list[str]:
    """Every violation of a value that should spell this model, each beginning with its path."""
    return [str(fault.under(path)) for fault in model.from_wire(value)[1]]


def exactly(check: Check, convert: Callable[[Any], object] | None = None) -> PlainValidator:
    """A field whose value is judged by `check` alone, then kept or converted."""

    def read(value: object) -> object:
        sentence = check(value)
        if sentence is not None:
            raise refusal([Fault("", sentence)])
        return value if convert is None else convert(value)

    return PlainValidator(read)


def exactly_all(
    every_fault: Callable[[object], list[Fault]], convert: Callable[[Any], object] | None = None
) -> PlainValidator:
    """Like `exactly`, for values in which several things can be wrong at several places."""

    def read(value: object) -> object:
        faults = every_fault(value)
        if faults:
            raise refusal(faults)
        return value if convert is None else convert(value)

    return PlainValidator(read)


def as_list(convert: Callable[[Any], list[str]] = list) -> PlainSerializer:
    """How a field that holds several texts goes over the wire."""
    return PlainSerializer(convert, return_type=list[str])


def plain_object(value: dict[Any, object]) -> dict[str, object]:
    """The same entries under keys that are plain, encodable text.

    A key that JSON cannot have gets a name that no schema knows, so that it is reported as unknown
    like any other. The original is never asked for a key: that would run the keys' own `__eq__`.
    """
    return {_plain_key(key): entry for key, entry in list(value.items())}


def _plain_key(key: object) -> str:
    if type(key) is not str:
        return f"({described(key)})"
    return key if key.isascii() else key.encode("utf-8", "backslashreplace").decode("utf-8")


def _not_an_object(value: object) -> Fault:
    return Fault("", f"must be an object, not {described(value)}")


def refusal(faults: list[Fault]) -> PydanticCustomError:
    """What a validator raises to report these faults."""
    # The sentences for those who make a model in Python and see pydantic's own error.
    sentences = "; ".join(str(fault).strip() for fault in faults)
    return PydanticCustomError(_CUSTOM, "{sentences}", {"faults": faults, "sentences": sentences})


def _faults_of(error: ValidationError) -> Iterator[Fault]:
    for detail in error.errors(include_url=False, include_input=False):
        path = path_text(detail["loc"])
        if detail["type"] == _CUSTOM:
            for fault in detail["ctx"]["faults"]:
                yield fault.under(path)
        elif detail["type"] == "missing":
            yield Fault(path, "is missing")
        elif detail["type"] != "extra_forbidden":
            # Only responses have fields that pydantic judges by itself.
            yield Fault(path, f"is not valid: {plain(detail['msg'], _LONGEST_MESSAGE)}")
        elif detail["loc"][-1] == _IDENTITY:
            yield Fault(path, "must be absent: it is the credential of another kind of caller")
        else:
            yield Fault(path, "is not a key of this object")
