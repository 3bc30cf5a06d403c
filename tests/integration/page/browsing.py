"""The operator's page as a browser without script uses it: cookies, forms, redirects.

Knows HTML as far as these pages have it, and nothing of the gateway's code. Used by the tests of
this folder and by the bench of pages.
"""

import ssl
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlencode

import httpx

from tests.integration.service.calling import NO_TLS

PLAIN_COOKIE = "gateway-session"
SECURE_COOKIE = f"__Host-{PLAIN_COOKIE}"
_VOID = frozenset({"input", "meta", "link", "br", "hr", "img", "rect", "path", "line", "circle"})


@dataclass
class Form:
    """One form: where it goes, and what it sends as it stands."""

    action: str | None
    method: str
    fields: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Element:
    """An element with its attributes and the text in it."""

    tag: str
    attributes: dict[str, str]
    text: str = ""


class Html(HTMLParser):
    """A parsed page: `elements` in their order, `forms`, and all its `text`."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = source
        self.elements: list[Element] = []
        self.forms: list[Form] = []
        self._open: list[Element] = []
        self._textarea: str | None = None
        self.feed(source)

    @property
    def text(self) -> str:
        """All the text, white space as one blank."""
        return " ".join(self._root.text.split())

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """The elements of a tag that have all of these attributes; `class_` is `class`."""
        wanted = {name.rstrip("_").replace("_", "-"): text for name, text in attributes.items()}
        return [
            each
            for each in self.elements
            if each.tag == tag and wanted.items() <= each.attributes.items()
        ]

    def by_id(self, name: str) -> Element:
        (found,) = [each for each in self.elements if each.attributes.get("id") == name]
        return found

    @property
    def links(self) -> dict[str, str]:
        """The URL of each link, by its text."""
        return {" ".join(a.text.split()): a.attributes.get("href", "") for a in self.all("a")}

    def form(self, action: str | None = None) -> Form:
        """The one form in the page's main part, or the one that goes to this URL."""
        found = [
            each
            for each in self.forms
            if (each.action == action if action else each.action != "/operator/logout")
        ]
        assert len(found) == 1, found
        return found[0]

    @property
    def _root(self) -> Element:
        return self.elements[0]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: text or "" for name, text in attrs}
        element = Element(tag, attributes)
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)
        if tag == "form":
            method = attributes.get("method", "get")
            self.forms.append(Form(attributes.get("action"), method))
        elif tag == "textarea":
            self._textarea = attributes["name"]
        elif tag == "input" and self.forms and "name" in attributes:
            kind = attributes.get("type", "text")
            if kind not in {"checkbox", "radio"} or "checked" in attributes:
                self.forms[-1].fields.append((attributes["name"], attributes.get("value", "")))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in {each.tag for each in self._open}:
            while (closed := self._open.pop()).tag != tag:
                pass
            if tag == "textarea" and self._textarea is not None:
                text = closed.text.removeprefix("\n")
                self.forms[-1].fields.append((self._textarea, text))
                self._textarea = None

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data


class PlainBrowser:
    """One browser at one gateway; `origin` is what it says that its forms come from."""

    def __init__(self, base_url: str, tls: ssl.SSLContext = NO_TLS) -> None:
        self.base_url = base_url
        self.origin: str | None = base_url
        self.client = httpx.Client(base_url=base_url, trust_env=False, verify=tls, timeout=15)

    def get(self, path: str, **headers: str) -> httpx.Response:
        """One request; redirects are answered as they are."""
        return self.client.get(path, headers=headers)

    def page(self, path: str, status: int = 200) -> Html:
        """The page at a path, which must have this status."""
        answer = self.get(path)
        assert answer.status_code == status, (answer.status_code, answer.text)
        return Html(answer.text)

    def post(
        self, path: str, fields: list[tuple[str, str]] | dict[str, str], **headers: str
    ) -> httpx.Response:
        """Send a form; redirects are answered as they are."""
        pairs = list(fields.items()) if isinstance(fields, dict) else fields
        own = {} if self.origin is None else {"Origin": self.origin}
        body = urlencode(pairs)
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.client.post(path, content=body, headers={**kind, **own, **headers})

    def submit(self, path: str, /, **typed: str | list[str]) -> httpx.Response:
        """Fill in the form of a page, and send it; what is typed replaces what stands there."""
        return self.send(self.page(path).form(), path, **typed)

    def send(self, form: Form, path: str, /, **typed: str | list[str]) -> httpx.Response:
        """Send a form of the page at `path`, filled in."""
        kept = [(name, text) for name, text in form.fields if name not in typed]
        for name, texts in typed.items():
            kept += [(name, text) for text in ([texts] if isinstance(texts, str) else texts)]
        return self.post(form.action or path, kept)

    def log_in(self, token: str) -> None:
        """Log in by the form."""
        answer = self.submit("/operator/login", token=token)
        assert answer.status_code == 303, answer.text

    def log_out(self) -> httpx.Response:
        """By the button of any page."""
        form = self.page("/operator").form("/operator/logout")
        return self.send(form, "/operator")

    @property
    def cookie(self) -> str | None:
        """The session's id, as this browser has it."""
        cookies = self.client.cookies
        return cookies.get(PLAIN_COOKIE) or cookies.get(SECURE_COOKIE)
