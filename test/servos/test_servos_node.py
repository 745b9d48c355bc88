# SPDX-License-Identifier: Apache-2.0
"""ik_servos: commands in, measured joints out, services, diagnostics, its end."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace

import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from servo_world import driven, owner_of
from std_msgs.msg import String

from ik_node.errors import IkError
from ik_node.ros.neighbours import CARDS_QOS, SERVOS, TOPIC, Card
from ik_node.servos.arm.states import ArmState

pytestmark = pytest.mark.slow

NAMES = ['shoulder_pan', 'shoulder_lift', 'elbow_flex', 'wrist_flex', 'wrist_roll', 'gripper']
TORQUE = {'id': 2, 'address': 48, 'size': 2}  # the limit of the shoulder


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path))
    return tmp_path / 'ik_node' / 'servos'


@pytest.fixture
def owner():
    with driven() as owner:
        yield owner


@pytest.fixture
def holding(owner):
    owner.switch_on()
    return owner


def test_it_measures_and_moves_only_with_torque(owner):
    owner.wait(lambda: owner.heard, 'joint_states')
    assert owner.heard[-1].name == NAMES
    assert len(owner.heard[-1].velocity) == len(owner.heard[-1].effort) == 6
    owner.command(elbow_flex=0.5)
    owner.world.run(0.5)
    assert owner.bus.state()[3]['actual'] == pytest.approx(2048, abs=6)
    assert owner.log.said['warning'], 'the command was ignored'
    owner.switch_on()
    owner.drive(elbow_flex=0.5, wrist_roll=-0.4)
    assert owner.bus.state()[3]['actual'] == pytest.approx(2048 + 0.5 / math.tau * 4096, abs=20)


def test_commands_that_come_while_the_driver_ends_are_no_news(holding):
    holding.driver._arm.stop()
    holding.command(elbow_flex=0.5)
    holding.world.run(0.5)
    assert not holding.log.said['warning']


def test_services_answer_whether_it_is_done(owner):
    assert not owner.call('clear').success
    owner.switch_on()
    assert owner.call('hold').success
    owner.command(elbow_flex=0.5)
    owner.world.run(0.5)
    assert owner.position('elbow_flex') == pytest.approx(0.0, abs=0.01)
    assert owner.call('clear').success
    owner.drive(elbow_flex=0.2)
    assert not owner.call('set_zero').success
    assert owner.call('torque', False).message == 'passive'
    assert owner.torques == {False}


@pytest.mark.parametrize(
    ('names', 'positions', 'age'),
    [
        (['elbow_flex'], [math.nan], 0.0),
        (['elbow'], [0.1], 0.0),
        (['elbow_flex', 'elbow_flex'], [0.1, 0.2], 0.0),
        (['elbow_flex'], [], 0.0),
        (['elbow_flex'], [0.5], 0.5),
        (['elbow_flex'], [0.5], 4.0),
        (['elbow_flex'], [0.5], -0.5),
        (['elbow_flex'], [0.5], math.inf),  # negative seconds
    ],
)
def test_a_command_that_is_wrong_or_old_moves_nothing(holding, names, positions, age):
    message = JointState(name=names, position=positions)
    if age == math.inf:
        message.header.stamp.sec = -1
    else:
        stamp = holding.node.get_clock().now().nanoseconds - round(age * 1e9)
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
    holding.publish(message)
    holding.world.run(0.3)
    assert holding.bus.state()[3]['actual'] == pytest.approx(2048, abs=6)
    assert len(holding.log.said['warning']) == 1
    holding.drive(elbow_flex=0.1)


def test_two_publishers_of_commands_are_not_followed(holding):
    other = holding.node.create_publisher(JointState, 'joint_commands', 1)
    for _ in range(20):
        holding.command(elbow_flex=0.5)
        other.publish(JointState(name=['elbow_flex'], position=[-0.5]))
        holding.world.run(0.02)
    assert holding.position('elbow_flex') == pytest.approx(0.0, abs=0.1)
    assert '/owner' in holding.log.said['warning'][-1]


def test_an_arm_without_zeros_gets_them_joint_by_joint(home):
    with driven('koch') as owner:

        def know(pose):
            (result,) = owner.driver.set_parameters([Parameter('known_pose', value=pose)])
            return result.successful

        assert not owner.call('torque', True).success
        owner.wait(lambda: owner.driver._arm.snapshot.ticks, 'the ticks')
        assert not owner.call('set_zero').success
        assert not know('joint_9=0')
        assert know('joint_1=0, joint_2=0.25, joint_3=0, joint_4=0')
        assert owner.call('set_zero').success
        owner.wait(lambda: '"joint_5", "joint_6"' in owner.driver._arm.snapshot.reason, 'the rest')
        assert owner.heard == []
        assert not know('joint_5=0, joint_5=1')
        assert know('joint_5=0, joint_6=0.5')
        assert str(home) in owner.call('set_zero').message
        owner.wait(lambda: owner.heard, 'joint_states')
        assert owner.position('joint_2') == pytest.approx(0.25, abs=2e-3)
        assert owner.position('joint_6') == pytest.approx(0.5, abs=2e-3)


def test_zeros_are_not_changed_under_torque_and_come_back_with_the_node(home):
    with owner_of() as owner:
        with owner.start(known_pose='wrist_roll=0.5'):
            owner.switch_on()
            assert not owner.call('set_zero').success
            assert not home.exists()
            assert owner.call('torque', False).success
            elbow = owner.position('elbow_flex')
            assert owner.call('set_zero').success
            owner.wait(lambda: owner.position('wrist_roll') > 0.4, 'the new zero')
            assert owner.position('elbow_flex') == pytest.approx(elbow, abs=2e-3)
        owner.heard.clear()
        with owner.start():
            owner.wait(lambda: owner.heard, 'joint_states')
            assert owner.position('wrist_roll') == pytest.approx(0.5, abs=2e-3)


def test_every_joint_has_a_status_whether_its_servo_answers_or_not(owner):
    owner.wait(lambda: owner.heard, 'joint_states')
    owner.bus.faults({'kind': 'status', 'id': 3, 'bits': 0x04})
    elbow = owner.statuses()['elbow_flex']
    values = {pair.key: pair.value for pair in elbow.values}
    assert 'temperature' in elbow.message
    assert (values['voltage'], values['temperature']) == ('12.0', '30')
    owner.bus.faults({'kind': 'missing', 'id': 4})
    owner.world.run(2.0)
    found = owner.statuses()
    assert {name for name, status in found.items() if status.level == DiagnosticStatus.ERROR} >= {'wrist_flex'}
    assert found['gripper'].level == DiagnosticStatus.OK
    assert not found['wrist_flex'].values, 'what was measured before is not told again'
    owner.bus.call('power', on=False)
    owner.world.run(2.0)
    found = owner.statuses()
    assert set(found) == {'', *NAMES}
    assert {status.level for status in found.values()} == {DiagnosticStatus.ERROR}


def test_a_command_beyond_a_limit_is_told(holding):
    for _ in range(150):
        holding.command(elbow_flex=1.69)
    found = holding.statuses()
    assert '1.56' in found['elbow_flex'].message
    assert {pair.key: pair.value for pair in found[''].values}['commands beyond a limit'] == '1'


def test_a_hold_before_there_is_torque_ends_the_wish_for_it():
    with owner_of() as owner:
        owner.bus.call('power', on=False)
        with owner.start(torque_at_start=True):
            owner.world.run(2.0)
            assert not owner.call('hold').success
            owner.bus.call('power', on=True)
            owner.until(ArmState.PASSIVE)
            owner.world.run(5.0)
            assert owner.torques == {False}
            owner.switch_on()
            owner.drive(elbow_flex=0.2)


def test_a_hold_is_answered_while_the_arm_is_lowered(holding):
    holding.wait(lambda: holding.bus.call('get', **TORQUE) == 1000, 'full torque')
    lowering, held = holding.ask('torque', False), []
    less = lambda: holding.bus.call('get', **TORQUE) < 900  # noqa: E731
    holding.world.once(less, lambda: held.append(holding.ask('hold')))
    holding.wait(lambda: held and held[0].done() and lowering.done(), 'the answers')
    assert held[0].result().success
    assert not lowering.result().success
    assert holding.torques == {True}


def test_the_torque_at_the_start_outlasts_a_failure():
    with owner_of('omx_f') as owner:
        owner.bus.call('put', id=12, address=48, size=4, value=2000)  # it rejects goals where it stands
        owner.bus.call('put', id=12, address=116, size=4, value=1500)
        with owner.start(profile='omx_f', torque_at_start=True):
            owner.wait(lambda: owner.log.said['error'], 'a failure')
            owner.command(joint2=0.0)
            owner.world.run(3.0)
            assert len(owner.log.said['error']) == 1, 'it is said once'
            owner.bus.call('put', id=12, address=48, size=4, value=4095)
            owner.until(ArmState.HOLDING)
            assert not owner.log.said['warning'], 'commands before there is torque are no fault'


def test_the_torque_at_the_start_waits_for_its_owner_where_the_arm_is_outside():
    with owner_of() as owner:
        owner.bus.call('motor', id=1, actual=4085.0)
        with owner.start(torque_at_start=True):
            owner.wait(lambda: owner.log.said['error'], 'the place')
            owner.bus.call('motor', id=1, actual=2048.0)
            owner.world.run(5.0)
            assert owner.torques == {False}
            owner.switch_on()


def test_the_second_driver_switches_no_torque_on_until_the_first_ends():
    first = Card('1', SERVOS, '/first', 'here', 11, 'one', since=1.0, measures=('/joint_states',))
    with owner_of() as owner:
        cards = owner.node.create_publisher(String, TOPIC, CARDS_QOS)
        with owner.start():
            for _ in range(3):
                cards.publish(String(data=json.dumps(asdict(first))))
                owner.world.run(1.0)
            assert not owner.call('torque', True).success
            owner.command(elbow_flex=0.5)
            assert owner.torques == {False}
            assert owner.heard == []
            cards.publish(String(data=json.dumps(asdict(replace(first, since=0.0)))))
            owner.switch_on()


def test_nothing_is_published_while_the_servos_are_off(holding):
    holding.bus.call('power', on=False)
    holding.world.run(2.0)
    count = len(holding.heard)
    holding.world.run(5.0)
    assert len(holding.heard) == count
    holding.bus.call('power', on=True)
    holding.until(ArmState.PASSIVE)
    assert len(holding.heard) > count
    assert holding.torques == {False}


@pytest.mark.parametrize(('on_exit', 'torques'), [('hold', {True}), ('release', {False})])
def test_its_end_leaves_the_arm_as_was_asked(on_exit, torques):
    with driven(on_exit=on_exit, torque_at_start=True) as owner:
        owner.until(ArmState.HOLDING)
        owner.driver.come_to_rest()
        assert owner.torques == torques
        assert owner.driver._arm.snapshot.state is ArmState.CLOSED
        assert not owner.log.said['error']


def test_its_end_names_servos_that_keep_their_torque():
    with driven(on_exit='release', torque_at_start=True) as owner:
        owner.until(ArmState.HOLDING)
        owner.bus.call('plug', on=False)
        owner.until(ArmState.CLOSED)
        owner.driver.come_to_rest()
        assert all(f'"{name}"' in owner.log.said['error'][-1] for name in NAMES)


def test_a_killed_driver_leaves_the_arm_held_and_the_next_one_takes_it_over():
    with owner_of() as owner:
        with owner.start(torque_at_start=True):
            owner.drive(shoulder_pan=-1.0)
            while owner.position('shoulder_pan') < 0.0:
                owner.command(shoulder_pan=1.5)
            owner.kill()
        owner.world.run(0.5)
        stopped = {id: state['actual'] for id, state in owner.bus.state().items()}
        assert stopped[1] < 2048 + 1.5 / math.tau * 4096 - 100, 'it did not go on to its command'
        with owner.start():
            owner.until(ArmState.HOLDING)
            assert owner.torques == {True}
            now = {id: state['actual'] for id, state in owner.bus.state().items()}
            assert now == pytest.approx(stopped, abs=10)
            owner.drive(shoulder_pan=0.2)


@pytest.mark.parametrize(
    ('name', 'value', 'said'),
    [
        ('profile', 'so1O1', 'so1O1'),
        ('zeros', 'elbow', 'ticks by joint'),
        ('zeros', 'elbow=3', '"elbow"'),
        ('calibration', '/none.json', '/none.json'),
        ('description', '/none.urdf', '/none.urdf'),
        ('description', 'so101_lke', '"so101_like.urdf.xacro"'),
        ('description', 'seed_arm', '"so101"'),
        ('rate', 1000.0, 'rate'),
        ('port', 'emulated', 'the parameter port is now serial_port'),
    ],
)
def test_a_wrong_parameter_ends_it_with_what_is_wrong(name, value, said):
    with owner_of() as owner, pytest.raises(IkError, match=said), owner.start(**{name: value}):
        pass
