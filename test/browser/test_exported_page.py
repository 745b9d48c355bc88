# SPDX-License-Identifier: Apache-2.0
"""A page of ik_export in a real browser, from a file and without network: its WebAssembly, and a drag of the target."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from browser_harness import Browser, browser, webdriver
from cases import arm_of

from ik_node import Goal, IkSolver, Status
from ik_node.startup.arguments import URDF
from ik_node.tools.export import program, wasm

__all__ = ['browser']
DRAWN = 'return document.documentElement.dataset.drawn'
BALL = """const box = element('canvas').getBoundingClientRect(), [u, v] = view.project(position());
return [box.left + u, box.top + v]"""
ANSWERS = """return arguments[0].map(([goal, seed]) => {
  const a = kernels.answer([...goal, NaN, NaN, NaN], seed);
  return [a.status, a.position, a.direction, ...a.q];
})"""
STATUSES = [Status.SOLVED, Status.UNREACHABLE, Status.NOT_FOUND]
SAME = 1e-9  # m and rad


@pytest.fixture(scope='module')
def opened(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Browser:
    try:
        wasm.compiler()
    except wasm.ExportError as error:
        pytest.skip(str(error))
    file: Path = tmp_path_factory.mktemp('page') / 'arm.html'
    assert program.main([str(URDF / 'seed_arm.urdf.xacro'), '--html', str(file)]) == 0
    browser.command('Network.enable')
    browser.command(
        'Network.emulateNetworkConditions', offline=True, latency=0, downloadThroughput=0, uploadThroughput=0
    )
    browser.driver.get(file.as_uri())
    browser.wait(lambda: browser.script(DRAWN), 'the first picture')
    return browser


def status(page: Browser) -> str:
    return str(page.script("return element('status').innerText"))


def drag(page: Browser, *steps: tuple[float, float]) -> None:
    """Drag the ball; steps: pixels from where it is."""
    start = np.array(page.script(BALL))
    actions = webdriver.ActionChains(page.driver, duration=0)
    pointer = actions.w3c_actions.pointer_action
    pointer.move_to_location(*map(int, start))
    pointer.pointer_down()
    for step in steps:
        pointer.move_to_location(*map(int, start + step))
    pointer.pointer_up()
    actions.perform()


def test_answers_are_those_of_python(opened: Browser) -> None:
    arm, rng = arm_of('seed_arm'), np.random.default_rng(2)
    solver, goals = IkSolver(arm), []
    for k, (q, seed) in enumerate(zip(arm.sample(rng, 200), arm.sample(rng, 200), strict=True)):
        position, direction = arm.fk(q)
        goals.append(((1.5 if k % 4 == 0 else 1.0) * position, direction, seed))
    asked = [[[*position, *direction], seed.tolist()] for position, direction, seed in goals]
    same = 0
    for (position, direction, seed), (code, *errors_q) in zip(goals, opened.script(ANSWERS, asked), strict=True):
        want = solver.solve(Goal(position, direction), seed)
        assert STATUSES[int(code)] is want.status, json.dumps([*position, *direction, *seed])
        assert np.abs(np.array(errors_q[:2]) - [want.position_error, want.direction_error]).max() < SAME
        same += not want.solved or np.abs(errors_q[2:] - want.q).max() < SAME
    assert same >= 198  # sines of another library choose the other of two equally near solutions now and then


def test_the_arm_follows_the_ball_and_tells_when_it_cannot(opened: Browser) -> None:
    opened.script("element('reset').click()")
    assert status(opened).startswith('Reached.')
    before = opened.script('return state.q')
    drag(opened, (5, -5), (20, -20))
    assert status(opened).startswith('Reached.')
    assert np.abs(np.subtract(opened.script('return state.q'), before)).max() > 0.01
    opened.script('aim([0, 0, 3 * reach])')
    assert 'Out of reach: the position is' in status(opened)
    assert 'beyond the workspace' in status(opened)


def test_ccd_is_watched_joint_by_joint_and_arrives(opened: Browser) -> None:
    opened.script("element('reset').click()")
    goal = opened.script('return kernels.place(state.goal, state.q.map((value) => value - 0.3)).tool')
    opened.script("element('method').value = 'ccd'; element('method').onchange(); aim(arguments[0])", goal)
    before = opened.script('return state.q')
    opened.script("element('joint-step').click()")
    moved = np.subtract(opened.script('return state.q'), before) != 0.0
    assert moved.tolist()[:4] == [False] * 4  # the last joint alone
    errors = [opened.script("element('step').click(); return placed.position") for _ in range(60)]
    assert errors[-1] < 0.2 * errors[0]
    opened.script("element('method').value = ''; element('method').onchange()")


def test_all_solutions_are_offered(opened: Browser) -> None:
    opened.script("element('reset').click(); element('all').click()")
    count = opened.script("return element('solutions').children.length")
    assert count > 1
    assert 'there are no others' in opened.script("return element('count').innerText")
    opened.script("element('solutions').lastChild.click()")
    assert status(opened).startswith('Reached.')
    opened.script("element('free').click()")
    assert 'some of endlessly many' in opened.script("return element('count').innerText")
    opened.script('aim([0, 0, 3 * reach])')
    assert opened.script("return element('count').innerText") == 'No solutions within the limits.'
    opened.script("element('reset').click(); element('all').click()")
