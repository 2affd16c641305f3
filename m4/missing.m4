# SPDX-License-Identifier: GPL-2.0-or-later
# What is missing? Checks note what they do not find and go on;
# BUDGET_TELL_MISSING tells everything in one message and stops.

# BUDGET_MISSING(WHAT-AND-WHAT-TO-DO): one line; call it from shell code.
AC_DEFUN([BUDGET_MISSING], [budget_missing="$budget_missing
  - $1"])

# BUDGET_TELL_MISSING: stops if anything was noted.
AC_DEFUN([BUDGET_TELL_MISSING], [
if test -n "$budget_missing"; then
  AC_MSG_ERROR([slurm-budget cannot be built here yet:$budget_missing
contrib/bootstrap (as root, on Debian) installs and prepares all of it.])
fi
])
