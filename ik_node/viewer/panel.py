# SPDX-License-Identifier: Apache-2.0
"""The panel beside the scene: status, target track and buttons, and the joint sliders."""

from __future__ import annotations

import contextlib
import html
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import viser

from ik_node.model.arm import Arm
from ik_node.model.ball import Ball
from ik_node.tracks import NO_TRACK, TRACKS

from .events import Event, Events

Colour = tuple[int, int, int]

GREEN, AMBER, RED, GREY = '#2f9e5b', '#d9840b', '#d43c3c', '#7c8794'
_BOX = 'padding:0.2em 0.9em 0.5em;font-size:0.86em;line-height:1.5'


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
    style = 'opacity:0.6;font-size:0.92em;' if faint else ''
    style += 'margin-top:0.35em;line-height:1.35;overflow-wrap:anywhere'  # paths have no spaces
    return f'<div style="{style}">{html.escape(text)}</div>'


def legend(*entries: tuple[Colour, str]) -> str:
    """Return texts side by side, each behind a bar in its colour."""
    spans = ''.join(f'<span>{swatch(colour)}{html.escape(text)}</span>' for colour, text in entries)
    return f'<div style="display:flex;justify-content:space-between;margin-top:0.35em">{spans}</div>'


def swatch(colour: Colour) -> str:
    """Return a small bar in a colour."""
    return (
        '<span style="display:inline-block;width:1.1em;height:0.28em;border-radius:0.14em;'
        f'margin-right:0.4em;vertical-align:middle;background:rgb{colour}"></span>'
    )


def at_page(text: str) -> str:
    """Return a text of ik_node that names the button of the page instead of the service behind it."""
    return text.replace('call ~/resume', 'press Resume')


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
ALL_TOOLS = ''
Press = Callable[[str, str], object]  # called with a button that a user pressed, and the name of its tool


COLOURS = {
    'solved': GREEN,
    'moving': GREEN,
    'arrived': GREEN,
    'unreachable': AMBER,
    'not found': AMBER,
    'held': AMBER,
    'waiting': AMBER,
    'rejected': RED,
    'faulted': RED,
}


class Card:
    """Shows one message or report, and below it the diagnostics of ik_node."""

    def __init__(self, gui: viser.GuiApi, *axes: tuple[Colour, str]) -> None:
        """axes: colours of the tool axes in the scene and what each one is."""
        self._html = gui.add_html('')
        self._axes = axes
        self._content = self._node_message = ''
        self._sentences: set[str] = set()  # in the content

    def show_message(self, title: str, sentence: str = '', colour: str = GREY) -> None:
        """Show a message that is not about a goal."""
        self._sentences = {capital(sentence)}
        self._content = pills((title, colour)) + paragraph(sentence)
        self._show()

    def show_report(self, status: str, state: str, errors: tuple[float, float], sentence: str, about_arm: str) -> None:
        """Show the result of the last goal. errors: of position [m] and direction [rad], NaN if unknown.

        state: of the arm, '' if it is not known in addition to the status of the goal.
        """
        words = dict.fromkeys(word for word in (status, state) if word)
        sentence, about_arm = capital(sentence), capital(about_arm)
        self._sentences = {sentence, about_arm}
        self._content = (
            pills(*((capital(word), COLOURS.get(word, GREY)) for word in words))
            + error_rows(*errors)
            + paragraph(sentence)
            + legend(*self._axes)
            + paragraph('' if sentence == about_arm else about_arm, faint=True)
        )
        self._show()

    def show_node(self, message: str) -> None:
        """Show the diagnostics message of ik_node, unless the card already shows the same."""
        self._node_message = capital(message)
        self._show()

    def _show(self) -> None:
        message = '' if self._node_message in self._sentences else self._node_message
        content = box(f'{self._content}{paragraph(message)}')
        update(self._html, content=at_page(content))


DEGREE = math.radians(1.0)


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
                self._sliders.append(_JointSlider(self._gui, arm, index))
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

    def __init__(self, gui: viser.GuiApi, arm: Arm, index: int) -> None:
        prismatic = bool(arm.prismatic[index])
        self.joints = (arm.joint_names[index],)
        self._unit = 1e-3 if prismatic else DEGREE
        self._turns = bool(arm.continuous[index])
        lower, upper = (-math.pi, math.pi) if self._turns else (arm.lower[index], arm.upper[index])
        self.handles = (_slider(gui, self.joints[0], 'mm' if prismatic else '°', lower, upper, self._unit),)

    def set(self, values: Mapping[str, float]) -> None:
        """Show a joint position [rad or m], clipped to the range."""
        value = values[self.joints[0]]
        if self._turns:
            value = math.remainder(value, 2.0 * math.pi)
        _show(self.handles[0], value / self._unit)

    def get(self) -> dict[str, float]:
        """Return the joint position [rad or m] by name."""
        return {self.joints[0]: self.handles[0].value * self._unit}


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
        self.handles = (
            _slider(gui, f'{name}: swing x', '°', -self._swing, self._swing, DEGREE),
            _slider(gui, f'{name}: swing y', '°', -self._swing, self._swing, DEGREE),
            _slider(gui, f'{name}: twist', '°', *twist, DEGREE),
        )

    def set(self, values: Mapping[str, float]) -> None:
        """Show the swing and the twist at joint positions [rad] by name."""
        first, second, third = self.joints
        self._near = values[first], values[second], values[third]
        for handle, value in zip(self.handles, self._ball.swing_twist(self._near), strict=True):
            _show(handle, value / DEGREE)

    def get(self) -> dict[str, float]:
        """Return joint positions [rad] by name; a swing beyond the cone ends at its edge."""
        x, y, twist = (handle.value * DEGREE for handle in self.handles)
        share = min(1.0, self._swing / max(math.hypot(x, y), 1e-9))
        return dict(zip(self.joints, self._ball.joint_positions(share * x, share * y, twist, self._near), strict=True))


def _slider(
    gui: viser.GuiApi, name: str, sign: str, lower: float, upper: float, unit: float
) -> viser.GuiSliderHandle[float]:
    """Return a slider from lower to upper, at zero or the end next to it."""
    low, high = (round(float(end) / unit, 1) for end in (lower, upper))
    return gui.add_slider(f'{name} [{sign}]', low, high, 0.1, min(max(0.0, low), high))


def _show(handle: viser.GuiSliderHandle[float], value: float) -> None:
    """Move a slider to a value in its unit, clipped to its range."""
    handle.value = min(max(round(value, 1), handle.min), handle.max)  # type: ignore[misc]


LABELS = {NO_TRACK: 'none', **{track: track.replace('_', ' ') for track in TRACKS}}
TRACK_OF = {label: track for track, label in LABELS.items()}


class Panel:
    """The controls of the page, the same for every browser.

    tools: one part per tool, in a folder of its own if there are several. card: of the whole robot, which is
    that of the tool if there is only one.
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
        gui.configure_theme(control_width='small', show_logo=False, show_share_button=False, brand_color=(28, 132, 128))
        gui.set_panel_label('ik_node')
        several = len(tools) > 1
        if several:
            self.card = Card(gui)
            add_arm_buttons(gui, events, 'All tools', (HOME, RESUME), lambda button: press(button, ALL_TOOLS))
        self.tools = [ToolPanel(gui, events, name if several else '', colours, press) for name, colours in tools]
        if not several:
            self.card = self.tools[0].card
        self.joints = JointsPanel(gui, events)


def add_arm_buttons(
    gui: viser.GuiApi, events: Events, label: str, names: Sequence[str], press: Callable[[str], object]
) -> viser.GuiButtonGroupHandle:
    """Add a row of buttons where the panel is at present; press: called with the name of each."""
    row = gui.add_button_group(label, names)
    events.listen(row.on_click, lambda event: press(event.value), always=(STOP,))
    return row


class ToolPanel:
    """The controls of one tool: status, track and buttons; in a folder if it has a name."""

    def __init__(self, gui: viser.GuiApi, events: Events, name: str, colours: ToolColours, press: Press) -> None:
        self._events = events
        with gui.add_folder(name) if name else contextlib.nullcontext():
            self.card = Card(gui, (colours.wanted, 'wanted axis'), (colours.present, 'present axis'))
            self._track = gui.add_dropdown('Target track', tuple(LABELS.values()), disabled=True)
            buttons = BUTTONS if name else (HOME, RESUME)
            add_arm_buttons(gui, events, 'Arm', buttons, lambda button: press(button, name))

    def on_track(self, choose: Callable[[str], object]) -> None:
        """Have choose called with each track that users choose."""
        self._events.listen(self._track.on_update, lambda event: choose(TRACK_OF[event.value]))

    def set_track(self, track: str | None) -> None:
        """Show the goal publisher's track; None = there is no goal publisher."""
        update(self._track, disabled=track is None)
        if not self._events.pending(self._track):
            update(self._track, value=LABELS.get(track or NO_TRACK, LABELS[NO_TRACK]))
