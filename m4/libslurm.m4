# SPDX-License-Identifier: GPL-2.0-or-later
# Is Slurm's library for programs of others there? Sets LIBSLURM_LIBS.

AC_DEFUN([BUDGET_LIBSLURM], [
LIBSLURM_LIBS=
if test "$with_slurm_source" != no; then
  AC_MSG_CHECKING([for libslurm])
  budget_save_LIBS=$LIBS
  LIBS="-lslurm $LIBS"
  AC_LINK_IFELSE([AC_LANG_CALL([], [slurm_load_job])],
    [AC_MSG_RESULT([yes])
     LIBSLURM_LIBS=-lslurm],
    [AC_MSG_RESULT([no])
     BUDGET_MISSING([libslurm; Debian: apt-get install libslurm-dev])])
  LIBS=$budget_save_LIBS
fi
AC_SUBST([LIBSLURM_LIBS])
])
