"""The page of two runs in headless Chromium, as it looks there and on paper.

    PYTHONPATH=src:tests:tests/report python tests/report/screenshots.py

writes `sections.png` anew, the reference of `test_browser.py`: to be done, and looked at, where the page changes on
purpose. `SECTIONS` leaves out `#results` and `#clusters`: the runs of this page have no recorded results and make no
clusters. `test_accessible.py` draws a table of results.
"""

import base64
import math
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from PIL import Image
from runs_with_metrics import finished_run, hostile_images
from tiny import cpu_work, tiny_run

from vantage import allowing
from vantage.measures import layout
from vantage.report import write_report

CHROMIUM, DRIVER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome"),
    shutil.which("chromedriver"),
)
REFERENCE = Path(__file__).with_name("sections.png")
SECTIONS = ("header", "#curves", "#views", "#neighbors", "#map", "#spectrum", "#duplicates", "#outliers", "#origin")
_FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
)
_GRID = (24, 12)
"""Columns and rows of the coarse picture of a section."""


_WIDTH = 1400
"""Pixels of the pictured page, at which no row is about to wrap."""


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """A browser of 1,280 pixels."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for flag in (*_FLAGS.split(), f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.binary_location = CHROMIUM or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        driver.set_window_size(1280, 900)
        yield driver
    finally:
        driver.quit()


def page_of_two_runs(folder: Path) -> Path:
    """A page about two runs on images with hostile names, whose maps are circles: where t-SNE puts an image depends on
    the last bits of its input, which other versions of NumPy compute otherwise."""
    source = hostile_images(folder / "images")
    runs = [
        finished_run(folder / name, replace(tiny_run(), epochs=20, seed=seed), source)
        for seed, name in enumerate(("one", "two"))
    ]
    with patch.object(layout, "places", _on_a_circle):
        write_report(runs, source, folder / "report.html", work=cpu_work(folder))
    return folder / "report.html"


def _on_a_circle(vector: torch.Tensor, _: int) -> torch.Tensor:
    angles = torch.arange(len(vector)) * (2 * math.pi / len(vector))
    return torch.stack((angles.cos(), angles.sin()), dim=1)


def wait_for(browser: Any, script: str, seconds: float = 20.0) -> Any:
    """What a script returns, once it is true."""
    end = time.monotonic() + seconds
    while not (answer := browser.execute_script(script)):
        assert time.monotonic() < end, f"{script} stayed {answer!r}"
        time.sleep(0.05)
    return answer


def sections(browser: Any, names: tuple[str, ...] = SECTIONS) -> np.ndarray:
    """A coarse picture of each section, sections × rows × columns × 3: so coarse that no letter is seen, but whether
    there is text, a picture, a frame, and of what color."""
    with of_width(browser, _WIDTH):
        time.sleep(0.3)  # the map is drawn again
        shots = [browser.find_element("css selector", section).screenshot_as_png for section in names]
    return np.stack([_coarse(Image.open(BytesIO(screenshot))) for screenshot in shots])


@contextmanager
def of_width(browser: Any, width: int) -> Iterator[None]:
    """A window this many pixels wide, without scroll bars."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": False})
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@contextmanager
def with_style(browser: Any, rules: str) -> Iterator[None]:
    """The page with other rules after its own."""
    add = "const one = document.createElement('style'); one.id = 'other'; one.textContent = arguments[0]; "
    browser.execute_script(add + "document.head.append(one)", rules)
    try:
        yield
    finally:
        browser.execute_script("document.getElementById('other').remove()")


@contextmanager
def in_scheme(browser: Any, scheme: str) -> Iterator[None]:
    """A reader who prefers light or dark."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def _coarse(screenshot: Image.Image) -> np.ndarray:
    return np.asarray(screenshot.convert("RGB").resize(_GRID, Image.Resampling.BOX), dtype=float)


def reference() -> np.ndarray:
    """The sections as they should look."""
    rows = np.asarray(Image.open(REFERENCE), dtype=float)
    return rows.reshape(len(SECTIONS), _GRID[1], _GRID[0], 3)


def changes(browser: Any, *names: str) -> dict[str, float]:
    """How far each section, or some of them, is from the reference: the mean difference of a color, of 255."""
    names = names or SECTIONS
    expected = reference()[[SECTIONS.index(name) for name in names]]
    difference = np.abs(sections(browser, names) - expected).mean((1, 2, 3))
    return dict(zip(names, difference.round(1).tolist(), strict=True))


def pdf_of(browser: Any) -> bytes:
    """The page on A4 as PDF, with backgrounds."""
    paper = {"printBackground": True, "paperWidth": 8.27, "paperHeight": 11.69}
    return base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", paper)["data"])


if __name__ == "__main__":
    with allowing("tiny"), TemporaryDirectory() as path, chromium(Path(path) / "profile") as tab:
        tab.get(page_of_two_runs(Path(path)).as_uri())
        wait_for(tab, "return document.body.dataset.map === 'ready'")
        Image.fromarray(sections(tab).astype(np.uint8).reshape(-1, _GRID[0], 3)).save(REFERENCE, optimize=True)
