"""The catalogue of plugins: what each does, an example, where its keys are. Out of docstrings, and of config/ for connectors."""

import configparser
import importlib
import importlib.util
import inspect
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
HEAD = """# Plugins

This page lists every connector, transform, predicate, converter and config provider in the package. It is generated from the code by
`scripts/docs`. Use the names, or Java's class names, in `connector.class`, `transforms.NAME.type`, `predicates.NAME.type`, `key.converter`,
`value.converter`, `header.converter` and `config.providers.NAME.class`. To write your own plugins, see
[tutorial-connector.md](tutorial-connector.md) and [tutorial-transform.md](tutorial-transform.md).
"""
_KINDS = {
    "connector": "Connectors",
    "transform": "Transforms",
    "predicate": "Predicates",
    "converter": "Converters",
    "config_provider": "Config providers",
}


def targets():
    """[(kind, module:Class)] in the order of setup.cfg and of plugins.py."""
    from standalone.plugins import BUILT_IN

    names = configparser.ConfigParser()
    names.read(ROOT / "setup.cfg")
    lines = names["options.entry_points"]["connect_standalone.connectors"].strip().splitlines()
    found = [("connector", line.partition("=")[2].strip()) for line in lines]
    for _, (target, kinds, _) in sorted(BUILT_IN.items()):
        kind = "converter" if "converter" in kinds or "header_converter" in kinds else kinds[0]
        if importlib.util.find_spec(target.partition(":")[0]) is not None:
            found.append((kind, target))
    return found


def load(target):
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def examples(plugin):
    """[(settings, before, after)] of a transform's docstring; the settings as {key: text}."""
    found = []
    for line in inspect.getdoc(plugin).splitlines():
        left, arrow, after = line.partition("  ->  ")
        if not arrow:
            continue
        settings, _, before = left.strip().partition("      ") if "      " in left.strip() else (left, "", "")
        found.append((_settings(settings.strip()), before.strip(), after.strip()))
    return found


def _settings(text):
    """"a=1, b=2" as a mapping; a comma followed by no key belongs to the value."""
    pairs = {}
    for part in re.split(r",\s+(?=[a-z][\w.]*=)", text):
        key, _, value = part.partition("=")
        pairs[key.strip()] = value.strip()
    return pairs


def is_json(text):
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def page():
    parts = [HEAD]
    by_kind = {}
    for kind, target in targets():
        by_kind.setdefault(kind, []).append(load(target))
    samples = _samples()
    for kind, title in _KINDS.items():
        parts.append(f"\n## {title}\n")
        for plugin in by_kind[kind]:
            parts.append(_entry(kind, plugin, samples))
    return "\n".join(parts)


def _entry(kind, plugin, samples):
    java = getattr(plugin, "java_name", None)
    lines = [f"### {_short(kind, plugin)}\n"]
    if java and java != plugin.__name__ and "." in java:
        lines.append(f"`{java}`\n")
    lines.append(_prose(plugin) + "\n")
    if kind == "connector":
        sample = samples.get(plugin.__name__) or samples.get(java)
        if sample:
            lines.append(f"Sample, by `connectctl init -c {sample[0]}`:\n\n" + "".join(f"    {line}\n" for line in sample[1]))
    elif kind == "transform":
        lines.append(_transforms(plugin))
    elif kind == "predicate":
        keys = "".join(f"    predicates.p.{option.name}={_VALUES.get(option.name, '…')}\n" for option in plugin.config_def)
        lines.append(f"    transforms.t.predicate=p\n    predicates=p\n    predicates.p.type={plugin.__name__}\n{keys}")
    if plugin.config_def and any(not option.internal for option in plugin.config_def):
        title = f"{plugin.__name__} (`{java}`)"
        lines.append(f"Keys: [configuration.md](configuration.md#{anchor(title)})\n")
    return "\n".join(line for line in lines if line)


_VALUES = {"name": "trace", "pattern": "orders-.*"}


def anchor(title):
    """As GitHub and MkDocs make it of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


def _transforms(plugin):
    lines = []
    for settings, before, after in examples(plugin):
        inner = "$Value" if hasattr(plugin, "Value") else ""
        lines.append(f"    transforms.t.type={plugin.__name__}{inner}")
        lines += [f"    transforms.t.{key}={value}" for key, value in settings.items()]
        if before:
            lines.append(f"    # {before}  ->  {after}")
        lines.append("")
    return "\n".join(lines)


def _short(kind, plugin):
    return plugin.__name__.removesuffix("Connector") if kind == "connector" else plugin.__name__


def _prose(plugin):
    """The docstring without its examples."""
    lines = [line for line in (inspect.getdoc(plugin) or "").splitlines() if "  ->  " not in line]
    if plugin.__name__ == "Sql":
        lines = [line for line in lines if not line.startswith("statement=")]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return re.sub(r"^((?:\$\{|\{|[a-z][\w.]*=).*)$", r"    \1", text, flags=re.MULTILINE)


def _samples():
    """{class: (name of the sample, its lines without comments)}"""
    found = {}
    for path in sorted((ROOT / "config").glob("connect-*.properties")):
        lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
        name = next((line.partition("=")[2].strip() for line in lines if line.startswith("connector.class=")), None)
        if name:
            sample = path.stem.removeprefix("connect-"), lines
            found[name] = found[name + "Connector"] = sample
    return found
