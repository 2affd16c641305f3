# SPDX-License-Identifier: GPL-2.0-or-later
# Is there a C and a C++ compiler? Asked before AC_PROG_CC, which would stop
# at the first one missing. Without compilers the questions that can still be
# answered are asked and everything is told together.

AC_DEFUN([BUDGET_COMPILERS], [
AC_CHECK_PROGS([budget_cc], [${CC:-gcc} gcc cc clang])
AC_CHECK_PROGS([budget_cxx], [${CXX:-g++} g++ c++ clang++])
if test -z "$budget_cc" || test -z "$budget_cxx"; then
  test -n "$budget_cc" || BUDGET_MISSING([a C compiler; Debian: apt-get install gcc])
  test -n "$budget_cxx" || BUDGET_MISSING([a C++ compiler; Debian: apt-get install g++])
  test -r /usr/include/check.h ||
    BUDGET_MISSING([the Check test library; Debian: apt-get install check])
  BUDGET_SLURM_FIND
  BUDGET_TELL_MISSING
fi
])
