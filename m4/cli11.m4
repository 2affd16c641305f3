# SPDX-License-Identifier: GPL-2.0-or-later
# Where is CLI11, which reads the options of our commands? Headers alone; sets CLI11_CFLAGS.

AC_DEFUN([BUDGET_CLI11], [
AC_REQUIRE([PKG_PROG_PKG_CONFIG])
if test "$with_slurm_source" != no; then
  PKG_CHECK_MODULES([CLI11], [CLI11 >= 2.1], [],
    [BUDGET_MISSING([CLI11, 2.1 or later; Debian: apt-get install libcli11-dev])])
fi
])
