"""The token of `gateway client`: where it is taken from.

Responsible for: a file, standard input, two variables and a prompt, in this order. Must not: show a
token, or take one from the arguments, which the group of all commands refuses. Used by
`cli.client_connection`.
"""

from __future__ import annotations

import getpass
import sys
from typing import TYPE_CHECKING, Final

import click

from gateway import variables
from gateway.cli.session import say

if TYPE_CHECKING:
    from collections.abc import Mapping

PROMPT: Final = "Token (not shown): "
STANDARD_INPUT: Final = "-"
NO_TOKEN: Final = (
    f"There is no token: name its file with --token-file or ${variables.TOKEN_FILE}, or set"
    f" ${variables.TOKEN}; only a terminal is asked for it."
)


def find_token(token_file: str | None, environ: Mapping[str, str]) -> tuple[str, str]:
    """What the token's source is called in a sentence, and the token.

    Asks for it at a terminal when there is no other source. An empty variable counts as none.

    Raises:
        TokenUnreadable: there is no source, or what it holds is no token; the text is a sentence
            without an end and without the token.
        KeyboardInterrupt: ^C at the prompt.

    """
    from gateway.cli.client_words import begun
    from gateway.client.tokens import TokenSource, TokenUnreadable, token_of

    if token_file == STANDARD_INPUT:
        return "standard input", token_of(sys.stdin.readline(), "standard input")
    file = token_file or environ.get(variables.TOKEN_FILE)
    if file:
        source = TokenSource("file", file, environ, may_be_pipe=True)
    elif environ.get(variables.TOKEN):
        source = TokenSource("env", variables.TOKEN, environ)
    elif sys.stdin is not None and sys.stdin.isatty():
        return "the prompt", token_of(_typed(), "the prompt")
    else:
        raise TokenUnreadable(NO_TOKEN.removesuffix("."))
    token = source.read()
    warning = source.warning()
    # A person can mend it; a script would only be told at each run.
    if warning is not None and sys.stderr.isatty():
        say(f"{begun(warning)}.", err=True)
    return str(source), token


def _typed() -> str:
    """What a person types at the prompt; nothing where the input ends instead."""
    try:
        return getpass.getpass(PROMPT, stream=sys.stderr)
    except EOFError:
        click.echo(err=True)
        return ""
    except KeyboardInterrupt:
        click.echo(err=True)
        raise
