# SPDX-License-Identifier: Apache-2.0
"""One run: an activity and one to three faults at once, then the question whether the arm still works."""

from __future__ import annotations

import random
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from lifecycle_msgs.msg import Transition
from std_srvs.srv import SetBool

from faults.actions import Action, Draw, Plan
from faults.activities import ACTIVITIES
from faults.arena import Arena
from faults.judge import Rates, SampleJudge, Violation, largest
from faults.judge_trajectories import TrajectoryJudge
from faults.kinds import KINDS, answers
from faults.kinds.requests import change_state
from faults.messages import joints_message, stamped
from faults.record import Seen, SeenTrajectory, Status, now
from faults.robots import ROBOTS, SHARING, bounds, robot, text_of
from faults.setups import generator, setup_of
from faults.standstill import PATIENCE, Motion, standstills

AT_ONCE = 0.2  # [s] from the last command to the report of the fault that ended it
STANDSTILL, CRASH, ABRUPT = 'standstill', 'crash', 'abrupt end'
LONGEST = 1.4  # [s] of a run without what follows it
RUNS = 10  # with one node, unless a fault ends it
RECOVERY = 8.0  # [s] within which an arm must obey again once all faults are lifted
PLANNING = 20.0  # [s] more while the node plans a path, and says so
START = 60.0  # [s] for the start of a node on a busy machine
LOGGED = ('Traceback', 'unexpected error', 'Exception', 'terminate called', 'Segmentation', 'Fatal Python')
# Faults with which a node that is asked to end cannot bring its arm to rest before.
HECTIC = {'killed', 'clock jumps', 'clock stands or races', 'garbage in /clock', 'garbage on every topic'}
HECTIC |= {name for name, kind in KINDS.items() if kind.applies is answers}
LEFT = 'ended while the arm was'  # said by a node that had not the time for it
ENDS = {'killed': -9, 'interrupted': 0, 'terminated': 0}  # exit codes
SILENT = ('no answer of ~/resume', 'no report on a goal')
# False feedback has taken the joints to where they collide, or nearly.
EXPLAINED = ' would overlap by ', ' would come as near as '
EXCERPT = 100  # lines of the log
REST = 5e-4  # [rad, m] between the last two positions of an arm that comes to rest
MOVES_ON = 0.2  # [s] by which a trajectory may end after the node: messages take their time


@dataclass
class Result:
    """What became of a run. faults: by name. said: reasons for which goals were rejected, and the like."""

    number: int
    setup: str
    activity: str
    faults: tuple[str, ...]
    samples: int = 0
    violations: list[Violation] = field(default_factory=list)


class Session:
    """One arena, in which runs take place one after another."""

    def __init__(self, seed: int, session: int, more: bool = False) -> None:
        self.seed = seed
        self.setup = setup_of(seed, session, more)
        self.arena = Arena(self.setup)
        self._before = Rates()  # of the last run: the arm may still brake by them
        every = {n: b for name in ROBOTS for n, b in bounds(text_of(name)).items()}
        every.update(bounds(self.arena.robot.text))
        record = self.arena.record
        picture = 'joint_states' if self.setup.output.endswith('trajectory, picture') else ''
        self._samples = SampleJudge(every, record, self.setup.simulated, picture)
        self._trajectories: defaultdict[str, TrajectoryJudge] = defaultdict(
            lambda: TrajectoryJudge(every, record, self.setup.simulated)
        )
        self._judged = self._read = 0
        self.ready = self._recover(START)
        self.arena.remember()

    def run(self, number: int) -> Result:
        """Do one run and judge it."""
        rng = generator(self.seed, 1, number)
        draw = Draw(rng, float(rng.uniform(0.7, LONGEST)), self.arena)
        activities = [str(rng.choice(list(ACTIVITIES))) for _ in self.arena.tools]
        activity = ' and '.join(activities)
        names = [name for name, kind in KINDS.items() if kind.applies(self.setup)]
        shares = np.array([KINDS[name].share for name in names])
        count = int(rng.choice([1, 2, 3], p=(0.4, 0.4, 0.2)))
        faults = tuple(str(n) for n in rng.choice(names, count, replace=False, p=shares / shares.sum()))
        plan: Plan = []
        for tool, name in zip(self.arena.tools, activities, strict=True):
            plan += self._of_tool(tool, lambda name=name: ACTIVITIES[name](draw))
        for fault in faults:
            tool = str(rng.choice(self.arena.tools))
            plan += self._of_tool(tool, lambda fault=fault: KINDS[fault].plan(draw))
        result = Result(number, str(self.setup), activity, faults)
        begin = now()
        if self.ready:
            result.violations.append(Violation(STANDSTILL, begin, f'before the run: {self.ready}'))
        self.arena.rates = Rates()
        self._carry_out(plan, draw.length)
        self._lift(result)
        self.ready = self._recover(START if self.reborn else RECOVERY)
        if self.ready:
            if not any(words in self.ready for words in EXPLAINED) and not self._planning():
                result.violations.append(Violation(STANDSTILL, now(), self.ready))
            self._begin_anew()  # the next run begins with a node that works
        self._judge(result, begin)
        return result

    def _of_tool(self, tool: str, plan: Callable[[], Plan]) -> Plan:
        """Draw a plan with a tool, whose actions are for that tool."""

        def bound(action: Action) -> Action:
            return Action(action.at, lambda arena: arena.using(tool, action.do))

        drawn: Plan = []
        self.arena.using(tool, lambda _: drawn.extend(plan()))
        return [bound(action) for action in drawn]

    def _carry_out(self, plan: Plan, length: float) -> None:
        begin = now()
        for action in sorted(plan, key=lambda action: action.at):
            time.sleep(max(0.0, begin + action.at - now()))
            action.do(self.arena)
        time.sleep(max(0.0, begin + length - now()))

    def _begin_anew(self) -> None:
        # A node that does not answer shows the stacks of its threads, which are judged with its log.
        silent = any(words in self.ready for words in SILENT)
        self.arena.end(signal.SIGABRT if silent else signal.SIGINT)
        self.arena.driver.go_home()
        self.arena.restart()
        self.arena.describe(self.arena.robot.text)
        self.ready = self._recover(START)

    # After the faults

    def _lift(self, result: Result) -> None:
        """End all faults; a node that has ended is started again."""
        arena, driver = self.arena, self.arena.driver
        driver.disturbances.clear()
        arena.conduct.behave()
        driver.stuck, driver.offset = False, 0.0 * driver.offset
        self.reborn = False
        ends = [name for name in result.faults if name in ENDS]
        if ends or not arena.alive:
            code, self.reborn = arena.restart(), True
            if code not in {ENDS[name] for name in ends}:
                result.violations.append(Violation(CRASH, now(), f'exit code {code}'))
            if ends and HECTIC.isdisjoint(result.faults) and LEFT not in arena.log[self._read :]:
                result.violations += [Violation(ABRUPT, now(), moving) for moving in self._moving()]
            arena.restore()
        else:
            objection = arena.restore() and arena.restore()  # twice: the first answer may be late
            if objection:
                result.violations.append(Violation(STANDSTILL, now(), f'parameters: {objection}'))
        if 'lifecycle' in result.faults or 'garbage in every service' in result.faults:
            change_state(arena, Transition.TRANSITION_CONFIGURE)
            change_state(arena, Transition.TRANSITION_ACTIVATE)
        if any('description' in name or name == 'lifecycle' for name in result.faults):
            arena.describe(arena.robot.text)
        if any('teleoperation' in name or 'every' in name for name in result.faults):
            for tool in arena.tools:
                arena.using(tool, lambda arena: arena.ask('pause_servo', SetBool.Request(data=False)))

    def _moving(self) -> list[str]:
        """Return what the last commands of the node that has ended leave in motion, by topic."""
        record, found = self.arena.record, []
        born, ended = record.lives[-2:]
        mine = [seen for seen in record.samples if born <= seen.when <= ended]
        for topic in {seen.topic for seen in mine}:
            *_, before, last = [None, *(seen for seen in mine if seen.topic == topic)]
            if isinstance(last, SeenTrajectory):
                left = last.when + last.times[-1] - self.arena.ended
                if left > MOVES_ON:
                    found.append(f'{topic} goes on for {left:.2f} s after the end of the node')
            elif self._faulted(last.when):
                continue  # of measurements that void all commands: their controller was halted
            elif last.velocities is not None:
                rates = zip(last.names, last.velocities, strict=False)
                found += [f'{topic}: "{name}" ends at {rate:.6g} per second' for name, rate in rates if rate]
            elif before is not None and largest(np.subtract(before.positions, last.positions)) > REST:
                found.append(f'{topic} ends with {last.positions} after {before.positions}')
        return found

    def _faulted(self, when: float) -> bool:
        """Whether an arm faulted with the command that was sent at a time, which was its last one."""
        return any(s.state == 'faulted' and abs(s.when - when) < AT_ONCE for s in self.arena.record.statuses)

    def _recover(self, patience: float) -> str:
        """Return why an arm does not obey although nothing is wrong any more, empty if all do."""
        every = (
            (tool, self.arena.using(tool, lambda _: self._recovers(patience))) for tool in self.arena.tools
        )
        return next((f'{tool} {why}'.lstrip() for tool, why in every if why), '')

    def _recovers(self, patience: float) -> str:
        arena, why = self.arena, 'it never answered'
        rng, tries = random.Random(len(arena.record.samples)), 0
        left, latest = arena.patience(patience), arena.patience(patience + PLANNING)
        while not left.over:
            if self._planning() and not latest.over:
                left = arena.patience(patience)
            if not arena.alive:
                return 'the node has ended'
            arena.ask('hand_guide', SetBool.Request(data=False))
            answer = arena.call('resume')
            if answer is None:
                why = SILENT[0]
                continue
            tries += 1
            why = self._obeys(rng, answer.message)
            if not why:
                return ''
            time.sleep(0.05)
        return f'after {tries} tries: {why}'

    def _planning(self) -> bool:
        """Whether the diagnostics said just now that a goal, which must be a path, takes its time."""
        last = self.arena.record.diagnostics[-1:]
        return any(d.when > now() - PATIENCE and 'still being solved' in d.message for d in last)

    def _obeys(self, rng: random.Random, resumed: str) -> str:
        """Send a goal near the arm; return why it does not go there."""
        arena, record = self.arena, self.arena.record
        places, arm = arena.driver.position(), arena.robot.arm
        if not arena.driver.measures:
            places = dict.fromkeys(arm.joint_names, 0.0)
        values = {}
        for name, low, high in zip(arm.joint_names, arm.lower.tolist(), arm.upper.tolist(), strict=True):
            room = 0.1 * min(high - low, 2.0)
            values[name] = min(max(places[name] + rng.uniform(-room, room), low + 0.01), high - 0.01)
        mark, sent = len(record.statuses), now()
        arena.send('goal_joints', stamped(arena, joints_message(values)))
        report = self._report(mark)
        if report is None:
            return f'{SILENT[1]}; resume: {resumed}'
        if report.state == 'rejected':
            return report.message
        patience = arena.patience(PATIENCE)
        while not patience.over:
            recent = [s for s in record.samples[-400:] if s.when >= sent]
            if Motion.of(recent, self._joints_of(arena.tool, recent)).moved(sent, now() + 10.0):
                return ''
            if any(s.state == 'arrived' and s.tool == arena.tool for s in record.statuses[mark:]):
                return ''
            time.sleep(0.01)
        later = [s.message for s in record.statuses[mark:]]
        return f'accepted, but no motion: {later}'

    def _joints_of(self, tool: str, samples: Sequence[Seen | SeenTrajectory]) -> set[str]:
        """Return the joints whose motion counts as that of a tool.

        Where tools share joints, one that is outside its limits returns first, alone, whosever it is.
        """
        joints = set(robot(self.setup.robot, tool).arm.joint_names)
        if self.setup.robot in SHARING:
            limits = bounds(self.arena.robot.text)
            for seen in samples:
                rows = seen.positions if isinstance(seen, SeenTrajectory) else [seen.positions]
                joints |= {
                    name
                    for row in rows
                    for name, place in zip(seen.names, row, strict=False)
                    if name in limits and not limits[name].lower <= place <= limits[name].upper
                }
        return joints

    def _report(self, mark: int) -> Status | None:
        patience = self.arena.patience(PATIENCE)
        while not patience.over:
            for status in self.arena.record.statuses[mark:]:
                if status.about.endswith('goal_joints') and status.tool == self.arena.tool:
                    return status
            time.sleep(0.005)
        return None

    # Judging

    def _judge(self, result: Result, begin: float) -> None:
        arena, record, found = self.arena, self.arena.record, result.violations
        rates = Rates(**vars(arena.rates))
        for name in ('speed', 'acceleration', 'jerk', 'linear_acceleration', 'linear_jerk', 'fast'):
            setattr(rates, name, max(getattr(rates, name), getattr(self._before, name)))
        rates.slow = min(rates.slow, self._before.slow)
        self._before = arena.rates
        self._samples.rates = rates
        samples = record.samples[self._judged :]
        self._judged += len(samples)
        result.samples = len(samples)
        for seen in samples:
            if isinstance(seen, Seen):
                found.extend(self._samples.judge(seen))
            else:
                self._trajectories[seen.topic].rates = rates
                found.extend(self._trajectories[seen.topic].judge(seen))
        for tool in arena.tools:
            still = standstills(record, begin, now(), tool, self._joints_of(tool, samples))
            found.extend(Violation(STANDSTILL, now(), f'{tool} {what}'.lstrip()) for what in still)
        log = arena.log
        lines = log[self._read :].splitlines()
        for i, line in enumerate(lines):
            if any(word in line for word in LOGGED):
                found.append(Violation(CRASH, now(), ' / '.join(map(str.strip, lines[i : i + EXCERPT]))))
        self._read = len(log)

    def close(self) -> Violation | None:
        """End the node; return what was wrong with its end."""
        code = self.arena.end() if self.arena.alive else 0
        self.arena.close()
        return Violation(CRASH, now(), f'exit code {code}') if code else None
