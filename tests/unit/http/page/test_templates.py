"""The templates and the style: nothing is marked safe, nothing inline, nothing from elsewhere."""

import re
from pathlib import Path

import pytest

from gateway.http.page.rendering import environment

FOLDER = Path(__file__).parents[4] / "gateway" / "http" / "page"
TEMPLATES = sorted((FOLDER / "templates").glob("*.html"))
UNSAFE = {
    "marked safe": r"\|\s*safe\b|Markup|autoescape",
    "inline style": r"\sstyle\s*=|<style",
    "inline script": r"<script(?![^>]*\ssrc=\"/operator/static/page\.js\")|\son[a-z]+\s*=\s*\"",
    "from elsewhere": r"(?:src|href|action)\s*=\s*[\"'](?:[a-z]+:|//)|@import|url\((?!#)",
    "attribute without quotes": r"<[^>]*\s[a-z-]+=\{\{",
}


def test_there_are_templates() -> None:
    assert {"base.html", "error.html", "login.html"} <= {each.name for each in TEMPLATES}


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda each: each.name)
def test_template_compiles(template: Path) -> None:
    environment().get_template(template.name)


@pytest.mark.parametrize("what", UNSAFE)
@pytest.mark.parametrize("template", TEMPLATES, ids=lambda each: each.name)
def test_template_has_nothing_that_is_unsafe(template: Path, what: str) -> None:
    assert re.findall(UNSAFE[what], template.read_text("utf-8")) == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda each: each.name)
def test_each_form_that_is_posted_shows_that_it_is_the_sessions_own(template: Path) -> None:
    if template.name == "login.html":
        return  # there is no session yet: where it comes from is looked at
    for form in re.findall(r"<form[^>]*post.*?</form>", template.read_text("utf-8"), re.DOTALL):
        assert "form_keys()" in form or 'name="csrf"' in form


def test_style_and_script_load_nothing() -> None:
    style = (FOLDER / "static" / "page.css").read_text("utf-8")
    assert re.findall(r"@import|url\(|https?:", style) == []
    script = (FOLDER / "static" / "page.js").read_text("utf-8")
    unsafe = r"innerHTML\s*=[^=]|insertAdjacentHTML|eval\(|new Function|https?:"
    assert re.findall(unsafe, script) == []
    assert len(script.splitlines()) <= 260
    assert len(style.splitlines()) < 400
