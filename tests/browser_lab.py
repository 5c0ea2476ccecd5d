"""A real headless Chromium, driven by its own WebDriver over loopback (W3C WebDriver)."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # root may not use it; the pages are our own
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--window-size=1280,900",
)
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_SAID = re.compile(r"started successfully on port (\d+)")


class Browser:
    """One session: pages are opened, looked at and clicked on as a person would."""

    def __init__(self, url: str) -> None:
        self._server = url
        asked = {"alwaysMatch": {"goog:chromeOptions": {"args": list(_ARGUMENTS)}}}
        made = self._send("POST", "/session", {"capabilities": asked})
        self._session = f"/session/{made['sessionId']}"

    def open(self, path: Path, fragment: str = "") -> None:
        """Open a file; another fragment of the page that is open loads nothing anew."""
        self._post("/url", {"url": path.as_uri() + fragment})

    def ask(self, script: str, *arguments: object) -> Any:
        """Return what a function's body returns in the page."""
        return self._post("/execute/sync", {"script": script, "args": list(arguments)})

    def text(self, selector: str) -> str:
        """Return the text that a person sees of the first element."""
        found = self._get(f"/element/{self._find(selector)}/text")
        assert isinstance(found, str)
        return found

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all elements that are to be seen."""
        script = "return [...document.querySelectorAll(arguments[0])].filter("
        found = self.ask(
            script + "e => e.checkVisibility()).map(e => e.innerText.trim())", selector
        )
        assert isinstance(found, list)
        return found

    def click(self, selector: str) -> None:
        """Click on the first element, where it is: what lies over it would get the click."""
        self._post(f"/element/{self._find(selector)}/click", {})

    def type(self, selector: str, text: str) -> None:
        """Type into an element; keys are WebDriver's code points."""
        self._post(f"/element/{self._find(selector)}/value", {"text": text})

    def scheme(self, name: str) -> None:
        """Prefer ``light`` or ``dark``, as a person's system does."""
        wanted = [{"name": "prefers-color-scheme", "value": name}]
        self._devtools("Emulation.setEmulatedMedia", features=wanted)

    def scripts(self, on: bool) -> None:
        """Let pages that are opened from now on run scripts, or not."""
        self._devtools("Emulation.setScriptExecutionDisabled", value=not on)

    def screenshot(self) -> bytes:
        """Return what the window shows, as PNG."""
        return base64.b64decode(self._get("/screenshot"))

    def close(self) -> None:
        """End the browser."""
        self._send("DELETE", self._session)

    def _devtools(self, command: str, **params: object) -> None:
        self._post("/goog/cdp/execute", {"cmd": command, "params": params})

    def _find(self, selector: str) -> str:
        found = self._post("/element", {"using": "css selector", "value": selector})
        name = found[_ELEMENT]
        assert isinstance(name, str)
        return name

    def _get(self, path: str) -> Any:
        return self._send("GET", self._session + path)

    def _post(self, path: str, body: object) -> Any:
        return self._send("POST", self._session + path, body)

    def _send(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        heads = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._server + path, data, heads, method=method)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
                request, timeout=60
            ) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            with error:
                said = json.load(error)["value"]
            raise AssertionError(f"{method} {path}: {said['message']}") from None


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Give a browser whose profile is below `folder`; it has gone at the end."""
    driver = shutil.which("chromedriver")
    assert driver, "chromedriver is missing; mend: apt-get install chromium-driver"
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder)}
    with subprocess.Popen(
        [driver, "--port=0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environ,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            said = ""
            for line in process.stdout:
                said += line
                port = _SAID.search(line)
                if port:
                    break
            else:
                raise AssertionError(f"chromedriver did not start: {said}")
            one = Browser(f"http://127.0.0.1:{port[1]}")
            try:
                yield one
            finally:
                one.close()
        finally:
            process.terminate()
