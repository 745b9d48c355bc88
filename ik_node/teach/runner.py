# SPDX-License-Identifier: Apache-2.0
"""Runner: decides when ik_node is asked for the next motion of a checked program. It sends nothing itself."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass

from ik_node.checks import Array, count_in
from ik_node.errors import OTHER_USER, InputError, quoted

from .check import CheckReport

PATIENCE = 20.0  # [s] for the answer of ik_node to a goal
REPEAT = 2.0  # [s] for which ik_node takes the same joint goal for a repeat of the last one, and more
ELSEWHERE = (0.1, 0.005)  # [rad, m] from where the arm should be at rest: more than what counts as arrived
LATE = 2.0  # [s] for positions to arrive; an arm that is elsewhere for longer was moved by somebody
ENDS = ('stopped', 'faulted', 'hand-guided', 'waiting', 'inactive', 'ready')  # states that end a run


class State(enum.Enum):
    """The state of a run."""

    RUNNING = 'Running'
    PAUSING = 'Pausing'  # at the next point
    PAUSED = 'Paused'
    FINISHED = 'Finished'
    ENDED = 'Ended'  # before its end


@dataclass(frozen=True, eq=False)
class Order:
    """A goal to send: joints by name, or straight to T_base_tip (4, 4), at a share of the speed."""

    speed: float
    joints: Mapping[str, float] | None = None
    T_base_tip: Array | None = None


def disturbance(report: Mapping[str, str]) -> str:
    """Return what stops or moves the arm, according to a report of ik_node on something else than a run."""
    if count_in(report.get('goal_number')):
        return f'another goal moves the arm: {report.get("goal")}' if report.get('state') == 'moving' else ''
    return report.get('message', '') if report.get('state') in ENDS else ''


class _Stage(enum.Enum):
    MOVE = 'move'
    GRIP = 'grip'
    WAIT = 'wait'


class Runner:
    """Asks for one motion after the other, each once the one before has arrived.

    Anything else that moves or stops the arm ends the run: a stop, a fault, a goal of somebody else, an arm
    that is not where its last motion ended. state; sentence: how it ended or what it waits for; index: of the
    point that the arm moves to next; passes: how often the whole program was run.
    """

    def __init__(self, checked: CheckReport, loops: int = 1, single: bool = False) -> None:
        """loops: how often to run the whole program, 0 for ever. single: pause at the first point.

        Raises InputError if the check has not passed, or was for one run only.
        """
        if not checked.passed:
            raise InputError('the program has not passed its check')
        if loops != 1 and not checked.again and not single:
            raise InputError('the program was checked for one run only')
        self.state, self.sentence, self.passes = State.RUNNING, '', 0
        self.index = checked.begin
        self.stops = False  # the run ended because ik_node does not answer: it should be stopped
        self._checked, self._loops, self._single = checked, loops, single
        self._stage = _Stage.MOVE
        self._place: Mapping[str, float] = {
            name: value for name, value in checked.start.items() if name in checked.moves[self.index].end
        }
        self._stamp = ''  # of the goal that is pursued
        self._answered = False
        self._sent, self._number = -math.inf, 0  # when the last goal was sent, and the number of the last one
        self._last_joints: Mapping[str, float] | None = None
        self._joints_sent = -math.inf
        self._until = -math.inf  # end of a wait
        self._away = math.inf  # since when the arm is seen elsewhere

    @property
    def active(self) -> bool:
        """Whether it will ask for a motion, or has asked for one that has not ended."""
        return self.state in (State.RUNNING, State.PAUSING)

    @property
    def point(self) -> str:
        """The name of the point that the arm moves to next."""
        return self._checked.program.names[self.index]

    def pause(self) -> None:
        """Ask for no motion after the present one."""
        if self.state is State.RUNNING:
            self.state = State.PAUSING

    def end(self, reason: str, stops: bool = False) -> None:
        """End the run. stops: ik_node should be stopped."""
        if self.active:
            self.state, self.sentence, self.stops = State.ENDED, reason, stops

    def due(self, now: float, joints: Mapping[str, float]) -> Order | None:
        """Return the goal to send at now [s], if there is one. joints: positions by name, measured if any."""
        if not self.active:
            return None
        if self._stamp:
            if not self._answered and now > self._sent + PATIENCE:
                silent = f'ik_node has not responded within {PATIENCE:g} s. {OTHER_USER}'
                self.end(f'{quoted(self.point)}: {silent}', stops=True)
            return None
        if self._stage is _Stage.WAIT:
            if now < self._until and self.state is State.RUNNING:  # a pause ends a wait, too
                return None
            self._go_on()
        if self._stage is _Stage.MOVE and self.state is State.PAUSING:
            self.state = State.PAUSED
        if not self.active or self._is_elsewhere(joints, now):
            return None
        order = self._order()
        if order.joints is not None and order.joints == self._last_joints and now < self._joints_sent + REPEAT:
            return None
        return order

    def sent(self, order: Order, stamp: str, now: float) -> None:
        """Note that the goal was sent at now [s] with a stamp, as ~/status repeats it."""
        self._stamp, self._sent, self._answered = stamp, now, False
        if order.joints is not None:
            self._last_joints, self._joints_sent = order.joints, now

    def on_report(self, report: Mapping[str, str], now: float) -> None:
        """Take a report of ik_node, as ~/status has it, at now [s]."""
        if not self.active:
            return
        state, message = report.get('state', ''), report.get('message', '')
        number = count_in(report.get('goal_number'))
        if self._stamp and report.get('goal_stamp') == self._stamp:
            self._answered, self._number = True, number
            if state == 'arrived' and report.get('status') == 'solved':
                self._stamp = ''
                self._arrive(now)
            elif state != 'moving' or report.get('status') != 'solved':
                self.end(f'{quoted(self.point)}: {message}')
        elif (not number or number > self._number) and (reason := disturbance(report)):
            self.end(reason)

    def _arrive(self, now: float) -> None:
        point = self._checked.program.points[self.index]
        if self._stage is _Stage.MOVE:
            self._place = self._checked.moves[self.index].end
            if point.gripper is not None:
                self._stage = _Stage.GRIP
                return
        self._stage, self._until = _Stage.WAIT, now + point.wait

    def _go_on(self) -> None:
        """Turn to the next point."""
        self._stage = _Stage.MOVE
        self.index += 1
        if self.index == len(self._checked.moves):
            self.index = 0
            self.passes += 1
            if self.passes == self._loops and not self._single:
                self.state = State.FINISHED
                return
        if self._single:
            self.state = State.PAUSED

    def _order(self) -> Order:
        point, move = self._checked.program.points[self.index], self._checked.moves[self.index]
        if self._stage is _Stage.GRIP and point.gripper is not None:
            return Order(point.speed, {self._checked.program.gripper: point.gripper})
        return Order(point.speed, move.joints, move.T_base_tip)

    def _is_elsewhere(self, joints: Mapping[str, float], now: float) -> bool:
        """Whether the arm is not seen where it should be at rest; end the run if that lasts."""
        for name, place in self._place.items():
            distance = abs(joints.get(name, math.nan) - place)
            if not distance <= ELSEWHERE[name in self._checked.prismatic]:
                self._away = min(self._away, now)
                if now > self._away + LATE:
                    off = f'{1e3 * distance:.1f} mm'
                    if name not in self._checked.prismatic:
                        off = f'{math.degrees(distance):.1f}°'
                    self.end(f'joint {quoted(name)} is {off} away from the last point')
                return True
        self._away = math.inf
        return False
