"""`gateway completion`: the script by which a shell completes commands, options and values.

Responsible for printing click's own script, for the name by which the program was called. Must not:
write into anyone's shell configuration. What is completed with says click, asked by the script.
"""

from __future__ import annotations

import re
from typing import Final

import click
from click.shell_completion import get_completion_class

_EXAMPLES: Final = """\b
For the terminal you are in:
  source <(gateway completion bash)        # zsh: the same with zsh
  gateway completion fish | source

\b
For every terminal from now on:
  gateway completion bash > ~/.local/share/bash-completion/completions/gateway
  gateway completion zsh > ~/.zfunc/_gateway
  gateway completion fish > ~/.config/fish/completions/gateway.fish
"""


@click.command(epilog=_EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    The folders below must be there. bash needs the package bash-completion for that; without it,
    append the script to ~/.bashrc. zsh needs fpath=(~/.zfunc $fpath) in ~/.zshrc, before compinit
    is run.
    """
    root = ctx.find_root()
    program = root.info_name or "gateway"
    completer = get_completion_class(shell)
    assert completer is not None  # noqa: S101  (it is one of the choices)
    click.echo(completer(root.command, {}, program, _asking_variable(program)).source())


def _asking_variable(program: str) -> str:
    """The environment variable by which the script asks; click derives the same from the name."""
    return f"_{re.sub('[-.]', '_', program)}_COMPLETE".upper()
