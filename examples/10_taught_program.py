# SPDX-License-Identifier: Apache-2.0
"""Write a program of taught points, have it checked, correct it and run it with ik_play.

It starts an ik_node of its own in the namespace /example, which moves only a display, and ends it.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from ik_node.teach.program import Point, Program

ARM = Path(__file__).parents[1] / 'urdf' / 'seed_arm.urdf.xacro'
START = [sys.executable, '-m', 'ik_node.start']
NAMESPACE = ['--ros-args', '-r', '__ns:=/example']
DOWN = (0.0, 0.0, -1.0)

program = Program(
    (
        Point('above', position=(0.4, 0.1, 0.3), direction=DOWN),
        Point('pick', position=(0.4, 0.1, 0.2), direction=DOWN, motion='line', wait=0.1),
        Point('place', position=(1.4, -0.1, 0.3), direction=DOWN),  # a typing error: 1.4 m
    )
)
ik_node = subprocess.Popen([*START, 'ik_node', *NAMESPACE, '-p', f'urdf_file:={ARM}'])
try:
    with tempfile.TemporaryDirectory() as folder:
        for attempt in (program, program.with_point(2, position=(0.4, -0.1, 0.3))):
            file = Path(folder, 'pick.yaml')
            attempt.save(file)
            done = subprocess.run([*START, 'ik_play', str(file), *NAMESPACE], check=False)
            print(f'exit code {done.returncode}', flush=True)  # 0: it has run, 1: rejected, nothing moved
        print(file.read_text(encoding='utf-8'))
finally:
    ik_node.terminate()
    ik_node.wait()
