# SPDX-License-Identifier: Apache-2.0
"""ik_node: the node that moves the joints of a robot to goals.

Callbacks only store. One thread solves goals, since a search may take long, one serves queries, another one
~/stop, ~/resume and ~/hand_guide, which wait for no message, and another moves the joints and publishes them
at the publish rate. The ArmController decides what may be commanded.
"""

from __future__ import annotations

import gc
import math
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from rcl_interfaces.msg import SetParametersResult
from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.impl.rcutils_logger import RcutilsLogger
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.subscription import Subscription
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from ik_node import kernels
from ik_node.control.arm_motion import JointArbiter
from ik_node.control.controller import NO_MODEL, ArmController, Inbox, Statistics
from ik_node.control.models import OFF, Models, build_models, check_models
from ik_node.control.outputs import Output
from ik_node.control.requests import Level, Request
from ik_node.control.settings import ArmSettings, RobotSettings, Workspace
from ik_node.control.states import ON_ITS_WAY, READY, State
from ik_node.errors import IkError, InputError
from ik_node.kernels import Stage
from ik_node.model.urdf.description import load_description, read_from
from ik_node.ros.conversions import NS_PER_S, measured_values, seconds
from ik_node.ros.frames import Frames
from ik_node.ros.graph import graph
from ik_node.ros.outputs import (
    DISPLAY_ONLY,
    Clocks,
    JointStates,
    JointTrajectoryTopic,
    OutputContext,
    PositionCommands,
    output_names,
)
from ik_node.ros.reports import NO_CLOCK, NodeTime, diagnostic
from ik_node.steady import steady

from .goals import GOALS
from .interfaces import (
    DELTA_TWIST,
    DESCRIPTION,
    DIAGNOSTICS,
    HOME,
    MEASURED_STATES,
    OWN_DESCRIPTION,
    STOP,
    RCLError,
    SubscribedTopic,
    wrap_change_state,
)
from .moveit import MoveItServices
from .neighbours import ARM, Card, Neighbours, digest
from .parameters import declare_robot, on_change
from .run import ClosableNode, SideNode, run
from .tool_interface import NodeContext, ServiceResult, ToolInterface, answered, offer_resume

ENDS = (Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_ACTIVE_SHUTDOWN)
END_LABELS = ('deactivate', 'shutdown')


class OnRest:
    """Stores callbacks until the arm rests; thread-safe."""

    def __init__(self, resting: Callable[[], bool]) -> None:
        self._resting = resting
        self._waiting: deque[Callable[[], None]] = deque()

    def then(self, act: Callable[[], None]) -> None:
        """Call act once the arm rests: now if it does already, else in the thread of look."""
        self._waiting.append(act)
        self.look()  # again: the arm may have come to rest before act was stored

    def look(self) -> None:
        """Call the callbacks if the arm rests; for the thread that moves it, after every setpoint."""
        while self._waiting and self._resting():
            try:
                act = self._waiting.popleft()
            except IndexError:  # another thread has taken it
                return
            act()


class GcPolicy:
    """Keeps collections short: one over all loaded modules would stop every thread for 0.1 s and more."""

    def settle(self) -> None:
        """Collect now, before the arm moves, and exclude the remaining objects from later collections."""
        gc.collect()
        gc.freeze()

    def on_stage(self, stage: Stage) -> None:
        """Do not collect while compiled kernels are loaded, and exclude them afterwards."""
        if stage is Stage.COMPILING:
            gc.disable()
        elif not gc.isenabled():
            gc.freeze()
            gc.enable()


POLL = 0.005  # [s]
AFTER_ERROR = 0.1  # [s] to wait after an unexpected error, so that the loop does not spin


class GoalThreads:
    """Both end when the inboxes of the node are closed."""

    def __init__(
        self,
        shared: NodeContext,
        tools: Sequence[ToolInterface],
        handler: DescriptionHandler,
        closing: threading.Event,
    ) -> None:
        """closing: set when the node is about to end."""
        self._shared, self._tools, self._description_handler, self._closing = shared, tools, handler, closing
        self._goals = threading.Thread(target=_repeat, args=(self._solve, self._until_drawing), daemon=True)
        self._queries = threading.Thread(target=_repeat, args=(self._answer, lambda: None), daemon=True)

    def start(self) -> None:
        """Start both threads."""
        self._goals.start()
        self._queries.start()

    def step(self) -> None:
        """Solve and answer what waits."""
        self._solve(0.0)
        self._answer(0.0)

    @property
    def ended(self) -> bool:
        """Whether the thread that solves goals has ended."""
        return self._goals.ident is not None and not self._goals.is_alive()

    def join(self) -> None:
        """Wait until the last goal is solved, 2 s at most."""
        if self._goals.ident is not None:
            self._goals.join(timeout=2.0)

    def _solve(self, timeout: float | None) -> bool:
        """Wait for requests, timeout [s] at most, and serve them; return False once the inbox is closed."""
        taken = self._shared.inbox.take(timeout)
        if taken is None:
            return False
        description, changed, requests = taken
        if description is not None or changed:
            self._try(self._description_handler.prepare, description)
        for tool in self._tools:
            self._try(self._serve, tool, requests.get(tool.tool, []))
        return True

    def _serve(self, tool: ToolInterface, waiting: Sequence[Request]) -> None:
        self._shared.statistics.count('superseded', max(0, len(waiting) - 1))
        while waiting and tool.controller.resuming and not self._closing.wait(POLL):
            pass
        tool.controller.submit(*waiting)
        if tool.markers.wait == 0.0:
            tool.markers.draw(tool.snapshot())

    def _answer(self, timeout: float | None) -> bool:
        """Do so with queries."""
        taken = self._shared.queries.take(timeout)
        if taken is None:
            return False
        for tool in self._tools:
            self._try(tool.controller.submit, *taken[2].get(tool.tool, []))
        return True

    def _try(self, act: Callable[..., None], *arguments: Any) -> None:
        """Call act; an unexpected error is logged, and the loop continues."""
        node = self._shared.node
        try:
            act(*arguments)
        except Exception:
            if not self._closing.is_set() and node.context.ok():
                error = traceback.format_exc()
                node.get_logger().error(f'unexpected error, please report it: {error}', throttle_duration_sec=10.0)
                self._closing.wait(AFTER_ERROR)

    def _until_drawing(self) -> float | None:
        """Return the time [s] until markers must be drawn, None if none."""
        return min((wait for tool in self._tools if (wait := tool.markers.wait) is not None), default=None)


def _repeat(act: Callable[[float | None], bool], timeout: Callable[[], float | None]) -> None:
    while act(timeout()):
        pass


CHECK = 0.1  # [s] between two checks of the publishers
OTHER_CLOCK = 60.0  # [s] from the node's clock: no message takes so long
YEAR_2000 = 946684800.0  # [s] since 1970: earlier stamps count from somewhere else
QUIET = 0.3  # [s] without setpoints after a new subscriber: a driver may be starting to publish measurements


class MeasuredWatch:
    """Watches the topics of a node, by a steady clock; cheap enough for every setpoint.

    topic: of the measurements, resolved; offered: whether it has a publisher.
    expected: measurements are expected. alone: no other publisher of joint_states. quiet: hold setpoints
    back.
    """

    def __init__(self, node: Node, measured: str, always: bool) -> None:
        """measured: topic of the measurements. always: auto expects them in any case.

        The node must have created its publisher of joint_states, if any.
        """
        self._node = node
        self._commands = node.resolve_topic_name('joint_states')
        self._measured = node.resolve_topic_name(measured)
        self._always = always or self._commands != node.resolve_topic_name('joint_states', only_expand=True)
        if self._commands == self._measured and measured != 'joint_states':
            raise InputError(
                f'joint_states and measured_joint_states are both {self._commands}: commands would count as '
                'measurements; remap joint_states too, for example to joint_commands'
            )
        self._publishers = [p for p in node.publishers if p.topic_name == self._commands]
        self._listeners = 0
        self._questioned = False  # stamps were, once
        self._checked = self._quiet_until = float('-inf')
        self._auto = True
        self.topic, self.offered = self._measured.removeprefix('/'), False
        self._offered = False  # measurements have a publisher, or had one that was heard, or are always needed
        self.received = False  # a measurement has arrived
        self.expected = False
        self.alone = True

    @property
    def quiet(self) -> bool:
        """Whether setpoints are held back at present."""
        return not self.expected and steady() < self._quiet_until

    @property
    def real(self) -> bool:
        """Whether the commands may move a real or simulated arm, not only a display."""
        return self._always or self.expected

    def poll(self, wait_for_measured: str) -> bool:
        """Check the topics if a check is due; return whether it was. wait_for_measured: the parameter."""
        self._auto = wait_for_measured == 'auto'
        self.hold_back()
        if steady() < self._checked + CHECK:
            return False
        self._checked = steady()
        self.offered = graph.count_publishers(self._node, self._measured) > 0
        had = self._offered and self.received
        self._offered = self._auto and (had or self._always or self.offered)
        self.expected = wait_for_measured == 'true' or self._offered
        self.alone = self._commands == self._measured or graph.count_publishers(self._node, self._commands) <= 1
        return True

    def age(self, stamp: float | None, now: float, since_1970: float) -> float:
        """Return the age [s] of a measurement by its stamp, both on the node's clock [s].

        since_1970: the same stamp, as it was sent [s].

        0, the time of arrival, without a stamp or for a stamp in the future or of another clock.
        """
        age = 0.0 if stamp is None else now - stamp
        if abs(age) <= OTHER_CLOCK:
            return max(age, 0.0)
        if not self._questioned:
            self._questioned = True
            where = f'{age:.3g} s old' if age > 0.0 else f'{-age:.3g} s in the future'
            why = f'{where}; is use_sim_time the same everywhere?'
            if since_1970 < YEAR_2000 < age:
                why = (
                    f'{since_1970:.3g} s: the driver counts from its own start. Synchronise its clock, or '
                    'leave the stamps zero'
                )
            self._node.get_logger().warning(
                f'measured joints are timed by their arrival, because their stamps are {why}'
            )
        return 0.0

    def hold_back(self) -> bool:
        """Return whether to hold back a setpoint, also when called directly before it is published.

        Between the check and the publication a driver could connect, and receive a made-up position.
        """
        if self._auto and not (self.expected or self._always):
            listeners = sum(publisher.get_subscription_count() for publisher in self._publishers)
            if listeners > self._listeners:
                self._quiet_until = steady() + QUIET
                self._checked = float('-inf')
            self._listeners = listeners
        return self.quiet


PERIOD = 1.0  # [s] between two looks
OPEN = 0.05  # [s] for which a look lasts at least


class QosEventThrottle(CallbackGroup):
    """Excludes the events of a node from the wait set of the executor, except briefly every second.

    Every publisher and subscription has two such events for incompatible qualities of service. They are rare,
    but rclpy prepares all of them again for every message, which is most of the cost of a message. An event
    stays available until it is taken, so none is lost.

    One timer begins and ends each look. The executor runs timers after events, so it has waited for all
    events at least once between the two, however late it is.
    """

    def __init__(self, node: Node) -> None:
        super().__init__()
        self._node, self._open = node, False
        self._timer = node.create_timer(PERIOD, self._turn, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _turn(self) -> None:
        """Begin a look, or end it."""
        self._open = not self._open
        self._timer.timer_period_ns = round((OPEN if self._open else PERIOD) * 1e9)
        self._timer.reset()
        if self._open:
            self._keep()

    def _keep(self) -> None:
        """Keep the events of what was created since the last look too."""
        entities: list[Any] = [*self._node.publishers, *self._node.subscriptions]
        for entity in entities:
            for handler in entity.event_handlers:
                if handler.callback_group is not self:
                    handler.callback_group = self
                    self.add_entity(handler)

    def can_execute(self, entity: Any) -> bool:  # noqa: ARG002
        """Whether the executor may wait for these events now."""
        return self._open

    def beginning_execution(self, entity: Any) -> bool:  # noqa: ARG002
        """Allow it."""
        return True

    def ending_execution(self, entity: Any) -> None:
        """Do nothing."""


RATIO = 0.05  # of the ratio of both periods from a whole number; beyond it, setpoints are not synchronised
GAIN = 8  # periods in which most of a phase difference is removed
SIMULATED_WAIT = 0.001  # seconds between two checks of a simulated clock


def in_step(due: int, period: int, begun: int, begun_before: int) -> int:
    """Return when a setpoint synchronised with a controller is due, near a time due [ns].

    Half a period [ns] after the start of a period of the controller, so that jitter does not change the
    period in which a command is used. Its last two began at begun and begun_before [ns].
    """
    ratio = (begun - begun_before) / period
    if ratio < 1.0 - RATIO or abs(ratio - round(ratio)) > RATIO:
        return due
    error = (begun + period - due) % period - period // 2
    return due + error // GAIN


class SetpointLoop:
    """Calls setpoint(due, now [ns]) once per period [s] until closed; send_now() brings one forward."""

    def __init__(self, node: Node, period: Callable[[], float], setpoint: Callable[[int, int], None]) -> None:
        self._node, self._period, self._setpoint = node, period, setpoint
        self._closing = threading.Event()
        self._set_off = threading.Event()  # an arm at rest has a new target
        self._begun: tuple[int, int] | None = None  # the last periods of the controller
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def send_now(self) -> None:
        """Shorten the current period, for an arm that starts to move."""
        self._set_off.set()

    def begun(self, time: int) -> None:
        """Note when a period of the controller has begun [ns], to synchronise the setpoints with it."""
        self._begun = time, self._begun[0] if self._begun else 0

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
        self._set_off.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=2.0)

    def _run(self) -> None:
        last = due = self._node.get_clock().now().nanoseconds
        while not self._closing.is_set():
            period = int(NS_PER_S * self._period())
            due += period
            if self._begun is not None:
                due = in_step(due, period, *self._begun)
            now = self._wait_until(due, last, period)
            # A setpoint for the time when it is due: the thread may wake up late.
            at = due if due <= now < due + period // 2 else now
            try:
                self._setpoint(at, now)
            except Exception:
                if self._closing.is_set() or not self._node.context.ok():
                    return
                self._node.get_logger().error(
                    f'unexpected error, please report it: {traceback.format_exc()}',
                    throttle_duration_sec=10.0,
                )
            last = at
            if not due <= now < due + period:  # early start, or late after a stall: no burst to catch up
                due = now

    def _wait_until(self, due: int, last: int, period: int) -> int:
        """Wait for the time due [ns], or after send_now() for half a period since the last setpoint.

        Returns the present time. A clock that is set back ends the wait too.
        """
        clock = self._node.get_clock()
        simulated = self._node.get_parameter('use_sim_time').value
        while True:
            send_now = self._set_off.is_set()
            until = min(due, last + period // 2) if send_now else due
            now = clock.now().nanoseconds
            if not last <= now < until or self._closing.is_set():
                self._set_off.clear()
                return now
            left = min((until - now) / NS_PER_S, SIMULATED_WAIT if simulated else math.inf)
            if send_now:
                time.sleep(left)
            else:
                self._set_off.wait(left)


class Descriptions:
    """Passes descriptions on to receive while it is open."""

    def __init__(self, node: Node, receive: Callable[[str], None]) -> None:
        self._node, self._receive = node, receive
        self._subscription: Subscription | None = None
        self._publisher: Publisher | None = None
        self._pending = ''  # to be published

    def open(self, robot: RobotSettings) -> None:
        """Read the description that the settings name, or wait for the topic. Raises IkError."""
        settings = robot.general
        text, path = settings.robot_description, settings.urdf_file
        if text and path:
            raise InputError('parameters robot_description and urdf_file are both set; set only one of them')
        if not text and not path:
            self._subscription = DESCRIPTION.subscription(self._node, self._on_description)
            return
        text = text or load_description(path, settings.xacro_args)
        with read_from(path):
            check_models(text, robot, {})
        self._take(text, settings)

    def _take(self, text: str, settings: ArmSettings) -> None:
        self._receive(text)
        if settings.publish_description:
            self._pending = text

    def publish(self) -> None:
        """Publish the description of the parameters, if it is to be and has not been."""
        text, self._pending = self._pending, ''
        if text:
            if self._publisher is None:
                self._publisher = OWN_DESCRIPTION.publisher(self._node)
            self._publisher.publish(String(data=text))

    @staticmethod
    def check(before: ArmSettings, after: ArmSettings, real: bool) -> str:
        """Return the text of a changed parameter robot_description, '' without a change.

        real: the commands may move a real arm. Raises InputError if the change is not allowed.
        """
        if after.robot_description == before.robot_description:
            return ''
        if not (before.robot_description and after.robot_description):
            raise InputError(
                'parameter robot_description can only replace a text set at start-up; here the '
                f'description comes from {"urdf_file" if before.urdf_file else "the topic or is to be none"}'
            )
        if real:
            raise InputError(
                'parameter robot_description cannot change while joints are measured or commands go to a '
                'controller or driver: a real arm is connected'
            )
        return after.robot_description

    def change(self, before: ArmSettings, settings: ArmSettings) -> None:
        """Use a changed text that has passed check()."""
        if settings.robot_description != before.robot_description:
            self._take(settings.robot_description, settings)

    def _on_description(self, message: String) -> None:
        self._receive(message.data)

    def close(self) -> None:
        """Stop waiting for a description."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None


KEPT = 'a real arm is active: deactivate the node before publishing another description'


class DescriptionHandler:
    """The robot in use, and the change to another one.

    models: of the robot in use, by its first tool; empty before the first robot. rejected: why the last
    description was rejected; empty if it was not.
    """

    def __init__(
        self,
        tools: Sequence[ToolInterface],
        settings: Callable[[], RobotSettings],
        log: RcutilsLogger,
        gc_policy: GcPolicy | None,
        closing: threading.Event,
        real: Callable[[], bool],
    ) -> None:
        """settings: returns the present ones. closing: set when the node is about to end.

        real: returns whether the commands may move a real arm.
        """
        self._tools, self._settings, self._log = tools, settings, log
        self._gc_policy, self._closing = gc_policy, closing
        self._real = real
        self._text = ''  # of the current or next robot
        self._rejected = ''  # the text that was rejected while there was none
        self.rejected = ''
        self.models: Models = {}

    @property
    def has_description(self) -> bool:
        """Whether a description is in use or about to be."""
        return bool(self._text)

    @property
    def text(self) -> str:
        """The description in use or about to be, '' without one."""
        return self._text

    def check(self, text: str, settings: RobotSettings) -> None:
        """Raise IkError if settings do not fit the robot, or that of a new text."""
        if self._text:
            check_models(text or self._text, settings, self.models)

    def prepare(self, description: str | None) -> None:
        """Switch to the robot of a new description, or with None rebuild the current one with new settings.

        If that is impossible, report it and keep the current robot.
        """
        before = self.models
        known = next((model.text for model in before.values()), '')
        text = description if description is not None else self._text or self._rejected
        if not text or known == description:
            return
        try:
            if known and known != text and self._real() and any(map(_active, self._tools)):
                raise InputError(KEPT)
            self._text, self._rejected = text, ''
            models = build_models(text, self._settings(), before)
            if self._gc_policy is not None:
                self._gc_policy.on_stage(kernels.state().stage)
                if known != text:
                    self._gc_policy.settle()
            if not self._give(models):
                return
        except Exception as error:
            expected = isinstance(error, IkError)
            reason = error if expected else f'unexpected error, please report it: {error!r}'
            self.rejected = f'robot_description rejected: {reason}'
            self._text, self._rejected = (known, '') if before else ('', text)
            report_for_all(self._tools, Level.ERROR, self.rejected, 'rejected')
            if not expected:
                raise
            return
        self.rejected = ''
        self.models = models
        if known != text:
            self._settle_in(models, replaced=bool(before))

    def _give(self, models: Models) -> bool:
        """Pass every controller its model once its arm rests; False if the node ends before that."""
        for first, model in models.items():
            group = [tool for tool in self._tools if tool.tool in model.tools]
            group[0].lead(group)
            while not group[0].controller.configure(model, partial(self._limits, first)):
                if self._closing.wait(0.005):
                    return False
        return True

    def _limits(self, first: str) -> ArmSettings:
        """Return the present settings of the arms whose first tool this is."""
        return self._settings().arms[first]

    def _settle_in(self, models: Models, replaced: bool) -> None:
        """Complete the switch to a new robot: goals for the previous one are void."""
        for tool in self._tools:
            first = tool.group[0].tool
            arm = models[first].tools[tool.tool].arm
            tool.renew(arm, replaced)
            workspace = Workspace.of(arm, self._settings().arms[first].workspace)
            self._log.info(tool.label(workspace.describe()))
        for model in models.values():
            for line in model.notes:
                (self._log.warning if line.startswith(OFF) else self._log.info)(line)
        self.warn_of_unused(self._settings())

    def warn_of_unused(self, settings: RobotSettings) -> None:
        """Name the workspaces that have no effect: tools that share joints have that of the first of them."""
        for tool in self._tools:
            own, first = settings.arms[tool.tool].workspace, tool.group[0].tool
            if any(own) and own != settings.arms[first].workspace:
                self._log.warning(
                    f'parameter {tool.tool}.workspace is not used: {tool.tool} shares joints with {first}, and '
                    f'{first}.workspace applies to both'
                )


def _active(tool: ToolInterface) -> bool:
    """Whether the arm of a tool is active: it is commanded, or will be once it can."""
    return tool.controller.state not in (State.UNCONFIGURED, State.INACTIVE)


PATIENCE = 2.0  # [s] without a description or a clock after which it is logged
REMINDER = 60.0  # [s] to the second line in the log while the arm cannot move; then twice as long each time


class Diagnostics:
    """Publishes the condition of every tool, and reports those that last."""

    def __init__(
        self,
        shared: NodeContext,
        tools: Sequence[ToolInterface],
        handler: DescriptionHandler,
        gc_policy: GcPolicy | None,
    ) -> None:
        self._shared, self._tools = shared, tools
        self._description_handler, self._gc_policy = handler, gc_policy
        self._log = shared.node.get_logger()
        self._started = steady()
        self._announced: dict[str, str] = {}  # by tool, the last condition other than OK
        self._since: dict[str, float] = {}  # when it began (steady)
        self._remind_at: dict[str, float] = {}  # when it is logged again (steady)
        self._kernels = kernels.KernelState(kernels.Stage.PLAIN)
        self._diagnostics = DIAGNOSTICS.publisher(shared.node)

    def publish(self, period: float) -> None:
        """Publish the condition of every tool; period [s]: of the setpoints."""
        self._announce_kernels()
        array = DiagnosticArray()
        summary = self._shared.statistics.summary(period)
        for tool in self._tools:
            tool.publish_due()  # there are no setpoints while simulated time is paused
            state = tool.controller.state  # read first: a later one has reports of its own
            level, message = self._condition(tool)
            if tool.leads:
                self._remind(tool, state, level, message)
            values = {**summary, 'kernels': str(self._kernels), **tool.diagnostics(message)}
            name = self._shared.node.get_fully_qualified_name() + (f'/{tool.tool}' if tool.tool else '')
            array.status.append(diagnostic(level, name, message, values))
        array.header.stamp = self._shared.node.get_clock().now().to_msg()
        self._diagnostics.publish(array)

    def _announce_kernels(self) -> None:
        """Report when kernels are being compiled, and when the compiled ones are in use."""
        now = kernels.state()
        if self._gc_policy is not None:
            self._gc_policy.on_stage(now.stage)
        before, self._kernels = self._kernels, now
        if now.stage is before.stage or not (now.compiled or now.reason):
            return
        level = Level.WARN if now.reason else Level.OK
        report_for_all(self._tools, level, str(now))

    def _remind(self, tool: ToolInterface, state: State, level: Level, message: str) -> None:
        """Report a condition that lasts, and log it from time to time; state: in which it was found."""
        if level is Level.OK or steady() <= self._started + PATIENCE:
            return
        if message != self._announced.get(tool.tool):  # the controller has reported its own conditions
            silent = tool.snapshot() is None or self._shared.time.stands
            if silent and not tool.controller.announce(level, message, 'waiting', state):
                return
            self._since[tool.tool] = steady()
            self._remind_at[tool.tool] = steady() + REMINDER
        elif steady() >= self._remind_at[tool.tool]:
            self._remind_at[tool.tool] += max(steady() - self._since[tool.tool], REMINDER)
            self._log.info(tool.label(message))
        self._announced[tool.tool] = message

    def _condition(self, tool: ToolInterface) -> tuple[Level, str]:
        level, message = tool.controller.condition()
        if message == NO_MODEL and self._description_handler.rejected:
            return Level.ERROR, self._description_handler.rejected
        if message == NO_MODEL and self._description_handler.has_description:
            return Level.OK, 'preparing the arm'
        slow = NO_CLOCK if self._shared.time.stands else self._shared.inbox.slow if level is Level.OK else ''
        return (Level.WARN, slow) if slow else (level, message)


def report_for_all(tools: Sequence[ToolInterface], level: Level, sentence: str, word: str = '') -> None:
    """Report a sentence for every arm, and log it once; word: as for ArmController.announce."""
    for number, tool in enumerate(tool for tool in tools if tool.leads):
        tool.controller.announce(level, sentence, word, logged=number == 0)


def offer_for_all(shared: NodeContext, tools: Sequence[ToolInterface]) -> None:
    """Provide ~/home, ~/stop and ~/resume for all tools; responses contain the result of each."""

    def of_all(act: Callable[[ToolInterface], ServiceResult], leaders_only: bool) -> ServiceResult:
        answers = {tool.tool: act(tool) for tool in tools if tool.leads or not leaders_only}
        sentences = '; '.join(f'{tool}: {message}' for tool, (_, message) in answers.items())
        return all(success for success, _ in answers.values()), sentences

    HOME.provide(shared.node, answered(lambda: of_all(ToolInterface.home, leaders_only=False)))
    stop = answered(lambda: of_all(ToolInterface.stop, leaders_only=True))
    STOP.provide(shared.node, stop, by=shared.urgent)
    offer_resume(shared, lambda: of_all(resumed, leaders_only=True))


def resumed(tool: ToolInterface) -> ServiceResult:
    """Resume an arm, unless it has not stopped."""
    return (True, 'not stopped') if tool.controller.state in READY else tool.resume()


FINDING = 'looking for other programs that command this arm'
CLEARING = 5.0  # [s] within which a driver must take commands again
FOUND = 1.0  # [s] within which its service is found
LOOK = 0.02  # [s] from one look at that to the next
MAX_JOINTS = 100  # that other programs are told
MOVING = ON_ITS_WAY | {State.STOPPING}
SLOW = 3.0  # [s] without a motion after which goal_speed is 1 again
BRAKING = 4.0  # [s] within which an arm that is deactivated comes to rest; ros2 launch waits 5 s


def output(name: str, context: OutputContext) -> Output:
    """Return the output of an arm of this name. Raises MissingError."""
    if name == 'joint_trajectory':
        return JointTrajectoryTopic(context)
    if name == 'position_commands':
        return PositionCommands(context)
    from ik_node.ros.follow_joint_trajectory import FollowJointTrajectoryAction  # actions load for 0.1 s

    return FollowJointTrajectoryAction(context)


class IkNode(LifecycleNode, ClosableNode):
    """The node; options are those of rclpy's Node. Raises IkError if it cannot start with its parameters."""

    def __init__(self, gc_policy: GcPolicy | None = None, **options: Any) -> None:
        """gc_policy: the collector of the program, if it belongs to this node."""
        super().__init__('ik_node', **options)
        self._configured = self._active = False
        self._leaves = False  # it serves the arm no longer once that rests
        wrap_change_state(self, self._resting_first)
        self._settings = declare_robot(self)
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._inbox, self._queries = Inbox(), Inbox()
        self._statistics = Statistics()
        self._closing = threading.Event()
        self._rest = OnRest(lambda: self._resting)
        self._time, self._clocks, self._qos_events = NodeTime(self), Clocks(), QosEventThrottle(self)

        general = self._settings.general
        self._output_names = output_names(general.output)
        self._commanded: list[str] = []  # topics and actions with commands
        self._picture: JointStates | None = None
        self._ignored = ''  # why the last message with measured joints is
        if DISPLAY_ONLY in self._output_names:
            self._picture = JointStates(self, self._time, lambda: self._watch.hold_back())
        self._loop = SetpointLoop(self, lambda: 1.0 / self._settings.general.publish_rate, self.setpoint)
        self._robot, self._frames = JointArbiter(), Frames(self)
        self._urgent = SideNode(self, 'stop')
        shared = NodeContext(
            self,
            self._urgent.node,
            self._time,
            self._frames,
            self._inbox,
            self._queries,
            self._statistics,
            self._robot,
            self._loop.send_now,
            self._clear_driver,
        )
        self._tools = [
            ToolInterface(shared, tool, partial(self._settings_of, tool), self._outputs) for tool in self._settings.arms
        ]
        self._description_handler = DescriptionHandler(
            self._tools,
            lambda: self._settings,
            self.get_logger(),
            gc_policy,
            self._closing,
            lambda: self._watch.real,
        )
        self._diagnostics = Diagnostics(shared, self._tools, self._description_handler, gc_policy)
        self._moveit = MoveItServices(self, self._tools, shared.frames)
        measured = self._measured_topic()
        self._watch = MeasuredWatch(self, measured.name, always=self._output_names != (DISPLAY_ONLY,))
        self._look_for_measurements()
        self._descriptions = Descriptions(self, self._inbox.put_description)
        measured.subscription(self, self._on_measured)
        if self._settings.own:
            offer_for_all(shared, self._tools)
        self._neighbours = self._meet_neighbours(measured.name)
        self.create_timer(1.0, self._diagnose, clock=self._steady)
        on_change(self, lambda: self._settings, self._check, self._apply)
        self._slow_until = steady() + SLOW
        self.add_on_set_parameters_callback(self._note_speed)
        self._goals = GoalThreads(shared, self._tools, self._description_handler, self._closing)
        if general.autostart:
            try:
                self.start()
            except IkError:
                self.close()
                raise

    def start_threads(self) -> None:
        """Start the threads, which do what step() does once."""
        for tool in self._tools:
            tool.teleop.start()
        self._goals.start()
        self._urgent.start()
        self._loop.start()

    def step(self, now: int) -> None:
        """Carry out what is asked, then publish the joint positions for now [ns]."""
        self._goals.step()
        for tool in self._tools:
            tool.teleop.step()
        self.setpoint(now, now)

    def _measured_topic(self) -> SubscribedTopic:
        """Return the topic of the measured joints: joint_states, unless this node publishes that."""
        if DISPLAY_ONLY in self._output_names:
            return MEASURED_STATES
        return replace(MEASURED_STATES, name='joint_states')

    def _outputs(self, tool: ToolInterface) -> list[Output]:
        """Return the outputs of the controller of a tool."""
        context = OutputContext(
            self,
            tool.prefix,
            self._settings.arms[tool.tool].controller,
            self._time,
            self._clocks,
            lambda reason: tool.own_controller.fault(reason),
            lambda *reference: tool.own_controller.on_reference(*reference),
            self._commanded,
        )
        outputs = [output(name, context) for name in self._output_names if name != DISPLAY_ONLY]
        if self._picture is not None:
            outputs.append(self._picture)
        return outputs

    def _meet_neighbours(self, measured: str) -> Neighbours:
        """Return the programs that command or serve the same arm. measured: topic of the measured joints."""
        if self._picture is not None and not self._commanded:  # else it is only a picture
            self._commanded.append('joint_states')
        takes = [topic.named(tool.prefix) for topic in (*GOALS, DELTA_TWIST) for tool in self._tools]
        return Neighbours(
            self,
            ARM,
            self._mind_neighbours,
            takes=takes,
            commands=self._commanded,
            reads=[measured],
            any_session=self._settings.general.accept_other_sessions,
        )

    def _mind_neighbours(self) -> None:
        """Let the arm wait while a node that began earlier has the same job; name what is new."""
        if self.closing:
            return
        met = self._neighbours
        arms = [arm for controller in self._controllers if (arm := controller.snapshot())]
        joints = {name for arm in arms for name in arm.model.joints.names}
        about = {
            'joints': tuple(sorted(joints)[:MAX_JOINTS]),
            'description': digest(self._settings.general.robot_description or self._description_handler.text),
            'any_session': self._settings.general.accept_other_sessions,
            'waits': bool(ahead := met.ahead() or ('' if met.settled else FINDING)) or self._unmeasured,
        }
        if any(getattr(met.own, name) != value for name, value in about.items()):
            met.update(**about)
        if not ahead:  # else it would replace that of the other program on its page
            self._descriptions.publish()
        for tool in self._tools:
            tool.own_controller.bar(ahead)
        self._refuse()
        for sentence in met.announce(self._watch.real):
            report_for_all(self._tools, Level.WARN, sentence)

    def _refuse(self) -> None:
        for tool in self._tools:
            tool.own_controller.refuse(self._neighbours.refusal(tool.controller.needed))

    async def _clear_driver(self, joints: Sequence[str]) -> None:
        """End holds and faults of the drivers of these joints; none: of all joints."""
        cleared: set[str] = set()
        while (driver := self._neighbours.refuses(joints)) and driver.id not in cleared:
            cleared.add(driver.id)
            await self._clear(driver, joints)
        self._refuse()

    async def _clear(self, driver: Card, joints: Sequence[str]) -> None:
        """Return once the driver takes commands, refuses to or does not respond."""
        node = self._urgent.node
        client, done = node.create_client(Trigger, f'{driver.node}/clear'), Future(executor=node.executor)
        done.add_done_callback(lambda _: None)  # this wakes the executor
        begun = steady()
        answer: Future | None = None

        def look() -> None:
            nonlocal answer
            if answer is None and client.service_is_ready():
                answer = client.call_async(Trigger.Request())
            refused = answer is not None and answer.done() and not answer.result().success
            late = steady() > begun + (FOUND if answer is None else CLEARING)
            now = self._neighbours.refuses(joints)
            if not done.done() and (refused or late or now is None or now.id != driver.id):
                done.set_result(None)

        timer = node.create_timer(LOOK, look, clock=self._steady)
        await done
        node.destroy_timer(timer)
        node.destroy_client(client)

    def _settings_of(self, tool: str) -> ArmSettings:
        return self._settings.arms[tool]

    @property
    def closing(self) -> bool:
        """Whether the node is about to end."""
        return self._closing.is_set()

    @property
    def _controllers(self) -> list[ArmController]:
        """The controllers that move the robot: one for tools that share joints."""
        return [tool.controller for tool in self._tools if tool.leads]

    @property
    def _unmeasured(self) -> bool:
        return any(controller.state is State.WAITING for controller in self._controllers)

    @property
    def _resting(self) -> bool:
        return all(controller.resting for controller in self._controllers)

    # Lifecycle

    def start(self) -> None:
        """Configure and activate the node without a manager. Raises IkError if it cannot be configured."""
        self._configure()
        self.trigger_configure()
        self.trigger_activate()

    def _configure(self) -> None:
        """Read the description from the parameters, or else wait for the topic. Raises IkError."""
        if not self._configured:
            self._descriptions.open(self._settings)
        self._configured = True

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Configure; FAILURE leaves the node unconfigured."""
        try:
            self._configure()
        except IkError as error:
            self.get_logger().error(str(error))
            return TransitionCallbackReturn.FAILURE
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Allow commands."""
        self._active, self._leaves = True, False
        self._neighbours.update(since=time.time())
        self._mind_neighbours()
        for tool in self._tools:
            tool.own_controller.activate()
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Deactivate, even if it takes longer to come to rest: the node could not be activated again."""
        self._end()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let the next configuration read the description again."""
        self._clean_up()
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Come to rest before the end."""
        self._end()
        return super().on_shutdown(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Come to rest, and be unconfigured afterwards."""
        self._end()
        self._clean_up()
        return super().on_error(state)

    def _resting_first(self, change: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Return a callback for change_state that comes to rest first, and answers where change raises.

        change is rclpy's callback. It calls on_deactivate, which cannot wait without keeping all other
        callbacks waiting too.
        """

        async def callback(request: Any, response: Any) -> Any:
            transition = request.transition
            ends = transition.label in END_LABELS if transition.label else transition.id in ENDS
            if self._active and ends:
                self.deactivate()
                await self._rested()
            try:
                return change(request, response)
            except RCLError as error:  # there is no such transition now
                self.get_logger().error(f'change_state rejected: {error}', throttle_duration_sec=2.0)
                response.success = False
                return response

        return callback

    def _end(self) -> None:
        self.deactivate()
        self._active = False

    def deactivate(self) -> None:
        """Bring the arm to rest within its limits, then send no commands."""
        self._leaves = True
        for tool in self._tools:
            tool.own_controller.deactivate()
        self._rest.then(self._leave)  # another node must not command the arm while it still brakes

    def _leave(self) -> None:
        if self._leaves:
            self._neighbours.leave()

    def _clean_up(self) -> None:
        self._descriptions.close()
        self._configured = False

    async def _rested(self) -> None:
        """Return once the arm rests, or after BRAKING.

        Callbacks continue to run: the arm needs measurements, /clock and the responses of its controller.
        """
        if self._time.stands:
            return
        done = Future(executor=self.executor)
        done.add_done_callback(lambda _: None)  # this wakes the executor
        end = self.create_timer(BRAKING, lambda: done.set_result(None), clock=self._steady)
        try:
            self._rest.then(lambda: done.set_result(None))
            await done
        finally:
            self.destroy_timer(end)

    def come_to_rest(self) -> None:
        """Bring the arm to rest before the program ends; new goals are ignored."""
        self._closing.set()
        self._inbox.close()
        self._queries.close()
        self.deactivate()
        rested = threading.Event()
        self._rest.then(rested.set)
        if not rested.wait(0.0 if self._time.stands else BRAKING):
            states = ', '.join(sorted({controller.state.value for controller in self._controllers}))
            self.get_logger().error(f'ended while the arm was {states}')
        self._loop.close()

    def close(self) -> None:
        """End the threads and the node."""
        self._closing.set()
        self._inbox.close()
        self._queries.close()
        self._moveit.close()
        for tool in self._tools:
            tool.close()
        self._loop.close()
        if self.context.ok():
            for controller in self._controllers:
                controller.halt()
        self._goals.join()
        self._frames.close()
        self._urgent.close()
        self.destroy_node()
        vars(self).pop('_state_machine', None)  # else the graph has the node for 20 s longer

    # Measurements

    def _on_measured(self, message: JointState) -> None:
        try:
            positions = measured_values(message)
        except InputError as error:
            if str(error) != self._ignored:
                self.get_logger().warning(f'message with measured joints ignored: {error}')
            self._ignored = str(error)
            self._look_for_measurements(True)
            return
        if self._ignored:
            self._ignored = ''
            self._look_for_measurements(True)
        if self._watch.expected and not self._watch.received:
            self._neighbours.search()  # a network that shows its driver late shows other nodes late
        self._watch.received = True
        now = self._time.now()
        stamp = self._time.of(message.header.stamp)
        self._clocks.note(now, stamp)
        if 'position_commands' in self._output_names and stamp is not None and self._clocks.agree:
            self._loop.begun(self._time.nanoseconds(stamp))
        measured = now - self._watch.age(stamp, now, seconds(message.header.stamp))
        for controller in self._controllers:
            controller.on_measured(positions, now, measured)
        for tool in self._tools:
            tool.gripper.take_efforts(message)

    def _look_for_measurements(self, changed: bool = False) -> None:
        if self._watch.poll(self._settings.general.wait_for_measured) or changed:
            for tool in self._tools:
                tool.own_controller.measured_by(self._watch.topic, self._watch.offered, self._ignored)
                tool.own_controller.expect_measured(self._watch.expected, self._watch.alone)

    # The arm

    def _check(self, settings: RobotSettings) -> None:
        """Raise IkError if these settings are invalid for the robot."""
        text = self._descriptions.check(self._settings.general, settings.general, self._watch.real)
        self._description_handler.check(text, settings)

    def _apply(self, settings: RobotSettings) -> None:
        """Apply changed settings: limits from the next setpoint, another solver before the next goal."""
        before, self._settings = self._settings, settings
        self._descriptions.change(before.general, settings.general)
        self._mind_neighbours()
        for tool in self._tools:
            tool.own_controller.set_limits(settings.arms[tool.tool])
        if any(arm.workspace != before.arms[tool].workspace for tool, arm in settings.arms.items()):
            self._description_handler.warn_of_unused(settings)
        if not settings.same_models(before):
            self._inbox.put_change()

    # Setpoints, in a separate thread

    def setpoint(self, due: int, now: int) -> None:
        """Publish the joint positions for the time due [ns], at time now [ns]."""
        self._look_for_measurements()
        if self._watch.quiet:
            return
        dead = self._goals.ended and not self._closing.is_set()
        seconds, arrived = self._time.seconds(due), []
        with self._robot.sending():
            for controller in self._controllers:
                if dead:
                    controller.fault('restart ik_node: the thread that solves goals has ended')
                setpoint = controller.tick(seconds)
                if setpoint is not None:
                    arrived.append(setpoint.arrival)
            if self._picture is not None:
                self._picture.publish()
        self._rest.look()
        for tool in self._tools:
            tool.gripper.step(tool.snapshot)
        if not arrived:
            return
        self._statistics.tick(now)
        for arrival in arrived:
            if arrival is not None:
                self._statistics.moved_after(steady() - arrival)
        for tool in self._tools:
            tool.moved()

    def _note_speed(self, parameters: list[Parameter]) -> SetParametersResult:
        if any(parameter.name == 'goal_speed' for parameter in parameters):
            self._slow_until = steady() + SLOW
        return SetParametersResult(successful=True)

    def _end_slow_motion(self) -> None:
        """Set goal_speed back, which is for one motion: the program that has set it may have been killed."""
        if self._settings.general.goal_speed == 1.0:
            return
        if self._inbox.busy or any(controller.state in MOVING for controller in self._controllers):
            self._slow_until = steady() + SLOW
        elif steady() > self._slow_until:
            self.set_parameters([Parameter('goal_speed', value=1.0)])

    def _diagnose(self) -> None:
        self._end_slow_motion()
        self._diagnostics.publish(1.0 / self._settings.general.publish_rate)


def main() -> int:
    """Run ik_node."""
    return run('ik_node', partial(IkNode, gc_policy=GcPolicy()))
