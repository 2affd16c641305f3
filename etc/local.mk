# SPDX-License-Identifier: GPL-2.0-or-later
# Examples for a site to start from.

examplesdir = $(docdir)/examples
dist_examples_DATA = \
	etc/budgets.cfg \
	etc/gres.conf.example \
	etc/plugstack.conf.example \
	etc/slurm.conf.example
