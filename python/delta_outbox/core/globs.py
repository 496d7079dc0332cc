"""Shell globs on event types, as regular expressions that mean the same in Python and in Spark."""

from __future__ import annotations

from typing import Final

_ANY: Final = r"[\s\S]"
_END: Final = r"(?![\s\S])"  # `$` and `\Z` let a trailing newline pass, each language differently


# twin: macros/policies/read_glob.sql::read_glob
def glob_to_regex(glob: str) -> str:
    r"""Translate a shell glob into a regular expression valid in Python and in Java (`rlike`).

    `*` is any text, `?` any one character, `[abc]`, `[a-c]` and `[!abc]` one character of a set;
    a `]` right after `[` or `[!` belongs to the set; everything else stands for itself, case
    counts. A glob that this accepts matches what `fnmatch.fnmatchcase` matches.

    Args:
        glob: the pattern; it has to match the whole text.

    Raises:
        ValueError: a `[` is never closed, or a range runs backwards. A shell would take the
            first literally and let the second match nothing: both are typing errors here.
    """
    parts = ["^"]
    position = 0
    while position < len(glob):
        char = glob[position]
        position += 1
        if char == "*":
            if parts[-1] != f"{_ANY}*":  # `**` means `*`, and backtracks far less as one
                parts.append(f"{_ANY}*")
        elif char == "?":
            parts.append(_ANY)
        elif char == "[":
            negated = glob.startswith("!", position)
            first = position + negated
            end = glob.find("]", first + 1)
            if end < 0:
                raise ValueError("a `[` needs its `]`")
            parts.append(_character_class(glob[first:end], negated=negated))
            position = end + 1
        else:
            parts.append(_escaped(char))
    parts.append(_END)
    return "".join(parts)


def _character_class(members: str, *, negated: bool) -> str:
    parts = ["[^" if negated else "["]
    position = 0
    while position < len(members):
        low = high = members[position]
        position += 1
        if members.startswith("-", position) and position + 1 < len(members):
            high = members[position + 1]
            position += 2
            if low > high:
                raise ValueError(f"the range `{low}-{high}` runs backwards")
        parts.append(_escaped(low) if low == high else f"{_escaped(low)}-{_escaped(high)}")
    parts.append("]")
    return "".join(parts)


# twin: macros/policies/regex_char.sql::regex_char
def _escaped(char: str) -> str:
    """Escape ASCII punctuation: the one set of escapes that both languages allow anywhere."""
    plain = char.isalnum() or char.isspace() or not char.isprintable() or not char.isascii()
    return char if plain else f"\\{char}"
