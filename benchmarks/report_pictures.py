"""Pictures of the page of `vantage report` for the documentation, and what the pages cost.

    python benchmarks/report_pictures.py --flowers flowers5-128.tar.gz --cifar cifar10-jpg.tar.gz#train --runs RUNS

Trains these runs in RUNS, unless they exist: the run of `vantage demo`; two runs on 600 of the flowers by the commands
below, one with a reasonable learning rate and one with such a high rate that it collapses; and two minutes on CIFAR-10.
It writes the page of each, the last one with 50,000 images, and one with both flower runs side by side. It takes
pictures in headless Chromium (needs selenium and chromedriver), and records in `results/report_pictures.json` the size
of each page, and the processor time and peak memory of the command that wrote it.
"""

import argparse
import io
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from selenium import webdriver
from timing import fresh, merge_rows, write_results

from vantage.cli import main as vantage

COMMON = "--backbone convolutions --size 32 --optimizer adamw --precision 32-true --set data.max_images=600"
TRAINED = {
    "flowers": f"simclr {COMMON} --set data.hold_out=0 --epochs 8 --learning-rate 0.002 --set monitoring.knn_every=1",
    "collapsed": f"moco_v2 {COMMON} --set data.hold_out=0 --epochs 3 --learning-rate 3",
    "large": "--minutes 2",
}
"""The commands, without images and folder."""

PAGES = {
    "demo": ("demo",),
    "flowers": ("flowers",),
    "collapsed": ("collapsed",),
    "two_runs": ("flowers", "collapsed"),
    "large": ("large",),
}
SECTIONS = {
    "demo": ("header", "#curves", "#map"),
    "flowers": ("header", "#curves", "#neighbors", "#map"),
    "collapsed": ("header", "#curves", "#spectrum"),
    "two_runs": ("header", "#curves", "#spectrum"),
    "large": ("header", "#map"),
}
"""Parts of a page that its picture shows."""
IMAGES = {"large": 50_000}
FEW = 1_000
"""Images of a page that `IMAGES` does not name."""


def run(words: list[str]) -> None:
    """Run a command of Vantage; end the script if it fails."""
    if vantage(words) != 0:
        raise SystemExit(f"failed: vantage {' '.join(words)}")


def write_page(folders: list[str], images: str, count: int, page: Path) -> dict[str, float]:
    """Write a page in a fresh process, and return what it cost."""
    options = ["--data", images, "--out", str(page), "--images", str(count)]
    return fresh(__file__, "report", *folders, *options)


def cost_of(words: list[str]) -> dict[str, float]:
    """Run a command in this process, and return its processor time in seconds and its peak memory in MiB."""
    sys.argv[0] = "vantage"
    run(words)
    times = os.times()
    with open("/proc/self/status") as file:
        peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    return {"processor_seconds": round(times.user + times.system, 1), "peak_mib": round(peak / 1024)}


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
    """A picture of a page that shows only these sections."""
    driver.get(page.absolute().as_uri())
    show = (
        "for (const one of document.querySelectorAll('header, main > section')) one.hidden = !one.matches(arguments[0])"
    )
    driver.execute_script(show, ", ".join(sections))
    time.sleep(3)  # the map draws its thumbnails
    height = driver.execute_script("return Math.ceil(document.body.getBoundingClientRect().height)")
    metrics = {"width": 1280, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    time.sleep(1)
    content = driver.get_screenshot_as_png()
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    return Image.open(io.BytesIO(content)).convert("RGB")


def write_webp(image: Image.Image, file: Path, max_bytes: int = 300_000) -> int:
    """Write a picture as WebP, of at most `max_bytes` if its quality permits; returns the size."""
    for quality in range(85, 20, -10):
        image.save(file, quality=quality, method=6)
        if file.stat().st_size <= max_bytes:
            break
    return file.stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flowers", help="the images of flowers5-128")
    parser.add_argument("--cifar", help="the 50,000 training images of CIFAR-10")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the runs and the pages")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "images")
    parser.add_argument("--pages", nargs="+", choices=list(PAGES), default=list(PAGES), help="pages to write")
    options = parser.parse_args()
    images = {"flowers": options.flowers, "collapsed": options.flowers, "large": options.cifar}
    runs = {name for page in options.pages for name in PAGES[page]}
    for name, words in TRAINED.items():
        if name in runs and not (options.runs / name).exists():
            run(["pretrain", *words.split(), "--data", images[name], "--out", str(options.runs / name)])
    if "demo" in runs and not (options.runs / "demo").exists():
        run(["demo", "--out", str(options.runs / "demo")])
    rows = []
    with browser() as driver:
        for name in options.pages:
            page, cost = options.runs / "demo" / "report.html", {}
            if name != "demo":  # the demo writes its page itself
                page = options.runs / f"{name}.html"
                folders = [str(options.runs / folder) for folder in PAGES[name]]
                cost = write_page(folders, images[PAGES[name][0]], IMAGES.get(name, FEW), page)
            size = write_webp(picture(driver, page, SECTIONS[name]), options.out / f"report_{name}.webp")
            sizes = {"page_bytes": page.stat().st_size, "picture_bytes": size}
            rows.append({"page": name, "runs": len(PAGES[name]), **cost, **sizes})
    write_results("report_pictures", merge_rows("report_pictures", "page", rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["report"]:
        print(json.dumps(cost_of(sys.argv[1:])))
    else:
        main()
