import subprocess
import sys

SERVER_LIBRARIES = ["starlette", "redis", "dns", "acme", "josepy", "httpx", "structlog"]

PROGRAM = """
import sys
import gateway.contract
gateway.contract.is_gateway_client_hostname("relay.example.com")
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_contract_loads_no_server_library_in_a_fresh_process() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True
    )
    loaded = set(answer.stdout.split())
    assert "pydantic" in loaded
    assert loaded.isdisjoint([*SERVER_LIBRARIES, "uvicorn", "cryptography", "click", "idna"])
