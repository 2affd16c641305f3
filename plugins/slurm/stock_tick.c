/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Multifactor's tick, without its fair tree; see stock_tick.h.
 */
#include <stdatomic.h>

#include "plugins/slurm/books.h"
#include "plugins/slurm/hold_times.h"
#include "plugins/slurm/job_view.h"
#include "plugins/slurm/multifactor.h"
#include "plugins/slurm/outside.h"
#include "plugins/slurm/stock_tick.h"
#include "plugins/slurm/tick.h"

#define SECONDS 1000000u

static atomic_bool came; /* has a tick come through? */
static _Atomic uint64_t started_at;

static int charge(void *record, void *start)
{
	job_record_t *job = record;

	multifactor.apply_usage(job, start);
	if (!IS_JOB_PENDING(job))
		books_take_gain(job);
	return SLURM_SUCCESS;
}

static int weigh(void *record, void *start)
{
	job_record_t *job = record;

	if (!job_has_budget(job))
		outside_tick(job, *(time_t *) start);
	return SLURM_SUCCESS;
}

static void on_tick(struct xlist *jobs, time_t start)
{
	atomic_store(&came, true);
	hold_job_lock();
	books_begin_tick(start);
	list_for_each(jobs, charge, &start);
	books_end_tick();
	release_job_lock(HOLDER_TICK);

	books_rank();

	hold_job_lock();
	list_for_each(jobs, weigh, &start);
	release_job_lock(HOLDER_TICK);

	books_save();
	tick_kick();
}

void stock_tick_start(void)
{
	atomic_store(&came, false);
	atomic_store(&started_at, microseconds());
	multifactor.set_hook(on_tick);
}

void stock_tick_stop(void)
{
	multifactor.set_hook(NULL);
}

void stock_tick_check(void)
{
	static bool told;
	uint64_t due = atomic_load(&started_at) + ((uint64_t) slurm_conf.priority_calc_period + 30) * SECONDS;

	if (told || atomic_load(&came) || microseconds() < due)
		return;
	told = true;
	error("priority/budget: priority_multifactor.so does not call the fair_tree_decay of this plugin, as if it was linked with -Bsymbolic or LTO: sshare and priorities are wrong for moments at each PriorityCalcPeriod; build Slurm without these options");
}
