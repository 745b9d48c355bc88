# SPDX-License-Identifier: Apache-2.0
"""An arm that a hand moves leads another one: it begins where both agree, never jumps, and ends when in doubt."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from geometry_msgs.msg import TwistStamped
from leader_harness import PERIOD, Hand, latencies, led, pulled, started, whole_arm
from sensor_msgs.msg import JointState
from shared_files import shared_path
from small_arm import ARM_JOINTS, arm_urdf
from std_msgs.msg import Float64

from ik_node.control.leading import HELD, LATE, LEASH, Leader, LeaderSettings, difference
from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.model.gripper import gripper_of

pytestmark = pytest.mark.slow


@pytest.fixture
def hand():
    with led() as one:
        yield one


def following(hand: Hand) -> Hand:
    """The hand of a leader that the follower follows."""
    hand.client.run(HELD + 1.0)
    hand.wait_follows()
    return hand


def test_it_begins_once_both_stand_alike_and_tells_until_then_which_joint_must_turn_where(hand):
    hand.where |= {'shoulder': 0.7, 'elbow': -0.4}
    hand.client.wait(lambda: hand.said and 'turn' in hand.said[-1], 'the disagreement')
    assert hand.said[-1] == 'bring the leader to where the follower is: turn "shoulder" by -40°, "elbow" by +23°'
    report = hand.reports[-1]
    assert report['state'] == 'waiting'
    assert float(report['shoulder']) == pytest.approx(-0.7)
    assert 'yaw' not in report
    hand.client.run(2.0)
    hand.move(shoulder=0.05)
    hand.client.run(2.0)
    assert not hand.follows
    assert hand.largest_step() == 0.0, 'the follower has not moved'
    hand.move(0.2, elbow=0.0)
    hand.client.run(HELD - 0.3)
    assert not hand.follows, 'it passes by for less than that'
    hand.wait_follows()
    hand.client.run(1.5)
    assert hand.gap() < 1e-4
    assert hand.largest_step() < math.radians(0.2), 'what is left of the difference vanishes slowly'


def test_it_follows_joint_by_joint_without_lag(hand):
    following(hand).wander()
    gaps = []
    for _ in range(150):
        hand.client.run(2 * PERIOD)
        gaps.append(hand.gap())
    assert max(gaps[75:]) < math.radians(0.1)


def test_it_rests_soon_after_the_leader(hand):
    """The last goals are repeated: without these, a parabola through the motion before would lead it away."""
    following(hand).move(2.0, elbow=0.8)
    mark = len(hand.client.samples)
    hand.client.run(1.0)
    places = np.array([sample.position[sample.name.index('elbow')] for sample in hand.client.samples[mark:]])
    assert np.abs(places - 0.8).max() < 5e-3
    assert np.abs(places[20:] - 0.8).max() < 3e-4


def test_no_start_from_a_disagreement_is_a_step():
    with led() as hand:
        steps = started(hand, 20, seed=1)
    assert len(steps) == 20
    assert max(steps) < math.radians(1.0)


def test_the_follower_holds_when_the_cable_of_the_leader_is_pulled():
    with led() as hand:
        for rest, step in pulled(hand, 10, seed=2):
            assert rest < 1.0  # [s]: at a speed that the limits of acceleration and jerk end in less
            assert step < math.radians(2.0)


def test_it_begins_again_only_where_both_agree(hand):
    following(hand).wander()
    hand.client.run(1.0)
    hand.plugged = False
    hand.wait_ended('is its cable plugged in')
    at = hand.client.wait_still()
    hand.path = None
    hand.where |= {'yaw': hand.where['yaw'] + 0.5}
    hand.plugged = True
    hand.client.run(2.0)
    assert not hand.follows
    assert hand.client.position() == pytest.approx(at, abs=1e-9)
    hand.move(**dict(zip(ARM_JOINTS, at, strict=True)))
    hand.wait_follows()


def names_one(message: JointState) -> JointState:
    return JointState(header=message.header, name=['yaw'], position=[0.3])


def in_degrees(message: JointState) -> JointState:
    message.position = [math.degrees(value) for value in message.position]
    return message


def leaping(message: JointState) -> JointState:
    message.position[1] += 0.25
    return message


def old(message: JointState) -> JointState:
    message.header.stamp.sec -= 1
    return message


def renamed(message: JointState) -> JointState:
    message.name = [f'left_{name}' for name in message.name]
    return message


def without_numbers(message: JointState) -> JointState:
    message.position = [math.nan for _ in message.position]
    return message


def twice(message: JointState) -> JointState:
    message.name = [*message.name, message.name[0]]
    message.position = [*message.position, 1.0]
    return message


@pytest.mark.parametrize(
    ('spoil', 'words'),
    [
        (in_degrees, 'does the driver publish degrees'),
        (leaping, 'joint "shoulder" of the leader leaps from'),
        (names_one, 'its messages lack "shoulder", "elbow"'),
        (old, 'its messages are 1 s old'),
        (renamed, 'its messages lack "yaw"'),
        (without_numbers, 'its messages lack "yaw"'),
        (twice, 'is its cable plugged in'),
        (lambda _: None, 'is its cable plugged in'),
    ],
)
def test_messages_that_are_late_partial_or_wrong_end_it(hand, spoil, words):
    following(hand).move(yaw=0.3, shoulder=0.5, elbow=0.8, wrist=0.4)
    hand.client.run(1.0)
    at, mark = hand.client.position(), len(hand.client.samples)
    hand.spoilt = spoil
    hand.client.run(LATE + 0.15)
    assert any(words in text for text in hand.said[-4:]), hand.said[-4:]
    assert not hand.follows
    hand.client.run(1.5)
    assert not hand.follows
    assert hand.client.position() == pytest.approx(at, abs=1e-3)
    assert hand.largest_step(mark) < 1e-3


def test_names_of_another_driver_are_told_and_can_be_mapped():
    names = tuple(f'left_{name}' for name in ARM_JOINTS)
    with led(names=names) as hand:
        hand.client.run(2.5)
        assert 'did you mean "yaw" by "left_yaw"?' in hand.said[-1]
        assert hand.said[-1].endswith('or set leader_joints')
    pairs = [f'{name}={name.removeprefix("left_")}' for name in names]
    with led(names=names, leader={'leader_joints': pairs}) as hand:
        hand.client.run(HELD + 1.0)
        hand.wait_follows()


def test_two_leaders_are_one_too_many(hand):
    following(hand).wander()
    other = hand.client.node.create_publisher(JointState, 'leader/joint_states', 10)
    hand.wait_ended('end all but one')
    hand.client.wait_still()
    assert hand.client.said()['state'] == 'stopped', 'it brakes, instead of going on to the last goal'
    hand.path = None
    hand.client.node.destroy_publisher(other)
    hand.where |= dict(zip(ARM_JOINTS, hand.client.position(), strict=True))
    hand.wait_follows()
    hand.client.run(1.0)
    assert hand.follows


def early(message: JointState) -> JointState:
    nanoseconds = round(1e9 * (LATE - 0.02)) + message.header.stamp.nanosec
    message.header.stamp.sec += nanoseconds // 10**9
    message.header.stamp.nanosec = nanoseconds % 10**9
    return message


def test_a_clock_that_is_ahead_does_not_hide_that_the_cable_is_pulled(hand):
    hand.spoilt = early
    following(hand).plugged = False
    begin = hand.time
    hand.wait_ended('is its cable plugged in')
    assert hand.time - begin < LATE + 0.06


def test_a_clock_that_is_set_back_ends_it_and_is_no_reason_to_wait():
    arm = Arm.from_urdf(arm_urdf(), 'tool0', base_link='base_link', tool_axis='z')
    leader, at = Leader(LeaderSettings(), arm), dict.fromkeys(ARM_JOINTS, 0.1)

    def pass_time(begin: float, end: float, there: dict[str, float]) -> bool:
        for now in np.arange(begin, end, 0.02).tolist():
            leader.take(there, now, now)
            leader.look(now, at, '')
        return leader.following

    assert pass_time(100.0, 102.0, at)
    assert not pass_time(10.0, 10.02, at)
    assert leader.condition == 'the follower no longer follows: the clock was set back'
    assert not pass_time(10.02, 12.0, {'yaw': 0.1}), 'the other joints are those of before'
    assert leader.condition.startswith('the leader: its messages lack "shoulder"')
    assert pass_time(12.0, 14.0, at)
    leader.look(15.0, at, '')
    assert not leader.following
    assert pass_time(1.0, 3.0, at), 'the end of before is in the future'


def test_a_stop_ends_it_and_it_begins_again_after_the_resume(hand):
    following(hand).wander()
    hand.client.run(1.0)
    hand.client.call('ik_node/stop')
    hand.wait_ended('stopped')
    at = hand.client.wait_still()
    hand.path = None
    hand.move(**dict(zip(ARM_JOINTS, at, strict=True)))
    hand.client.run(2.0)
    assert not hand.follows
    assert hand.said[-1].startswith('the follower: stopped')
    hand.client.call('ik_node/resume')
    hand.wait_follows()


def other_goal(hand: Hand) -> None:
    hand.client.send('goal_joints', hand.client.joints(yaw=-1.0))


def other_pose(hand: Hand) -> None:
    hand.client.send('goal_point', hand.client.point((0.3, 0.2, 0.3)))


def home(hand: Hand) -> None:
    hand.client.call('ik_node/home')


def twist(hand: Hand) -> None:
    publisher = hand.client.node.create_publisher(TwistStamped, 'ik_node/delta_twist_cmds', 10)
    message = TwistStamped()
    message.twist.linear.z = 0.5
    for _ in range(20):
        publisher.publish(message)
        hand.client.run(0.02)


@pytest.mark.parametrize(
    ('act', 'moving'),
    [(other_goal, False), (other_goal, True), (other_pose, False), (other_pose, True), (home, False), (twist, True)],
)
def test_another_operator_ends_it(hand, act, moving):
    following(hand).move(yaw=0.3, shoulder=0.5, elbow=0.8, wrist=0.4)
    if moving:
        hand.wander()
        hand.client.run(0.5)
    act(hand)
    hand.client.run(0.5)
    assert not hand.follows, hand.said[-3:]
    assert any('no longer follows' in text for text in hand.said)


def test_a_follower_that_cannot_keep_up_is_on_a_leash():
    with led(speed_scaling=0.1) as hand:
        ahead: list[float] = []
        hand.client.node.create_subscription(
            JointState, 'goal_joints', lambda m: ahead.append(m.position[0] - hand.client.position('yaw')[0]), 10
        )
        following(hand).move(1.0, yaw=2.0)
        assert LEASH - 0.1 < max(ahead) < LEASH + 0.02
        hand.plugged = False
        at = float(hand.client.position('yaw')[0])
        hand.wait_ended('is its cable plugged in')
        hand.client.wait_still()
        assert float(hand.client.position('yaw')[0]) - at < 0.2 * (LATE + 0.5) < LEASH


def test_a_leader_beyond_the_limits_of_the_follower_leaves_it_there():
    with led(arm_urdf(upper=0.5)) as hand:
        following(hand).move(2.0, yaw=0.8)
        hand.client.run(1.0)
        assert hand.client.position('yaw') == pytest.approx([0.5])
        hand.move(yaw=0.3)
        hand.client.run(1.0)
        assert hand.follows
        assert hand.gap() < 1e-3


def test_the_gripper_follows_once_both_are_open_alike():
    with led(names=(*ARM_JOINTS, 'finger')) as hand:
        openings: list[float] = []
        hand.client.node.create_subscription(Float64, 'ik_node/gripper', lambda m: openings.append(m.data), 10)
        hand.where['finger'] = 0.03
        following(hand)
        hand.client.run(1.0)
        assert not openings, 'it would drop what it holds'
        hand.move(finger=0.002)
        hand.move(finger=0.02)
        hand.client.run(2.0)
        assert openings[-1] == pytest.approx(0.5, abs=0.02)
        assert float(hand.client.position('finger')[0]) == pytest.approx(0.02, abs=1e-3)
        assert hand.follows, 'the gripper is no other operator'


def test_a_gripper_that_holds_something_is_led_by_one_that_is_as_closed_as_it_was_asked_to_be():
    arm = Arm.from_urdf(arm_urdf(), 'tool0', base_link='base_link', tool_axis='z')
    leader = Leader(LeaderSettings(), arm, gripper_of(arm))
    for asked, finger, opening in ((math.nan, 0.02, 0.5), (0.0, 0.02, None), (0.0, 0.002, 0.05)):
        leader.take({'finger': finger}, 1.0, 1.0)
        leader.gripped(asked, False)
        assert leader.opening({'finger': 0.02}) == pytest.approx(opening)
        leader.gripped(1.0, False)  # of another program


def test_the_gripper_follows_neither_percents_nor_after_another_program_has_moved_it():
    with led(names=(*ARM_JOINTS, 'finger')) as hand:
        other = hand.client.node.create_publisher(Float64, 'ik_node/gripper', 10)
        following(hand).move(finger=0.03)
        hand.client.run(1.0)
        assert hand.client.position('finger') == pytest.approx([0.03], abs=1e-3)
        other.publish(Float64(data=0.1))
        hand.client.run(1.0)
        hand.move(finger=0.0305)
        hand.client.run(1.0)
        assert hand.client.position('finger') == pytest.approx([0.004], abs=1e-4), 'what it holds may not be dropped'
        hand.move(finger=0.006)
        hand.move(finger=0.02)
        hand.client.run(1.0)
        assert hand.client.position('finger') == pytest.approx([0.02], abs=1e-3)
        hand.where['finger'] = 50.0
        hand.client.run(1.0)
        assert hand.follows
        assert hand.client.position('finger') == pytest.approx([0.02], abs=1e-3)


def test_the_service_ends_it_and_lets_it_begin(hand):
    following(hand)
    hand.client.call('ik_leader/lead', on=False)
    assert any(text.endswith('~/lead was called with false') for text in hand.said)
    hand.client.run(2.0)
    assert not hand.follows
    hand.client.call('ik_leader/lead', on=True)
    hand.wait_follows()


# Another make


def other_make() -> str:
    """The small arm with other links."""
    return arm_urdf().replace('0.3 0 0', '0.25 0 0.05').replace('"little"', '"other"')


def test_the_geometry_is_compared_by_what_it_does():
    small = Arm.from_urdf(arm_urdf(), 'tool0', base_link='base_link', tool_axis='z')
    same = Arm.from_urdf(arm_urdf().replace('0.1 0 0', '0.2 0 0'), 'tool0', base_link='base_link', tool_axis='z')
    assert not difference(same, small), 'another tool is no other geometry'
    other = Arm.from_urdf(other_make(), 'tool0', base_link='base_link', tool_axis='z')
    assert difference(other, small).startswith('its links')
    turned = arm_urdf().replace('xyz="0.3 0 0" rpy="0 0 0"', 'xyz="0.3 0 0" rpy="0 0.5 0"')
    assert turned != arm_urdf()
    zero = Arm.from_urdf(turned, 'tool0', base_link='base_link', tool_axis='z')
    assert 'zeros' in difference(zero, small)
    mirrored = arm_urdf().replace('0 0 1"/><limit', '0 0 -1"/><limit').replace('1 0 0"/><limit', '-1 0 0"/><limit')
    mirror = Arm.from_urdf(mirrored, 'tool0', base_link='base_link', tool_axis='z')
    assert 'its links or the zeros' in difference(mirror, small), 'the same distances and angles, turned the other way'
    names = Arm.from_urdf(arm_urdf().replace('"elbow"', '"ell"'), 'tool0', base_link='base_link', tool_axis='z')
    assert 'its joints are' in difference(names, small)


@pytest.mark.parametrize('pairs', [['yaw'], ['yaw='], ['a=b=c']])
def test_pairs_of_names_that_are_none(pairs):
    with pytest.raises(InputError, match='leader_joints'):
        LeaderSettings(leader_joints=tuple(pairs))
    assert replace(LeaderSettings(), leader_joints=('a=b',)).renamed() == {'a': 'b'}


def test_another_make_leads_the_tool_from_where_both_are_when_the_clutch_closes(tmp_path):
    file = tmp_path / 'other.urdf'
    file.write_text(other_make())
    leads = {'leader_description': str(file), 'leader_tip_link': 'tool0', 'scale': 0.5, 'yaw': math.pi / 2.0}
    with led(home=[0.0, 0.4, 0.6, 0.0, 0.4], leader=leads) as hand:
        other = Arm.from_urdf(other_make(), 'tool0', base_link='world', tool_axis='z')
        arm = Arm.from_urdf(arm_urdf(), 'tool0', base_link='base_link', tool_axis='z')
        hand.where |= {'yaw': -0.5, 'shoulder': 0.6, 'elbow': 0.7}
        hand.client.run(2.5)
        assert 'the clutch is open' in hand.said[-1]
        assert hand.largest_step() == 0.0
        begin, tool = arm.fk(hand.client.position())[0], other.fk(list(hand.where.values()))[0]
        hand.client.call('ik_leader/lead', on=True)
        hand.wait_follows()
        hand.client.run(0.5)
        assert arm.fk(hand.client.position())[0] == pytest.approx(begin, abs=1e-4), 'nothing jumps'
        hand.move(yaw=-0.3, shoulder=0.7, elbow=0.6)
        hand.client.run(1.0)
        way = other.fk(list(hand.where.values()))[0] - tool
        turned = 0.5 * np.array([-way[1], way[0], way[2]])  # a quarter of a turn to the left
        assert arm.fk(hand.client.position())[0] - begin == pytest.approx(turned, abs=2e-3)
        assert np.linalg.norm(turned) > 0.02
        hand.wander(0.5)
        hand.client.run(0.5)
        mark = len(hand.client.samples)
        hand.plugged = False
        hand.wait_ended('is its cable plugged in')
        hand.client.wait_still()
        assert hand.largest_step(mark) < math.radians(1.0)
        hand.plugged = True
        hand.client.run(2.0)
        assert not hand.follows, 'the clutch has opened'
        hand.plugged = False
        hand.client.run(0.5)
        answer = hand.client.call('ik_leader/lead', on=True)
        assert (answer.success, answer.message) == (False, 'the leader is silent: is its cable plugged in?')
        hand.plugged = True
        hand.client.run(1.0)
        assert not hand.follows, 'a clutch that is closed too early does not wait for the cable'
        assert hand.client.call('ik_leader/lead', on=True).success
        assert hand.follows
        assert hand.client.call('ik_leader/lead', on=False).success
        assert hand.client.call('ik_leader/lead', on=True).success
        assert hand.follows, 'at once, as for a new grip'


def test_an_so101_leads_an_xarm5():
    follower, leader = shared_path('arms', 'xarm5.urdf'), shared_path('arms', 'so101.urdf')
    names, start = whole_arm(leader)
    given = {'base_link': 'link_base', 'tip_link': 'link5', 'home': [0.0, -0.5, -0.8, 1.3, 0.0]}
    with led(follower.read_text(), names, {'leader_description': str(leader), 'scale': 1.5}, **given) as hand:
        hand.where |= start
        hand.client.run(2.5)
        hand.client.call('ik_leader/lead', on=True)
        hand.wait_follows()
        mark = len(hand.client.samples)
        hand.wander(0.5)
        hand.client.run(3.0)
        assert hand.follows
        assert 0.0 < hand.largest_step(mark) < math.radians(2.0)


def test_a_message_of_the_leader_is_a_command_within_a_period_of_the_follower():
    with led(rate=100.0) as hand:
        found = latencies(following(hand), 30)
    assert np.median(found) <= 0.01
    assert np.quantile(found, 0.99) <= 0.02
