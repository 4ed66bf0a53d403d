"""Kafka Connect's standalone mode as one Python process: the public names.

Connectors, converters and transforms import everything that they need from here; other modules are internal. public.py lists the
names and is loaded on first use, so a command that uses none starts quickly.
"""

import importlib.util
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from standalone.public import *  # noqa: F403


def __getattr__(name):
    if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}") is None:
        from standalone import public

        if hasattr(public, name):
            return getattr(public, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
