# SPDX-License-Identifier: Apache-2.0
"""What the tests in a real browser share: headless chromium, its picture and its mouse."""

from __future__ import annotations

import io
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ik_node.model.arm import Arm
from ik_node.viewer.scene.scene import EYE, EYE_TARGET, FIELD_OF_VIEW, NARROW_TARGET
from ik_node.viewer.scene.tool_scene import GIZMO_SCALE
from ik_node.viewer.scene.visuals import extent_of

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
    '--window-size=900,700',
)
PANEL, NOTICE = 340, 160  # pixels that the panel takes on the right, and viser's notices at the top
SQUARE = 8  # pixels
MANY = 100  # squares, of some 3,500: an arm that moves changes more, nothing else does
FINER = 10  # of 255: how much a square of a scene at rest may change, where viser draws it finer
TIMEOUT = 240.0  # seconds for things that take one or two on an idle machine; swiftshader draws slowly
# Of all elements at once: chromedriver needs a tenth of a second for each that it is asked about.
DISPLAYED = """
const found = document.evaluate(arguments[0], document, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE);
const seen = (one) => one.getClientRects().length && one.checkVisibility(
  {opacityProperty: true, visibilityProperty: true});
return [...Array(found.snapshotLength).keys()].map((k) => found.snapshotItem(k)).filter(seen)"""
STILL = 0.05  # [s] in which an element that is to be clicked must not move


def wait(condition: Callable[[], Any], what: str) -> Any:
    """Return what condition returns once that is true; fail if it never is."""
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f'waited {TIMEOUT} s for {what}')


PHONE = {'width': 390, 'height': 844, 'pixelRatio': 1.0, 'mobile': True, 'touch': True}


@pytest.fixture(scope='module')
def browser() -> Iterator[Any]:
    yield from started()


@pytest.fixture(scope='module')
def phone() -> Iterator[Any]:
    """A browser that emulates a phone."""
    yield from started(mobileEmulation={'deviceMetrics': PHONE})


def started(**experimental: Any) -> Iterator[Any]:
    """A browser with experimental options of chromedriver, until the end."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in FLAGS:
        options.add_argument(flag)
    for name, value in experimental.items():
        options.add_experimental_option(name, value)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    browser.set_page_load_timeout(TIMEOUT)
    yield browser
    browser.quit()


def open_page(browser: Any, url: str) -> None:
    """Open the page of the viewer, and look into the frame of viser."""
    browser.get(url.partition('#')[0])  # with what is behind it a browser does not load again
    browser.switch_to.frame(wait(lambda: browser.find_elements('tag name', 'iframe'), 'the page')[0])


def picture(browser: Any) -> np.ndarray:
    """What the page shows, (rows, columns, 3), without the panel and the notices over the scene.

    In mean colours of squares of pixels: where drawing is slow, viser draws coarser for a while.
    """

    def taken() -> bytes:
        with suppress(exceptions.TimeoutException):  # after ten seconds, on a busy machine
            return bytes(browser.get_screenshot_as_png())
        return b''

    return scene_of(Image.open(io.BytesIO(wait(taken, 'a picture'))).convert('RGB'))


def scene_of(image: Image.Image) -> np.ndarray:
    """The part of a picture of the whole page that is free of panel and notices, in squares of pixels."""
    scene = image.crop((0, NOTICE, image.width - PANEL, image.height))
    return np.asarray(scene.reduce(SQUARE), dtype=np.int16)


def changed(before: np.ndarray, after: np.ndarray) -> int:
    """How many squares differ clearly."""
    return int((np.abs(before - after).max(axis=2) > 30).sum())


def settled(browser: Any) -> np.ndarray:
    """Wait until two pictures in a row are about equal; return the last."""
    last = [picture(browser)]

    def same() -> bool:
        time.sleep(0.5)
        last.append(picture(browser))
        return np.abs(last[-2] - last[-1]).max() <= FINER

    wait(same, 'a picture that stands still')
    return last[-1]


class Projection:
    """From the base frame to pixels of the page, for the camera that every page starts with."""

    def __init__(self, browser: Any, extent: float) -> None:
        enter(browser)
        rect = wait(lambda: browser.find_elements('css selector', 'canvas'), 'the scene')[0].rect
        self._middle = np.array([rect['x'] + rect['width'] / 2, rect['y'] + rect['height'] / 2])
        self._focal = rect['height'] / 2 / np.tan(FIELD_OF_VIEW / 2)
        narrow = min(rect['width'] / rect['height'], 1.0)  # as on a phone
        target = EYE_TARGET if narrow == 1.0 else NARROW_TARGET
        way = (EYE - EYE_TARGET) / narrow**0.5
        self._eye = (target + way) * extent
        forward = -way / np.linalg.norm(way)
        right = np.cross(forward, (0.0, 0.0, 1.0))
        right /= np.linalg.norm(right)
        self._axes = np.array([right, -np.cross(right, forward), forward])  # x right, y down, z away

    def __call__(self, point: np.ndarray) -> np.ndarray:
        x, y, depth = self._axes @ (point - self._eye)
        return self._middle + self._focal / depth * np.array([x, y])


def arrow(
    browser: Any, arm: Arm, joints: Mapping[str, float], share: float, axis: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where an arrow of the gizmo at the tool of an arm is, for the camera that every page starts with.

    Returns its head and where that is after a share of the extent of the arm along it, in pixels, and the way
    (3,) in the base frame. axis: of the tool, or else that which is seen longest, below viser's notices.
    """
    T = arm.robot.link_pose(arm.tip_link, joints)
    extent = extent_of(arm.robot, arm.tip_link)
    project = Projection(browser, extent)
    heads = [T[:3, 3] + 0.75 * GIZMO_SCALE * extent * T[:3, i] for i in range(3)]
    if axis is None:
        seen = [np.linalg.norm(project(head) - project(T[:3, 3])) for head in heads]
        free = [project(head)[1] > 1.1 * NOTICE for head in heads]
        axis = int(np.argmax(np.where(free, seen, 0.0)))
    way = share * extent * T[:3, axis]
    return project(heads[axis]), project(heads[axis] + way), way


def drag(browser: Any, start: np.ndarray, end: np.ndarray, release: bool = True) -> None:
    """Press the mouse at start, move it to end in steps as a hand does, release it and go away."""
    actions = webdriver.ActionChains(browser, duration=50)
    mouse = actions.w3c_actions.pointer_action
    mouse.move_to_location(*map(int, start))
    mouse.pause(0.5)
    mouse.pointer_down()
    _move(mouse, start, end)
    if release:
        mouse.pause(0.5)
        mouse.pointer_up()
        mouse.move_to_location(10, 400)  # what the mouse is over is drawn in another colour
    actions.perform()


def drag_on(browser: Any, start: np.ndarray, end: np.ndarray, release: bool) -> None:
    """Move the mouse that is pressed at start to end; release: and release it there."""
    actions = webdriver.ActionChains(browser, duration=50)
    mouse = actions.w3c_actions.pointer_action
    _move(mouse, start, end)
    if release:
        mouse.pointer_up()
    actions.perform()


def _move(mouse: Any, start: np.ndarray, end: np.ndarray) -> None:
    for share in np.linspace(0.1, 1.0, 10):
        mouse.move_to_location(*map(int, start + share * (end - start)))
        mouse.pause(0.05)


def touch(browser: Any, *places: np.ndarray) -> None:
    """Put a finger on the first place, move it over the others and lift it."""

    def send(kind: str, *points: np.ndarray) -> None:
        fingers = [{'x': float(x), 'y': float(y)} for x, y in points]
        browser.execute_cdp_cmd('Input.dispatchTouchEvent', {'type': kind, 'touchPoints': fingers})

    send('touchStart', places[0])
    time.sleep(0.3)
    for first, last in pairwise(places):
        for share in np.linspace(0.1, 1.0, 10):
            send('touchMove', first + share * (last - first))
            time.sleep(0.05)
    time.sleep(0.2)
    send('touchEnd')


def tap(browser: Any, element: Any) -> None:
    """Touch the middle of an element."""
    touch(browser, middle(browser, element))


def middle(browser: Any, element: Any) -> np.ndarray:
    """Where the middle of an element is in the page, whose frame begins at its top left, once it rests."""
    script = 'const r = arguments[0].getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2];'
    places = [browser.execute_script(script, element)]

    def rests() -> bool:
        time.sleep(0.5)
        places.append(browser.execute_script(script, element))
        return places[-1] == places[-2]

    wait(rests, 'an element that rests')
    return np.array(places[-1])


def enter(browser: Any) -> None:
    """Look into the frame of viser again: chromedriver leaves it if a busy page answers late."""
    if browser.execute_script('return window === top'):
        browser.switch_to.frame(browser.find_element('tag name', 'iframe'))


def source(browser: Any) -> str:
    """The source of the page as it is now, with what it hides."""
    enter(browser)
    return str(browser.page_source)


def displayed(browser: Any, path: str) -> list[Any]:
    """The elements of an XPath that are displayed; none while the page replaces them."""
    enter(browser)
    with suppress(exceptions.StaleElementReferenceException):
        return list(browser.execute_script(DISPLAYED, path))
    return []


def texts(browser: Any, path: str) -> list[str]:
    """The texts of the elements of an XPath that are displayed."""
    enter(browser)
    return list(browser.execute_script(f'{DISPLAYED}.map((one) => one.innerText.trim())', path))


def words(browser: Any) -> str:
    """The words that the page shows."""
    enter(browser)
    return str(browser.execute_script('return document.body.innerText'))


def element(browser: Any, text: str) -> Any:
    """Return the element with a text, in the middle of what is seen."""
    found = wait(lambda: displayed(browser, f"//*[normalize-space(text())='{text}']"), text)[0]
    browser.execute_script('arguments[0].scrollIntoView({block: "center"})', found)
    time.sleep(0.5)  # the panel scrolls
    return found


def click(browser: Any, text: str) -> None:
    """Click the element with a text."""
    click_on(browser, f"//*[normalize-space(text())='{text}']", text)


def press(browser: Any, label: str, name: str) -> None:
    """Press a button of a group with a label."""
    path = f"//label[normalize-space()='{label}']/following::button[normalize-space()='{name}'][1]"
    click_on(browser, path, f'{label}: {name}')


def click_on(browser: Any, path: str, what: str) -> None:
    """Click the first displayed element of an XPath, once the page neither replaces nor moves it."""

    def clicked() -> bool:
        found = displayed(browser, path)
        with suppress(
            exceptions.StaleElementReferenceException,
            exceptions.ElementClickInterceptedException,
            exceptions.ElementNotInteractableException,  # its folder is about to open
        ):
            for one in found[:1]:
                browser.execute_script('arguments[0].scrollIntoView({block: "center"})', one)
                before = one.rect
                time.sleep(STILL)
                if one.rect != before:
                    return False
                one.click()
                return True
        return False

    wait(clicked, what)


def choose(browser: Any, label: str, option: str) -> None:
    """Choose an option, which has or contains a text, of the choice with a label."""
    click_on(browser, f"//label[normalize-space()='{label}']/following::input[1]", label)
    click_on(browser, f"//*[@role='option'][contains(., '{option}')]", option)


def type_into(browser: Any, label: str, text: str) -> None:
    """Type a text instead of what is in the field with a label."""
    path = f"//label[normalize-space()='{label}']/following::input[1]"
    click_on(browser, path, label)
    field = displayed(browser, path)[0]
    field.send_keys(webdriver.Keys.CONTROL, 'a')
    field.send_keys(text, webdriver.Keys.ENTER)


def tick(browser: Any, label: str) -> None:
    """Click the checkbox with a label."""
    click_on(browser, f"//*[normalize-space(text())='{label}']/following::input[1]", label)


def slide(browser: Any, label: str, way: int) -> None:
    """Drag the slider with a label by pixels to the right, with the mouse."""
    thumb = element(browser, label).find_element('xpath', "following::*[@role='slider'][1]")
    webdriver.ActionChains(browser).drag_and_drop_by_offset(thumb, way, 0).perform()
