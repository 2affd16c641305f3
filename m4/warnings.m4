# SPDX-License-Identifier: GPL-2.0-or-later
# Which warnings, and do they stop the build? Sets WARN_CFLAGS, WARN_CXXFLAGS.

AC_DEFUN([BUDGET_WARNINGS], [
AC_ARG_ENABLE([werror],
  [AS_HELP_STRING([--enable-werror], [let warnings stop the build (CI does)])],
  [], [enable_werror=no])
WARN_CFLAGS="-Wall -Wextra -Wshadow"
# Fields left out of a designated initialiser have their default: wanted.
WARN_CXXFLAGS="-Wall -Wextra -Wshadow -Wconversion -Wno-missing-field-initializers"
budget_werror_summary="do not stop the build"
if test "$enable_werror" != no; then
  WARN_CFLAGS="$WARN_CFLAGS -Werror"
  WARN_CXXFLAGS="$WARN_CXXFLAGS -Werror"
  budget_werror_summary="stop the build"
fi
AC_SUBST([WARN_CFLAGS])
AC_SUBST([WARN_CXXFLAGS])
])
