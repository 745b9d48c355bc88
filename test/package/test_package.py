# SPDX-License-Identifier: Apache-2.0
"""package.xml, setup.py, the changelog and the files on disk tell one story."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from distutils.core import run_setup
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from catkin_pkg.package import parse_package
from packaging.requirements import Requirement

import ik_node
from ik_node.control.settings import ArmSettings
from ik_node.extras import EXTRAS, PACKAGES, ROS_MODULES, ROS_WHEELS, require

ROOT = Path(__file__).resolve().parents[2]
ROSDEP = {'tf2_ros': 'tf2_ros_py', 'PIL': 'python3-pil'}  # what is imported under another name
PIP = {'yaml': 'pyyaml', **PACKAGES}
# Parts of ROS that PyPI has no wheel of: imported only when they are needed.
NOT_ON_PYPI = {'ament_index_python', 'launch', 'launch_ros', 'tf2_ros'}


@pytest.fixture(scope='module')
def setup() -> Iterator[Any]:
    """What setup.py declares, as a setuptools Distribution."""
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        yield run_setup('setup.py', stop_after='init')
    finally:
        os.chdir(before)


@pytest.fixture(scope='module')
def manifest() -> Any:
    """package.xml, read and validated by the ROS tools' own reader."""
    return parse_package(str(ROOT), warnings=[])


def requirement_names(requirements: list[str]) -> set[str]:
    return {re.split(r'[<>=~!\[; ]', requirement)[0].lower() for requirement in requirements}


def imported_packages(*folders: str) -> set[str]:
    """Return the top-level names imported in these folders, less those of Python and ours."""
    names: set[str] = set()
    for folder in folders:
        for path in (ROOT / folder).rglob('*.py'):
            for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
                if isinstance(node, ast.Import):
                    names.update(alias.name.split('.')[0] for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.level == 0:
                    names.add(str(node.module).split('.')[0])
                elif isinstance(node, ast.Call) and getattr(node.func, 'id', '') == 'load':  # of extras.py
                    names.update(a.value.split('.')[0] for a in node.args[:1] if isinstance(a, ast.Constant))
    return names - set(sys.stdlib_module_names) - {'ik_node'}


def brought_by_pip(setup: Any, *extras: str) -> set[str]:
    always = requirement_names(setup.install_requires)
    more = {name for extra in extras for name in requirement_names(setup.extras_require[extra])}
    assert not always & more
    return always | more


def test_the_manifest_is_one_that_colcon_takes_for_ament_python(manifest: Any) -> None:
    warnings: list[str] = []
    manifest.validate(warnings=warnings)
    assert warnings == []
    assert manifest.package_format == 3
    assert [(e.tagname, e.content) for e in manifest.exports] == [('build_type', 'ament_python')]


def test_a_headless_node_needs_neither_rviz_nor_plots(manifest: Any) -> None:
    def needed(**variables: str) -> set[str]:
        manifest.evaluate_conditions(variables)
        return {depend.name for depend in manifest.exec_depends if depend.evaluated_condition}

    spared = needed() - needed(IK_NODE_HEADLESS='1')
    assert spared >= {'rviz2', 'joint_state_publisher_gui', 'interactive_markers', 'python3-matplotlib'}
    assert needed(IK_NODE_HEADLESS='1') >= {'rclpy', 'python3-numpy', 'sensor_msgs', 'trajectory_msgs'}


def test_manifest_setup_and_changelog_agree(manifest: Any, setup: Any) -> None:
    changelog = (ROOT / 'CHANGELOG.rst').read_text(encoding='utf-8')
    released = re.findall(r'^(\d+\.\d+\.\d+) \(', changelog, re.MULTILINE)
    assert manifest.version == setup.get_version() == released[0]
    assert manifest.name == setup.get_name() == 'ik_node'
    assert manifest.licenses == [setup.get_license()] == ['Apache-2.0']
    assert [(m.name, m.email) for m in manifest.maintainers] == [(setup.get_maintainer(), setup.get_maintainer_email())]


def test_the_citation_names_this_version(manifest: Any) -> None:
    citation = yaml.safe_load((ROOT / 'CITATION.cff').read_text(encoding='utf-8'))
    assert (citation['version'], [citation['license']]) == (manifest.version, manifest.licenses)
    assert [one['name'].lower() for one in citation['authors']] == [one.name for one in manifest.authors]


def test_rosdep_has_keys_for_what_pip_installs_beside_ros() -> None:
    keys = yaml.safe_load((ROOT / 'rosdep' / 'ik_node.yaml').read_text(encoding='utf-8'))
    packages = []
    for key, systems in keys.items():
        assert systems.keys() == {'debian', 'ubuntu'}
        assert systems['debian'] == systems['ubuntu']
        packages += systems['debian']['pip']['packages']
        assert key == f'ik-node-{packages[-1]}-pip'
    page = (ROOT / 'docs' / 'how_to' / 'install_with_ros.md').read_text(encoding='utf-8')
    assert packages == re.findall(r'pip install (.*)', page)[1].split()


@pytest.mark.slow
def test_whatever_is_imported_is_declared(manifest: Any, setup: Any) -> None:
    rosdep = {depend.name for depend in manifest.exec_depends}
    pip = brought_by_pip(setup, *EXTRAS)
    undeclared = {
        name
        for name in imported_packages('ik_node', 'launch')
        if not {ROSDEP.get(name, name), f'python3-{name}'} & rosdep and PIP.get(name, name) not in pip
    }
    assert undeclared == set()


@pytest.mark.slow
def test_without_ros_pip_brings_whatever_is_imported(setup: Any) -> None:
    pip = brought_by_pip(setup, *EXTRAS, 'ros-wheels')
    brought = {re.sub('^ros-jazzy-', '', name).replace('-', '_') for name in pip}
    brought |= {'builtin_interfaces', 'lifecycle_msgs', 'rcl_interfaces'}  # rclpy itself needs these
    needed = {PIP.get(name, name).replace('-', '_') for name in imported_packages('ik_node')}
    assert needed - NOT_ON_PYPI - brought == set()


@pytest.mark.slow
def test_nothing_is_declared_that_is_not_used(manifest: Any, setup: Any) -> None:
    text = (ROOT / 'ik_node' / 'startup' / 'launch_plan.py').read_text(encoding='utf-8')
    used = imported_packages('ik_node', 'launch')
    rosdep = {depend.name for depend in manifest.exec_depends}
    keys = {ROSDEP.get(name, name) for name in used}
    unused = {name for name in rosdep if not {re.sub('^python3-', '', name), name} & keys and f"'{name}'" not in text}
    assert unused == set()
    assert len(rosdep) == len(manifest.exec_depends)
    assert brought_by_pip(setup, *EXTRAS) - {PIP.get(name, name) for name in used} == set()


def test_the_extras_are_those_that_programs_name_where_they_are_missing(setup: Any) -> None:
    assert set(setup.extras_require) == {*EXTRAS, 'coverage', 'docs', 'ros-wheels', 'test'}
    for name, packages in EXTRAS.items():
        assert requirement_names(setup.extras_require[name]) == set(packages)
    assert requirement_names(setup.extras_require['ros-wheels']) == set(ROS_WHEELS)


def test_an_installed_package_of_an_extra_is_found() -> None:
    for package in {name for names in EXTRAS.values() for name in names}:
        require(package, 'this test')


def test_every_file_that_is_no_code_is_installed(setup: Any) -> None:
    """Those of ik_node beside its modules, the others in share/ik_node."""
    for path in (ROOT / 'ik_node').rglob('*'):
        if path.is_file() and path.suffix != '.py' and '__pycache__' not in path.parts:
            patterns = setup.package_data.get('.'.join(path.parent.relative_to(ROOT).parts), ())
            assert any(fnmatch(path.name, pattern) for pattern in patterns), path
    shared = [names for target, names in setup.data_files if target.startswith('share/ik_node')]
    for folder in ('launch', 'urdf', 'config'):
        files = {str(p.relative_to(ROOT)) for p in (ROOT / folder).rglob('*.*') if p.suffix != '.pyc'}
        assert files
        assert files <= set().union(*shared)


def test_every_console_script_starts_a_main() -> None:
    source = (ROOT / 'setup.py').read_text(encoding='utf-8')
    scripts = re.findall(r"'(\w+) = ([\w.]+):(\w+)'", source)
    assert {'ik_node', 'ik_viewer', 'ik_goals', 'ik_demo'} <= {name for name, _, _ in scripts}
    for _, module, function in scripts:
        assert callable(getattr(import_module(module), function))


def test_ros_finds_the_scripts_and_the_marker(setup: Any) -> None:
    setup.parse_config_files()
    assert setup.get_option_dict('install')['install_scripts'][1] == '$base/lib/ik_node'
    assert setup.get_option_dict('develop')['script_dir'][1] == '$base/lib/ik_node'
    targets = dict(setup.data_files)
    assert targets['share/ament_index/resource_index/packages'] == ['resource/ik_node']
    assert (ROOT / 'resource' / 'ik_node').exists()


def run_without(extras: set[str], program: str, *absent: str) -> subprocess.CompletedProcess[str]:
    """Run a program where the packages of these extras and the modules absent cannot be imported."""
    modules = {package: module for module, package in PACKAGES.items()}
    absent += tuple(modules.get(package, package) for extra in extras for package in EXTRAS[extra])
    block = f'import sys; sys.modules.update(dict.fromkeys({absent!r}))\n'
    return subprocess.run(
        [sys.executable, '-c', block + program], cwd=ROOT, capture_output=True, text=True, check=False
    )


PLAIN = "import ik_node; print({'rclpy', 'viser', 'sensor_msgs'} & set(sys.modules))"
URDF = """
import tempfile
from ik_node import Arm
sys.path.append('test')
from small_arm import GOOD
with tempfile.NamedTemporaryFile('w', suffix='.urdf') as file:
    file.write(GOOD)
    file.flush()
    Arm.from_file(file.name, tool_axis='z')
print({'yourdfpy', 'trimesh', 'networkx', 'scipy', 'xacro', 'yaml'} & set(sys.modules))
"""


DEMO = "import ik_node.startup.demo; print({'rclpy', 'ruckig', 'viser'} & set(sys.modules))"
TOOLS = """
from ik_node.tools import batch, inspect, place, reach, retarget, solve
print({'matplotlib', 'pyarrow', 'rclpy', 'ruckig', 'tqdm'} & set(sys.modules))
"""
DRIVERS = """
import ik_node.ros.marker_node, ik_node.servos.node, ik_node.sim.node
print({'ruckig', 'mujoco', 'serial', 'trimesh'} & set(sys.modules))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    'program', [PLAIN, URDF, DEMO, TOOLS, DRIVERS], ids=['solver', 'urdf', 'demo', 'tools', 'drivers']
)
def test_nothing_is_loaded_that_is_not_needed(program: str) -> None:
    done = run_without(set(), program)
    assert (done.stdout, done.stderr) == ('set()\n', '')


@pytest.mark.slow
def test_solver_and_commands_need_no_extra() -> None:
    program = """
from ik_node import Arm, Goal, IkError, IkSolver
arm = Arm.from_file('urdf/seed_arm.urdf.xacro')
assert IkSolver(arm).solve(Goal((0.4, 0.1, 0.2), (0, 0, -1))).solved
try:
    IkSolver(arm, method='scipy')
except IkError as error:
    print(error)
import ik_node.tools.inspect, ik_node.tools.solve, ik_node.tools.reach, ik_node.control.motion
"""
    done = run_without(set(EXTRAS), program)
    assert done.returncode == 0, done.stderr
    assert 'method scipy needs the package scipy' in done.stdout
    assert done.stdout.endswith('-m pip install scipy\n')


@pytest.mark.slow
def test_tables_are_solved_without_dask() -> None:
    program = 'from ik_node.tools import episodes, solve_table, workers'
    done = run_without(set(), program, 'distributed')
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ('program', 'arguments', 'extra'),
    [
        ('ik_batch', ['urdf/seed_arm.urdf.xacro', 'goals.csv', 'joints.parquet'], 'batch'),
        ('ik_viewer', [], 'viewer'),
    ],
)
def test_a_program_says_how_to_install_what_it_lacks(program: str, arguments: list[str], extra: str) -> None:
    start = f'from ik_node.start import {program}; sys.argv = {[program, *arguments]!r}; {program}()'
    done = run_without({extra}, start)
    assert (done.returncode, done.stdout) == (2, '')
    assert re.fullmatch(
        rf'error: {program} needs the package \w+, which is not installed. Install it: '
        rf'\S+ -m pip install {" ".join(EXTRAS[extra])}\n',
        done.stderr,
    )


@pytest.mark.slow
@pytest.mark.parametrize('program', ['ik_node', 'ik_goto'])
def test_without_ros_a_program_says_where_it_is(program: str) -> None:
    given = [program, *['0.1'] * 3 * (program == 'ik_goto')]
    start = f'from ik_node.start import {program}; sys.argv = {given!r}; {program}()'
    done = run_without(set(), start, *ROS_MODULES)
    assert (done.returncode, done.stdout) == (2, '')
    assert re.fullmatch(rf'error: {program} needs ROS 2, .*setup.bash.* {" ".join(ROS_WHEELS)}\n', done.stderr)


def test_the_joystick_needs_a_button_and_repeats_its_commands_often_enough():
    joystick = yaml.safe_load((ROOT / 'config' / 'joystick.yaml').read_text())
    twists = joystick['teleop_twist_joy_node']['ros__parameters']
    assert twists['publish_stamped_twist']
    assert twists['require_enable_button']
    assert max(twists['scale_linear_turbo'].values()) <= 1.0
    period = 1.0 / joystick['game_controller_node']['ros__parameters']['autorepeat_rate']
    assert 2.0 * period < ArmSettings().incoming_command_timeout


def test_what_users_get_in_hand_is_public() -> None:
    """The results of solve, solve_all, prove, of paths and trees, and what these hold."""
    methods = [
        *(getattr(ik_node.IkSolver, n) for n in ('solve', 'solve_all', 'prove', 'solve_path', 'solve_batch', 'track')),
        *(getattr(ik_node.TreeSolver, n) for n in ('solve', 'solve_batch', 'track')),
        ik_node.plan_lines,
        ik_node.read_urdf,
    ]
    kinds: set[type] = set()

    def add(hint: Any) -> None:
        if isinstance(hint, type) and hint.__module__.startswith('ik_node.') and hint not in kinds:
            kinds.add(hint)
            for field in getattr(hint, '__dataclass_fields__', {}):
                add(typing.get_type_hints(hint)[field])
        for part in typing.get_args(hint):
            add(part)

    for method in methods:
        add(typing.get_type_hints(method, localns={'Proof': ik_node.Proof})['return'])
    # A Robot is made for an Arm; its own methods check no arguments.
    assert {kind.__name__ for kind in kinds} - set(ik_node.__all__) == {'Robot'}
    assert {kind.__name__ for kind in kinds} >= {'Proof', 'Reason', 'Cause', 'PathSolution', 'Trajectory'}
    assert sorted(ik_node.__all__) == ik_node.__all__
    assert all(getattr(ik_node, name) for name in ik_node.__all__)


def test_the_tested_versions_are_allowed_have_hashes_and_name_no_index() -> None:
    setup = (ROOT / 'setup.py').read_text()
    wanted = [Requirement(text) for text in re.findall(r"'([a-z-]+[<>=][=\d.,<>]*)'", setup)]
    for path in (ROOT / 'tools').glob('constraints-*.txt'):
        text = path.read_text()
        pinned = dict(re.findall(r'^([\w.-]+)==(\S+) \\\n +--hash=sha256:[0-9a-f]{64}', text, re.MULTILINE))
        assert len(pinned) == text.count('==') > 100
        assert not re.search('://|^--', text, re.MULTILINE)
        for requirement in wanted:
            assert pinned[requirement.name.lower()] in requirement.specifier, requirement
        assert {requirement.name for requirement in wanted} > {'numba', 'ruckig', 'pytest', 'viser'}
