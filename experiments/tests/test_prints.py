"""The gallery in print, read page by page: no heading is the last of a page, no drawing parts from its caption, no page
is nearly empty."""

from __future__ import annotations

import pypdfium2
import pytest
from gallery import PAGES
from helpers.chromium import CHROMIUM, PAPER

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")]

ENDS = r"""
(() => {
  const plain = (part) => part.innerText.replace(/\s+/g, "");
  const all = (selector) => [...document.querySelectorAll(selector)].filter((part) => plain(part));
  return {
    last: all("h2, h2 + p, caption, thead").map(plain),
    first: all(".told").map(plain),
    figures: all("figure").map((figure) => [...figure.querySelectorAll("h3, figcaption")].map(plain)),
  };
})()
"""


@pytest.mark.parametrize("name", PAGES)
def test_prints_keep_together_what_belongs_together(name, browser, tmp_path):
    page, paper = tmp_path / "page.html", tmp_path / "page.pdf"
    page.write_text(PAGES[name](), encoding="utf-8")
    browser.open(page.as_uri())
    browser.show(PAPER, media="print")
    ends = browser.value(ENDS)
    browser.print(paper)
    told = misprints([page.get_textpage() for page in pypdfium2.PdfDocument(paper)], ends)
    assert told == []


def misprints(pages, ends):
    """What is wrong with the pages of a print; `ends` are texts that must not be at the end or the beginning."""
    found = []
    for number, page in enumerate(pages):
        text = "".join(page.get_text_range().split())
        last = number == len(pages) - 1
        begun = [text[text.rfind(end[:20]) :] for end in ends["last"]]
        told = [
            end[:40] for end, rest in zip(ends["last"], begun, strict=True) if end[:20] in text and end.startswith(rest)
        ]
        found += [f"{number}: ends with {end}" for end in told if not last]
        found += [f"{number}: begins with {begin[:40]}" for begin in ends["first"] if number and text.startswith(begin)]
        for title, *caption in ends["figures"]:
            if len(title) > 8 and title in text and not all(part in text for part in caption):
                found.append(f"{number}: {title} without its caption")
        lowest = min(page.get_rect(place)[1] for place in range(page.count_rects()))
        if not last and lowest > 842 * 0.6:  # points of the height of A4
            found.append(f"{number}: nearly empty")
    return found


HEADING = "<p>above</p><div style='height: 560pt'></div><h2>heading</h2><div style='break-before: page'>below</div>"
LINES = f"<div style='height: 620pt'></div><h2>heading</h2><p style='orphans: 1'>{'words ' * 500}</p>"
TORN = "<figure><h3>a long title</h3><div style='height: 1100px'></div><figcaption>caption</figcaption></figure>"
ALONE = "<h1>title</h1><p style='break-before: page'>the rest</p>"


@pytest.mark.parametrize(
    ("body", "fault"),
    [(HEADING, "0: ends with heading"), (LINES, "0: ends with wordswordswordswordswordswordswordswords"),
      (TORN, "0: alongtitle without its caption"), (ALONE, "0: nearly empty"),
     ("<h2>heading</h2><figure><h3>a long title</h3><figcaption>caption</figcaption></figure>", "")],
)  # fmt: skip
def test_the_reader_of_prints_sees_each_fault(body, fault, browser, tmp_path):
    page, paper = tmp_path / "page.html", tmp_path / "page.pdf"
    page.write_text(f"<!DOCTYPE html><title>page</title><body>{body}</body>", encoding="utf-8")
    browser.open(page.as_uri())
    browser.show(PAPER, media="print")
    ends = browser.value(ENDS)
    browser.print(paper)
    told = misprints([each.get_textpage() for each in pypdfium2.PdfDocument(paper)], ends)
    assert fault in told if fault else not told
