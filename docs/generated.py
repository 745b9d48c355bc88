# SPDX-License-Identifier: Apache-2.0
"""Pages that are generated from the code and from measurements. A Sphinx extension."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import html
import inspect
import io
import json
import re
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from ik_node.model.arm import Arm
from ik_node.model.urdf.description import load_description
from ik_node.settings import BIG
from ik_node.share import share_path
from ik_node.tools.export.html import page_of
from ik_node.tools.export.wasm import ExportError

HERE = Path(__file__).parent
FIGURES = HERE / 'explanation' / 'figures.json'
SETTINGS = {
    'ik_node': 'ik_node.control.settings.ArmSettings',
    'ik_goals': 'ik_node.tracks.TrackSettings',
    'ik_leader': 'ik_node.control.leading.LeaderSettings',
    'ik_viewer': 'ik_node.viewer.node.ViewerSettings',
    'ik_marker': 'ik_node.ros.parameters.ToolSettings',
    'ik_plant': 'ik_node.sim.plant.PlantSettings',
    'ik_servos': 'ik_node.servos.settings.ServoSettings',
}
INTERFACES = {
    'ik_node': 'ik_node.ros.interfaces',
    'ik_servos': 'ik_node.servos.node',
    'ik_leader': 'ik_node.ros.programs.leader',
}
PROGRAMS = {
    'ik_solve': 'ik_node.tools.solve',
    'ik_inspect': 'ik_node.tools.inspect',
    'ik_reach': 'ik_node.tools.reach',
    'ik_batch': 'ik_node.tools.batch',
    'ik_retarget': 'ik_node.tools.retarget',
    'ik_calibrate': 'ik_node.calibration.program',
    'ik_place': 'ik_node.tools.place',
    'ik_export': 'ik_node.tools.export.program',
    'ik_servo_check': 'ik_node.servos.check.program',
    'ik_goto': 'ik_node.client',
    'ik_stop': 'ik_node.ros.programs.services:stop',
    'ik_resume': 'ik_node.ros.programs.services:resume',
    'ik_status': 'ik_node.ros.programs.services:status',
    'ik_play': 'ik_node.ros.programs.play',
    'ik_demo': 'ik_node.startup.demo',
}


def allowed(field: dataclasses.Field[Any]) -> str:
    """Return what a parameter may be: its choices, or its bounds where it has them."""
    choices, low, high = (field.metadata[key] for key in ('choices', 'low', 'high'))
    if choices or low is None:
        return ', '.join(choices)
    return f'≥ {low:.6g}' if high >= BIG else f'{low:.6g} to {high:.10g}'


def parameters() -> str:
    """Return the parameters of all nodes, as tables."""
    lines = ['# Parameters', '']
    lines += [
        'Those marked with a star are read once, when the node starts; all others may change while it runs.',
        'If a change needs another solver, later goals wait for it, while `joint_states`, `~/stop` and the',
        'other services keep working. `config/ik_node.yaml` holds them as a file to copy.',
    ]
    for node, path in SETTINGS.items():
        module, _, name = path.rpartition('.')
        lines += [
            '',
            f'## {node}',
            '',
            '| name | default | allowed | meaning and unit |',
            '|---|---|---|---|',
        ]
        for field in dataclasses.fields(getattr(import_module(module), name)):
            default = list(field.default) if isinstance(field.default, tuple) else field.default
            text = str(default).lower() if isinstance(default, bool) else repr(default)
            star = '\\*' if field.metadata.get('read_only') else ''
            lines.append(f'| `{field.name}`{star} | `{text}` | {allowed(field)} | {field.metadata["text"]} |')
    return '\n'.join(lines) + '\n'


def interfaces(node: str) -> str:
    """Return the topics and services of a node as a table."""
    from ik_node.ros.interfaces import Interface, PublishedTopic, SubscribedTopic

    rows = ['| | name, type | |', '|---|---|---|']
    for one in vars(import_module(INTERFACES[node])).values():
        if isinstance(one, Interface):
            way = {SubscribedTopic: 'in', PublishedTopic: 'out'}.get(type(one), 'service')
            types = ' or '.join(f'`{name}`' for name in one.types.split(' or '))
            rows.append(f'| {way} | `{one.name}`<br>{types} | {one.text}{quality(one)} |')
    return '\n'.join(rows) + '\n'


def quality(one: Any) -> str:
    """Return what the quality of service of a topic has other than reliable and volatile."""
    qos = getattr(one, 'qos', None)
    names = [] if qos is None else [qos.reliability.name, qos.durability.name]
    return ''.join(f'; {name.lower().replace("_", " ")}' for name in names if name not in ('RELIABLE', 'VOLATILE'))


def messages() -> str:
    """Return what ~/status and ~/goal_state contain, as tables."""
    from ik_node.ros.reports import KEYS, NUMBERS

    lines = ['`~/status` contains, as text under these keys:', '', '| key | |', '|---|---|']
    lines += [f'| `{key}` | {text} |' for key, text in KEYS.items()]
    lines += [
        '',
        f'`~/goal_state` has {len(NUMBERS)} numbers, named in its layout; unknown values are NaN:',
        '',
    ]
    lines += ['| | name | |', '|---|---|---|']
    lines += [f'| {k} | `{name}` | {text} |' for k, (name, text) in enumerate(NUMBERS.items())]
    return '\n'.join(lines) + '\n'


def programs() -> str:
    """Return the options of all programs, as they print them, and the keys of ik_teleop."""
    from ik_node.ros.programs.teleop_keys import HELP

    lines = ['# Options of the programs', '']
    for program, place in PROGRAMS.items():
        module, _, function = place.partition(':')
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            getattr(import_module(module), function or 'main')(['--help'])
        lines += [f'## {program}', '', '```text', printed.getvalue().rstrip(), '```', '']
    lines += ['## ik_teleop', '', 'Parameter `tool`: the name of the tool on a robot with several. Keys:', '']
    lines += ['```text', HELP.rstrip(), '```', '']
    return '\n'.join(lines)


def reasons() -> str:
    """Return the results of a goal, the causes with their remedies, and the states of an arm."""
    from ik_node.control.states import State
    from ik_node.solver.goal import Cause, Status

    lines = ['# Results, reasons and states', '', '## Results of a goal', '']
    lines += table(Status, 'meaning', meanings(Status))
    lines += ['', '## Reasons', '', 'Why the arm cannot meet a goal: `Reason.cause`.', '']
    lines += table(Cause, 'remedy', {cause.name: cause.remedy for cause in Cause})
    lines += ['', '## States of an arm', '']
    lines += table(State, 'meaning', meanings(State))
    return '\n'.join(lines) + '\n'


def meanings(kind: type[enum.Enum]) -> dict[str, str]:
    """Return the comment beside each member of an enum."""
    return dict(re.findall(r"^    (\w+) = '[^']*'  # (.*)$", inspect.getsource(kind), re.MULTILINE))


def table(kind: type[enum.Enum], title: str, texts: dict[str, str]) -> list[str]:
    """Return the members of an enum as a table, each with its text."""
    rows = [f'| `{one.name}` | {one.value} | {texts[one.name]} |' for one in kind]
    return [f'| name | value | {title} |', '|---|---|---|', *rows]


def examples() -> dict[str, str]:
    """Return the example of each public name."""
    _, *parts = (HERE / 'reference' / 'examples.txt').read_text(encoding='utf-8').split('\n## ')
    return {name: text.strip() for name, _, text in (part.partition('\n') for part in parts)}


def api() -> str:
    """Return a page with every public name of ik_node."""
    import ik_node
    from ik_node.solver.methods import METHODS
    from ik_node.solver.restarts import SCHEDULES, Schedule

    lines = ['# Python API', '', 'Everything that `from ik_node import ...` offers.']
    lines += ['The examples run as one session, in the order of `docs/reference/examples.txt`.', '']
    example = examples()
    for name in ik_node.__all__:
        value, kind, members = getattr(ik_node, name), 'function', []
        listed = isinstance(value, enum.EnumMeta)
        if isinstance(value, type):
            kind, members = 'class', [] if listed else ['   :members:']
        lines += [f'## {name}', '', '```{eval-rst}', f'.. auto{kind}:: ik_node.{name}', *members, '```', '']
        if listed:
            texts = meanings(value) or {one.name: one.remedy for one in value}
            lines += [*table(value, 'meaning or remedy', texts), '']
        lines += ['```pycon', example[name], '```', '']
    lines += ['## METHODS', '', 'What `method` of `IkSolver` may be; the first is the default.', '']
    lines += [
        '| value | meaning |',
        '|---|---|',
        *(f'| `{key}` | {row.text} |' for key, row in METHODS.items()),
    ]
    lines += [
        '',
        '## SCHEDULES',
        '',
        'What `schedule` of `IkSolver` may be: how random restarts cool down.',
        '',
    ]
    columns = Schedule._fields
    lines += [f'| value | {" | ".join(columns)} |', '|---' * (1 + len(columns)) + '|']
    lines += [f'| `{key}` | {" | ".join(map(str, row))} |' for key, row in SCHEDULES.items()]
    lines += ['', inspect.cleandoc(Schedule.__doc__ or ''), '']
    return '\n'.join(lines)


def figures() -> str:
    """Return what `make bench` has measured, each section with its commit and date."""
    lines = [
        '# Measured figures',
        '',
        'Written by `make bench BENCH=--keep`; `benchmarks/README.md` describes the sections.',
        'Those that have gone from `benchmarks/` are in the commit that is told here.',
    ]
    for section, run in json.loads(FIGURES.read_text(encoding='utf-8')).items():
        lines += ['', f'## {section}', '']
        measured = ('commit', 'date', 'machine', 'load', 'scale')
        lines.append('Measured: ' + ', '.join(f'{key} {run[key]}' for key in measured) + '.')
        lines += ['', re.sub('^## ', '### ', run['text'], flags=re.MULTILINE).strip()]
    return '\n'.join(lines) + '\n'


PAGES = {
    'reference/tables/ik_node': partial(interfaces, 'ik_node'),
    'reference/tables/ik_servos': partial(interfaces, 'ik_servos'),
    'reference/tables/ik_leader': partial(interfaces, 'ik_leader'),
    'reference/tables/messages': messages,
    'reference/parameters': parameters,
    'reference/options': programs,
    'reference/reasons': reasons,
    'reference/api': api,
    'explanation/figures': figures,
}


def write(*_: Any) -> None:
    """Write all pages, those that have changed."""
    (HERE / 'reference' / 'tables').mkdir(exist_ok=True)
    for name, page in PAGES.items():
        path, text = HERE / f'{name}.md', page()
        if not path.exists() or path.read_text(encoding='utf-8') != text:
            path.write_text(text, encoding='utf-8')


def write_arm(app: Any, error: Exception | None) -> None:
    """Write the page of the first page's arm, or why it is not there, beside the pages."""
    if error is not None or app.builder.format != 'html':
        return
    file = share_path('urdf', 'seed_arm.urdf.xacro')
    text = load_description(file)
    try:
        page, _ = page_of(Arm.from_urdf(text), text, '')
    except ExportError as reason:
        page = f'<!DOCTYPE html><meta charset="utf-8"><p>The arm is not here: {html.escape(str(reason))}</p>'
    (Path(app.outdir) / 'arm.html').write_text(page, encoding='utf-8')


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect('config-inited', write)
    app.connect('build-finished', write_arm)
    return {'parallel_read_safe': True}
