"""What systemd is told of a service with Type=notify: that it is up, that it lives, that it stops.

The protocol is a datagram of KEY=value lines to the socket that $NOTIFY_SOCKET names; without that variable nobody is told anything.
"""

import os
import socket


class Notifier:
    def __init__(self, environment=os.environ):
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address  # an abstract socket
        self._watchdog = _watchdog_seconds(environment)

    @property
    def interval(self):
        """Seconds between two signs of life: half of what systemd waits for one. None if it waits for none."""
        return self._watchdog / 2 if self._address and self._watchdog else None

    def ready(self, status):
        self._tell(f"READY=1\nSTATUS={status}")

    def alive(self):
        self._tell("WATCHDOG=1")

    def stopping(self, status="Stopping"):
        self._tell(f"STOPPING=1\nSTATUS={status}")

    def _tell(self, text):
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as to:
                to.connect(self._address)
                to.send(text.encode())
        except OSError:
            pass  # whoever started us has gone: no reason to stop


def _watchdog_seconds(environment):
    """What $WATCHDOG_USEC says, if it is said to this process."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    text = environment.get("WATCHDOG_USEC", "")
    return int(text) / 1_000_000 if text.isdigit() and int(text) else None
