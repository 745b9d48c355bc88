# SPDX-License-Identifier: Apache-2.0
"""ik_servos: joint_commands in, servos on a bus, joint_states out. It solves nothing: of a description it
takes limits and weights.

The thread of the arm steps it and publishes what it measures; callbacks leave commands and requests for it.
What takes time is awaited, so that neither a lowering nor servos that do not answer keep a hold waiting.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from builtin_interfaces.msg import Time as Stamp
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.task import Future as Awaited
from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from ik_node.control.requests import Level
from ik_node.errors import IkError, InputError, join_names, path_text, quoted
from ik_node.model.inertia import Weight
from ik_node.model.urdf.description import load_description, read_from
from ik_node.model.urdf.reader import read_urdf
from ik_node.ros.conversions import NS_PER_S, age_of, values_by_name
from ik_node.ros.graph import graph
from ik_node.ros.interfaces import (
    NEWEST,
    STREAM,
    MessageInfo,
    PublishedTopic,
    Remarks,
    Service,
    SubscribedTopic,
)
from ik_node.ros.neighbours import SERVOS, Neighbours
from ik_node.ros.parameters import declare, on_change
from ik_node.ros.reports import diagnostic
from ik_node.ros.run import ClosableNode, SideNode, run
from ik_node.servos.arm.arm import SILENCE, ArmOptions, ServoArm
from ik_node.servos.arm.registers import ArmError, JointMeasurement
from ik_node.servos.arm.states import NOT_MEASURED, POWERED, WITH_GOALS, ArmSnapshot, ArmState
from ik_node.servos.arm.torque import PlaceError
from ik_node.servos.calibration.owner_zeros import (
    factors_path,
    load_factors,
    load_zeros,
    owner_zeros,
    store_factors,
    store_zeros,
    ticks_now,
    zeros_path,
)
from ik_node.servos.calibration.profile import ArmProfile, read_profile
from ik_node.servos.calibration.recorded import Recorded, find_file, folder_of_lerobot, read_calibration
from ik_node.servos.calibration.zeros import ArmCalibration, calibrate, check_names, read_by_joint, read_zeros
from ik_node.servos.ports import EMULATED, EmulatedArm, arm_at, opener
from ik_node.share import SUFFIX, robot_file, share_path
from ik_node.steady import steady

from .settings import LEROBOT, MEMORY, ServoSettings

JOINT_COMMANDS = SubscribedTopic(
    'joint_commands',
    'sensor_msgs/JointState',
    'positions by joint name; joints that are not named keep theirs',
    NEWEST,
)
JOINT_STATES = PublishedTopic(
    'joint_states',
    'sensor_msgs/JointState',
    'measured position, velocity, and as effort the load: a share of the torque',
    STREAM,
)
DIAGNOSTICS = PublishedTopic(
    '/diagnostics',
    'diagnostic_msgs/DiagnosticArray',
    'state, reason, rate, bus errors; voltage, temperature and load of each servo',
    STREAM,
)
TORQUE = Service(
    '~/torque',
    'std_srvs/SetBool',
    'on: holds the arm where it is. Off: lowers the torque for 3 s and removes it, unless `~/hold` is '
    'called; support the arm. While it is lowered, "on" waits until the torque is off',
)
HOLD = Service(
    '~/hold',
    'std_srvs/Trigger',
    'holds the arm at once, and rejects commands until `~/clear` or `~/torque`, even if the bus fails in the '
    'meantime. While the arm is passive it fails, but cancels `torque_at_start`',
)
CLEAR = Service('~/clear', 'std_srvs/Trigger', 'ends a hold or a fault')
SET_ZERO = Service('~/set_zero', 'std_srvs/Trigger', 'stores that the arm is in `known_pose`')

LEVELS = {
    ArmState.CLOSED: Level.ERROR,
    ArmState.SILENT: Level.ERROR,
    ArmState.FAULTED: Level.ERROR,
    ArmState.PASSIVE: Level.WARN,
    ArmState.LOWERING: Level.WARN,
}


class Diagnostics:
    """Diagnostics made of snapshots. take may be called from another thread than statuses."""

    def __init__(self, name: str, joints: Iterable[str]) -> None:
        """name: of the node."""
        self._name, self._joints = name, tuple(joints)
        self._arm = ArmSnapshot(steady(), ArmState.CLOSED, 'not started')
        self._answers: dict[str, tuple[float, JointMeasurement]] = {}  # the last of each joint, and when [s]

    def take(self, arm: ArmSnapshot) -> None:
        """Take note of a snapshot."""
        self._answers.update({name: (arm.time, joint) for name, joint in arm.joints.items()})
        self._arm = arm

    def statuses(self) -> list[DiagnosticStatus]:
        """Return the status of the arm, and that of every joint."""
        arm = self._arm
        level = LEVELS.get(arm.state, Level.WARN if arm.reason else Level.OK)
        values: dict[str, Any] = {
            'state': arm.state.value,
            'torque': 'unknown' if arm.state in NOT_MEASURED else f'{len(arm.powered)} of {len(self._joints)} joints',
            'rate': f'{arm.rate:.1f}',
            'retries': arm.retries,
            'commands beyond a limit': arm.beyond,
        }
        values.update({f'bus errors: {fault}': count for fault, count in arm.faults.items()})
        status = diagnostic(level, self._name, arm.reason or arm.state.value, values)
        return [status, *(self._of_joint(arm, name) for name in self._joints)]

    def _of_joint(self, arm: ArmSnapshot, name: str) -> DiagnosticStatus:
        own = f'{self._name}/{name}'
        when, joint = self._answers.get(name, (0.0, None))
        if joint is None:
            return diagnostic(Level.ERROR, own, 'its servo has not responded yet', {})
        silent = steady() - when
        if silent > SILENCE:
            return diagnostic(Level.ERROR, own, f'its servo has not responded for {silent:.1f} s', {})
        values = {
            'position': f'{joint.position:.4f}',
            'tick': joint.tick,
            'voltage': f'{joint.voltage:.1f}',
            'temperature': f'{joint.temperature:.0f}',
            'load': f'{joint.load:.3f}',
            'torque': 'on' if name in arm.powered else 'off',
        }
        if name in arm.leads:
            lead, trim = arm.leads[name]
            values |= {'lead': f'{lead:.4f}', 'trim': f'{trim:.4f}'}
        warnings = list(joint.conditions)
        if name in arm.limited:
            limit, command = arm.limited[name]
            warnings.append(f'at its limit {limit:.3f}, commanded {command:.3f}')
        if name in arm.warnings:
            warnings.append(arm.warnings[name])
        level = Level.WARN if warnings else Level.OK
        return diagnostic(level, own, ', '.join(warnings) or 'ok', values)


CHANGED = 0.02  # of a factor, at which it is stored anew


class Calibrator:
    """Calibrates an arm from what its servos have stored; info, warning: called with sentences.

    description: its path, None without one. torques: of its gravity at positions, None if the sag is not to
    be compensated. factors: what was learned of the sag, from the first calibration on.
    """

    def __init__(
        self,
        profile: ArmProfile,
        settings: ServoSettings,
        info: Callable[[str], None],
        warning: Callable[[str], None],
    ) -> None:
        """Raises IkError for settings that are wrong."""
        self._profile, self._settings, self._info, self._warning = profile, settings, info, warning
        self._zeros = read_zeros(settings.zeros)
        check_names('zeros:', self._zeros, profile)
        given = settings.calibration
        self._written = None if given in (MEMORY, LEROBOT) else read_calibration(given, profile)
        self.description = _path_of(settings.description or profile.robot)
        self._limits, weight = _described(self.description, settings.xacro_args, profile)
        self.torques = weight if settings.compensate_sag else None
        self.factors: dict[str, float] = {}
        self._stored: dict[str, float] = {}  # of the factors
        self._learning: Path | None = None  # the file for them
        self._memory: Mapping[str, Recorded] = {}
        self._logged: tuple[list[str], list[str]] = [], []

    def __call__(self, memory: Mapping[str, Recorded]) -> ArmCalibration:
        """Return the calibration for what the servos have stored. Raises InputError and PortError."""
        self._memory = memory
        self._recall()
        zeros = {**ticks_now(self._profile, load_zeros(self._path()), memory), **self._zeros}
        found = calibrate(self._profile, memory, self._settings.zero_from, zeros, self._limits, self._file(memory))
        messages = found.notes, found.warnings
        if messages != self._logged:
            self._logged = messages
            for line in found.notes:
                self._info(line)
            for line in found.warnings:
                self._warning(line)
        return found

    def _path(self) -> Path:
        """Return the file for the zeros of the arm at the port. Raises PortError."""
        return zeros_path(self._profile.name, arm_at(self._settings.serial_port))

    def _recall(self) -> None:
        """Continue with what was learned of the arm at the port, which may be another one than before."""
        if self._settings.serial_port == EMULATED:
            return
        path = factors_path(self._profile.name, arm_at(self._settings.serial_port))
        if path == self._learning:
            return
        try:
            self.store_learned()
        except InputError as error:
            self._warning(f'the learned compensation of sag is not stored: {error}')
        self.factors.clear()  # first: another thread may be about to store
        self._stored, self._learning = load_factors(path), path
        self.factors.update(self._stored)

    def store_learned(self) -> None:
        """Store what was learned of the sag of a real arm, if that has changed. Raises InputError."""
        path, factors = self._learning, dict(self.factors)  # in this order, see _recall
        if path is None:
            return
        if any(abs(factor - self._stored.get(name, 1.0)) > CHANGED for name, factor in factors.items()):
            self._stored = factors  # tried once, also if it fails
            store_factors(path, factors)

    def _file(self, memory: Mapping[str, Recorded]) -> Mapping[str, Recorded] | None:
        """Return what a file of LeRobot has recorded, None if none is wanted."""
        if self._settings.calibration != LEROBOT:
            return self._written
        path = find_file(self._profile, memory)
        if path is None:
            raise InputError(
                f'no calibration file of LeRobot for profile {self._profile.name} is in '
                f'{path_text(folder_of_lerobot())}; folders: {join_names(self._profile.lerobot)}'
            )
        return read_calibration(path, self._profile)

    def store_pose(self, ticks: Mapping[str, int], pose: str) -> Path:
        """Store that joints are in a known pose at these ticks; return the file. Raises InputError."""
        known = read_pose(pose, self._profile.names)
        if not known:
            raise InputError(
                'known_pose is empty: set it to the positions at which you hold the joints whose zeros are '
                f"to be set, such as '{self._profile.names[0]}=0'"
            )
        zeros = owner_zeros(self._profile, known, ticks, self._memory)
        path = self._path()
        store_zeros(path, zeros)
        return path


def read_pose(text: str, names: tuple[str, ...]) -> dict[str, float]:
    """Return the positions [rad or m] by joint of a pose such as 'elbow_flex=1.57'. Raises InputError."""
    found: dict[str, float] = {}
    for name, position in read_by_joint(text):
        if name not in names or position is None or not abs(position) <= 10.0 or name in found:
            raise InputError(
                f"known_pose must be positions by joint, each once, such as '{names[0]}=0.5', got {text!r}; "
                f'joints: {join_names(names, name)}'
            )
        found[name] = position
    return found


def _path_of(given: str) -> Path | None:
    """Return the file of a description, given as its path or as the name of a shipped robot."""
    if not given:
        return None
    path = Path(robot_file(given)).expanduser()
    if given.isidentifier() and not path.is_file():  # the error then lists the shipped ones
        path = share_path('urdf').joinpath(f'{given}{SUFFIX}')
    return path


def _described(
    path: Path | None, arguments: str, profile: ArmProfile
) -> tuple[dict[str, tuple[float, float]], Weight | None]:
    """Return the limits of the joints that a description has, by name, and its weight.

    Raises IkError if it has none of the joints.
    """
    if path is None:
        return {}, None
    text = load_description(path, arguments)
    with read_from(path):
        robot = read_urdf(text)
    joints = robot.joints
    profile.check_described(joints)
    limits = {name: (joints[name].lower, joints[name].upper) for name in profile.names if name in joints}
    return limits, Weight(robot, text)


FINDING = 'other drivers of the same joints are looked for: try again in a second'
MAX_LOST = 1000  # messages in a row of one publisher
OTHER_CLOCK = 5.0  # [s]: an age beyond that is more likely a clock that is wrong
AFTER = 2.0  # [s] since the commands of another publisher, within which two publishers send


class IncomingCommands:
    """Checks the commands of one topic; of one thread.

    A stamp of zero means now, so the time at which the middleware sent a message counts too. rclpy does not
    report who sent a message, but each publisher numbers its messages: numbers that do not continue are those
    of another publisher.
    """

    def __init__(self, node: Node, topic: str, timeout: float) -> None:
        """timeout: how old a command may be [s]."""
        self._node, self._topic, self._timeout = node, node.resolve_topic_name(topic), timeout
        self._system = Clock(clock_type=ClockType.SYSTEM_TIME)
        self._number = -1  # of the last message
        # When the last one was taken, and when one was contested (steady).
        self._taken = self._contested = -math.inf

    @property
    def contested(self) -> bool:
        """Whether two publishers send."""
        return steady() < self._contested + AFTER

    def check(self, stamp: Stamp, info: MessageInfo) -> None:
        """Raise InputError unless a command with a stamp may be carried out."""
        self._check_age(age_of(stamp, self._node.get_clock().now().nanoseconds), 'its stamp')
        if sent := info.get('source_timestamp') or 0:
            self._check_age((self._system.now().nanoseconds - sent) / NS_PER_S, 'the time at which it was sent')
        self._check_sender(info.get('publication_sequence_number'), steady())

    def _check_age(self, age: float, by: str) -> None:
        if abs(age) <= self._timeout:
            return
        where = f'{age:.2f} s old' if age > 0.0 else f'{-age:.2f} s in the future'
        clocks = ''
        if age < 0.0 or age > OTHER_CLOCK:
            clocks = (
                '; if it was sent just now, the clocks of the two computers differ by that: synchronise them '
                '(timedatectl shows whether they are), and set use_sim_time alike in all nodes'
            )
        raise InputError(f'by {by} it is {where}, but command_timeout allows {self._timeout:g} s{clocks}')

    def _check_sender(self, number: int | None, now: float) -> None:
        broken = number is None or not self._number < number <= self._number + MAX_LOST
        recently = number is None or now < max(self._taken, self._contested) + AFTER
        # A publisher that was restarted is alone.
        if broken and recently and graph.count_publishers(self._node, self._topic) > 1:
            self._contested = now
        self._number = self._number if number is None else number
        if self.contested:
            names = ' and '.join(graph.publishing_nodes(self._node, self._topic))
            raise InputError(f'{names} publish {self._topic}: the arm holds its pose until only one of them does')
        self._taken = now


class ServosNode(ClosableNode):
    """The node; options are those of rclpy's Node. Raises IkError if it cannot start with its parameters."""

    def __init__(self, **options: Any) -> None:
        super().__init__('ik_servos', **options)
        self._settings = settings = declare(self, ServoSettings)
        profile = read_profile(settings.profile)
        log = self.get_logger()
        self._calibrator = calibrator = Calibrator(profile, settings, log.info, log.warning)
        emulated = settings.serial_port == EMULATED
        self._emulated = (
            EmulatedArm(settings.profile, calibrator.description, settings.xacro_args) if emulated else None
        )
        port = settings.serial_port if self._emulated is None else self._emulated.port
        self._warned: dict[str, str] = {}
        self._remarks = Remarks()
        self._reported, self._ending = (ArmState.CLOSED, ''), False
        self._torque_pending = settings.torque_at_start
        self._blocked = FINDING  # why this driver must not be in charge of the arm, '' if it is
        self._attempt: Future[None] | None = None  # to switch the torque on
        self._files = ThreadPoolExecutor(1, 'files')
        self._urgent = SideNode(self, 'hold')  # what holds the arm waits behind no message
        beside = ReentrantCallbackGroup()  # while one waits, the others are called
        self._done = self._urgent.node.create_guard_condition(lambda: None, beside)  # wakes the executor
        self._state_reports = Diagnostics(self.get_fully_qualified_name(), profile.names)
        self._states = JOINT_STATES.publisher(self)
        self._diagnostics = DIAGNOSTICS.publisher(self)
        self._arm = ServoArm(
            opener(port, profile),
            profile,
            self._calibrator,
            ArmOptions(settings.rate, settings.command_timeout, settings.torque_limit),
            self._publish,
            calibrator.torques,
            calibrator.factors,
        )
        self._neighbours = Neighbours(
            self,
            SERVOS,
            self._on_neighbours,
            since=time.time(),
            waits=True,
            measures=[JOINT_STATES.name],
            joints=profile.names,
        )
        self._incoming = IncomingCommands(self, JOINT_COMMANDS.name, settings.command_timeout)
        JOINT_COMMANDS.subscription(self, self._on_command, informed=True)
        for service, serve in (
            (TORQUE, self._torque),
            (HOLD, self._hold),
            (CLEAR, self._clear),
            (SET_ZERO, self._zero),
        ):
            service.provide(self, serve, group=beside, by=self._urgent.node)
        self.create_timer(1.0, self._diagnose)
        self.create_timer(60.0, lambda: self._files.submit(self._store_learned))
        on_change(self, lambda: self._settings, lambda new: read_pose(new.known_pose, profile.names), self._apply)

    def start_threads(self) -> None:
        """Start the threads; that of the arm does what step() does once."""
        self._arm.start()
        self._urgent.start()

    def step(self) -> float:
        """Command and measure the arm once; return how long the next step may wait [s]."""
        return self._arm.step()

    def _on_neighbours(self) -> None:
        for sentence in self._neighbours.announce():
            self.get_logger().error(sentence)
        self._blocked = self._neighbours.ahead() or ('' if self._neighbours.settled else FINDING)
        if self._neighbours.own.waits != bool(self._blocked):
            self._neighbours.update(waits=bool(self._blocked))

    def _check_alone(self) -> None:
        """Raise ArmError while another driver is in charge: both would move the same joints."""
        if self._blocked:
            raise ArmError(self._blocked)

    def _apply(self, settings: ServoSettings) -> None:
        self._settings = settings

    def come_to_rest(self) -> None:
        """Hold the arm or lower it, as on_exit says."""
        self._ending, self._torque_pending, log = True, False, self.get_logger()
        release = self._settings.on_exit == 'release'
        responds = self._arm.snapshot.state not in NOT_MEASURED
        if release and self._arm.snapshot.powered:
            log.info('lowering the arm')
        try:
            self._arm.stop(release)
        except IkError as error:
            log.error(f'the arm was not released: {error}')
            return
        finally:
            self._store_learned()
        left = [name for name in self._arm.profile.names if name in self._arm.snapshot.powered]
        if left and not responds:
            log.warning('the servos do not respond, and may still hold the arm: switch their power off')
        elif len(left) == len(self._arm.profile.names):
            log.info('the servos continue to hold the arm: switch their power off, or start ik_servos again')
        elif left:
            log.warning(f'only {join_names(left)} still have torque: support the arm, and switch its power off')

    def close(self) -> None:
        """End the thread of the arm, and the node."""
        self._arm.stop()
        self._urgent.close()
        self._files.shutdown(wait=False, cancel_futures=True)
        if self._emulated is not None:
            self._emulated.close()
        self.destroy_node()

    # Commands

    def _on_command(self, message: JointState, info: MessageInfo) -> None:
        if self._blocked:
            self._arm.drop_commands()
            return
        if self._arm.ended:  # nothing that a user could change
            return
        try:
            self._incoming.check(message.header.stamp, info)
            self._arm.command(values_by_name(message))
        except IkError as error:
            if self._incoming.contested:
                self._arm.drop_commands()
            starting = self._torque_pending and self._arm.snapshot.state is ArmState.PASSIVE
            if starting and isinstance(error, ArmError):
                return
            if self._remarks.new(sentence := f'command ignored: {error}'):
                self.get_logger().warning(sentence)

    async def _torque(self, request: SetBool.Request, answer: SetBool.Response) -> SetBool.Response:
        self._torque_pending = False
        return await self._respond(answer, self._set_torque(request.data))

    async def _set_torque(self, on: bool) -> None:
        if on:
            self._check_alone()
        await self._result(self._arm.request_torque(on))

    async def _hold(self, _: Trigger.Request, answer: Trigger.Response) -> Trigger.Response:
        self._torque_pending = False
        return await self._respond(answer, self._result(self._arm.request_hold()))

    async def _clear(self, _: Trigger.Request, answer: Trigger.Response) -> Trigger.Response:
        return await self._respond(answer, self._clear_alone())

    async def _clear_alone(self) -> None:
        self._check_alone()
        await self._result(self._arm.request_clear())

    async def _zero(self, _: Trigger.Request, answer: Trigger.Response) -> Trigger.Response:
        return await self._respond(answer, self._set_zero())

    async def _set_zero(self) -> str:
        arm = self._arm.snapshot
        if arm.state in WITH_GOALS or arm.powered:
            raise InputError('the zero can only be set while the torque is off')
        if not arm.ticks:
            raise InputError(arm.reason or 'no servo has answered')
        pose = self._settings.known_pose
        path = await self._result(self._files.submit(self._calibrator.store_pose, arm.ticks, pose))
        if arm.state is ArmState.PASSIVE:
            await self._result(self._arm.request_calibration())
        return f'stored in {path}'

    async def _respond(self, answer: Any, action: Coroutine[Any, Any, str | None]) -> Any:
        try:
            text = await action
            answer.success, answer.message = True, text or self._arm.snapshot.state.value
        except IkError as error:
            answer.success, answer.message = False, str(error)
        return answer

    async def _result(self, future: Future[Any]) -> Any:
        """Return, or raise, what another thread will."""
        done = Awaited()

        def finish(ended: Future[Any]) -> None:
            error = ended.exception()
            if error is None:
                done.set_result(ended.result())
            else:
                done.set_exception(error)
            if self.context.ok():
                self._done.trigger()

        future.add_done_callback(finish)
        return await done

    def _switch_on(self) -> None:
        """Switch the torque on at the start, if that is set; again while the bus prevents it."""
        idle = self._attempt is None or self._attempt.done()
        if idle and self._torque_pending and not self._blocked and self._arm.snapshot.state is ArmState.PASSIVE:
            self._attempt = self._arm.request_torque(True)
            self._attempt.add_done_callback(self._on_attempt)

    def _on_attempt(self, attempt: Future[None]) -> None:
        error = attempt.exception()
        if error is None:
            self._torque_pending = False
        elif isinstance(error, PlaceError):  # not while a hand moves it inside
            self._torque_pending = False
            self.get_logger().error(f'the torque stays off: {error}, then switch it on with ~/torque')
        elif self._remarks.new(sentence := f'the torque is not on yet, trying again: {error}'):
            self.get_logger().error(sentence)

    # What is measured; in the thread of the arm

    def _publish(self, arm: ArmSnapshot) -> None:
        self._state_reports.take(arm)
        refuses = refusal(arm)
        if refuses != self._neighbours.own.refuses and self.context.ok():
            self._neighbours.update(refuses=refuses)
        if arm.joints and not self._blocked and self.context.ok():
            message = JointState(name=list(arm.joints))
            age = int((steady() - arm.time) * NS_PER_S)
            now = self.get_clock().now().nanoseconds
            message.header.stamp = Time(nanoseconds=max(now - age, 0)).to_msg()
            message.position = [joint.position for joint in arm.joints.values()]
            message.velocity = [joint.velocity for joint in arm.joints.values()]
            message.effort = [joint.load for joint in arm.joints.values()]
            self._states.publish(message)
        if (arm.state, arm.reason) != self._reported:
            self._log_state(arm)

    def _log_state(self, arm: ArmSnapshot) -> None:
        """Log a change of the state, but not each begin and end of motions."""
        before, self._reported = self._reported, (arm.state, arm.reason)
        log = self.get_logger()
        if self._ending:
            return
        if arm.state is ArmState.LOWERING:
            log.info(arm.reason)
        elif arm.reason and arm.state not in POWERED | {ArmState.PASSIVE}:
            log.error(arm.reason)
        elif arm.reason and (arm.state is ArmState.PASSIVE or self._remarks.new(arm.reason)):
            log.warning(arm.reason)
        elif arm.state is ArmState.PASSIVE and before[0] is not ArmState.PASSIVE:
            log.info('the servos are measured, their torque is off')
        elif arm.state is ArmState.HOLDING and before[0] is not ArmState.FOLLOWING:
            log.info('the arm is held where it is')

    def _store_learned(self) -> None:
        try:
            self._calibrator.store_learned()
        except IkError as error:
            self.get_logger().warning(f'the learned compensation of sag is not stored: {error}')

    def _diagnose(self) -> None:
        self._switch_on()
        warnings = self._arm.snapshot.warnings
        for name in warnings.keys() - self._warned.keys():
            self.get_logger().warning(f'{quoted(name)}: {warnings[name]}')
        self._warned.update(warnings)
        array = DiagnosticArray(status=self._state_reports.statuses())
        array.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(array)


def refusal(arm: ArmSnapshot) -> str:
    """Return why an arm takes no commands, and what to do, for the users of ik_node; '' if it takes them."""
    cleared = 'press Clear on the page, or call ~/resume'
    if arm.state is ArmState.FAULTED:
        return f'the driver has stopped the servos: {arm.reason}; {cleared}'
    if arm.state in NOT_MEASURED:
        return f'the driver does not measure the servos: {arm.reason}'
    if arm.state not in POWERED:
        return f'the servos have no torque: {arm.reason or "switch it on with ik_servos/torque or on the page"}'
    return f'the driver is on hold: {cleared}' if arm.latched else ''


def main() -> int:
    """Run ik_servos."""
    return run('ik_servos', ServosNode)
