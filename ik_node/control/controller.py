# SPDX-License-Identifier: Apache-2.0
"""ArmController: decides what an arm may be commanded at any time. It does not use ROS.

Two locks (see locks.py for their order): the lock of the robot is held during changes, the lock of its
outputs from the decision on a setpoint until it has been sent. Whatever ends the commands takes both, so that
no setpoint follows. Reports are delivered without either.

Measured positions are commanded only while the arm waits for measurements, while it is hand-guided and where a
trajectory controller holds after a fault; late ones pause a motion.
Gates (see checks.py) check every setpoint.
"""

from __future__ import annotations

import math
import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from ik_node.checks import Array
from ik_node.control.locks import Rank, ordered_lock
from ik_node.errors import InputError
from ik_node.steady import steady

from .arm_motion import ArmMotion, JointArbiter
from .feedback import Feedback
from .models import ArmModel, ToolModel
from .outputs import Output, Outputs
from .requests import Aim, JointTargets, Level, Report, Request, Snapshot, arrival_at
from .settings import ArmSettings
from .solving import GoalSolver
from .states import COMMANDING, ON_ITS_WAY, READY, Event, State, StateMachine
from .trajectory import Setpoint

KEPT = 16  # maximum number of queued requests per tool
SLOW = 1.0  # [s] of work on the same requests, after which a condition is reported


class Inbox:
    """Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition(ordered_lock(Rank.INBOX))
        self._requests: dict[str, deque[Request]] = {}  # by tool
        self._description: str | None = None
        self._changed_settings = False
        self._closed = False
        self._taken = math.inf  # when the requests at work were taken (steady)

    @property
    def slow(self) -> str:
        """A sentence if the worker has been busy with the same requests for a while, else empty."""
        passed = steady() - self._taken
        return f'a goal is still being solved after {passed:.1f} s: later goals wait' if passed > SLOW else ''

    @property
    def busy(self) -> bool:
        """Whether requests wait, or are at work."""
        with self._changed:
            return bool(self._requests) or self._taken < math.inf

    def put(self, request: Request) -> int:
        """Add a request; return how many older ones were dropped to make room."""
        with self._changed:
            waiting = self._requests.setdefault(request.tool, deque(maxlen=KEPT))
            pushed = int(len(waiting) == KEPT)
            waiting.append(request)
            self._changed.notify()
        return pushed

    def put_description(self, text: str) -> None:
        """Set the next robot description; it replaces one that has not been taken."""
        with self._changed:
            self._description = text
            self._changed.notify()

    def put_change(self) -> None:
        """Note a change of settings that must be applied before later requests."""
        with self._changed:
            self._changed_settings = True
            self._changed.notify()

    def clear(self, tool: str) -> None:
        """Drop the queued requests of a tool."""
        with self._changed:
            self._requests.pop(tool, None)

    def take(self, timeout: float | None) -> tuple[str | None, bool, dict[str, list[Request]]] | None:
        """Wait for input, timeout [s] at most, and take it. Returns None once closed.

        Returns (new description or None, whether settings have changed, requests by tool, oldest first).
        """
        with self._changed:
            self._taken = math.inf
            self._changed.wait_for(self._has_something, timeout)
            if self._closed:
                return None
            description, self._description = self._description, None
            changed, self._changed_settings = self._changed_settings, False
            requests = {tool: list(waiting) for tool, waiting in self._requests.items()}
            self._requests.clear()
            if requests:
                self._taken = steady()
            return description, changed, requests

    def _has_something(self) -> bool:
        return bool(self._closed or self._requests or self._changed_settings or self._description is not None)

    def close(self) -> None:
        """Let take() return None from now on."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class ReportQueue:
    """Collects reports while the controller is locked and delivers them afterwards, in order.

    Only one thread delivers at a time, including reports that others add concurrently, so the order is kept.
    """

    def __init__(self, receive: Callable[[Report], None]) -> None:
        self._receive = receive
        self._lock = ordered_lock(Rank.REPORT_QUEUE)
        self._reports: deque[Report] = deque()
        self._delivering = False
        self._waiting_for = ''

    def add(self, report: Report) -> None:
        """Add a report."""
        with self._lock:
            self._reports.append(report)

    def state(self, word: str, state: State, condition: tuple[Level, str], logged: bool = True) -> None:
        """Add the report of a state; word: its name as data. logged: as in Report."""
        self.add(Report(*condition, word, word, state, logged=logged))

    def waiting(self, state: State, condition: Callable[[], tuple[Level, str]]) -> None:
        """Add a report when the arm starts to wait, or waits for something else.

        condition: returns the condition of the arm; called only while the arm waits.
        """
        if state is not State.WAITING:
            self._waiting_for = ''
            return
        found = condition()
        if found[1] != self._waiting_for:
            self.state('waiting', state, found)
        self._waiting_for = found[1]

    def deliver(self) -> None:
        """Deliver all reports, unless another thread, or a caller in this one, is doing so. Holds no lock.

        An exception of the receiver is raised once all reports are delivered.
        """
        failed: Exception | None = None
        while (report := self._next()) is not None:
            try:
                self._receive(report)
            except Exception as error:  # continue with later reports
                failed = failed or error
            finally:
                with self._lock:
                    self._delivering = False
        if failed is not None:
            raise failed

    def _next(self) -> Report | None:
        with self._lock:
            if self._delivering or not self._reports:
                return None
            self._delivering = True
            return self._reports.popleft()


S_PER_NS = 1e-9


class Statistics:
    """Counts requests and times setpoints; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = ordered_lock(Rank.STATISTICS)
        self._totals: Counter[str] = Counter()
        self._ticks: list[int] = []
        self._solve_times: list[float] = []
        self._latencies: list[float] = []

    def count(self, what: str, number: int = 1) -> None:
        """Add to a total: taken, rejected or superseded."""
        with self._lock:
            self._totals[what] += number

    def tick(self, now: int) -> None:
        """Note that a setpoint was published at now [ns]."""
        with self._lock:
            self._ticks.append(now)

    def solved_in(self, seconds: float) -> None:
        """Note how long a solve took."""
        with self._lock:
            self._solve_times.append(seconds)

    def moved_after(self, seconds: float) -> None:
        """Note the latency from the arrival of a goal to the first setpoint that moves to it."""
        with self._lock:
            self._latencies.append(seconds)

    def summary(self, period: float) -> dict[str, str]:
        """Return all values as text, and reset the times. period [s]: the nominal one of setpoints."""
        with self._lock:
            totals = dict(self._totals)
            ticks, self._ticks = np.array(self._ticks), self._ticks[-1:]
            solve_times, self._solve_times = self._solve_times, []
            latencies, self._latencies = self._latencies, []
        gaps = np.diff(ticks) * S_PER_NS
        values = {f'goals {what}': str(totals.get(what, 0)) for what in ('taken', 'rejected', 'superseded')}
        if gaps.size:
            jitter = np.abs(gaps - period)
            values['publish rate [Hz]'] = f'{1.0 / max(gaps.mean(), 1e-9):.2f}'
            values['publish jitter p99 [ms]'] = f'{1e3 * np.quantile(jitter, 0.99):.3f}'
        for name, times in (('solve time', solve_times), ('goal to first setpoint', latencies)):
            if times:
                values[f'{name} median [ms]'] = f'{1e3 * float(np.median(times)):.3f}'
                values[f'{name} max [ms]'] = f'{1e3 * max(times):.3f}'
        return values


ARRIVING = 1.0  # [s] within which measured joints must arrive after the end of their commands
SAME = 1e-6  # [rad or m]: a smaller change of a target is ignored


class GoalTracker:
    """Counts requests and reports their results.

    arrival: when a request was received whose first setpoint is pending (steady), else None.
    """

    def __init__(self, reports: ReportQueue) -> None:
        self._reports = reports
        self._number = 0
        self._at_the_end: dict[str, Report] = {}  # by tool, when the arm arrives
        self._aside: list[Report] = []  # for joints off the arm, such as a gripper, when all joints have arrived
        self._targets: dict[str, Array] = {}  # by tool, of its joints
        self._began = self._share = math.nan
        self._rested = math.inf  # since when the commands are constant [s]
        self.arrival: float | None = None

    def begin(
        self,
        targets: JointTargets,
        request: Request,
        state: State,
        time: float,
        model: ArmModel,
        target: Array,
    ) -> None:
        """Report the result of a request; the arm, now in state, moves to the joint targets if there are any.

        time [s]: of the last setpoint. target: of all joints (k,) of model, for other tools as well.
        """
        self._number += 1
        report = targets.report(state, request, self._number)
        self._reports.add(report)
        if targets.aside:
            self._aside = [targets.arrived_report(report)]
            self._rested = math.inf
            if not self._at_the_end:
                self._began = time
        elif targets.joints is not None:
            for tool in [tool for tool in self._at_the_end if tool != request.tool]:
                self._judge(tool, model.tools[tool], target, request, state)
            self._at_the_end[request.tool] = targets.arrived_report(report)
            self._targets[request.tool] = target[model.tools[request.tool].columns]
            self.arrival = request.arrival
            self._began, self._rested = time, math.inf

    @property
    def busy(self) -> bool:
        """Whether the arm is on its way to the goal of a request."""
        return bool(self._at_the_end)  # a gripper need not arrive: it may hold something

    def waited(self, time: float) -> bool:
        """Whether measured joints, or a controller, have had enough time to arrive by time [s]."""
        self._rested = min(self._rested, time)
        return time >= self._rested + ARRIVING

    def _judge(self, name: str, tool: ToolModel, target: Array, request: Request, state: State) -> None:
        """Check whether the target (k,) of a request for another tool still meets the goal of a tool."""
        report, q = self._at_the_end[name], target[tool.columns]
        if np.abs(q - self._targets[name]).max() <= SAME:
            return
        self._targets[name] = q
        found = None if report.goal is None else tool.solver.evaluate(report.goal, q)
        if found is not None and found.solved:
            self._at_the_end[name] = replace(
                report, level=Level.OK, message=arrival_at(found), status=found.status.value, solution=found
            )
        elif report.status == 'solved' and report.request is not None:
            del self._at_the_end[name]
            message = f'{report.request.source} ended before the arm arrived: {request.source} moves its joints'
            self._reports.add(replace(report, level=Level.WARN, message=message, phase='stopped', state=state))

    def reject(self, request: Request, reason: str, state: State) -> None:
        """Report why a request is rejected."""
        self._number += 1
        message = f'{request.source} rejected: {reason}'
        self._reports.add(Report(Level.ERROR, message, 'rejected', 'rejected', state, request, self._number))

    def arrive(self, inexact: str | None = None) -> None:
        """Report that the arm has arrived, if a request made it move. inexact: how far off it is."""
        if self._at_the_end or self._aside:
            for report in (*self._at_the_end.values(), *self._aside):
                message = f'{report.message}; {inexact}' if inexact else report.message
                self._reports.add(replace(report, message=message))
            self._at_the_end.clear()
            self._aside.clear()
            self._share = 1.0

    def share(self, time: float, remaining: float) -> float:
        """Return the completed share of the motion at time [s], with remaining [s] left.

        1 after an arrival; NaN without a motion, and while its end is unknown.
        """
        if not (self._at_the_end or self._aside):
            return self._share
        passed = max(0.0, time - self._began) if math.isfinite(self._began) else 0.0
        return passed / (passed + remaining) if passed else 0.0

    def forget_aside(self) -> None:
        """End the requests for joints off the arm; nothing is reported."""
        self._aside.clear()

    def end(self, state: State, reason: str, level: Level = Level.WARN, aside: bool = True) -> None:
        """End all requests; report those for which the arm, now in state, was on its way.

        aside: also those for joints off the arm.
        """
        for report in (*self._at_the_end.values(), *(self._aside if aside else ())):
            if report.request is not None:
                message = f'{report.request.source} ended before the arm arrived: {reason}'
                self._reports.add(replace(report, level=level, message=message, phase='stopped', state=state))
        self._at_the_end.clear()
        if aside:
            self._aside.clear()
        self.arrival = None
        self._share = math.nan


ANNOUNCED = frozenset({State.STOPPED, State.FAULTED, State.HAND_GUIDED})  # reported on entry
RESUME = 'run ik_resume or call ~/resume, then give a goal'
HALTING = 'the joint controller is still coming to rest; try again in a second'
RESUMING = 1.0  # [s] after a resume in which requests wait for the measured joints
NO_MODEL = 'no robot model yet: waiting for robot_description'
SETTLING = 1.0  # [s] within which a controller must come to rest where its commands have ended
MAX_PERIODS = 2.0  # of motion per setpoint: after a stall the arm continues without a jump
VOID = 'the goal was sent before the arm was resumed, activated or released; send it again'


class ArmController:
    """One arm, from requests to setpoints. Thread-safe.

    outputs receive every setpoint in the thread that caused it, report every Report, one thread at a time. robot:
    shared with the other arms of the same robot. Times are seconds of one clock of the caller; it may jump.
    Only the arrivals of requests are on the clock steady.
    """

    def __init__(
        self,
        report: Callable[[Report], None],
        outputs: Sequence[Output] = (),
        robot: JointArbiter | None = None,
    ) -> None:
        self._robot = JointArbiter() if robot is None else robot
        self._lock = self._robot.lock
        self._reports, self._outputs = ReportQueue(report), Outputs(outputs)
        self._trajectories = self._outputs.trajectories
        self._machine = StateMachine()
        self._feedback = Feedback()
        self._model: ArmModel | None = None
        self._motion: ArmMotion  # of the model
        self._goal_solver: GoalSolver
        self._settings: ArmSettings
        self._goals = 0  # that moved joints of the arm
        self._tracker = GoalTracker(self._reports)
        self._ended = False  # no more setpoints are sent
        self._robot.join(self._reports.deliver)
        self._ticked, self._guided_until = -math.inf, 0.0  # times: of the last tick, and of hand guiding
        self._unsettled = math.inf  # since when the controller has not come to rest after a stop [s]

    @property
    def state(self) -> State:
        """The state of the arm."""
        return self._machine.state

    @property
    def ready(self) -> bool:
        """Whether goals and steps of a teleoperation are accepted."""
        return self._machine.ready

    @property
    def needed(self) -> tuple[str, ...]:
        """The joints that a driver must measure and move; none before the description is known."""
        with self._lock:
            return () if self._model is None else self._motion.needed

    @property
    def interruptions(self) -> int:
        """How often the arm was interrupted, as in Snapshot."""
        return self._machine.interruptions

    @property
    def resuming(self) -> bool:
        """Whether the arm was resumed a moment ago and is about to accept goals, once it is measured."""
        return self.state is State.WAITING and steady() < self._machine.resumed + RESUMING

    @property
    def resting(self) -> bool:
        """Whether nothing is commanded, and a controller that was halted is at rest."""
        idle = self.state in (State.UNCONFIGURED, State.INACTIVE)
        return idle and not self._trajectories.halting(self._ticked)

    def snapshot(self, tool: str | None = None) -> Snapshot | None:
        """Return the present state of the arm with a tool, by default its first; None before a model."""
        with self._lock:
            if self._model is None:
                return None
            motion = self._motion
            own = self._model.first if tool is None else self._model.tools[tool]
            remaining = motion.group.motion.remaining
            return Snapshot(
                self._model,
                own,
                self.state,
                motion.values(self._feedback)[0],
                motion.group.motion.target[own.columns],
                remaining,
                self._tracker.share(self._ticked, remaining),
                self._feedback.age(motion.group.names),
                None if motion.tracked is None else motion.tracked[own.columns],
                self._machine.interruptions,
                self._goals,
                not motion.group.motion.moving,
            )

    def condition(self) -> tuple[Level, str]:
        """Return the condition of the arm as a sentence: what it waits for, or why it does not move."""
        with self._lock:
            if self._model is None:
                return Level.WARN, NO_MODEL
            if self.state is State.WAITING and self._machine.barred:
                return Level.WARN, self._machine.barred
            if self._machine.refused and self.state in READY | {State.WAITING}:
                return Level.WARN, self._machine.refused
            if self._motion.paused:
                return Level.WARN, f'{self._motion.paused}; the arm waits for them'
            if self.state is State.WAITING and self._trajectories.halting(self._ticked):
                return Level.WARN, HALTING
            if self.state is State.WAITING and (doubt := self._feedback.doubt(self._motion.needed)):
                return Level.WARN, f'{doubt}; no command is sent until its measurements are plausible'
            match self.state:
                case State.FAULTED:
                    return Level.ERROR, f'{self._machine.fault}; {RESUME}'
                case State.WAITING:
                    missing = self._motion.without_position
                    instead = self._feedback.missing(missing)
                    return Level.WARN, f'waiting for measured joints: {", ".join(missing)}{instead}'
                case State.STOPPING:
                    return Level.WARN, 'stopping; run ik_resume or call ~/resume once the arm is at rest'
                case State.STOPPED:
                    return Level.WARN, f'stopped; {RESUME}'
                case State.INACTIVE:
                    return Level.WARN, 'inactive: commands are disabled'
                case State.HAND_GUIDED:
                    return Level.WARN, 'hand-guided: the commands follow the measured joints'
                case _:
                    return Level.OK, self._model.tree.describe()

    def off_arm(self, name: str) -> tuple[float, float] | None:
        """Return target and present command of a joint off the arm [rad or m]; None before a goal names it."""
        with self._lock:
            return None if self._model is None else self._motion.off_arm(name)

    def measured(self, name: str) -> float | None:
        """Return a recently measured position of a joint [rad or m], None without."""
        with self._lock:
            return self._fresh.get(name) if self._feedback.expected else None

    # Changes of state

    def _begin(self) -> None:
        """Start if commands are allowed; an earlier stop remains in force."""
        if self._machine.active:
            self._on(Event.ACTIVATE)
        if self._machine.stopped:
            self._on(Event.STOP)
        self._initialise_from_measurement()

    def _initialise_from_measurement(self) -> None:
        """Leave WAITING once all joint positions are known and a halted controller is at rest."""
        halting = self._trajectories.halting(self._ticked)
        if self.state is not State.WAITING or self._machine.barred or halting:
            return
        if not self._feedback.expected:
            self._motion.initialise(self._fresh)
        elif self._motion.without_position:  # else the arm was only stopped, and its command does not change
            self._motion.initialise_from_measurement(self._fresh)
        if not self._motion.without_position:
            self._on(Event.INITIALISED)

    @property
    def _fresh(self) -> dict[str, float]:
        return self._feedback.fresh(self._settings.measured_timeout)

    def _forget_positions(self, reason: str) -> None:
        """Forget the joint positions: only later measurements are used."""
        self._machine.epoch += 1
        self._tracker.end(self.state, reason)
        self._motion.forget_positions()
        self._goal_solver.restart()
        self._feedback.forget()

    def _brake(self, reason: str, level: Level = Level.WARN, aside: bool = True, hard: bool = False) -> None:
        """Come to rest. aside: joints off the arm, such as a gripper, too. hard: see JointMotion."""
        self._machine.epoch += 1
        self._tracker.end(self.state, reason, level, aside)
        self._motion.brake(aside, hard)
        self._goal_solver.restart()

    def _release(self) -> None:
        if self.state is State.HAND_GUIDED and self._model is not None:
            self._motion.brake()
            self._on(Event.RELEASE)

    def _limit(self) -> None:
        """Apply the limits of the settings, and the lower ones while the arm is hand-guided."""
        if self._model is not None:
            self._motion.take(self._model, self._settings)
            if self.state is State.HAND_GUIDED:
                self._motion.guide()

    def _fault(self, reason: str, void: bool = False) -> None:
        if void:  # no motion from the commanded position is allowed
            self._forget_positions(reason)
        self._machine.fault = reason
        self._machine.interruptions += 1
        self._brake(reason, hard=True)
        self._on(Event.FAULT)

    def _on(self, event: Event) -> None:
        """Change the state by the table, and report changes that matter to users."""
        before, state = self._machine.handle(event), self.state
        if (before is State.HAND_GUIDED) is not (state is State.HAND_GUIDED):
            self._limit()
        begins = before is State.WAITING and state is State.HOLDING
        if begins or (state in ANNOUNCED and state is not before):
            self._reports.state('ready' if begins else state.value, state, self.condition())

    @contextmanager
    def _change(self) -> Iterator[None]:
        """Hold the lock; deliver the reports after its release."""
        try:
            with self._lock:
                yield
                self._reports.waiting(self.state, self.condition)
        finally:
            self._robot.deliver()

    # Measurements and ticks

    def on_measured(self, positions: Mapping[str, float], received: float, time: float = math.inf) -> None:
        """Store finite measured positions by joint name, in any order; older ones than before are ignored.

        received, time [s]: when they arrived and when they were measured, inf: on arrival.
        """
        time = min(time, received)
        with self._change():
            positions = self._feedback.take(positions, time, received)
            if not positions or self._model is None or not self._feedback.expected:
                return
            doubt = self._feedback.doubt(self._motion.needed)
            if self.state is State.WAITING:
                self._initialise_from_measurement()
            elif doubt and self.state in COMMANDING:
                self._fault(doubt, void=self._outputs.runs_plans)
            elif self.state is State.HAND_GUIDED:
                self._motion.go_to_measured(positions)
            elif self.state in COMMANDING:
                error = self._motion.following_error(positions, time, received, self._trajectories.lag)
                if error is not None and self._outputs.runs_plans:
                    # Where a plan leaves another one later, commands skip what the controller has yet to do.
                    tolerance = float(self._model.following_tolerance(self._settings).min())
                    error = None if self._trajectories.at_reference(positions, tolerance) else error
                if error is not None:
                    # A plan would not start at the present position.
                    self._fault(error, void=self._outputs.runs_plans)

    def on_reference(self, positions: Mapping[str, float], time: float, age: float = 0.0) -> None:
        """Compare where the controller commands joints at time [s], by name, with its trajectories.

        age [s]: of the message on arrival.
        """
        with self._change():
            lost = self._trajectories.on_reference(time, positions, age)
            if lost and self.state in COMMANDING:
                self._fault(lost, void=True)

    def fault(self, reason: str) -> None:
        """Stop until resume, because an output cannot command the arm."""
        with self._robot.sending(), self._change():
            if self.state in COMMANDING:
                self._fault(reason)

    def halt(self) -> None:
        """End all commands for good; joints that still move stop."""
        with self._robot.sending():
            self._ended = True
            with self._lock:
                hold_trajectory = self._outputs.hold_trajectory(dict)
            self._outputs.emit(None, hold_trajectory)

    def tick(self, time: float) -> Setpoint | None:
        """Advance to time [s]; return the setpoint to publish, None if nothing may be published."""
        with self._robot.sending():
            if self._ended:
                return None
            with self._change():
                setpoint, lost = self._outputs.in_time(self._advance(time))
                if lost:
                    self._fault(lost, void=True)
                epoch = self._machine.epoch
            with self._lock:
                if setpoint is not None and epoch != self._machine.epoch:
                    self._outputs.drop(setpoint)
                    return None
                hold_trajectory = None
                if setpoint is None:
                    hold_trajectory = self._outputs.hold_trajectory(
                        lambda: self._motion.within(self._feedback.recent()), self.state is State.FAULTED
                    )
            try:
                return self._outputs.emit(setpoint, hold_trajectory)
            except Exception as error:
                self._not_sent(setpoint, error)
                raise

    def _not_sent(self, setpoint: Setpoint | None, error: Exception) -> None:
        """Stop until resume: what the outputs were to send may not have been sent."""
        with self._change():
            if setpoint is not None:
                self._outputs.drop(setpoint)
            if self.state in COMMANDING:
                self._fault(f'a command could not be sent: {error!r}', void=True)

    def _advance(self, time: float) -> Setpoint | None:
        last, self._ticked = self._ticked, time
        back = self._feedback.advance(time)
        if self._model is None:
            return None
        if back:
            self._guided_until = min(self._guided_until, time + self._settings.hand_guiding_timeout)
        self._initialise_from_measurement()
        self._guard(time)
        braking = self.state is State.FAULTED and self._motion.moving
        if self._motion.without_position or not (self.state in COMMANDING or braking):
            return None
        passed = 0.0 if last == -math.inf else max(time - last, 0.0)
        dt = min(passed, MAX_PERIODS / self._settings.publish_rate)
        missed = passed - dt if self._trajectories.under_way(last) else 0.0
        if self.state in ON_ITS_WAY:
            follows = self.state is State.TELEOPERATED or self._settings.follow_goals
            target = self._goal_solver.moving(time) if follows else None
            if blocked := self._motion.track(target, self._goal_solver.smoothing(self._settings)):
                self._brake(blocked, hard=True)
        trajectories = self._trajectories if self._outputs.runs_plans else None
        setpoint, rejection = self._motion.step(time, dt, self._feedback, missed, trajectories)
        if rejection is not None:
            self._fault(rejection, void=setpoint is None)
        if setpoint is not None:
            setpoint, self._tracker.arrival = replace(setpoint, arrival=self._tracker.arrival), None
            if not (self._motion.moving or self._motion.paused):
                self._rest()
        return setpoint

    def _rest(self) -> None:
        if self._trajectories.behind(self._ticked):
            return
        if self.state in ON_ITS_WAY:
            inexact = unreached = self._unreached_joint() if self._tracker.busy else None
            if inexact is not None:
                if not self._tracker.waited(self._ticked):
                    return
                if self._outputs.done():
                    unreached = self._motion.hanging(self._feedback)
            self._on(Event.ARRIVED)
            if unreached is None:
                self._tracker.arrive(inexact)
            else:
                self._tracker.end(self.state, unreached)
            return
        if self.state is State.STOPPING and not self._trajectories.settled():
            self._unsettled = min(self._unsettled, self._ticked)
            if self._ticked >= self._unsettled + SETTLING:
                self._fault('the controller is not at rest where it was stopped', void=True)
            return
        self._unsettled = math.inf
        self._on(Event.RESTED if self._machine.active else Event.DEACTIVATE)

    def _unreached_joint(self) -> str | None:
        """Return why an arm with constant commands has not arrived yet, None if it has."""
        if not self._outputs.done():
            return 'the controller has not ended its trajectory'
        return self._motion.inexact(self._feedback) if self._feedback.expected else None

    def _guard(self, time: float) -> None:
        """Check hand guiding, conflicts with other arms, and whether measurements are late or missing."""
        if self.state is State.HAND_GUIDED and time >= self._guided_until:
            self._release()
        if self.state in ON_ITS_WAY and (blocked := self._motion.blocked()):
            self._brake(blocked, hard=True)
        silent = self._feedback.silent(self._motion.commanded, self._settings.measured_timeout)
        if silent is not None and self.state in COMMANDING:
            self._fault(silent)
        if self.state in ON_ITS_WAY:
            waited = self._motion.paused
            if (stopped := self._motion.pause_for_late_measurements(self._feedback)) is not None:
                self._brake(stopped)
            elif self._motion.paused != waited:
                self._reports.state('continuing' if waited else 'late', self.state, self.condition())

    # Configuration

    def configure(self, model: ArmModel, settings: ArmSettings | Callable[[], ArmSettings]) -> bool:
        """Switch to the arm of model with settings; False while the previous arm is braking: call again.

        A callable returns settings that set_limits may change at the same time: it is called with the lock.
        Joints of the same name keep their positions. If measurements are expected, a different arm must be
        measured again. The last setpoint of the previous arm is sent before.
        """
        with self._robot.sending(), self._change():
            settings = settings() if callable(settings) else settings
            before = self._model
            if before is not None and model.moves_as(before):
                self._model, self._settings = model, settings
                self._goal_solver.model = model
                self._limit()
                return True
            if before is not None and self._motion.moving:
                self._brake('the arm changes')
                return False
            positions = {} if before is None else before.joints.named(self._motion.values(self._feedback)[0])
            self._model, self._settings = model, settings
            self._feedback.judge(model.joints)
            self._goal_solver = GoalSolver(model)
            self._motion = self._robot.put(self, ArmMotion(model, settings, positions, self._robot))
            self._machine.epoch += 1
            self._tracker.end(self.state, 'the arm has changed')
            if not self._feedback.expected:
                self._motion.initialise(self._fresh)
            self._on(Event.CONFIGURE)
            self._begin()
            return True

    def set_limits(self, settings: ArmSettings) -> None:
        """Use the motion limits of settings, from the next setpoint on."""
        with self._lock:
            self._settings = settings
            if self._model is not None:
                self._limit()

    def activate(self) -> None:
        """Allow commands."""
        with self._change():
            if not self._machine.active:
                self._machine.void_earlier()
            self._machine.active = True
            if self.state is State.INACTIVE and self._feedback.expected:
                self._forget_positions('the joints must be measured again')
            self._begin()

    def deactivate(self) -> None:
        """Stop within the limits, then command nothing."""
        with self._robot.sending(), self._change():
            self._machine.active = False
            self._machine.interruptions += 1
            if self._model is not None:
                self._brake('the node is deactivated', Level.OK)
                self._on(Event.STOP if self._motion.moving else Event.DEACTIVATE)

    def expect_measured(self, expected: bool, alone: bool = True) -> None:
        """Set whether the joints are measured, and whether no other node publishes joints of this robot.

        With expected measurements no command is sent before every joint of the arm has been measured.
        """
        with self._change():
            before = self._feedback.expect(expected, alone)
            if self._model is None or before == (expected, alone):
                return
            if expected and not before[0]:
                self._forget_positions('the joints must be measured first')
                self._on(Event.MEASUREMENTS_EXPECTED)
                if not self._machine.active:
                    self._on(Event.DEACTIVATE)
            elif not expected:
                self._release()
            self._initialise_from_measurement()

    def measured_by(self, topic: str, offered: bool, rejected: str = '') -> None:
        """Set where measurements come from, for messages: see Feedback."""
        feedback = self._feedback
        if (topic, offered, rejected) != (feedback.topic, feedback.offered, feedback.rejected):
            with self._change():
                feedback.topic, feedback.offered, feedback.rejected = topic, offered, rejected

    # Requests

    def submit(self, *requests: Request) -> None:
        """Process requests, oldest first: reject invalid ones, move for the newest valid one of each tool.

        A goal for joints off the arm alone, such as a gripper, replaces only others of its kind. An unexpected
        error rejects its request too, and is raised after the others.
        """
        # By tool and whether only joints off the arm move, with the epoch of the snapshot.
        newest: dict[tuple[str, bool], tuple[Request, Aim, Snapshot, int]] = {}
        failed: list[Exception] = []
        for request in requests:
            with self._rejecting(request, failed):
                with self._lock:
                    snapshot, epoch = self.snapshot(request.tool), self._machine.epoch
                    void = request.arrival <= self._machine.void_before
                ready = snapshot is not None and snapshot.state in READY and not self._machine.refused
                if snapshot is None or (request.moves and not ready):
                    raise InputError(self.condition()[1])
                if request.moves and void:
                    raise InputError(VOID)
                aim = request.resolve(snapshot)
                if aim is not None:
                    aside = isinstance(aim, Mapping) and aim.keys().isdisjoint(snapshot.model.joint_names)
                    newest[request.tool, aside] = request, aim, snapshot, epoch
        for request, aim, snapshot, epoch in newest.values():
            with self._rejecting(request, failed):
                self._execute(request, aim, snapshot.values, epoch)
            self._deliver(failed)
        if failed:
            raise failed[0]

    @contextmanager
    def _rejecting(self, request: Request, failed: list[Exception]) -> Iterator[None]:
        """Reject a request that raises, and report that; unexpected errors are added to failed."""
        try:
            yield
        except Exception as error:
            reason = str(error)
            if not isinstance(error, InputError):
                failed.append(error)
                reason = f'unexpected error, please report it: {error!r}'
            with self._lock:
                self._tracker.reject(request, reason, self.state)
            self._deliver(failed)

    def _deliver(self, failed: list[Exception]) -> None:
        try:
            self._robot.deliver()
        except Exception as error:
            failed.append(error)

    def _execute(self, request: Request, aim: Aim, values: Array, epoch: int) -> None:
        """Solve an aim and begin the motion to it; values: all variables (m,) in the epoch of its request."""
        with self._lock:
            self._check_epoch(epoch)
            solver, settings = self._goal_solver, self._settings
            motion, real = self._motion, self._feedback.expected
        targets = motion.targets_of(solver, aim, request.tool, values, real, request.arrival, self._outputs.only_listed)
        with self._lock:
            self._check_epoch(epoch)
            if targets.trajectory is not None and settings is not self._settings:
                raise InputError('the limits changed while the path was planned: send the goal again')
            if targets.joints is not None:
                fresh = self._fresh if self._feedback.expected else None
                self._motion.begin(targets, self._feedback, fresh)
                self._goals += not targets.aside
                if not targets.aside or self.state is State.HOLDING:
                    self._on(Event.GOAL)
            try:
                if not targets.aside:  # else a stream of goals, or an operator, continues to move the arm
                    solver.accept(targets, request)
                target = self._motion.group.motion.target
                self._tracker.begin(targets, request, self.state, self._ticked, solver.model, target)
            except Exception:  # the request is about to be rejected, so the arm must not move for it
                self._brake('an unexpected error')
                raise

    def _check_epoch(self, epoch: int) -> None:
        """Raise InputError unless the arm has accepted requests without interruption since an epoch."""
        if self._machine.refused:
            raise InputError(self._machine.refused)
        if self.state not in READY:
            raise InputError(f'the state of the arm has changed: {self.condition()[1]}')
        if epoch != self._machine.epoch:
            raise InputError('the arm has been stopped or changed since the request')

    def steer(
        self,
        joints: Array,
        time: float,
        rates: tuple[Array, Array] | None = None,
        since: int | None = None,
    ) -> bool:
        """Continue to joints (arm.n,) as GoalSolver.steer does, at time [s]; False if the arm is not ready.

        since: Snapshot.interruptions when joints were determined: nothing moves if there was one after that.
        """
        with self._change():
            if not self.ready or since not in (None, self._machine.interruptions):
                return False
            self._tracker.end(self.state, 'superseded by a teleoperation command', aside=False)
            self._goal_solver.steer(joints, time, rates)
            self._motion.go_to(joints)
            self._on(Event.STEER)
            return True

    def end_teleoperation(self, at_once: bool = False) -> None:
        """Come to rest at the end of teleoperation: at its last target if that is close, else, or if told, at once.

        Joints off the arm, such as a gripper, continue.
        """
        with self._change():
            if self.state is State.TELEOPERATED and (at_once or self._motion.far_behind):
                self._brake('teleoperation ended', aside=False, hard=True)

    def announce(
        self,
        level: Level,
        message: str,
        word: str = '',
        during: State | None = None,
        logged: bool = True,
    ) -> bool:
        """Report a sentence that belongs to no request, after all that has been reported.

        word: names it as data, by default the state. during: the only state in which it holds; in another
        one nothing is reported, and False returned. logged: as in Report.
        """
        with self._change():
            if during not in (None, self.state):
                return False
            self._reports.state(word or self.state.value, self.state, (level, message), logged)
            return True

    def brake_aside(self, names: Collection[str]) -> None:
        """Bring joints off the arm to rest, such as a gripper; the arm continues what it does."""
        with self._change():
            if self.ready:
                self._tracker.forget_aside()
                self._motion.brake_aside(names)

    def cancel(self) -> bool:
        """Brake within the limits and end all goals; later ones are accepted. False if the arm accepts none."""
        with self._robot.sending(), self._change():
            if not self.ready:
                return False
            self._machine.void_earlier()
            self._brake('cancelled')
            return True

    def stop(self) -> None:
        """Stop and hold: goals are rejected until resume. Only the jerk limit is exceeded, HARD times.

        No setpoint of the previous motion is sent after this returns.
        """
        with self._robot.sending(), self._change():
            self._machine.stopped = True
            self._machine.interruptions += 1
            if self._model is not None:
                self._brake('stopped', hard=True)
                self._on(Event.STOP)

    def resume(self) -> None:
        """Accept goals again after a stop or a fault. After a fault the arm must be measured again.

        Raises InputError while joints move, are not measured any more or where they cannot be, or while a
        controller moves.
        """
        with self._change():
            if self._model is None or self._motion.moving or self.state is State.STOPPING:
                raise InputError(f'cannot resume: {self.condition()[1]}')
            if self._machine.barred or self._machine.refused:
                raise InputError(f'cannot resume: {self._machine.barred or self._machine.refused}')
            if self._trajectories.halting(self._ticked):
                raise InputError(f'cannot resume: {HALTING}')
            silent = self._feedback.silent(self._motion.commanded, self._settings.measured_timeout)
            if silent or (self._feedback.expected and (silent := self._feedback.doubt(self._motion.needed))):
                raise InputError(f'cannot resume: {silent}')
            self._machine.resumed = steady()
            self._machine.stopped = False
            if self.state is State.FAULTED and self._feedback.expected:
                self._forget_positions('the joints must be measured again')
            self._on(Event.RESUME)
            self._initialise_from_measurement()

    def bar(self, reason: str) -> None:
        """Keep the arm from becoming ready, or stop it until resume; '' allows it again."""
        with self._robot.sending(), self._change():
            if reason == self._machine.barred:
                return
            self._machine.barred = reason
            if not reason:
                self._initialise_from_measurement()
            elif self.state in COMMANDING:
                self._fault(reason)

    def refuse(self, reason: str) -> None:
        """Reject goals because the driver takes no commands; '' accepts them again. A moving arm faults."""
        with self._robot.sending(), self._change():
            if reason == self._machine.refused:
                return
            self._machine.refused = reason
            if reason and self.state in COMMANDING - {State.HOLDING, State.STOPPED}:
                self._fault(reason)
            elif self.state is State.HOLDING:
                self._reports.state('waiting' if reason else 'ready', self.state, self.condition())

    def guide(self, begin: bool, time: float) -> None:
        """Begin or end hand guiding: commands then follow the measured positions, slowly.

        It ends after hand_guiding_timeout [s] at the latest. Raises InputError if it cannot begin, or has not
        begun.
        """
        with self._change():
            if not begin:
                if self.state is not State.HAND_GUIDED:
                    raise InputError(f'the arm is not being guided by hand; state: {self.state.value}')
                self._release()
                return
            if self.state is not State.HOLDING or not self._feedback.expected:
                raise InputError(f'hand guiding needs a measured arm at rest; state: {self.state.value}')
            if self._machine.refused:
                raise InputError(self._machine.refused)
            self._machine.epoch += 1
            self._guided_until = time + self._settings.hand_guiding_timeout
            self._on(Event.GUIDE)
