# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Headless Chromium for tests of pages, spoken to over a pipe in its DevTools protocol: no package but the browser.

As a program it takes pictures: ``python tests/browser.py PAGE.html PICTURE.png [WIDTH] [light|dark|print] [#section]``.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

# Every run of text on the page as a box, and those that cover one another. What is clipped or not shown does not count.
_GEOMETRY = r"""
(() => {
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.textContent.trim() || parent.closest("script, style, #tip")) continue;
    if (!parent.checkVisibility({contentVisibilityAuto: true, visibilityProperty: true})) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width > 1 && box.height > 1) {
        const trim = Math.min(box.height * 0.22, 5);  // leading above and below the letters
        boxes.push({text: node.textContent.trim().slice(0, 60), node, left: box.left, right: box.right,
                    top: box.top + trim, bottom: box.bottom - trim});
      }
    }
  }
  boxes.sort((one, other) => one.top - other.top);
  const covered = [];
  for (let first = 0; first < boxes.length; first++) {
    for (let second = first + 1; second < boxes.length && boxes[second].top < boxes[first].bottom - 1; second++) {
      const one = boxes[first], other = boxes[second];
      if (one.node !== other.node && one.left < other.right - 1 && other.left < one.right - 1)
        covered.push(one.text + " | " + other.text);
    }
  }
  const cut = [];
  for (const svg of document.querySelectorAll("main svg")) {
    const frame = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll("text")) {
      const box = text.getBoundingClientRect();
      if (box.left < frame.left - 1 || box.right > frame.right + 1
          || box.top < frame.top - 2 || box.bottom > frame.bottom + 2)
        cut.push(text.textContent.trim());
    }
  }
  const small = [];
  for (const one of boxes) {
    const svg = one.node.parentElement.closest("svg");
    const scale = svg ? svg.getScreenCTM().a : 1;
    const pixels = parseFloat(getComputedStyle(one.node.parentElement).fontSize) * scale;
    if (pixels < 9) small.push([one.text, Math.round(pixels * 10) / 10]);
  }
  return {count: boxes.length, covered, cut, small,
          overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth};
})()
"""


def chromium() -> str:
    """The browser's program, installed from the distribution where it is missing, as root."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        subprocess.run(["apt-get", "update", "-q"], check=True, stdout=subprocess.DEVNULL)
        command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "chromium", "fonts-dejavu-core"]
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        )
        found = shutil.which("chromium")
    assert found, "chromium was installed and is not there"
    return found


class Browser:
    """One page at a time. ``messages`` collects what the page wrote to the console, and uncaught errors."""

    def __init__(self) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="report-browser", ignore_cleanup_errors=True)
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # The protocol's pipe is file descriptors 3 and 4; sh moves them there, whatever numbers they have here.
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars",
                   "--disable-dev-shm-usage", f"--user-data-dir={self._profile.name}", "about:blank"]  # fmt: skip
        line = f'exec 3<&{theirs_in} 4>&{theirs_out} && exec "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", line, "bash", chromium(), *options],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._left, self._number, self._session = b"", 0, ""
        self.messages: list[str] = []
        self.requests: list[str] = []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(20)
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            piece = os.read(self._in, 1 << 20)
            if not piece:
                raise RuntimeError(f"the browser ended with status {self._process.wait()}")
            self._left += piece
        text, self._left = self._left.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method", ""), message.get("params") or {})
        return message

    def _note(self, method: str, reported: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.messages.append(str(reported["exceptionDetails"].get("exception", {}).get("description")))
        elif method == "Runtime.consoleAPICalled":
            self.messages.append(" ".join(str(argument.get("value")) for argument in reported["args"]))
        elif method == "Log.entryAdded":
            self.messages.append(reported["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(reported["request"]["url"])

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        request: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            request["sessionId"] = self._session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while True:
            message = self._next()
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                found: dict[str, Any] = message["result"]
                return found

    def open(
        self, page: Path, width: int = 1280, scheme: str = "light", media: str = "screen", query: str = ""
    ) -> None:
        """Load a file; ``width`` in pixels, ``scheme`` light or dark, ``media`` screen or print."""
        self.messages.clear()
        self.requests.clear()
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._ask("Emulation.setEmulatedMedia", media=media, features=features)
        self._ask("Page.navigate", url=page.resolve().as_uri() + query)
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def run(self, script: str) -> Any:
        """The value of a piece of JavaScript."""
        answer = self._ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def geometry(self) -> dict[str, Any]:
        """Texts that cover one another, are cut off or too small, and how much wider than the window the page is."""
        found: dict[str, Any] = self.run(_GEOMETRY)
        return found

    def move(self, x: float, y: float) -> None:
        """Move the pointer."""
        self._ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def picture(self, section: str = "") -> bytes:
        """The whole page, or the element of a selector, as PNG."""
        where = json.dumps(section or "html")
        script = f"(() => {{ const b = document.querySelector({where}).getBoundingClientRect();"
        script += " return [b.left + scrollX, b.top + scrollY, b.width, b.height]; })()"
        x, y, width, height = self.run(script)
        clip = {"x": x, "y": y, "width": width, "height": height, "scale": 1}
        answer = self._ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(answer["data"])

    def pdf(self) -> bytes:
        """The page as printed."""
        answer = self._ask("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        return base64.b64decode(answer["data"])


def main() -> None:
    page, picture = Path(sys.argv[1]), Path(sys.argv[2])
    more = [*sys.argv[3:], *["1280", "light", ""][len(sys.argv) - 3 :]]
    with Browser() as browser:
        browser.open(
            page, int(more[0]), "dark" if more[1] == "dark" else "light", "print" if more[1] == "print" else "screen"
        )
        picture.write_bytes(browser.pdf() if picture.suffix == ".pdf" else browser.picture(more[2]))
        print(json.dumps({"messages": browser.messages, "requests": browser.requests, **browser.geometry()}, indent=1))


if __name__ == "__main__":
    main()
