# The gateway in a container. It serves on 8053 as the user `gateway`; mount its configuration at
# /etc/gateway/gateway.toml and keep /var/lib/gateway, the state directory, on a volume.

# --- a virtual environment from the server's lock file ----------------------------------------
FROM python:3.13-slim-trixie AS build
WORKDIR /src
RUN python -m venv /opt/gateway
ENV PATH=/opt/gateway/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# Before the source: a change of the code keeps this layer.
COPY requirements-build.txt requirements.txt ./
RUN pip install --require-hashes -r requirements-build.txt -r requirements.txt
COPY . .
RUN pip install --no-build-isolation --no-deps . && pip uninstall --yes setuptools pip

# --- what runs --------------------------------------------------------------------------------
FROM python:3.13-slim-trixie
# For `redis.url = "embedded"`; with a Redis of your own it is not used.
RUN apt-get update \
 && apt-get install -y --no-install-recommends redis-server \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10053 --no-create-home --home-dir /var/lib/gateway gateway \
 && install -d -o gateway -g gateway -m 0700 /var/lib/gateway \
 && install -d /etc/gateway
COPY --from=build /opt/gateway /opt/gateway
ENV PATH=/opt/gateway/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    GATEWAY_CONFIG=/etc/gateway/gateway.toml \
    GATEWAY_STATE_DIR=/var/lib/gateway \
    GATEWAY_HTTP__LISTEN=0.0.0.0:8053
USER gateway
WORKDIR /var/lib/gateway
VOLUME /var/lib/gateway
EXPOSE 8053
# Alive, not ready: a DNS server or a CA that is away is no reason to restart the gateway.
# Over TLS, where it is configured, without judging the certificate: that is its clients' business.
# It has none of its own: with http.client_ca_file put another one in its place, of metrics.listen.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD \
  python -c "import urllib.request as r; r.urlopen('http://127.0.0.1:8053/healthz', timeout=2)" 2>/dev/null \
  || python -c "import ssl, urllib.request as r; r.urlopen('https://127.0.0.1:8053/healthz', timeout=2, context=ssl._create_unverified_context())"
ENTRYPOINT ["gateway"]
CMD ["serve", "--config", "/etc/gateway/gateway.toml"]
