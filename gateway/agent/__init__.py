"""The agent: keeps a machine's address record and certificate files current, for days unattended.

Responsible for one machine's share: what its configuration lists, through the SDK
(`gateway.client`), and the files and the deploy hook on its own disk. Must not: need anything of
the server, or hold that the gateway can be reached. Called by `gateway.cli.agent`.

On disk: `lineage` (certificates, of `versions` and `version_files`), `memory` (what is known over
restarts), `lock` (one agent at a time), all by way of `durable`; `hook` runs what makes a server
load its new files.
"""
