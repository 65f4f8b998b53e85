"""The main job in a real browser: open, look, choose, run, cancel, lasso, share the address."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
MAPS = "[class*=st-key-chart-map-] .js-plotly-plot"
PATIENCE = 300_000
"""Milliseconds; a machine may be busy, and no test here is about speed."""

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def no_browser(reason: str):
    """Skip with a sentence; a failure where a browser was promised."""
    if os.environ.get("FORGETSCOPE_REQUIRE_BROWSER"):
        pytest.fail(f"The browser tests must run here, but {reason}.")
    pytest.skip(f"The browser tests were left out, because {reason}.")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The app on a free port, with an empty store."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    env = os.environ | {"FORGETSCOPE_HOME": str(tmp_path_factory.mktemp("home"))}
    words = [sys.executable, "-m", "core.cli", "app", "--port", str(port), "--no-browser"]
    process = subprocess.Popen(words, cwd=ROOT, env=env, stdout=subprocess.DEVNULL)
    address = f"http://localhost:{port}"
    for _ in range(240):
        try:
            urllib.request.urlopen(f"{address}/_stcore/health", timeout=2)
            break
        except OSError:
            time.sleep(0.25)
    yield address
    process.terminate()
    process.wait(20)


@pytest.fixture(scope="module")
def browser():
    """Chromium: an installed one, else Playwright's own."""
    sync = pytest.importorskip("playwright.sync_api")
    with sync.sync_playwright() as play:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        running = None
        try:
            running = play.chromium.launch(executable_path=path, args=list(QUIET))
        except sync.Error as why:
            no_browser(f"no Chromium starts ({str(why).splitlines()[0]})")
        assert running is not None
        yield running
        running.close()


@pytest.fixture
def page(browser):
    """A fresh page whose errors are kept in `page.faults`."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    context.set_default_timeout(PATIENCE)
    made = context.new_page()
    made.faults = []
    made.on("pageerror", lambda error: made.faults.append(str(error)))
    yield made
    context.close()


def opened(page, address):
    page.goto(address)
    page.wait_for_selector(".fs-verdict")
    return page


def choose(page, label, option):
    """Pick an option of a select box, found by typing: a long list draws only what is in sight."""
    box = page.get_by_role("combobox", name=re.compile(re.escape(label)))
    box.click()
    box.fill(option.partition(" (")[0])
    page.get_by_role("option", name=option, exact=True).click()


def test_the_first_visit_tells_the_story(page, server):
    opened(page, server)
    assert page.locator("h1").inner_text() == "Has it really forgotten Sneaker?"
    assert "Masked" in page.locator(".fs-verdict").inner_text()
    page.wait_for_function(f"document.querySelectorAll('{MAPS}').length === 3")
    assert page.faults == []


def test_every_tab_opens_and_stays_in_the_address(page, server):
    opened(page, server)
    for tab in ("Geometry", "Attention", "Leakage", "Predictions", "Details", "Map"):
        page.get_by_role("tab", name=tab).click()
        if tab != "Map":
            page.wait_for_function(f"location.search.includes('tab={tab}')")
        page.wait_for_timeout(800)
        assert page.locator("[data-testid=stException]").count() == 0
    assert page.faults == []


def test_a_lasso_lights_up_the_same_images_in_all_maps(page, server):
    opened(page, server)
    page.wait_for_function(f"document.querySelectorAll('{MAPS} .nsewdrag').length === 3")
    page.wait_for_timeout(1500)
    area = page.locator(f"{MAPS} .nsewdrag").nth(1)
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    corners = [(0.1, 0.1), (0.9, 0.1), (0.9, 0.9), (0.1, 0.9), (0.1, 0.12)]
    spots = [(box["x"] + a * box["width"], box["y"] + b * box["height"]) for a, b in corners]
    page.mouse.move(*spots[0])
    page.mouse.down()
    for x, y in spots[1:]:
        page.mouse.move(x, y, steps=12)
    page.mouse.up()
    page.get_by_text("images picked").wait_for()
    lit = page.wait_for_function(
        "(() => { const lit = [...document.querySelectorAll('" + MAPS + "')].map("
        "plot => plot.data.map(t => t.selectedpoints ? t.selectedpoints.length : 0)"
        ".reduce((a, b) => a + b, 0));"
        " return lit[0] > 0 && lit[0] === lit[1] && lit[1] === lit[2] ? lit : null; })()"
    ).json_value()
    assert len(lit) == 3
    assert len(set(lit)) == 1


def test_choose_run_and_share(page, server):
    opened(page, server)
    choose(page, "Unlearner", "Do nothing (control)")
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_function("location.search.includes('unlearner=do_nothing')")
    page.get_by_text("Retained", exact=True).wait_for()
    second = page.context.new_page()
    opened(second, page.url)
    assert "Retained" in second.locator(".fs-verdict").inner_text()
    assert second.locator("h1").inner_text() == "Has it really forgotten Sneaker?"


def test_compare_shows_all_methods_and_a_click_opens_a_run(page, server):
    page.goto(f"{server}/compare")
    page.get_by_text("Which method forgets Sneaker best").wait_for()
    plot = "[class*=st-key-chart-trilemma] .js-plotly-plot"
    page.wait_for_function(f"document.querySelectorAll('{plot} .scatterlayer .point').length > 30")
    page.wait_for_timeout(1500)
    spot = page.evaluate(
        f"""() => {{
            const plot = document.querySelector('{plot}');
            const trace = plot.data.find(t => t.name && t.name.startsWith('not beaten'));
            const box = plot.getBoundingClientRect(), full = plot._fullLayout;
            const [x, y] = [full.xaxis, full.yaxis];
            return {{
                name: trace.customdata[0][0],
                x: box.x + x._offset + x.d2p(trace.x[0]),
                y: box.y + y._offset + y.d2p(trace.y[0]),
            }};
        }}"""
    )
    page.mouse.click(spot["x"], spot["y"])
    method = spot["name"].split()[0]
    page.wait_for_function(f"location.search.includes('unlearner={method}')")
    page.get_by_text("Has it really forgotten Sneaker?").wait_for()
    assert page.faults == []


def test_two_runs_stand_side_by_side_by_their_address(page, server):
    page.goto(f"{server}/compare?a=pour_d&b=pour_d&tab=Leakage")
    page.get_by_text("A · POUR-D").wait_for()
    page.get_by_text("B · POUR-D").wait_for()
    charts = "[class*=st-key-chart-depth] .js-plotly-plot"
    page.wait_for_function(f"document.querySelectorAll('{charts}').length === 4")
    assert page.locator("[data-testid=stException]").count() == 0
    assert page.faults == []


def test_images_are_chosen_by_clicking_them(page, server):
    opened(page, f"{server}/?dataset=fashion&forget=class:Sneaker&unlearner=pour_d")
    page.get_by_role("radio", name="Images").click()
    page.get_by_role("button", name="Choose by clicking").click()
    sheet = page.locator("[class*=st-key-picker-sheet] .nsewdrag").first
    sheet.wait_for()
    page.wait_for_timeout(1000)
    box = sheet.bounding_box()
    page.mouse.click(box["x"] + 0.65 * box["width"], box["y"] + 0.5 * box["height"])
    page.get_by_text("9 images chosen, of all classes").wait_for()
    page.get_by_role("button", name="Use these").click()
    field = page.get_by_test_id("stTextInputField")
    page.wait_for_function(
        "document.querySelector('[data-testid=stTextInputField]').value.split(',').length === 9"
    )
    assert field.input_value().startswith("0, 1, 2")


def test_a_run_can_be_cancelled_and_leaves_nothing(page, server):
    opened(page, f"{server}/?tab=Details")
    choose(page, "Unlearner", "Retraining")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("was cancelled").wait_for()
    again = page.get_by_role("button", name="Run it now")
    again.wait_for()
    assert again.is_enabled()


def test_nonsense_in_the_address_neither_runs_nor_breaks(page, server):
    page.on("dialog", lambda dialog: page.faults.append(dialog.message))
    opened(page, f"{server}/?forget=%3Cimg%20src=x%20onerror=alert(1)%3E&unlearner=nope&tab=%00")
    page.get_by_text("There is no unlearner").first.wait_for()
    assert page.faults == []
