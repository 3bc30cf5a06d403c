# BIND and Pebble as Debian ships them, the same as scripts/lab uses: for docker-compose.yml.
FROM debian:trixie-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends bind9 bind9-dnsutils pebble \
 && rm -rf /var/lib/apt/lists/*
