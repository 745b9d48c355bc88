# SPDX-License-Identifier: Apache-2.0
"""What make compare writes: the tables of docs/explanation/methods.md and the plots beside it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
from oracles.chain import Array

from benchmarks.compare_answers import RESTARTS, Answers, Result
from ik_node.solver.methods import METHODS
from ik_node.solver.restarts import SCHEDULES

mpl.use('agg')
from matplotlib import pyplot

FINE, COARSE = 1e-6, 1e-3  # m and rad
COLOURS = (
    *('#555555', '#1b7837', '#5aae61', '#f1a340', '#d7191c'),
    *('#7b3294', '#2b83ba', '#80cdc1', '#a6611a'),
)
SCHEDULES_HEADER = ['goals', 'schedule', 'number', 'solved %', 'median', 'mean', 'p99', 'restarts', 'most']

INTRO = """
# The local methods side by side

Written by `make compare`, which measures everything below in one run; the same command rewrites it.

- `default` is `IkSolver` as it comes, without the argument `method`: the closed form where the arm has one, else
  `lm`. It is no name of a method. The others are local methods alone.
{methods}

All run under the same random-restart annealing, from the same starts with the same random numbers, at most
{restarts} restarts. No polish by another method follows. Answers are judged by the benchmark's own forward
kinematics, at 1e-6 m and 1e-6 rad unless said otherwise. Times are processor times of whole Python calls,
failures included.

{machine}. {arms} arms: {names}.
"""

MAIN = """
## Success and time

To see how each method moves and where it gets stuck, play the [experiments](../tutorials/experiments.md). Their shares
are higher: one easy arm, from joints at zero, and goals of one kind.

Reachable goals from random joints within the limits, seed mid-range. *One start*: the descent from the seed
did it. Shares are means over the arms, with the worst arm in brackets; times are medians over all goals, and
the mean of all, in microseconds.
"""

SPECIAL = """
## Singular poses, limits, out of reach

*Goal singular*: the goal is a pose where the Jacobian loses rank. *Start singular*: the seed is one, and one
start is all there is. *At limits*: the goal needs every other joint at a limit. *Out of reach*: goals 5 %
beyond the sum of the arm's lengths; how much farther than the best known the tool stays, as a share of the
reach, median and worst. *Constrained*: reachable positions with random directions on arms with 4
effective DoF; position missed in metres (median, worst) and direction beyond the best known in rad
(median, worst), among those that keep the position to 1 mm.
"""

SCHEDULES_TEXT = """
## Schedules of the random restarts

Arms without a closed form, method `lm`, up to 1000 restarts, the same goals and random numbers for all. A
schedule has a number of temperatures, each a factor colder than the one before, before it is heated to 1
again: {schedules}.
Offsets are uniform, up to the temperature times each joint's range. `greedy` adds them to
the best configuration so far (monotonic basin hopping, Wales and Doye 1997); `metropolis` adds them to where
the descent before ended, unless that was worse and the rule of Metropolis et al. (1953) rejects it: the
probability is exp(-rise / (temperature * acceptance)), in the weighted error. All first try the seed and the
eight known configurations nearest to the goal. *At limits*: every other joint at a limit. *Any direction*:
reachable positions with random directions, of which many cannot be met; the share solved says which finds
more, and the time is mostly that of the search for the closest configuration. Times in microseconds of
processor time; restarts are those of solved goals.
"""

SWITCHES_TEXT = """
## Switches

`method_options` turn parts of a method off. `hinges` and `limits` of `ccd` then hold only between sweeps: in
a sweep the joints turn as ball joints, or freely beyond their limits; without `direction` no joint serves
the tool axis, so that a direction is met by luck alone. Reachable goals, up to 100 restarts; means over
the arms with the worst arm in brackets.
"""

PER_ARM = """
## Arm by arm

Share solved from one start / with restarts, and the median time of a call in microseconds.
"""

READING = """
## How to read it

- `lm` and `dls` converge quadratically where a solution is regular, and restarts make up for local minima
  and limits: every goal is solved, half of them in ten to twenty microseconds, of which the call from Python
  takes a good part. What makes both quick is the damping: proportional to the squared error, it is Newton's
  method at the goal and a short gradient step far away, and needs no tuning per arm. `dls` gets there from
  one start a little more often, because a step that raises the error may leave a local minimum; the price
  is a longer tail, and an end that rests less surely where nothing is met exactly: out of reach.
- `transpose` and `ccd` converge linearly, at a rate that the condition number sets. To a millimetre and a
  milliradian they are reliable with restarts. To 1e-6 they are not: on arms whose tool point lies a few
  millimetres beside the roll axis (such as SO-101, with a condition number of hundreds) they give up a fifth
  of the goals or more. Restarts help against local minima, not against slowness.
- `ccd` loses for the point what it gains for the axis, most where the same joints must meet both. It does
  worst at singular goals, where the last digits converge most slowly.
- `fabrik` moves points; a direction only adds a point behind the tool, weighed against the others in each
  revolute joint. To a millimetre and a milliradian it solves nearly as much as `ccd`, least where the tool
  point lies beside the roll axis (SO-101). Its strength is long chains of ball joints, not five revolute
  joints. Where a goal cannot be met it ends centimetres away from the closest position.
- `autodiff` finds what `scipy` finds. Its gradient is exact, but a gradient says less than the Jacobian:
  thirty iterations where `lm` takes six, each of some milliseconds in this run, in which the BLAS threads
  competed with other programs.
- `scipy` solves as much, at hundreds of times the price, nearly all of it spent in Python. Its
  trust region keeps strictly inside the bounds, which costs it goals that lie at limits.
- Singular goals cost the second-order methods nothing: joints get less exact, the tool does not. Singular
  starts cost every method a good third of its first descents, since some direction of motion is not seen
  from there. The first restart cures it.
- Out of reach most answers are the best known, but hardly any method finds it every time: a descent finds a
  local best. The same holds for constrained directions, where the worst cases are far from the best known.
- Whatever the descent, the closed form is better where an arm has one: no start to choose, nothing to miss.
"""


def share(flags: list[Array]) -> str:
    """Return mean over arms and worst arm of shares of True."""
    each = [100 * np.mean(values) for values in flags]
    return f'{np.mean(each):.1f} ({min(each):.0f})'


def spread(values: Array) -> str:
    """Return median and worst."""
    return f'{np.median(values):.1e} ({np.max(values):.0e})' if len(values) else '-'


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ['---', *['--:'] * (len(header) - 1)], *rows]
    return '\n'.join(f'| {" | ".join(line)} |' for line in lines)


class Report:
    """The results, by method and arm."""

    def __init__(self, results: list[Result]) -> None:
        self.results = results
        self.methods = list(dict.fromkeys(result.method for result in results))
        self.arms = list(dict.fromkeys(result.task.name for result in results))
        self.by_name = {(result.method, result.task.name): result for result in results}

    def answers(self, method: str, kind: str) -> list[Answers]:
        """All answers of a method to a kind of goal, one per arm that was asked."""
        found = [self.by_name[method, arm].answers.get(kind) for arm in self.arms]
        return [answers for answers in found if answers is not None]

    def excess(self, method: str, kind: str, error: Callable[[Answers], Array]) -> Array:
        """How far the errors of a method exceed the least of all methods, goal by goal, over the arms."""
        out = []
        for arm in self.arms:
            mine = self.by_name[method, arm].answers.get(kind)
            if mine is None:
                continue
            count = len(mine.seconds)
            others = [self.by_name[other, arm].answers[kind] for other in self.methods]
            least = np.min([error(o)[:count] for o in others if len(o.seconds) >= count], axis=0)
            out.append(error(mine) - least)
        return np.concatenate(out) if out else np.zeros(0)

    def main_table(self) -> str:
        """Success and time per method."""
        rows = []
        for method in self.methods:
            fine, coarse = self.answers(method, 'reachable'), self.answers(method, 'coarse')
            seconds = np.concatenate([answers.seconds for answers in fine])
            rows.append(
                [
                    f'`{method}`',
                    share([a.solved(FINE) & a.first for a in fine]),
                    share([a.solved(FINE) for a in fine]),
                    share([a.solved(COARSE) & a.first & a.claimed for a in coarse]),
                    share([a.solved(COARSE) for a in coarse]),
                    f'{1e6 * np.median(seconds):.1f}',
                    f'{1e6 * np.mean(seconds):.0f}',
                ]
            )
        header = ['method', 'one start %', 'with restarts %', 'one start % to 1 mm, 1 mrad']
        return table([*header, 'with restarts % to 1 mm, 1 mrad', 'median', 'mean'], rows)

    def special_table(self) -> str:
        """Singular poses, limits, out of reach."""
        rows = []
        for method in self.methods:
            reach = np.concatenate(
                [
                    np.full(len(self.by_name[method, arm].answers['out of reach'].seconds), r)
                    for arm, r in ((a, self.by_name[method, a].task.arm.reach) for a in self.arms)
                ]
            )
            tied = self.answers(method, 'tied')
            positions = np.concatenate([a.position for a in tied]) if tied else np.zeros(0)
            directions = self.excess(method, 'tied', kept_direction)
            rows.append(
                [
                    f'`{method}`',
                    share([a.solved(FINE) for a in self.answers(method, 'singular')]),
                    share([a.solved(FINE) & a.first for a in self.answers(method, 'from singular')]),
                    share([a.solved(FINE) for a in self.answers(method, 'limits')]),
                    spread(self.excess(method, 'out of reach', lambda a: a.position) / reach),
                    spread(positions),
                    spread(directions[np.isfinite(directions)]),
                ]
            )
        header = ['method', 'goal singular %', 'start singular, one start %', 'at limits %']
        return table([*header, 'out of reach, share of reach', 'constrained: position', 'constrained: direction'], rows)

    def arm_table(self) -> str:
        """Success and time per arm and method."""
        rows = []
        for arm in self.arms:
            cells = []
            for method in self.methods:
                answers = self.by_name[method, arm].answers['reachable']
                solved = answers.solved(FINE)
                one, median = np.mean(solved & answers.first), np.median(answers.seconds)
                cells.append(f'{100 * one:.0f} / {100 * np.mean(solved):.0f}, {1e6 * median:.0f}')
            dof = self.by_name[self.methods[0], arm].task.arm.effective_dof
            rows.append([arm, str(dof), *cells])
        return table(['arm', 'DoF', *(f'`{method}`' for method in self.methods)], rows)

    def plot_success(self, path: Path) -> None:
        """One dot per arm, a bar for the mean: from one start and with restarts."""
        figure, axes = pyplot.subplots(1, 2, figsize=(8, 3.2), sharey=True)
        for axis, title, first in ((axes[0], 'one start', True), (axes[1], 'with restarts', False)):
            for place, method in enumerate(self.methods):
                each = [
                    100 * np.mean(a.solved(FINE) & (a.first | (not first))) for a in self.answers(method, 'reachable')
                ]
                axis.bar(place, np.mean(each), color=COLOURS[place % len(COLOURS)], alpha=0.5)
                shift = np.linspace(-0.25, 0.25, len(each))
                axis.plot(place + shift, each, '.', color=COLOURS[place % len(COLOURS)], markersize=4)
            axis.set_title(title)
            axis.set_xticks(range(len(self.methods)), self.methods, rotation=30)
            axis.set_ylim(0, 103)
        axes[0].set_ylabel('goals solved to 1e-6 [%]')
        figure.tight_layout()
        figure.savefig(path, dpi=90)
        pyplot.close(figure)

    def plot_time(self, path: Path) -> None:
        """Share of goals solved within a given time, over all arms."""
        figure, axis = pyplot.subplots(figsize=(8, 3.2))
        for place, method in enumerate(self.methods):
            each = self.answers(method, 'reachable')
            times = np.concatenate([np.where(a.solved(FINE), a.seconds, np.inf) for a in each])
            axis.step(
                1e6 * np.sort(times),
                100 * np.arange(1, len(times) + 1) / len(times),
                where='post',
                label=method,
                color=COLOURS[place % len(COLOURS)],
            )
        axis.set_xscale('log')
        axis.set_xlabel('processor time [us]')
        axis.set_ylabel('goals solved [%]')
        axis.set_ylim(0, 103)
        axis.grid(alpha=0.3)
        axis.legend(fontsize='small')
        figure.tight_layout()
        figure.savefig(path, dpi=90)
        pyplot.close(figure)


def kept_direction(answers: Answers) -> Array:
    """Direction errors where the position is kept to a millimetre, else inf."""
    return np.where(answers.position <= COARSE, answers.direction, np.inf)


def write(
    folder: Path,
    results: list[Result],
    machine: str,
    schedules: list[list[str]],
    switches: list[list[str]],
) -> None:
    """Write methods.md, methods_success.png and methods_time.png into folder."""
    report = Report(results)
    names = ', '.join(f'`{arm}`' for arm in report.arms)
    methods = '\n'.join(
        textwrap.fill(f'- `{name}`: {method.text}', 110, subsequent_indent='  ') for name, method in METHODS.items()
    )
    schedule_names = ', '.join(f'`{name}` {each.temperatures} by {each.cooling:g}' for name, each in SCHEDULES.items())
    intro = INTRO.format(methods=methods, restarts=RESTARTS, machine=machine, arms=len(report.arms), names=names)
    parts = [
        wrapped(intro),
        wrapped(MAIN),
        report.main_table(),
        '![Share solved, one dot per arm](methods_success.png)',
        '![Share solved within a time](methods_time.png)',
        wrapped(SPECIAL),
        report.special_table(),
        READING.strip(),
        wrapped(SCHEDULES_TEXT.format(schedules=schedule_names)),
        table(SCHEDULES_HEADER, schedules),
        wrapped(SWITCHES_TEXT),
        table(['method', 'switches', 'solved to 1e-6 %', 'solved to 1 mm, 1 mrad %'], switches),
        wrapped(PER_ARM),
        report.arm_table(),
    ]
    (folder / 'methods.md').write_text('\n\n'.join(parts) + '\n')
    report.plot_success(folder / 'methods_success.png')
    report.plot_time(folder / 'methods_time.png')


def wrapped(text: str) -> str:
    """Return text without the blank lines around it, its long lines wrapped."""
    return '\n'.join('\n'.join(textwrap.wrap(line, 110)) for line in text.strip().splitlines())
