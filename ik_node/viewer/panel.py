# SPDX-License-Identifier: Apache-2.0
"""The panel beside the scene: status, target track and buttons, and the joint sliders."""

from __future__ import annotations

import contextlib
import html
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import viser
from numpy.typing import ArrayLike

from ik_node.checks import Array
from ik_node.control.states import NEED_RESUME
from ik_node.model.arm import Arm
from ik_node.model.ball import Ball
from ik_node.model.joint import Joint
from ik_node.tracks import NO_TRACK, TRACKS

from .events import Event, Events

Colour = tuple[int, int, int]

# White letters have a contrast of at least 4.5 on these.
GREEN, AMBER, RED, GREY = '#1f7d46', '#a65f00', '#c9302f', '#5f6b78'
GO_ON: Colour = (31, 125, 70)
ALERT: Colour = (201, 48, 47)
MEASURE = re.compile(r'(?<![\w.])(-?\d+(?:\.\d+)?(?:e-?\d+)?) (m|rad)\b(?!/)')  # in sentences of ik_node
_BOX = 'padding:0.2em 0.9em 0.5em;font-size:13px;line-height:1.4'


def box(content: str) -> str:
    """Return the content with margins and the size of text in a panel."""
    return f'<div style="{_BOX}">{content}</div>'


def pills(*texts: tuple[str, str]) -> str:
    """Return labels (text, colour) side by side, each on its colour."""
    style = (
        'display:inline-block;color:#fff;border-radius:0.9em;padding:0 0.8em;font-weight:600;margin:0 0.35em 0.35em 0'
    )
    spans = (f'<span style="background:{colour};{style}">{html.escape(text)}</span>' for text, colour in texts)
    return f'<div>{"".join(spans)}</div>'


def answer(sentence: str, label: str = '') -> str:
    """Return a sentence in a box, faint unless a label says that something was rejected; '' for none."""
    head = pills((label, RED)) if label else ''
    return box(head + paragraph(sentence, faint=not label)) if sentence else ''


def row(label: str, value: str) -> str:
    """Return a line with a label on the left and a value, HTML itself, on the right."""
    return (
        f'<div style="display:flex;justify-content:space-between"><span>{label}</span>'
        f'<span style="font-variant-numeric:tabular-nums;font-weight:600">{value}</span></div>'
    )


def paragraph(text: str, faint: bool = False) -> str:
    """Return a sentence, nothing for none."""
    if not text:
        return ''
    style = 'opacity:0.7;' if faint else ''
    style += 'margin-top:0.35em;line-height:1.35;overflow-wrap:anywhere'  # paths have no spaces
    return f'<div style="{style}">{html.escape(text)}</div>'


def legend(*entries: tuple[Colour, str]) -> str:
    """Return texts side by side, each behind a bar in its colour."""
    spans = ''.join(f'<span>{swatch(colour)}{html.escape(text)}</span>' for colour, text in entries)
    style = 'display:flex;flex-wrap:wrap;justify-content:space-between;gap:0.2em 1em;margin-top:0.35em'
    return f'<div style="{style}">{spans}</div>'


def swatch(colour: Colour) -> str:
    """Return a small bar in a colour."""
    return (
        '<span style="display:inline-block;width:1.1em;height:0.28em;border-radius:0.14em;'
        f'margin-right:0.4em;vertical-align:middle;background:rgb{colour}"></span>'
    )


def at_page(text: str) -> str:
    """Return a text of ik_node in the units of the page, which names its button instead of the service behind it."""
    return MEASURE.sub(
        _in_units_of_page,
        text.replace('run ik_resume or call ~/resume', 'press Resume').replace('call ~/resume', 'press Resume'),
    )


def _in_units_of_page(measure: re.Match[str]) -> str:
    value = float(measure[1])
    return f'{1e3 * value:.4g} mm' if measure[2] == 'm' else f'{math.degrees(value):.3g}°'


def capital(text: str) -> str:
    """Return the text with a capital first letter, unless it begins with a name, as in "seed_arm: ..."."""
    first = text.split(' ', 1)[0]
    return text if '_' in first or first.endswith(':') else text[:1].upper() + text[1:]


def length(metres: float) -> str:
    """Return a length with a suitable unit."""
    if metres < 1e-6:
        return '&lt; 1 µm'
    if metres < 1e-3:
        return f'{1e6 * metres:.0f} µm'
    return f'{1e3 * metres:.1f} mm' if metres < 1.0 else f'{metres:.3f} m'


def angle(radians: float) -> str:
    """Return an angle in degrees."""
    degrees = math.degrees(radians)
    return '&lt; 0.001°' if degrees < 1e-3 else f'{degrees:.3f}°' if degrees < 1.0 else f'{degrees:.1f}°'


def error_rows(position: float, direction: float) -> str:
    """Return lines with the errors of position [m] and direction [rad] that are known."""
    rows = row('Position error', length(position)) if math.isfinite(position) else ''
    return rows + (row('Direction error', angle(direction)) if math.isfinite(direction) else '')


class ToolColours(NamedTuple):
    """Colours of the wanted and the present axis of a tool."""

    wanted: Colour
    present: Colour


# One pair per tool; a fifth tool has the colours of the first.
TOOLS = (
    ToolColours((255, 159, 28), (38, 178, 170)),
    ToolColours((231, 76, 139), (74, 118, 222)),
    ToolColours((196, 158, 0), (108, 160, 36)),
    ToolColours((150, 84, 206), (120, 96, 84)),
)
GHOSTS: tuple[Colour, Colour] = ((124, 58, 237), (22, 163, 74))  # of the two methods side by side


def update(control: Any, **values: Any) -> None:
    """Set those properties of a control that differ: viser takes longer to find that nothing has changed."""
    for name, value in values.items():
        if getattr(control, name) != value:
            setattr(control, name, value)


NONE = 'none'
HOME, STOP, RESUME = BUTTONS = 'Home', 'Stop', 'Resume'
TORQUE_ON = 'Torque on'
GO = 'Go there'
ARROWS, NUMBERS, TRAIL, CAMERA = VIEWS = 'Arrows', 'Numbers', 'Trail', 'Camera'
HINT = 'Drag the arrows at the tool, or type a goal.'
MORE_ORDER = 1.5e6  # of the folder: below the joints and Teach
ALL_TOOLS = ''
Press = Callable[[str, str], object]  # called with a button that a user pressed, and the name of its tool


COLOURS = {
    'ready': GREEN,
    'solved': GREEN,
    'moving': GREEN,
    'arrived': GREEN,
    'continuing': GREEN,
    'hand-guided': AMBER,
    'held': AMBER,
    'waiting': AMBER,
    'late': AMBER,
    'stopped': RED,
    'rejected': RED,
    'faulted': RED,
}
VERDICTS = {'unreachable': 'Out of reach', 'not found': 'No solution found'}  # on goals that were accepted
UNKNOWN = '-'
SENTENCES = 'height:6.75em;overflow-y:auto'  # five lines: what is below the sentences never moves


def title(status: str, state: str) -> tuple[str, str]:
    """Return what a report says in at most three words, and its colour."""
    if status in VERDICTS and state in ('moving', 'arrived', ''):
        return VERDICTS[status] + (', moving closer' if state == 'moving' else ''), AMBER
    if state == 'stopped' and status != state:  # the goal ended, but goals are accepted
        return 'Not arrived', AMBER
    return capital(state or status), COLOURS.get(state or status, GREY)


def without_repeats(*sentences: str) -> list[str]:
    """Return each sentence once, and none that another contains; clauses after ";" likewise, once."""
    given, shown = dict.fromkeys(sentences), list[str]()
    for one in given:
        if not any(one.lower() in other.lower() for other in given if other != one):
            clauses = one.split('; ')
            new = [clause for clause in clauses if not any(clause.lower() in other.lower() for other in shown)]
            shown += [capital('; '.join(new))] if new != clauses else [one]
    return list(filter(None, shown))


class Poses(NamedTuple):
    """Tool and goal, as positions (3,) [m] and directions (3,) in the base link's frame.

    None: unknown, or there is no goal. errors: of position [m] and direction [rad], of the arm and of
    the solution, NaN if unknown.
    """

    tool: Array | None
    tool_direction: Array | None
    goal: Array | None = None
    goal_direction: Array | None = None
    arm_errors: tuple[float, float] = (math.nan, math.nan)
    solution_errors: tuple[float, float] = (math.nan, math.nan)


class Card:
    """The state of a tool in words and numbers, at a fixed height."""

    def __init__(self, gui: viser.GuiApi, colours: ToolColours | None = None) -> None:
        """colours: of the goal and the tool in the scene; without them there are no numbers."""
        self._html = gui.add_html('')
        self._colours = colours
        self._title, self._sentence, self._node_message = ('', GREY), '', ''
        self._alarm, self._alarm_sentence, self._alone = ('', GREY), '', False
        self._watched = ''
        self._refusal = ('', GREY), ''
        self._poses: Poses | None = None
        self._show()

    def show_message(self, title: str, sentence: str = '', colour: str = GREY) -> None:
        """Show a message that is not about a goal."""
        self._title, self._sentence = (title, colour), capital(sentence)
        self._show()

    def show_refusal(self, sentence: str, colour: str = AMBER) -> None:
        """Show why a goal was not sent, whatever is reported of the one before; '' once another one was."""
        refusal = ('Not sent' if sentence else '', colour), capital(sentence)
        if refusal != self._refusal:
            self._refusal = refusal
            self._show()

    def show_report(self, status: str, state: str, arm: str, sentence: str) -> None:
        """Show the result of the last goal, or the state of the arm if it needs a resume."""
        self._title = (capital(arm), RED) if arm in NEED_RESUME else title(status, state)
        self._sentence = capital(sentence)
        self._show()

    def show_node(self, message: str) -> None:
        """Show the diagnostics message of ik_node, unless the card already says the same."""
        self._node_message = capital(message)
        self._show()

    def show_alarm(self, title: str, sentence: str, colour: str, alone: bool = False) -> None:
        """Show what is wrong with the arm, before all else, because it explains why goals are rejected.

        alone: without any other sentence, because nothing else can be done before.
        """
        self._alone = alone and bool(sentence)
        self._alarm, self._alarm_sentence = (title, colour), capital(sentence)
        self._show()

    def show_watched(self, progress: str) -> None:
        """Show how far methods in slow motion are, instead of the last goal of the arm; '' for none."""
        if progress != self._watched:
            self._watched = progress
            self._show()

    def show_poses(self, poses: Poses | None) -> None:
        """Show where tool and goal are, None: unknown."""
        self._poses = poses
        self._show()

    def _show(self) -> None:
        title, sentence = self._title, self._sentence
        if self._watched and title[1] != RED:  # a stop stays in sight
            title, sentence = ('Watching', GREEN), self._watched
        refused, why = self._refusal
        others = () if self._alone else (sentence, self._node_message)
        sentences = without_repeats(why, self._alarm_sentence, *others)
        words = ''.join(map(paragraph, sentences))
        heads = [pill for pill in (refused, title, self._alarm) if pill[0]]
        content = f'{pills(*heads)}<div style="{SENTENCES}">{words}</div>'
        if self._colours is not None:
            content += _pose_table(self._colours, self._poses)
        update(self._html, content=at_page(box(content)))


def _pose_table(colours: ToolColours, poses: Poses | None) -> str:
    """Return rows with tool and goal, as many as without values."""
    known = poses or Poses(None, None)
    lines = (
        (f'{swatch(colours.wanted)}Goal [mm]', known.goal, 1e3, 1),
        ('direction', known.goal_direction, 1.0, 2),
        (f'{swatch(colours.present)}Tool [mm]', known.tool, 1e3, 1),
        ('direction', known.tool_direction, 1.0, 2),
    )
    head = ''.join(f'<th style="font-weight:400">{name}</th>' for name in 'xyz')
    rows = ''.join(
        f'<tr><td style="text-align:left">{label}</td>'
        + ''.join(
            f'<td>{value}</td>' for value in (3 * (UNKNOWN,) if vector is None else _numbers(unit * vector, digits))
        )
        + '</tr>'
        for label, vector, unit, digits in lines
    )
    style = 'width:100%;table-layout:fixed;text-align:right;font-variant-numeric:tabular-nums;border-spacing:0'
    table = f'<table style="{style}"><tr style="height:1.5em"><th style="width:38%"></th>{head}</tr>{rows}</table>'
    errors = (('Tool is off goal by', known.arm_errors), ('Computed pose by', known.solution_errors))
    return table + ''.join(row(label, error_words(*error) or UNKNOWN) for label, error in errors)


def _numbers(vector: Array, digits: int) -> tuple[str, ...]:
    return tuple(f'{round(float(value), digits) + 0.0:.{digits}f}' for value in vector)  # + 0.0: no -0.0


def error_words(position: float, direction: float) -> str:
    """Return the errors of position [m] and direction [rad] that are known."""
    known = [length(position)] if math.isfinite(position) else []
    return ', '.join([*known, angle(direction)] if math.isfinite(direction) else known)


class JointScale(NamedTuple):
    """How sliders show the positions of a joint: from low to high in a unit [rad or m], which sign names."""

    low: float
    high: float
    unit: float
    sign: str

    @classmethod
    def of(cls, lower: float, upper: float, prismatic: bool = False) -> JointScale:
        """lower, upper: limits [rad or m]; a slider without a limit ends after half a turn."""
        unit, sign = (1e-3, 'mm') if prismatic else (math.radians(1.0), '°')
        ends = (end if math.isfinite(end) else math.copysign(math.pi, end) for end in (lower, upper))
        low, high = (round(float(end) / unit, 1) for end in ends)
        return cls(low, high, unit, sign)

    def shown(self, position: float) -> float:
        """Return a position [rad or m] as the slider shows it, within its ends."""
        return min(max(round(position / self.unit, 1), self.low), self.high)

    def slider(self, gui: viser.GuiApi, label: str, **options: Any) -> viser.GuiSliderHandle[float]:
        """Add a slider at zero, or at the end next to it."""
        return gui.add_slider(f'{label} [{self.sign}]', self.low, self.high, 0.1, self.shown(0.0), **options)


class JointsPanel:
    """Sliders for the joints of the arms: one for each joint, three for a declared ball joint as a whole.

    A joint that several arms share has one. User input is kept until take_joints returns it; until then it is
    not overwritten.
    """

    def __init__(self, gui: viser.GuiApi, events: Events) -> None:
        self._gui, self._events = gui, events
        self._touched: dict[str, float] = {}
        self._sliders: list[_JointSlider | _BallSliders] = []
        self._folder: viser.GuiFolderHandle | None = None

    def _slider_moved(self, slider: _JointSlider | _BallSliders, _: Event) -> None:
        if slider in self._sliders:  # else it was of the last robot
            self._touched |= slider.get()

    def take_joints(self) -> dict[str, float]:
        """Return the joint positions that users set since the last call [rad or m], by joint name."""
        touched, self._touched = self._touched, {}
        return touched

    def show(self, arms: Sequence[Arm]) -> None:
        """Create the sliders for these arms and remove the previous ones."""
        if self._folder is not None:
            self._folder.remove()
            self._folder = None
        self._sliders, self._touched = [], {}
        if not arms:
            return
        self._folder = self._gui.add_folder('Joints')
        with self._folder:
            for arm in arms:
                self._add(arm)
        for slider in self._sliders:
            for handle in slider.handles:
                self._events.listen(handle.on_update, partial(self._slider_moved, slider))

    def _add(self, arm: Arm) -> None:
        shown = {name for slider in self._sliders for name in slider.joints}
        for index, name in enumerate(arm.joint_names):
            if name in shown:
                continue
            ball = next((ball for ball in arm.balls if ball.declared and name in ball.joints), None)
            if ball is None:
                joint, lower, upper = arm.robot.joints[name], arm.lower[index], arm.upper[index]
                self._sliders.append(_JointSlider(self._gui, joint, lower, upper, name))
            else:
                self._sliders.append(_BallSliders(self._gui, arm, ball))
                shown |= set(ball.joints)

    def set(self, values: Mapping[str, float]) -> None:
        """Move the sliders to joint positions [rad or m] by name."""
        for slider in self._sliders:
            touched = slider.joints[0] in self._touched or self._events.pending(*slider.handles)
            if not touched and all(name in values for name in slider.joints):
                slider.set(values)

    def enable(self, enabled: bool) -> None:
        """Let users move the sliders, or not."""
        for slider in self._sliders:
            for handle in slider.handles:
                update(handle, disabled=not enabled)


class _JointSlider:
    """A slider in degrees, or millimetres for a prismatic joint. It shows one turn of a continuous joint."""

    def __init__(self, gui: viser.GuiApi, joint: Joint, lower: float, upper: float, label: str) -> None:
        """lower, upper: limits [rad or m]."""
        self.joints = (joint.name,)
        self._turns = joint.type == 'continuous'
        if self._turns:
            lower, upper = -math.pi, math.pi
        self._scale = JointScale.of(lower, upper, joint.type == 'prismatic')
        self.handles = (self._scale.slider(gui, label),)

    def set(self, values: Mapping[str, float]) -> None:
        """Show a joint position [rad or m], clipped to the range."""
        value = values[self.joints[0]]
        if self._turns:
            value = math.remainder(value, 2.0 * math.pi)
        self.handles[0].value = self._scale.shown(value)  # type: ignore[misc]

    def get(self) -> dict[str, float]:
        """Return the joint position [rad or m] by name."""
        return {self.joints[0]: self.handles[0].value * self._scale.unit}


class _BallSliders:
    """Three sliders in degrees: how far a ball joint swings, about two axes, and its twist."""

    def __init__(self, gui: viser.GuiApi, arm: Arm, ball: Ball) -> None:
        self._ball = ball
        self.joints = ball.joints
        self._near = (0.0, 0.0, 0.0)
        ends = [arm.robot.joints[name] for name in (ball.swing_joints[0], ball.twist_joints[0])]
        self._swing = min(ball.swing, max(-ends[0].lower, ends[0].upper), math.pi)
        twist = max(ball.twist[0], ends[1].lower, -math.pi), min(ball.twist[1], ends[1].upper, math.pi)
        name = ', '.join(ball.joints)
        swing = JointScale.of(-self._swing, self._swing)
        self._scales = {'swing x': swing, 'swing y': swing, 'twist': JointScale.of(*twist)}
        self.handles = tuple(scale.slider(gui, f'{name}: {part}') for part, scale in self._scales.items())

    def set(self, values: Mapping[str, float]) -> None:
        """Show the swing and the twist at joint positions [rad] by name."""
        first, second, third = self.joints
        self._near = values[first], values[second], values[third]
        shown = zip(self.handles, self._scales.values(), self._ball.swing_twist(self._near), strict=True)
        for handle, scale, value in shown:
            handle.value = scale.shown(value)  # type: ignore[misc]

    def get(self) -> dict[str, float]:
        """Return joint positions [rad] by name; a swing beyond the cone ends at its edge."""
        x, y, twist = (
            handle.value * scale.unit for handle, scale in zip(self.handles, self._scales.values(), strict=True)
        )
        share = min(1.0, self._swing / max(math.hypot(x, y), 1e-9))
        return dict(zip(self.joints, self._ball.joint_positions(share * x, share * y, twist, self._near), strict=True))


LABELS = {NO_TRACK: 'none', **{track: track.replace('_', ' ') for track in TRACKS}}
TRACK_OF = {label: track for track, label in LABELS.items()}


class Panel:
    """The controls of the page, the same for every browser.

    tools: one part per tool, in a folder of its own if there are several. card: of the whole robot, which is
    that of the tool if there is only one. more: the folder of what a first goal does not need.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        events: Events,
        tools: Sequence[tuple[str, ToolColours]],
        press: Press,
    ) -> None:
        """tools: name and colours of each. press: called with the buttons."""
        gui = server.gui
        gui.configure_theme(control_width='medium', show_logo=False, show_share_button=False, brand_color=(14, 94, 91))
        gui.set_panel_label('ik_node')
        several = len(tools) > 1
        self.card = Card(gui, None if several else tools[0][1])
        self.resume = gui.add_button(RESUME, disabled=True, icon=viser.Icon.PLAYER_PLAY)
        self._switch_on: Callable[[], object] = lambda: None
        events.listen(
            self.resume.on_click,
            lambda _: self._switch_on() if self.resume.label == TORQUE_ON else press(RESUME, ALL_TOOLS),
        )
        if several:
            add_arm_buttons(gui, events, 'All tools', (HOME,), lambda button: press(button, ALL_TOOLS))
        card = None if several else self.card
        self.tools = [ToolPanel(gui, events, name, colours, press, card) for name, colours in tools]
        self.joints = JointsPanel(gui, events)
        self.more = gui.add_folder('More', order=MORE_ORDER, expand_by_default=False)
        with self.more:
            for tool in self.tools:
                tool.add_track(gui)

    def on_torque(self, switch_on: Callable[[], object]) -> None:
        """Have switch_on called when users press the button that show_stopped offers without torque."""
        self._switch_on = switch_on

    def show_stopped(self, stopped: bool, torque_off: bool = False) -> None:
        """Offer Resume if the arm does not move before it, and first the torque if it is off."""
        offered = stopped or torque_off
        label = TORQUE_ON if torque_off else RESUME
        update(self.resume, label=label, disabled=not offered, color=GO_ON if offered else 'gray')


def add_arm_buttons(
    gui: viser.GuiApi, events: Events, label: str, names: Sequence[str], press: Callable[[str], object]
) -> viser.GuiButtonGroupHandle:
    """Add a row of buttons where the panel is at present; press: called with the name of each."""
    row = gui.add_button_group(label, names)
    events.listen(row.on_click, lambda event: press(event.value), always=(STOP,))
    return row


class ToolPanel:
    """The controls of one tool: card, goal and buttons; in a folder if it has a name."""

    def __init__(
        self, gui: viser.GuiApi, events: Events, name: str, colours: ToolColours, press: Press, card: Card | None
    ) -> None:
        """card: that of the whole robot if this is its only tool."""
        self._events, self._name = events, name if card is None else ''
        with gui.add_folder(name) if card is None else contextlib.nullcontext():
            self.card = card or Card(gui, colours)
            self.goal = GoalFields(gui, events)
            buttons = (HOME, STOP, RESUME) if card is None else (HOME,)
            add_arm_buttons(gui, events, 'Arm', buttons, lambda button: press(button, name))
            self._view = gui.add_button_group(
                'Reset',
                VIEWS,
                hint='Arrows: back to the tool. Numbers: Position and Direction as in the card, instead of what you '
                'typed. Trail: removed. Camera: at the arm.',
            )

    def on_view(self, show: Callable[[Event], object]) -> None:
        """Have show called with those of VIEWS that users press."""
        self._events.listen(self._view.on_click, show)

    def add_track(self, gui: viser.GuiApi) -> None:
        """Add the choice of a track where the panel is at present."""
        label = f'Target track of {self._name}' if self._name else 'Target track'
        self._track = gui.add_dropdown(label, tuple(LABELS.values()), disabled=True)

    def on_track(self, choose: Callable[[str], object]) -> None:
        """Have choose called with each track that users choose."""
        self._events.listen(self._track.on_update, lambda event: choose(TRACK_OF[event.value]))

    def set_track(self, track: str | None) -> None:
        """Show the goal publisher's track; None = there is no goal publisher."""
        update(self._track, disabled=track is None)
        if not self._events.pending(self._track):
            update(self._track, value=LABELS.get(track or NO_TRACK, LABELS[NO_TRACK]))


class GoalFields:
    """A goal in numbers: position [mm] and direction, of any length.

    They are filled once for an arm, and when users ask for it. They do not follow goals: a browser may have taken
    keys that have not arrived here yet, and an update would overwrite these.
    """

    def __init__(self, gui: viser.GuiApi, events: Events) -> None:
        self._events, self._due = events, False
        self._position = gui.add_vector3('Position [mm]', (0.0, 0.0, 0.0), step=0.1, disabled=True)
        self._direction = gui.add_vector3(
            'Direction',
            (0.0, 0.0, 1.0),
            step=0.01,
            disabled=True,
            hint='Where the tool points, such as 0, 0, -1 for down.',
        )
        self._button = gui.add_button(GO, icon=viser.Icon.ARROW_RIGHT, disabled=True)

    def on_go(self, go: Callable[[Array, Array], object]) -> None:
        """Have go called with a position (3,) [m] and a direction (3,) when users press the button."""
        self._go = go
        self._events.listen(self._button.on_click, lambda _: self.go((*self._position.value, *self._direction.value)))

    def go(self, numbers: ArrayLike) -> None:
        """Go to a position [mm] and a direction, three numbers each."""
        given = np.array(numbers)
        self._go(1e-3 * given[:3], given[3:])

    def has(self, button: str) -> bool:
        """Whether a page names the button of these fields like this."""
        return bool(self._button._impl.uuid == button)

    def fill(self) -> None:
        """Fill the fields with the next goal that is shown, whatever was typed."""
        self._due = True

    def empty(self) -> None:
        """Take no input until the fields are filled for another arm."""
        self.fill()
        for control in (self._position, self._direction, self._button):
            update(control, disabled=True)

    def show(self, position: Array, direction: Array) -> None:
        """Fill the fields with a goal, or with the tool without one, if that is due."""
        if self._due:
            self._due = False
            update(self._position, value=tuple(map(float, _numbers(1e3 * position, 1))), disabled=False)
            update(self._direction, value=tuple(map(float, _numbers(direction, 2))), disabled=False)
            update(self._button, disabled=False)
