# SPDX-License-Identifier: GPL-2.0-or-later
# Where is zlib, whose CRC-32 closes our files? Sets ZLIB_CFLAGS and ZLIB_LIBS.

AC_DEFUN([BUDGET_ZLIB], [
AC_REQUIRE([PKG_PROG_PKG_CONFIG])
PKG_CHECK_MODULES([ZLIB], [zlib >= 1.2.9], [],
  [BUDGET_MISSING([zlib, 1.2.9 or later; Debian: apt-get install zlib1g-dev])])
])
