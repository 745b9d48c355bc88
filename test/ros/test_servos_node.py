# SPDX-License-Identifier: Apache-2.0
"""ik_servos beside an emulated bus, over real DDS: commands in, measured joints out, services, its end."""

from __future__ import annotations

import math
import signal
import time

import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from emulated_bus import EmulatedBus
from processes import TIMEOUT, Running, with_parameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState
from services import answer_of
from std_srvs.srv import SetBool, Trigger
from waiting import wait_for

from ik_node.ros.qos import NEWEST, STREAM

NAMES = ['shoulder_pan', 'shoulder_lift', 'elbow_flex', 'wrist_flex', 'wrist_roll', 'gripper']


class Client:
    """A node beside ik_servos."""

    def __init__(self, *parameters: str, bus: EmulatedBus | None = None) -> None:
        port = 'emulated' if bus is None else bus.port
        weightless = [] if bus is None else ['compensate_sag:=false']
        self.driver = Running('ik_servos', *with_parameters(f'port:={port}', *weightless, *parameters))
        self.context = rclpy.Context()
        self.context.init(domain_id=self.driver.domain)
        self.node = Node('beside', context=self.context)
        self.heard: list[JointState] = []
        self.diagnostics: list[DiagnosticArray] = []
        self.node.create_subscription(JointState, 'joint_states', self.heard.append, STREAM)
        self.node.create_subscription(DiagnosticArray, '/diagnostics', self.diagnostics.append, STREAM)
        self._commands = self.node.create_publisher(JointState, 'joint_commands', NEWEST)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)

    def close(self) -> None:
        self.driver.end()
        self._executor.shutdown()
        self.node.destroy_node()
        self.context.try_shutdown()

    def wait(self, condition, what: str):
        def spun():
            self._executor.spin_once(timeout_sec=0.01)
            return condition()

        return wait_for(spun, what, TIMEOUT, every=0.0, context=lambda: self.driver.said)

    def call(self, name: str, **request):
        kind = SetBool if request else Trigger
        client = self.node.create_client(kind, f'ik_servos/{name}')
        return answer_of(client, kind.Request(**request), self.wait, name)

    def switch_on(self) -> None:
        """Switch the torque on, again where a busy computer keeps the answers of servos."""
        self.wait(lambda: self.call('torque', data=True).success, 'the torque')

    def command(self, names: list[str], positions: list[float], age: float = 0.0) -> None:
        self.wait(self._commands.get_subscription_count, 'a driver')
        message = JointState(name=names, position=positions)
        stamp = self.node.get_clock().now() - rclpy.duration.Duration(seconds=age)
        message.header.stamp = stamp.to_msg()
        self._commands.publish(message)

    def position(self, name: str) -> float:
        """The newest position of a joint."""
        return dict(zip(self.heard[-1].name, self.heard[-1].position, strict=True)).get(name, math.nan)

    def drive(self, positions: dict[str, float], tolerance: float = 0.02) -> None:
        """Command positions until the arm is measured there."""

        def there():
            self.command(list(positions), list(positions.values()))
            return all(abs(self.position(name) - value) < tolerance for name, value in positions.items())

        self.wait(lambda: self.heard and there(), f'the arm at {positions}')


@pytest.fixture
def emulated():
    with EmulatedBus('so101') as bus:
        client = Client(bus=bus)
        client.bus = bus
        yield client
        client.close()


def test_it_measures_and_moves_only_with_torque(emulated):
    emulated.wait(lambda: emulated.heard, 'joint_states')
    assert emulated.heard[-1].name == NAMES
    assert len(emulated.heard[-1].velocity) == len(emulated.heard[-1].effort) == 6
    emulated.command(['elbow_flex'], [0.5])
    emulated.driver.wait_said('command ignored: the arm is passive')
    assert emulated.call('torque', data=True).message == 'holding'
    emulated.drive({'elbow_flex': 0.5, 'wrist_roll': -0.4})
    assert emulated.bus.state()[3]['actual'] == pytest.approx(2048 + 0.5 / math.tau * 4096, abs=20)


def test_hold_and_clear_and_torque_answer_with_the_state(emulated):
    assert not emulated.call('clear').success
    # Again, where a busy computer keeps the answers of servos.
    emulated.switch_on()
    assert emulated.call('hold').success
    emulated.command(['elbow_flex'], [0.5])
    emulated.driver.wait_said('held until it is cleared')
    # A busy computer keeps the answers of servos.
    wait_for(lambda: emulated.call('clear').success, 'the clearing', TIMEOUT)
    assert not emulated.call('set_zero').success
    assert emulated.call('torque', data=False).message == 'passive'
    assert not any(state['torque'] for state in emulated.bus.state().values())


@pytest.mark.parametrize(
    ('names', 'positions', 'age', 'said'),
    [
        (['elbow_flex'], [math.nan], 0.0, 'the command of joint elbow_flex is nan'),
        (['elbow'], [0.1], 0.0, 'the command names no joint of this arm'),
        (['elbow_flex', 'elbow_flex'], [0.1, 0.2], 0.0, 'every joint may be given only once'),
        (['elbow_flex'], [], 0.0, 'one position per name'),
        (['elbow_flex'], [0.5], 3.0, 's old'),
    ],
)
def test_a_command_that_is_wrong_or_old_is_ignored_with_a_reason(emulated, names, positions, age, said):
    emulated.switch_on()
    emulated.command(names, positions, age)
    emulated.driver.wait_said('command ignored: ')
    assert said in emulated.driver.said
    assert emulated.bus.state()[3]['actual'] == pytest.approx(2048, abs=6)


def test_a_stamp_with_negative_seconds_does_not_end_the_driver(emulated):
    emulated.switch_on()
    message = JointState(name=['elbow_flex'], position=[0.5])
    message.header.stamp.sec = -1
    emulated._commands.publish(message)
    emulated.driver.wait_said('command ignored: by its stamp')
    emulated.drive({'elbow_flex': 0.1})


def test_a_known_pose_sets_the_zero_for_good(tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path))
    with EmulatedBus('so101') as bus:
        client = Client('known_pose:=elbow_flex=0.25, wrist_roll=0', bus=bus)
        try:
            client.wait(lambda: client.heard, 'joint_states')
            answer = client.call('set_zero')
            assert answer.success, answer.message
            assert str(tmp_path) in answer.message
            client.wait(lambda: abs(client.position('elbow_flex') - 0.25) < 1e-3, 'the known pose')
        finally:
            client.close()


def test_diagnostics_have_what_the_servos_report(emulated):
    emulated.bus.faults({'kind': 'status', 'id': 3, 'bits': 0x04})
    emulated.wait(
        lambda: any(
            status.name.endswith('elbow_flex') and 'temperature' in status.message
            for array in emulated.diagnostics
            for status in array.status
        ),
        'diagnostics',
    )
    by_name = {status.name: status for status in emulated.diagnostics[-1].status}
    values = {pair.key: pair.value for pair in by_name['/ik_servos/elbow_flex'].values}
    assert values['voltage'] == '12.0'
    assert values['temperature'] == '30'


def statuses(client):
    return {status.name: status for status in client.diagnostics[-1].status} if client.diagnostics else {}


def test_every_joint_has_a_status_whether_its_servo_answers_or_not(emulated):
    emulated.wait(lambda: '/ik_servos/gripper' in statuses(emulated), 'diagnostics')
    emulated.bus.faults({'kind': 'missing', 'id': 4})
    silent = '/ik_servos/wrist_flex'
    emulated.wait(lambda: statuses(emulated)[silent].level == DiagnosticStatus.ERROR, 'an error')
    found = statuses(emulated)
    assert 'its servo has not responded ' in found[silent].message
    assert not found[silent].values  # what was measured before is not told again
    emulated.wait(
        lambda: statuses(emulated)['/ik_servos/elbow_flex'].level == DiagnosticStatus.OK, 'the others'
    )
    emulated.bus.call('power', on=False)
    emulated.wait(
        lambda: all(status.level == DiagnosticStatus.ERROR for status in statuses(emulated).values()),
        'errors',
    )
    assert set(statuses(emulated)) == {'/ik_servos', *(f'/ik_servos/{name}' for name in NAMES)}


def test_a_command_beyond_a_limit_is_told(emulated):
    emulated.switch_on()
    emulated.wait(
        lambda: (
            emulated.command(['elbow_flex'], [1.69])
            or 'at its limit 1.56'
            in statuses(emulated).get('/ik_servos/elbow_flex', DiagnosticStatus()).message
        ),
        'the limit',
    )
    found = statuses(emulated)
    assert 'commanded 1.690' in found['/ik_servos/elbow_flex'].message
    assert {pair.key: pair.value for pair in found['/ik_servos'].values}['commands beyond a limit'] == '1'
    emulated.driver.wait_said('elbow_flex is at its limit 1.56, its command is beyond it')


def test_a_hold_before_there_is_torque_ends_the_wish_for_it():
    with EmulatedBus('so101') as bus:
        bus.call('power', on=False)
        client = Client('torque_at_start:=true', bus=bus)
        try:
            client.driver.wait_said('no servo answers')
            assert 'commands are rejected until clear' in client.call('hold').message
            bus.call('power', on=True)
            client.driver.wait_said('the servos are measured, their torque is off')
            time.sleep(2.5)  # it was tried every second
            assert not any(state['torque'] for state in bus.state().values())
            client.switch_on()
            client.drive({'elbow_flex': 0.2})
        finally:
            client.close()


def test_a_hold_is_answered_while_the_arm_is_lowered(emulated):
    emulated.switch_on()
    emulated.wait(lambda: emulated.bus.call('get', id=2, address=48, size=2) == 1000, 'full torque')
    client = emulated.node.create_client(SetBool, 'ik_servos/torque')
    emulated.wait(client.service_is_ready, 'torque')
    lowering = client.call_async(SetBool.Request(data=False))
    emulated.wait(lambda: emulated.bus.call('get', id=2, address=48, size=2) < 900, 'less torque')
    assert emulated.call('hold').success
    emulated.wait(lowering.done, 'the other answer')
    assert 'a hold came while the arm was lowered' in lowering.result().message
    assert all(state['torque'] for state in emulated.bus.state().values())


def test_the_torque_at_the_start_outlasts_a_failure():
    with EmulatedBus('omx_f') as bus:
        bus.call('put', id=12, address=48, size=4, value=2000)  # it rejects goals where it stands
        bus.call('put', id=12, address=116, size=4, value=1500)
        client = Client('torque_at_start:=true', 'profile:=omx_f', bus=bus)
        try:
            client.driver.wait_said('the torque is not on yet, trying again: servo 12 (joint2)')
            client.command(['joint2'], [0.0])
            time.sleep(0.5)
            bus.call('put', id=12, address=48, size=4, value=4095)
            client.driver.wait_said('the arm is held where it is')
            assert 'command ignored' not in client.driver.said
        finally:
            client.close()


def test_the_torque_at_the_start_waits_for_its_owner_where_the_arm_is_outside():
    with EmulatedBus('so101') as bus:
        bus.call('motor', id=1, actual=4085.0)
        client = Client('torque_at_start:=true', bus=bus)
        try:
            client.driver.wait_said('move it inside by hand, then switch it on with ~/torque')
            bus.call('motor', id=1, actual=2048.0)
            time.sleep(2.5)
            assert not any(state['torque'] for state in bus.state().values())
            client.switch_on()
        finally:
            client.close()


def test_its_end_names_servos_that_keep_their_torque():
    with EmulatedBus('so101') as bus:
        client = Client('on_exit:=release', 'torque_at_start:=true', bus=bus)
        try:
            client.driver.wait_said('the arm is held where it is')
            bus.call('plug', on=False)
            client.driver.wait_said('Plug it in')
            client.driver.process.send_signal(signal.SIGINT)
            assert client.driver.wait_ended() == 0
            assert 'the arm was not released' in client.driver.said
            assert '"elbow_flex"' in client.driver.said.rpartition('the arm was not released')[2]
            assert 'Traceback' not in client.driver.said
        finally:
            client.close()


def test_what_keeps_the_arm_from_working_is_said(emulated):
    emulated.switch_on()
    emulated.bus.call('power', on=False)
    emulated.driver.wait_said('Is the power supply of the arm on?')
    count = len(emulated.heard)
    emulated.wait(lambda: len(emulated.diagnostics) > 1, 'diagnostics')
    assert len(emulated.heard) <= count + 40  # nothing is published any more
    emulated.bus.call('power', on=True)
    emulated.driver.wait_said('their torque is off')


@pytest.mark.parametrize(('on_exit', 'torque'), [('hold', True), ('release', False)])
def test_its_end_leaves_the_arm_as_was_asked(on_exit, torque):
    with EmulatedBus('so101') as bus:
        client = Client(f'on_exit:={on_exit}', 'torque_at_start:=true', bus=bus)
        try:
            client.driver.wait_said('the arm is held where it is')
            client.driver.process.send_signal(signal.SIGINT)
            assert client.driver.wait_ended() == 0
            assert all(state['torque'] is torque for state in bus.state().values())
            assert 'Traceback' not in client.driver.said
            assert ('continue to hold' in client.driver.said) is torque
        finally:
            client.close()


def test_a_killed_driver_leaves_the_arm_held_and_the_next_one_takes_it_over():
    with EmulatedBus('so101') as bus:
        client = Client('torque_at_start:=true', bus=bus)
        try:
            client.drive({'shoulder_pan': -1.0})
            client.wait(lambda: client.command(NAMES[:1], [1.5]) or client.position(NAMES[0]) > 0.0, 'motion')
            client.driver.process.kill()
            client.driver.wait_ended()
        finally:
            client.close()
        time.sleep(0.5)
        stopped = {id: state['actual'] for id, state in bus.state().items()}
        assert stopped[1] < 2048 + 1.5 / math.tau * 4096 - 100  # it did not go on to its command
        second = Client(bus=bus)
        try:
            second.driver.wait_said('the arm is held where it is')
            second.wait(lambda: second.heard, 'joint_states')
            for id, state in bus.state().items():
                assert state['torque']
                assert state['actual'] == pytest.approx(stopped[id], abs=10)
            second.drive({'shoulder_pan': 0.2})
        finally:
            second.close()


@pytest.mark.parametrize(
    ('parameter', 'said'),
    [
        ('profile:=so1O1', 'neither a file nor one of'),
        ('zeros:=elbow', 'ticks by joint'),
        ('zeros:=elbow=3', 'zeros: "elbow" is not one of'),
        ('calibration:=/none.json', '/none.json'),
        ('description:=/none.urdf', '/none.urdf'),
        ('description:=so101_lke', 'did you mean "so101_like.urdf.xacro"'),
        ('description:=seed_arm', 'the description has none of the joints of profile "so101"'),
        ('rate:=1000.0', 'rate'),
    ],
)
def test_a_wrong_parameter_ends_it_with_what_is_wrong(parameter, said):
    driver = Running('ik_servos', '--ros-args', '-p', 'port:=emulated', '-p', parameter)
    assert driver.wait_ended() == 1
    assert said in driver.said
    assert 'Traceback' not in driver.said
