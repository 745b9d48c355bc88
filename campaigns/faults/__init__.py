# SPDX-License-Identifier: Apache-2.0
"""Random faults against ik_node on a clock of its own, and a judge of all that it publishes.

    make faults                                          1,000 runs
    make faults FAULTS='--runs 50 --seed 7'              others
    make faults FAULTS='--seed 7 --first 31 --runs 1'    run 31 of these alone

arena.py has the node, the arm at the other end and a client, activities.py what the arm is asked to do,
kinds.py what goes wrong meanwhile, judge.py what may come out, run.py one run. A run is the same every time.
Arena apart, nothing here uses ik_node.
"""
