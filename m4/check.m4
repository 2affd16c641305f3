# SPDX-License-Identifier: GPL-2.0-or-later
# Where is the Check unit test library? Sets CHECK_CFLAGS and CHECK_LIBS.

AC_DEFUN([BUDGET_CHECK], [
PKG_PROG_PKG_CONFIG
if test -z "$PKG_CONFIG"; then
  BUDGET_MISSING([pkg-config; Debian: apt-get install pkg-config])
fi
PKG_CHECK_MODULES([CHECK], [check >= 0.15], [],
  [BUDGET_MISSING([the Check test library, 0.15 or later; Debian: apt-get install check])])
])
