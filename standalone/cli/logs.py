"""How log lines look: Connect's form, with the connector's context, on standard error."""

import logging
import sys

_FORM = "[%(asctime)s] %(levelname)s %(context)s%(message)s (%(name)s:%(lineno)d)"
_CHATTY = ("kafka", "uvicorn", "py4j", "numba", "asyncio")


def set_up_logs(level="INFO"):
    from standalone.runtime.lifecycle import ContextFilter

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_FORM))
    handler.addFilter(ContextFilter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
