"""What README.md promises is what the package has."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = re.sub(r'<!--.*?-->', '', (ROOT / 'README.md').read_text(encoding='utf-8'), flags=re.DOTALL)
SETUP = (ROOT / 'setup.py').read_text(encoding='utf-8')


def blocks(language: str) -> list[str]:
    """Return the code blocks of README.md in this language."""
    return re.findall(rf'^```{language}\n(.*?)^```', README, re.MULTILINE | re.DOTALL)


def table(title: str) -> list[list[str]]:
    """Return the rows below the table head whose first cell is title, as lists of cells."""
    lines = README.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f'| {title} |')) + 2
    rows = []
    for line in lines[start:]:
        if not line.startswith('|'):
            break
        rows.append([cell.strip() for cell in line.strip('|').split(' | ')])
    return rows


def test_no_way_to_a_real_arm_commands_the_topic_joint_states() -> None:
    text = README[README.index('**The real arm.**') : README.index('**Moving goals.**')]
    commands = [
        command
        for block in re.findall(r'^```bash\n(.*?)^```', text, re.MULTILINE | re.DOTALL)
        for command in block.replace('\\\n', ' ').splitlines()
    ]
    assert len(commands) == 2
    for command in commands:
        assert re.search(r'real:=true|-r joint_states:=joint_commands .*measured_joint_states', command)


@pytest.mark.slow
def test_the_python_example_does_what_its_comments_say() -> None:
    (program,) = blocks('python')
    checks = """
from ik_node import Status
assert solution.status is Status.SOLVED
assert too_far.status is Status.UNREACHABLE, too_far
assert len(every) >= 1
"""
    result = subprocess.run(
        [sys.executable, '-c', program + checks],
        cwd=ROOT,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join([str(ROOT), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count('Status.') == 2


@pytest.mark.parametrize(
    ('node', 'module', 'settings'),
    [
        ('ik_node', 'ik_node.control.robot.settings', 'ArmSettings'),
        ('ik_goals', 'ik_node.tracks.settings', 'TrackSettings'),
        ('ik_plant', 'ik_node.sim.settings', 'PlantSettings'),
        ('ik_viewer', 'ik_node.viewer.settings', 'ViewerSettings'),
        ('ik_marker', 'ik_node.ros.tool_settings', 'ToolSettings'),
    ],
)
def test_the_parameter_tables_are_those_of_the_nodes(node: str, module: str, settings: str) -> None:
    pytest.importorskip('rclpy')
    pytest.importorskip('viser')
    kind = getattr(importlib.import_module(module), settings)
    rows = []
    for field in dataclasses.fields(kind):
        default = list(field.default) if isinstance(field.default, tuple) else field.default
        text = str(default).lower() if isinstance(default, bool) else repr(default)
        choices = field.metadata['choices']
        allowed = f' ({", ".join(choices)})' if choices else ''
        rows.append([f'`{field.name}`', f'`{text}`', field.metadata['text'] + allowed])
    assert table(f'`{node}`') == rows, '\n' + '\n'.join(f'| {" | ".join(row)} |' for row in rows)


def test_the_pip_lines_bring_what_rosdep_does_not() -> None:
    (requires,) = re.findall(r'install_requires=(.*?)# ROS 2 itself', SETUP, re.DOTALL)
    bounds = dict(re.findall(r"'([\w-]+)(>=.*?)'", requires))
    rosdep = set(re.findall(r'<exec_depend>(?:python3-)?(.*?)</', (ROOT / 'package.xml').read_text()))
    rosdep |= {'pyyaml'} if 'yaml' in rosdep else set()
    lines = re.findall(r'pip install (.*)', README)
    for line in (line for line in lines if 'numba' in line):
        # trimesh comes along with yourdfpy, websockets with viser; mujoco is for simulations only,
        # python-flint for proofs.
        assert set(bounds) - rosdep - {'trimesh', 'websockets', 'mujoco', 'python-flint'} <= set(
            re.findall(r'[\w]+', line)
        ), line
    # Humble's own SciPy and transforms3d are too old: the line for it raises them.
    assert f"'scipy{bounds['scipy']}' 'transforms3d{bounds['transforms3d']}'" in lines[0]


def test_the_programs_are_those_of_setup() -> None:
    programs = re.findall(r"'(ik_\w+) = ik_node.start:\1'", SETUP)
    (section,) = re.findall(r'### Programs\n(.*?)\n#', README, re.DOTALL)
    assert sorted(re.findall(r'`(ik_\w+)`', section)) == sorted(programs)


def test_the_launch_arguments_exist() -> None:
    source = (ROOT / 'ik_node' / 'startup' / 'plan.py').read_text(encoding='utf-8')
    known = {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)}
    launches = ' '.join(re.findall(r'ros2 launch .*', README) + re.findall(r'`(\w+:=\w+)`', README))
    named = set(re.findall(r'(\w+):=', launches))
    assert len(named) > 4
    assert named <= known


def test_the_make_targets_and_linked_files_exist() -> None:
    makefile = (ROOT / 'Makefile').read_text(encoding='utf-8')
    targets = re.findall(r'^make (\w+)', README, re.MULTILINE)
    assert {'demo', 'test'} <= set(targets)
    for target in targets:
        assert re.search(rf'^{target}:', makefile, re.MULTILINE), target
    links = re.findall(r'\]\((?!https?:)(.+?)\)', README)
    assert 'LICENSE' in links
    for link in links:
        assert (ROOT / link).is_file(), link


def test_every_shipped_arm_is_described() -> None:
    shipped = {path.name.partition('.')[0] for path in (ROOT / 'urdf').glob('*.urdf.xacro')}
    (section,) = re.findall(r'### Arms in `urdf/`\n(.*?)\n#', README, re.DOTALL)
    described = dict(re.findall(r'^\| `(\w+)` \| (\d) \|', section, re.MULTILINE))
    assert described.keys() == shipped
    from ik_node import Arm
    from ik_node.startup.robots import tools_file

    for name, dof in described.items():
        tip = 'left_tool0' if tools_file(name) else 'tool0'
        assert Arm.from_file(ROOT / 'urdf' / f'{name}.urdf.xacro', tip).effective_dof == int(dof)
