# SPDX-License-Identifier: Apache-2.0
"""ik_node: the node that moves the joints of a robot to goals.

Callbacks only store. One thread solves goals, since a search may take long, one serves queries, another one
~/stop, ~/resume and ~/hand_guide, which wait for no message, and another moves the joints and publishes them
at the publish rate. The ArmController decides what may be commanded.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from ik_node.control.controller.inbox import Inbox
from ik_node.control.controller.statistics import Statistics
from ik_node.control.joints.shared_robot import SharedRobot
from ik_node.control.outputs.outputs import Output
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.settings.robot import RobotSettings
from ik_node.control.state.report import Level
from ik_node.control.state.states import State
from ik_node.errors import IkError, InputError
from ik_node.ros.conversions import measured_values, seconds
from ik_node.ros.goals.frames import Frames
from ik_node.ros.goals.goal_requests import GOALS
from ik_node.ros.goals.node_time import NodeTime
from ik_node.ros.interfaces import DELTA_TWIST, MEASURED_STATES, SubscribedTopic
from ik_node.ros.moveit.services import MoveItServices
from ik_node.ros.neighbours import ARM, Card, Neighbours, digest
from ik_node.ros.node.at_rest import AtRest
from ik_node.ros.node.descriptions import Descriptions
from ik_node.ros.node.diagnostics import Diagnostics
from ik_node.ros.node.garbage import Garbage
from ik_node.ros.node.goal_threads import GoalThreads
from ik_node.ros.node.managed import ManagedNode
from ik_node.ros.node.measured_watch import MeasuredWatch
from ik_node.ros.node.rare_events import RareEvents
from ik_node.ros.node.robot_switch import RobotSwitch
from ik_node.ros.node.setpoint_loop import SetpointLoop
from ik_node.ros.outputs import DISPLAY_ONLY, make_outputs, output_names
from ik_node.ros.outputs.clocks import Clocks
from ik_node.ros.outputs.context import OutputContext
from ik_node.ros.outputs.joint_states import JointStates
from ik_node.ros.run import run
from ik_node.ros.settings_declaration import declare_robot, on_change
from ik_node.ros.spin import SideNode
from ik_node.ros.tools.services_of_all import offer_for_all
from ik_node.ros.tools.tool_interface import NodeContext, ToolInterface
from ik_node.steady import steady

FINDING = 'looking for other programs that command this arm'
CLEARING = 5.0  # [s] within which a driver must take commands again
FOUND = 1.0  # [s] within which its service is found
LOOK = 0.02  # [s] from one look at that to the next
MOST_JOINTS = 100  # that other programs are told
BRAKING = 4.0  # [s] within which an arm that is deactivated comes to rest; ros2 launch waits 5 s


class IkNode(ManagedNode):
    """The node; options are those of rclpy's Node. Raises IkError if it cannot start with its parameters."""

    def __init__(self, garbage: Garbage | None = None, **options: Any) -> None:
        """garbage: the collector of the program, if it belongs to this node."""
        super().__init__('ik_node', **options)
        self._settings = declare_robot(self)
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._inbox, self._queries = Inbox(), Inbox()
        self._statistics = Statistics()
        self._closing = threading.Event()
        self._rest = AtRest(lambda: self._resting)
        self._time, self._clocks, self._rare_events = NodeTime(self), Clocks(), RareEvents(self)

        general = self._settings.general
        self._output_names = output_names(general.output)
        self._leaves = False  # it serves the arm no longer once that rests
        self._commanded: list[str] = []  # topics and actions with commands
        self._picture: JointStates | None = None
        self._ignored = ''  # why the last message with measured joints is
        if DISPLAY_ONLY in self._output_names:
            self._picture = JointStates(self, self._time, lambda: self._watch.hold_back())
        self._loop = SetpointLoop(self, lambda: 1.0 / self._settings.general.publish_rate, self.setpoint)
        self._robot, self._frames = SharedRobot(), Frames(self)
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
            ToolInterface(shared, tool, partial(self._settings_of, tool), self._outputs)
            for tool in self._settings.arms
        ]
        self._switch = RobotSwitch(
            self._tools,
            lambda: self._settings,
            self.get_logger(),
            garbage,
            self._closing,
            lambda: self._watch.real,
        )
        self._diagnostics = Diagnostics(shared, self._tools, self._switch, garbage)
        self._moveit = MoveItServices(self, self._tools, lambda: self._switch.models, shared.frames)
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
        self._goals = GoalThreads(shared, self._tools, self._switch, self._closing)
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
            lambda reason: tool.own.fault(reason),
            lambda *reference: tool.own.on_reference(*reference),
            self._commanded,
        )
        outputs = make_outputs(self._output_names, context)
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
        arms = [arm for tool in self._leaders if (arm := tool.snapshot())]
        joints = {name for arm in arms for name in arm.model.joints.names}
        about = {
            'joints': tuple(sorted(joints)[:MOST_JOINTS]),
            'description': digest(self._settings.general.robot_description or self._switch.text),
            'any_session': self._settings.general.accept_other_sessions,
            'waits': bool(ahead := met.ahead() or ('' if met.settled else FINDING)) or self._unmeasured,
        }
        if any(getattr(met.own, name) != value for name, value in about.items()):
            met.tell(**about)
        if not ahead:  # else it would replace that of the other program on its page
            self._descriptions.publish()
        for tool in self._tools:
            tool.own.bar(ahead)
        self._refuse()
        for sentence in met.announce(self._watch.real):
            for tool in self._leaders:
                tool.own.tell(Level.WARN, sentence, logged=tool is self._leaders[0])

    def _refuse(self) -> None:
        for tool in self._tools:
            tool.own.refuse(self._neighbours.refusal(tool.leader.own.needed))

    async def _clear_driver(self, joints: Sequence[str]) -> None:
        """End holds and faults of the drivers of these joints; none: of all joints."""
        asked: set[str] = set()
        while (driver := self._neighbours.refuses(joints)) and driver.id not in asked:
            asked.add(driver.id)
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
    def _leaders(self) -> list[ToolInterface]:
        """The tools whose controllers move the robot."""
        return [tool for tool in self._tools if tool.leads]

    @property
    def _unmeasured(self) -> bool:
        return any(tool.own.state is State.WAITING for tool in self._leaders)

    @property
    def _resting(self) -> bool:
        return all(tool.own.resting for tool in self._tools)

    # Lifecycle

    def configure(self) -> None:
        """Read the description from the parameters, or else wait for the topic. Raises IkError."""
        self._descriptions.open(self._settings)

    def activate(self) -> None:
        """Allow commands."""
        self._leaves = False
        self._neighbours.tell(since=time.time())
        self._mind_neighbours()
        for tool in self._tools:
            tool.own.activate()

    def deactivate(self) -> None:
        """Bring the arm to rest within its limits, then send no commands."""
        self._leaves = True
        for tool in self._tools:
            tool.own.deactivate()
        self._rest.then(self._leave)  # another node must not command the arm while it still brakes

    def _leave(self) -> None:
        if self._leaves:
            self._neighbours.leave()

    async def rest(self) -> None:
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
            states = ', '.join(sorted({tool.leader.own.state.value for tool in self._leaders}))
            self.get_logger().error(f'ended while the arm was {states}')
        self._loop.close()

    def clean_up(self) -> None:
        """Let the next configure read the description again."""
        self._descriptions.close()

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
            for tool in self._leaders:
                tool.own.halt()
        self._goals.join()
        self._frames.close()
        self._urgent.close()
        self.destroy_node()

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
        if self._watch.expected and not self._watch.heard:
            self._neighbours.search()  # a network that shows its driver late shows other nodes late
        self._watch.heard = True
        now = self._time.now()
        stamp = self._time.of(message.header.stamp)
        self._clocks.heard(now, stamp)
        if 'position_commands' in self._output_names and stamp is not None and self._clocks.agree:
            self._loop.begun(self._time.nanoseconds(stamp))
        measured = now - self._watch.age(stamp, now, seconds(message.header.stamp))
        for tool in self._leaders:
            tool.own.on_measured(positions, now, measured)

    def _look_for_measurements(self, changed: bool = False) -> None:
        if self._watch.poll(self._settings.general.wait_for_measured) or changed:
            for tool in self._tools:
                tool.own.measured_by(self._watch.topic, self._watch.offered, self._ignored)
                tool.own.expect_measured(self._watch.expected, self._watch.alone)

    # The arm

    def _check(self, settings: RobotSettings) -> None:
        """Raise IkError if these settings are invalid for the robot."""
        text = self._descriptions.check(self._settings.general, settings.general, self._watch.real)
        self._switch.check(text, settings)

    def _apply(self, settings: RobotSettings) -> None:
        """Apply changed settings: limits from the next setpoint, another solver before the next goal."""
        before, self._settings = self._settings, settings
        self._descriptions.change(before.general, settings.general)
        self._mind_neighbours()
        for tool in self._tools:
            tool.own.set_limits(settings.arms[tool.tool])
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
            for tool in self._leaders:
                if dead:
                    tool.own.fault('restart ik_node: the thread that solves goals has ended')
                setpoint = tool.own.tick(seconds)
                if setpoint is not None:
                    arrived.append(setpoint.arrival)
            if self._picture is not None:
                self._picture.publish()
        self._rest.look()
        if not arrived:
            return
        self._statistics.tick(now)
        for arrival in arrived:
            if arrival is not None:
                self._statistics.moved_after(steady() - arrival)
        for tool in self._tools:
            tool.moved()

    def _diagnose(self) -> None:
        self._diagnostics.publish(1.0 / self._settings.general.publish_rate)


def main() -> int:
    """Run ik_node."""
    return run('ik_node', partial(IkNode, garbage=Garbage()))
