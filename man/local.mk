# SPDX-License-Identifier: GPL-2.0-or-later
# Manual pages.

dist_man_MANS = \
	man/sbudget.1 \
	man/sbudget-contract.1 \
	man/sbudget-doctor.1 \
	man/slurm-budget.5 \
	man/slurm-budget.7
