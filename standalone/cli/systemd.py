"""Notifications to systemd for a service with Type=notify: ready, watchdog, stopping.

Each is a datagram of KEY=value lines to the socket named in $NOTIFY_SOCKET. Without that variable none is sent.
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
        """Seconds between watchdog notifications: half of systemd's timeout. None if the watchdog is off."""
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
            pass  # systemd does not listen any more: no reason to stop


def _watchdog_seconds(environment):
    """The timeout in $WATCHDOG_USEC, if it applies to this process."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    text = environment.get("WATCHDOG_USEC", "")
    return int(text) / 1_000_000 if text.isdigit() and int(text) else None
