"""Java's regular expressions mean in Python what they mean in Java (expectations recorded on Java 17)."""

import pytest
from pytest import param

from standalone.data.java_regex import compile_java
from standalone.errors import ConfigError


@pytest.mark.parametrize(
    "pattern, matches, others",
    [
        param("a.*", ["a", "abc"], ["ba", "a\n", "a\r", "a\u2028"], id="a dot stops at every line end"),
        param("(?s)a.*", ["a\n\r"], ["b"], id="unless configured otherwise"),
        param("(?<x>a+)-\\k<x>", ["aa-aa"], ["aa-a"], id="named groups"),
        param("\\Qa.b\\E.", ["a.bc"], ["axbc"], id="quoting"),
        param("\\Q[", ["["], [], id="quoting without end"),
        param("\\p{Alpha}\\p{Digit}+", ["a1"], ["\u00e41", "a\u0661"], id="POSIX classes are ASCII"),
        param("[\\p{Upper}_]+", ["A_B"], ["a"], id="within a set"),
        param("\\P{Alpha}", ["1", "\u00e4"], ["a"], id="negated"),
        param("\\p{L}+", ["\u00e4bc"], ["1"], id="Unicode categories"),
        param("\\p{Lu}", ["\u00c4"], ["\u00e4"], id="and their parts"),
        param("\\w\\d", ["a1"], ["\u00e41", "a\u0661"], id="word characters are ASCII"),
        param("x(?i)a|b", ["xa", "xA", "b", "B"], ["XA"], id="a flag in the middle holds for the rest"),
        param("(x(?i)a)b", ["xAb"], ["xAB"], id="of its group"),
        param("(?i:a)b", ["Ab"], ["AB"], id="a group with flags"),
        param("[^|a]", ["b"], ["|"], id="a set"),
        param("[]a]", ["]", "a"], ["b"], id="a bracket that comes first"),
        param("a\\x{1F600}\\0101\\e", ["a\U0001f600A\x1b"], [], id="characters by number"),
        param("a\\Rb", ["a\r\nb", "a\u0085b"], ["ab"], id="any line end"),
        param("a{2}", ["aa"], ["a"], id="counts"),
        param("topic-(?!internal).*", ["topic-a"], ["topic-internal"], id="look-ahead"),
        param("[a-z&&[^e]]", ["a", "z"], ["e", "A"], id="a set without another"),
        param("[\\w&&[^_]]+", ["aZ9"], ["a_"], id="a class without a letter"),
        param("[a-c[x-z]]", ["a", "y"], ["m"], id="a set within a set"),
        param("[^a-d&&c-f]", ["a", "z"], ["c", "d"], id="what is in both is left out"),
        param("[a-z&&[def]&&[^e]]", ["d", "f"], ["e", "a"], id="two intersections"),
        param("[&&[ab]]", ["a"], ["c"], id="an intersection with everything"),
        param("[a-z&&\\D&&^b]", ["b"], ["^", "a"], id="a caret that comes later is a letter"),
        param("[\\W\\d]", ["-", "5", "\u00e9"], ["a"], id="what is left out, within a set"),
        param("[\\P{Alpha}&&\\p{L}]", ["\u00e9"], ["a", "1"], id="left out and in"),
        param("[a\\-z]|[a-]|[-b]|[--/]", ["-", "a", "z", "/"], ["c"], id="a dash"),
        param("[|~#&^\"{}]+", ["|~#&^\"{}"], ["a"], id="marks that mean something elsewhere"),
        param("[\\Q-]\\E]+", ["-]"], ["a"], id="quoting within a set"),
        param("(?U)\\w+", ["\u00e9\u0663", "a_"], ["-"], id="words of all scripts"),
        param("(?U)\\d", ["5", "\u0663"], ["a"], id="digits of all scripts"),
        param("(?U)\\s", ["\u2028", "\u00a0"], ["a"], id="blanks of all scripts"),
        param("(?U)[\\p{Alpha}&&[^e]]", ["\u00e9"], ["e", "1"], id="POSIX classes of all scripts"),
        param("(?U:\\w)\\w", ["\u00e9a"], ["a\u00e9"], id="in a group alone"),
        param("(?U)(?-U)\\w", ["a"], ["\u00e9"], id="and taken back"),
        param("(?i)\u00e9k", ["\u00e9K"], ["\u00c9k", "\u00e9\u212a"], id="case is that of ASCII"),
        param("(?iu)\u00e9", ["\u00c9"], ["e"], id="unless configured otherwise, too"),
        param("(?i)\u00df", ["\u00df"], ["ss"], id="one letter for one"),
        param("a++b|c?+d", ["aab", "cd"], ["aa"], id="possessive quantifiers"),
        param("(?x) a [b c] # as it was\n d", ["abd"], ["a d", "a d"], id="comments"),
        param("\\v\\V", ["\u2028a"], ["av"], id="vertical blanks"),
        param("a\\bb|\\b-|\u00e9\\B\u00e9", ["\u00e9\u00e9"], ["ab", "-"], id="bounds of words"),
        param("\\ud83d\\ude00[\\x{1F600}-\\x{1F602}]", ["\U0001f600\U0001f601"], [], id="a pair of surrogates"),
        param("(?<!x)a|(?>b)", ["a", "b"], ["x"], id="look-behind and atomic"),
        param("\\h\\H", ["\u00a0a", "\u180ea"], ["\na"], id="horizontal blanks"),
        param("\\R\\R", ["\r\n", "\n\n"], ["\n"], id="two line ends may be one"),
        param("\\X", ["e\u0301", "\r\n", "\U0001f468\u200d\U0001f469"], ["ae\u0301"], id="what is one letter to the eye"),
        param("[\\N{LATIN SMALL LETTER A}b]\\N{digit one}", ["a1", "b1"], ["N1"], id="characters by name"),
        param("\\p{IsLatin}\\p{sc=Grek}", ["a\u03b1"], ["\u03b1a", "1\u03b1"], id="scripts"),
        param("\\p{InGreek}\\p{block=Basic Latin}", ["\u03b1a", "\u03911"], ["a\u03b1"], id="blocks"),
        param("\\p{IsAlphabetic}\\p{IsWhite_Space}\\p{gc=Lu}", ["\u2160 A"], ["1 A", "a a"], id="properties"),
        param("\\p{IsAlpha}\\p{Alpha}", ["\u00e9a"], ["a\u00e9"], id="POSIX classes by Is are Unicode's"),
        param("\\p{javaLowerCase}\\p{javaWhitespace}", ["a ", "\u00e9\u2028"], ["a\u00a0", "A "], id="classes of Java's Character"),
        param("(?i)\\p{Lu}\\p{javaUpperCase}", ["\u00e9a", "A\u01c5"], ["1a"], id="classes of one case, in any case"),
        param("(?d)a.", ["a\r", "a\u0085"], ["a\n"], id="line ends of Unix"),
        param("\\Qab\\E+", ["ab", "abbb"], ["abab"], id="what counts, counts the last letter quoted"),
        param("(?x)\\Qa b\\E [ x y ]", ["a bx"], ["abx", "a b "], id="comments, quoting and sets"),
    ],
)
def test_meaning(pattern, matches, others):
    compiled = compile_java(pattern)
    assert [text for text in matches if not compiled.fullmatch(text)] == []
    assert [text for text in others if compiled.fullmatch(text)] == []


@pytest.mark.parametrize(
    "pattern",
    ["[", "(", ")", "*", "a{", "(?P<x>a)", "\\p{Nothing}", "[a&&]", "[a[b]", "[z-a]", "(?R)", "(*F)", "a{e}", "\\", "\\y", "(?Z)a"]
    + ["(?<n>a)(?<n>b)", "\\k<n>(?<n>a)", "(?<n_1>a)", "\\p{^L}", "\\p{IsNothing}", "\\p{InNothing}", "\\N{NO SUCH}", "\\b{g}a", "(?i)\\X"],
)
def test_what_cannot_be_used_is_refused(pattern):
    with pytest.raises(ConfigError, match="is not a supported regular expression"):
        compile_java(pattern)
