"""Java's regular expressions mean in Python what they mean in Java (expectations recorded on Java 17)."""

import pytest
from pytest import param

from standalone.data.java_regex import compile_java
from standalone.errors import ConfigError


@pytest.mark.parametrize(
    "pattern, matches, others",
    [
        param("a.*", ["a", "abc"], ["ba", "a\n", "a\r", "a\u2028"], id="a dot stops at every line end"),
        param("(?s)a.*", ["a\n\r"], ["b"], id="unless told otherwise"),
        param("(?<x>a+)-\\k<x>", ["aa-aa"], ["aa-a"], id="named groups"),
        param("\\Qa.b\\E.", ["a.bc"], ["axbc"], id="quoting"),
        param("\\Q[", ["["], [], id="quoting without end"),
        param("\\p{Alpha}\\p{Digit}+", ["a1"], ["\u00e41", "a\u0661"], id="POSIX classes are ASCII"),
        param("[\\p{Upper}_]+", ["A_B"], ["a"], id="within a set"),
        param("\\P{Alpha}", ["1", "\u00e4"], ["a"], id="negated"),
        param("\\p{L}+", ["\u00e4bc"], ["1"], id="Unicode categories"),
        param("\\p{Lu}", ["\u00c4"], ["\u00e4"], id="and their parts"),
        param("\\w\\d", ["a1"], ["\u00e41", "a\u0661"], id="word characters are ASCII"),
        param("x(?i)a|b", ["xa", "xA", "b", "B"], ["XA"], id="a flag in the midst holds for the rest"),
        param("(x(?i)a)b", ["xAb"], ["xAB"], id="of its group"),
        param("(?i:a)b", ["Ab"], ["AB"], id="a group with flags"),
        param("[^|a]", ["b"], ["|"], id="a set"),
        param("[]a]", ["]", "a"], ["b"], id="a bracket that comes first"),
        param("a\\x{1F600}\\0101\\e", ["a\U0001f600A\x1b"], [], id="characters by number"),
        param("a\\Rb", ["a\r\nb", "a\u0085b"], ["ab"], id="any line end"),
        param("a{2}", ["aa"], ["a"], id="counts"),
        param("topic-(?!internal).*", ["topic-a"], ["topic-internal"], id="look-ahead"),
        param("(?<!x)a|(?>b)", ["a", "b"], ["x"], id="look-behind and atomic"),
    ],
)
def test_meaning(pattern, matches, others):
    if "(?>" in pattern and not hasattr(__import__("re"), "NOFLAG"):
        pytest.skip("Python 3.10 has no atomic groups")
    compiled = compile_java(pattern)
    assert [text for text in matches if not compiled.fullmatch(text)] == []
    assert [text for text in others if compiled.fullmatch(text)] == []


@pytest.mark.parametrize("pattern", ["[", "(", ")", "*", "a{", "(?P<x>a)", "\\p{Nothing}", "[a&&b]", "[a[b]]", "\\", "\\y", "(?Z)a"])
def test_what_cannot_be_used_is_refused(pattern):
    with pytest.raises(ConfigError, match="is not a regular expression"):
        compile_java(pattern)
