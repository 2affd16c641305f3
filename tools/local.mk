# SPDX-License-Identifier: GPL-2.0-or-later
# Commands for people. They know Slurm by its public headers and libslurm alone,
# and ask the policy, never the engine.

if SLURM
if !SANITIZERS
bin_PROGRAMS += sbudget
sbudget_SOURCES = \
	tools/contract.cc \
	tools/contract.h \
	tools/controller.cc \
	tools/controller.h \
	tools/doctor.cc \
	tools/doctor.h \
	tools/job_record.cc \
	tools/job_record.h \
	tools/plugin_file.cc \
	tools/plugin_file.h \
	tools/sbudget.cc
sbudget_CPPFLAGS = $(AM_CPPFLAGS) $(SLURM_CPPFLAGS) $(CLI11_CFLAGS) $(JSON_C_CFLAGS) -DBUDGET_VERSION='"$(VERSION)"'
sbudget_LDADD = common/libbudget_policy.la $(LIBSLURM_LIBS) $(JSON_C_LIBS)
endif
endif
