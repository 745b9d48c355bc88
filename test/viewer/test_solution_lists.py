# SPDX-License-Identifier: Apache-2.0
"""Lists of solutions: those of solve_all, what forbids others, the nearest, and curves of self-motion."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from control_harness import RULES, Rig, node_rules
from small_arm import WITH_SPARE

from ik_node.control.checks import CLEARANCE
from ik_node.control.preview import Previews
from ik_node.control.settings import ArmSettings, RobotSettings
from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.model.urdf.reader import load_description, read_urdf
from ik_node.solver.goal import Goal, Solutions
from ik_node.teach.check import check
from ik_node.teach.program import Point, Program
from ik_node.viewer.solutions import STEP, Choice, Lister, Query, opened, spare_joint, trace_self_motion

pytestmark = pytest.mark.slow

URDF = Path(__file__).resolve().parents[2] / 'urdf'
ARMS = ('seed_arm', 'so101_like', 'xarm5_like', 'moveo_like')  # 5, 4, 4 and 5 effective DoF


def lister_of(text: str, **settings: Any) -> Lister:
    return Lister(Previews().of(text, RobotSettings(ArmSettings(**settings), {}), ''))


def loaded(name: str) -> tuple[Arm, str]:
    text = load_description(URDF / f'{name}.urdf.xacro')
    return Arm(read_urdf(text)), text


def query(arm: Arm, goal: Goal, q: Any, **more: Any) -> Query:
    return Query(goal, dict(zip(arm.joint_names, np.asarray(q).tolist(), strict=True)), **more)


def rank(choice: Choice, solutions: Solutions) -> int:
    """Return which of the solutions a choice is, bit for bit."""
    return [np.array_equal(choice.q, one.q) for one in solutions].index(True)


def test_limits_of_the_node_count(tmp_path):
    arm, text = loaded('seed_arm')
    file = tmp_path / 'limits.yaml'
    first = arm.joint_names[0]
    file.write_text(f'joint_limits: {{{first}: {{has_position_limits: true, min_position: -1, max_position: 1}}}}')
    goal = Goal(*arm.fk(np.array([1.5, 0.5, 0.9, 0.6, 0.4])))
    (wide, tight, margin) = (
        lister_of(text, **rules).listing(query(arm, goal, arm.middle))
        for rules in ({}, {'joint_limits_file': str(file)}, {'joint_limit_margins': (0.3,)})
    )
    assert any(abs(choice.q[0]) > 1.0 for choice in wide.allowed)
    assert all(abs(choice.q[0]) <= 1.0 for choice in tight.allowed)
    assert any(first in choice.forbidden for choice in tight.forbidden)
    room = np.minimum(arm.upper, np.inf) - 0.3
    assert all((choice.q <= room + 1e-9).all() for choice in margin.allowed)
    with pytest.raises(InputError, match=r'limits\.yaml'):
        lister_of(text, joint_limits_file=str(tmp_path / 'no' / 'limits.yaml'))


@pytest.mark.parametrize('name', RULES)
def test_the_list_and_a_check_of_teach_give_the_verdict_of_the_controller(name: str, tmp_path: Path):
    """On every configuration of some goals, from rest, with the same reason."""
    text, given, word = node_rules(name, tmp_path)
    settings = ArmSettings(**given)
    preview = Previews().of(text, RobotSettings(settings, {}), '')
    model, lister, rng = preview.model, Lister(preview), np.random.default_rng(5)
    home = model.joints.named(Rig(model, settings).controller.snapshot().values)
    verdicts, said = set(), ''
    wide = preview.arm if name == 'collision' else opened(preview.arm)
    rows = rng.uniform(wide.lower, wide.upper, (200, wide.n))
    free = [not preview.rejection(q, home) for q in rows]
    for q in (*rows[free][:2], *rows[np.logical_not(free)][:3]):
        listing = lister.listing(Query(Goal(*preview.arm.fk(q)), home, at_rest=True))
        for choice in (*listing.allowed[:3], *listing.forbidden[:3]):
            joints = dict(zip(preview.arm.joint_names, choice.q.round(6).tolist(), strict=True))
            rig = Rig(model, settings)
            rig.tick(2)
            report = rig.go(**joints)
            checked = check(preview, Program((Point('p', joints=joints),)), home)
            verdict = report.phase != 'rejected'
            assert (not choice.forbidden, checked.passed) == (verdict, verdict), report.message
            if not verdict:
                reason = report.message.removeprefix('test rejected: ')
                assert [finding.sentence for finding in checked.findings] == [reason]
                assert choice.forbidden == reason or 'beyond its limit' in choice.forbidden
                said += reason
            verdicts.add(verdict)
    assert verdicts == {True, False}
    assert word in said or name == 'cone'  # the solver finds nothing outside a cone


@pytest.mark.parametrize('name', ARMS[:3])
def test_lists_are_those_of_solve_all(name: str):
    arm, text = loaded(name)
    lister, rng = lister_of(text), np.random.default_rng(3)
    goals = collided = 0
    for here, there in zip(arm.sample(rng, 40), arm.sample(rng, 40), strict=True):
        goal = Goal(*arm.fk(there))
        listing = lister.listing(query(arm, goal, here))
        solutions = lister.solver.solve_all(goal, here)
        if not solutions.complete:  # searched until a time ends: the lists may differ
            continue
        barred = [choice for choice in listing.forbidden if ' would ' in choice.forbidden]
        ranks = [rank(choice, solutions) for choice in listing.allowed]
        assert sorted(ranks + [rank(choice, solutions) for choice in barred]) == list(range(len(solutions)))
        assert ranks == sorted(ranks), 'nearest first'
        goals += 1
        collided += len(barred)
        assert all(choice.clearance is None or choice.clearance >= CLEARANCE for choice in listing.allowed)
    assert goals >= 38
    assert collided


@pytest.mark.parametrize('degrees', [135.0, -135.0])
def test_a_configuration_beyond_a_limit_is_forbidden_by_that_joint(degrees: float):
    arm, text = loaded('seed_arm')
    lister = lister_of(text, self_collision='false')
    q = np.array([0.3, 0.5, 0.9, math.radians(degrees), 0.4])  # joint4 has limits of 130 degrees
    listing = lister.listing(query(arm, Goal(*arm.fk(q)), np.zeros(5)))
    said = [choice.forbidden for choice in listing.forbidden if np.allclose(choice.q, q, atol=1e-6)]
    assert said == ['joint4 5° beyond its limit']
    for choice in listing.forbidden:
        outside = ((choice.q < arm.lower - 1e-9) | (choice.q > arm.upper + 1e-9)).nonzero()[0]
        assert [name for name in arm.joint_names if name in choice.forbidden] == [arm.joint_names[i] for i in outside]
        assert np.allclose(arm.fk(choice.q)[0], arm.fk(q)[0], atol=1e-5)


def test_distances_are_those_of_the_configuration():
    arm, text = loaded('seed_arm')
    q = np.array([0.3, 0.5, 0.9, math.radians(125.0), 0.4])
    listing = lister_of(text).listing(query(arm, Goal(*arm.fk(q)), q))
    choice = next(one for one in (*listing.allowed, *listing.forbidden) if np.allclose(one.q, q, atol=1e-6))
    assert choice.joint == 3
    assert choice.to_limit == pytest.approx(math.radians(5.0), abs=1e-6)
    assert choice.clearance is not None


@pytest.fixture(scope='module')
def narrow() -> tuple[Arm, str, np.ndarray]:
    """An arm and a configuration in which two of its links are less than CLEARANCE apart."""
    arm, text = loaded('seed_arm')
    lister = lister_of(text)

    def gap(q: np.ndarray) -> float:
        choices = lister.listing(query(arm, Goal(*arm.fk(q)), q))
        return next(
            one.clearance
            for one in (*choices.allowed, *choices.forbidden)
            if np.allclose(one.q, q, atol=1e-4) and one.clearance is not None
        )

    free = np.array([0.3, 0.5, 0.9, 0.6, 0.4])
    hit = next(q for q in arm.sample(np.random.default_rng(1), 500) if gap(q) < 0.0)
    for _ in range(60):
        middle = 0.5 * (free + hit)
        if 0.2 * CLEARANCE < gap(middle) < 0.8 * CLEARANCE:
            return arm, text, middle
        free, hit = (middle, hit) if gap(middle) > 0.5 * CLEARANCE else (free, middle)
    raise AssertionError('no configuration between')


def judged(lister: Lister, arm: Arm, q: np.ndarray, **more: Any) -> Choice:
    listing = lister.listing(query(arm, Goal(*arm.fk(q)), q, **more))
    return next(one for one in (*listing.allowed, *listing.forbidden) if np.allclose(one.q, q, atol=1e-4))


def test_links_must_keep_the_clearance_of_ik_node(narrow: tuple[Arm, str, np.ndarray], tmp_path: Path):
    arm, text, q = narrow
    choice = judged(lister_of(text), arm, q)
    assert ' would come as near as 0.' in choice.forbidden
    _, one, _, other, _ = choice.forbidden.split('"')
    srdf = tmp_path / 'arm.srdf'
    srdf.write_text(f'<robot name="a"><disable_collisions link1="{one}" link2="{other}"/></robot>')
    assert judged(lister_of(text, srdf_file=str(srdf)), arm, q).forbidden == ''


def test_a_tool_point_outside_the_workspace_is_forbidden():
    arm, text = loaded('seed_arm')
    q = np.array([0.3, 0.5, 0.9, 0.6, 0.4])
    x, y, z = arm.fk(q)[0]
    box = (x - 0.1, y - 0.1, z - 0.1, x + 0.1, y + 0.1, z + 0.1)
    assert judged(lister_of(text, workspace=box), arm, q).forbidden == ''
    low = (*box[:5], z - 0.05)
    assert 'the workspace: z' in judged(lister_of(text, workspace=low), arm, q).forbidden


def test_out_of_reach_the_nearest_is_listed_with_the_distance():
    arm, text = loaded('seed_arm')
    far = Goal((3.0, 0.0, 0.3), (1.0, 0.0, 0.0))
    listing = lister_of(text).listing(query(arm, far, np.zeros(5)))
    assert listing.nearest is not None
    assert listing.nearest.position_error > 1.5
    assert [choice.q.tolist() for choice in listing.allowed] == [listing.nearest.q.tolist()]


def test_where_the_position_ties_the_direction_all_nearest_configurations_are_listed():
    arm, text = loaded('xarm5_like')
    position, _ = arm.fk(np.array([0.4, 0.1, -1.0, 0.6, 0.0]))
    listing = lister_of(text).listing(query(arm, Goal(position, (0.0, 1.0, 0.0)), arm.middle))
    assert listing.nearest is not None
    assert listing.nearest.position_error < 1e-6
    errors = []
    for choice in listing.allowed:
        reached, direction = arm.fk(choice.q)
        assert np.allclose(reached, position, atol=1e-5)
        errors.append(math.acos(direction[1]))
    assert len(errors) >= 2
    assert errors == pytest.approx([listing.nearest.direction_error] * len(errors), abs=1e-4)


def test_a_spare_joint_keeps_the_value_of_the_slider():
    arm = Arm.from_urdf(WITH_SPARE)
    assert (arm.n, spare_joint(arm)) == (6, 'j0')
    q = np.array([0.4, 0.3, 0.7, 0.5, 0.6, -0.4])
    goal = Goal(*arm.fk(q))
    listing = lister_of(WITH_SPARE).listing(query(arm, goal, arm.middle, locked={'j0': float(q[0])}))
    assert any(np.allclose(choice.q, q, atol=1e-5) for choice in listing.allowed)
    assert all(choice.q[0] == q[0] for choice in listing.allowed)


def test_which_joint_is_spare():
    names = {name: spare_joint(loaded(name)[0]) for name in ARMS}
    assert names['seed_arm'] is None
    assert names['moveo_like'] is None
    assert names['so101_like'] is not None
    assert names['xarm5_like'] is not None


# --- curves of configurations that leave the tool where it is ------------------------------------------


@pytest.mark.parametrize('name', ['spare', 'xarm5_like'])
def test_every_row_meets_the_goal_within_the_limits_and_near_the_one_before(name):
    arm = Arm.from_urdf(WITH_SPARE) if name == 'spare' else loaded(name)[0]
    spare = arm.joint_names.index(spare_joint(arm) or '')
    lengths = []
    for start in arm.sample(np.random.default_rng(2), 6):
        position, direction = arm.fk(start)
        found = trace_self_motion(arm, Goal(position, direction), start, spare)
        lengths.append(len(found.q))
        assert np.array_equal(found.q[found.start], start)
        assert np.array_equal(found.at(found.share), start)
        for q in found.q:
            reached, along = arm.fk(q)
            assert np.abs(reached - position).max() < 1e-6
            assert np.abs(along - direction).max() < 1e-6
        assert ((found.q >= arm.lower) & (found.q <= arm.upper)).all()
        steps = np.linalg.norm(np.diff(found.q, axis=0), axis=1)
        assert (steps < 1.5 * STEP).all()
    assert max(lengths) > 30
    assert sorted(lengths)[1] > 1, 'only an arm at a limit has no self-motion'


def test_a_closed_curve_ends_where_it_began():
    limits = 'lower="-2.8" upper="2.8"'
    arm = Arm.from_urdf(WITH_SPARE.replace(limits, 'lower="-6.2" upper="6.2"'))
    found = [trace_self_motion(arm, Goal(*arm.fk(q)), q, 0) for q in arm.sample(np.random.default_rng(2), 12)]
    closed = [one for one in found if one.closed]
    assert closed
    for one in closed:
        gap = one.q[-1] - one.q[0]
        assert np.linalg.norm(gap - 2.0 * np.pi * np.round(gap / (2.0 * np.pi))) < 2.5 * STEP


def test_at_a_limit_the_curve_ends():
    arm = loaded('xarm5_like')[0]
    q = np.array([0.3, 0.2, -1.0, 0.5, 0.0])
    rolls = trace_self_motion(arm, Goal(*arm.fk(q)), q, 4).q[:, 4]
    assert rolls[0] == pytest.approx(arm.lower[4], abs=1.1 * STEP)
    assert rolls[-1] == pytest.approx(arm.upper[4], abs=1.1 * STEP)
