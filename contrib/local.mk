# SPDX-License-Identifier: GPL-2.0-or-later
# Scripts that prepare a machine and check a checkout, not installed; and the
# shell's completion, which is.

EXTRA_DIST += \
	contrib/bootstrap \
	contrib/check \
	contrib/compile-against \
	contrib/quickstart \
	contrib/sources.sh

completiondir = $(datadir)/bash-completion/completions
dist_completion_DATA = contrib/completion/sbudget
