# SPDX-License-Identifier: Apache-2.0
"""What is asked of the arm and told about it: states, requests, reports, snapshots."""
