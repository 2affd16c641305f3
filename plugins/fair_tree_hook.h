/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What multifactor's ticks call instead of its own fair tree; see
 * fair_tree_hook.c. A library of its own (libslurm_budget_hook.so), because the
 * plugins themselves are loaded with symbols that nobody else sees.
 */
#ifndef SLURM_BUDGET_PLUGINS_FAIR_TREE_HOOK_H
#define SLURM_BUDGET_PLUGINS_FAIR_TREE_HOOK_H

#include <time.h>

struct xlist;

/* jobs: slurmctld's job list. start: the instant up to which multifactor charges. */
typedef void (*budget_fair_tree_fn)(struct xlist *jobs, time_t start);

/* NULL takes the callback away. */
void budget_fair_tree_hook_set(budget_fair_tree_fn function);

#endif
