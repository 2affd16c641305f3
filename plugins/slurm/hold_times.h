/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * slurmctld's job write lock, taken with a stop watch: how often, how long and
 * for how long at the most our thread and multifactor's ticks hold it. Figures
 * since the last line of the log; any thread.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_HOLD_TIMES_H
#define SLURM_BUDGET_PLUGINS_SLURM_HOLD_TIMES_H

#include "plugins/slurm/compat.h"

enum holder { HOLDER_THREAD, HOLDER_TICK, HOLDER_COUNT };

/* Microseconds of a clock that is never set. */
uint64_t microseconds(void);

/* Takes the job write lock with the node and part read locks. */
void hold_job_lock(void);

/* Releases it; returns for how many microseconds it was held. */
uint64_t release_job_lock(enum holder holder);

/* Between two holds, so that whoever waits gets the lock. */
void pause_for_others(void);

/* One pass of our thread that took so long. */
void hold_times_count_pass(uint64_t duration);

/* Writes one line with the figures since the last one to the log: each second
 * with DebugFlags=Priority, under which multifactor's ticks take longer as they
 * write to the log as well; else at the level debug each minute and after
 * ticks, a second apart at least. Called by our thread after each pass. */
void hold_times_log(void);

#endif
