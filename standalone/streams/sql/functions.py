"""Translate ksqlDB expressions to Spark SQL: functions of other names, `->`, lambdas, ARRAY[…], MAP(k := v), STRUCT(a := v), types."""

import re

_TEXT = re.compile(r"('(?:[^']|'')*'|`[^`]*`)")
_CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")

# Functions with another name in Spark.
RENAMED = {
    "LEN": "length", "UCASE": "upper", "LCASE": "lower",
    "ARRAY_LENGTH": "size", "EXTRACTJSONFIELD": "get_json_object", "JSON_ARRAY_LENGTH": "json_array_length",
    "STRINGTODATE": "to_date", "PARSE_DATE": "to_date", "PARSE_TIMESTAMP": "to_timestamp", "FORMAT_DATE": "date_format",
    "FORMAT_TIMESTAMP": "date_format", "FROM_UNIXTIME": "timestamp_millis", "UNIX_TIMESTAMP": "unix_millis",
    "GENERATE_SERIES": "sequence", "STDDEV_SAMPLE": "stddev_samp", "TRUNC": "bround", "TO_JSON_STRING": "to_json",
}  # fmt: skip
# Functions rewritten to another expression, given their arguments.
REWRITTEN = {
    "LATEST_BY_OFFSET": lambda args: f"max_by({args[0]}, CASE WHEN ({args[0]}) IS NOT NULL THEN ROWOFFSET END)",
    "EARLIEST_BY_OFFSET": lambda args: f"min_by({args[0]}, CASE WHEN ({args[0]}) IS NOT NULL THEN ROWOFFSET END)",
    "AS_VALUE": lambda args: args[0],
    "COUNT_DISTINCT": lambda args: f"approx_count_distinct({args[0]})",
    "TOPK": lambda args: f"slice(sort_array(collect_list({args[0]}), false), 1, {args[1]})",
    "TOPKDISTINCT": lambda args: f"slice(sort_array(collect_set({args[0]}), false), 1, {args[1]})",

    "SPLIT": lambda args: f"split({args[0]}, {_literal(args[1])})",
    "REGEXP_SPLIT_TO_ARRAY": lambda args: f"split({args[0]}, {args[1]})",
    "INSTR": lambda args: f"instr({', '.join(args)})",
    "TIMESTAMPTOSTRING": lambda args: f"date_format(timestamp_millis({args[0]}), {args[1]})",
    "STRINGTOTIMESTAMP": lambda args: f"unix_millis(to_timestamp({args[0]}, {args[1]}))",
    "DATETOSTRING": lambda args: f"date_format(date_from_unix_date({args[0]}), {args[1]})",
    "SLICE": lambda args: f"slice({args[0]}, {args[1]}, ({args[2]}) - ({args[1]}) + 1)",
    "IS_JSON_STRING": lambda args: f"(try_parse_json({args[0]}) IS NOT NULL)",
    "INITCAP": lambda args: f"initcap({args[0]})",
}
_TYPES = {"VARCHAR": "STRING", "BYTES": "BINARY", "INTEGER": "INT"}


def in_spark(text):
    """Translate an expression to Spark SQL; quoted text stays unchanged."""
    pieces = _TEXT.split(text)
    marked, kept = "", []
    for number, piece in enumerate(pieces):
        if number % 2:
            marked += f"\x01{len(kept)}\x02"
            kept.append(piece)
        else:
            marked += piece
    marked = re.sub(r"\s*->\s*", ".", marked).replace("=>", "->")  # now => is a lambda's
    marked = re.sub(r"(?i)\bARRAY\s*\[([^\[\]]*)\]", r"array(\1)", marked)
    marked = _structs(marked)
    marked = re.sub(r"(?i)\bVARCHAR\b(?!\s*\()", "STRING", marked)
    marked = _calls(marked, kept)
    return re.sub("\x01(\\d+)\x02", lambda found: kept[int(found[1])], marked)


def _structs(text):
    """Rewrite STRUCT(a := 1) to named_struct('a', 1), MAP('a' := 1) to map('a', 1)."""

    def arguments(name, args):
        pairs = [arg.partition(":=") for arg in args]
        if name == "STRUCT" and any(mark for _, mark, _ in pairs):
            return "named_struct(" + ", ".join(f"'{key.strip().strip('`')}', {value.strip()}" for key, _, value in pairs) + ")"
        if name == "MAP" and any(mark for _, mark, _ in pairs):
            return "map(" + ", ".join(f"{key.strip()}, {value.strip()}" for key, _, value in pairs) + ")"
        return None

    return _rewritten(text, {"STRUCT": lambda args: arguments("STRUCT", args), "MAP": lambda args: arguments("MAP", args)})


def _calls(text, kept):
    whole = {name: (lambda args, make=make: make([_restored(arg, kept) for arg in args])) for name, make in REWRITTEN.items()}
    text = _rewritten(text, whole)
    return _CALL.sub(lambda found: f"{RENAMED.get(found[1].upper(), found[1])}(", text)


def _restored(text, kept):
    return re.sub("\x01(\\d+)\x02", lambda found: kept[int(found[1])], text)


def _rewritten(text, makers):
    """Rewrite the calls of these functions, innermost first."""
    at = len(text)
    for found in reversed(list(_CALL.finditer(text))):
        at = found.start()
        make = makers.get(found[1].upper())
        if make is None:
            continue
        args, end = _arguments(text, found.end())
        if end is None or not args:
            continue
        try:
            made = make(args)
        except IndexError:
            continue
        if made is not None:
            text = text[:at] + made + text[end:]
    return text


def _arguments(text, at):
    """Return (arguments of the call whose bracket opens at `at`, its end)."""
    depth, begun, found, quoted = 0, at, [], False
    while at < len(text):
        letter = text[at]
        if letter == "'":
            quoted = not quoted
        elif quoted:
            pass
        elif letter in "([":
            depth += 1
        elif letter in ")]" and depth:
            depth -= 1
        elif letter == ")":
            found.append(text[begun:at].strip())
            return [each for each in found if each], at + 1
        elif letter == "," and not depth:
            found.append(text[begun:at].strip())
            begun = at + 1
        at += 1
    return found, None


def _literal(pattern):
    """Escape a delimiter as a regular expression for Spark's split."""
    if len(pattern) >= 2 and pattern[0] == pattern[-1] == "'":
        return "'" + re.sub(r"([.^$*+?()\[\]{}|\\])", r"[\1]", pattern[1:-1]).replace("[\\]", "\\\\\\\\").replace("[^]", "\\\\^") + "'"
    return pattern


def spark_type(text):
    """Translate a ksqlDB type to Spark's DDL."""
    out = text.strip()
    for mine, sparks in _TYPES.items():
        out = re.sub(rf"(?i)\b{mine}\b(\s*\(\s*\d+\s*\))?", sparks, out)
    out = re.sub(r"(?i)\bSTRUCT\s*<", "STRUCT<", out)
    return _named_fields(out)


def _named_fields(text):
    """Rewrite STRUCT<a INT> to STRUCT<a: INT>."""
    return re.sub(r"([<,]\s*)(`[^`]+`|[A-Za-z_]\w*)\s+(?=[A-Za-z])", r"\1\2: ", text)
