# SPDX-License-Identifier: Apache-2.0
"""What `make bench` measures: ik_node's answers and times, beside its peers'."""
