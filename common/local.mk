# SPDX-License-Identifier: GPL-2.0-or-later
# The policy: a convenience library, linked into the engine, the tests and the
# tools. Nothing here may depend on Slurm.

noinst_LTLIBRARIES += common/libbudget_policy.la
common_libbudget_policy_la_SOURCES = \
	common/accounting_rows.cc \
	common/accounting_rows.h \
	common/amount.h \
	common/claim.cc \
	common/claim.h \
	common/contract.cc \
	common/contract.h \
	common/fair_tree.cc \
	common/fair_tree.h \
	common/fitting.cc \
	common/fitting.h \
	common/ledger.cc \
	common/ledger.h \
	common/numbering.cc \
	common/numbering.h \
	common/parameters.cc \
	common/parameters.h \
	common/placement.cc \
	common/placement.h \
	common/preemption.cc \
	common/preemption.h \
	common/queue.cc \
	common/queue.h \
	common/rebuild.cc \
	common/rebuild.h \
	common/result.h \
	common/run_tag.cc \
	common/run_tag.h \
	common/run_terms.cc \
	common/run_terms.h \
	common/shares.cc \
	common/shares.h \
	common/snapshot.cc \
	common/snapshot.h \
	common/time_text.cc \
	common/time_text.h \
	common/tree.cc \
	common/tree.h \
	common/units.h \
	common/usage_window.cc \
	common/usage_window.h \
	common/victim_sets.h
common_libbudget_policy_la_CXXFLAGS = $(AM_CXXFLAGS) -fvisibility=hidden
