"""What every nginx of the tests is started with, whatever it serves.

Responsible for: its command, its end with this process, and the folders that it would otherwise
have below /var. Must not: know what it serves. Called by: `nginx`, `nginx_gateways`, tests that run
an nginx of their own.
"""

from pathlib import Path

from tests.lab.process import find_program

TEMPORARY_PATHS = """\
client_body_temp_path {folder}/temporary/body;
    proxy_temp_path {folder}/temporary/proxy;
    fastcgi_temp_path {folder}/temporary/fastcgi;
    scgi_temp_path {folder}/temporary/scgi;
    uwsgi_temp_path {folder}/temporary/uwsgi;"""
"""Of the `http` block; a format that takes `folder`, in which `temporary` must be there."""


def nginx_command(folder: Path) -> list[str]:
    """The command of an nginx whose configuration is `nginx.conf` in the folder."""
    # -e: where nginx complains before it has read its configuration.
    error_log, config_file = folder / "error.log", folder / "nginx.conf"
    return [find_program("nginx", "nginx"), "-e", str(error_log), "-c", str(config_file)]


def ending_with_us(command: list[str]) -> list[str]:
    """The command of one that ends politely with this process, however that ends."""
    # Workers outlive a master that is killed.
    return [find_program("setpriv", "util-linux"), "--pdeathsig", "TERM", "--", *command]
