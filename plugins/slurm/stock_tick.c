/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Multifactor's tick, without its fair tree; see stock_tick.h.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "plugins/slurm/books.h"
#include "plugins/slurm/hold_times.h"
#include "plugins/slurm/job_view.h"
#include "plugins/slurm/multifactor.h"
#include "plugins/slurm/outside.h"
#include "plugins/slurm/stock_tick.h"
#include "plugins/slurm/tick.h"

#define SECONDS 1000000u
#define PORTION 500u

static atomic_bool came; /* has a tick come through? */
static _Atomic uint64_t started_at;

/* The jobs that want a number from multifactor's tick. Which of them are outside
 * the budgets is asked later, in portions. */
static uint32_t *ids;
static size_t id_count, id_room;

static void note(const job_record_t *job)
{
	if (id_count == id_room) {
		id_room = id_room * 2 + 1024;
		ids = realloc(ids, id_room * sizeof(*ids));
		if (ids == NULL)
			fatal("priority/budget: no memory");
	}
	ids[id_count++] = job->job_id;
}

static int charge(void *record, void *start)
{
	job_record_t *job = record;

	multifactor.apply_usage(job, start);
	if (!IS_JOB_PENDING(job))
		books_take_gain(job);
	if (outside_is_weighed(job))
		note(job);
	return SLURM_SUCCESS;
}

/* Weighs up to PORTION jobs in one hold of the lock, from the one at `from` on. */
static void weigh_portion(size_t from, time_t start)
{
	hold_job_lock();
	for (size_t i = from; i < id_count && i < from + PORTION; i++) {
		job_record_t *job = find_job_record(ids[i]);

		if (job != NULL && !job_has_budget(job))
			outside_tick(job, start);
	}
	release_job_lock(HOLDER_TICK);
}

static void on_tick(struct xlist *jobs, time_t start)
{
	atomic_store(&came, true);
	id_count = 0;
	hold_job_lock();
	books_begin_tick(start);
	list_for_each(jobs, charge, &start);
	books_end_tick();
	release_job_lock(HOLDER_TICK);
	books_rank();
	for (size_t from = 0; from < id_count; from += PORTION) {
		weigh_portion(from, start);
		pause_for_others();
	}
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
	free(ids);
	ids = NULL;
	id_count = id_room = 0;
}

bool stock_tick_works(void)
{
	static bool told;
	uint64_t due =
	    atomic_load(&started_at) + ((uint64_t)slurm_conf.priority_calc_period + 30) * SECONDS;

	if (atomic_load(&came) || microseconds() < due)
		return true;
	if (!told)
		error("priority/budget: priority_multifactor.so does not call the fair_tree_decay "
		      "of this plugin, as if it was linked with -Bsymbolic or LTO: sshare and "
		      "priorities are wrong for moments at each PriorityCalcPeriod; build Slurm "
		      "without these options");
	told = true;
	return false;
}
