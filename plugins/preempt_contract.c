/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * preempt/contract: Slurm's entry points of a preempt plugin, and no more. Who may be
 * stopped for whom was decided by the last pass of priority/budget's thread; here it is
 * looked up. Slurm holds its job write lock, but for the questions after a mode.
 */
#include <stdlib.h>

#include "plugins/engine.h"
#include "plugins/slurm/compat.h"

const char plugin_name[] = "Preemption once a contract is over";
const char plugin_type[] = "preempt/contract";
const uint32_t plugin_version = COMPILED_FOR_SLURM;

int init(void)
{
	if (!in_slurmctld())
		return SLURM_SUCCESS;
	if (xstrcmp(slurm_conf.priority_type, "priority/budget"))
		error("preempt/contract: nobody is preempted without budgets: write "
		      "PriorityType=priority/budget into slurm.conf");
	if ((slurm_conf.preempt_mode & ~PREEMPT_MODE_GANG) != PREEMPT_MODE_REQUEUE)
		error("preempt/contract: PreemptMode is not REQUEUE: write PreemptMode=REQUEUE "
		      "into slurm.conf");
	budget_engine_use_preemption();
	return SLURM_SUCCESS;
}

FINI_RESULT fini(void)
{
	return FINI_DONE;
}

/* Slurm sorts its queue by this first. The order is that of the numbers. */
bool preempt_p_job_preempt_check(job_queue_rec_t *preemptor, job_queue_rec_t *preemptee);
bool preempt_p_job_preempt_check(job_queue_rec_t *preemptor, job_queue_rec_t *preemptee)
{
	(void)preemptor;
	(void)preemptee;
	return false;
}

/* Slurm preempts a heterogeneous job if each of its parts may be. One without GPUs has no say in it:
 * it would protect the others for nothing (C7). Runs in the budgets bear a tag. */
static bool has_no_say(const job_record_t *part)
{
	return part->het_job_id != 0 && budget_engine_tag_length(part->admin_comment) == 0;
}

/* Asked about every record there is, for each job that is tested. (Slurm's headers name
 * the two the other way round.) */
bool preempt_p_preemptable(job_record_t *preemptee, job_record_t *preemptor);
bool preempt_p_preemptable(job_record_t *preemptee, job_record_t *preemptor)
{
	if (!IS_JOB_RUNNING(preemptee))
		return false;
	if (has_no_say(preemptee))
		return budget_engine_stops_parts(preemptor->job_id, preemptee->het_job_id);
	return budget_engine_preemptable(preemptor->job_id, preemptee->job_id,
					 preemptee->restart_cnt, preemptee->start_time);
}

/* How a job is stopped: as its QOS says, or its partition, or else the cluster. Suspended jobs
 * would keep their GPUs, so that is no way for contracts. */
static uint16_t mode_of(const job_record_t *job)
{
	uint16_t mode = slurm_conf.preempt_mode;

	if (job->part_ptr != NULL && job->part_ptr->preempt_mode != NO_VAL16)
		mode = job->part_ptr->preempt_mode;
	if (mode != PREEMPT_MODE_OFF && job->qos_ptr != NULL && job->qos_ptr->preempt_mode != 0)
		mode = job->qos_ptr->preempt_mode;
	mode &= (uint16_t) ~(PREEMPT_MODE_GANG | PREEMPT_MODE_WITHIN);
	return mode == PREEMPT_MODE_SUSPEND ? PREEMPT_MODE_REQUEUE : mode;
}

/* May the names of others' accounts be told? */
static bool names_are_public(void)
{
	return !(slurm_conf.private_data & (PRIVATE_DATA_JOBS | PRIVATE_DATA_ACCOUNTS |
					    PRIVATE_DATA_USERS | PRIVATE_DATA_USAGE));
}

/* Slurm asks for the grace time of a job right before it stops it, and at no other time. There is
 * none beyond KillWait; the job's owner is told why. The job has had its own signal (P7), but for one to
 * be sent at the very end and for a victim that Slurm has chosen instead of those told. */
static uint32_t stop_now(job_record_t *job)
{
	char *comment = budget_engine_preempting(job->job_id, job->restart_cnt, time(NULL),
						 names_are_public(), job->admin_comment);

	if (comment != NULL) {
		xfree(job->admin_comment);
		job->admin_comment = xstrdup(comment);
		free(comment);
		last_job_update = time(NULL);
	}
	if (job->warn_signal != 0 && !(job->warn_flags & WARN_SENT))
		send_job_warn_signal(job, true);
	return 0;
}

static uint32_t order_of(const job_record_t *job)
{
	return budget_engine_victim_order(job->job_id, job->restart_cnt);
}

/* Up to 24.11. */
#if HAVE_PREEMPT_GET_DATA
int preempt_p_get_data(job_record_t *job, slurm_preempt_data_type_t type, void *data);
int preempt_p_get_data(job_record_t *job, slurm_preempt_data_type_t type, void *data)
{
	switch (type) {
	case PREEMPT_DATA_ENABLED:
		*(bool *)data = slurm_conf.preempt_mode != PREEMPT_MODE_OFF;
		return SLURM_SUCCESS;
	case PREEMPT_DATA_MODE:
		*(uint16_t *)data = mode_of(job);
		return SLURM_SUCCESS;
	case PREEMPT_DATA_PRIO:
		*(uint32_t *)data = order_of(job);
		return SLURM_SUCCESS;
	case PREEMPT_DATA_GRACE_TIME:
		*(uint32_t *)data = stop_now(job);
		return SLURM_SUCCESS;
	default:
		return SLURM_ERROR;
	}
}
#endif

/* From 25.05 on. */
uint32_t preempt_p_get_grace_time(job_record_t *job);
uint32_t preempt_p_get_grace_time(job_record_t *job)
{
	return stop_now(job);
}

uint16_t preempt_p_get_mode(job_record_t *job);
uint16_t preempt_p_get_mode(job_record_t *job)
{
	return mode_of(job);
}

uint32_t preempt_p_get_prio(job_record_t *job);
uint32_t preempt_p_get_prio(job_record_t *job)
{
	return order_of(job);
}
