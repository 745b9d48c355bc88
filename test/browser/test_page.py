# SPDX-License-Identifier: Apache-2.0
"""ik_node and its viewer in a real browser: headless chromium, a real mouse, the arm gets there."""

from __future__ import annotations

import io
import math
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from browser_harness import PHONE, Browser, browser
from domains import new_domain
from PIL import Image
from processes import PATIENT, Running, with_parameters
from viewer_harness import SEED_ARM, SEED_FILE, SEED_JOINTS, RobotSide
from waiting import wait_for

from ik_node.control.preview import Previews
from ik_node.control.settings import ArmSettings, RobotSettings
from ik_node.model.arm import Arm, tool_at
from ik_node.solver.goal import Goal
from ik_node.viewer.scene import GIZMO_SCALE, extent_of
from ik_node.viewer.solutions import Lister, Query

__all__ = ['browser']
Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))  # in the picture left of the panel
ARM = Arm.from_urdf(SEED_ARM)
EXTENT = extent_of(ARM.robot, ARM.tip_link)
NOTICES = 160  # pixels at the top that viser's notices may cover
WIDE = """
return [innerWidth, document.documentElement.scrollWidth,
  ...[...document.querySelectorAll('*')].filter((one) => /auto|scroll/.test(getComputedStyle(one).overflowX)
    && one.scrollWidth > one.clientWidth + 1).map((one) => one.outerHTML)]"""
STOP_BUTTON = """
const button = arguments[0], r = button.getBoundingClientRect(), frame = document.querySelector('iframe');
const corners = [[r.left + 5, r.top + 5], [r.right - 5, r.bottom - 5]];
return [Math.min(r.left, r.top, innerWidth - r.right, innerHeight - r.bottom), r.height,
  r.top - frame.getBoundingClientRect().bottom,
  corners.every(([x, y]) => document.elementFromPoint(x, y) === button)]"""

# Pairs of what a hand holds down that cover each other.
COVERED = """
const held = [...document.querySelectorAll(".stick, button")].map((one) => [one.id || one.innerText,
  one.getBoundingClientRect()]);
return held.flatMap(([name, a], k) => held.slice(k + 1).filter(([, b]) =>
  a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom).map(([other]) => [name, other]))"""

# What is seen in the panel: its texts [name, size in pixels, contrast by WCAG], and its controls [name, x, y, width,
# height]. Texts of what is disabled need no contrast.
LOOK = """
const pixel = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext(
  '2d', {willReadFrequently: true});
const rgba = (colour) => {
  pixel.clearRect(0, 0, 1, 1); pixel.fillStyle = colour; pixel.fillRect(0, 0, 1, 1);
  return [...pixel.getImageData(0, 0, 1, 1).data].map((value) => value / 255);
};
const over = (top, below, alpha) => below.map((value, k) => alpha * top[k] + (1 - alpha) * value);
const luminance = (colour) => [0.2126, 0.7152, 0.0722].reduce((sum, share, k) =>
  sum + share * (colour[k] <= 0.04045 ? colour[k] / 12.92 : ((colour[k] + 0.055) / 1.055) ** 2.4), 0);
const lines = (one) => one ? [...lines(one.parentElement), one] : [];
const colours = (one) => lines(one).reduce(([text, ground], each) => {
  const style = getComputedStyle(each), back = rgba(style.backgroundColor), shown = Number(style.opacity);
  const next = over(back, ground, back[3] * shown), own = rgba(style.color);
  return [over(own, next, own[3] * lines(each).reduce((all, up) => all * getComputedStyle(up).opacity, 1)), next];
}, [[0, 0, 0], [1, 1, 1]]);
const contrast = (one) => {
  const [text, ground] = colours(one).map(luminance);
  return (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
};
const seen = (one) => one.getClientRects().length && one.checkVisibility(
  {opacityProperty: true, visibilityProperty: true})
  && !one.closest('.mantine-Notification-root, [role=tooltip]'); // viser's own
const found = (path, root) => {
  const all = document.evaluate(path, root, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE);
  return [...Array(all.snapshotLength).keys()].map((k) => all.snapshotItem(k));
};
const name = (one) => (one.innerText || one.value || one.id || one.className || one.tagName).slice(0, 40);
const texts = found('.//text()[normalize-space()]', document.body).map((text) => text.parentElement)
  .concat(found('.//input[@value and not(@type="checkbox")]', document.body))
  .filter((one) => seen(one) && !one.closest('script, style, :disabled, [data-disabled]'));
const controls = [...document.querySelectorAll(arguments[0])].filter(seen);
return [
  [...new Set(texts)].map((one) => [name(one), parseFloat(getComputedStyle(one).fontSize), contrast(one)]),
  controls.map((one) => { const r = one.getBoundingClientRect(); return [name(one), r.x, r.y, r.width, r.height]; }),
]"""
# Sliders as a whole; a folder by its title, a sheet within another.
TOUCHED = """button:not([tabindex="-1"]), input:not([type=hidden]), .mantine-Slider-root,
.mantine-Paper-root .mantine-Paper-root > .mantine-Paper-root"""
FIXED = 'button, input, .mantine-Slider-root, .mantine-Paper-root'
CONTRAST, LETTERS, TARGET = 4.5, 13, 40  # at least; [pixels]

TYPE = """
const [fields, texts, go, done] = arguments;
const put = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
(async () => {
  for (const [k, field] of fields.entries()) {
    field.focus(); put.call(field, texts[k]); field.dispatchEvent(new Event('input', {bubbles: true}));
    await new Promise((drawn) => setTimeout(drawn));
  }
  go.click(); done();
})();"""


class Seen(NamedTuple):
    """The processes, the robot's side and the browser, which shows the arm."""

    node: Running
    viewer: Running
    robot: RobotSide
    browser: Browser


@contextmanager
def started(name: str, domain: int, *parameters: str) -> Iterator[Running]:
    """A program that ends well."""
    running = Running(name, *with_parameters(*parameters), domain=domain)
    try:
        yield running
        running.process.send_signal(signal.SIGINT)
        assert running.wait_ended() == 0, running.said
        assert 'Traceback' not in running.said
    finally:
        running.end()


@pytest.fixture(scope='module')
def running(browser: Browser) -> Iterator[Seen]:
    domain, alone = new_domain(), 'self_collision:=false'
    with (
        started('ik_node', domain, SEED_FILE, alone, PATIENT) as node,
        started('ik_viewer', domain, 'page_port:=0', 'shadows:=false', alone) as viewer,
        closing(RobotSide(domain)) as robot,
    ):
        viewer.wait_said('in a browser')
        browser.open(viewer.said.partition('open ')[2].split()[0])
        robot.wait_connected()
        yield Seen(node, viewer, robot, browser)


@pytest.fixture
def seen(running: Seen) -> Seen:
    """The arm stands at Q and is drawn there."""
    stand(running)
    return running


def stand(running: Seen) -> None:
    running.robot.go(**Q)
    shown = [f"//input[@value='{np.degrees(value):.1f}']" for value in Q.values()]
    page = running.browser
    page.wait(lambda: all(map(page.displayed, shown)), 'the joints in the page')
    page.frames()
    running.robot.goals.clear()
    running.robot.joint_goals.clear()


def until(condition: Callable[[], Any], act: Callable[[], object]) -> None:
    """Act as a user does until a condition holds: the viewer ignores what a busy browser sends too late."""
    for _ in range(5):
        act()
        with suppress(AssertionError):
            wait_for(condition, 'what the user wants', 5.0)
            return
    raise AssertionError('the viewer ignores the user')


def blank(picture: Any) -> bool:
    """Whether a picture has, left of the panel and below notices, hardly more than its background."""
    with Image.open(picture) as image:
        colours = np.asarray(image.convert('RGB'), dtype=float)[NOTICES:, : image.width // 2]
    return bool(np.ptp(colours) < 100.0)


def stop(page: Browser) -> None:
    with page.outside() as button:
        button.click()
    page.wait(lambda: 'press Resume' in page.words(), 'the stop')


def resume(page: Browser) -> None:
    page.click('Resume')
    page.wait(lambda: 'press Resume' not in page.words(), 'the end of the stop')


def test_the_page_is_loaded_by_its_url_and_draws_the_arm(seen: Seen) -> None:
    page = seen.browser
    page.open(page.driver.current_url)  # by now the page has changed its URL
    page.frames()
    assert not blank(io.BytesIO(page.driver.find_element('tag name', 'canvas').screenshot_as_png))


def test_dragging_the_gizmo_moves_the_arm(seen: Seen) -> None:
    robot, page = seen.robot, seen.browser
    T = ARM.robot.link_pose(ARM.tip_link, robot.joints)
    project = page.projection(EXTENT)
    heads = [0.75 * GIZMO_SCALE * EXTENT * axis for axis in T[:3, :3].T]  # of its arrows, from the tip
    seen_at = [project(T[:3, 3] + head) for head in heads]
    longest = [np.linalg.norm(at - project(T[:3, 3])) * (at[1] > NOTICES) for at in seen_at]
    axis = int(np.argmax(longest))
    wanted = T[:3, 3] - 0.15 * EXTENT * T[:3, axis]

    def drag_on() -> None:
        at = (robot.goal() if robot.goals else T)[:3, 3]
        page.press(*(project(at + share * (wanted - at) + heads[axis]) for share in np.linspace(0.0, 1.0, 6)))

    def there() -> bool:
        return bool(robot.goals) and np.linalg.norm(robot.goal()[:3, 3] - wanted) < 0.02 * ARM.reach

    until(there, drag_on)
    goal = robot.goal()
    assert np.allclose(goal[:3, :3], T[:3, :3], atol=1e-6)

    def reached() -> bool:
        position, direction = ARM.fk([robot.joints[name] for name in ARM.joint_names])
        return np.linalg.norm(position - goal[:3, 3]) < 1e-4 and direction @ goal[:3, 2] > 1.0 - 1e-6

    robot.wait(reached, 'the arm at the goal')
    page.wait(lambda: 'Arrived' in page.words(), 'the status in words')


def test_the_goal_that_is_shown_is_sent_however_fast_it_is_typed(seen: Seen) -> None:
    """All keys and the click come at once, as when the browser is slow: viser would send a part of the numbers."""
    robot, page = seen.robot, seen.browser
    fields = page.displayed("//input[contains(@class, 'mantine-NumberInput-input')]")[:6]
    wanted = ('312.5', '-20', '240', '0', '0.5', '-1')
    page.wait(lambda: all(field.is_enabled() for field in fields), 'the fields')
    page.driver.execute_async_script(TYPE, fields, wanted, page.displayed("//button[normalize-space()='Go there']")[0])
    robot.wait(lambda: robot.goals, 'the goal')
    assert [field.get_property('value') for field in fields] == list(wanted)
    position, direction = tool_at(ARM, robot.goal())
    assert np.allclose(position, (0.3125, -0.02, 0.24), atol=1e-9)
    assert np.allclose(direction, np.array((0.0, 0.5, -1.0)) / math.hypot(0.5, 1.0), atol=1e-9)
    robot.goals.clear()
    page.driver.execute_async_script(
        TYPE, fields[:1], [''], page.displayed("//button[normalize-space()='Go there']")[0]
    )
    page.wait(lambda: 'three numbers each' in page.words(), 'that a number is missing')
    assert not robot.goals


@pytest.mark.parametrize('how', ['mouse', 'key'])
def test_the_stop_button_stops(seen: Seen, how: str) -> None:
    page = seen.browser
    if how == 'mouse':
        stop(page)
    else:
        page.driver.find_element('tag name', 'body').send_keys('\ue00c')  # Escape, in the frame of viser
        page.wait(lambda: 'press Resume' in page.words(), 'the stop')
    with page.outside() as button:
        assert button.text == 'Stop'
    resume(page)


def unreadable(page: Browser) -> list[Any]:
    """The texts of the panel that are too small or too pale."""
    page.enter()
    texts, _ = page.script(LOOK, FIXED)
    assert len(texts) > 40
    return [text for text in texts if text[1] < LETTERS or text[2] < CONTRAST]


def test_nothing_moves_under_the_pointer_when_the_state_changes(seen: Seen) -> None:
    page = seen.browser

    def boxes() -> list[Any]:
        page.frames()
        return [box for _, *box in page.script(LOOK, FIXED)[1]]

    before = boxes()
    assert len(before) > 20
    stop(page)
    assert boxes() == before
    assert not unreadable(page)
    why = 'joint "joint2" is 0.0609 rad off and not 0.0123; ' * 8
    seen.robot.report(why, status='faulted', state='faulted', arm='faulted')
    page.wait(lambda: 'Faulted' in page.words(), 'the fault')
    assert boxes() == before
    assert not unreadable(page)
    resume(page)
    page.wait(lambda: 'Faulted' not in page.words(), 'the end of the fault')


# The clock of pages stands while some devices sleep.
SLEEP = """
const done = arguments[0], now = performance.now.bind(performance);
const ask = () => { reason.textContent = 'asked'; send(Object.fromEntries(AXES.map((axis) => [axis, 0]))); };
const answered = () => new Promise((resolve) => {
  const look = () => reason.textContent === 'asked' ? setTimeout(look, 20) : resolve(reason.textContent); look(); });
ask();
answered().then(async (awake) => {
  performance.now = () => now() - 60000;
  ask();
  done([awake, await answered()]);
});"""


def test_the_sticks_work_again_after_the_device_has_slept(seen: Seen) -> None:
    page = seen.browser
    with page.outside():
        awake, slept = page.driver.execute_async_script(SLEEP)
    assert 'slow' not in awake
    assert 'slow' not in slept


def test_a_picture_of_the_scene_is_saved(seen: Seen, tmp_path: Path) -> None:
    page = seen.browser
    page.command('Browser.setDownloadBehavior', behavior='allow', downloadPath=str(tmp_path))
    page.click('More')
    page.click('Recording')
    page.click('Save picture')
    (path,) = page.wait(lambda: list(tmp_path.glob('*.png')), 'the picture')
    assert not blank(path)
    page.click('Recording')
    page.click('More')


def test_a_click_on_a_ghost_asks_for_its_joints(seen: Seen) -> None:
    robot, page = seen.robot, seen.browser
    stop(page)  # ghosts that change as the arm moves take long to draw without a graphics processor
    preview = Previews().of(SEED_ARM, RobotSettings(ArmSettings(), {}), '')
    choices = Lister(preview).listing(Query(Goal(*ARM.fk(list(Q.values()))), Q)).allowed
    page.click('More')
    page.tick('Show solutions')
    rows = "//button[contains(., '·')]"
    page.wait(lambda: len(page.displayed(rows)) == len(choices), 'a row per solution')
    assert not unreadable(page)
    project = page.projection(EXTENT)
    elbows = [project(ARM.skeleton(choice.q)[2])[0] for choice in choices[1:]]
    target = choices[1 + int(np.argmax(elbows))].q  # the rightmost, behind no other
    page.frames(5)
    until(lambda: robot.joint_goals, lambda: page.press(project(ARM.skeleton(target)[1:3].mean(axis=0))))
    goal = dict(zip(robot.joint_goals[0].name, robot.joint_goals[0].position, strict=True))
    assert [goal[name] for name in ARM.joint_names] == pytest.approx(target, abs=2e-3)
    page.tick('Show solutions')
    page.click('More')
    resume(page)


def test_the_page_fits_on_a_phone_and_the_stop_button_is_in_sight(seen: Seen) -> None:
    page = seen.browser
    width = int(PHONE['width'])

    def fits() -> None:
        page.enter()
        assert page.script(WIDE) == [width, width]
        with page.outside() as button:
            assert page.script(WIDE) == [width, width]
            gap, height, below, free = page.script(STOP_BUTTON, button)
        assert gap >= 0
        assert height >= 44  # pixels for a finger
        assert below >= 0, 'it covers something'
        assert free, 'something covers it'

    page.command('Emulation.setDeviceMetricsOverride', **PHONE)
    try:
        page.open(page.driver.current_url)
        fits()
        for folder, text in (
            ('Teach', 'Add point'),
            ('More', 'Target track'),
            ('Plots', 'Show plots'),
            ('Recording', 'Record'),
        ):
            page.click(folder)
            page.wait(lambda t=text: page.displayed(f"//*[normalize-space()='{t}']"), text)
            fits()
        assert not unreadable(page)
        small = [one for one in page.script(LOOK, TOUCHED)[1] if min(one[3:]) < TARGET]
        assert not small
        with page.outside():
            texts, _ = page.script(LOOK, FIXED)
            assert min(text[2] for text in texts) >= CONTRAST
            page.script("document.querySelector('#sticks').click()")
            for wide in (320, width, 700, 900):
                page.command('Emulation.setDeviceMetricsOverride', **{**PHONE, 'width': wide})
                assert page.script('return [innerWidth, document.body.className]') == [wide, 'driving']
                assert not page.script(COVERED)
    finally:
        page.command('Emulation.clearDeviceMetricsOverride')
        page.open(page.driver.current_url)


def test_nothing_of_viser_is_seen_before_the_arm(seen: Seen) -> None:
    page = seen.browser
    look = """setInterval(() => {
      const shown = document.querySelector('iframe')?.contentDocument?.body?.innerText;
      const loading = document.querySelector('#loading');
      if (window === top && shown?.includes('Inactive') && !loading) window.strange = true;
      if (loading) window.loaded = loading.innerText;
    }, 5)"""
    added = page.command('Page.addScriptToEvaluateOnNewDocument', source=look)
    try:
        page.open(page.driver.current_url)
        with page.outside():
            said = page.wait(
                lambda: page.script('return [window.loaded, window.strange, !document.querySelector("#loading")]')[2],
                'the page',
            )
            assert page.script('return [window.loaded, window.strange]') == ['Loading the arm …', None], said
    finally:
        page.command('Page.removeScriptToEvaluateOnNewDocument', identifier=added['identifier'])


def test_a_stop_without_a_connection_is_told_and_sent_when_there_is_one(seen: Seen) -> None:
    node, viewer, _, page = seen
    with page.outside() as button:
        viewer.process.send_signal(signal.SIGSTOP)
        try:
            button.click()
            page.wait(lambda: button.text == 'Not stopped: no connection', 'the warning')
            notice = page.driver.find_element('id', 'notice')
            assert 'No connection. If you ended the program, start it again.' in notice.text
        finally:
            viewer.process.send_signal(signal.SIGCONT)
        page.wait(lambda: button.text == 'Stop', 'the stop')
        assert not notice.text
    page.wait(lambda: 'press Resume' in page.words(), 'the arm that was stopped')
    resume(page)
    node.process.send_signal(signal.SIGINT)
    assert node.wait_ended() == 0, node.said
    with page.outside() as button:
        button.click()
        page.wait(lambda: button.text == 'Not stopped: ik_node is not running', 'the reason')
