/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Writing the numbers of a pass; see number_writer.h.
 */
#include <stdlib.h>

#include "plugins/slurm/hold_times.h"
#include "plugins/slurm/job_priority.h"
#include "plugins/slurm/number_writer.h"

/* What is written in one hold of the lock, in records; a split costs as much as
 * SPLIT_COST records. */
#define PORTION 500u
#define SPLIT_COST 20u

/* What becomes of a record: its number, and those of the tasks split off first. */
struct edit {
	uint32_t job;    /* index of the view */
	uint32_t number; /* of the record, or of the rest of the array */
	uint32_t splits; /* tasks to split off */
	uint32_t first;  /* their numbers stand from here on */
	bool placed;     /* the engine has said something */
};

struct plan {
	struct edit *edits; /* one for each view */
	uint32_t *numbers;  /* of the tasks to split off */
};

static void *need(void *memory)
{
	if (memory == NULL)
		fatal("priority/budget: no memory");
	return memory;
}

/* The task of the rest of an array tells how many are split off before it. */
static uint32_t count_splits(struct plan *plan, const struct budget_pass *pass)
{
	uint32_t total = 0;

	for (size_t i = 0; i < pass->place_count; i++) {
		const struct budget_place *place = &pass->places[i];

		if (!place->rest)
			continue;
		plan->edits[place->job].splits = place->task;
		plan->edits[place->job].first = total;
		total += place->task;
	}
	return total;
}

static void take_place(struct plan *plan, const struct budget_place *place)
{
	struct edit *edit = &plan->edits[place->job];

	edit->placed = true;
	if (edit->splits == 0 || place->rest)
		edit->number = place->priority;
	else if (place->task < edit->splits)
		plan->numbers[edit->first + place->task] = place->priority;
}

static struct plan plan_edits(const struct budget_pass *pass, const struct job_views *views)
{
	struct plan plan = {.edits = need(calloc(views->count + 1, sizeof(*plan.edits)))};
	uint32_t splits = count_splits(&plan, pass);

	plan.numbers = need(calloc((size_t)splits + 1, sizeof(*plan.numbers)));
	for (size_t i = 0; i < views->count; i++) {
		struct edit *edit = &plan.edits[i];

		edit->job = (uint32_t)i;
		edit->number = views->jobs[i].priority;
		for (uint32_t k = 0; k < edit->splits; k++)
			plan.numbers[edit->first + k] = edit->number;
	}
	for (size_t i = 0; i < pass->place_count; i++)
		take_place(&plan, &pass->places[i]);
	return plan;
}

/* The record if it still is what was viewed, and waits with this number. One
 * set by an operator is shown, but not changed. */
static job_record_t *find_unchanged(const struct budget_job *view, const struct edit *edit)
{
	job_record_t *job = find_job_record(view->job_id);
	uint32_t number = edit->placed ? view->priority : edit->number;

	if (job == NULL || !IS_JOB_PENDING(job) || (job->direct_set_prio && edit->placed) ||
	    job->priority != number || job->restart_cnt != view->restart_count)
		return NULL;
	return job;
}

/* Writes as much of an edit as the portion allows; returns what it cost, and
 * takes what is done off the edit. */
static uint32_t write_edit(struct plan *plan, struct edit *edit, const struct budget_job *view,
			   uint32_t portion)
{
	uint32_t count = portion / SPLIT_COST, done;
	job_record_t *job = find_unchanged(view, edit);

	if (job == NULL) {
		edit->splits = 0;
		return 1;
	}
	if (edit->splits == 0) {
		job_priority_set(job, edit->number);
		return 1;
	}
	if (count > edit->splits)
		count = edit->splits;
	done = job_priority_split(job, &plan->numbers[edit->first], count, edit->number);
	edit->first += done;
	edit->splits = done == count ? edit->splits - done : 0;
	edit->placed = false; /* the record has the number of the rest by now */
	return 1 + done * SPLIT_COST;
}

/* One hold of the lock: from the edit at *at on. Returns how long it was. */
static uint64_t write_portion(struct plan *plan, const struct job_views *views,
			      const uint32_t *order, size_t count, size_t *at)
{
	uint32_t left = PORTION;

	hold_job_lock();
	while (*at < count && left >= SPLIT_COST) {
		struct edit *edit = &plan->edits[order[*at]];
		uint32_t cost = write_edit(plan, edit, &views->jobs[edit->job], left);

		left -= cost < left ? cost : left;
		if (edit->splits == 0)
			(*at)++;
	}
	return release_job_lock(HOLDER_THREAD);
}

/* The edits due, in the order of the queue, repairs last; sets *count. */
static uint32_t *order_edits(struct plan *plan, const struct budget_pass *pass,
			     const struct job_views *views, size_t *count)
{
	bool *taken = need(calloc(views->count + 1, sizeof(*taken)));
	uint32_t *order = need(calloc(views->count + 1, sizeof(*order)));

	*count = 0;
	for (size_t i = 0; i < pass->place_count; i++) {
		uint32_t job = pass->places[i].job;

		if (!taken[job])
			order[(*count)++] = job;
		taken[job] = true;
	}
	for (size_t i = 0; i < views->repair_count; i++)
		if (!taken[views->repairs[i]])
			order[(*count)++] = plan->edits[views->repairs[i]].job;
	free(taken);
	return order;
}

uint64_t number_writer_write(const struct budget_pass *pass, const struct job_views *views)
{
	struct plan plan = plan_edits(pass, views);
	uint64_t held = 0;
	size_t at = 0, count;
	uint32_t *order = order_edits(&plan, pass, views, &count);

	while (at < count) {
		held += write_portion(&plan, views, order, count, &at);
		if (at < count)
			pause_for_others();
	}
	free(order);
	free(plan.numbers);
	free(plan.edits);
	return held;
}
