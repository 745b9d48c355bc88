# SPDX-License-Identifier: Apache-2.0
"""ik_viewer: shows the arm in a browser and lets users drag its goal. By topics, services and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined]
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from ik_node.console import say
from ik_node.errors import IkError
from ik_node.model.arm import Arm
from ik_node.model.robot import Robot
from ik_node.model.urdf.link_lengths import LinkLengths
from ik_node.model.urdf.reader import read_urdf
from ik_node.ros.conversions import finite_positions
from ik_node.ros.graph import graph
from ik_node.ros.interfaces import DESCRIPTION, subscribe
from ik_node.ros.neighbours import Neighbours, digest
from ik_node.ros.polled import Polled
from ik_node.ros.qos import STREAM
from ik_node.ros.run import ClosableNode, run
from ik_node.steady import steady
from ik_node.viewer.button_services import ArmButtons
from ik_node.viewer.links.lengths import VariableLinks
from ik_node.viewer.methods.methods import Methods
from ik_node.viewer.pages import Pages
from ik_node.viewer.panel.buttons import ArmPress
from ik_node.viewer.panel.colours import TOOLS
from ik_node.viewer.panel.html import RED
from ik_node.viewer.panel.inputs import Inputs
from ik_node.viewer.panel.panel import Panel
from ik_node.viewer.plots.plots import Plots
from ik_node.viewer.reach.reach_map import ReachMap
from ik_node.viewer.recording.recordings import Recordings
from ik_node.viewer.room import Room, Shown
from ik_node.viewer.scene.scene import Scene
from ik_node.viewer.scene.tool_scene import ToolScene
from ik_node.viewer.scene.visuals import draw, extent_of
from ik_node.viewer.servos.servos import Servos
from ik_node.viewer.settings import declare_viewer
from ik_node.viewer.share.share import Share
from ik_node.viewer.solutions.solutions import Solutions
from ik_node.viewer.teach.teach import Teach
from ik_node.viewer.tool import ViewedTool, selected

FRAME_RATE = 30.0  # [Hz] of the display, independent of the rate of joint_states
SLOW_EVERY = 3  # frames from one update of the sliders and the trail to the next
MOST_DESCRIPTIONS = 4
STILL = 1e-4  # [rad or m] between two messages; a smaller change is ignored
HINT = 'Drag the coloured gizmo, or choose a target track.'


class ViewerNode(ClosableNode):
    """The viewer; options are those of rclpy's Node. Raises IkError if it cannot start with its parameters.

    Callbacks of ROS and viser only store; a timer processes at FRAME_RATE.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__('ik_viewer', **options)
        self._settings, self._tool_settings = declare_viewer(self)
        self._pressed: Inputs[ArmPress] = Inputs()
        names = list(self._tool_settings)
        self._tools: list[ViewedTool] = []
        goals = ('goal_pose', 'goal_joints', 'goal_path')
        sends = [f'{name}/{goal}'.lstrip('/') for name in names for goal in goals]
        self._met = Neighbours(self, 'ik_viewer', sends=sends)
        self._buttons = ArmButtons(self, names, self._tools, self._pressed, self._refused)
        self._pages = Pages(
            self,
            self._settings.host,
            self._settings.port,
            changed=self._mind_clients,
            stop=self._buttons.stop_at_once,
            opened=lambda link: self._share.opened.add(link),
            link=lambda: self._share.text,
        )
        server = self._server = self._pages.server
        self._scene = Scene(server, self._settings.shadows)
        self._colours = [TOOLS[index % len(TOOLS)] for index in range(len(names))]
        self._panel = Panel(server, list(zip(names, self._colours, strict=True)), self._pressed)
        self._panel.card.show_message('Waiting for robot_description')
        self._methods = Methods(self, server)
        self._share = Share(server)
        self._rooms: tuple[Room, ...] = (
            self._methods,
            self._share,
            Solutions(self, server, self._settings.mesh_path),
            ReachMap(server),
            Plots(self, server),
            Teach(self, server, names, self._met, self._settings.programs),
            Recordings(self, server, self._settings.recordings),
            Servos(self, server),
        )
        self._links: VariableLinks | None = None
        if self._settings.description_file:
            lengths = LinkLengths.read(self._settings.description_file, self._settings.arguments())
            self._links = VariableLinks(self, server.gui, lengths, self._methods.parameters)
        self._tools += [
            ViewedTool(self, panel, name, self._refused)
            for name, panel in zip(names, self._panel.tools, strict=True)
        ]
        self._selected = self._tools[0]  # the tool that folders show which have room for one
        self._robot: Robot | None = None
        self._description = ''
        self._offered: dict[str, str] = {}  # descriptions that are published, by their digests
        self._strange = ''  # the last one that is not shown
        self._values: dict[str, float] = {}  # newest joint positions received
        self._moved_time, self._frame = 0.0, 0
        self._polled, self._states = Polled(), list[JointState]()  # the joint_states since the last frame
        self._start()

    def _start(self) -> None:
        clock = Clock(clock_type=ClockType.STEADY_TIME)  # the page stays alive while the simulation is paused
        self._frames = self.create_timer(1.0 / FRAME_RATE, self._show_frame, clock=clock)
        self.create_timer(1.0, self._refresh, clock=clock)
        self._subscriptions_of_page: list[Subscription] = []  # while a page is open
        self._sleep()
        DESCRIPTION.subscription(self, self._described)
        self._pages.watch(self._scene.greet)
        # Not logged: everybody in the ROS domain can read /rosout, and the URL gives access.
        say(f'ik_viewer: open {self._pages.url} in a browser')

    def _refused(self) -> str:
        """Return why no goals may be sent, and show it."""
        why = self._met.foreign()
        if why:
            self._panel.card.show_message('Not sent', why, RED)
        return why

    def come_to_rest(self) -> None:
        """End the run of a program."""
        for room in self._rooms:
            room.come_to_rest()

    def close(self) -> None:
        """Close the web server and the node."""
        for room in self._rooms:
            room.close()
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
        """Subscribe to the topics of the page. The last status arrives at once, joints later."""
        self._subscriptions_of_page = [
            subscribe(self, JointState, 'joint_states', self._states.append, STREAM, group=self._polled),
            subscribe(self, DiagnosticArray, '/diagnostics', self._store_diagnostics, STREAM),
            *(subscription for tool in self._tools for subscription in tool.subscribe()),
            *(subscription for room in self._rooms for subscription in room.subscribe()),
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
        if len(self._offered) > MOST_DESCRIPTIONS:
            del self._offered[next(iter(self._offered))]
        if not self._subscriptions_of_page:
            self._show_frame()

    def _store_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            for tool in self._tools:
                if status.name == tool.solver_name:
                    tool.diagnosed = status.message

    def _refresh(self) -> None:
        self._mind_clients()
        for room in self._rooms:
            room.refresh()
        if not self._subscriptions_of_page:
            return
        self._methods.parameters.refresh()
        if self._links is not None:
            self._links.refresh()
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
            self._selected = selected(self._tools, self._selected)
            moment = self._methods.moment(self._selected, self._values, states[-1] if states else None)
            for room in self._rooms:
                room.update(moment)
            if self._robot is not None and self._values:
                self._show_joints()

    def _choose_robot(self) -> None:
        """Show the newest description, or that of the own node if another session publishes one too."""
        if not self._offered:
            return
        session = self._met.own.session
        own = [one.description for one in self._met.arms if one.session == session and one.description]
        newest = next(reversed(self._offered))
        chosen = next((one for one in own if one in self._offered), newest)
        if chosen != newest and newest != self._strange:
            self._strange = newest
            names = dict.fromkeys(graph.publishing_nodes(self, 'robot_description'))
            self.get_logger().warning(
                f'another robot_description is ignored; publishers: {", ".join(names)}. It is not that of '
                'the ik_node of this page'
            )
        self._show_robot(self._offered[chosen])

    def _show_robot(self, text: str) -> None:
        if text == self._description:
            return
        self._description = text
        if self._links is not None:
            self._links.set_description(text)
        before, self._robot = self._robot, None
        try:
            robot = read_urdf(text)
            arms = [Arm(robot, **settings.tool()) for settings in self._tool_settings.values()]
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
            tool.show(arm, ToolScene(self._server, tool.name, arm, extent, colours), known)
        for room in self._rooms:
            room.show(Shown(self._tools, text, drawing))
        if known:  # other lengths of its links: the arm continues
            self._place()
            return
        self._values = {}
        self._panel.joints.show(arms)
        self._panel.card.show_message(
            'Waiting for joint_states', f'{robot.name} is shown with all joints at zero.'
        )

    def _show_none(self, why: str) -> None:
        self._values = {}
        self._scene.clear()
        for tool in self._tools:
            tool.show(None, None)
        for room in self._rooms:
            room.show(None)
        self._panel.joints.show([])
        self._panel.card.show_message('Cannot show this robot', why, RED)
        self.get_logger().error(f'cannot show this robot: {why}')

    def _process_inputs(self) -> None:
        """Process the inputs of users; buttons work even for a robot that cannot be displayed."""
        for press in self._pressed.take():
            self._buttons.press(press)
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
        if self._robot is not None and self._links is not None:
            self._links.update()

    def _followed(self) -> bool:
        return any(tool.followed(self._moved_time) for tool in self._tools)

    def _take_joints(self, robot: Robot, messages: Sequence[JointState]) -> None:
        values: dict[str, float] = {}
        for message in messages:  # of one publisher, or of an arm and its gripper
            values |= finite_positions(message, robot.joints)
        shown = len(self._tools) == 1 and self._tools[0].reported  # then the card shows these
        if values and not self._values and not shown:
            self._panel.card.show_message('Ready', HINT)
        if any(abs(value - self._values.get(name, value)) > STILL for name, value in values.items()):
            self._moved_time = steady()
        if not values.items() <= self._values.items():
            self._values = {**self._values, **values}
            self._place()

    def _place(self) -> None:
        """Move the scene to the newest joint positions."""
        self._scene.place(self._values)
        for tool in self._tools:
            tool.place(self._values)

    def _show_joints(self) -> None:
        """Show the sliders and the trails."""
        self._panel.joints.enable(not self._followed())
        self._frame += 1
        if self._frame % SLOW_EVERY:
            return
        for tool in self._tools:
            tool.extend_trail()
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
