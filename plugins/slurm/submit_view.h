/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The engine's view of a job that is submitted, or as it would be after an
 * update. Callers hold slurmctld's job, node and part locks (read, or for an update
 * write on jobs) and none of the associations'; a view is its caller's. Any thread.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_SUBMIT_VIEW_H
#define SLURM_BUDGET_PLUGINS_SLURM_SUBMIT_VIEW_H

#include "plugins/engine.h"
#include "plugins/slurm/compat.h"

struct submit_view {
	struct budget_submission submission;
	char *partitions; /* what the submission's texts point at */
	char *qos;
};

/* min_runtime: as written, NULL: not stated; has to outlive the view. */
void submit_view_of_job(const job_desc_msg_t *desc, uint32_t uid, const char *min_runtime,
			struct submit_view *view);

/* The record with the changes of desc (NULL: none but the minimum). false, and no view, if
 * desc names an account, partition or QOS that is not there: Slurm refuses it. */
bool submit_view_of_update(const job_desc_msg_t *desc, const job_record_t *job, uint32_t uid,
			   const char *min_runtime, struct submit_view *view);

/* Does an update change what a contract depends on? */
bool submit_view_concerns(const job_desc_msg_t *desc);

/* May jobs of this association use the QOS? */
bool assoc_may_use_qos(uint32_t assoc_id, const char *qos);

void submit_view_free(struct submit_view *view);

#endif
