"""The operator's page at `/operator`: a web page on the gateway's own listener.

`frame` is what every page stands in: who may see it, its bounds, its headers, and how faults look.
`sessions` knows who is logged in. The pages themselves read `parts` and are rendered from
`templates` by Jinja2, which is imported in this package only. No page decides anything about a
hostname or a client: it calls what the command line and the endpoint call.
"""
