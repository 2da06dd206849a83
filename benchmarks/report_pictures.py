"""Screenshots of the page of `vantage report` for the documentation, and the size and time of the pages.

    python benchmarks/report_pictures.py --flowers flowers5-128.tar.gz --runs RUNS [--out docs/images]

Trains in RUNS, unless they exist, the run of `vantage demo` and two runs on 600 of the flowers by the commands below:
one with a reasonable learning rate, and one with such a high rate that it collapses. It writes the page of each, and
one with both flower runs side by side, takes screenshots in headless Chromium (needs selenium and chromedriver), and
records sizes and times in `results/report_pictures.json`.
"""

import argparse
import io
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from selenium import webdriver
from timing import merge_rows, write_results

from vantage.cli import main as vantage

COMMON = "--backbone convolutions --size 32 --optimizer adamw --precision 32-true --set data.max_images=600"
TRAINED = {
    "flowers": f"simclr {COMMON} --set data.hold_out=0 --epochs 8 --learning-rate 0.002",
    "collapsed": f"moco_v2 {COMMON} --set data.hold_out=0 --epochs 3 --learning-rate 3",
}
"""The commands, without images and folder."""

PAGES = {"demo": ("demo",), "flowers": ("flowers",), "collapsed": ("collapsed",), "two_runs": ("flowers", "collapsed")}
SECTIONS = {
    "demo": ("header", "#curves", "#map"),
    "flowers": ("header", "#curves", "#neighbors", "#map"),
    "collapsed": ("header", "#curves", "#spectrum"),
    "two_runs": ("header", "#curves", "#spectrum"),
}
"""Parts of a page that its picture shows."""


def run(words: list[str]) -> None:
    """A command of Vantage; the script ends where it fails."""
    if vantage(words) != 0:
        raise SystemExit(f"failed: vantage {' '.join(words)}")


@contextmanager
def browser() -> Iterator[Any]:
    """Headless Chromium."""
    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(flag)
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    with tempfile.TemporaryDirectory() as profile:
        options.add_argument(f"--user-data-dir={profile}")
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        driver.set_window_size(1280, 1400)
        yield driver
        driver.quit()


def picture(driver: Any, page: Path, sections: tuple[str, ...]) -> Image.Image:
    """Sections of a page, one below the other."""
    driver.get(page.absolute().as_uri())
    time.sleep(3)  # the map draws its thumbnails
    shots = [driver.find_element("css selector", section).screenshot_as_png for section in sections]
    parts = [Image.open(io.BytesIO(shot)).convert("RGB") for shot in shots]
    canvas = Image.new("RGB", (max(part.width for part in parts), sum(part.height for part in parts)), "white")
    top = 0
    for part in parts:
        canvas.paste(part, ((canvas.width - part.width) // 2, top))
        top += part.height
    return canvas


def write_webp(image: Image.Image, file: Path, max_bytes: int = 300_000) -> int:
    """Write a picture as WebP, of at most `max_bytes` if its quality permits; returns the size."""
    for quality in range(85, 20, -10):
        image.save(file, quality=quality, method=6)
        if file.stat().st_size <= max_bytes:
            break
    return file.stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flowers", required=True, help="the images of flowers5-128")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the runs and the pages")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "images")
    parser.add_argument("--pages", nargs="+", choices=list(PAGES), default=list(PAGES), help="pages to make")
    options = parser.parse_args()
    runs = {name for page in options.pages for name in PAGES[page]}
    for name, words in TRAINED.items():
        if name in runs and not (options.runs / name).exists():
            run(["pretrain", *words.split(), "--data", options.flowers, "--out", str(options.runs / name)])
    if "demo" in runs and not (options.runs / "demo").exists():
        run(["demo", "--out", str(options.runs / "demo")])
    rows = []
    with browser() as driver:
        for name in options.pages:
            page, seconds = options.runs / "demo" / "report.html", None
            if name != "demo":  # which writes its page itself
                page, start = options.runs / f"{name}.html", time.monotonic()
                folders = [str(options.runs / folder) for folder in PAGES[name]]
                run(["report", *folders, "--data", options.flowers, "--out", str(page), "--images", "1000"])
                seconds = round(time.monotonic() - start, 1)
            size = write_webp(picture(driver, page, SECTIONS[name]), options.out / f"report_{name}.webp")
            sizes = {"page_bytes": page.stat().st_size, "picture_bytes": size}
            rows.append({"page": name, "runs": len(PAGES[name]), "seconds": seconds, **sizes})
    write_results("report_pictures", merge_rows("report_pictures", "page", rows))


if __name__ == "__main__":
    main()
