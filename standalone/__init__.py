"""Kafka Connect's standalone mode as one Python process: the public names.

Everything a connector, converter or transform needs is imported from here, and what is not here is nobody's to import. The names
are listed in public.py, which is loaded with the first of them: a command that needs none answers at once.
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
