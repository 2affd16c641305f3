/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The engine's views of Slurm's job records that concern GPUs. A record that has
 * been requeued and is still completing gives two: its last run, ended, and
 * itself, pending. The buffers belong to our thread and are used again.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_JOB_VIEW_H
#define SLURM_BUDGET_PLUGINS_SLURM_JOB_VIEW_H

#include "plugins/engine.h"
#include "plugins/slurm/gpu_tres.h"
#include "plugins/slurm/room_view.h"

struct job_views {
	struct budget_job *jobs;
	job_record_t **records; /* of the same index; valid under the lock of the walk only */
	size_t count;
	size_t room;
	uint32_t *repairs; /* indices of pending jobs that show something else than their number */
	size_t repair_count;
	size_t repair_room;
	struct room_view rooms;
};

/* A run that has ended, as priority_p_job_end hears of it. Its rate is worked
 * out later, the engine may be busy now. */
struct ended_job {
	struct budget_job job;
	struct gpu_counts counts;
};

/* Does the job belong to the budgets? Not without GPUs, and not one of root or
 * SlurmUser (C8, Q7). Caller: any job lock, node and part read locks. */
bool job_has_budget(const job_record_t *job);

/* Is it one of the system's (C8)? */
static inline bool is_systems_user(uint32_t user_id)
{
	return user_id == 0 || user_id == slurm_conf.slurm_user_id;
}

/* In seconds, with that of its partition if it has none of its own; 0: none. */
int64_t job_view_time_limit(const job_record_t *job);

/* Walks the job list. Caller: job, node and part read locks. */
void job_views_collect(struct job_views *views, time_t now);

/* false for what is no end of a run: resizes, simulated ends, jobs outside the
 * budgets. Caller: job write lock. */
bool job_view_of_end(const job_record_t *job, struct ended_job *ended);

void job_views_free(struct job_views *views);

#endif
