/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Writing priority numbers into job records; see job_priority.h.
 */
#include "plugins/slurm/job_priority.h"
#include "src/common/bitstring.h"

static bool factors_show(const job_factors_t *factors, uint32_t number)
{
	return factors != NULL && factors->priority_fs == (double)number &&
	       factors->priority_age == 0 && factors->priority_js == 0 &&
	       factors->priority_part == 0 && factors->priority_qos == 0 &&
	       factors->tres_cnt == 0 && factors->priority_site == NICE_OFFSET &&
	       factors->nice == NICE_OFFSET;
}

bool job_priority_is_shown(const job_record_t *job)
{
	const uint32_t *numbers = job_numbers(job);
	int count = job_number_count(job);

	if (!factors_show(job->prio_factors, job->priority))
		return false;
	for (int i = 0; i < count; i++)
		if (numbers == NULL || numbers[i] != job->priority)
			return false;
	return true;
}

/* sprio adds the factors up; where to put the number is free. */
static void show_factors(job_record_t *job, uint32_t number)
{
	job_factors_t *factors;

	if (job->prio_factors == NULL)
		job->prio_factors = xmalloc(sizeof(*job->prio_factors));
	factors = job->prio_factors;
	xfree(factors->tres_weights);
	xfree(factors->priority_tres);
	memset(factors, 0, sizeof(*factors));
	factors->priority_fs = (double)number;
	factors->priority_site = NICE_OFFSET;
	factors->nice = NICE_OFFSET;
}

void job_priority_show(job_record_t *job, uint32_t number)
{
	int count = job_number_count(job);

	show_factors(job, number);
	if (count == 0)
		job_numbers_drop(job);
	else if (job_numbers(job) == NULL)
		job_numbers_make(job);
	for (int i = 0; i < count; i++)
		job_numbers(job)[i] = number;
}

void job_priority_set(job_record_t *job, uint32_t number)
{
	if (!job_priority_is_shown(job) || job->priority != number)
		job_priority_show(job, number);
	if (job->priority == number)
		return;
	job->priority = number;
	last_job_update = time(NULL);
}

static bool can_be_split(const job_record_t *job)
{
	return IS_JOB_PENDING(job) && job->array_recs != NULL &&
	       job->array_recs->task_id_bitmap != NULL && job->array_recs->task_cnt > 1 &&
	       job->array_task_id == NO_VAL && job->tres_req_cnt != NULL;
}

/* Splits the first task off; returns the record of the rest or NULL. The task
 * keeps the record it is in, the rest takes over the array's job id. */
static job_record_t *split_one(job_record_t *job)
{
	int64_t first = bit_ffs(job->array_recs->task_id_bitmap);
	job_record_t *rest;

	if (first < 0)
		return NULL;
	job->array_task_id = (uint32_t)first;
	rest = split_array(job);
	if (rest == NULL) {
		job->array_task_id = NO_VAL;
		return NULL;
	}
	set_pending(rest);
	rest->start_time = 0;
	if (job->burst_buffer != NULL)
		(void)bb_g_job_validate2(job, NULL);
	return rest;
}

uint32_t job_priority_split(job_record_t *job, const uint32_t *numbers, uint32_t count,
			    uint32_t rest_number)
{
	uint32_t done = 0;

	while (done < count && can_be_split(job)) {
		job_record_t *rest = split_one(job);

		if (rest == NULL)
			break;
		job_priority_set(job, numbers[done++]);
		job = rest;
	}
	job_priority_set(job, rest_number);
	last_job_update = time(NULL);
	return done;
}
