# SPDX-License-Identifier: Apache-2.0
"""Self-collision: no goal, no motion and no sample in which parts of the robot overlap."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from control_harness import AFTER, PERIOD, SETTINGS, Asked, Rig, arm_model, reject
from small_arm import FOLDING, arm_urdf, bar, folding_urdf

from ik_node import Goal
from ik_node.control.checks import CollisionGate
from ik_node.control.models import ArmModel
from ik_node.control.settings import ArmSettings
from ik_node.control.states import State
from ik_node.errors import InputError, MissingError
from ik_node.model.collision import FAR, collision_shapes
from ik_node.model.urdf.description import load_description
from ik_node.startup.arguments import ARMS, ROBOTS, SUFFIX, URDF

pytestmark = pytest.mark.slow

pytest.importorskip('coal')


def build(text: str = '', **values: object) -> ArmModel:
    return arm_model(text or folding_urdf(), replace(FOLDING, **values))


@pytest.fixture(scope='module')
def folding() -> ArmModel:
    return build()


def measured(model: ArmModel, **start: float) -> Rig:
    rig = Rig(model, measured=True)
    rig.controller.set_limits(replace(SETTINGS, measured_timeout=0.0))
    rig.measure(**{**dict.fromkeys(model.first.arm.joint_names, 0.0), **start})
    rig.tick(3)
    assert rig.state is State.HOLDING
    return rig


def least(model: ArmModel, rig: Rig) -> float:
    """The least distance in all samples of the arm."""
    return min(
        model.collision.distance(model.joints.filled(dict(zip(s.names, s.positions.tolist(), strict=True))))[0]
        for s in rig.output.samples
    )


def test_a_motion_through_the_post_is_rejected_with_the_time_and_the_way_around_is_not(folding):
    rig = measured(folding, yaw=0.8)
    report = rig.go(yaw=-0.8)
    assert 'link "base" and link ' in report.message
    assert ' s after the start of the motion, link ' in report.message
    assert rig.go(yaw=0.8, shoulder=2.4).phase == 'moving'  # back over itself
    rig.settle()
    assert rig.go(yaw=-0.8).phase == 'moving'
    rig.settle()
    assert least(folding, rig) > 0.0


def test_another_solution_is_taken_where_the_nearest_collides(folding):
    """The goal can be met from above and from below; the elbow that is nearest goes through the post."""
    rng = np.random.default_rng(3)
    switched = free = 0
    for _ in range(12):
        q = rng.uniform(-2.5, 2.5, 4)
        rig = measured(folding, yaw=1.5)
        report = rig.ask(Goal(*folding.first.arm.fk(q)))
        if report.status == 'rejected':
            continue
        switched += 'with a farther solution' in report.message
        free += 'with a farther solution' not in report.message
        rig.settle()
        assert rig.state is State.HOLDING, rig.reports[-1].message
        assert least(folding, rig) > 0.0
    assert switched > 0
    assert free > 3


def test_an_arm_that_starts_in_collision_may_come_out_but_not_go_deeper(folding):
    rig = measured(folding, yaw=1.5, elbow=3.02)
    assert folding.collision.distance(rig.controller.snapshot().values)[0] < 0.0
    assert rig.go(elbow=3.1).status == 'rejected'
    assert rig.go(elbow=1.5).phase == 'moving'
    rig.settle()
    assert rig.state is State.HOLDING
    assert rig.position('elbow') == pytest.approx(1.5)


def counted_looks(model: ArmModel, monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The configurations at which distances are measured from now on."""
    looks: list[np.ndarray] = []
    look = model.collision.look
    monkeypatch.setattr(model.collision, 'look', lambda q: looks.append(q) or look(q))
    return looks


def test_the_gate_rejects_the_first_sample_in_collision_and_looks_only_when_it_must(monkeypatch):
    folding = build()
    gate, distance = CollisionGate(folding.collision), folding.collision.distance
    looks = counted_looks(folding, monkeypatch)
    samples = np.linspace(0.0, 3.0, 300)
    reasons = [reject(gate, [1.5, 0.0, elbow, 0.0]) for elbow in samples]
    first = next(k for k, reason in enumerate(reasons) if reason)
    assert 'link "upper" and link "hand" overlap by' in reasons[first]
    assert distance(np.array([1.5, 0.0, samples[first], 0.0]))[0] < 0.0
    assert distance(np.array([1.5, 0.0, samples[first - 1], 0.0]))[0] >= 0.0
    assert len(looks) < 120
    before = len(looks)
    gate.restart()
    reject(gate, np.zeros(4))
    for _ in range(100):
        assert reject(gate, np.zeros(4)) is None
    assert len(looks) <= before + 1


def test_an_overlap_at_the_start_may_not_come_back_after_the_parts_were_apart():
    folding = build()
    gate = CollisionGate(folding.collision)
    inside, outside = np.array([1.5, 0.0, 3.02, 0.0]), np.array([1.5, 0.0, 1.5, 0.0])
    assert reject(gate, inside) is None
    folding.collision.look(outside)  # now it is known without a look of the gate
    assert reject(gate, outside) is None
    assert 'overlap by' in reject(gate, inside)


def test_what_is_known_of_distances_changes_no_verdict():
    known, plain = build(), build()
    plain.collision.clear = lambda *_: False
    rng, rejected = np.random.default_rng(2), 0
    for _ in range(40):
        start = rng.uniform(-2.5, 2.5, 4)
        for _ in range(4):  # paths beside each other, so that earlier looks count
            path = np.linspace(start, start + rng.normal(size=4), 8)
            verdicts = [model.collision.along(path, 1e-3) is None for model in (known, plain)]
            assert verdicts[0] == verdicts[1]
            rejected += not verdicts[0]
            start = start + 0.02 * rng.normal(size=4)
    assert 8 < rejected < 150


def stream(rig: Rig, count: int, place) -> None:
    """Send goals at place(k) (4,)."""
    for k in range(count):
        goal = Goal(*rig.model.first.arm.fk(place(k)))
        rig.controller.submit(Asked(goal, arrival=AFTER + rig.time, received=rig.time, goal_time=rig.time))
        rig.tick()
        assert rig.state is not State.FAULTED, rig.reports[-1].message


def test_a_stream_of_goals_far_from_a_collision_is_followed_with_few_looks(monkeypatch):
    folding = build()
    rig = measured(folding, yaw=1.5)
    looks = counted_looks(folding, monkeypatch)
    stream(rig, 200, lambda k: [1.5 + 0.2 * np.sin(0.02 * k), 0.3 * np.cos(0.02 * k), 0.5, 0.0])
    assert len(looks) < 60


def test_a_stream_of_goals_into_the_post_ends_in_a_stop_before_it(folding):
    rig = measured(folding, yaw=0.8)
    # Only the guard of the pursuit is left.
    rig.controller._motion.choose = lambda plan, *_: plan
    stream(rig, 150, lambda k: [0.8 - 0.01 * k, 0.0, 0.0, 0.0])
    assert rig.position('yaw') < 0.5
    assert least(folding, rig) > 0.0


def test_the_way_to_the_last_goal_is_checked_when_a_stream_ends(folding):
    rig = measured(folding, yaw=1.5)
    stream(rig, 31, lambda k: [1.5 - 0.005 * k, 0.0, 0.0, 0.0])
    rig.controller._motion.check.planned_violation = lambda *_: 'the way is not free'  # nor asked for earlier
    stream(rig, 29, lambda k: [1.345 - 0.005 * k, 0.0, 0.0, 0.0])
    rig.tick(60)  # the stream has ended
    assert 'the way is not free' in rig.reports[-1].message
    rig.settle()
    assert rig.state is State.HOLDING


@pytest.mark.parametrize('late', [0, 3, 6])
def test_an_operator_who_lets_go_while_the_guard_brakes_sends_the_arm_no_farther(folding, late):
    rig = measured(folding, yaw=0.8)
    rig.controller.set_limits(replace(SETTINGS, measured_timeout=0.0, max_acceleration=2.0))
    motion, rates = rig.controller._motion.group.motion, np.array([-0.8, 0.0, 0.0, 0.0])
    for k in range(100):
        assert rig.controller.steer(np.array([0.8, 0.0, 0.0, 0.0]) + k * PERIOD * rates, rig.time, (rates, 0.0 * rates))
        rig.tick()
        late -= k > 10 and not motion.tracking  # the guard brakes the arm
        if late < 0:
            break
    assert motion.moving
    rig.tick(100)
    assert rig.state is State.HOLDING, rig.reports[-1].message
    assert least(folding, rig) > 0.0


def test_a_sample_in_collision_is_not_published(folding):
    rig = measured(folding, yaw=1.5)
    rig.controller._motion.choose = lambda plan, *_: plan  # a check that fails
    rig.go(elbow=3.0)
    rig.tick(1000)
    assert rig.state is State.FAULTED
    assert 'a setpoint was not published: link "upper" and link "hand" overlap by' in rig.reports[-1].message
    assert least(folding, rig) >= 0.0


@pytest.mark.parametrize('name', ['folding', 'so101_like', 'prismatic_arm'])
def test_distances_change_no_faster_than_the_joints_can_move_the_parts(folding, name):
    model = folding
    if name != 'folding':
        model = arm_model(load_description(URDF / f'{name}{SUFFIX}'), ArmSettings())
    rng, compared = np.random.default_rng(0), 0
    for _ in range(100):
        q = rng.uniform(np.maximum(model.joints.lower, -3.0), np.minimum(model.joints.upper, 3.0))
        step = rng.normal(size=q.size) * rng.choice([0.01, 0.1]) * rng.integers(0, 2, q.size)
        one, other = (model.collision.look(place)[0] for place in (q, q + step))
        near = (one > 0.0) & (other > 0.0) & (one < FAR) & (other < FAR)  # farther, they are lower bounds
        assert (np.abs(one - other) <= model.collision.sweep @ np.abs(step) + 1e-5)[near].all()
        compared += near.sum()
    assert compared > 5


# Pairs


def test_pairs_joined_by_a_joint_are_left_out_and_always_colliding_ones_are_listed():
    wide = '<collision><geometry><sphere radius="0.21"/></geometry></collision>'
    model = build(folding_urdf(fore=wide + bar(0.2)))  # reaches over the elbow to the shoulder
    assert model.collision.always == []
    sphere = wide.replace('0.21', '0.6')
    model = build(folding_urdf(fore=sphere))
    assert model.collision.always == [('base', 'fore')]
    assert 'left out, as they collide everywhere: base with fore' in model.notes[0]


def test_an_srdf_excludes_further_pairs_and_its_unknown_links_are_named(tmp_path):
    file = tmp_path / 'arm.srdf'
    file.write_text(
        '<robot name="folding"><disable_collisions link1="hand" link2="upper" reason="User"/>'
        '<disable_collisions link1="jaw" link2="upper"/></robot>'
    )
    model = build(srdf_file=str(file))
    rig = measured(model, yaw=1.5)
    assert rig.go(elbow=3.0).phase == 'moving'
    assert 'srdf_file excludes links that do not exist: "jaw"' in model.notes
    with pytest.raises(InputError, match='srdf_file'):
        build(srdf_file=str(tmp_path / 'none.srdf'))


def test_fingers_may_close_on_each_other():
    fingers = ''.join(
        f'<link name="{name}"><collision><geometry><box size="0.02 0.02 0.02"/></geometry></collision></link>'
        f'<joint name="{name}_slide" type="prismatic"><parent link="hand"/><child link="{name}"/>'
        f'<origin xyz="0.08 {side} 0"/><axis xyz="0 1 0"/>'
        '<limit lower="-0.02" upper="0.02" velocity="1" effort="1"/></joint>'
        for name, side in (('left', 0.015), ('right', -0.015))
    )
    model = build(folding_urdf().replace('</robot>', fingers + '</robot>'))
    rig = measured(model, yaw=1.5, left_slide=0.0, right_slide=0.0)
    assert rig.go(left_slide=-0.02, right_slide=0.02).phase == 'moving'
    rig.settle()
    assert rig.state is State.HOLDING


# On and off


def test_without_shapes_or_switched_off_nothing_is_checked(model):
    assert model.collision is None
    assert len(model.notes) == 1
    with pytest.raises(InputError, match='self_collision'):
        arm_model(arm_urdf(), replace(SETTINGS, self_collision='true'))
    off = build(self_collision='false')
    assert (off.collision, off.notes) == (None, ())


def test_without_the_library_it_is_off_with_one_line_that_helps(monkeypatch):
    monkeypatch.setitem(sys.modules, 'coal', None)
    monkeypatch.setattr('ik_node.extras.find_spec', lambda _: None)
    model = build()
    assert model.collision is None
    assert len(model.notes) == 1
    assert '-m pip install coal' in model.notes[0]
    with pytest.raises(MissingError):
        build(self_collision='true')


@pytest.mark.parametrize(
    ('shape', 'words'),
    [
        ('<box size="1 1"/>', '<box>'),
        ('<sphere radius="nan"/>', '<sphere>'),
        ('<cylinder radius="0" length="1"/>', '<cylinder>'),
        ('<mesh filename="package://nowhere/a.stl"/>', 'not found'),
        ('<mesh filename="/etc/passwd"/>', 'outside'),
        ('<cone/>', 'mesh'),
    ],
)
def test_a_shape_that_cannot_be_read_is_left_out_with_the_reason(shape, words):
    model = build(folding_urdf(fore=f'<collision><geometry>{shape}</geometry></collision>{bar(0.2)}'))
    assert any(words in note and 'link "fore"' in note for note in model.notes)
    assert model.collision is not None


@pytest.mark.parametrize(
    ('shape', 'top'),
    [
        ('<box size="0.1 0.2 0.06"/>', 0.03),
        ('<sphere radius="0.05"/>', 0.05),
        ('<cylinder radius="0.02" length="0.08"/>', 0.04),
        ('<capsule radius="0.02" length="0.08"/>', 0.06),
    ],
)
def test_each_shape_is_as_large_as_it_is_described(shape, top):
    text = folding_urdf(fore=f'<collision><geometry>{shape}</geometry></collision>')
    shapes, notes = collision_shapes(text, '')
    assert not notes
    (geometry,) = [one.geometry for one in shapes if one.link == 'fore']
    geometry.computeLocalAABB()
    assert geometry.aabb_local.max_[2] == pytest.approx(top)


def test_a_mesh_in_mesh_path_is_its_convex_hull(tmp_path):
    trimesh = pytest.importorskip('trimesh')
    trimesh.creation.box((200.0, 30.0, 30.0)).export(tmp_path / 'bar.stl')
    mesh = (
        '<collision><origin xyz="0.1 0 0"/><geometry><mesh filename="bar.stl" scale="0.001 0.001 0.001"/>'
        '</geometry></collision>'
    )
    by_mesh = build(folding_urdf(fore=mesh), mesh_path=str(tmp_path))
    by_box = build()
    rng = np.random.default_rng(0)
    for q in rng.uniform(-2.0, 2.0, (30, 4)):
        assert by_mesh.collision.distance(q)[0] == pytest.approx(by_box.collision.distance(q)[0], abs=1e-5)


@pytest.mark.parametrize('name', ROBOTS)
def test_the_robots_here_are_free_at_home_and_have_no_pair_that_always_collides(name):
    tip = 'tool0' if name in ARMS else 'left_tool0'
    text = load_description(URDF / f'{name}{SUFFIX}')
    model = arm_model(text, ArmSettings(self_collision='true', tip_link=tip))
    home = model.joints.filled(dict(zip(model.first.arm.joint_names, model.home.tolist(), strict=True)))
    assert model.collision.distance(home)[0] > 0.0
    assert model.collision.always == []
    assert len(model.notes) == 1
