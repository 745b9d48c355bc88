# SPDX-License-Identifier: Apache-2.0
"""What the tests in a real browser share: headless chromium, its page and its mouse."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest
from waiting import wait_for

from ik_node.viewer.scene import EYE, EYE_TARGET, FIELD_OF_VIEW

webdriver = pytest.importorskip('selenium.webdriver', reason='selenium is not installed')
exceptions = pytest.importorskip('selenium.common.exceptions')

CHROMIUM, DRIVER = shutil.which('chromium'), shutil.which('chromedriver')
if CHROMIUM is None or DRIVER is None:
    pytest.skip('chromium and chromedriver are not installed', allow_module_level=True)

FLAGS = (
    '--headless',
    '--no-sandbox',
    '--use-angle=swiftshader',
    '--enable-unsafe-swiftshader',
    '--disable-gpu-rasterization',  # swiftshader draws panels and the lines of charts slowly
    '--disable-accelerated-2d-canvas',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    '--disable-quic',
    '--window-size=900,600',
)
TIMEOUT = 120.0  # seconds for things that take one or two on an idle machine; swiftshader draws slowly
# A page without a graphics processor would draw all the time, and leave no time for anything else. What draws the
# scene cancels its next frame whenever nothing changes: without that, one more of it would draw after every motion.
FEWER_FRAMES = """
const draw = requestAnimationFrame.bind(window), cancel = cancelAnimationFrame.bind(window), due = new Map();
window.requestAnimationFrame = (callback) => {
  const id = setTimeout(() => due.set(id, draw((now) => { due.delete(id); callback(now); })), 100);
  return id;
};
window.cancelAnimationFrame = (id) => { clearTimeout(id); cancel(due.get(id)); due.delete(id); };"""
FRAMES = """
const [count, done] = arguments, step = (k) => k ? requestAnimationFrame(() => step(k - 1)) : done();
step(count);"""
# Of all elements at once: chromedriver needs a tenth of a second for each that it is asked about.
DISPLAYED = """
const found = document.evaluate(arguments[0], document, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE);
const seen = (one) => one.getClientRects().length && one.checkVisibility(
  {opacityProperty: true, visibilityProperty: true});
return [...Array(found.snapshotLength).keys()].map((k) => found.snapshotItem(k)).filter(seen)"""
PHONE = {'width': 390, 'height': 844, 'deviceScaleFactor': 1, 'mobile': True}


class Browser:
    """A page in a window, whose mouse does what a hand does. driver: of selenium."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        driver.set_page_load_timeout(TIMEOUT)
        driver.set_script_timeout(TIMEOUT)
        self.command('Page.addScriptToEvaluateOnNewDocument', source=FEWER_FRAMES)

    def command(self, name: str, **values: Any) -> Any:
        """Send a command of the DevTools protocol, and return its answer."""
        return self.driver.execute_cdp_cmd(name, values)

    def open(self, url: str) -> None:
        """Open the page of the viewer, and look into the frame of viser."""
        self.driver.switch_to.default_content()
        self.driver.get(url.partition('#')[0])  # with what is behind it a browser does not load again
        self.wait(lambda: 'joint5' in self.words(), 'the page')

    def enter(self) -> None:
        """Look into the frame of viser: chromedriver leaves it if a busy page answers late."""
        if self.driver.execute_script('return window === top'):
            self.driver.switch_to.frame(self.driver.find_element('tag name', 'iframe'))

    @contextmanager
    def outside(self) -> Iterator[Any]:
        """Look at the page around that of viser; yields its stop button."""
        self.driver.switch_to.default_content()
        yield self.driver.find_element('css selector', '#stop')
        self.enter()

    def script(self, text: str, *given: Any) -> Any:
        return self.driver.execute_script(text, *given)

    def wait(self, condition: Callable[[], Any], what: str) -> Any:
        """Return what condition returns once that is true; fail if it never is."""
        return wait_for(condition, what, TIMEOUT, every=0.05)

    def frames(self, count: int = 3) -> None:
        """Wait until the scene is drawn as often: by then it has what the panel shows already."""
        self.enter()
        self.driver.execute_async_script(FRAMES, count)

    def words(self) -> str:
        """The words that the page shows."""
        self.enter()
        return str(self.script('return document.body.innerText'))

    def displayed(self, path: str) -> list[Any]:
        """The elements of an XPath that are displayed; none while the page replaces them."""
        self.enter()
        with suppress(exceptions.StaleElementReferenceException):
            return list(self.script(DISPLAYED, path))
        return []

    def click(self, text: str, path: str = "//*[normalize-space(text())='{}']") -> None:
        """Click the first displayed element with a text, once the page neither replaces nor moves it."""

        def clicked() -> bool:
            with suppress(exceptions.WebDriverException):  # replaced, covered or in a folder that opens
                for one in self.displayed(path.format(text))[:1]:
                    self.script('arguments[0].scrollIntoView({block: "center"})', one)
                    before = one.rect
                    self.frames(1)
                    if one.rect == before:
                        one.click()
                        return True
            return False

        self.wait(clicked, text)

    def tick(self, label: str) -> None:
        """Click the checkbox with a label."""
        self.click(label, "//*[normalize-space(text())='{}']/following::input[1]")

    # The mouse in the scene

    def press(self, *way: np.ndarray) -> None:
        """Press the mouse at the first place, move it over the others and release it."""
        self._mouse('move', way[0])
        self._mouse('down', way[0])
        for place in way[1:]:
            self._mouse('move', place)
        self.frames(3)  # viser sends at most every few frames where the mouse is
        self._mouse('up', way[-1])

    def _mouse(self, what: str, place: np.ndarray) -> None:
        actions = webdriver.ActionChains(self.driver, duration=0)
        pointer = actions.w3c_actions.pointer_action
        if what == 'move':
            pointer.move_to_location(*map(int, place))
        elif what == 'down':
            pointer.pointer_down()
        else:
            pointer.pointer_up()
        actions.perform()
        self.frames(1)

    def projection(self, extent: float) -> Callable[[np.ndarray], np.ndarray]:
        """From the base frame to pixels, for the camera that every page of a wide window starts with."""
        self.enter()
        rect = self.driver.find_element('css selector', 'canvas').rect
        middle = np.array([rect['x'] + rect['width'] / 2, rect['y'] + rect['height'] / 2])
        focal = rect['height'] / 2 / np.tan(FIELD_OF_VIEW / 2)
        forward = (EYE_TARGET - EYE) / np.linalg.norm(EYE_TARGET - EYE)
        right = np.cross(forward, (0.0, 0.0, 1.0))
        right /= np.linalg.norm(right)
        axes = np.array([right, -np.cross(right, forward), forward])  # x right, y down, z away

        def project(point: np.ndarray) -> np.ndarray:
            x, y, depth = axes @ (point - EYE * extent)
            return middle + focal / depth * np.array([x, y])

        return project


@pytest.fixture(scope='module')
def browser() -> Iterator[Browser]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in FLAGS:
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield Browser(driver)
    driver.quit()
