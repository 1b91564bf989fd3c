"""The gallery in a browser, measured by its boxes: no text is cut off, covered by another, or broken within a word."""

from __future__ import annotations

import pytest
from gallery import PAGES
from helpers.chromium import CHROMIUM, PAPER, WIDTHS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")]

SCREENS = {**{f"{width} pixels": (width, False, "screen") for width in WIDTHS}, "dark": (1280, True, "screen"),
           "dark 390": (390, True, "screen"), "printed": (PAPER, False, "print")}  # fmt: skip

MEASURE = r"""
(() => {
  const found = [], runs = [];
  const page = document.documentElement.clientWidth;
  const told = (what, text) => found.push(`${what}: ${text.trim().replace(/\s+/g, " ").slice(0, 60)}`);
  if (document.documentElement.scrollWidth > page) told("wider than the page", document.title);
  const boxes = (node, at, length) => {
    const range = document.createRange();
    range.setStart(node, at);
    range.setEnd(node, at + length);
    return [...range.getClientRects()].filter((box) => box.width > 0 && box.height > 0);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  for (let node; (node = walker.nextNode());) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest("script, style, title, .unseen")) continue;
    const math = parent.closest("math"), button = parent.closest("button");
    if (button) {
      const box = button.getBoundingClientRect();
      if (box.width) runs.push({ owner: button, text: node.data, boxes: [box] });
    } else if (math) {
      if (seen.has(math)) continue;
      seen.add(math);
      const parts = [math, ...math.querySelectorAll("*")].map((part) => part.getBoundingClientRect());
      const inner = parts.filter((part) => part.width > 0 && part.height > 0);
      if (!inner.length) continue;
      const whole = math.getBoundingClientRect();
      const left = Math.min(...inner.map((part) => part.left)), right = Math.max(...inner.map((part) => part.right));
      const box = new DOMRect(left, whole.top, right - left, whole.height);
      runs.push({ owner: math, text: math.textContent, boxes: [box] });
    } else {
      // Word by word, because blanks at the end of a line hang over.
      for (const word of node.data.matchAll(/\S+/g)) {
        const own = boxes(node, word.index, word[0].length);
        if (own.length) runs.push({ owner: parent, text: node.data, boxes: own });
        if (own.length < 2) continue;
        // Letters of a word, and digits of a number, are on one line, unless they are very many.
        for (const part of word[0].matchAll(/[A-Za-z]+|[0-9.]+/g)) {
          const lines = boxes(node, word.index + part.index, part[0].length);
          if (part[0].length <= 20 && lines.length > 1) told("broken", `${part[0]} in ${node.data}`);
        }
      }
    }
  }
  // What is hidden until someone looks for it: the head of a table whose rows are blocks.
  const heads = [...document.querySelectorAll("thead")].filter((head) =>
     getComputedStyle(head).position === "absolute");
  const shown = runs.filter((run) => !heads.some((head) => head.contains(run.owner)));
  for (const run of shown) {
    const [label, text] = [run.owner.closest(".node")?.querySelector("rect").getBoundingClientRect(), run.boxes[0]];
    if (label && (text.left < label.left || text.right > label.right)) told("cut by rect", run.text);
    if (run.owner.closest("figure .scroll")) continue; // a large tree is the only thing that scrolls
    for (const box of run.boxes) {
      if (box.left < -1 || box.right > page + 1) { told("beyond the page", run.text); break; }
      let bad = false, block = null;
      for (let up = run.owner; up && up !== document.body; up = up.parentElement) {
        const style = getComputedStyle(up);
        const own = up.getBoundingClientRect();
        const cuts = style.overflowX !== "visible" || style.overflowY !== "visible";
        const holds = block === null && up instanceof HTMLElement && !style.display.startsWith("inline");
        if (holds) block = up;
        if ((cuts || holds) && (box.left < own.left - 1.5 || box.right > own.right + 1.5)) bad = true;
        if (cuts && (box.top < own.top - 2 || box.bottom > own.bottom + 2)) bad = true;
        if (bad) { told(`cut by ${up.tagName.toLowerCase()}.${up.getAttribute("class") ?? ""}`, run.text); break; }
      }
      if (bad) break;
    }
  }
  // Buttons keep their distance, too.
  const room = (run) => run.owner.matches("button") ? 2 : 0;
  const wider = (box, by) => new DOMRect(box.x - by, box.y, box.width + 2 * by, box.height);
  const all = shown.flatMap((run) => run.boxes.map((box) => ({ run, box: wider(box, room(run)) })));
  all.sort((a, b) => a.box.top - b.box.top);
  // Lines of formulas and sentences may touch, because their letters do not fill their boxes; labels may not.
  const loose = (run) => run.owner.closest("svg") ? 0.05 : 0.2;
  const inner = ({ run, box }) => [box.top + loose(run) * box.height, box.bottom - loose(run) * box.height];
  for (const [place, one] of all.entries()) {
    for (let next = place + 1; next < all.length && all[next].box.top < one.box.bottom; next++) {
      const two = all[next];
      if (one.run.owner === two.run.owner) continue;
      const wide = Math.min(one.box.right, two.box.right) - Math.max(one.box.left, two.box.left);
      const [top, bottom] = inner(one), [above, below] = inner(two);
      const high = Math.min(bottom, below) - Math.max(top, above);
      if (wide > 1.5 && high > 1) told("over another", `${one.run.text} | ${two.run.text}`);
    }
  }
  return [...new Set(found)];
})()
"""


def faults(browser, path, width, dark, media):
    """What is wrong with the texts of a page."""
    browser.open(path.as_uri())
    browser.show(width, dark, media)
    browser.value("document.querySelectorAll('details').forEach((folded) => { folded.open = true; })")
    return browser.value(MEASURE)


@pytest.mark.parametrize("name", PAGES)
def test_no_text_is_cut_covered_or_broken(name, browser, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(PAGES[name](), encoding="utf-8")
    found = {screen: told for screen, given in SCREENS.items() if (told := faults(browser, page, *given))}
    assert found == {}


CUT = '<div style="width: 60px; overflow: hidden; white-space: nowrap">a sentence that is cut</div>'
OVER = '<p>a line</p><p style="margin-top: -34px">another line over it</p>'
BROKEN = '<p style="width: 50px; overflow-wrap: anywhere">a_migration</p>'
WIDE = '<p style="width: 40px; white-space: nowrap">wider than its paragraph</p>'
LABEL = '<svg><g class="node"><rect width="20" height="20"/><text y="15">wide label</text></g></svg>'
NEAR = '<svg><text y="30">one</text><text x="5" y="39">two</text></svg>'
BUTTONS = "<p><button>one</button><button>two</button></p>"
FORMULA = '<div style="width: 60px; overflow: auto"><math><mi>abc</mi><mo>+</mo><mi>abcdefgh</mi></math></div>'


@pytest.mark.parametrize(
    ("body", "fault"),
    [(CUT, "cut by div"), (OVER, "over another"), (BROKEN, "broken"), (WIDE, "cut by p"), (FORMULA, "cut by div"),
     (LABEL, "cut by rect"), (NEAR, "over another"), (BUTTONS, "over another"),
     ("<p>as it should be, with <code>code</code> and <math><mi>x</mi></math></p>", "")],
)  # fmt: skip
def test_the_measure_sees_each_fault(body, fault, browser, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(f"<!DOCTYPE html><title>page</title><body>{body}</body>", encoding="utf-8")
    told = faults(browser, page, 800, False, "screen")
    assert [each.startswith(fault) for each in told] == [True] * bool(fault), told
