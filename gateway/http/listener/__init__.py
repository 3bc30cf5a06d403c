"""The HTTP listener: its socket, its TLS, its bounds, and the server that speaks HTTP/1.1 on it.

Knows nothing of what is served. Called by `gateway.listening`; `binding` also by whoever opens
another listener.
"""
