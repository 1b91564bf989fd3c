"""The page in a real browser: it is drawn, its script runs, there are no errors and no network requests."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass

import numpy as np
import pytest
from unit.formats.page.cases import found

from shine.data.datasets.dataset import Dataset
from shine.report import report_html

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")]

FLAGS = """
    --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --v=0
    --disable-component-update --disable-sync --hide-scrollbars --enable-logging=stderr
""".split()  # noqa: SIM905

PROBE = """
<img src="http://127.0.0.1:9/image.png" width="1" alt="">
<script>
addEventListener("load", async () => {
  const found = {};
  document.querySelector(".point.chosen").dispatchEvent(new PointerEvent("pointerover", {bubbles: true}));
  found.tip = document.getElementById("tip").textContent;
  found.tip_shown = !document.getElementById("tip").hidden;
  document.querySelector("#chosen").dispatchEvent(new PointerEvent("pointerover", {bubbles: true}));
  found.tip_gone = document.getElementById("tip").hidden;
  document.querySelector("math [data-exact]").dispatchEvent(new PointerEvent("pointerover", {bubbles: true}));
  found.exact = document.getElementById("tip").textContent;
  const button = document.querySelector("button.copy");
  button.click();
  await new Promise((done) => setTimeout(done, 100));
  found.button = button.textContent;
  found.overflow = document.documentElement.scrollWidth - innerWidth;
  const labels = [...document.querySelectorAll("svg.tree .node rect")].map((node) => node.getBoundingClientRect());
  found.overlaps = labels.filter((a, i) => labels.some((b, j) => i < j && a.left < b.right && b.left < a.right &&
    a.top < b.bottom && b.top < a.bottom)).length;
  found.colliding = [...document.querySelectorAll(".axes")].filter((axes) => {
    const boxes = [...axes.querySelectorAll("text:not(.name)")].map((text) => text.getBoundingClientRect());
    return boxes.some((a, i) => boxes.some((b, j) => i < j && a.left < b.right && b.left < a.right &&
      a.top < b.bottom - 2 && b.top < a.bottom - 2));
  }).length;
  found.outside = [...document.querySelectorAll("figure svg:not(.tree) text")].filter((text) => {
    const box = text.getBoundingClientRect(), frame = text.ownerSVGElement.getBoundingClientRect();
    return box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1;
  }).map((text) => text.textContent);
  found.heights = [...document.querySelectorAll("math")].map((math) => math.getBoundingClientRect().height);
  document.title = JSON.stringify(found);
});
</script></body>"""


@dataclass
class Seen:
    """A page as a browser shows it."""

    dom: str
    console: list[str]
    requested: set[str]


def browse(page, folder, *options):
    path, log = folder / "page.html", folder / "net.json"
    path.write_text(page, encoding="utf-8")
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}", *options]
    done = subprocess.run([*command, path.as_uri()], capture_output=True, text=True, timeout=150, check=True)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Seen(done.stdout, console, requested(log.read_text(encoding="utf-8")))


def requested(log):
    """Requests that the page made, without the browser's own, one per line."""
    begun = [line for line in log.splitlines() if '"initiator":"file:' in line or '"initiator":"null' in line]
    urls = {url for line in begun for url in re.findall(r'"url":"([^"]+)"', line)}
    return {url for url in urls if url.startswith(("http:", "https:", "ws:", "wss:", "ftp:"))}


@pytest.fixture(scope="module")
def page():
    X = np.random.default_rng(0).normal(size=(300, 3))
    data = Dataset.from_arrays(
        X,
        40 * X[:, 0] * X[:, 1] + 1.23456789,
        sample_weight=None,
        features=["a", "b", "an_unusually_long_name_of_a_feature"],
    )
    codes = [
        "1.23",
        "40.2*a*b",
        "40*a*b + (0.0123456789 if an_unusually_long_name_of_a_feature < 0 else sqrt(abs(b)))/3",
    ]
    history = [{"generation": i, "seconds": 0.1 * i, "loss": 1000.0 / 3**i} for i in range(9)]
    title = "<b>Title</b> & more"
    return report_html(found(codes, data), data, history=history, settings={"seed": 1}, title=title)


@pytest.fixture(scope="module")
def plain(page, tmp_path_factory):
    return browse(page, tmp_path_factory.mktemp("plain"), "--dump-dom")


@pytest.fixture(scope="module", params=["1200,900", "500,900"])
def probed(request, page, tmp_path_factory):
    """The page on wide and narrow screens, without its policy: a script of the test's own runs, an image is loaded."""
    unguarded = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page).replace("</body>", PROBE)
    options = ["--dump-dom", "--virtual-time-budget=2000", f"--window-size={request.param}"]
    seen = browse(unguarded, tmp_path_factory.mktemp("probed"), *options)
    title = re.search(r"<title>(.*?)</title>", seen.dom)[1]
    found = json.loads(title.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    return {**found, "requested": seen.requested}


def test_no_error_and_no_request(plain):
    assert plain.console == []
    assert plain.requested == set()
    assert "<b>Title" not in plain.dom
    assert 'role="img"' in plain.dom


def test_a_foreign_script_is_refused_and_heard_of(page, tmp_path):
    seen = browse(page.replace("</body>", "<script>document.title = 'ran'</script></body>"), tmp_path, "--dump-dom")
    assert "<title>ran" not in seen.dom
    assert any("Content Security Policy" in line for line in seen.console)


def test_a_request_would_be_noticed(probed):
    assert probed["requested"] == {"http://127.0.0.1:9/image.png"}


def test_a_point_of_the_front_tells_its_formula(probed):
    assert probed["tip_shown"]
    assert probed["tip"].startswith("# 2 · Complexity 1")
    assert probed["tip_gone"]
    assert probed["exact"] == "0.0123456789"


def test_the_button_answers(probed):
    assert probed["button"] in ("Copied", "Select and copy")


def test_nothing_collides_or_hangs_over_at_any_width(probed):
    assert probed["overflow"] <= 0
    assert probed["overlaps"] == 0
    assert probed["colliding"] == 0
    assert probed["outside"] == []


COVERED = """
<script>
addEventListener("load", () => {
  const buttons = [...document.querySelectorAll("button")].map((each) => each.getBoundingClientRect());
  const texts = [...document.querySelectorAll("math, summary, .hero code")].filter((text) => {
    const range = document.createRange();
    range.selectNodeContents(text);
    return [...range.getClientRects()].some((a) => buttons.some((b) => a.left < b.right && b.left < a.right &&
      a.top < b.bottom && b.top < a.bottom));
  });
  document.title = `${buttons.length} buttons cover ${texts.length} texts`;
});
</script></body>"""


@pytest.mark.parametrize("width", [390, 500, 1200])
def test_no_button_covers_a_formula(tmp_path, width):
    data = Dataset.from_arrays(np.random.default_rng(0).uniform(1, 2, (100, 8)), np.ones(100))
    fraction = "(x2 + 2.3456/(x3 + 3.4567*x4/(x5 + 4.5678*x6/(x7 + 5.6789))))"
    codes = ["1.23", f"(x0 + 1.2345*x1)/{fraction}", f"x0*x1*x2*x3 + (x0 + 1.2345*x1)/{fraction}"]
    page = report_html(found(codes, data), data)
    unguarded = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page).replace("</body>", COVERED)
    seen = browse(unguarded, tmp_path, "--dump-dom", "--virtual-time-budget=2000", f"--window-size={width},900")
    assert "<title>4 buttons cover 0 texts</title>" in seen.dom


def test_formulas_are_typeset(probed):
    # A fraction is higher than a line of text, on a narrow screen, too.
    assert max(probed["heights"]) > 25


@pytest.mark.parametrize("dark", [False, True])
def test_it_is_drawn_in_light_and_in_dark(page, tmp_path, dark):
    image = pytest.importorskip("matplotlib.image")
    shot = tmp_path / "page.png"
    mode = ["--blink-settings=preferredColorScheme=0"] if dark else []
    browse(page, tmp_path, f"--screenshot={shot}", "--window-size=1000,1400", *mode)
    pixels = image.imread(shot)[..., :3]
    assert pixels.shape[:2] == (1400, 1000)
    background, cards = pixels[2, 2], pixels[:, 500].mean()
    assert (background.max() < 0.2 and cards < 0.3) if dark else (background.min() > 0.9 and cards > 0.8)
    # Something of every colour is on it: the blue of the data, the orange of the choice.
    blue = (pixels[..., 2] - pixels[..., 0] > 0.3).sum()
    orange = (pixels[..., 0] - pixels[..., 2] > 0.3).sum()
    assert blue > 500
    assert orange > 200
