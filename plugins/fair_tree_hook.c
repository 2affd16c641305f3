/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The stand-in for multifactor's fair_tree_decay(). Made visible to all before
 * priority_multifactor.so is loaded, it takes the place of the function of that
 * name there, so that each of multifactor's ticks passes through
 * priority/budget. Any thread may set the callback; without one nothing is done.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#include "plugins/fair_tree_hook.h"

static _Atomic(budget_fair_tree_fn) callback;

void budget_fair_tree_hook_set(budget_fair_tree_fn function)
{
	atomic_store(&callback, function);
}

/* Slurm's own signature; called by multifactor's thread, no locks held. */
void fair_tree_decay(struct xlist *jobs, time_t start);
void fair_tree_decay(struct xlist *jobs, time_t start)
{
	budget_fair_tree_fn function = atomic_load(&callback);

	if (function != NULL)
		function(jobs, start);
}
