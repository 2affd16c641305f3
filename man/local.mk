# SPDX-License-Identifier: GPL-2.0-or-later
# Manual pages.

dist_man_MANS = \
	man/slurm-budget.5 \
	man/slurm-budget.7
