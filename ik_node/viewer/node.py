# SPDX-License-Identifier: Apache-2.0
"""ik_viewer: shows the arm in a browser and lets users drag its goal. By topics, services and parameters."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakSet

import viser
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined]
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node
from rclpy.subscription import Subscription
from rclpy.task import Future as Answer
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from ik_node.checks import finite_array
from ik_node.console import say
from ik_node.control.models import limited_arm
from ik_node.control.settings import ArmSettings, RobotSettings, tool_names
from ik_node.control.states import State
from ik_node.errors import IkError, InputError
from ik_node.model.arm import Arm
from ik_node.model.robot import Robot
from ik_node.model.urdf.description import xacro_args
from ik_node.model.urdf.link_lengths import LinkLengths
from ik_node.model.urdf.reader import read_urdf
from ik_node.ros.conversions import finite_positions
from ik_node.ros.graph import graph
from ik_node.ros.gripper import GripperRemote
from ik_node.ros.interfaces import DESCRIPTION, STREAM, subscribe
from ik_node.ros.neighbours import Neighbours, digest
from ik_node.ros.parameters import RemoteParameters, RemoteSettings, ToolSettings, declare_fields, warn_of_unknown
from ik_node.ros.run import ClosableNode, SideNode, run
from ik_node.settings import parameter
from ik_node.steady import steady

from .calibration import CalibrationView
from .drive import Drive
from .events import LATE, Events
from .guard import fresh
from .leader import LeaderView
from .lengths import VariableLinks
from .methods import Methods
from .panel import ALL_TOOLS, BUTTONS, GREEN, HINT, HOME, RED, STOP, TOOLS, Panel, update
from .plots import Plots
from .reach import ReachMap
from .recordings import Recordings
from .scene import Scene, ToolScene, draw, extent_of
from .section import Page, RobotView, Section
from .server import Pages
from .servos import Servos
from .solutions import Solutions
from .teach import Teach
from .tool import PATIENCE, ViewedTool, selected

OF_TOOL = ('base_link', 'tip_link', 'tool_axis', 'tool_point')  # what every tool has of its own


@dataclass(frozen=True)
class ViewerSettings(ToolSettings):
    """The parameters of ik_viewer."""

    host: str = parameter(
        '127.0.0.1',
        'address to listen on. The page needs the token in the URL that the node prints',
        read_only=True,
    )
    page_port: int = parameter(8080, 'TCP port of the page. 0 takes a free one', low=0, high=65535, read_only=True)
    tools: tuple[str, ...] = parameter(
        ('',),
        'names of the tools of a robot with several tools, as in ik_node. Each has its own '
        "parameters, such as left.tip_link. The default [''] means one tool without a name",
        read_only=True,
    )
    mesh_path: str = parameter(
        '',
        'folder of meshes to display, in addition to installed ROS packages',
        read_only=True,
    )
    shadows: bool = parameter(
        True,
        'whether shadows and reflections are drawn. Without them pages are faster on computers '
        'without a graphics processor',
        read_only=True,
    )
    open_browser: bool = parameter(False, 'open the page in the browser of this desktop', read_only=True)
    recordings: str = parameter(
        '~/ik_recordings', 'folder of the recordings that users make and replay', read_only=True
    )
    programs: str = parameter(
        '~/ik_programs', 'folder of the programs of taught points that users save and open', read_only=True
    )
    description_file: str = parameter(
        '',
        'xacro file of robot_description. Its arguments NAME_length become sliders',
        read_only=True,
    )
    xacro_args: str = parameter('', "arguments of its expansion, such as 'hand_length:=0.1'", read_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.arguments()

    def arguments(self) -> dict[str, str]:
        """Return xacro_args as mappings. Raises InputError."""
        return xacro_args(self.xacro_args)


def declare_viewer(node: Node) -> tuple[ViewerSettings, dict[str, ViewerSettings]]:
    """Declare the parameters of ik_viewer; return them, and those of each tool by its name, '' if it is one.

    Raises InputError for a value that is not allowed.
    """
    general = ViewerSettings(**declare_fields(node, ViewerSettings))
    defaults = {name: getattr(general, name) for name in OF_TOOL}
    tools = {
        name: dataclasses.replace(general, **declare_fields(node, ViewerSettings, name, defaults))
        for name in tool_names(general.tools)
    }
    warn_of_unknown(node)
    return general, tools or {'': general}


class ManualSubscriptions(CallbackGroup):
    """A callback group of subscriptions whose messages wait until deliver is called.

    A subscription keeps as many messages as the depth of its history.
    """

    def __init__(self) -> None:
        super().__init__()
        self._subscriptions: WeakSet[Subscription] = WeakSet()

    def add_entity(self, entity: Any) -> None:
        """Add a subscription, or its events, which nobody handles."""
        super().add_entity(entity)
        if isinstance(entity, Subscription):
            self._subscriptions.add(entity)

    def can_execute(self, entity: Any) -> bool:  # noqa: ARG002
        """Return False: the executor must not wait for a subscription, nor for its events.

        A message that waits would wake the executor for the events again and again.
        """
        return False

    def deliver(self) -> None:
        """Call the callbacks with all messages that wait."""
        for subscription in list(self._subscriptions):
            with suppress(InvalidHandle):  # it was destroyed
                while (message := _take(subscription)) is not None:
                    subscription.callback(message)


def _take(subscription: Any) -> Any:
    """Return the next message of a subscription, None if none waits."""
    with subscription.handle:
        taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
    return taken and taken[0]


SPEED = 'speed_scaling'  # parameter of ik_node
TAKEN = 1.0  # [s] in which ik_node should answer a stop


class ArmButtons:
    """Calls the services of Home, Stop and Resume.

    Home waits for up to PATIENCE until no goal publisher overrides it. A stop waits until ik_node provides
    its service.
    """

    def __init__(
        self,
        node: Node,
        names: Sequence[str],
        tools: Sequence[ViewedTool],
        events: Events,
        refused: Callable[[], str],
    ) -> None:
        """tools: with these names, once the page has their panels. refused: why only stops are allowed."""
        self._log, self._tools, self._events, self._refused = node.get_logger(), tools, events, refused
        self._clients = {
            (name, button): node.create_client(Trigger, '/'.join(filter(None, ('ik_node', name, button.lower()))))
            for name in dict.fromkeys((ALL_TOOLS, *names))
            for button in BUTTONS
        }
        self._pending_stops: set[str] = set()  # names of tools
        self._home: tuple[str, float] | None = None  # the tool, and until when it waits (steady)
        self._urgent = SideNode(node, 'stop')  # its client waits for no other work of the page
        self._stop = self._urgent.node.create_client(Trigger, node.resolve_service_name('ik_node/stop'))
        self._urgent.start()

    def press(self, button: str, tool: str = ALL_TOOLS) -> None:
        """End the goals of a tool or all and call the service."""
        for one in self._pressed_for(tool):
            one.end_goal()
        self._home = None
        if button != STOP and self._refused():
            return
        if button == HOME:
            self._home = tool, steady() + PATIENCE
        else:
            self._call(button, tool)

    def _call(self, button: str, tool: str) -> None:
        """Call a service. Without it a stop is pending until a resume; other buttons are ignored."""
        client = self._clients[tool, button]
        if button != HOME:
            self._pending_stops.discard(tool)
        if client.service_is_ready():
            client.call_async(Trigger.Request())
            return
        later = ''
        if button == STOP:
            self._pending_stops.add(tool)
            later = '; it will be called when it is'
        self._log.warning(f'{button}: the service {client.srv_name} is not available{later}')

    async def stop_at_once(self) -> str:
        """Stop all tools from another thread, because the executor may be busy drawing a robot.

        The executor stops them again after earlier presses that wait, such as Resume. Returns '' once ik_node
        has taken the stop, else why it has not.
        """
        self._events.post(partial(self.press, STOP))
        if not self._stop.service_is_ready():
            return 'ik_node is not running'
        taken: Future[str] = Future()

        def answered(answer: Answer) -> None:
            response = answer.result()
            if taken.set_running_or_notify_cancel():
                taken.set_result('' if response.success else response.message)

        request = self._stop.call_async(Trigger.Request())
        request.add_done_callback(answered)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(taken), TAKEN)
        except asyncio.TimeoutError:
            self._stop.remove_pending_request(request)
            return 'ik_node does not answer'

    def close(self) -> None:
        """End the thread that serves the stop."""
        self._urgent.close()

    def refresh(self) -> None:
        """Call what waited; call regularly."""
        for tool in list(self._pending_stops):
            if self._clients[tool, STOP].service_is_ready():
                self._call(STOP, tool)
        if self._home is None:
            return
        tool, until = self._home
        if not any(one.track.may_move for one in self._pressed_for(tool)):
            self._home = None
            self._call(HOME, tool)
        elif steady() > until:
            self._home = None
            self._log.warning('Home: the goal still moves along its track, so the arm does not move home')

    def _pressed_for(self, tool: str) -> list[ViewedTool]:
        return [one for one in self._tools if tool in (ALL_TOOLS, one.name)]


class SpeedSlider:
    """Shows and sets the fraction of the velocity limits that ik_node uses."""

    def __init__(self, node: Node, gui: viser.GuiApi, events: Events) -> None:
        self._events = events
        self._slider = gui.add_slider('Velocity [%]', 1, 100, 1, 50, disabled=True)
        self._remote = RemoteParameters(node, 'ik_node', (SPEED,), on_read=self._show)
        self.refresh = self._remote.refresh
        events.listen(self._slider.on_update, lambda event: self._remote.set(**{SPEED: 0.01 * event.value}))

    def _show(self) -> None:
        speed = self._remote.values.get(SPEED)  # None without ik_node
        update(self._slider, disabled=speed is None)
        if speed is not None and not self._events.pending(self._slider):
            update(self._slider, value=max(1, round(100.0 * speed)))


OPEN, CLOSE = 'Open', 'Close'


class GripperControls:
    """Shows and sets the opening of the gripper of a tool; hidden without one."""

    def __init__(
        self, gui: viser.GuiApi, events: Events, name: str, remote: GripperRemote, refused: Callable[[], str]
    ) -> None:
        """name: of the tool. refused: why nothing may be sent, else ''."""
        self._events, self._name = events, f'{name} gripper' if name else 'Gripper'
        self._slider = gui.add_slider(f'{self._name} [%]', 0, 100, 1, 0, visible=False)
        self._buttons = gui.add_button_group('', (OPEN, CLOSE), visible=False)
        self._remote, remote.heard = remote, self._show

        def move(opening: float) -> None:
            if not refused():
                self._remote.open(opening)

        events.listen(self._slider.on_update, lambda event: move(0.01 * event.value))
        events.listen(self._buttons.on_click, lambda event: move(float(event.value == OPEN)))

    def _show(self, report: Mapping[str, str]) -> None:
        state = report.get('state', '')
        if report.get('joint'):  # not of a rejection, which an arm without a gripper answers too
            for control in (self._slider, self._buttons):
                update(control, visible=True)
        update(self._slider, label=f'{self._name} [%]' if state == 'idle' else f'{self._name} [%]: {state}')
        if not (math.isnan(self._remote.opening) or self._events.pending(self._slider)):
            update(self._slider, value=round(100.0 * min(max(self._remote.opening, 0.0), 1.0)))


FRAME_RATE = 30.0  # [Hz] of the display, independent of the rate of joint_states
SLOW_EVERY = 3  # frames from one update of the sliders and the trail to the next
NUMBERS_EVERY = 2 * SLOW_EVERY  # the same of what people read
MAX_DESCRIPTIONS = 4
STILL = 1e-4  # [rad or m] between two messages; a smaller change is ignored


class ViewerNode(ClosableNode):
    """The viewer; options are those of rclpy's Node. Raises IkError if it cannot start with its parameters.

    Callbacks of ROS only store what they receive, those of viser only add to the queue of events. A timer
    processes both at FRAME_RATE.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__('ik_viewer', **options)
        self._settings, self._tool_settings = declare_viewer(self)
        names = list(self._tool_settings)
        self._tools: list[ViewedTool] = []
        goals = ('goal_pose', 'goal_joints', 'goal_path')
        sends = [f'{name}/{goal}'.lstrip('/') for name in names for goal in goals]
        sends += [f'ik_node/{name}/delta_twist_cmds'.replace('//', '/') for name in names[:1]]
        self._met = Neighbours(self, 'ik_viewer', sends=sends)
        events = self._events = Events()
        self._buttons = ArmButtons(self, names, self._tools, events, self._refused)
        self._drive = Drive(self, names[0])
        self._pages = Pages(
            self,
            self._settings.host,
            self._settings.page_port,
            changed=self._mind_clients,
            stop=self._buttons.stop_at_once,
            drive=self._drive.take,
            go=self._typed,
        )
        server = self._server = self._pages.server
        self._scene = Scene(server, self._settings.shadows)
        self._colours = [TOOLS[index % len(TOOLS)] for index in range(len(names))]
        self._panel = Panel(server, events, list(zip(names, self._colours, strict=True)), self._buttons.press)
        self._panel.card.show_message('Waiting for robot_description')
        self._remote = RemoteSettings(self)
        self._speed = SpeedSlider(self, server.gui, events)
        remotes = [self._drive.gripper, *(GripperRemote(self, f'ik_node/{name}') for name in names[1:])]
        self._grippers = [
            GripperControls(server.gui, events, name, remote, self._refused)
            for name, remote in zip(names, remotes, strict=True)
        ]
        page = Page(self, server, events, self._remote, self._panel.more)
        self._servos = Servos(page, self._panel.card.show_alarm, self._faulted)
        self._panel.on_torque(self._servos.switch_on)
        self._methods = Methods(page)
        self._sections: list[Section] = [
            self._methods,
            Solutions(page, self._settings.mesh_path),
            ReachMap(page),
            Plots(page),
            Teach(page, names, self._met, self._settings.programs),
            Recordings(page, self._settings.recordings),
            self._servos,
            LeaderView(page),
            CalibrationView(page),
        ]
        if self._settings.description_file:
            lengths = LinkLengths.read(self._settings.description_file, self._settings.arguments())
            self._sections.append(VariableLinks(page, lengths, self._methods.parameters))
        self._tools += [
            ViewedTool(self, panel, name, self._refused, self._goal_taken, self._scene.aim)
            for name, panel in zip(names, self._panel.tools, strict=True)
        ]
        self._selected = self._tools[0]  # which folders show that have room for one tool
        self._robot: Robot | None = None
        self._description = ''
        self._rules = RobotSettings(ArmSettings(), {})  # the settings of ik_node, as far as they are known
        self._shown_limits: list[tuple[object, ...]] = []
        self._offered: dict[str, str] = {}  # descriptions that are published, by their digests
        self._ignored = ''  # digest of the last one that is not shown
        self._stopped: list[str] = []  # names of the tools that the card says are stopped
        self._values: dict[str, float] = {}  # newest joint positions received
        self._moved_time, self._frame = 0.0, 0
        self._polled = ManualSubscriptions()
        self._states: list[JointState] = []  # the joint_states since the last frame
        clock = Clock(clock_type=ClockType.STEADY_TIME)  # the page stays alive while the simulation is paused
        self._frames = self.create_timer(1.0 / FRAME_RATE, self._show_frame, clock=clock)
        self.create_timer(1.0, self._refresh, clock=clock)
        self._subscriptions_of_page: list[Subscription] = []  # while a page is open
        self._sleep()
        DESCRIPTION.subscription(self, self._described)
        self._pages.watch(self._scene.greet)
        # Not logged: everybody in the ROS domain can read /rosout, and the URL gives access.
        say(f'ik_viewer: open {self._pages.url} in a browser')
        if self._settings.open_browser:
            self._pages.show()

    def _refused(self) -> str:
        """Return why no goals may be sent, and show it."""
        why = self._met.foreign()
        if why:
            self._panel.card.show_refusal(why, RED)
        return why

    def _goal_taken(self) -> None:
        for card in (self._panel.card, *(panel.card for panel in self._panel.tools)):
            card.show_refusal('')

    def _typed(self, query: str) -> str:
        """Take a goal from the fields of a page, on the thread of the server; returns '', for the card tells more."""
        on_time = fresh()
        self._events.post(lambda: self._go(query) if on_time else self._panel.card.show_refusal(LATE[1]))
        return ''

    def _go(self, query: str) -> None:
        """query: the name of the button that was pressed, and the numbers before it as they are shown."""
        button, _, numbers = query.partition('&')
        for panel in self._panel.tools:
            if panel.goal.has(button):
                try:
                    panel.goal.go(finite_array('goal', [float(number) for number in numbers.split(',')], 6))
                except ValueError:
                    panel.card.show_refusal('Position and Direction need three numbers each.')

    def come_to_rest(self) -> None:
        """End the run of a program."""
        for section in self._sections:
            section.come_to_rest()

    def close(self) -> None:
        """Close the web server and the node."""
        for section in self._sections:
            section.close()
        self._pages.close()
        self._buttons.close()
        self.destroy_node()

    # While no page is open, only the description is received, and nothing is drawn

    def _mind_clients(self) -> None:
        opened = self._pages.open
        if opened and not self._subscriptions_of_page:
            self._wake()
        elif self._subscriptions_of_page and not opened:
            self._show_frame()  # process the last inputs
            self._sleep()
        elif not opened:
            self._process_inputs()  # a stop may still wait for its service

    def _wake(self) -> None:
        """Subscribe to what the page shows. The last status arrives at once, joints later."""
        self._subscriptions_of_page = [
            subscribe(self, JointState, 'joint_states', self._states.append, STREAM, group=self._polled),
            subscribe(self, DiagnosticArray, '/diagnostics', self._store_diagnostics, STREAM),
            *(subscription for tool in self._tools for subscription in tool.subscribe()),
            *(subscription for section in self._sections for subscription in section.subscribe()),
        ]
        self._frames.reset()
        self._refresh()

    def _sleep(self) -> None:
        self._frames.cancel()
        for subscription in self._subscriptions_of_page:
            self.destroy_subscription(subscription)
        self._subscriptions_of_page = []
        for tool in self._tools:
            tool.release_gizmo()  # later goals are not received

    def _described(self, message: String) -> None:
        name = digest(message.data)
        self._offered.pop(name, None)
        self._offered[name] = message.data
        if len(self._offered) > MAX_DESCRIPTIONS:
            del self._offered[next(iter(self._offered))]
        if not self._subscriptions_of_page:
            self._show_frame()

    def _store_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            for tool in self._tools:
                if status.name == tool.solver_name:
                    tool.take_diagnostics(status)

    def _refresh(self) -> None:
        self._mind_clients()
        self._drive.refused = self._met.foreign()
        for section in self._sections:
            section.refresh()
        if not self._subscriptions_of_page:
            return
        self._remote.refresh()
        self._speed.refresh()
        for tool in self._tools:
            tool.track.refresh()

    def _show_frame(self) -> None:
        self._polled.deliver()
        states, self._states[:] = self._states[:], []
        with self._server.atomic():
            self._choose_robot()
            self._process_inputs()
            if self._robot is not None:
                self._take_joints(self._robot, states)
            for tool in self._tools:
                tool.show_received(self._values, self._methods.watching)
            self._show_stopped()
            self._selected = selected(self._tools, self._selected)
            frame = self._methods.frame(self._selected, self._values, states[-1] if states else None)
            for section in self._sections:
                section.update(frame)
            if self._robot is not None and self._values:
                self._show_joints()

    def _faulted(self) -> bool:
        return any(tool.arm_state == State.FAULTED.value for tool in self._tools)

    def _show_stopped(self) -> None:
        """Offer Resume if any tool is stopped; the card of several tools says which."""
        stopped = [tool.name for tool in self._tools if tool.stopped]
        self._panel.show_stopped(bool(stopped), self._servos.torque_off)
        if len(self._tools) > 1 and stopped != self._stopped:
            self._stopped = stopped
            if stopped:
                self._panel.card.show_message('Stopped', f'{", ".join(stopped)}: press Resume, then give a goal.', RED)
            else:
                self._panel.card.show_message('Ready', HINT, GREEN)

    def _choose_robot(self) -> None:
        """Show the newest description, or that of the own ik_node if another session publishes one, too."""
        if not self._offered:
            return
        session = self._met.own.session
        own = [one.description for one in self._met.arms if one.session == session and one.description]
        newest = next(reversed(self._offered))
        chosen = next((one for one in own if one in self._offered), newest)
        if chosen != newest and newest != self._ignored:
            self._ignored = newest
            names = dict.fromkeys(graph.publishing_nodes(self, 'robot_description'))
            self.get_logger().warning(
                'another robot_description is ignored because it is not the one of the ik_node of this page; '
                f'publishers: {", ".join(names)}'
            )
        self._show_robot(self._offered[chosen])

    def _limits(self) -> list[tuple[object, ...]]:
        """Return what changes the limits of the description in ik_node, by tool; nothing by default."""
        self._rules = self._remote.current or self._rules  # the last ones while ik_node does not answer
        own = [arm.bounds() for arm in self._rules.arms.values()]
        return [] if all(bounds == ArmSettings().bounds() for bounds in own) else own

    def _limited(self, arm: Arm, tool: str) -> Arm:
        """Return the arm of a tool with the limits of ik_node; those of the description if it cannot."""
        try:
            return limited_arm(arm, self._rules.arms[tool]) if tool in self._rules.arms else arm
        except InputError as error:
            self.get_logger().warning(f'the page shows the limits of the description: {error}')
            return arm

    def _show_robot(self, text: str) -> None:
        limits = self._limits()
        if text == self._description and limits == self._shown_limits:
            return
        relimited, self._shown_limits = limits != self._shown_limits, limits
        self._description = text
        before, self._robot = self._robot, None
        try:
            robot = read_urdf(text)
            arms = [
                self._limited(Arm(robot, **settings.tool()), name) for name, settings in self._tool_settings.items()
            ]
            drawing = draw(text, robot, arms[0].tip_link, self._settings.mesh_path)
        except IkError as error:
            self._show_none(str(error))
            return
        for warning in drawing.warnings:
            self.get_logger().info(warning)
        self._robot = robot
        known = before is not None and same_joints(before, robot)
        self._scene.show(robot, drawing, aim=not known)
        for tool, arm, colours in zip(self._tools, arms, self._colours, strict=True):
            extent = extent_of(robot, arm.tip_link)
            tool.show(arm, ToolScene(self._server, self._events, tool.name, arm, extent, colours), known)
        for section in self._sections:
            section.show(RobotView(self._tools, text, drawing))
        if relimited:
            self._panel.joints.show(arms)
        if known:  # other lengths of its links, or other limits: the arm continues
            self._place()
            return
        self._values = {}
        self._panel.joints.show(arms)
        self._panel.card.show_message('Waiting for joint_states', f'{robot.name} is shown with all joints at zero.')

    def _show_none(self, why: str) -> None:
        self._values = {}
        self._scene.clear()
        for tool in self._tools:
            tool.show(None, None)
        for section in self._sections:
            section.show(None)
        self._panel.joints.show([])
        self._panel.card.show_message('Cannot show this robot', why, RED)
        self.get_logger().error(f'cannot show this robot: {why}')

    def _process_inputs(self) -> None:
        """Process the inputs of users; buttons work even for a robot that cannot be displayed."""
        self._events.process()
        self._buttons.refresh()
        joints = self._panel.joints.take_joints()
        followed = self._followed()
        for tool in self._tools:
            own = {name: joints.pop(name) for name in tool.joint_names if name in joints}
            if own and not followed:
                tool.send_joints(own, self._values)
        for tool in self._tools:
            if tool.process_inputs(self._methods.watching) is not None:
                self._methods.dragged(tool)

    def _followed(self) -> bool:
        return any(tool.followed(self._moved_time) for tool in self._tools)

    def _take_joints(self, robot: Robot, messages: Sequence[JointState]) -> None:
        values: dict[str, float] = {}
        for message in messages:  # of one publisher, or of an arm and its gripper
            values |= finite_positions(message, robot.joints)
        shown = len(self._tools) == 1 and self._tools[0].reported  # then the card shows these
        if values and not self._values and not shown:
            self._panel.card.show_message('Ready', HINT, GREEN)
        if any(abs(value - self._values.get(name, value)) > STILL for name, value in values.items()):
            self._moved_time = steady()
        if not values.items() <= self._values.items():
            self._values = {**self._values, **values}
            self._place()

    def _place(self) -> None:
        self._scene.place(self._values)
        for tool in self._tools:
            tool.place(self._values)

    def _show_joints(self) -> None:
        self._panel.joints.enable(not self._followed())
        self._frame += 1
        if self._frame % SLOW_EVERY:
            return
        for tool in self._tools:
            tool.extend_trail()
            if self._frame % NUMBERS_EVERY == 0:
                tool.show_poses(self._values)
        if not any(tool.holds_sliders(self._moved_time) for tool in self._tools):
            self._panel.joints.set(self._values)


def same_joints(one: Robot, other: Robot) -> bool:
    """Whether two robots of the same name have the same links and joints with the same limits."""

    def key(robot: Robot) -> list[tuple[object, ...]]:
        joints = robot.joints.values()
        return [(j.name, j.type, j.parent, j.child, j.lower, j.upper, *j.axis) for j in joints]

    return one.name == other.name and list(one.links) == list(other.links) and key(one) == key(other)


def main() -> int:
    """Run ik_viewer."""
    return run('ik_viewer', ViewerNode)
