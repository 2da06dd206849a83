"""Patterns with braces stand for what bash says."""

import pytest

from vantage.data.sources.shards import expand_braces
from vantage.errors import DataError

# What `bash -c 'echo PATTERN'` prints; where bash and webdataset's braceexpand differ, neither is here.
PATTERNS = {
    "a.tar": ["a.tar"],
    "t-{000..003}.tar": ["t-000.tar", "t-001.tar", "t-002.tar", "t-003.tar"],
    "{8..11}": ["8", "9", "10", "11"],
    "{08..11}": ["08", "09", "10", "11"],
    "{3..1}": ["3", "2", "1"],
    "{0..8..4}": ["0", "4", "8"],
    "{-1..1}": ["-1", "0", "1"],
    "{a,b}/{0..1}.tar": ["a/0.tar", "a/1.tar", "b/0.tar", "b/1.tar"],
    "{a,b{0..1},}x": ["ax", "b0x", "b1x", "x"],
    "{a}": ["{a}"],
    "{}": ["{}"],
    "{a,b": ["{a,b"],
    "a}b{c,d}": ["a}bc", "a}bd"],
    "{{a,b}}": ["{a}", "{b}"],
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(pattern: str) -> None:
    assert expand_braces(pattern) == PATTERNS[pattern]


@pytest.mark.parametrize("pattern", ["{0..1000000}", "{0..999999999999999999}", "{a,b}" * 200, "{0..999}" * 3])
def test_a_pattern_of_too_many_names_is_refused_before_they_are_made(pattern: str) -> None:
    with pytest.raises(DataError, match="at most 1,000,000 are read"):
        expand_braces(pattern)


def test_braces_that_are_too_deep_are_refused() -> None:
    with pytest.raises(DataError, match="nested more than 50 deep"):
        expand_braces("{" * 2000 + "a,b" + "}" * 2000)
    assert expand_braces("{" * 2000) == ["{" * 2000]
