# SPDX-License-Identifier: GPL-2.0-or-later
# Design notes and the formats of what is kept on disk.

dist_doc_DATA = \
	README.md \
	NEWS.md \
	LICENSE \
	docs/bypasses.md \
	docs/claims.md \
	docs/decision-multifactor.md \
	docs/design.md \
	docs/installing.md \
	docs/placement.md \
	docs/preemption.md \
	docs/releases.md \
	docs/restarts.md \
	docs/state_format.md \
	docs/usage.md
