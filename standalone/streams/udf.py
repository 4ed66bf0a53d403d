"""Functions of Python that statements of SQL call: those of the files and modules that `sql.functions` names.

    from standalone.streams import function

    @function("double")
    def with_tax(total: float, percent: float):
        return total * (1 + percent / 100)

    @function("string", arrow=True)        # whole columns at once: pyarrow arrays in, one out
    def shortened(text): ...

A function is called once a row with Python's values (None is null), or with `arrow` once a batch. Functions run in Spark's own Python
processes, so what a file holds goes there with them; modules have to be installed where Spark runs.
"""

import hashlib
import importlib
import importlib.util
import sys
from typing import Any, NamedTuple

from standalone.errors import ConfigError
from standalone.streams.sql.functions import RENAMED, REWRITTEN

KEY = "sql.functions"
_MARK = "__connect_function__"


class Function(NamedTuple):
    name: str
    returns: str  # a type of Spark SQL
    arrow: bool
    call: Any
    place: str  # the file or module

    @property
    def parameters(self):
        code = self.call.__code__
        return code.co_varnames[: code.co_argcount]

    @property
    def text(self):
        """How it is called, and what it gives."""
        return f"{self.name}({', '.join(self.parameters)}) → {self.returns.upper()}"


def function(returns, name=None, arrow=False):
    """Mark a function that SQL may call. `returns` is a type of Spark SQL; the name is the function's own unless told."""

    def marked(call):
        setattr(call, _MARK, (name or call.__name__, returns, arrow))
        return call

    return marked


def load(places):
    """[Function] of files (`….py`) and modules. Raises ConfigError that names the place."""
    found = {}
    for place in places:
        try:
            module = _module(place)
        except Exception as error:
            raise ConfigError.of({KEY: f"names {place}, which cannot be loaded: {type(error).__name__}: {error}"}) from error
        own = [value for value in vars(module).values() if callable(value) and hasattr(value, _MARK)]
        if not own:
            raise ConfigError.of({KEY: f"names {place}, which has no function: mark it with @function(type), of standalone.streams"})
        for call in own:
            name, returns, arrow = getattr(call, _MARK)
            if name.upper() in RENAMED or name.upper() in REWRITTEN:
                raise ConfigError.of({KEY: f"names {place}, whose function {name} is one that SQL has already: call it otherwise"})
            if (other := found.get(name.lower())) is not None:
                raise ConfigError.of({KEY: f"has the function {name} twice, in {other.place} and in {place}"})
            found[name.lower()] = Function(name, returns, arrow, call, place)
    return sorted(found.values())


def _module(place):
    if not place.endswith(".py"):
        return importlib.import_module(place)
    from pyspark import cloudpickle

    # Two files may have the same name. Nothing else can import it, so Spark's processes get the code itself.
    name = f"connect_functions_{hashlib.sha256(place.encode()).hexdigest()[:12]}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, place)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        cloudpickle.register_pickle_by_value(module)
    return sys.modules[name]


def register(session, functions):
    """Have statements in this session find the functions."""
    from pyspark.sql import functions as f

    for each in functions:
        try:
            made = f.arrow_udf(each.call, each.returns, f.ArrowUDFType.SCALAR) if each.arrow else f.udf(each.call, each.returns)
            session.udf.register(each.name, made)
        except Exception as error:
            raise ConfigError.of({KEY: f"names {each.place}, whose function {each.name} Spark does not take: {error}"}) from error
