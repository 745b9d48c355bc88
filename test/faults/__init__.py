# SPDX-License-Identifier: Apache-2.0
"""The fault campaign: randomised runs of a real node over real DDS, and a judge of all that it publishes.

    make faults                                    1,000 runs
    make faults FAULTS='--runs 50 --seed 7'        another campaign
    make faults FAULTS='--seed 7 --first 31 --runs 1'    run 31 of that one alone

arena.py starts the node and talks to it, driver.py is the arm at the other end, activities.py what the arm is
asked to do, kinds/ what goes wrong meanwhile, judge.py and its neighbours what may come out, run.py one run.
"""
