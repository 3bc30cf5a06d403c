"""What a page asks before something is done: what is there, what would become of it, and a form.

Values for `confirm.html`, and what is the same for all of them: the mark of what the operator saw.
Pure. Used by `hostname_actions` and `client_actions`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gateway.http.page.shapes import Shown

if TYPE_CHECKING:
    from gateway.http.page.fields import Fields

TEMPLATE: Final = "confirm.html"

_CHANGED: Final = (
    "It has changed since this page was shown, and nothing was done. What is there now is below."
)


@dataclass(frozen=True, slots=True)
class Field:
    """What is typed before something is done; `kind` is an input's type."""

    name: str
    label: str
    value: str = ""
    hint: str = ""
    kind: str = "text"
    error: str | None = None
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """What may be ticked."""

    name: str
    label: str
    hint: str = ""
    is_ticked: bool = False


@dataclass(frozen=True, slots=True)
class Confirmation:
    """One question. `would` are sentences, `facts` labels and values of what is there now.

    `seen` is a mark of those: a form with another one is about something else by now. `refusal`:
    why it can't be done, where that is known already; then there is no form. `fault`: why nothing
    came of the form just sent. `warning`: what would come of it otherwise than one expects. `back`
    is a path.
    """

    title: str
    button: str
    would: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    seen: str
    back: str
    refusal: str | None = None
    fields: tuple[Field, ...] = ()
    choice: Choice | None = None
    is_grave: bool = False
    fault: str | None = None
    warning: str | None = None

    def shown(self, status: int = 200) -> Shown:
        """As a page; one that has no form says why with 409."""
        return Shown({"ask": self}, 409 if self.refusal else status, TEMPLATE)

    def refused(self, why: str, status: int = 409) -> Shown:
        """The same question again, since nothing came of the form."""
        return replace(self, fault=why).shown(status)

    def stale(self, form: Fields) -> Shown | None:
        """The question as it stands now, if the form was sent for something else."""
        return None if form.raw("seen") == self.seen else self.outrun()

    def outrun(self) -> Shown:
        """The question as it stands now: what the form was about has changed, and is left so."""
        return self.refused(_CHANGED)

    def keeping(self, form: Fields) -> Confirmation:
        """With what was typed and ticked in the form: it is to be sent again."""
        choice = self.choice and replace(self.choice, is_ticked=self.choice.name in form)
        fields = tuple(replace(each, value=form.text(each.name)) for each in self.fields)
        return replace(self, fields=fields, choice=choice)

    def with_error(self, name: str, error: str, value: str = "") -> Shown:
        """The same question again, since a field holds something wrong."""
        fields = tuple(
            replace(each, error=error, value=value) if each.name == name else each
            for each in self.fields
        )
        return replace(self, fields=fields).shown(422)
