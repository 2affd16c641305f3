# SPDX-License-Identifier: GPL-2.0-or-later
# What `make check` runs needs no Slurm: a Check program per file of common/, and
# the t0xxx scripts about the tree and the modules. The t1xxx and later scripts
# start a private Slurm; contrib/check and `make acceptance` run them, one after
# the other.

AM_TESTS_ENVIRONMENT = \
	SLURM_BUDGET_BUILD_DIR='$(abs_top_builddir)'; export SLURM_BUDGET_BUILD_DIR; \
	CK_TIMEOUT_MULTIPLIER="$${CK_TIMEOUT_MULTIPLIER:-5}"; export CK_TIMEOUT_MULTIPLIER;
if SANITIZERS
AM_TESTS_ENVIRONMENT += SLURM_BUDGET_SLOW_TOOL=yes; export SLURM_BUDGET_SLOW_TOOL;
endif

TEST_EXTENSIONS = .t
T_LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh

# A test program is one file of its name.
AM_DEFAULT_SOURCE_EXT = .cc
LDADD = common/libbudget_policy.la $(CHECK_LIBS)

UNIT_TESTS = \
	tests/accounting_rows_test \
	tests/claim_test \
	tests/contract_test \
	tests/engine_test \
	tests/fair_tree_test \
	tests/gpu_request_test \
	tests/ledger_file_test \
	tests/ledger_test \
	tests/numbering_test \
	tests/parameters_test \
	tests/placement_test \
	tests/preemption_test \
	tests/queue_test \
	tests/rebuild_test \
	tests/run_tag_test \
	tests/run_terms_test \
	tests/shares_test \
	tests/snapshot_test \
	tests/time_text_test \
	tests/tree_test \
	tests/units_test \
	tests/usage_window_test \
	tests/verdicts_test
check_PROGRAMS += $(UNIT_TESTS)

STATE_LIBS = plugins/libbudget_state.la common/libbudget_policy.la
tests_ledger_file_test_CPPFLAGS = $(AM_CPPFLAGS) -DSTATE_SAMPLE='"$(abs_top_srcdir)/tests/data/state-v1.bin"' \
	-DSTATE_SAMPLE_BY_ITSELF='"$(abs_top_srcdir)/tests/data/state-v1-by-itself.bin"'
tests_ledger_file_test_LDADD = $(STATE_LIBS) $(CHECK_LIBS)
tests_engine_test_LDADD = libslurm_budget_engine.la common/libbudget_policy.la $(CHECK_LIBS)
tests_verdicts_test_LDADD = plugins/libbudget_verdicts.la common/libbudget_policy.la $(CHECK_LIBS)

tests_gpu_request_test_SOURCES = \
	tests/gpu_request_test.cc \
	plugins/slurm/gpu_request.c

# For people and for live tests: what is in a state file, and one that is saved.
noinst_PROGRAMS += tests/state_dump tests/state_save
tests_state_dump_LDADD = $(STATE_LIBS)
tests_state_save_LDADD = $(STATE_LIBS)

TREE_TESTS = \
	tests/t0001-layering.t \
	tests/t0003-configure.t \
	tests/t0004-manual.t \
	tests/t0005-audit.t
if SLURM
TREE_TESTS += tests/t0002-exports.t
endif

TESTS += $(UNIT_TESTS)
if !SANITIZERS
TESTS += $(TREE_TESTS)
endif

LIVE_TESTS = \
	tests/t1001-multifactor-books.t \
	tests/t1002-tools.t \
	tests/t1010-shares.t \
	tests/t1011-order.t \
	tests/t1012-bursts.t \
	tests/t1013-usage.t \
	tests/t1020-lock-holds.t \
	tests/t2001-time-slicing.t \
	tests/t2002-rights.t \
	tests/t2003-victims.t \
	tests/t2004-leftovers.t \
	tests/t2010-gangs.t \
	tests/t2011-free-riders.t \
	tests/t2012-impossible.t \
	tests/t2005-requeue.t \
	tests/t2006-states.t \
	tests/t2020-random-load.t \
	tests/t2030-cycles.t \
	tests/t3001-submit.t \
	tests/t3002-update.t \
	tests/t3003-closed-doors.t \
	tests/t4001-spank.t \
	tests/t6001-sbudget.t \
	tests/t8002-state-file.t \
	tests/t8001-rebuild.t \
	tests/t8010-kills.t \
	tests/t8020-takeover.t \
	tests/t8030-in-and-out.t \
	tests/t8040-controller.t \
	tests/t8041-database.t \
	tests/t8042-clock.t \
	tests/t9001-valgrind.t

EXTRA_DIST += \
	tests/audit \
	tests/audit.d/contracts.awk \
	tests/audit.d/log.awk \
	tests/audit.d/runs.awk \
	tests/audit.d/usage.awk \
	tests/audit.d/words.awk \
	tests/check_main.h \
	tests/scene_text.h \
	tests/tap.sh \
	tests/count \
	tests/lib.sh \
	tests/live.sh \
	tests/minicluster \
	tests/minicluster_test.sh \
	tests/run_serially \
	tests/minicluster.d/cluster.sh \
	tests/minicluster.d/config.sh \
	tests/minicluster.d/hold-ports \
	tests/minicluster.d/process.sh \
	tests/t0001-layering.t \
	tests/t0003-configure.t \
	tests/t0004-manual.t \
	tests/t0005-audit.t \
	tests/t0002-exports.t \
	tests/data/audit/associations \
	tests/data/audit/config \
	tests/data/audit/jobs \
	tests/data/audit/log \
	tests/data/audit/nodes \
	tests/data/audit/partitions \
	tests/data/audit/qos \
	tests/data/audit/rows \
	tests/data/audit/when \
	tests/data/state-v1-by-itself.bin \
	tests/data/state-v1.bin \
	tests/data/state-v1.txt \
	$(LIVE_TESTS)

if SLURM
# Preloaded into slurmctld by t1020-lock-holds.t. (Only a run path makes libtool
# build a shared object that is not installed.)
noinst_LTLIBRARIES += tests/lock_probe.la
tests_lock_probe_la_SOURCES = tests/lock_probe.c
tests_lock_probe_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
endif

# The unit tests again, under valgrind.
.PHONY: check-valgrind
check-valgrind: $(UNIT_TESTS)
	SLURM_BUDGET_SLOW_TOOL=yes CK_FORK=no CK_TIMEOUT_MULTIPLIER=20 $(MAKE) $(AM_MAKEFLAGS) check \
		TESTS='$(UNIT_TESTS)' \
		LOG_COMPILER='$(LIBTOOL) --mode=execute valgrind' \
		LOG_FLAGS='--quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,possible'

# Figures, `name value unit` a line.
EXTRA_PROGRAMS += tests/bench
tests_bench_SOURCES = \
	tests/bench.cc \
	tests/bench.h \
	tests/bench_charge.cc \
	tests/bench_order.cc \
	tests/bench_preempt.cc \
	tests/bench_preemption.cc \
	tests/bench_rows.cc
tests_bench_LDADD = libslurm_budget_engine.la common/libbudget_policy.la
.PHONY: bench
bench: tests/bench
	tests/bench
CLEANFILES += $(EXTRA_PROGRAMS)

# The long form of the live tests.
.PHONY: acceptance
acceptance: all
	$(AM_TESTS_ENVIRONMENT) SLURM_BUDGET_LONG=1; export SLURM_BUDGET_LONG; \
		$(top_srcdir)/tests/run_serially '$(abs_top_builddir)/acceptance-logs' $(LIVE_TESTS)
