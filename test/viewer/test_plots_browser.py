# SPDX-License-Identifier: Apache-2.0
"""Plots in a real browser: they are drawn, and looking back by the mouse moves a ghost only."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from browser_harness import (
    browser,
    changed,
    click,
    displayed,
    open_page,
    settled,
    slide,
    source,
    tick,
    wait,
    words,
)
from domains import new_domain
from viewer_harness import SEED_ARM, SEED_JOINTS, viewer

__all__ = ['browser']
MOST_EMPTY = 200  # pixels of a chart without lines: axes and their labels
INK = """
return [...document.querySelectorAll('.uplot canvas')].filter((one) => one.width).map((canvas) => {
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let coloured = 0;
  for (let k = 0; k < data.length; k += 4)
    coloured += data[k + 3] > 100 && Math.max(data[k], data[k + 1], data[k + 2])
      - Math.min(data[k], data[k + 1], data[k + 2]) > 60;
  return coloured;
});
"""


def test_charts_are_drawn_and_looking_back_moves_a_ghost_only(browser: Any) -> None:
    with viewer(new_domain()) as (process, robot):
        robot.describe(SEED_ARM)
        open_page(browser, process.url())
        ended = threading.Event()

        def move() -> None:
            for k in range(60):
                robot.move(**dict(zip(SEED_JOINTS, (0.02 * k - 0.9, 0.5, 0.9, 0.6, 0.4), strict=True)))
                ended.wait(0.1)

        thread = threading.Thread(target=move)
        thread.start()
        wait(lambda: 'joint5' in source(browser), 'the arm')
        thread.join()
        click(browser, 'Plots')
        tick(browser, 'Show plots')
        wait(lambda: sum(ink > MOST_EMPTY for ink in browser.execute_script(INK)) >= 2, 'lines of joints')
        assert 'Following error' not in words(browser), 'nothing is measured'

        before = settled(browser)
        tick(browser, 'Look back')
        wait(lambda: displayed(browser, "//*[normalize-space(text())='Time [s]']"), 'the slider')
        places = set[str]()
        for _ in range(4):
            slide(browser, 'Time [s]', -25)
            wait(lambda: 'joint1 ' in words(browser), 'the values')
            places.add(words(browser).partition('joint1 ')[2][:8])
            if changed(before, settled(browser)) > 20:
                break
        after = settled(browser)
        assert changed(before, after) > 20, places
        tick(browser, 'Look back')
        wait(lambda: changed(before, settled(browser)) == 0, 'the ghost is gone')
        tick(browser, 'Show plots')
        wait(lambda: not browser.execute_script(INK), 'no charts')
        assert not robot.goals
        assert not robot.joint_goals
        assert np.isclose(robot.joints['joint1'], 0.02 * 59 - 0.9)
