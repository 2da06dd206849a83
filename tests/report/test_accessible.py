"""The page for readers with a keyboard, a screen reader or weak eyes: walked in a real browser, in both schemes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import screenshots
from runs_with_metrics import finished_run, hostile_images, record_result
from screenshots import wait_for
from tiny import cpu_work, tiny_run

from vantage.report import write_report

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (screenshots.CHROMIUM and screenshots.DRIVER),
        reason="Chromium or chromedriver is not installed",
    ),
]

WALK = Path(__file__).with_name("accessible.js").read_text(encoding="utf-8")
_TAB = "\ue004"
_FOCUSED = """
const one = document.activeElement, style = getComputedStyle(one);
const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
return [one.tagName, one.dataset.reached = "yes", ring, one.outerHTML.slice(0, 90)];
"""
_LEFT = """
return [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex]")]
  .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.dataset.reached)
  .map((one) => one.outerHTML.slice(0, 90));
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("selenium.webdriver", reason="needs selenium, of the extra dev")
    with screenshots.chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module", params=["one run", "two runs"])
def tab(request: pytest.FixtureRequest, browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A page about one run or two, with a table of results, everything that can be folded open."""
    folder = tmp_path_factory.mktemp("page")
    source, page = hostile_images(folder / "images"), folder / "report.html"
    names = ["one", "two"][: 1 if request.param == "one run" else 2]
    runs = [finished_run(folder / name, replace(tiny_run(), epochs=20), source) for name in names]
    record_result(runs[0], 61.5, raw_pixels=40.0, random_encoder=41.0)
    write_report(runs, source, page, work=cpu_work(folder))
    browser.get(page.as_uri())
    wait_for(browser, "return document.body.dataset.map === 'ready'")
    browser.execute_script("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    browser.execute_script("document.querySelector('#map-list button').click()")
    return browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 1280, 2560])
def test_every_heading_picture_control_and_letter_serves_its_reader(tab: Any, width: int, scheme: str) -> None:
    with screenshots.of_width(tab, width), screenshots.in_scheme(tab, scheme):
        assert tab.execute_script(WALK) == []


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        ("document.querySelector('h2').outerHTML = '<h4>Curves</h4>'", "a heading of level 4 after one of level"),
        ("document.querySelector('.thumbnail img').alt = ''", "a picture without words"),
        (
            "document.querySelector('#map-dots').closest('label').replaceWith(document.querySelector('#map-dots'))",
            "name",
        ),
        ("document.querySelector('.note').style.color = '#999'", "a contrast of 2."),
        ("document.querySelector('.note').style.fontSize = '8px'", "letters of 8.0 pixels"),
        ("document.querySelector('.chart title').remove()", "a drawing without words"),
    ],
)
def test_what_the_walk_looks_for_is_found(tab: Any, harm: str, words: str) -> None:
    before = tab.execute_script("return document.body.innerHTML")
    try:
        tab.execute_script(harm)
        faults = tab.execute_script(WALK)
    finally:
        tab.execute_script("document.body.innerHTML = arguments[0]", before)
    assert any(words in fault for fault in faults)


def test_the_keyboard_reaches_every_control_and_a_ring_shows_where_it_is(tab: Any) -> None:
    from selenium.webdriver import ActionChains

    tab.refresh()
    wait_for(tab, "return document.body.dataset.map === 'ready'")
    tab.execute_script("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    first = tab.execute_script("return document.querySelectorAll('a, button, input, select, summary').length")
    for _ in range(first + 10):
        ActionChains(tab).send_keys(_TAB).perform()
        tag, _, ring, text = tab.execute_script(_FOCUSED)
        assert ring or tag == "BODY", text
    assert tab.execute_script(_LEFT) == []


def test_a_table_of_results_is_read_on_a_phone_without_scrolling(tab: Any) -> None:
    cell = "document.querySelector('#results td')"
    for width, is_narrow in ((380, True), (1280, False)):
        with screenshots.of_width(tab, width):
            table = "const one = document.querySelector('#results table'); "
            assert tab.execute_script(table + "return one.scrollWidth <= one.parentElement.clientWidth")
            content = tab.execute_script(f"return getComputedStyle({cell}, '::before').content")
            assert ("run" in content) == is_narrow or len(tab.find_elements("css selector", "#map canvas")) > 1
