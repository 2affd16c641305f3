/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Jobs outside the budgets; see outside.h. Multifactor works its sum out from
 * the association that the job points to. During its call the job points to a
 * copy with the fair-share factor of multifactor's own books, so that every
 * weight and flag, each partition and TRES is added up by multifactor itself.
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "plugins/slurm/books.h"
#include "plugins/slurm/hold_times.h"
#include "plugins/slurm/job_view.h"
#include "plugins/slurm/multifactor.h"
#include "plugins/slurm/outside.h"

static _Atomic uint32_t band_low = BUDGET_PRIORITY_LOW;
static _Atomic uint32_t band_high = BUDGET_PRIORITY_HIGH;

#define NUMBERS_KEPT 64

/* What is put aside during a call of multifactor. */
struct aside {
	slurmdb_assoc_rec_t *assoc; /* the job's own */
	slurmdb_assoc_rec_t copy;
	slurmdb_assoc_usage_t usage;
	uint32_t numbers[NUMBERS_KEPT]; /* the partitions' numbers before */
	int number_count;
};

void outside_set_band(struct budget_band band)
{
	atomic_store(&band_low, band.low);
	atomic_store(&band_high, band.high);
}

/* Into the band, without reaching the next one. */
static uint32_t into_band(uint32_t number)
{
	uint32_t low = atomic_load(&band_low), high = atomic_load(&band_high);

	return number < high - low ? low + number : high - 1;
}

static void put_association_aside(job_record_t *job, struct aside *aside)
{
	assoc_mgr_lock_t read_assoc = {.assoc = READ_LOCK};

	aside->assoc = job->assoc_ptr;
	if (job->assoc_ptr == NULL)
		return;
	assoc_mgr_lock(&read_assoc);
	aside->copy = *job->assoc_ptr;
	aside->usage = *job->assoc_ptr->usage;
	assoc_mgr_unlock(&read_assoc);
	aside->copy.usage = &aside->usage;
	aside->usage.usage_efctv = 0; /* known, so that nobody works it out */
	aside->usage.fs_factor = books_factor(aside->copy.id);
	job->assoc_ptr = &aside->copy;
}

/* Zeroes the partitions' numbers: under PriorityFlags=INCR_ONLY multifactor
 * would compare its own with ours. Without room for all it makes new ones. */
static void put_numbers_aside(job_record_t *job, struct aside *aside)
{
	uint32_t *numbers = job_numbers(job);
	int count = numbers != NULL ? job_number_count(job) : 0;

	if (numbers == NULL)
		job_numbers_drop(job);
	aside->number_count = count < NUMBERS_KEPT ? count : NUMBERS_KEPT;
	for (int i = 0; i < count; i++) {
		if (i < NUMBERS_KEPT)
			aside->numbers[i] = numbers[i];
		numbers[i] = 0;
	}
}

static bool only_increases(void)
{
	return slurm_conf.priority_flags & PRIORITY_FLAGS_INCR_ONLY;
}

static void move_numbers(job_record_t *job, const struct aside *aside)
{
	uint32_t *numbers = job_numbers(job);
	int count = numbers != NULL ? job_number_count(job) : 0;

	for (int i = 0; i < count; i++) {
		numbers[i] = into_band(numbers[i]);
		if (only_increases() && i < aside->number_count && aside->numbers[i] > numbers[i])
			numbers[i] = aside->numbers[i];
	}
}

/* What sprio adds up, in its order, as rounding decides the last digit. */
static double sum_of(const job_factors_t *factors)
{
	double sum = factors->priority_age + factors->priority_assoc + factors->priority_fs +
		     factors->priority_js + factors->priority_part + factors->priority_qos +
		     ((double)factors->priority_site - NICE_OFFSET) -
		     ((double)factors->nice - NICE_OFFSET);

	for (uint32_t i = 0; factors->priority_tres != NULL && i < factors->tres_cnt; i++)
		sum += factors->priority_tres[i];
	return sum;
}

/* Makes sprio's sum, of which it cuts the fraction off, the number: by a site
 * factor as far as to the band. Large sums may round up, hence the second time. */
static void show_band(job_record_t *job, uint32_t number)
{
	job_factors_t *factors = job->prio_factors;

	for (int i = 0; factors != NULL && i < 2; i++)
		factors->priority_site += number - (uint32_t)(int64_t)floor(sum_of(factors));
}

uint32_t outside_set(uint32_t last_priority, job_record_t *job)
{
	struct aside aside;
	uint32_t number, moved;

	if (job->direct_set_prio && job->priority > 0)
		return multifactor.set(last_priority, job);
	put_association_aside(job, &aside);
	put_numbers_aside(job, &aside);
	number = multifactor.set(last_priority, job);
	job->assoc_ptr = aside.assoc;
	if (number == 0)
		return 0;
	moved = into_band(number);
	move_numbers(job, &aside);
	show_band(job, moved);
	return moved;
}

bool outside_is_weighed(const job_record_t *job)
{
	return job->priority != 0 && !job->direct_set_prio && !IS_JOB_POWER_UP_NODE(job) &&
	       job->details != NULL &&
	       (IS_JOB_PENDING(job) ||
		(slurm_conf.priority_flags & PRIORITY_FLAGS_CALCULATE_RUNNING));
}

void outside_tick(job_record_t *job, time_t start)
{
	time_t update = last_job_update;
	uint32_t before = job->priority, number;
	struct aside aside;

	if (!outside_is_weighed(job))
		return;
	put_association_aside(job, &aside);
	put_numbers_aside(job, &aside);
	job->priority = 1; /* so that multifactor sets it, whatever it is */
	multifactor.apply_weights(job, &start);
	number = job->priority;
	job->assoc_ptr = aside.assoc;
	move_numbers(job, &aside);
	job->priority = into_band(number);
	if (only_increases() && before > job->priority)
		job->priority = before;
	show_band(job, job->priority);
	last_job_update = job->priority != before ? time(NULL) : update;
}

static int lift(void *record, void *nothing)
{
	job_record_t *job = record;
	uint32_t low = atomic_load(&band_low), *numbers = job_numbers(job);

	(void)nothing;
	if (!IS_JOB_PENDING(job) || !outside_is_weighed(job) || job->priority >= low ||
	    job_has_budget(job))
		return SLURM_SUCCESS;
	job->priority = into_band(job->priority);
	for (int i = 0; numbers != NULL && i < job_number_count(job); i++)
		if (numbers[i] < low)
			numbers[i] = into_band(numbers[i]);
	show_band(job, job->priority);
	last_job_update = time(NULL);
	return SLURM_SUCCESS;
}

void outside_lift_all(void)
{
	hold_job_lock();
	list_for_each(job_list, lift, NULL);
	release_job_lock(HOLDER_THREAD);
}
