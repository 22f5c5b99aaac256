#!/usr/bin/python3
"""Shows a page of drps in Chromium without a window: as a picture, on paper, or to check it.

    scripts/browser.py PAGE [--width W] [--dark] [--until SCRIPT] [--png FILE] [--pdf FILE] [--check]

PAGE is a file or an address. --until waits until the value of that JavaScript is true.

--check fails where the page is wider than the window, loads anything, or the console has a message.
Needs chromium and chromedriver; exits with 77 where one of them is not there.
"""
import argparse
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request


class Browser:
    """A session of chromedriver, by its HTTP interface (WebDriver)."""

    def __init__(self, folder):
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.at = None
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                self.at = "http://127.0.0.1:%d" % int(line.rstrip(".\n ").split()[-1])
                break
        if not self.at:
            raise RuntimeError("chromedriver has not started")
        options = {
            "args": ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                     "--disable-dev-shm-usage", "--user-data-dir=" + folder]
        }
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.session = ""
        answer = self.ask("/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = "/session/" + answer["sessionId"]

    def ask(self, path, body, method="POST"):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.at + self.session + path, data, {"Content-Type": "application/json"},
                                         method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def devtools(self, command, **params):
        return self.ask("/goog/cdp/execute", {"cmd": command, "params": params})

    def run(self, script):
        return self.ask("/execute/sync", {"script": script, "args": []})

    def close(self):
        try:
            if self.session:
                self.ask("", None, "DELETE")
        finally:
            self.driver.terminate()
            self.driver.wait()


def show(browser, page, width, dark):
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.devtools("Emulation.setEmulatedMedia", media="screen", features=[scheme])
    browser.devtools("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    is_address = page.startswith(("http://", "https://"))
    browser.ask("/url", {"url": page if is_address else pathlib.Path(page).resolve().as_uri()})


def wait_until(browser, script):
    """Returns when the value of the script is true; gives up after a minute."""
    until = time.monotonic() + 60
    while not browser.run("return " + script):
        if time.monotonic() > until:
            raise RuntimeError("'%s' has not become true" % script)
        time.sleep(0.1)


def problems(browser, width):
    """What is wrong with the page that is shown, a text each."""
    found = []
    wide = browser.run("return document.documentElement.scrollWidth")
    if wide > width:
        found.append("the page is %d pixels wide in a window of %d" % (wide, width))
    loaded = browser.run("return performance.getEntriesByType('resource').map(e => e.name)")
    found += ["it loads " + name for name in loaded]
    found += ["the console says: " + entry["message"] for entry in browser.ask("/se/log", {"type": "browser"})]
    if browser.run("return document.scripts.length") or not browser.run("return document.querySelector('h1') !== null"):
        found.append("there is a script in it, or no heading")
    return found


def picture(browser, width, height):
    whole = browser.run("return document.documentElement.scrollHeight")
    height = min(whole, height) if height else whole
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    shot = browser.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
    return base64.b64decode(shot["data"])


def main():
    parser = argparse.ArgumentParser(description="Show a page in Chromium without a window.")
    parser.add_argument("page")
    parser.add_argument("--width", type=int, default=1100)
    parser.add_argument("--height", type=int, default=0, help="of the picture, at most")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--until", metavar="SCRIPT")
    parser.add_argument("--png", type=pathlib.Path)
    parser.add_argument("--pdf", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    o = parser.parse_args()
    for program in ("chromedriver", "chromium"):
        if not shutil.which(program):
            print("SKIPPED: %s is not there" % program)
            return 77
    with tempfile.TemporaryDirectory(prefix="drps-browser.") as folder:
        os.environ["HOME"] = folder  # where Chromium keeps what it keeps
        browser = Browser(folder)
        try:
            show(browser, o.page, o.width, o.dark)
            if o.until:
                wait_until(browser, o.until)
            found = problems(browser, o.width) if o.check else []
            if o.png:
                o.png.write_bytes(picture(browser, o.width, o.height))
            if o.pdf:
                browser.devtools("Emulation.setEmulatedMedia", media="")
                paper = browser.devtools("Page.printToPDF", printBackground=False, paperWidth=8.27, paperHeight=11.69)
                o.pdf.write_bytes(base64.b64decode(paper["data"]))
        finally:
            browser.close()
    for text in found:
        print("%s: %s" % (o.page, text))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
