# SPDX-License-Identifier: Apache-2.0
"""Methods: the local methods compared, step by step, and the search of ik_node."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import viser
from rclpy.node import Node
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
from .lengths import MEASURED, OUTPUT
from .panel import GHOSTS, RED, Inputs, by_user, merged, update
from .scene import Drawing, Ghost
from .section import Moment, RobotView, Section
from .tool import ViewedTool


class Step(NamedTuple):
    """A configuration (n,) of the descent, with its errors [m, rad]."""

    q: Array
    position_error: float
    direction_error: float


class Descent:
    """One descent from a seed towards a goal, as IkSolver.steps yields it.

    steps: those that are known already; the first is the seed. ended: there are no more. failure: why there
    are none.
    """

    def __init__(self, arm: Arm, goal: Goal, seed: Array, options: Mapping[str, Any]) -> None:
        """options: of IkSolver."""
        self.method = str(options['method'])
        self.steps: list[Step] = []
        self.ended = False
        self.failure = ''
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(arm, goal, seed, options), daemon=True)
        self._thread.start()

    def _run(self, arm: Arm, goal: Goal, seed: Array, options: Mapping[str, Any]) -> None:
        try:
            solver = IkSolver(arm, **options)
            for q in solver.steps(goal, seed):
                self.steps.append(Step(q.copy(), *solver.errors(goal, q)))
                if self._stopped.is_set():
                    break
        except IkError as error:
            self.failure = str(error)
        self.ended = True

    def stop(self) -> None:
        """Let the thread end."""
        self._stopped.set()

    def join(self) -> None:
        """Stop, and wait a moment for the end of the thread."""
        self.stop()
        self._thread.join(timeout=2.0)


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
            descent.stop()
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


LEAST = 1e-9  # [m] at the bottom: a logarithm has no place for 0
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
            lines.append(np.log10(np.maximum(errors + (last - len(errors)) * errors[-1:], LEAST)))
        if len(lines) == 1:  # a plot has two lines
            lines *= 2
        self._plot.series = (SERIES[0], *SERIES[1 : 1 + len(descents)], *SERIES[1 : 3 - len(descents)])
        self._plot.data = (np.arange(float(last)), *lines)


SWELLING = 0.03  # larger than the arm, the second ghost twice, so that they do not flicker
REST = 0.25  # [s] for which the gizmo must rest before the descents start


class SlowMotion:
    """Runs the selected methods from the joints of an arm to the gizmo of one tool.

    Call update once per frame. on: whether users watch.
    """

    def __init__(self, server: viser.ViserServer, panel: SlowMotionPanel) -> None:
        self._server, self._panel = server, panel
        self._playback = Playback()
        self._arm: Arm | None = None
        self._drawing: Drawing | None = None
        self._ghosts: list[Ghost] = []
        self._start_at = math.inf  # when the descents start (steady)
        self._chosen: tuple[Any, ...] = ()  # what the present descents were started with

    @property
    def on(self) -> bool:
        """Whether users watch."""
        return self._panel.on and self._arm is not None

    def show(self, arm: Arm | None, drawing: Drawing | None) -> None:
        """Set the arm of a tool, after the scene was cleared, or none."""
        self._arm, self._drawing = arm, drawing
        self._ghosts = []
        self._end()

    def choose(self, arm: Arm) -> None:
        """Show the tool of another arm of the same robot, whose gizmo is dragged."""
        if arm is not self._arm:
            for ghost in self._ghosts:
                ghost.remove()
            self.show(arm, self._drawing)

    def moved(self) -> None:
        """Restart soon: a user has moved the gizmo."""
        self._start_at = steady() + REST

    def update(
        self,
        T_base_goal: Array | None,
        values: Mapping[str, float],
        **options: Any,
    ) -> None:
        """Process the inputs of the panel and show the next frame.

        T_base_goal: (4, 4) of the gizmo, None without one. values: joint positions by name. options: of
        IkSolver, besides the method and its switches.
        """
        if not self.on or T_base_goal is None or not values:
            self._panel.take_button()
            if self._playback.descents:
                self._end()
            self._panel.show(self._playback)
            return
        playback, button = self._playback, self._panel.take_button()
        playback.rate = self._panel.rate
        chosen = (*self._panel.methods, *self._panel.switches_off)
        stale = bool(playback.descents) and chosen != self._chosen
        new = button in (PLAY, STEP) and not playback.descents
        if button == RESTART or stale or new or steady() >= self._start_at:
            self._start(T_base_goal, values, options)
            self._chosen = chosen
            playback.playing = button != STEP
        elif button == STEP:
            playback.step()
        elif button == PAUSE:
            playback.pause()
        elif button == PLAY:
            playback.play()
        playback.tick()
        self._draw(values)
        self._panel.show(playback)

    def _start(self, T_base_goal: Array, values: Mapping[str, float], options: Mapping[str, Any]) -> None:
        arm = self._arm
        assert arm is not None
        self._start_at = math.inf
        goal = Goal(*tool_at(arm, T_base_goal))
        seed = np.array([values.get(name, 0.0) for name in arm.joint_names])
        descents, off = [], self._panel.switches_off
        for method in self._panel.methods:
            switches = {switch: False for switch in METHODS[method].switches if switch in off}
            descents.append(
                Descent(arm, goal, seed, {**options, 'method': method, 'method_options': switches})
            )
        self._playback.start(descents)

    def _draw(self, values: Mapping[str, float]) -> None:
        """Show the ghosts at the descents; other joints are at values."""
        arm, drawing = self._arm, self._drawing
        assert arm is not None
        assert drawing is not None
        if not self._ghosts:
            self._ghosts = [
                Ghost(self._server, f'/ghost{k}', (arm,), drawing, colour, 1.0 + SWELLING * (k + 1))
                for k, colour in enumerate(GHOSTS)
            ]
        for index, ghost in enumerate(self._ghosts):
            descents = self._playback.descents[index : index + 1]
            shown = self._playback.shown(descents[0]) if descents else None
            if shown is None:
                ghost.hide()
            else:
                ghost.place({**values, **dict(zip(arm.joint_names, shown[1].q, strict=True))})

    def _end(self) -> None:
        self._start_at = math.inf
        self._playback.start([])
        for ghost in self._ghosts:
            ghost.hide()

    def close(self) -> None:
        """End the threads."""
        descents = self._playback.descents
        self._playback.start([])
        for descent in descents:
            descent.join()


NONE = 'none'
PLAY, PAUSE, STEP, RESTART = 'Play', 'Pause', 'Step', 'Restart'
HINT = 'The gizmo moves the ghosts only: drag it, and they go there from where the arm is, step by step.'


class SlowMotionPanel:
    """The controls of slow motion; presses are kept until take_button returns them."""

    def __init__(self, gui: viser.GuiApi, folder: viser.GuiFolderHandle) -> None:
        """folder: to put them in."""
        self._pressed: deque[str] = deque(maxlen=20)
        with folder, gui.add_folder('Slow motion'):
            self._watch = gui.add_checkbox(
                'Watch', False, hint='Show how methods work; the arm is not commanded meanwhile.'
            )
            self._first = gui.add_dropdown('Method', tuple(METHODS), initial_value='lm')
            self._second = gui.add_dropdown('Beside it', (NONE, *METHODS), initial_value=NONE)
            self._switches = {
                switch: gui.add_checkbox(
                    f'{method}: {switch}', True, hint=f'Turn this part of {method} on or off.'
                )
                for method, row in METHODS.items()
                for switch in row.switches
            }
            self._rate = gui.add_slider('Steps per s', 0.5, 20.0, 0.5, 3.0)
            self._buttons = gui.add_button_group('Playback', (PLAY, PAUSE, STEP, RESTART))
            self._report = gui.add_html('')
            self._plot = ErrorPlot(gui)
        self._buttons.on_click(self._on_click)

    @by_user
    def _on_click(self, event: viser.GuiEvent[Any]) -> None:
        self._pressed.append(event.target.value)

    @property
    def on(self) -> bool:
        """Whether users watch."""
        return self._watch.value

    @property
    def methods(self) -> list[str]:
        """The methods to watch, one or two."""
        return [method for method in (self._first.value, self._second.value) if method != NONE]

    @property
    def switches_off(self) -> list[str]:
        """The parts of methods that users have turned off."""
        return [switch for switch, box in self._switches.items() if not box.value]

    @property
    def rate(self) -> float:
        """Steps per second; a number that is being typed beside the slider may be 0."""
        return max(self._rate.min, self._rate.value)

    def take_button(self) -> str | None:
        """Return the next button of the playback that a user has pressed."""
        return self._pressed.popleft() if self._pressed else None

    def show(self, playback: Playback) -> None:
        """Show the step and the errors of every descent."""
        content = panel.paragraph(HINT, faint=True) if self.on else ''
        for descent, colour in zip(playback.descents, GHOSTS, strict=False):
            shown = playback.shown(descent)
            name = f'{panel.swatch(colour)}{descent.method}'
            if descent.failure:
                content += (
                    panel.row(name, '') + panel.pills(('Rejected', RED)) + panel.paragraph(descent.failure)
                )
            elif shown is None:
                content += panel.row(name, 'is being prepared')
            else:
                number, step = shown
                last = f' of {len(descent.steps) - 1}' if descent.ended else ''
                content += (
                    panel.row(name, f'step {number}{last}')
                    + panel.row('Position error', panel.length(step.position_error))
                    + panel.row('Direction error', panel.angle(step.direction_error))
                )
        self._plot.show(playback)
        update(self._report, content=panel.box(content) if content else '')


SOLVER = 'solver'  # parameter of ik_node
ORDER = 1e6  # of the folder: below the joints


class MethodsPanel:
    """Shows the parameters of ik_node and lets users change them.

    User input is kept until take returns it; until then it is not overwritten.
    """

    def __init__(self, gui: viser.GuiApi) -> None:
        self._changed: Inputs[dict[str, str]] = Inputs()
        self.folder = gui.add_folder('Methods', order=ORDER, expand_by_default=False)
        with self.folder:
            self._solver = gui.add_dropdown(
                'Solver',
                tuple(METHODS),
                disabled=True,
                hint='Local method of ik_node. The closed form is used with lm only.',
            )
            self._answer = gui.add_html('')
        self._solver.on_update(self._on_solver)

    @by_user
    def _on_solver(self, event: viser.GuiEvent[Any]) -> bool:
        return self._changed.add({SOLVER: event.target.value})

    def take(self) -> dict[str, str]:
        """Return the parameters that users changed since the last call, by name."""
        return merged(self._changed.take())

    def show(self, values: Mapping[str, Any]) -> None:
        """Show the parameters of ik_node; none without ik_node."""
        if self._solver.disabled is bool(values):
            self._solver.disabled = not values
        changed = merged(self._changed.waiting())
        if SOLVER not in changed and values.get(SOLVER) in METHODS:
            self._solver.value = values[SOLVER]  # type: ignore[misc]

    def answer(self, rejection: str) -> None:
        """Show that ik_node has accepted a change, or why it rejected it."""
        label = 'Rejected' if rejection else ''
        self._answer.content = panel.answer(rejection or 'Accepted by ik_node.', label)


# Parameters of ik_node; the last two decide whether the lengths of links may change.
TOLERANCES = ('position_tolerance', 'direction_tolerance')
PARAMETERS = (SOLVER, *TOLERANCES, OUTPUT, MEASURED)


class Methods(Section):
    """parameters: of ik_node, as last known."""

    def __init__(self, node: Node, server: viser.ViserServer) -> None:
        self._panel = MethodsPanel(server.gui)
        self._slow = SlowMotion(server, SlowMotionPanel(server.gui, self._panel.folder))
        self.parameters = RemoteParameters(node, 'ik_node', PARAMETERS, on_set=self._panel.answer)
        self._shown: RobotView | None = None
        self._watching = False
        self._tool: ViewedTool | None = None  # whose gizmo moves the ghosts

    @property
    def watching(self) -> bool:
        """Whether users watch slow motion: the gizmo does not command the arm then."""
        return self._slow.on

    def moment(self, tool: ViewedTool, values: Mapping[str, float], states: JointState | None) -> Moment:
        """Return what is known with joint positions by name, and joint_states of this frame."""
        known = self.parameters.values
        options = {name: known[name] for name in TOLERANCES if name in known}
        return Moment(tool, values, states, not self.watching, options)

    def dragged(self, tool: ViewedTool) -> None:
        """Restart soon: a user has moved the gizmo of a tool."""
        if tool.arm is not None:
            self._tool = tool
            self._slow.choose(tool.arm)
            self._slow.moved()

    def show(self, shown: RobotView | None) -> None:
        """Set the tools of a robot, after the scene was cleared, or none."""
        self._shown = shown
        self._tool = shown.tools[0] if shown is not None else None
        if shown is None or self._tool is None:
            self._slow.show(None, None)
        else:
            self._slow.show(self._tool.arm, shown.drawing)

    def update(self, moment: Moment) -> None:
        """Show the solver of ik_node and the next frame of slow motion."""
        shown = self._shown
        changed: dict[str, Any] = self._panel.take() if shown is not None else {}
        if changed and not self.parameters.set(**changed):
            self._panel.answer('ik_node is not running')
        self._panel.show(self.parameters.values)
        if self._watching and not self.watching and shown is not None:
            for tool in shown.tools:
                tool.release_gizmo()
        self._watching = self.watching
        scene = self._tool.scene if self._tool is not None else None
        T_base_goal = scene.gizmo_pose() if scene is not None and self.watching else None
        self._slow.update(T_base_goal, moment.values, **moment.options)

    def close(self) -> None:
        """End the threads."""
        self._slow.close()
