# SPDX-License-Identifier: Apache-2.0
"""The help of every program: what it does in a sentence, and two examples that its own parser accepts."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from ik_node import start
from ik_node.arguments import PlainParser
from ik_node.console import without_ros
from ik_node.usage import USAGE

ROOT = Path(__file__).parents[2]
PROGRAMS = re.findall(r"'(ik_\w+) = ik_node.start:\1'", (ROOT / 'setup.py').read_text(encoding='utf-8'))
NODES = [name for name in PROGRAMS if 'node' in getattr(start, name).keywords]
COMMANDS = [name for name in PROGRAMS if name not in NODES]


class ParsedError(Exception):
    """Ends a program once its parser has accepted the arguments."""


def settings_of(node):
    """The dataclass with the parameters of a node."""
    spec = importlib.util.spec_from_file_location('generated', ROOT / 'docs' / 'generated.py')
    generated = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generated)
    module, _, name = generated.SETTINGS[node].rpartition('.')
    return getattr(import_module(module), name)


def test_every_program_has_a_sentence_and_two_examples():
    assert set(USAGE) == set(PROGRAMS)
    for name, (does, examples) in USAGE.items():
        assert does.endswith('.')
        assert '. ' not in does
        assert len(examples) == 2
        assert {shlex.split(command)[0] for command in examples.values()} == {name}


@pytest.mark.parametrize('name', PROGRAMS)
def test_the_help_begins_with_the_sentence_and_ends_with_the_examples(monkeypatch, capsys, name):
    monkeypatch.setenv('COLUMNS', '200')
    monkeypatch.setattr(sys, 'argv', [name, '--help'])
    monkeypatch.setattr(start, '_end', sys.exit)
    with pytest.raises(SystemExit) as ended:
        getattr(start, name)()
    text = capsys.readouterr().out
    assert not ended.value.code
    assert text.startswith(f'{USAGE[name].does}\n\nusage: {name}')
    assert text.split('\nExamples:\n')[1].split('\n')[1:4:2] == [f'  {one}' for one in USAGE[name].examples.values()]


@pytest.mark.parametrize('name', COMMANDS)
def test_the_parser_of_a_command_accepts_its_examples(monkeypatch, name):
    parse = PlainParser.parse_args

    def stop(self, words=None, namespace=None):
        parse(self, words, namespace)
        options = {word for word in words if word.startswith('--')}
        assert options <= set(self._option_string_actions)  # no abbreviations
        raise ParsedError

    monkeypatch.setattr(PlainParser, 'parse_args', stop)
    program = getattr(start, name)
    main = getattr(import_module(program.args[0]), program.keywords.get('function', 'main'))
    for command in USAGE[name].examples.values():
        with pytest.raises(ParsedError):
            main(shlex.split(command)[1:])


@pytest.mark.parametrize('name', NODES)
def test_the_parameters_of_a_node_accept_its_examples(name):
    for command in USAGE[name].examples.values():
        _, *words = shlex.split(command)
        assert without_ros(words) == []
        assert words[1::2] == ['-p'] * (len(words) // 2)
        given = dict(word.split(':=') for word in words[2::2])
        values = {key: yaml.safe_load(value) for key, value in given.items()}
        if name == 'ik_teleop':  # it declares this one by itself
            assert set(values) <= {'tool'}
            continue
        settings = settings_of(name)
        kinds = {field.name: field.default for field in fields(settings)}
        assert all(isinstance(value, (type(kinds[key]), list)) for key, value in values.items())
        settings(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})
