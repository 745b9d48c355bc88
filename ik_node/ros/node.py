"""ik_node: robot description and goals in, moving joints out.

Callbacks only store. One thread solves goals, since a search may take long; another moves the joints and
publishes them at the publish rate. The ArmController decides what may be commanded.
"""

from __future__ import annotations

import gc
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from visualization_msgs.msg import MarkerArray

from ik_node import kernels
from ik_node.control.arm_model import ArmModel
from ik_node.control.calibration import Calibrated
from ik_node.control.controller import NO_MODEL, ArmController
from ik_node.control.inbox import Inbox
from ik_node.control.report import Level, Report
from ik_node.control.requests import HomeRequest
from ik_node.control.settings import ArmSettings
from ik_node.control.states import ON_ITS_WAY, READY, State
from ik_node.control.statistics import Statistics
from ik_node.control.workspace import Workspace
from ik_node.errors import IkError, InputError
from ik_node.ros.conversions import measured_values
from ik_node.ros.descriptions import Descriptions
from ik_node.ros.diagnostics import arm_values
from ik_node.ros.frames import Frames
from ik_node.ros.goal_markers import GoalMarkers
from ik_node.ros.goal_requests import GOALS, GoalContext, GoalRequest
from ik_node.ros.managed import ManagedNode
from ik_node.ros.measured_watch import MeasuredWatch
from ik_node.ros.node_time import NO_CLOCK, NodeTime
from ik_node.ros.outputs import PICTURE, make_outputs, output_names
from ik_node.ros.outputs.context import OutputContext
from ik_node.ros.parameters import declare, on_change
from ik_node.ros.projection import Projection
from ik_node.ros.qos import GOAL_QOS, LATCHED, MEASURED, REPORTS, STREAM
from ik_node.ros.reports import diagnostic, goal_state, status_message
from ik_node.ros.run import run
from ik_node.ros.sample_loop import SampleLoop
from ik_node.ros.teleop import Teleop

PATIENCE = 2.0  # [s] without a description or a clock after which the log says so
STATE_PERIOD = 0.1  # [s] from one goal_state to the next while the arm moves
REMINDER = 10.0  # [s] from one line in the log to the next while the arm cannot move
BRAKING = 4.0  # [s] within which an arm that is deactivated comes to rest; ros2 launch waits 5 s
RESTING = (State.UNCONFIGURED, State.INACTIVE)
AFTER_ERROR = 0.1  # [s] to wait after an unexpected error, so that the loop does not spin


class IkNode(ManagedNode):
    """The node; options are those of rclpy's Node. Raises IkError if it cannot start with its parameters."""

    def __init__(self, **options: Any) -> None:
        super().__init__('ik_node', **options)
        self._settings = declare(self, ArmSettings)
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._started = time.monotonic()
        self._inbox = Inbox()
        self._statistics = Statistics()
        self._closing = threading.Event()
        self._time = NodeTime(self)
        self._goals = GoalContext(Frames(self), self._time, lambda: self._settings.goal_timeout)
        self._text = ''  # of the current or next arm
        self._rejected = ''  # the text that was rejected while there was none
        self._refused = ''  # why the last description was rejected
        self._last_report: Report | None = None  # on a goal
        self._announced = ''  # the last condition other than OK
        self._remind_at = 0.0  # when it is logged again (time.monotonic)
        self._kernels = kernels.KernelState(kernels.Stage.PLAIN)
        self._state_due = 0.0  # when the next goal_state is (time.monotonic)

        self._status = self.create_publisher(DiagnosticStatus, '~/status', REPORTS)
        self._goal_state = self.create_publisher(Float64MultiArray, '~/goal_state', STREAM)
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', STREAM)
        self._goal_markers = GoalMarkers(self.create_publisher(MarkerArray, '~/markers', LATCHED).publish)
        self._calibration = self._settings.calibration()
        outputs = output_names(self._settings.output)
        context = OutputContext(
            self, self._time, lambda reason: self._controller.fail(reason), lambda: self._watch.hold_back()
        )
        calibrated = [Calibrated(output, self._calibration) for output in make_outputs(outputs, context)]
        self._controller = ArmController(self._publish_report, calibrated)
        measured_topic = 'measured_joint_states' if PICTURE in outputs else 'joint_states'
        self._watch = MeasuredWatch(self, measured_topic, always=outputs != (PICTURE,))
        self._look_for_measurements()
        self._loop = SampleLoop(self, lambda: 1.0 / self._settings.publish_rate, self._sample)
        self._descriptions = Descriptions(self, self._inbox.put_description)
        for topic, (message, kind) in GOALS.items():
            self.create_subscription(message, topic, self._store(topic, kind), GOAL_QOS)
        self.create_subscription(JointState, measured_topic, self._on_measured, MEASURED)
        Projection(self, self._goals, self._inbox)
        self.create_service(Trigger, '~/home', self._home)
        self.create_service(Trigger, '~/stop', self._stop)
        self.create_service(Trigger, '~/resume', self._resume)
        self.create_service(SetBool, '~/hand_guide', self._hand_guide)
        self._teleop = Teleop(self, self._controller, self._goals.frames, self._time, lambda: self._settings)
        self.create_timer(1.0, self._diagnose, clock=self._steady)
        on_change(self, lambda: self._settings, self._check, self._apply)
        self._server = threading.Thread(target=self._serve_loop, daemon=True)
        self._server.start()
        self._loop.start()
        if self._settings.autostart:
            try:
                self.start()
            except IkError:
                self.close()
                raise

    # Lifecycle

    def configure(self) -> None:
        """Read the description from the parameters, or else wait for the topic. Raises IkError."""
        self._descriptions.open(self._settings)

    def activate(self) -> None:
        """Allow commands."""
        self._controller.activate()

    def deactivate(self, patience: float | None = None) -> bool:
        """Bring the arm to rest within its limits, then command nothing; wait for patience [s] at most."""
        if patience is None:  # in a callback: /clock has to wait too, and simulated time stands
            patience = 0.0 if self.get_parameter('use_sim_time').value else BRAKING
        self._controller.deactivate()
        end = time.monotonic() + patience
        while self._controller.state not in RESTING and not self._time.stands and time.monotonic() < end:
            time.sleep(0.01)
        return self._controller.state in RESTING

    def come_to_rest(self) -> None:
        """Bring the arm to rest before the program ends; goals count no more."""
        self._closing.set()
        self._inbox.close()
        if not self.deactivate(BRAKING):
            self.get_logger().error(f'ended while the arm was {self._controller.state.value}')
        self._loop.close()

    def clean_up(self) -> None:
        """Let the next configure read the description anew."""
        self._descriptions.close()

    def close(self) -> None:
        """End the threads and the node."""
        self._closing.set()
        self._inbox.close()
        self._teleop.close()
        self._loop.close()
        if self.context.ok():
            self._controller.halt()
        self._server.join(timeout=2.0)
        self.destroy_node()
        gc.unfreeze()

    # Storing

    def _store(self, topic: str, kind: type[GoalRequest]) -> Callable[[Any], None]:
        def store(message: Any) -> None:
            pushed = self._inbox.put(kind(topic, message, self._goals))
            self._statistics.count('superseded', pushed)

        return store

    def _on_measured(self, message: JointState) -> None:
        try:
            positions = measured_values(message)
        except InputError as error:
            self.get_logger().warning(
                f'message with measured joints ignored: {error}', throttle_duration_sec=2.0
            )
            return
        self._controller.on_measured(self._calibration.measured(positions), self._time.now())

    def _look_for_measurements(self) -> None:
        self._watch.poll(self._settings.wait_for_measured)
        self._controller.expect_measured(self._watch.expected, self._watch.alone)

    # Services

    def _home(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = self._controller.state in READY
        response.message = self._controller.condition()[1]
        if response.success:
            response.message = 'moving to the home position'
            self._inbox.put(HomeRequest())
        return response

    def _stop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._inbox.clear()
        self._controller.stop()
        response.success = True
        response.message = 'stopping; call ~/resume to continue'
        return response

    def _resume(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        return self._answer(response, self._controller.resume)

    def _hand_guide(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        return self._answer(response, lambda: self._controller.guide(request.data, self._time.now()))

    def _answer(self, response: Any, act: Callable[[], None]) -> Any:
        try:
            act()
        except InputError as error:
            response.success, response.message = False, str(error)
        else:
            response.success, response.message = True, self._controller.condition()[1]
        return response

    # The arm

    def _check(self, settings: ArmSettings) -> None:
        """Raise IkError if these settings are invalid for the arm."""
        if self._text:
            snapshot = self._controller.snapshot()
            ArmModel.check(self._text, settings, None if snapshot is None else snapshot.model)

    def _apply(self, settings: ArmSettings) -> None:
        """Apply changed settings: limits from the next sample, another solver before the next goal."""
        before, self._settings = self._settings, settings
        self._controller.limit(settings)
        if not settings.same_model(before):
            self._inbox.put_change()

    def _prepare(self, description: str | None) -> None:
        """Switch to the arm of a new description, or with None rebuild the current one with new settings.

        If that is impossible, report it and keep the current arm.
        """
        snapshot = self._controller.snapshot()
        before = None if snapshot is None else snapshot.model
        text = description if description is not None else self._text or self._rejected
        if not text or (before is not None and before.text == description):
            return
        try:
            self._text, self._rejected = text, ''
            model = ArmModel.build(text, self._settings, before)
            if before is None or before.text != text:
                # Loaded modules stay: without freezing, later collections would scan them for 0.1 s and more.
                gc.collect()
                gc.freeze()
            while not self._controller.configure(model, self._settings):
                if self._closing.wait(0.005):
                    return
        except IkError as error:
            self._refused = f'robot_description refused: {error}'
            self._text, self._rejected = ('', text) if before is None else (before.text, '')
            state = self._controller.state
            self._publish_report(Report(Level.ERROR, self._refused, 'refused', 'refused', state))
            return
        self._refused = ''
        if before is None or before.text != text:
            self._settle_in(model, replaced=before is not None)

    def _settle_in(self, model: ArmModel, replaced: bool) -> None:
        """Complete the switch to a new robot: goals for the previous one are void."""
        if replaced:
            self._goals.replaced = time.perf_counter()
        self._goals.joints = None
        self._goal_markers.clear()
        for warning in model.arm.warnings:
            self.get_logger().warning(warning)
        for line in (Workspace.of(model.arm, self._settings.workspace).describe(), *model.notes):
            self.get_logger().info(line)

    # Goals, in a separate thread

    def _serve_loop(self) -> None:
        while (taken := self._inbox.take(self._goal_markers.wait)) is not None:
            description, changed, requests = taken
            try:
                if description is not None or changed:
                    self._prepare(description)
                self._statistics.count('superseded', max(0, len(requests) - 1))
                self._controller.submit(*requests)
                self._goal_markers.draw(self._controller.snapshot())
            except Exception:
                if self._closing.is_set() or not self.context.ok():
                    return
                error = traceback.format_exc()
                self.get_logger().error(
                    f'unexpected error, please report it: {error}', throttle_duration_sec=10.0
                )
                self._closing.wait(AFTER_ERROR)

    # Samples, in a separate thread

    def _sample(self, now: int) -> None:
        """Publish the joint positions at time now [ns]."""
        self._look_for_measurements()
        if self._watch.quiet:
            return
        if not (self._server.is_alive() or self._closing.is_set()):
            self._controller.fail('restart ik_node: the thread that solves goals has ended')
        sample = self._controller.tick(self._time.seconds(now))
        if sample is None:
            return
        self._statistics.tick(now)
        if sample.arrival is not None:
            self._statistics.moved_after(time.perf_counter() - sample.arrival)
        if self._controller.state in ON_ITS_WAY and time.monotonic() >= self._state_due:
            self._publish_goal_state()

    # Reports

    def _publish_report(self, report: Report) -> None:
        """Publish the result of a goal or the state of the arm, and log problems."""
        if report.request is not None:
            self._last_report = report
        if report.phase in ('moving', 'held'):
            self._statistics.count('taken')
            self._statistics.solved_in(report.solve_time)
            if report.goal is None or report.solution is None:
                self._goal_markers.clear()
            else:
                self._goal_markers.set(report.goal, report.solution.status)
        elif report.status == 'refused':
            self._statistics.count('refused')
        if report.status == 'refused' or report.phase == 'stopped':
            self._goals.joints = None  # the same joint goal again is a new one
        self._status.publish(status_message(self.get_name(), report))
        if report.phase == 'moving':
            self._loop.hurry()
        self._publish_goal_state()
        if self._closing.is_set():  # goals that are refused now are no news
            return
        log = self.get_logger()
        if report.level is Level.ERROR:
            log.error(report.message, throttle_duration_sec=2.0)
        elif report.level is Level.WARN:
            log.warning(report.message, throttle_duration_sec=2.0)
        elif report.request is None:
            log.info(report.message)

    def _publish_goal_state(self) -> None:
        snapshot = self._controller.snapshot()
        if snapshot is not None:
            self._state_due = time.monotonic() + STATE_PERIOD
            self._goal_state.publish(goal_state(self._last_report, snapshot))

    def _announce_kernels(self) -> None:
        """Report when kernels are being compiled, and when the compiled ones are in use."""
        now = kernels.state()
        before, self._kernels = self._kernels, now
        if now.stage is before.stage or not (now.compiled or now.reason):
            return
        level = Level.WARN if now.reason else Level.OK
        state = self._controller.state
        self._publish_report(Report(level, str(now), state.value, state.value, state))

    def _diagnose(self) -> None:
        self._announce_kernels()
        level, message = self._condition()
        late = time.monotonic() > self._started + PATIENCE
        if level is not Level.OK and late:
            if message != self._announced:  # the controller has reported its own conditions
                if self._controller.snapshot() is None or self._time.stands:
                    state = self._controller.state
                    self._publish_report(Report(level, message, 'waiting', 'waiting', state))
                self._remind_at = time.monotonic() + REMINDER
            elif time.monotonic() >= self._remind_at:
                self._remind_at += REMINDER
                self.get_logger().info(message)
            self._announced = message
        values = self._statistics.summary(1.0 / self._settings.publish_rate)
        values['kernels'] = str(self._kernels)
        snapshot = self._controller.snapshot()
        if snapshot is None:
            values['state'] = self._controller.state.value
        else:
            values |= arm_values(snapshot, self._last_report, message)
        status = diagnostic(level, self.get_fully_qualified_name(), message, values)
        array = DiagnosticArray(status=[status])
        array.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(array)

    def _condition(self) -> tuple[Level, str]:
        level, message = self._controller.condition()
        if message == NO_MODEL and self._refused:
            return Level.ERROR, self._refused
        if message == NO_MODEL and self._text:
            return Level.OK, 'preparing the arm'
        slow = NO_CLOCK if self._time.stands else self._inbox.slow if level is Level.OK else ''
        return (Level.WARN, slow) if slow else (level, message)


def main() -> int:
    """Run ik_node."""
    return run('ik_node', IkNode)
