# SPDX-License-Identifier: Apache-2.0
"""No program starts anything when it is asked for help or given arguments that it does not know."""

import re
import sys
from pathlib import Path

import pytest

from ik_node import start

SETUP = Path(__file__).parents[2].joinpath('setup.py').read_text(encoding='utf-8')
PROGRAMS = re.findall(r"'(ik_\w+) = ik_node.start:\1'", SETUP)
NODES = [name for name in PROGRAMS if 'node' in getattr(start, name).keywords]


@pytest.fixture
def ended(monkeypatch, capsys):
    """Run a program with arguments; return its exit code and what it has printed."""

    def run(name, *arguments, loads=False):
        monkeypatch.setattr(sys, 'argv', [name, *arguments])
        monkeypatch.setattr(start, '_end', sys.exit)
        if not loads:  # a node must not even load its module
            monkeypatch.setattr(start, 'import_module', lambda module: pytest.fail(f'{module} is loaded'))
        with pytest.raises(SystemExit) as exit_:
            getattr(start, name)()
        text = capsys.readouterr()
        return exit_.value.code, text.out + text.err

    return run


@pytest.mark.parametrize('arguments', [['--help'], ['-h'], ['--ros-args', '--help']], ids=' '.join)
@pytest.mark.parametrize('name', NODES)
def test_help_of_a_node_tells_its_usage(ended, name, arguments):
    code, text = ended(name, *arguments)
    assert code == 0
    assert f'usage: {name} [--ros-args' in text


@pytest.mark.parametrize(
    'arguments',
    [['nonsense'], ['--nonsense'], ['-p', 'track:=none'], ['--ros-args', '-p', 'a:=1', '--', 'x'], ['']],
    ids=' '.join,
)
@pytest.mark.parametrize('name', NODES)
def test_node_rejects_arguments_that_are_none_of_ros(ended, name, arguments):
    code, text = ended(name, *arguments)
    assert code == 2
    assert 'unrecognized arguments' in text


@pytest.mark.parametrize('arguments', [[], ['--ros-args', '-p', 'a:=1', '--ros-args', '-r', 'x:=y', '--']])
def test_node_starts_with_ros_arguments(ended, monkeypatch, arguments):
    monkeypatch.setattr(start, 'import_module', lambda module: sys.exit(f'{module} is loaded'))
    code, _ = ended('ik_goals', *arguments, loads=True)
    assert 'is loaded' in code


@pytest.mark.parametrize('name', sorted(set(PROGRAMS) - set(NODES)))
def test_command_tells_its_usage_and_rejects_nonsense(ended, name):
    code, text = ended(name, '--help', loads=True)
    assert code == 0
    assert 'usage: ' in text
    code, text = ended(name, '--nonsense', loads=True)
    assert code == 2
    assert 'error: ' in text
