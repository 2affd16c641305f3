# SPDX-License-Identifier: GPL-2.0-or-later
# Where is json-c, which writes what programs read? Sets JSON_C_CFLAGS and JSON_C_LIBS.

AC_DEFUN([BUDGET_JSON_C], [
AC_REQUIRE([PKG_PROG_PKG_CONFIG])
if test "$with_slurm_source" != no; then
  PKG_CHECK_MODULES([JSON_C], [json-c >= 0.15], [],
    [BUDGET_MISSING([json-c, 0.15 or later; Debian: apt-get install libjson-c-dev])])
fi
])
