"""What the check of the tree finds in documents."""

from __future__ import annotations

from pathlib import Path

from scripts.check_tree import broken_links

PAGE = """# A page

```sh
# no heading: [a](gone.md)
```

## 2. `No`, not [any more](there.md)

## Twice

## Twice
"""


def test_links_lead_somewhere(tmp_path: Path) -> None:
    """A link to a file or a heading that is not there is named; every other one is fine."""
    (tmp_path / "there.md").write_text(PAGE)
    page = tmp_path / "page.md"
    fine = "[a](there.md#2-no-not-any-more) [b](there.md#twice-1) [c](#here) [d](https://x.y/#z)"
    page.write_text(
        f"# Here\n\n{fine} [e](.)\n\n[f](gone.md) [g](there.md#no-heading) [h](#gone)\n"
    )
    assert [
        f"page.md: links to what is not there: {link}"
        for link in ("gone.md", "there.md#no-heading", "#gone")
    ] == broken_links(page, tmp_path)
    assert [] == broken_links(tmp_path / "there.md", tmp_path)
