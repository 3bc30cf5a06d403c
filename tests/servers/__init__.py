"""One suite for every kind of DNS server: BIND, Knot DNS and PowerDNS, each the real program."""
