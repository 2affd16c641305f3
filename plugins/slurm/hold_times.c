/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The stop watch on the job write lock; see hold_times.h. Its counters are
 * changed by whoever holds that lock, and read without it: a line of the log
 * may be one hold behind.
 */
#include <inttypes.h>
#include <stdatomic.h>

#include "plugins/slurm/hold_times.h"

#define LOG_INTERVAL 60000000u

struct counter {
	_Atomic uint64_t count, total, longest;
};

static struct counter holds[HOLDER_COUNT], passes;
static uint64_t held_since; /* written by the holder of the lock */
static const slurmctld_lock_t locks = { .job = WRITE_LOCK, .node = READ_LOCK, .part = READ_LOCK };

uint64_t microseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000u + (uint64_t) now.tv_nsec / 1000u;
}

static void count(struct counter *counter, uint64_t duration)
{
	counter->count++;
	counter->total += duration;
	if (counter->longest < duration)
		counter->longest = duration;
}

void hold_job_lock(void)
{
	lock_slurmctld(locks);
	held_since = microseconds();
}

uint64_t release_job_lock(enum holder holder)
{
	uint64_t duration = microseconds() - held_since;

	count(&holds[holder], duration);
	unlock_slurmctld(locks);
	return duration;
}

void hold_times_count_pass(uint64_t duration)
{
	count(&passes, duration);
}

void hold_times_log(void)
{
	static uint64_t logged_at;
	uint64_t now = microseconds();
	const struct counter *thread = &holds[HOLDER_THREAD], *tick = &holds[HOLDER_TICK];

	if (logged_at == 0)
		logged_at = now;
	if (now - logged_at < LOG_INTERVAL)
		return;
	logged_at = now;
	log_var(slurm_conf.debug_flags & DEBUG_FLAG_PRIO ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG,
		"priority/budget: locks: thread %" PRIu64 " holds %" PRIu64 " us longest %" PRIu64
		" us; ticks %" PRIu64 " holds %" PRIu64 " us longest %" PRIu64 " us; passes %" PRIu64 " taking %" PRIu64
		" us longest %" PRIu64 " us",
		thread->count, thread->total, thread->longest, tick->count, tick->total, tick->longest, passes.count,
		passes.total, passes.longest);
}
