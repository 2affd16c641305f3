/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The stop watch on the job write lock; see hold_times.h. Its counters are
 * changed by whoever holds that lock, and emptied without it: a hold that ends
 * while a line is written may stand half in this line and half in the next.
 */
#include <inttypes.h>
#include <stdatomic.h>

#include "plugins/slurm/hold_times.h"

/* Microseconds between two lines. */
#define SHORT_INTERVAL 1000000u
#define LONG_INTERVAL 60000000u

struct counter {
	_Atomic uint64_t count, total, longest;
};

/* A counter's figures at one instant. */
struct figures {
	uint64_t count, total, longest;
};

static struct counter holds[HOLDER_COUNT], passes;
static uint64_t held_since; /* written by the holder of the lock */
static const slurmctld_lock_t locks = {.job = WRITE_LOCK, .node = READ_LOCK, .part = READ_LOCK};

uint64_t microseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
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

void pause_for_others(void)
{
	const struct timespec moment = {.tv_nsec = 200000};

	nanosleep(&moment, NULL);
}

void hold_times_count_pass(uint64_t duration)
{
	count(&passes, duration);
}

/* Takes the figures since the last time. */
static struct figures take(struct counter *counter)
{
	return (struct figures){
	    .count = atomic_exchange(&counter->count, 0),
	    .total = atomic_exchange(&counter->total, 0),
	    .longest = atomic_exchange(&counter->longest, 0),
	};
}

void hold_times_log(void)
{
	static uint64_t logged_at;
	bool flag = slurm_conf.debug_flags & DEBUG_FLAG_PRIO;
	uint64_t now = microseconds();
	struct figures thread, tick, pass;

	if (logged_at == 0)
		logged_at = now;
	if (now - logged_at < SHORT_INTERVAL)
		return;
	if (!flag && holds[HOLDER_TICK].count == 0 && now - logged_at < LONG_INTERVAL)
		return;
	thread = take(&holds[HOLDER_THREAD]);
	tick = take(&holds[HOLDER_TICK]);
	pass = take(&passes);
	log_var(flag ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG,
		"priority/budget: locks: in %" PRIu64 " us: thread %" PRIu64 " holds %" PRIu64
		" us longest %" PRIu64 " us; ticks %" PRIu64 " holds %" PRIu64
		" us longest %" PRIu64 " us; passes %" PRIu64 " taking %" PRIu64
		" us longest %" PRIu64 " us",
		now - logged_at, thread.count, thread.total, thread.longest, tick.count, tick.total,
		tick.longest, pass.count, pass.total, pass.longest);
	logged_at = now;
}
