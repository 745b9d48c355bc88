# SPDX-License-Identifier: Apache-2.0
"""What README.md and docs/ promise is what the package has."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import ik_node

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / 'docs'
PAGES = [
    ROOT / 'README.md',
    *sorted(path for path in DOCS.rglob('*.md') if '_build' not in path.parts),
]


def page(name: str) -> str:
    """Return a page of docs/."""
    return (DOCS / name).read_text(encoding='utf-8')


README = (ROOT / 'README.md').read_text(encoding='utf-8')
SETUP = (ROOT / 'setup.py').read_text(encoding='utf-8')


def blocks(language: str, text: str) -> list[str]:
    """Return the code blocks of a page in this language."""
    return re.findall(rf'^```{language}\n(.*?)^```', text, re.MULTILINE | re.DOTALL)


def test_no_way_to_a_real_arm_commands_the_topic_joint_states() -> None:
    commands = [
        command
        for block in blocks('bash', page('how_to/real_arm.md'))
        for command in block.replace('\\\n', ' ').splitlines()
    ]
    assert len(commands) == 2
    for command in commands:
        assert re.search(r'real:=true|-r joint_states:=joint_commands .*measured_joint_states', command)


@pytest.mark.slow
def test_the_experiments_end_as_they_are_told() -> None:
    experiments = page('tutorials/experiments.md')
    (program,), (shown,) = blocks('python', experiments), blocks('text', experiments)
    assert printed(program) == shown


def printed(program: str) -> str:
    """Run a program in the checkout, as a reader does, and return what it prints."""
    result = subprocess.run(
        [sys.executable, '-c', program],
        cwd=ROOT,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join([str(ROOT), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.slow
def test_the_python_example_of_the_readme_does_what_its_comments_say() -> None:
    (program,) = blocks('python', README)
    checks = """
from ik_node import Status
assert solution.status is Status.SOLVED
assert too_far.status is Status.UNREACHABLE, too_far
assert len(every) >= 1
"""
    assert printed(program + checks).count('Status.') == 2


@pytest.mark.slow
def test_the_python_tutorial_prints_what_it_shows() -> None:
    tutorial = page('tutorials/python.md')
    assert printed(''.join(blocks('python', tutorial))) == ''.join(blocks('text', tutorial))


def generator() -> ModuleType:
    """Return docs/generated.py, which is no part of the package."""
    spec = importlib.util.spec_from_file_location('generated', DOCS / 'generated.py')
    assert spec is not None
    assert spec.loader is not None
    generated = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generated)
    return generated


@pytest.mark.slow
def test_every_public_name_has_an_example_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert sorted(generator().examples()) == sorted(ik_node.__all__)
    result = doctest.testfile(str(DOCS / 'reference' / 'examples.txt'), module_relative=False)
    assert result.attempted > 2 * len(ik_node.__all__)
    assert result.failed == 0


def test_the_pip_lines_bring_what_rosdep_does_not() -> None:
    (requires,) = re.findall(r'install_requires=(.*?)# make docs', SETUP, re.DOTALL)
    requires = requires.rpartition('\n')[0]
    bounds = dict(re.findall(r"'([\w-]+)(>=.*?)'", requires))
    rosdep = set(re.findall(r'<exec_depend[^>]*>(?:python3-)?(.*?)</', (ROOT / 'package.xml').read_text()))
    renamed = {'pyyaml': 'yaml', 'pyserial': 'serial', 'pillow': 'pil'}
    rosdep |= {pip for pip, name in renamed.items() if name in rosdep}
    lines = re.findall(r'pip install (.*)', page('how_to/install_with_ros.md'))
    for line in (line for line in lines if 'ruckig' in line):
        # trimesh comes along with yourdfpy, websockets with viser; mujoco is for simulations only,
        # python-flint for proofs; pyarrow, distributed and mcap-ros2-support for files of goals.
        elsewhere = {'trimesh', 'websockets', 'mujoco', 'python-flint', 'pyarrow', 'distributed'}
        elsewhere |= {'mcap-ros2-support'}
        assert set(bounds) - rosdep - elsewhere <= set(re.findall(r'[\w]+', line)), line
    # Humble's own SciPy and transforms3d are too old: the line for it raises them.
    assert f"'scipy{bounds['scipy']}' 'transforms3d{bounds['transforms3d']}'" in lines[0]


def test_the_programs_are_those_of_setup() -> None:
    programs = re.findall(r"'(ik_\w+) = ik_node.start:\1'", SETUP)
    rows = re.findall(r'^\| (`.*?) \|', page('reference/programs.md'), re.MULTILINE)
    assert sorted(name for row in rows for name in re.findall(r'`(ik_\w+)`', row)) == sorted(programs)


def test_the_modules_that_a_goal_passes_exist() -> None:
    (drawing,) = blocks('text', page('explanation/architecture.md'))
    modules = re.findall(r'[\w/]+\.py|[\w/]+/$', re.sub(r'/ {2,}.*', '/', drawing), re.MULTILINE)
    assert len(modules) > 7
    for module in modules:
        assert (ROOT / 'ik_node' / module.removeprefix('ik_node/')).exists(), module


def test_the_launch_arguments_exist() -> None:
    source = (ROOT / 'ik_node' / 'startup' / 'launch_plan.py').read_text(encoding='utf-8')
    known = {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)}
    text = '\n'.join(path.read_text(encoding='utf-8') for path in PAGES)
    launches = ' '.join(re.findall(r'ros2 launch ik_node arm.*', text) + re.findall(r'`(\w+:=\w+)`', README))
    named = set(re.findall(r'(\w+):=', launches))
    assert len(named) > 4
    assert named <= known


def test_the_make_targets_and_linked_files_exist() -> None:
    makefile = (ROOT / 'Makefile').read_text(encoding='utf-8')
    targets = re.findall(r'^make (\w+)', README, re.MULTILINE)
    assert {'demo', 'test'} <= set(targets)
    for target in targets:
        assert re.search(rf'^{target}:', makefile, re.MULTILINE), target
    assert '](LICENSE)' in README
    generated = {DOCS / f'{name}.md' for name in generator().PAGES}  # absent before `make docs`
    for path in PAGES:
        for link in re.findall(r'\]\((?!https?:)([^)\s]+)\)', path.read_text(encoding='utf-8')):
            target = (path.parent / link.partition('#')[0]).resolve()
            assert target in generated or target.is_file(), f'{path.name}: {link}'


@pytest.mark.slow
def test_every_shipped_arm_is_described() -> None:
    shipped = {path.name.partition('.')[0] for path in (ROOT / 'urdf').glob('*.urdf.xacro')}
    described = dict(re.findall(r'^\| `(\w+)` \| (\d) \|', page('reference/arms.md'), re.MULTILINE))
    assert described.keys() == shipped
    from ik_node import Arm
    from ik_node.startup.arguments import tools_file

    for name, dof in described.items():
        tip = 'left_tool0' if tools_file(name) else 'tool0'
        assert Arm.from_file(ROOT / 'urdf' / f'{name}.urdf.xacro', tip).effective_dof == int(dof)
