# SPDX-License-Identifier: Apache-2.0
"""ArmCycle: an arm whose servos were found, cycle by cycle; of the one thread that owns the port.

The servos have no watchdog of their own worth the name, so goals stay near the measured joints, and commands
that stop leave the arm where it is.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ik_node.servos.arm.activation import (
    PlaceError,
    check_place,
    has_torque,
    limit_torque,
    reset,
    switch_off,
    switch_on,
    unwatch,
    watch,
)
from ik_node.servos.arm.commands import Commands
from ik_node.servos.arm.goals import Goals
from ik_node.servos.arm.measuring import Measuring
from ik_node.servos.arm.snapshot import POWERED, WITH_GOALS, ArmState, Counts, JointMeasurement
from ik_node.servos.arm.soft_start import SoftStart
from ik_node.servos.arm.survey import ArmError, ServoSurvey, named_all
from ik_node.servos.arm.torque import Torque
from ik_node.servos.bus.transport import Transport
from ik_node.servos.calibration.zeros import ArmCalibration

SILENCE = 0.3  # [s] without an answer of a servo after which no command is followed
LOWERING = 3.0  # [s] in which the torque vanishes before it is switched off
MOST_PERIODS = 5.0  # of motion in one cycle, after one that was late
HELD = 'held until it is cleared'
NO_SERVO = 'no servo answers any more. Is the power supply of the arm on?'


@dataclass(frozen=True)
class ArmOptions:
    """How an arm is driven.

    rate [Hz] of the cycles. command_timeout [s]: without a command after which the arm holds. torque_limit:
    share of the torque that the profile allows.
    """

    rate: float = 100.0
    command_timeout: float = 0.4
    torque_limit: float = 1.0


class ArmCycle:
    """state, reason: see ArmSnapshot. measured: the joints that answered, at time [s]. torque: who has it."""

    def __init__(
        self,
        transport: Transport,
        servos: list[ServoSurvey],
        calibration: ArmCalibration,
        options: ArmOptions,
        commands: Commands,
        counts: Counts,
    ) -> None:
        self._transport, self._servos, self._calibration = transport, servos, calibration
        self._options, self._commands, self._counts = options, commands, counts
        by_name = {joint.name: joint for joint in calibration.joints}
        self._measuring = Measuring(servos, by_name, counts)
        self._goals = Goals(by_name)
        self.torque = Torque(transport, servos)
        self.measured: dict[str, JointMeasurement] = {}
        self.state, self._reason = ArmState.PASSIVE, ''
        self._missing = False  # a servo does not answer, and that is the fault
        self._lowered = False  # it was to be released, and a servo may still have torque
        self._soft_start = SoftStart()
        self.time = self._moved = time.monotonic()  # of the measurement; when goals were sent

    @property
    def reason(self) -> str:
        """Why the arm is in its state, and what blocks it."""
        if self._reason:
            return self._reason
        found = self._goals.obstacles
        if self._commands.latched and self.state is ArmState.HOLDING:
            found.append(HELD)
        found += [
            f'"{name}" reports {" and ".join(words)}' for name, words in self._measuring.lasting.items()
        ]
        return '; '.join(found)

    @property
    def _not_held(self) -> str:
        """Why a passive arm can neither hold nor be cleared."""
        if self.torque.on:
            return f'this driver does not hold the arm: {self._reason}'
        return 'the torque is off: the arm holds nothing'

    @property
    def goals(self) -> Mapping[str, float]:
        """Where the servos go [rad or m], by joint."""
        return self._goals.positions

    @property
    def limited(self) -> Mapping[str, tuple[float, float]]:
        """The joints that are commanded beyond a limit: that limit and the command [rad or m]."""
        return self._goals.limited

    def take_over(self) -> None:
        """Go on holding an arm that was left with torque, unless it was to be released. Raises ArmError."""
        on = [one for one in self._servos if has_torque(self._transport, one)]
        self.torque.on = {one.joint.name for one in on}
        self._commands.torque_off &= bool(on)
        if self._commands.torque_off:
            self._reason = f'torque is still on in {named_all(one.joint for one in on)}: switch it off again'
        elif len(on) == len(self._servos):
            try:
                self._power()
            except PlaceError as error:  # its owner can still switch the torque off
                self._reason = str(error)
        elif on:
            self._reason = f'torque is on in {named_all(one.joint for one in on)} only'

    def step(self) -> None:
        """Measure, and move the goals. Raises PortError."""
        self._measure()
        self._watch(self.time)
        if self.state in WITH_GOALS:
            now = time.monotonic()
            self._move(now, min(now - self._moved, MOST_PERIODS / self._options.rate))
        self._moved = time.monotonic()  # what is sent late must not make the next step longer

    def _measure(self) -> None:
        self.time = time.monotonic()
        self.measured = self._measuring.read(self._transport, self.time)

    def _watch(self, now: float) -> None:
        """Look for servos that do not answer, and for one that has lost its torque."""
        silent = self._measuring.silent(now, SILENCE)
        if len(silent) == len(self._servos):
            self._become(ArmState.SILENT, NO_SERVO)
        elif silent:
            self._missing |= self._fault(self._measuring.why_not(silent))
        elif self._missing:
            self._missing, self._reason = False, ''
            if self.state is ArmState.FAULTED:
                self._hold()
                for _ in self._servos[1:]:
                    self._check_torque()
        if self.state in WITH_GOALS:
            self._check_torque()

    def _check_torque(self) -> None:
        """Check the torque of one servo per cycle."""
        before = self.torque.loss
        self.torque.check()
        if self._lowered and not self.torque.on:
            unwatch(self._transport, self._servos)
            self._released()
        elif self.torque.loss:
            if not self._fault(self.torque.loss) and self._reason == before:
                self._reason = self.torque.loss
        elif self.state in POWERED and self.torque.stopped():
            with contextlib.suppress(ArmError):  # a servo does not answer: again in the next cycles
                watch(self._transport, self._servos)
            self._hold()

    def _move(self, now: float, dt: float) -> None:
        commands: dict[str, float] = {}
        if self._commands.latched or self.state is ArmState.FAULTED:
            self._commands.clear()
        else:
            commands = self._commands.fresh(self._options.command_timeout)
        if self.state is ArmState.FOLLOWING and not commands:
            self._hold()
        elif self.state is ArmState.HOLDING and commands:
            self._become(ArmState.FOLLOWING, '')
        limited = set(self._goals.limited)
        torque = self._soft_start.grow(self._transport, self._options.torque_limit, now)
        self._goals.follow(commands, self.measured, dt, torque)
        self._counts.limited += len(self._goals.limited.keys() - limited)
        self._write_goals()

    def _write_goals(self) -> None:
        data, positions = {}, self._goals.positions
        register = self._servos[0].model['goal_position']
        low, high = register.range
        for joint in self._calibration.joints:
            if joint.name in positions:
                tick = min(max(joint.tick(positions[joint.name]), low), high)
                data[joint.profile.id] = register.encode(tick)
        if data:
            self._transport.sync_write(register.address, data)

    # Requests

    def switch_on(self) -> None:
        """Switch the torque on where the arm is. Raises ArmError, and the torque is as before."""
        self._power()
        self._commands.release()

    def _power(self) -> None:
        for servo, joint in zip(self._servos, self._calibration.joints, strict=True):
            check_place(self._transport, servo, joint)
        before = self.torque.on
        self.torque.on = {servo.joint.name for servo in self._servos}
        try:
            powered = switch_on(self._transport, self._servos, self._options.torque_limit)
        except ArmError:
            self.torque.look(before)
            raise
        self.torque.switched_on()
        self._lowered = False
        self._soft_start.begin((one.servo, one.share) for one in powered)
        self._measuring.know({one.servo.joint.name: one.present for one in powered}, self._soft_start.since)
        self._measure()
        self._moved = self.time
        self._goals.begin({one.servo.joint.name: one.goal for one in powered})
        self._hold()

    def switch_off(self, published: Callable[[], None], holds: int) -> None:
        """Lower the arm slowly, and switch the torque off; published is called meanwhile.

        A hold ends that if there are more than holds by then: than when it was asked for. Raises ArmError.
        """
        held, limit = self.state in WITH_GOALS, self._options.torque_limit
        self._commands.clear()
        silent = 0.0 if self._lowered else limit
        first = self._soft_start.shares(self._transport, self._servos, limit, silent)
        is_left, begin = self.torque.is_left(), time.monotonic()
        while is_left and (passed := time.monotonic() - begin) < LOWERING:
            shares = {id: share * (1.0 - passed / LOWERING) for id, share in first.items()}
            limit_torque(self._transport, self._servos, shares)
            self._measure()
            published()
            if held and self._commands.holds > holds:
                self._soft_start.begin((one, shares[one.joint.id]) for one in self._servos)
                self._goals.hold(self.measured)
                raise ArmError('a hold came while the arm was lowered: its torque stays on')
            time.sleep(1.0 / self._options.rate)
        try:
            switch_off(self._transport, self._servos)
        except ArmError as error:  # without strength it can follow nothing
            self.torque.look(self.torque.on)
            self._soft_start.end()
            self._missing, self._lowered = False, True
            self._become(ArmState.FAULTED, str(error))
            raise
        self._released()

    def hold(self) -> None:
        """Hold the arm where it is measured, and take no commands until clear. Raises ArmError."""
        if self.state is ArmState.PASSIVE:
            self._commands.release()
            raise ArmError(self._not_held)
        self._commands.latch()
        if self.state in POWERED:
            self._hold()

    def clear(self) -> None:
        """Take commands again; the torque of overloaded servos is off for a moment. Raises ArmError."""
        if self.state is ArmState.PASSIVE:
            raise ArmError(self._not_held)
        for servo in self._servos:
            if 'overload' in self._measuring.lasting.get(servo.joint.name, ()):
                reset(self._transport, servo)
        self.switch_on()

    def come_to_rest(self) -> None:
        """Send the servos where their joints are: nobody commands them any more. Raises PortError."""
        if self.state in POWERED:
            self._hold()
            self._write_goals()
        if self.state in WITH_GOALS:
            unwatch(self._transport, self._servos)

    # Changes of state

    def _released(self) -> None:
        self._goals.forget()
        self._soft_start.end()
        self.torque.switched_off()
        self._lowered = self._commands.torque_off = False
        self._become(ArmState.PASSIVE, '')

    def _hold(self, state: ArmState = ArmState.HOLDING, reason: str = '') -> None:
        self._commands.clear()
        self._goals.hold(self.measured)
        self._become(state, reason)

    def _fault(self, reason: str) -> bool:
        """Take no commands for a reason; return whether there was none before."""
        if self.state in POWERED:
            self._hold(ArmState.FAULTED, reason)
            return True
        if self.state is ArmState.PASSIVE and not self._reason:
            self._reason = reason
            return True
        return False

    def _become(self, state: ArmState, reason: str) -> None:
        self.state, self._reason = state, reason
