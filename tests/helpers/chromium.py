"""Chromium without a window, driven through its DevTools protocol: messages of JSON over two pipes.

``python tests/helpers/chromium.py FOLDER PAGE...`` writes pictures of pages of HTML: at 1280 and 390 pixels, light and
dark, and a PDF of what is printed.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

WIDTHS = (1280, 390)
"""Pixels of a page on a desk and in a hand."""

PAPER = 718
"""Pixels of the width of what is printed on A4, between margins of a centimetre."""

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

FLAGS = """
    --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --hide-scrollbars --remote-debugging-pipe
""".split()  # noqa: SIM905


class Browser:
    """A browser with one page, for the length of a block.

    Parameters
    ----------
    folder : Path
        For its profile.
    size : str
        Width and height of the page.
    """

    def __init__(self, folder: Path, size: str = "1100,1400") -> None:
        self._folder, self._size = folder, size
        self._number = 0
        self._rest = b""
        self.console: list[str] = []
        """What the page has complained about."""
        self.requested: list[str] = []
        """Addresses that the page has asked for."""

    def __enter__(self) -> Self:
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # Chromium reads from descriptor 3 and writes to descriptor 4. High numbers first, so that neither is lost.
        pipes = f'exec 8<&{to_read} 9>&{to_write}; exec 3<&8 4>&9; exec "$@"'
        own = [f"--user-data-dir={self._folder / 'profile'}", f"--window-size={self._size}", "about:blank"]
        assert CHROMIUM
        self._process = subprocess.Popen(
            ["bash", "-c", pipes, "chromium", CHROMIUM, *FLAGS, *own],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        targets = self._ask("Target.getTargets", session=None)["targetInfos"]
        target = next(each["targetId"] for each in targets if each["type"] == "page")
        attached = self._ask("Target.attachToTarget", session=None, targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._write)
        os.close(self._read)
        self._process.kill()
        self._process.wait()

    def open(self, url: str) -> None:
        """Go to an address."""
        self.ask("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete'")

    def value(self, script: str) -> Any:
        """The value of an expression in the page; promises are awaited."""
        found = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait_for(self, script: str, seconds: float = 30.0) -> float:
        """Wait until an expression is true; returns the seconds that it took."""
        began = time.monotonic()
        while not self.value(f"Boolean({script})"):
            assert time.monotonic() - began < seconds, f"not in {seconds} s: {script}"
            time.sleep(0.02)
        return time.monotonic() - began

    def show(self, width: int, dark: bool = False, media: str = "screen") -> None:
        """Show the page at a width in pixels, in the light or the dark mode, on the screen or as it is printed."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", media=media, features=[scheme])
        size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def photograph(self, path: Path, whole: bool = False) -> None:
        """Write what the page looks like: what is in view, or the whole page."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        beyond = {"captureBeyondViewport": True, "clip": {**size, "scale": 1}} if whole else {}
        told = self.ask("Page.captureScreenshot", format="png", **beyond)
        path.write_bytes(base64.b64decode(told["data"]))

    def print(self, path: Path) -> None:
        """Write the page as PDF, on A4."""
        told = self.ask("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=True)
        path.write_bytes(base64.b64decode(told["data"]))

    def ask(self, method: str, **parameters: Any) -> Any:
        """Ask the page for something of the protocol."""
        return self._ask(method, session=self._session, **parameters)

    def _ask(self, method: str, *, session: str | None, **parameters: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._heard(answer)

    def _next(self) -> Any:
        while b"\0" not in self._rest:
            read = os.read(self._read, 1 << 16)
            assert read, "the browser has ended"
            self._rest += read
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def _heard(self, event: Any) -> None:
        match event.get("method"):
            case "Network.requestWillBeSent":
                self.requested.append(event["params"]["request"]["url"])
            case "Log.entryAdded":
                self.console.append(event["params"]["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.console.append(event["params"]["exceptionDetails"]["text"])


def main(folder: Path, pages: list[Path]) -> None:
    """Write pictures of pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile, Browser(Path(profile)) as browser:
        for page in pages:
            browser.open(page.resolve().as_uri())
            for width in WIDTHS:
                for dark in (False, True):
                    browser.show(width, dark)
                    browser.photograph(folder / f"{page.stem}-{width}-{'dark' if dark else 'light'}.png", whole=True)
            browser.show(PAPER, media="print")
            browser.print(folder / f"{page.stem}.pdf")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
