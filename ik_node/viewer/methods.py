# SPDX-License-Identifier: Apache-2.0
"""Methods: the local methods compared, step by step, and the search of ik_node."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import viser
from sensor_msgs.msg import JointState

from ik_node.checks import Array
from ik_node.errors import IkError
from ik_node.model.arm import Arm, tool_at
from ik_node.ros.parameters import RemoteParameters
from ik_node.solver.goal import Goal
from ik_node.solver.methods import METHODS
from ik_node.solver.solver import IkSolver
from ik_node.steady import steady

from . import panel
from .events import Event, Worker
from .lengths import MEASURED, OUTPUT
from .panel import GHOSTS, NONE, RED, update
from .scene import Ghost
from .section import Frame, Page, RobotView, Section
from .tool import ViewedTool


class Step(NamedTuple):
    """A configuration (n,) of the descent, with its errors [m, rad]."""

    q: Array
    position_error: float
    direction_error: float


@dataclass(eq=False)
class Descent:
    """One descent from a seed towards a goal, as IkSolver.steps yields it.

    steps: those that are known already; the first is the seed. ended: there are no more. failure: why there
    are none. stopped: no more are needed.
    """

    method: str
    steps: list[Step] = field(default_factory=list)
    ended: bool = False
    failure: str = ''
    stopped: bool = False

    def compute(
        self, arm: Arm, goal: Goal, seed: Array, options: Mapping[str, Any], post: Callable[..., object]
    ) -> str:
        """Post each step as it becomes known, and return why it failed, if it did; for another thread."""
        try:
            solver = IkSolver(arm, **options)
            for q in solver.steps(goal, seed):
                post(partial(self.steps.append, Step(q.copy(), *solver.errors(goal, q))))
                if self.stopped:
                    break
        except IkError as error:
            return str(error)
        return ''

    def end(self, failure: str) -> None:
        """Note that all steps are known."""
        self.ended, self.failure = True, failure


class Playback:
    """Shows every descent at the same step; those that have ended stay at their last one."""

    def __init__(self) -> None:
        self.descents: list[Descent] = []
        self.index = 0
        self.playing = False
        self.rate = 1.0  # [1/s]
        self._steps = 0  # to go on by, as soon as they are known
        self._due = 0.0  # when the next step is shown (steady)

    def start(self, descents: Sequence[Descent]) -> None:
        """Show the first step of new descents."""
        for descent in self.descents:
            descent.stopped = True
        self.descents = list(descents)
        self.index = 0
        self._steps = 0
        self._due = steady() + 1.0 / self.rate

    def play(self) -> None:
        """Continue, or restart at the end."""
        if self.at_end:
            self.index = 0
        self.playing, self._steps = True, 0

    def pause(self) -> None:
        """Stay at the present step."""
        self.playing, self._steps = False, 0

    def step(self) -> None:
        """Pause, and show one more step once it is known."""
        self.playing = False
        self._steps += 1

    def tick(self) -> None:
        """Show the next step if it is due."""
        if self._steps:
            self.advance()
            return
        now = steady()
        if not self.playing or now < self._due:
            return
        self._due = max(now, self._due + 1.0 / self.rate)
        self.advance()

    def advance(self) -> None:
        """Show the next step, once it is known of every descent that has one."""
        if self.at_end:
            self.pause()
        elif all(descent.ended or len(descent.steps) > self.index + 1 for descent in self.descents):
            self.index += 1
            self._steps = max(self._steps - 1, 0)

    @property
    def at_end(self) -> bool:
        """Whether no descent has a further step."""
        return all(descent.ended and len(descent.steps) <= self.index + 1 for descent in self.descents)

    def shown(self, descent: Descent) -> tuple[int, Step] | None:
        """Return the number of the step that is shown of a descent, 0 for the seed, and the step."""
        number = min(self.index, len(descent.steps) - 1)
        return (number, descent.steps[number]) if number >= 0 else None


MIN_ERROR = 1e-9  # [m] at the bottom: a logarithm has no place for 0
HEIGHT = 150  # pixels
SERIES: tuple[Any, ...] = ({'label': 'step'}, *({'stroke': f'rgb{colour}', 'width': 2} for colour in GHOSTS))


class ErrorPlot:
    """A chart in the panel, hidden while there is nothing to show."""

    def __init__(self, gui: viser.GuiApi) -> None:
        axis = {
            'font': '11px sans-serif',
            'labelFont': '11px sans-serif',
            'labelSize': 14,
            'ticks': {'show': False},
        }
        axes: Any = (
            {'size': 20, 'label': 'step', **axis},
            {'size': 30, 'label': 'log10 of position error [m]', **axis},
        )
        scales: Any = {'x': {'time': False}}
        self._plot = gui.add_uplot(
            (np.arange(2.0),) + len(GHOSTS) * (np.ones(2),),
            SERIES,
            scales=scales,
            axes=axes,
            legend={'show': False},
            height=HEIGHT,
            padding=(8, 8, 0, 0),
            visible=False,
        )
        self._shown: tuple[int, ...] = ()

    def show(self, playback: Playback) -> None:
        """Show the errors up to the step that the playback shows."""
        descents = [descent for descent in playback.descents if descent.steps]
        key = (playback.index, *map(id, descents))
        if key == self._shown:
            return
        self._shown = key
        visible = bool(descents) and playback.index > 0
        self._plot.visible = visible
        if not visible:
            return
        last = playback.index + 1
        lines = []
        for descent in descents:
            errors = [step.position_error for step in descent.steps[:last]]
            lines.append(np.log10(np.maximum(errors + (last - len(errors)) * errors[-1:], MIN_ERROR)))
        if len(lines) == 1:  # a plot has two lines
            lines *= 2
        self._plot.series = (SERIES[0], *SERIES[1 : 1 + len(descents)], *SERIES[1 : 3 - len(descents)])
        self._plot.data = (np.arange(float(last)), *lines)


TOLERANCES = {'position_tolerance': 1e-6, 'direction_tolerance': 1e-6}  # of ik_node; by default [m, rad]
SWELLING = 0.03  # larger than the arm, the second ghost twice, so that they do not flicker
REST = 0.25  # [s] for which the gizmo must rest before the descents start
PLAY, PAUSE, STEP, RESTART = 'Play', 'Pause', 'Step', 'Restart'
HINT = "Drag the arrows: the ghosts move there step by step from the arm's pose. The arm does not move."


class SlowMotion:
    """Runs the selected methods from the joints of an arm to the gizmo of one tool, and shows their steps."""

    def __init__(self, section: Section) -> None:
        """section: in whose folder the controls are."""
        self._server, self._events = section.server, section.events
        self._playback = Playback()
        self._workers: list[Worker[str]] = [
            Worker(section.events, f'descent {k}', 'it could not be computed: see the log of ik_viewer')
            for k in range(len(GHOSTS))
        ]
        self._arm: Arm | None = None
        self._robot: RobotView | None = None
        self._ghosts: list[Ghost] = []
        self._start_at = math.inf  # when the descents start (steady)
        self._started: tuple[str, ...] = ()  # methods and switches of the present descents
        self._inputs: tuple[Array, Mapping[str, float], Mapping[str, Any]] | None = None
        gui = section.gui
        with section.folder, gui.add_folder('Slow motion'):
            self._watch = gui.add_checkbox(
                'Watch', False, hint='Show how methods work; the arm is not commanded meanwhile.'
            )
            self._first = gui.add_dropdown('Method', tuple(METHODS), initial_value='lm')
            self._second = gui.add_dropdown('Beside it', (NONE, *METHODS), initial_value=NONE)
            self._switches = {
                switch: gui.add_checkbox(f'{method}: {switch}', True, hint=f'Turn this part of {method} on or off.')
                for method, row in METHODS.items()
                for switch in row.switches
            }
            self._rate = gui.add_slider('Steps per s', 0.5, 20.0, 0.5, 3.0)
            buttons = gui.add_button_group('Playback', (PLAY, PAUSE, STEP, RESTART))
            section.listen(buttons, lambda event: self._press(event.value))
            self._idle = (self._first, self._second, *self._switches.values(), self._rate, buttons)
            self._report = gui.add_html('')
            self._plot = ErrorPlot(gui)

    @property
    def on(self) -> bool:
        """Whether users watch."""
        return self._watch.value and self._arm is not None

    @property
    def _methods(self) -> list[str]:
        return [method for method in (self._first.value, self._second.value) if method != NONE]

    @property
    def _switches_off(self) -> list[str]:
        """The parts of methods that users have turned off."""
        return [switch for switch, box in self._switches.items() if not box.value]

    def show(self, robot: RobotView | None, arm: Arm | None) -> None:
        """Set the robot and the arm of a tool, after the scene was cleared, or none."""
        self._robot, self._arm, self._ghosts, self._inputs = robot, arm, [], None
        self._end()

    def choose(self, arm: Arm) -> None:
        """Show the tool of another arm of the same robot, whose gizmo is dragged; restart soon."""
        if arm is not self._arm:
            for ghost in self._ghosts:
                ghost.remove()
            self.show(self._robot, arm)
        self._start_at = steady() + REST

    def progress(self) -> str:
        """Return in words how far the methods are, '' unless users watch."""
        if not self.on:
            return ''
        options = self._inputs[2] if self._inputs is not None else {}
        position, direction = (options.get(name, default) for name, default in TOLERANCES.items())
        parts = []
        for descent in self._playback.descents:
            shown = self._playback.shown(descent)
            if shown is None or descent.failure:
                continue
            number, step = shown
            last = len(descent.steps) - 1
            parts.append(
                f'{descent.method} {number} of {last} steps' if descent.ended else f'{descent.method} {number} steps'
            )
            missed = step.position_error > position or step.direction_error > direction
            if descent.ended and number == last and missed:
                parts[-1] += ' (stuck; ik_node would restart here)'
        return ', '.join(parts) or 'Drag the arrows, or type a goal. The arm does not move.'

    def _press(self, button: str) -> None:
        playback = self._playback
        if self._inputs is None:
            return
        if button == RESTART or (button in (PLAY, STEP) and not playback.descents):
            self._start(*self._inputs)
            playback.playing = button != STEP
        elif button == STEP:
            playback.step()
        elif button == PAUSE:
            playback.pause()
        elif button == PLAY:
            playback.play()

    def update(
        self,
        T_base_goal: Array | None,
        values: Mapping[str, float],
        **options: Any,
    ) -> None:
        """Show the next frame.

        T_base_goal: (4, 4) of the gizmo, None without one. values: joint positions by name. options: of
        IkSolver, besides the method and its switches.
        """
        for control in self._idle:
            update(control, visible=self.on)
        if not self.on or T_base_goal is None or not values:
            self._inputs = None
            if self._playback.descents:
                self._end()
            self._show_report()
            return
        playback, self._inputs = self._playback, (T_base_goal, values, options)
        playback.rate = max(self._rate.min, self._rate.value)  # 0 while a number is typed beside the slider
        changed = bool(playback.descents) and self._started != (*self._methods, *self._switches_off)
        if changed or steady() >= self._start_at:
            self._start(*self._inputs)
        playback.tick()
        self._draw(values)
        self._show_report()

    def _start(self, T_base_goal: Array, values: Mapping[str, float], options: Mapping[str, Any]) -> None:
        arm = self._arm
        assert arm is not None
        goal = Goal(*tool_at(arm, T_base_goal))
        seed = np.array([values.get(name, 0.0) for name in arm.joint_names])
        descents, off = [Descent(method) for method in self._methods], self._switches_off
        self._playback.start(descents)
        self._playback.playing = True
        self._started = (*self._methods, *off)
        self._start_at = math.inf
        for descent, worker in zip(descents, self._workers, strict=False):
            switches = {switch: False for switch in METHODS[descent.method].switches if switch in off}
            given = {**options, 'method': descent.method, 'method_options': switches}
            work = partial(descent.compute, arm, goal, seed, given, self._events.post)
            worker.submit(work, descent.end)

    def _draw(self, values: Mapping[str, float]) -> None:
        """Show the ghosts at the descents; other joints are at values."""
        arm, robot = self._arm, self._robot
        assert arm is not None
        assert robot is not None
        if not self._ghosts:
            self._ghosts = [
                Ghost(self._server, f'/ghost{k}', (arm,), robot.drawing, colour, 1.0 + SWELLING * (k + 1))
                for k, colour in enumerate(GHOSTS)
            ]
        for index, ghost in enumerate(self._ghosts):
            descents = self._playback.descents[index : index + 1]
            shown = self._playback.shown(descents[0]) if descents else None
            if shown is None:
                ghost.hide()
            else:
                ghost.place({**values, **dict(zip(arm.joint_names, shown[1].q, strict=True))})

    def _show_report(self) -> None:
        """Show the step and the errors of every descent."""
        content = panel.paragraph(HINT, faint=True) if self._watch.value else ''
        for descent, colour in zip(self._playback.descents, GHOSTS, strict=False):
            shown = self._playback.shown(descent)
            name = f'{panel.swatch(colour)}{descent.method}'
            if descent.failure:
                content += panel.row(name, '') + panel.pills(('Rejected', RED))
                content += panel.paragraph(descent.failure)
            elif shown is None:
                content += panel.row(name, 'starting')
            else:
                number, step = shown
                last = f' of {len(descent.steps) - 1}' if descent.ended else ''
                content += panel.row(name, f'step {number}{last}')
                content += panel.error_rows(step.position_error, step.direction_error)
        self._plot.show(self._playback)
        update(self._report, content=panel.box(content) if content else '')

    def _end(self) -> None:
        self._start_at = math.inf
        self._playback.start([])
        for ghost in self._ghosts:
            ghost.hide()

    def close(self) -> None:
        """End the threads."""
        self._playback.start([])
        for worker in self._workers:
            worker.close()


SOLVER = 'solver'  # parameter of ik_node
ORDER = 1e6  # of the folder: below the joints
# Parameters of ik_node; the last two decide whether the lengths of links may change.
PARAMETERS = (SOLVER, OUTPUT, MEASURED)


class Methods(Section):
    """Shows the solver of ik_node, lets users change it, and shows methods in slow motion.

    parameters: of ik_node, as last known.
    """

    def __init__(self, page: Page) -> None:
        super().__init__(page, 'Methods', ORDER)
        gui = self.gui
        with self.folder:
            self._solver = gui.add_dropdown(
                'Solver',
                tuple(METHODS),
                disabled=True,
                hint='Local method of ik_node. The closed form is used with lm only.',
            )
            self._answer = gui.add_html('')
        self._slow = SlowMotion(self)
        self.parameters = RemoteParameters(self.node, 'ik_node', PARAMETERS, on_set=self._answered)
        self._watching = False
        self._tool: ViewedTool | None = None  # whose gizmo moves the ghosts
        self.listen(self._solver, self._choose_solver)

    def _choose_solver(self, event: Event) -> None:
        if not self.parameters.set(**{SOLVER: event.value}):
            self._answered('ik_node is not running')

    def _answered(self, rejection: str) -> None:
        """Show that ik_node has accepted a change, or why it rejected it."""
        label = 'Rejected' if rejection else ''
        self._answer.content = panel.answer(rejection or 'Accepted by ik_node.', label)

    @property
    def watching(self) -> bool:
        """Whether users watch slow motion: the gizmo does not command the arm then."""
        return self._slow.on

    def frame(self, tool: ViewedTool, values: Mapping[str, float], states: JointState | None) -> Frame:
        """Return what is known with joint positions by name, and joint_states of this frame."""
        return Frame(tool, values, states, not self.watching)

    def dragged(self, tool: ViewedTool) -> None:
        """Restart soon: a user has moved the gizmo of a tool."""
        if tool.arm is not None:
            self._tool = tool
            self._slow.choose(tool.arm)

    def show(self, robot: RobotView | None) -> None:
        """Set the tools of a robot, after the scene was cleared, or none."""
        super().show(robot)
        self._tool = robot.tools[0] if robot is not None else None
        self._slow.show(robot, self._tool.arm if self._tool is not None else None)

    def refresh(self) -> None:
        """Request the parameters of ik_node while a page is open."""
        if self.server.get_clients():
            self.parameters.refresh()

    def update(self, frame: Frame) -> None:
        """Show the solver of ik_node and the next frame of slow motion."""
        solver = self.parameters.values.get(SOLVER)  # None without ik_node
        update(self._solver, disabled=not self.parameters.values)
        if solver in METHODS and not self.events.pending(self._solver):
            update(self._solver, value=solver)
        if self._watching and not self.watching and self.robot is not None:
            for tool in self.robot.tools:
                tool.release_gizmo()
        self._watching = self.watching
        scene = self._tool.scene if self._tool is not None else None
        T_base_goal = scene.gizmo_pose() if scene is not None and self.watching else None
        known = self.remote.current
        tolerances = {name: getattr(known.general, name) for name in TOLERANCES} if known else {}
        self._slow.update(T_base_goal, frame.values, **tolerances)
        for tool in self.robot.tools if self.robot is not None else ():
            tool.panel.card.show_watched(self._slow.progress() if tool is self._tool else '')

    def close(self) -> None:
        """End the threads."""
        self._slow.close()
