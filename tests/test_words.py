"""The words of comments, messages and pages: Kafka's and Spark's, short and plain. Each word below has one that readers know."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parent.parent
INSTEAD = {
    r"anew": "again, or recreated, restarted, recomputed",
    r"in the midst": "in the middle, while",
    r"at hand": "cached, or available",
    r"in vain": "without success, or timed out",
    r"hangs on": "depends on",
    r"mend(?:ed|s|ing)?": "fix, repair",
    r"(?:told|taken) apart": "distinguished, parsed, split",
    r"worked out": "computed",
    r"(?:column|row) meanings?": "columnar form, row form",
    r"untold": "unreported",
    r"culprits?": "cause",
    r"passe[ds] over": "skipped",
    r"thrown away": "discarded",
    r"behind each other": "one after another",
    r"go(?:es)? on behind": "continues after",
    r"for ever": "forever",
    r"as (?:Java|Spark|SQL) has it": "as in Java",
}
FORBIDDEN = re.compile(rf"\b(?:{'|'.join(INSTEAD)})\b", re.IGNORECASE)
TEXT = re.compile(r"\.(?:py|md|js|properties|cfg|sh|service|logrotate|sql)$")


def found(text):
    """[(line number, word)]"""
    return [(number, match[0]) for number, line in enumerate(text.splitlines(), 1) for match in FORBIDDEN.finditer(line)]


def files():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a clone: git lists no files")
    paths = [ROOT / name for name in listed.stdout.splitlines() if TEXT.search(name) and not name.startswith("tests/golden/")]
    return [path for path in paths if path != pathlib.Path(__file__) and path.exists()]


def test_no_invented_word_is_used():
    uses = [f"{path.relative_to(ROOT)}:{number}: {word!r}" for path in files() for number, word in found(path.read_text(errors="replace"))]
    known = "; ".join(f"{word}: {better}" for word, better in INSTEAD.items())
    assert not uses, "\n".join(["say it in plain words:", *uses, known])


@pytest.mark.parametrize("line", ["# The list begins anew", '"""Requests are taken apart here."""', "it Hangs on the schema", "goes on behind it"])
def test_an_invented_word_is_seen(line):
    assert found(f"first line\n{line}\n")


@pytest.mark.parametrize("line", ["made_anew()", "MADE_ANEW = 1", "an amendment", "handle"])
def test_names_in_code_and_longer_words_are_left_alone(line):
    assert found(line) == []
