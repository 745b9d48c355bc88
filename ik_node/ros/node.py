"""ik_node: robot description and goals in, moving joints out.

Callbacks only store. One thread serves goals, since a search may take its time; another moves the joints
and publishes them at the publish rate.
"""

from __future__ import annotations

import gc
import math
import threading
import time
import traceback
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PointStamped, PoseStamped
from numpy.typing import NDArray
from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger
from visualization_msgs.msg import MarkerArray

from ik_node.control.arm_model import ArmModel
from ik_node.control.inbox import Inbox, Request
from ik_node.control.moving_arm import MovingArm
from ik_node.control.settings import ArmSettings
from ik_node.control.statistics import Statistics
from ik_node.errors import IkError, InputError
from ik_node.model.description import load_description, read_from
from ik_node.ros.conversions import (
    NANO,
    check_stamp,
    joint_state,
    joint_values,
    point_array,
    pose_matrix,
)
from ik_node.ros.display import Display
from ik_node.ros.frames import Frames
from ik_node.ros.parameters import declare, on_change
from ik_node.ros.qos import GOALS, LATCHED, MEASURED, REPORTS, STREAM
from ik_node.ros.reports import (
    joints_report,
    refusal_report,
    report,
    solution_report,
    state_report,
)
from ik_node.ros.run import ClosableNode, run
from ik_node.solver.goal import Goal

Vector = NDArray[np.float64]

MOST_PERIODS = 2.0  # of motion per sample: after a stall the arm goes on, it does not catch up by a jump
SIMULATED_WAIT = 0.001  # seconds between two looks at a simulated clock
REPEAT = 1.5  # seconds within which the same joint goal again is one of a stream, not a new wish
WAITING = 'waiting for robot_description'
PREPARING = 'preparing the solver; the first time on a machine, and after updates, this takes a minute'


class IkNode(ClosableNode):
    """The node; options are those of rclpy's Node. Raises IkError if it cannot start with its parameters."""

    def __init__(self, **options: Any) -> None:
        super().__init__('ik_node', **options)
        self._settings = declare(self, ArmSettings)
        self._inbox = Inbox()
        self._frames = Frames(self)
        self._statistics = Statistics()
        self._closing = threading.Event()
        self._set_off = threading.Event()  # an arm at rest has somewhere to go

        self._arm = MovingArm(self._settings)
        self._measured: JointState | None = None
        self._joint_goal: tuple[dict[str, float], float] | None = None  # the last one and when it came
        self._text = self._rejected = ''  # of the arm there is or is to be; what came to nothing without one
        self._condition = (DiagnosticStatus.OK, PREPARING)  # what _say() said last

        self._joint_states = self.create_publisher(JointState, 'joint_states', STREAM)
        self._status = self.create_publisher(DiagnosticStatus, '~/status', REPORTS)
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', STREAM)
        self._display = Display(self.create_publisher(MarkerArray, '~/markers', LATCHED).publish)
        self._start_with_description()
        for kind, topic in (
            (PoseStamped, 'goal_pose'),
            (PointStamped, 'goal_point'),
            (JointState, 'goal_joints'),
        ):
            self.create_subscription(kind, topic, self._store(topic), GOALS)
        self.create_subscription(JointState, 'measured_joint_states', self._store_measured, MEASURED)
        self.create_service(Trigger, '~/home', self._go_home)
        self.create_service(Trigger, '~/stop', self._stop)
        self.create_timer(1.0, self._diagnose)
        on_change(self, lambda: self._settings, self._apply)
        self._threads = [
            threading.Thread(target=loop, daemon=True) for loop in (self._serve_loop, self._publish_loop)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End the threads and the node."""
        self._closing.set()
        self._set_off.set()
        self._inbox.close()
        for thread in self._threads:
            thread.join(timeout=2.0)
        self.destroy_node()
        gc.unfreeze()

    # Storing

    def _store(self, topic: str) -> Any:
        def store(message: Any) -> None:
            self._statistics.count('superseded', self._inbox.put(Request(topic, message)))

        return store

    def _store_description(self, message: String) -> None:
        self._inbox.put_description(message.data)

    def _store_measured(self, message: JointState) -> None:
        self._measured = message

    def _go_home(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = self._arm.model is not None
        response.message = 'going home' if response.success else f'there is no arm: {WAITING}'
        if response.success:
            self._inbox.put(Request('home', None))
        return response

    def _stop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._inbox.clear()
        self._arm.stop()
        response.success = True
        response.message = 'stopping'
        return response

    # The arm

    def _start_with_description(self) -> None:
        """Take the description from the parameters, or else wait for the topic."""
        text, path = self._settings.robot_description, self._settings.urdf_file
        if text and path:
            raise InputError('give robot_description or urdf_file, not both')
        if text or path:
            text = text or load_description(path)
            with read_from(path):
                ArmModel.check(text, self._settings)
            self._inbox.put_description(text)
            if self._settings.publish_description:
                self._description = self.create_publisher(String, 'robot_description', LATCHED)
                self._description.publish(String(data=text))
            return
        self.create_subscription(String, 'robot_description', self._store_description, LATCHED)
        self._say(DiagnosticStatus.WARN, WAITING, 'waiting')

    def _apply(self, settings: ArmSettings) -> None:
        """Take changed settings. Raises IkError, and leaves all as it was, if the arm cannot have them.

        Limits hold from the next sample on. A new solver may have to be compiled, which takes long: it is
        left to the thread that serves goals, and those after this change wait for it.
        """
        if self._text:
            ArmModel.check(self._text, settings, self._arm.model)
        before, self._settings = self._settings, settings
        self._arm.limit(settings)
        if not settings.same_model(before):
            self._inbox.put_change()

    def _prepare(self, description: str | None) -> None:
        """Become the arm of a new description, or with None the one there is, with the settings of now.

        If that is impossible, say so and stay the arm before.
        """
        text = description if description is not None else self._text or self._rejected or None
        try:
            if text is not None:
                self._text, self._rejected = text, ''
                self._adopt(text, described=description is not None)
        except IkError as error:
            self._say(DiagnosticStatus.ERROR, f'robot_description refused: {error}', 'refused')
            model = self._arm.model
            self._text, self._rejected = ('', text or '') if model is None else (model.text, '')

    def _adopt(self, text: str, described: bool) -> None:
        """Become the arm of text, after a stop if it is another one. Raises IkError, and stays as it was.

        described: the text has been sent, which means nothing if it is that of the arm there is.
        """
        same = (before := self._arm.model) is not None and before.text == text
        if same and described:
            return
        self._say(DiagnosticStatus.OK, PREPARING, 'preparing')
        model = ArmModel.build(text, self._settings, before)
        if same:
            self._arm.change(model)
        else:
            # What has been loaded is here to stay: later collections need not look at it, for 0.1 s and more.
            gc.collect()
            gc.freeze()
            self._arm.replace(model, wait=lambda: self._closing.wait(0.005))
            self._joint_goal = None
            self._display.clear()
            for warning in model.arm.warnings:
                self.get_logger().warning(warning)
        self._say(DiagnosticStatus.OK, model.arm.describe(), 'ready')

    # Goals, in a thread of their own

    def _serve_loop(self) -> None:
        while (taken := self._inbox.take(self._display.wait)) is not None:
            description, changed, requests = taken
            try:
                if description is not None:
                    self._prepare(description)
                if changed:
                    self._prepare(None)
                self._serve(requests)
                self._display.draw(self._arm.state)
            except Exception:
                if self._closing.is_set() or not self.context.ok():
                    return
                self.get_logger().error(f'please report this: {traceback.format_exc()}')

    def _serve(self, requests: list[Request]) -> None:
        """Refuse the bad ones among requests (oldest first), and pursue the newest of the others."""
        newest: tuple[Request, Goal | Vector] | None = None
        for request in requests:
            try:
                wanted = self._wanted(request)
            except InputError as error:
                self._refuse(request, str(error))
                continue
            if wanted is not None:
                self._statistics.count('superseded', newest is not None)
                newest = (request, wanted)
        if newest is not None:
            try:
                self._pursue(*newest)
            except InputError as error:
                self._refuse(newest[0], str(error))

    def _wanted(self, request: Request) -> Goal | Vector | None:
        """Return what a request asks for: a goal, or values (n,) of all variables; None for a repeat.

        Raises InputError, with the reason, for what cannot be asked.
        """
        state = self._arm.state
        if state is None:
            raise InputError(f'there is no arm: {WAITING}')
        if request.arrival < state.since:
            raise InputError('it came before the arm was ready')
        model = state.model
        if request.topic == 'home':
            return model.home
        message = request.message
        now = self.get_clock().now().nanoseconds
        check_stamp(message.header.stamp, now, self._settings.goal_timeout)
        if request.topic == 'goal_joints':
            named = joint_values(message, model.joints.names)
            before, self._joint_goal = self._joint_goal, (named, request.arrival)
            if before is not None and before[0] == named and request.arrival - before[1] < REPEAT:
                return None
            return model.joint_goal(named, state.target)
        if request.topic == 'goal_point':
            point = point_array(message.point)
            T = self._frames.in_base(message.header.frame_id, model, state.position)
            return Goal(T[:3, :3] @ point + T[:3, 3])
        pose = pose_matrix(message.pose)
        return model.pose_goal(self._frames.in_base(message.header.frame_id, model, state.position) @ pose)

    def _pursue(self, request: Request, wanted: Goal | Vector) -> None:
        state = self._arm.state
        if state is None:
            return
        model, target = state.model, state.target
        name = self.get_name()
        held = False
        if isinstance(wanted, Goal):
            start = time.perf_counter()
            solution = model.solver.solve(wanted, state.position[model.arm_index])
            solve_time = time.perf_counter() - start
            held = not solution.solved and self._settings.on_unreachable == 'hold'
            target[model.arm_index] = solution.q
            said = solution_report(name, request, solution, solve_time, held)
            self._statistics.solved_in(solve_time)
            self._display.set(wanted, solution.status)
        else:
            target = wanted
            said = joints_report(name, request)
            self._display.clear()
        self._statistics.count('taken')
        if not held:
            self._arm.go_to(target, model, request.arrival)
            if not state.moving:
                self._set_off.set()
        self._status.publish(said)
        if said.level != DiagnosticStatus.OK:
            self.get_logger().info(said.message, throttle_duration_sec=2.0)

    def _refuse(self, request: Request, reason: str) -> None:
        self._statistics.count('refused')
        said = refusal_report(self.get_name(), request, reason)
        self._status.publish(said)
        self.get_logger().warning(said.message, throttle_duration_sec=2.0)

    # Samples, in a thread of their own

    def _publish_loop(self) -> None:
        last = due = self.get_clock().now().nanoseconds
        while not self._closing.is_set():
            period = int(NANO / self._settings.publish_rate)
            due += period
            now = self._wait_until(due, last, period)
            try:
                self._sample(now, min(max(now - last, 0), MOST_PERIODS * period) / NANO)
            except Exception:
                if self._closing.is_set() or not self.context.ok():
                    return
                self.get_logger().error(f'please report this: {traceback.format_exc()}')
            last = now
            if not due <= now < due + period:  # set off early, or late after a stall: no burst to catch up
                due = now

    def _wait_until(self, due: int, last: int, period: int) -> int:
        """Wait for the time due [ns], or half a period after the last sample if an arm at rest is to set off.

        Returns the time then. A clock that goes back ends the wait too.
        """
        clock = self.get_clock()
        simulated = self.get_parameter('use_sim_time').value
        while True:
            hurry = self._set_off.is_set()
            until = min(due, last + period // 2) if hurry else due
            now = clock.now().nanoseconds
            if not last <= now < until or self._closing.is_set():
                self._set_off.clear()
                return now
            left = min((until - now) / NANO, SIMULATED_WAIT if simulated else math.inf)
            if hurry:
                time.sleep(left)
            else:
                self._set_off.wait(left)

    def _sample(self, now: int, dt: float) -> None:
        """Move for dt [s] and publish where the joints are at time now [ns]."""
        self._take_measured()
        sample = self._arm.step(dt)
        if sample is None:
            return
        if not (np.isfinite(sample.positions).all() and np.isfinite(sample.velocities).all()):
            self.get_logger().error('joints are not finite: not published', throttle_duration_sec=2.0)
            return
        stamp = Time(nanoseconds=now).to_msg()
        self._joint_states.publish(joint_state(stamp, sample.names, sample.positions, sample.velocities))
        self._statistics.tick(now)
        if sample.arrival is not None:
            self._statistics.moved_after(time.perf_counter() - sample.arrival)

    def _take_measured(self) -> None:
        """Be where the real joints are, as far as the newest message names joints of this robot."""
        model = self._arm.model
        if model is None or self._measured is None:
            return
        message, self._measured = self._measured, None
        try:
            self._arm.measured(joint_values(message, model.joints.names, others=True))
        except InputError as error:
            self.get_logger().warning(f'measured_joint_states refused: {error}', throttle_duration_sec=2.0)

    # Reports

    def _say(self, level: bytes, message: str, word: str) -> None:
        """Say how the node is: now in the log and ~/status, in /diagnostics until something else is said."""
        if level == DiagnosticStatus.ERROR:  # rclpy wants one severity a line
            self.get_logger().error(message)
        else:
            self.get_logger().info(message)
        self._condition = (level, message)
        self._status.publish(state_report(level, self.get_name(), message, word))

    def _diagnose(self) -> None:
        level, message = self._condition
        if level != DiagnosticStatus.OK:
            self.get_logger().info(message, throttle_duration_sec=10.0)
        values = self._statistics.summary(1.0 / self._settings.publish_rate)
        said = report(level, self.get_fully_qualified_name(), message, values)
        array = DiagnosticArray(status=[said])
        array.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(array)


def main() -> int:
    """Run ik_node."""
    return run('ik_node', IkNode)
