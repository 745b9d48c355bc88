"""ik_node and its viewer in a real browser: headless chromium, a real mouse, the arm gets there."""

from __future__ import annotations

import io
import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from node_harness import new_domain
from PIL import Image
from viewer_harness import ROOT, SEED_ARM, SEED_JOINTS, Process, RobotSide, viewer

from ik_node.model.arm import Arm
from ik_node.viewer.scene.scene import EYE, EYE_TARGET, FIELD_OF_VIEW
from ik_node.viewer.scene.tool_scene import GIZMO_SCALE
from ik_node.viewer.scene.visuals import draw

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
PANEL, NOTICE = 340, 160  # pixels that the panel takes on the right, and viser's notices at the top
SQUARE = 8  # pixels
MANY = 100  # squares, of some 3,500: an arm that moves changes more, nothing else does
TIMEOUT = 240.0  # seconds for things that take one or two on an idle machine; swiftshader draws slowly
Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))  # in the picture left of the panel


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
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    browser.set_page_load_timeout(TIMEOUT)
    yield browser
    browser.quit()


@pytest.fixture(scope='module')
def robot(browser: Any) -> Iterator[RobotSide]:
    """ik_node with the seed arm, the viewer, and its page in the browser."""
    urdf_file = f'urdf_file:={ROOT}/urdf/seed_arm.urdf.xacro'
    domain = new_domain()
    solver = Process('ik_node', domain, '--ros-args', '-p', urdf_file)
    try:
        with viewer(domain) as (process, robot):
            browser.get(process.url())
            wait(lambda: robot.joints and 'joint5' in browser.page_source, 'the page')
            yield robot
    finally:
        code = solver.end()
    assert code == 0, solver.said


@pytest.fixture
def arm(robot: RobotSide, browser: Any) -> Arm:
    """The arm stands at Q and the picture stands still."""
    robot.go(**Q)
    robot.goals.clear()
    settled(browser)
    return Arm.from_urdf(SEED_ARM)


def picture(browser: Any) -> np.ndarray:
    """What the page shows, (rows, columns, 3), without the panel and the notices over the scene.

    In mean colours of squares of pixels: where drawing is slow, viser draws coarser for a while.
    """
    image = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert('RGB')
    scene = image.crop((0, NOTICE, image.width - PANEL, image.height))
    return np.asarray(scene.reduce(SQUARE), dtype=np.int16)


def changed(before: np.ndarray, after: np.ndarray) -> int:
    """How many squares differ clearly."""
    return int((np.abs(before - after).max(axis=2) > 30).sum())


def settled(browser: Any) -> np.ndarray:
    """Wait until two pictures in a row are equal; return the last."""
    last = [picture(browser)]

    def same() -> bool:
        time.sleep(0.5)
        last.append(picture(browser))
        return np.abs(last[-2] - last[-1]).max() < 3

    wait(same, 'a picture that stands still')
    return last[-1]


class Projection:
    """From the base frame to pixels of the page, for the camera that every page starts with."""

    def __init__(self, browser: Any, extent: float) -> None:
        rect = browser.find_element('css selector', 'canvas').rect
        self._middle = np.array([rect['x'] + rect['width'] / 2, rect['y'] + rect['height'] / 2])
        self._focal = rect['height'] / 2 / np.tan(FIELD_OF_VIEW / 2)
        self._eye = EYE * extent
        forward = (EYE_TARGET - EYE) / np.linalg.norm(EYE_TARGET - EYE)
        right = np.cross(forward, (0.0, 0.0, 1.0))
        right /= np.linalg.norm(right)
        self._axes = np.array([right, -np.cross(right, forward), forward])  # x right, y down, z away

    def __call__(self, point: np.ndarray) -> np.ndarray:
        x, y, depth = self._axes @ (point - self._eye)
        return self._middle + self._focal / depth * np.array([x, y])


def drag(browser: Any, start: np.ndarray, end: np.ndarray) -> None:
    """Press the mouse at start, move it to end in steps as a hand does, release it and go away."""
    actions = webdriver.ActionChains(browser, duration=50)
    mouse = actions.w3c_actions.pointer_action
    mouse.move_to_location(*map(int, start))
    mouse.pause(0.5)
    mouse.pointer_down()
    for share in np.linspace(0.1, 1.0, 10):
        mouse.move_to_location(*map(int, start + share * (end - start)))
        mouse.pause(0.05)
    mouse.pause(0.5)
    mouse.pointer_up()
    mouse.move_to_location(10, 400)  # what the mouse is over is drawn in another colour
    actions.perform()


def test_the_arm_is_drawn_and_moves(browser: Any, robot: RobotSide, arm: Arm) -> None:  # noqa: ARG001
    before = settled(browser)
    robot.go(**{**Q, 'joint1': -0.9})
    wait(lambda: changed(before, picture(browser)) > MANY, 'another picture')
    robot.go(**Q)
    wait(lambda: changed(before, picture(browser)) < MANY / 5, 'the first picture again')


def drag_gizmo(browser: Any, arm: Arm, T: np.ndarray) -> np.ndarray:
    """Drag the gizmo at T (4, 4) along the axis that is seen longest; return the way (3,)."""
    extent = draw(SEED_ARM, arm.robot, arm.tip_link).extent
    project = Projection(browser, extent)
    heads = [T[:3, 3] + 0.75 * GIZMO_SCALE * extent * T[:3, axis] for axis in range(3)]
    axis = int(np.argmax([np.linalg.norm(project(head) - project(T[:3, 3])) for head in heads]))
    way = -0.15 * extent * T[:3, axis]
    drag(browser, project(heads[axis]), project(heads[axis] + way))
    return way


def test_dragging_the_gizmo_moves_the_arm(browser: Any, robot: RobotSide, arm: Arm) -> None:
    T = arm.robot.link_pose(arm.tip_link, robot.joints)
    way = drag_gizmo(browser, arm, T)
    wait(lambda: robot.goals, 'a goal')
    wait(lambda: np.linalg.norm(robot.goal()[:3, 3] - T[:3, 3] - way) < 0.02 * arm.reach, 'the whole way')
    goal = robot.goal()
    assert np.allclose(goal[:3, :3], T[:3, :3], atol=1e-6)

    def reached() -> bool:
        position, direction = arm.fk([robot.joints[name] for name in arm.joint_names])
        return np.linalg.norm(position - goal[:3, 3]) < 1e-4 and direction @ goal[:3, 2] > 1.0 - 1e-6

    wait(reached, 'the arm at the goal')
    wait(lambda: 'Solved' in browser.page_source, 'the status in words')
    there = settled(browser)
    browser.refresh()
    wait(lambda: 'Solved' in browser.page_source, 'the page after a reload')
    wait(lambda: changed(there, picture(browser)) < MANY / 5, 'the same picture after a reload')


def test_a_slider_moves_the_arm(browser: Any, robot: RobotSide, arm: Arm) -> None:  # noqa: ARG001
    thumb = browser.find_elements('css selector', '[role=slider]')[2]
    before = robot.joints['joint3']
    for _ in range(5):
        thumb.send_keys(webdriver.Keys.ARROW_RIGHT)
    wanted = before + np.radians(0.5)  # five steps
    wait(lambda: abs(robot.joints['joint3'] - wanted) < np.radians(0.06), 'joint3 at the value of its slider')
    assert abs(robot.joints['joint1'] - Q['joint1']) < 1e-3


def test_slow_motion_is_drawn_and_the_arm_stays(browser: Any, robot: RobotSide, arm: Arm) -> None:
    def click(label: str) -> None:
        browser.find_element('xpath', f"//*[normalize-space(text())='{label}']").click()

    click('Methods')
    watch = wait(lambda: browser.find_elements('css selector', 'input[type=checkbox]')[-1:], 'the folder')[0]
    browser.execute_script('arguments[0].click()', watch)  # it may be below the end of the panel
    before, joints = settled(browser), dict(robot.joints)
    drag_gizmo(browser, arm, arm.robot.link_pose(arm.tip_link, joints))
    wait(lambda: 'step' in browser.page_source and 'Position error' in browser.page_source, 'the errors')
    wait(lambda: changed(before, picture(browser)) > MANY, 'the ghost')
    assert robot.joints == pytest.approx(joints)
    assert not robot.goals
    browser.execute_script('arguments[0].click()', watch)
    wait(lambda: changed(before, picture(browser)) < MANY / 5, 'the picture as before')
    click('Methods')


@pytest.mark.parametrize('host', ['127.0.0.1', '0.0.0.0'])
def test_the_page_works_through_the_url_with_its_token(browser: Any, host: str) -> None:
    with viewer(new_domain(), f'host:={host}') as (process, robot):
        browser.get(f'http://127.0.0.1:{process.port()}/')
        assert 'the token is missing or wrong' in browser.page_source
        browser.get(process.url())
        robot.describe(SEED_ARM)
        wait(lambda: 'joint5' in browser.page_source, 'the page')
        browser.refresh()  # by then the page has changed its URL
        robot.move(**Q)
        wait(lambda: 'joint5' in browser.page_source, 'the page again')
        settled(browser)
        arm = Arm.from_urdf(SEED_ARM)
        T = arm.robot.link_pose(arm.tip_link, Q)
        way = drag_gizmo(browser, arm, T)
        wait(lambda: robot.goals, 'a goal')
        wait(lambda: np.linalg.norm(robot.goal()[:3, 3] - T[:3, 3] - way) < 0.02 * arm.reach, 'the whole way')
