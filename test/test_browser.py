"""The viewer in a real browser: headless chromium, real mouse."""

from __future__ import annotations

import io
import os
import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image
from viewer_harness import SEED_ARM, SEED_JOINTS, Process, RobotSide, viewer

from ik_node.kinematics.arm import Arm
from ik_node.viewer.scene import EYE, EYE_TARGET, FIELD_OF_VIEW, GIZMO_SCALE
from ik_node.viewer.visuals import draw

webdriver = pytest.importorskip('selenium.webdriver', reason='selenium is not installed')

CHROMIUM, DRIVER = shutil.which('chromium'), shutil.which('chromedriver')
if CHROMIUM is None or DRIVER is None:
    pytest.skip('chromium and chromedriver are not installed', allow_module_level=True)

FLAGS = (
    '--headless',
    '--no-sandbox',
    '--use-angle=swiftshader',
    '--enable-unsafe-swiftshader',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    '--disable-quic',
    '--window-size=900,700',
)
DOMAIN = 70 + os.getpid() % 10
MANY = 3000  # pixels, of some 200,000: an arm that moves changes more, nothing else does
TIMEOUT = 120.0  # seconds for things that take one or two on an idle machine; swiftshader draws slowly
Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))  # the tool is left of the panel


def wait(condition: Callable[[], Any], what: str) -> Any:
    """Return what condition returns once that is true; fail if it never is."""
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f'waited {TIMEOUT} s for {what}')


@pytest.fixture(scope='module')
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in FLAGS:
        options.add_argument(flag)
    service = webdriver.chrome.service.Service(DRIVER)
    browser = webdriver.Chrome(options=options, service=service)
    yield browser
    browser.quit()


@pytest.fixture(scope='module')
def running() -> Iterator[tuple[Process, RobotSide]]:
    with viewer(DOMAIN) as both:
        yield both


@pytest.fixture
def robot(browser: Any, running: tuple[Process, RobotSide]) -> RobotSide:
    """The robot's side, with the page open and the seed arm at Q in it."""
    process, robot = running
    robot.describe('<robot name="none"/>')
    browser.get(f'http://127.0.0.1:{process.port()}')
    wait(lambda: 'Cannot show' in browser.page_source, 'the page')
    empty = settled(browser)
    robot.describe(SEED_ARM)
    wait(lambda: changed(empty, picture(browser)) > MANY, 'the arm')
    at_zero = settled(browser)
    robot.move(**Q)
    wait(lambda: changed(at_zero, picture(browser)) > MANY, 'the arm and the gizmo at Q')
    settled(browser)
    return robot


def picture(browser: Any) -> np.ndarray:
    """What the canvas shows, (height, width, 3), without the panel and the notice over it."""
    image = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert('RGB')
    return np.asarray(image, dtype=np.int16)[160:, : image.width - 340]


def changed(before: np.ndarray, after: np.ndarray) -> int:
    """How many pixels differ by more than what rounding could do."""
    return int((np.abs(before - after).max(axis=2) > 24).sum())


def settled(browser: Any) -> np.ndarray:
    """Wait until two pictures in a row are equal; return the last."""
    last = [picture(browser)]

    def same() -> bool:
        time.sleep(0.3)
        last.append(picture(browser))
        return changed(last[-2], last[-1]) == 0

    wait(same, 'a picture that stands still')
    return last[-1]


class Projection:
    """From the base frame to pixels of the page, for the camera that every page starts with."""

    def __init__(self, browser: Any, extent: float) -> None:
        canvas = max(
            browser.find_elements('css selector', 'canvas'), key=lambda c: c.rect['width'] * c.rect['height']
        )
        self._rect = canvas.rect
        self._eye = EYE * extent
        forward = (EYE_TARGET - EYE) / np.linalg.norm(EYE_TARGET - EYE)
        right = np.cross(forward, (0.0, 0.0, 1.0))
        right /= np.linalg.norm(right)
        self._axes = np.array([right, np.cross(right, forward), forward])
        self._focal = self._rect['height'] / 2.0 / np.tan(FIELD_OF_VIEW / 2.0)

    def __call__(self, point: np.ndarray) -> np.ndarray:
        x, y, depth = self._axes @ (point - self._eye)
        middle = np.array([self._rect['x'], self._rect['y']]) + 0.5 * np.array(
            [self._rect['width'], self._rect['height']]
        )
        return middle + self._focal / depth * np.array([x, -y])


def drag(browser: Any, start: np.ndarray, end: np.ndarray) -> None:
    """Press the mouse at start, move it to end in steps as a hand does, release it there."""
    mouse = webdriver.ActionChains(browser, duration=60)
    pointer = mouse.w3c_actions.pointer_action
    pointer.move_to_location(*map(int, start))
    pointer.pause(0.3)
    pointer.pointer_down()
    for share in np.linspace(0.1, 1.0, 10):
        pointer.move_to_location(*map(int, start + share * (end - start)))
        pointer.pause(0.03)
    pointer.pause(0.2)
    pointer.pointer_up()
    mouse.perform()


def test_the_arm_is_drawn_and_moves(browser: Any, robot: RobotSide) -> None:
    before = settled(browser)
    robot.move(**{**Q, 'joint1': -0.9})
    wait(lambda: changed(before, picture(browser)) > MANY, 'another picture')
    moved = settled(browser)
    robot.move(**Q)
    wait(lambda: changed(moved, picture(browser)) > MANY, 'the picture to change back')
    assert changed(before, settled(browser)) < 100


def test_dragging_the_gizmo_publishes_a_goal(browser: Any, robot: RobotSide) -> None:
    arm = Arm.from_urdf(SEED_ARM)
    extent = draw(SEED_ARM, arm.robot, arm.tip_link).extent
    project = Projection(browser, extent)
    T = arm.robot.link_pose(arm.tip_link, Q)
    length = GIZMO_SCALE * extent
    tips = [T[:3, 3] + 0.75 * length * T[:3, axis] for axis in range(3)]
    axis = max(range(3), key=lambda i: np.linalg.norm(project(tips[i]) - project(T[:3, 3])))
    way = -0.15 * extent * T[:3, axis]
    robot.goals.clear()
    drag(browser, project(tips[axis]), project(tips[axis] + way))
    wait(lambda: robot.goals, 'a goal')
    wait(lambda: np.linalg.norm(robot.goal()[:3, 3] - T[:3, 3] - way) < 0.02 * extent, 'the whole way')
    assert np.allclose(robot.goal()[:3, :3], T[:3, :3], atol=1e-6)
