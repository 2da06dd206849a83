"""The page in a real browser: nothing leaves it, nothing goes wrong in it, and the map answers."""

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from made import finished_run, hostile_images
from PIL import Image
from tiny import tiny_run, work

from vantage.report import write_report

CHROMIUM, DRIVER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome"),
    shutil.which("chromedriver"),
)
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Chromium and chromedriver, and they are not installed"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium, of the extra dev")
    options = webdriver.ChromeOptions()
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_window_size(1280, 900)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page about two runs on images with hostile names."""
    folder = tmp_path_factory.mktemp("page")
    source = hostile_images(folder / "images")
    runs = [
        finished_run(folder / name, replace(tiny_run(), epochs=20, seed=seed), source)
        for seed, name in enumerate(("one", "two"))
    ]
    write_report(runs, source, folder / "report.html", work=work(folder))
    return folder / "report.html"


@pytest.fixture
def opened(browser: Any, page: Path) -> Any:
    browser.get("about:blank")  # what the browser's own first page asked for is none of ours
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(page.as_uri())
    wait_for(browser, "return document.body.dataset.map === 'ready'")
    return browser


def wait_for(browser: Any, script: str, seconds: float = 20.0) -> Any:
    """What a script returns, once it is true."""
    end = time.monotonic() + seconds
    while not (answer := browser.execute_script(script)):
        assert time.monotonic() < end, f"{script} stayed {answer!r}"
        time.sleep(0.05)
    return answer


def test_nothing_goes_wrong_and_nothing_leaves_the_page(opened: Any, page: Path) -> None:
    assert opened.get_log("browser") == []
    messages = [json.loads(one["message"])["message"] for one in opened.get_log("performance")]
    sent = [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    assert page.as_uri() in sent  # the log does hold requests
    inside = (page.as_uri(), "data:", "chrome://")  # the last are of the browser's own windows
    assert [url for url in sent if not url.startswith(inside)] == []
    assert opened.execute_script("return window.hostile") is None
    assert opened.execute_script("return document.querySelectorAll('[onerror]').length") == 0


def test_a_click_on_a_point_shows_its_neighbors_in_feature_space(opened: Any) -> None:
    from selenium.webdriver import ActionChains

    opened.execute_script("document.querySelector('#map details').open = true")
    opened.execute_script("document.querySelector('#map-list button[data-image=\"5\"]').click()")
    spot = wait_for(opened, "return document.querySelector('#map-0 canvas').dataset.spot")
    shown = opened.execute_script("return document.querySelector('#map-0 .panel').textContent")
    assert "Nearest in feature space" in shown
    canvas = opened.find_element("css selector", "#map-0 canvas")
    canvas.send_keys("\ue00c")  # Escape
    assert opened.execute_script("return document.querySelector('#map-0 .panel').textContent") == ""
    x, y = map(int, spot.split())
    size = canvas.size
    mouse = ActionChains(opened).move_to_element_with_offset(canvas, x - size["width"] // 2, y - size["height"] // 2)
    mouse.click().perform()
    numbers = wait_for(
        opened, "return [...document.querySelectorAll('#map-0 .panel button')].map((one) => +one.dataset.image)"
    )
    assert opened.execute_script("return document.querySelector('#map-0 .panel').textContent") == shown
    assert len(numbers) == 8 == len(set(numbers)) and 5 not in numbers
    assert opened.execute_script("return document.querySelectorAll('#map-1 .panel button').length") == 8


def test_the_keyboard_reaches_the_map_and_the_list(opened: Any) -> None:
    canvas = opened.find_element("css selector", "#map-0 canvas")
    names = set()
    for key in ("\ue014", "\ue012", "\ue015", "\ue013", "+", "-", "0"):  # the arrows
        canvas.send_keys(key)
        names.add(wait_for(opened, "return document.querySelector('#map-0 .panel strong').textContent"))
    assert len(names) >= 2
    opened.execute_script("document.querySelector('#map details').open = true")
    opened.find_element("id", "map-search").send_keys("plain/")
    assert wait_for(opened, "return document.getElementById('map-page').textContent") == "1 to 12 of 12"


@pytest.mark.parametrize("width", [380, 2560])
def test_no_width_needs_scrolling_sideways(opened: Any, width: int) -> None:
    opened.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )
    try:
        assert opened.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_is_light_or_dark_and_the_map_is_drawn(opened: Any) -> None:
    means = {}
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        shot = Image.open(BytesIO(opened.get_screenshot_as_png())).convert("L")
        means[scheme] = sum(shot.resize((32, 32)).get_flattened_data()) / 32**2
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert means["light"] > 200 and means["dark"] < 70
    drawn = Image.open(BytesIO(opened.find_element("css selector", "#map-0 canvas").screenshot_as_png)).convert("RGB")
    assert len(drawn.resize((64, 64)).getcolors(64**2) or ()) > 50


def test_the_page_can_be_read_without_a_script(browser: Any, page: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(page.as_uri())
        assert browser.find_element("css selector", "#map-0 img.mosaic").is_displayed()
        assert not browser.find_element("id", "map-controls").is_displayed()
        assert "Healthy:" in browser.find_element("tag name", "header").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
