# SPDX-License-Identifier: GPL-2.0-or-later
# Are the policy library and its tests built under ASan and UBSan? Slurm's
# modules never are: slurmctld could not load them. Sets SANITIZER_FLAGS.

AC_DEFUN([BUDGET_SANITIZERS], [
AC_ARG_ENABLE([sanitizers],
  [AS_HELP_STRING([--enable-sanitizers],
    [build the library and its tests under ASan and UBSan, without the plugins])],
  [], [enable_sanitizers=no])
SANITIZER_FLAGS=
budget_sanitizers=no
if test "$enable_sanitizers" != no; then
  SANITIZER_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
  budget_sanitizers="address, undefined (the plugins are not built)"
  AC_LANG_PUSH([C++])
  budget_save_CXXFLAGS=$CXXFLAGS
  CXXFLAGS="$CXXFLAGS $SANITIZER_FLAGS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [],
    [BUDGET_MISSING([the sanitizers' libraries; Debian: apt-get install libasan8 libubsan1 (they come with g++)])])
  CXXFLAGS=$budget_save_CXXFLAGS
  AC_LANG_POP([C++])
fi
AC_SUBST([SANITIZER_FLAGS])
AM_CONDITIONAL([SANITIZERS], [test "$enable_sanitizers" != no])
])
