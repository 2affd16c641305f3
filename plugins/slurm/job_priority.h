/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Writing the numbers of jobs that have a budget (Q6), so that the scheduler,
 * squeue and sprio see the same: priority, the entry for each partition of a
 * multi-partition job, and factors that add up to the number. Callers hold the
 * job write lock and the node and part read locks.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_JOB_PRIORITY_H
#define SLURM_BUDGET_PLUGINS_SLURM_JOB_PRIORITY_H

#include "plugins/slurm/compat.h"

/* Do factors and partition entries show job->priority? Any job lock. */
bool job_priority_is_shown(const job_record_t *job);

/* Makes them show the number; job->priority is the caller's. */
void job_priority_show(job_record_t *job, uint32_t number);

/* Sets the number and shows it. Touches last_job_update if it was another one. */
void job_priority_set(job_record_t *job, uint32_t number);

/* Splits the first `count` pending tasks off an array record and gives them the
 * numbers, the rest of the array rest_number. Returns how many could be split. */
uint32_t job_priority_split(job_record_t *job, const uint32_t *numbers, uint32_t count,
			    uint32_t rest_number);

#endif
