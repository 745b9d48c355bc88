# SPDX-License-Identifier: Apache-2.0
"""Sessions have ROS domains of their own, and programs of a terminal find them."""

import os
import subprocess
import sys

import pytest

from ik_node.errors import InputError
from ik_node.ros import sessions


@pytest.fixture
def alone(monkeypatch):
    """No sessions but those of the test; return a function that starts one."""
    begun = []
    monkeypatch.setattr(sessions, '_name', lambda domain: f'\0ik_node test {os.getpid()} {domain}')
    monkeypatch.delenv(sessions.DOMAIN, raising=False)

    def begin():
        domain, name = sessions.take_domain()
        name.listen(sessions.CALLS)
        begun.append(name)
        return domain, name

    yield begin
    for name in begun:
        name.close()


def test_each_session_has_a_domain_of_its_own_and_frees_it(alone):
    (one, name), (other, _) = alone(), alone()
    assert one != other
    assert {found.domain for found in sessions.sessions()} == {one, other}
    name.close()
    assert [found.domain for found in sessions.sessions()] == [other]


def test_a_program_joins_the_only_session(alone):
    sessions.join('ik_goto')
    assert sessions.DOMAIN not in os.environ, 'no session: the domain of everybody'
    domain, _ = alone()
    sessions.join('ik_goto')
    assert os.environ[sessions.DOMAIN] == str(domain)
    alone()
    sessions.join('ik_goto')  # the variable says which


def test_several_sessions_are_named(alone):
    domains = [alone()[0] for _ in range(2)]
    with pytest.raises(InputError) as error:
        sessions.join('ik_goto')
    for domain in domains:
        assert f'{sessions.DOMAIN}={domain}: ' in str(error.value)
    assert f'process {os.getpid()}' in str(error.value)


def test_sessions_of_other_users_are_not_joined(alone, monkeypatch):
    domain, _ = alone()
    monkeypatch.setattr(os, 'getuid', lambda: 4711)
    assert sessions.sessions() == []
    assert alone()[0] != domain


def test_a_session_lasts_as_long_as_its_last_program(alone):
    _, name = alone()
    left = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE, pass_fds=[name.fileno()])
    name.close()
    assert len(sessions.sessions()) == 1
    left.kill()
    left.communicate()
    assert sessions.sessions() == []


@pytest.mark.slow
def test_many_calls_do_not_hide_a_session(alone):
    _, name = alone()
    for _ in range(3 * sessions.CALLS):
        assert sessions.sessions()
        sessions.hang_up(name)


def test_without_the_namespace_there_is_no_domain(monkeypatch):
    monkeypatch.setattr(sessions, '_name', lambda _: '/nowhere/at/all')
    assert sessions.take_domain() is None
    assert sessions.sessions() == []
