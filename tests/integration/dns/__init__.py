"""`gateway.dns` against real BIND servers, with other people's hands in the same zones."""
