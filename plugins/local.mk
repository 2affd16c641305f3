# SPDX-License-Identifier: GPL-2.0-or-later
# What Slurm loads. The engine is one shared library, so that all plugins of a
# slurmctld see one ledger; plugins find it through their run path. A map each
# says which names leave a module and hides all others, so no visibility flag is
# needed. Symbols of slurmctld and libslurmfull are resolved when Slurm loads the
# module, functions only when they are called (-z lazy): sshare loads priority
# plugins too, without slurmctld around them.

PLUGIN_CPPFLAGS = $(AM_CPPFLAGS) $(SLURM_CPPFLAGS)
MODULE_LDFLAGS = -avoid-version -shared -Wl,-z,lazy
# The engine may also lie beside the plugin, as in a private cluster's folder.
BESIDE = -Wl,-rpath,'$$ORIGIN'

# The state file; also for tests without the engine.
noinst_LTLIBRARIES += plugins/libbudget_state.la
plugins_libbudget_state_la_SOURCES = \
	plugins/ledger_bytes.cc \
	plugins/ledger_file.cc \
	plugins/ledger_file.h
plugins_libbudget_state_la_CPPFLAGS = $(AM_CPPFLAGS) $(ZLIB_CFLAGS)
plugins_libbudget_state_la_CXXFLAGS = $(AM_CXXFLAGS) -fvisibility=hidden
plugins_libbudget_state_la_LIBADD = $(ZLIB_LIBS)

# Who may be stopped for whom; also for tests without the engine.
noinst_LTLIBRARIES += plugins/libbudget_verdicts.la
plugins_libbudget_verdicts_la_SOURCES = \
	plugins/notices.cc \
	plugins/notices.h \
	plugins/verdicts.cc \
	plugins/verdicts.h
plugins_libbudget_verdicts_la_CXXFLAGS = $(AM_CXXFLAGS) -fvisibility=hidden

pkglib_LTLIBRARIES += libslurm_budget_engine.la
libslurm_budget_engine_la_SOURCES = \
	plugins/engine.cc \
	plugins/engine.h \
	plugins/engine_core.cc \
	plugins/engine_core.h \
	plugins/picks.cc \
	plugins/picks.h \
	plugins/terms.cc \
	plugins/terms.h \
	plugins/views.h
libslurm_budget_engine_la_LIBADD = \
	plugins/libbudget_state.la \
	plugins/libbudget_verdicts.la \
	common/libbudget_policy.la
libslurm_budget_engine_la_LDFLAGS = $(MODULE_LDFLAGS) \
	-Wl,--version-script=$(top_srcdir)/plugins/engine.map
EXTRA_libslurm_budget_engine_la_DEPENDENCIES = plugins/engine.map

if SLURM
if !SANITIZERS

# Loaded by the priority plugin so that everybody sees its names (RTLD_GLOBAL).
pkglib_LTLIBRARIES += libslurm_budget_hook.la
libslurm_budget_hook_la_SOURCES = \
	plugins/fair_tree_hook.c \
	plugins/fair_tree_hook.h
libslurm_budget_hook_la_CPPFLAGS = $(PLUGIN_CPPFLAGS)
libslurm_budget_hook_la_LDFLAGS = $(MODULE_LDFLAGS) \
	-Wl,--version-script=$(top_srcdir)/plugins/fair_tree_hook.map
EXTRA_libslurm_budget_hook_la_DEPENDENCIES = plugins/fair_tree_hook.map

slurmplugin_LTLIBRARIES += priority_budget.la
priority_budget_la_SOURCES = \
	plugins/priority_budget.c \
	plugins/slurm/assoc_view.c \
	plugins/slurm/assoc_view.h \
	plugins/slurm/books.c \
	plugins/slurm/books.h \
	plugins/slurm/books_file.c \
	plugins/slurm/books_file.h \
	plugins/slurm/compat.h \
	plugins/slurm/exclusive.c \
	plugins/slurm/exclusive.h \
	plugins/slurm/gpu_tres.c \
	plugins/slurm/gpu_tres.h \
	plugins/slurm/history.c \
	plugins/slurm/history.h \
	plugins/slurm/hold_times.c \
	plugins/slurm/hold_times.h \
	plugins/slurm/job_priority.c \
	plugins/slurm/job_priority.h \
	plugins/slurm/job_view.c \
	plugins/slurm/job_view.h \
	plugins/slurm/keeper.c \
	plugins/slurm/keeper.h \
	plugins/slurm/kept.c \
	plugins/slurm/kept.h \
	plugins/slurm/multifactor.c \
	plugins/slurm/multifactor.h \
	plugins/slurm/node_view.c \
	plugins/slurm/node_view.h \
	plugins/slurm/number_writer.c \
	plugins/slurm/number_writer.h \
	plugins/slurm/outside.c \
	plugins/slurm/outside.h \
	plugins/slurm/request_view.c \
	plugins/slurm/request_view.h \
	plugins/slurm/room_view.c \
	plugins/slurm/room_view.h \
	plugins/slurm/stock_tick.c \
	plugins/slurm/stock_tick.h \
	plugins/slurm/tag_writer.c \
	plugins/slurm/tag_writer.h \
	plugins/slurm/tick.c \
	plugins/slurm/tick.h
priority_budget_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) $(ZLIB_CFLAGS)
priority_budget_la_LIBADD = libslurm_budget_engine.la $(ZLIB_LIBS) -lm
priority_budget_la_LDFLAGS = $(MODULE_LDFLAGS) $(BESIDE) -module \
	-Wl,--version-script=$(top_srcdir)/plugins/priority_budget.map
EXTRA_priority_budget_la_DEPENDENCIES = \
	libslurm_budget_engine.la \
	plugins/priority_budget.map

# Loaded by Slurm's commands and slurmstepd, on machines without the engine: it
# has the little it needs of the policy inside.
slurmplugin_LTLIBRARIES += spank_contract.la
spank_contract_la_SOURCES = \
	common/run_tag.cc \
	common/run_tag.h \
	common/time_text.cc \
	common/time_text.h \
	plugins/spank_contract.cc
spank_contract_la_CPPFLAGS = $(PLUGIN_CPPFLAGS)
spank_contract_la_LDFLAGS = $(MODULE_LDFLAGS) -module \
	-Wl,--version-script=$(top_srcdir)/plugins/spank_contract.map
EXTRA_spank_contract_la_DEPENDENCIES = plugins/spank_contract.map

# Looks at jobs, nodes and GPUs as the priority plugin does, with lists of its own.
slurmplugin_LTLIBRARIES += job_submit_contract.la
job_submit_contract_la_SOURCES = \
	plugins/job_submit_contract.c \
	plugins/slurm/compat.h \
	plugins/slurm/exclusive.c \
	plugins/slurm/exclusive.h \
	plugins/slurm/gpu_request.c \
	plugins/slurm/gpu_request.h \
	plugins/slurm/gpu_tres.c \
	plugins/slurm/gpu_tres.h \
	plugins/slurm/hold_times.c \
	plugins/slurm/hold_times.h \
	plugins/slurm/min_runtime.c \
	plugins/slurm/min_runtime.h \
	plugins/slurm/node_view.c \
	plugins/slurm/node_view.h \
	plugins/slurm/submit_view.c \
	plugins/slurm/submit_view.h
job_submit_contract_la_CPPFLAGS = $(PLUGIN_CPPFLAGS)
job_submit_contract_la_LIBADD = libslurm_budget_engine.la
job_submit_contract_la_LDFLAGS = $(MODULE_LDFLAGS) $(BESIDE) -module \
	-Wl,--version-script=$(top_srcdir)/plugins/job_submit_contract.map
EXTRA_job_submit_contract_la_DEPENDENCIES = \
	libslurm_budget_engine.la \
	plugins/job_submit_contract.map

slurmplugin_LTLIBRARIES += preempt_contract.la
preempt_contract_la_SOURCES = \
	plugins/preempt_contract.c \
	plugins/slurm/compat.h
preempt_contract_la_CPPFLAGS = $(PLUGIN_CPPFLAGS)
preempt_contract_la_LIBADD = libslurm_budget_engine.la
preempt_contract_la_LDFLAGS = $(MODULE_LDFLAGS) $(BESIDE) -module \
	-Wl,--version-script=$(top_srcdir)/plugins/preempt_contract.map
EXTRA_preempt_contract_la_DEPENDENCIES = \
	libslurm_budget_engine.la \
	plugins/preempt_contract.map

# A plugin is linked again when it is installed, against the installed engine.
# (Written as a variable, or automake takes it for a rule that replaces its own.)
INSTALL_PLUGINS = install-slurmpluginLTLIBRARIES
$(INSTALL_PLUGINS): install-pkglibLTLIBRARIES

endif
endif

# Slurm loads modules by name; libtool's notes about them are not installed.
install-data-hook:
	for note in $(pkglib_LTLIBRARIES); do rm -f "$(DESTDIR)$(pkglibdir)/$${note##*/}"; done
	for note in $(slurmplugin_LTLIBRARIES); do rm -f "$(DESTDIR)$(slurmplugindir)/$${note##*/}"; done

uninstall-local:
	for note in $(pkglib_LTLIBRARIES); do \
		name=$${note##*/}; rm -f "$(DESTDIR)$(pkglibdir)/$${name%.la}.so"; done
	for note in $(slurmplugin_LTLIBRARIES); do \
		name=$${note##*/}; rm -f "$(DESTDIR)$(slurmplugindir)/$${name%.la}.so"; done

EXTRA_DIST += \
	plugins/engine.map \
	plugins/fair_tree_hook.map \
	plugins/job_submit_contract.map \
	plugins/preempt_contract.map \
	plugins/priority_budget.map \
	plugins/spank_contract.map
