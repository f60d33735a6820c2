"""Headless Chromium, driven over its DevTools pipe; where it is missing, a test skips and says so."""

import json
import os
import pathlib
import select
import shutil
import subprocess
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


class Browser:
    """One page. ``requests``: addresses that it asked for; ``errors``: exceptions and console messages."""

    def __init__(self, profile: pathlib.Path):
        path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
        if path is None:
            pytest.skip("needs Chromium to look at the page: install the package chromium")
        (commands, self._to), (self._from, answers) = os.pipe(), os.pipe()
        options = "--headless=new --no-sandbox --disable-gpu --remote-debugging-pipe --no-first-run"
        line = f'exec "$0" {options} --user-data-dir="$1" about:blank 3<&{commands} 4>&{answers}'
        self._process = subprocess.Popen(
            ["bash", "-c", line, path, str(profile)], pass_fds=(commands, answers), stderr=subprocess.DEVNULL
        )
        os.close(commands)
        os.close(answers)
        self._left, self._count, self._loads, self._session = b"", 0, 0, None
        self.requests: list[str] = []
        self.errors: list[Any] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a command; events that come before it are kept."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        os.write(
            self._to, json.dumps(message | ({"sessionId": self._session} if self._session else {})).encode() + b"\0"
        )
        while (answer := self._next()).get("id") != self._count:
            self._keep(answer)
        assert "result" in answer, answer
        return answer["result"]

    def open(self, path: pathlib.Path) -> None:
        before = self._loads
        self.call("Page.navigate", url=path.as_uri())
        while self._loads == before:
            self._keep(self._next())

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def close(self) -> None:
        self._session = None
        self.call("Browser.close")
        self._process.wait(30)
        os.close(self._to)
        os.close(self._from)

    def _keep(self, event: dict[str, Any]) -> None:
        self._loads += event.get("method") == "Page.loadEventFired"
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(event["params"]["request"]["url"])
        if event.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.errors.append(event["params"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            assert select.select([self._from], [], [], 60)[0], "the browser says nothing for a minute"
            part = os.read(self._from, 1 << 20)
            assert part, "the browser has ended"
            self._left += part
        message, _, self._left = self._left.partition(b"\0")
        return json.loads(message)
