"""Serve: Streamlit's server, which imports the engine while the browser is still loading."""

import socket
import sys
import threading
import time

from streamlit.web import cli

PATIENCE = 60
"""Seconds for which the server may take to start; after that the page imports for itself."""


def prepare(port: int) -> None:
    """Import what the first page needs, once the server listens: both at once would delay it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            socket.create_connection(("localhost", port), timeout=1).close()
            break
        except OSError:
            time.sleep(0.05)
    from app import forms  # noqa: F401
    from core import runs  # noqa: F401


if __name__ == "__main__":
    port = int(sys.argv[sys.argv.index("--server.port") + 1])
    threading.Thread(target=prepare, args=(port,), daemon=True).start()
    sys.argv[0] = "streamlit"
    sys.exit(cli.main())
