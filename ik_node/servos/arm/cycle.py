# SPDX-License-Identifier: Apache-2.0
"""ArmCycle: an arm whose servos were found, cycle by cycle; of the one thread that owns the port.

The servos have no watchdog of their own worth the name, so goals stay near the measured joints, and commands
that stop leave the arm where it is.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass

from ik_node.servos.arm.activation import (
    LeftOnError,
    PlaceError,
    Shares,
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
from ik_node.servos.arm.lowering import lower
from ik_node.servos.arm.measuring import Measuring
from ik_node.servos.arm.sag import Sag, Torques, compliances
from ik_node.servos.arm.snapshot import POWERED, WITH_GOALS, ArmState, Counts, JointMeasurement
from ik_node.servos.arm.soft_start import SoftStart
from ik_node.servos.arm.survey import ArmError, ServoSurvey, wrong_supply
from ik_node.servos.arm.torque import Torque
from ik_node.servos.bus.transport import Transport
from ik_node.servos.calibration.zeros import ArmCalibration
from ik_node.steady import steady

SILENCE = 0.3  # [s] without an answer of a servo after which no command is followed
MOST_PERIODS = 5.0  # of motion in one cycle, after one that was late
LOOK = 8  # cycles from one look at what other programs may change to the next: each servo about once a second
HELD = 'held until it is cleared'
BEING_OFF = 'the torque is being switched off'
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
    """state, reason: see ArmSnapshot. measured: the joints that answered, at time [s]. torque: who has it.

    goals: where the servos go.
    """

    def __init__(
        self,
        transport: Transport,
        servos: list[ServoSurvey],
        calibration: ArmCalibration,
        options: ArmOptions,
        commands: Commands,
        counts: Counts,
        torques: Torques | None = None,
        factors: MutableMapping[str, float] | None = None,
    ) -> None:
        """torques, factors: against sag, see Sag."""
        self._transport, self._servos, self._calibration = transport, servos, calibration
        self._options, self._commands, self._counts = options, commands, counts
        by_name = {joint.name: joint for joint in calibration.joints}
        self._measuring = Measuring(servos, by_name, counts)
        sag = Sag(torques, compliances(servos), {} if factors is None else factors)
        self.goals = Goals(by_name, sag)
        self.torque = Torque(transport, servos)
        self.measured: dict[str, JointMeasurement] = {}
        self.state, self._reason = ArmState.PASSIVE, ''
        self._cycles = 0
        self._missing = False  # a servo does not answer, and that is the fault
        self._soft_start = SoftStart()
        self.time = self._moved = steady()  # of the measurement; when goals were sent

    @property
    def reason(self) -> str:
        """Why the arm is in its state, and what blocks it."""
        found = [self._reason] if self._reason else []
        if self.state is ArmState.PASSIVE and self.torque.on:
            found.append(self.torque.left(self._commands.torque_off))
        if found:
            return '; '.join(found)
        found = self.goals.obstacles
        if self._commands.latched and self.state is ArmState.HOLDING:
            found.append(HELD)
        found += [
            f'"{name}" reports {" and ".join(words)}{self._supply(name)}'
            for name, words in self._measuring.lasting.items()
        ]
        return '; '.join(found)

    def _supply(self, name: str) -> str:
        """Return what helps against the supply of a joint, '' if it is right.

        Without the voltage: it changes all the time, and a message is said once.
        """
        allowed = next(servo.volts for servo in self._servos if servo.joint.name == name)
        wrong = wrong_supply(self.measured[name].voltage, allowed) if name in self.measured else ''
        return f' ({wrong.partition(", ")[2]})' if wrong else ''

    def take_over(self) -> None:
        """Go on holding an arm that was left with torque, unless it was to be released. Raises ArmError."""
        on = [one for one in self._servos if has_torque(self._transport, one)]
        self.torque.on = {one.joint.name for one in on}
        if not on:
            self._commands.lowered()
        elif len(on) == len(self._servos) and not self._commands.torque_off:
            try:
                self._power()
            except PlaceError as error:  # its owner can still switch the torque off
                self._reason = str(error)

    def step(self) -> None:
        """Measure, and move the goals. Raises PortError."""
        self._measure()
        self._watch(self.time)
        self._watch_others()
        if self.state in WITH_GOALS:
            now = steady()
            self._move(now, min(now - self._moved, MOST_PERIODS / self._options.rate))
        self._moved = steady()  # what is sent late must not make the next step longer

    def _measure(self) -> None:
        self.time = steady()
        self.measured = self._measuring.read(self._transport, self.time)

    def _watch(self, now: float) -> None:
        """Look for servos that do not answer, and for one that has lost its torque."""
        silent = self._measuring.silent(now, SILENCE)
        if len(silent) == len(self._servos):
            self._become(ArmState.SILENT, NO_SERVO)
        elif silent:
            why = self._measuring.why_not(silent)
            if self._missing:
                self._reason = why
            self._missing |= self._fault(why)
        elif self._missing:
            self._missing, self._reason = False, ''
            if self.state is ArmState.FAULTED:
                self._hold()
                for _ in self._servos[1:]:
                    self._check_torque()
        if self.state in WITH_GOALS or self.torque.on:
            self._check_torque()

    def _check_torque(self) -> None:
        """Check the torque of one servo per cycle."""
        before = self.torque.loss
        self.torque.check()
        if self.state is ArmState.PASSIVE:
            if not self.torque.on:
                unwatch(self._transport, self._servos)
                self._released()
        elif self.torque.loss:
            if not self._fault(self.torque.loss) and self._reason == before:
                self._reason = self.torque.loss
        elif self.state in POWERED and self.torque.stopped():
            self._watch_again()
            self._hold()

    def _watch_others(self) -> None:
        """Look whether another program has changed what holds the arm."""
        self._cycles += 1
        if self._cycles % LOOK or self.state not in POWERED or not self._soft_start.ended:
            return
        limit = self._options.torque_limit
        found = self.torque.changed(limit)
        if found is None:
            return
        servo, turns, reason = found
        if 'overload' in self._measuring.lasting.get(servo.joint.name, ()):
            return  # its firmware may have done that
        self._fault(reason)
        if turns:
            with contextlib.suppress(ArmError):  # it is told that it does not answer
                switch_off(self._transport, [servo])
        else:
            limit_torque(self._transport, [(servo, limit)])  # it would sink

    def _watch_again(self) -> None:
        with contextlib.suppress(ArmError):  # a servo does not answer: again in the next cycles
            watch(self._transport, self._servos)

    def _move(self, now: float, dt: float) -> None:
        commands: dict[str, float] = {}
        if now - self._moved > self._options.command_timeout:
            self._commands.paused()
        if self._commands.latched or self.state is ArmState.FAULTED:
            self._commands.clear()
        else:
            commands = self._commands.fresh(self._options.command_timeout)
        if self.state is ArmState.FOLLOWING and not commands:
            self._hold()
        elif self.state is ArmState.HOLDING and commands:
            self._become(ArmState.FOLLOWING, '')
        limited = set(self.goals.limited)
        torque = self._soft_start.grow(self._transport, self._options.torque_limit, now)
        self.goals.follow(commands, self.measured, dt, torque, torque >= self._options.torque_limit)
        self._counts.limited += len(self.goals.limited.keys() - limited)
        write_goals(self._transport, self._servos, self.goals.sent, self._calibration)

    # Requests

    def switch_on(self, asked: int) -> None:
        """Switch the torque on where the arm is. Raises ArmError, and the torque is as before.

        asked: the number of the newest wish before; newer ones count.
        """
        self._power()
        self._commands.release(asked)

    def _power(self) -> None:
        for servo, joint in zip(self._servos, self._calibration.joints, strict=True):
            check_place(self._transport, servo, joint)
        before = self.torque.on
        self.torque.on = {servo.joint.name for servo in self._servos}
        try:
            powered = switch_on(self._transport, self._servos, self._options.torque_limit)
        except ArmError as error:
            self.torque.look(before | (error.names if isinstance(error, LeftOnError) else set()))
            if self.state in WITH_GOALS:
                self._watch_again()
            raise
        self.torque.switched_on()
        self._soft_start.begin((one.servo, one.share) for one in powered)
        self._measuring.know({one.servo.joint.name: one.present for one in powered}, self._soft_start.since)
        self._measure()
        self._moved = self.time
        self.goals.begin({one.servo.joint.name: one.goal for one in powered}, before)
        self._hold()

    def switch_off(self, published: Callable[[], None], asked: int) -> None:
        """Lower the arm slowly, and switch the torque off; published is called meanwhile.

        A hold that is newer than the wish number asked ends that. Raises ArmError.
        """
        before, seen = (self.state, self._reason), dict(self.measured)
        held = self.state in WITH_GOALS

        def measure() -> None:
            self._measure()
            seen.update(self.measured)
            published()

        self._commands.clear()
        self._become(ArmState.LOWERING, BEING_OFF)
        if self.torque.is_left():
            known = self._soft_start.confirmed(self._servos, self._options.torque_limit) if held else {}
            is_held = functools.partial(self._commands.held_since, asked)
            shares = lower(self._transport, self._servos, known, measure, is_held)
            if shares is not None:
                self._keep(before, shares, seen)
                raise ArmError('a hold came while the arm was lowered: its torque stays on')
        try:
            switch_off(self._transport, self._servos, measure)
        except ArmError:
            self.torque.look(self.torque.on)
            self._let_go()
            raise
        self._released()

    def _keep(
        self, before: tuple[ArmState, str], shares: Shares, measured: Mapping[str, JointMeasurement]
    ) -> None:
        """End a lowering: state and reason are as before, and the torque grows from shares on."""
        self._become(*before)
        if self.state in WITH_GOALS:
            self._watch_again()
            self._soft_start.begin(shares)
            self.goals.hold(measured)

    def hold(self) -> None:
        """Hold the arm where it is measured; whoever asks latches the commands. Raises ArmError."""
        if self.state is ArmState.PASSIVE:
            self._commands.reject_hold()
            raise ArmError(not_held(self.reason))
        if self.state in POWERED:
            self._hold()

    def clear(self, asked: int) -> None:
        """As switch_on; the torque of overloaded servos is off for a moment."""
        if self.state is ArmState.PASSIVE:
            raise ArmError(not_held(self.reason))
        for servo in self._servos:
            if 'overload' in self._measuring.lasting.get(servo.joint.name, ()):
                reset(self._transport, servo)
        self.switch_on(asked)

    def come_to_rest(self) -> None:
        """Send the servos where their joints are: nobody commands them any more. Raises PortError."""
        if self.state in POWERED:
            self._hold()
            write_goals(self._transport, self._servos, self.goals.sent, self._calibration)
        if self.state in WITH_GOALS or self.torque.on:
            unwatch(self._transport, self._servos)

    # Changes of state

    def _released(self) -> None:
        self.torque.switched_off()
        self._commands.lowered()
        self._let_go()

    def _let_go(self) -> None:
        """Command nothing any more."""
        self.goals.forget()
        self._soft_start.end()
        self._missing = False
        self._become(ArmState.PASSIVE, '')

    def _hold(self, state: ArmState = ArmState.HOLDING, reason: str = '') -> None:
        self._commands.clear()
        self.goals.hold(self.measured)
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


def not_held(reason: str) -> str:
    """Why a passive arm can neither hold nor be cleared; reason: why it is passive."""
    if reason:
        return f'this driver does not hold the arm: {reason}'
    return 'the torque is off: the arm holds nothing'


def write_goals(
    transport: Transport,
    servos: Sequence[ServoSurvey],
    positions: Mapping[str, float],
    calibration: ArmCalibration,
) -> None:
    """Send the servos to positions [rad or m], by joint; those that are not named stay."""
    data = {}
    register = servos[0].model['goal_position']
    low, high = register.range
    for joint in calibration.joints:
        if joint.name in positions:
            tick = min(max(joint.tick(positions[joint.name]), low), high)
            data[joint.profile.id] = register.encode(tick)
    if data:
        transport.sync_write(register.address, data)
