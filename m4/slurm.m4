# SPDX-License-Identifier: GPL-2.0-or-later
# Where are Slurm's source and headers, are they those of the installed Slurm,
# and where do its plugins belong? The source must be configured, not built:
# the plugins need config.h, slurm/slurm_version.h and the headers of src/.
# Sets SLURM_SOURCE, SLURM_CPPFLAGS, SLURM_PLUGINDIR and SLURM_VERSION.

# BUDGET_SLURM_FIND: the part that needs no compiler.
AC_DEFUN([BUDGET_SLURM_FIND], [
AC_ARG_WITH([slurm-source],
  [AS_HELP_STRING([--with-slurm-source=DIR],
    [the configured source tree of the installed Slurm (its build folder, if it was configured outside the source)])],
  [], [with_slurm_source=])
AC_ARG_WITH([slurm-plugindir],
  [AS_HELP_STRING([--with-slurm-plugindir=DIR],
    [where Slurm looks for plugins (found through the installed Slurm)])],
  [], [with_slurm_plugindir=])
budget_path=$PATH$PATH_SEPARATOR/usr/sbin$PATH_SEPARATOR/usr/local/sbin$PATH_SEPARATOR/usr/bin
AC_PATH_PROG([SLURMCTLD], [slurmctld], [], [$budget_path])
AC_PATH_PROG([SINFO], [sinfo], [], [$budget_path])
_BUDGET_SLURM_VERSION
_BUDGET_SLURM_SOURCE
_BUDGET_SLURM_PLUGINDIR
])

# _BUDGET_SLURM_VERSION: the installed Slurm's version.
AC_DEFUN([_BUDGET_SLURM_VERSION], [
AC_MSG_CHECKING([for the version of the installed Slurm])
SLURM_VERSION=
for budget_tool in "$SLURMCTLD" "$SINFO"; do
  test -n "$budget_tool" && test -z "$SLURM_VERSION" || continue
  SLURM_VERSION=`"$budget_tool" -V 2>/dev/null | sed -n '1s/.* //p'`
done
if test -z "$SLURM_VERSION" && test -r /usr/include/slurm/slurm_version.h; then
  budget_number=`sed -n 's/^#define SLURM_VERSION_NUMBER //p' /usr/include/slurm/slurm_version.h`
  SLURM_VERSION=`printf '%d.%02d.%d' $((budget_number >> 16)) $((budget_number >> 8 & 255)) $((budget_number & 255))`
fi
AC_MSG_RESULT([${SLURM_VERSION:-not found}])
if test -z "$SLURM_VERSION" && test "$with_slurm_source" != no; then
  BUDGET_MISSING([an installed Slurm; Debian: apt-get install slurmctld slurm-client])
fi
AC_SUBST([SLURM_VERSION])
])

# _BUDGET_SLURM_SOURCE: the tree, whether it is configured, and its version.
AC_DEFUN([_BUDGET_SLURM_SOURCE], [
SLURM_SOURCE=
SLURM_CPPFLAGS=
budget_slurm_summary="none: the plugins are not built"
AC_MSG_CHECKING([for Slurm's configured source])
case $with_slurm_source in
no)
  AC_MSG_RESULT([not wanted])
  ;;
''|yes)
  AC_MSG_RESULT([not given])
  BUDGET_MISSING([Slurm's source: give --with-slurm-source=DIR; Debian: apt-get source slurm-wlm, then run ./configure in it])
  ;;
*)
  budget_dir=`cd "$with_slurm_source" 2>/dev/null && pwd`
  AC_MSG_RESULT([${budget_dir:-no such folder: $with_slurm_source}])
  if test -z "$budget_dir"; then
    BUDGET_MISSING([Slurm's source: there is no folder $with_slurm_source])
  elif test ! -f "$budget_dir/config.h" || test ! -f "$budget_dir/slurm/slurm_version.h"; then
    BUDGET_MISSING([Slurm's source in $budget_dir is not configured: run ./configure there (make is not needed)])
  else
    _BUDGET_SLURM_COMPARE
  fi
  ;;
esac
AC_SUBST([SLURM_SOURCE])
AC_SUBST([SLURM_CPPFLAGS])
AM_CONDITIONAL([SLURM], [test -n "$SLURM_CPPFLAGS"])
])

# _BUDGET_SLURM_COMPARE: a near miss loads and then crashes, so the version
# must be the same to the last digit, and the debugging calls must exist on
# both sides or on neither.
AC_DEFUN([_BUDGET_SLURM_COMPARE], [
budget_top=`sed -n 's/^abs_top_srcdir = //p' "$budget_dir/Makefile" 2>/dev/null`
budget_top=`cd "${budget_top:-$budget_dir}" 2>/dev/null && pwd`
test -f "$budget_top/META" || budget_top=$budget_dir
AC_MSG_CHECKING([for the version of Slurm's source])
budget_meta=`sed -n 's/^ *Version:@<:@@<:@:space:@:>@@:>@*//p' "$budget_top/META" 2>/dev/null`
budget_configured=`sed -n 's/^#define SLURM_VERSION_STRING "\(.*\)"/\1/p' "$budget_dir/config.h"`
AC_MSG_RESULT([${budget_meta:-no META file}])
budget_agree=yes
if test -z "$budget_meta"; then
  BUDGET_MISSING([$budget_top has no META file: is it Slurm's source?])
  budget_agree=no
elif test "$budget_configured" != "$budget_meta" && test "${budget_configured%%-*}" != "$budget_meta"; then
  BUDGET_MISSING([Slurm's source in $budget_top is $budget_meta but was configured as $budget_configured: run ./configure there again])
  budget_agree=no
elif test -n "$SLURM_VERSION" && test "$budget_configured" != "$SLURM_VERSION"; then
  BUDGET_MISSING([Slurm's source is $budget_configured, the installed Slurm is $SLURM_VERSION: give the source of $SLURM_VERSION, or upgrade Slurm to $budget_configured])
  budget_agree=no
fi
if test $budget_agree = yes; then
  budget_asserts=yes
  grep '^#define NDEBUG 1' "$budget_dir/config.h" >/dev/null && budget_asserts=no
  budget_locks=$budget_asserts
  if test -n "$SLURMCTLD"; then
    budget_locks=no
    grep verify_lock "$SLURMCTLD" >/dev/null 2>&1 && budget_locks=yes
  fi
  if test $budget_asserts != $budget_locks; then
    BUDGET_MISSING([Slurm's source has developer=$budget_asserts, $SLURMCTLD has developer=$budget_locks: configure the source with --enable-developer or without it, as the installed Slurm was])
    budget_agree=no
  fi
fi
if test $budget_agree = yes; then
  SLURM_SOURCE=$budget_dir
  SLURM_CPPFLAGS="-isystem $budget_dir"
  test "$budget_top" = "$budget_dir" || SLURM_CPPFLAGS="$SLURM_CPPFLAGS -isystem $budget_top"
  budget_slurm_summary="$budget_configured, $budget_dir"
fi
])

# _BUDGET_SLURM_PLUGINDIR: given, or the folder of the library that the
# installed Slurm's programs share, which lies beside its plugins.
AC_DEFUN([_BUDGET_SLURM_PLUGINDIR], [
AC_MSG_CHECKING([for the folder of Slurm's plugins])
SLURM_PLUGINDIR=$with_slurm_plugindir
for budget_tool in "$SLURMCTLD" "$SINFO"; do
  test -n "$budget_tool" && test -z "$SLURM_PLUGINDIR" || continue
  budget_full=`ldd "$budget_tool" 2>/dev/null | sed -n 's/.*libslurmfull\.so => \(\/.*\) (.*/\1/p'`
  test -z "$budget_full" || SLURM_PLUGINDIR=`dirname "$budget_full"`
done
test -n "$SLURM_PLUGINDIR" || SLURM_PLUGINDIR='${libdir}/slurm'
AC_MSG_RESULT([$SLURM_PLUGINDIR])
AC_SUBST([SLURM_PLUGINDIR])
])

# BUDGET_SLURM: all of it, and whether a plugin's includes compile.
AC_DEFUN([BUDGET_SLURM], [
BUDGET_SLURM_FIND
if test -n "$SLURM_CPPFLAGS"; then
  AC_MSG_CHECKING([whether Slurm's internal headers compile])
  budget_save_CPPFLAGS=$CPPFLAGS
  CPPFLAGS="$CPPFLAGS $SLURM_CPPFLAGS"
  AC_LANG_PUSH([C])
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
    #include <slurm/slurm.h>
    #include <slurm/slurm_errno.h>
    #include "src/common/assoc_mgr.h"
    #include "src/slurmctld/locks.h"
    #include "src/slurmctld/slurmctld.h"
    const uint32_t plugin_version = SLURM_VERSION_NUMBER;
  ]], [[job_record_t *job = 0; return job != 0;]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     BUDGET_MISSING([Slurm's headers in $SLURM_SOURCE do not compile; config.log has the compiler's words])])
  AC_LANG_POP([C])
  CPPFLAGS=$budget_save_CPPFLAGS
fi
])
