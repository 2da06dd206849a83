"""The page in a real browser: nothing leaves it, nothing goes wrong in it, and the map answers."""

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import screenshots
from PIL import Image
from screenshots import wait_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (screenshots.CHROMIUM and screenshots.DRIVER),
        reason="Chromium or chromedriver is not installed",
    ),
]

ALIKE = 6.0
"""Of 255; another font changes no section by more than 3, and what must not happen some section by 7 and more."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("selenium.webdriver", reason="needs selenium, of the extra dev")
    with screenshots.chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return screenshots.page_of_two_runs(tmp_path_factory.mktemp("page"))


@pytest.fixture
def tab(browser: Any, page: Path) -> Any:
    browser.get("about:blank")  # what the browser's own first page asked for is none of ours
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(page.as_uri())
    wait_for(browser, "return document.body.dataset.map === 'ready'")
    return browser


def test_nothing_goes_wrong_and_nothing_leaves_the_page(tab: Any, page: Path) -> None:
    assert tab.get_log("browser") == []
    messages = [json.loads(one["message"])["message"] for one in tab.get_log("performance")]
    urls = [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    assert page.as_uri() in urls  # the log does hold requests
    inside = (page.as_uri(), "data:", "chrome://")  # the last are of the browser's own windows
    assert [url for url in urls if not url.startswith(inside)] == []
    assert tab.execute_script("return window.hostile") is None
    assert tab.execute_script("return document.querySelectorAll('[onerror]').length") == 0


def test_a_click_on_a_point_shows_its_neighbors_in_feature_space(tab: Any) -> None:
    from selenium.webdriver import ActionChains

    tab.execute_script("document.querySelector('#map details').open = true")
    image = wait_for(tab, "return maps[0].pictures?.images.at(-1)")  # nothing covers its point
    tab.execute_script(f"document.querySelector('#map-list button[data-image=\"{image}\"]').click()")
    spot = wait_for(tab, "return document.querySelector('#map-0 canvas').dataset.spot")
    text = tab.execute_script("return document.querySelector('#map-0 .panel').textContent")
    assert "Nearest in feature space" in text
    canvas = tab.find_element("css selector", "#map-0 canvas")
    canvas.send_keys("\ue00c")  # Escape
    assert tab.execute_script("return document.querySelector('#map-0 .panel').textContent") == ""
    x, y = map(int, spot.split())
    size = canvas.size
    mouse = ActionChains(tab).move_to_element_with_offset(canvas, x - size["width"] // 2, y - size["height"] // 2)
    mouse.click().perform()
    numbers = wait_for(
        tab, "return [...document.querySelectorAll('#map-0 .panel button')].map((one) => +one.dataset.image)"
    )
    assert tab.execute_script("return document.querySelector('#map-0 .panel').textContent") == text
    assert len(numbers) == 8 == len(set(numbers)) and image not in numbers
    assert tab.execute_script("return document.querySelectorAll('#map-1 .panel button').length") == 8


def test_thumbnails_on_the_map_do_not_overlap_and_zooming_in_shows_more(tab: Any) -> None:
    script = "return maps[0].pictures.images.map((one) => maps[0].spot(one))"
    side, spots_by_scale = wait_for(tab, "return maps[0].pictures?.side"), [tab.execute_script(script)]
    for _ in range(4):
        tab.execute_script("maps[0].zoomBy(1.5)")
        wait_for(tab, "return !maps[0].waiting")
        spots_by_scale.append(tab.execute_script(script))
    tab.execute_script("maps[0].fit()")
    spots = np.array(spots_by_scale[0])
    gaps = np.abs(spots[:, None] - spots).max(-1) + 1e9 * np.eye(len(spots))
    assert gaps.min() > side
    assert len(spots_by_scale[0]) <= len(spots_by_scale[-1]) <= 24


def test_the_keyboard_reaches_the_map_and_the_list(tab: Any) -> None:
    canvas = tab.find_element("css selector", "#map-0 canvas")
    names = set()
    for key in ("\ue014", "\ue012", "\ue015", "\ue013", "+", "-", "0"):  # the arrows
        canvas.send_keys(key)
        names.add(wait_for(tab, "return document.querySelector('#map-0 .panel strong').textContent"))
    assert len(names) >= 2
    tab.execute_script("document.querySelector('#map details').open = true")
    tab.find_element("id", "map-search").send_keys("plain/")
    assert wait_for(tab, "return document.getElementById('map-page').textContent") == "1 to 12 of 12"


@pytest.mark.parametrize("width", [380, 2560])
def test_no_width_needs_scrolling_sideways(tab: Any, width: int) -> None:
    with screenshots.of_width(tab, width):
        assert tab.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [380, 1280, 2560])
def test_no_thumbnail_at_the_edge_of_the_map_is_cut(tab: Any, width: int) -> None:
    with screenshots.of_width(tab, width):
        script = """
            const one = maps[0], [width, height] = one.size, room = one.pictures.side / 2 + 2;
            const fits = ([x, y]) => x >= room && y >= room && x <= width - room && y <= height - room;
            return !one.waiting && one.pictures.images.every((image) => fits(one.spot(image)));
        """
        tab.execute_script("maps[0].fit()")
        assert wait_for(tab, script)


def test_the_legend_names_clusters(tab: Any) -> None:
    tab.execute_script("maps[0].cluster = Int32Array.from({ length: count }, (_, i) => i % 3 - 1)")
    tab.execute_script("choice.color = 'cluster'; legend()")
    assert tab.find_element("id", "map-legend").text.split("\n") == ["cluster 0", "cluster 1"]


def test_it_is_light_or_dark_and_the_map_is_drawn(tab: Any) -> None:
    means = {}
    for scheme in ("light", "dark"):
        with screenshots.in_scheme(tab, scheme):
            shot = Image.open(BytesIO(tab.get_screenshot_as_png())).convert("L")
        means[scheme] = np.asarray(shot, dtype=float).mean()
    assert means["light"] > 200 and means["dark"] < 70
    screenshot = Image.open(BytesIO(tab.find_element("css selector", "#map-0 canvas").screenshot_as_png)).convert("RGB")
    assert len(screenshot.resize((64, 64)).getcolors(64**2) or ()) > 50


def test_sections_look_as_they_should(tab: Any) -> None:
    assert max(screenshots.changes(tab).values()) < ALIKE
    with screenshots.with_style(tab, "body { font: 17px/1.5 'DejaVu Serif', serif !important }"):
        assert max(screenshots.changes(tab).values()) < ALIKE


@pytest.mark.parametrize(
    ("rules", "section"),
    [
        (".runs { display: block !important }", "#views"),
        (".thumbnail img { visibility: hidden }", "#neighbors"),
        (".thumbnail, .thumbnail img { width: 300px; height: 300px }", "#outliers"),
        (".stage canvas { display: none }", "#map"),
        (".chart { display: none }", "#curves"),
        (":root { --card: #000 }", "#origin"),
    ],
)
def test_a_section_that_is_broken_is_seen(tab: Any, rules: str, section: str) -> None:
    with screenshots.with_style(tab, rules):
        assert screenshots.changes(tab, section)[section] > ALIKE


def test_it_prints_on_white_paper_and_cuts_no_picture(tab: Any) -> None:
    pdfium = pytest.importorskip("pypdfium2", reason="needs pypdfium2, of the extra dev")
    with screenshots.in_scheme(tab, "dark"):
        paper = pdfium.PdfDocument(screenshots.pdf_of(tab))
    sheets = [paper[number] for number in range(len(paper))]
    assert 3 <= len(sheets) <= 12
    words = [sheet.get_textpage().get_text_range() for sheet in sheets]
    assert "Healthy:" in words[0] and "each square shows" in " ".join(words) and "Zoom in" not in " ".join(words)
    pictures = 0
    for sheet in sheets:
        width, height = sheet.get_size()
        page_image = sheet.render(scale=0.5).to_pil().convert("L")
        assert page_image.getpixel((2, 2)) > 250  # no dark ground
        assert page_image.resize((64, 64)).getextrema()[0] < 250  # and none is blank
        for one in sheet.get_objects(filter=[pdfium.raw.FPDF_PAGEOBJ_IMAGE]):
            left, bottom, right, top = one.get_bounds()
            assert left >= 0 and bottom >= 0 and right <= width and top <= height
            pictures += 1
    paper.close()
    script = "return [...document.images].filter((one) => one.id !== 'map-sprite').length"
    assert pictures >= tab.execute_script(script)


def test_the_page_can_be_read_without_a_script(browser: Any, page: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(page.as_uri())
        assert browser.find_element("css selector", "#map-0 img.mosaic").is_displayed()
        assert browser.find_element("id", "map-still").is_displayed()
        for name in ("#map-controls", "#map-images", "#map-note", "#map-0 .panel"):  # none of it would answer
            assert not browser.find_element("css selector", name).is_displayed()
        assert "Healthy:" in browser.find_element("tag name", "header").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
