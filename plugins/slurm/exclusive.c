/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What exclusive jobs keep from others; see exclusive.h. The table of this walk
 * and of the one before is written under the job read lock by our thread alone
 * and read there or under the job write lock.
 */
#include <stdlib.h>
#include <string.h>

#include "plugins/slurm/exclusive.h"
#include "plugins/slurm/node_view.h"

struct rest {
	uint32_t job_id;
	struct gpu_counts counts;
};

struct table {
	struct rest *rests;
	size_t count;
	size_t room;
};

static struct table now_kept, before_kept;
static struct gpu_counts *left; /* by node, worked out in this walk when first asked for */
static size_t left_count;

bool holds_whole_nodes(const job_record_t *job)
{
	return job->details != NULL &&
	       (asks_whole_nodes(job) || (job->part_ptr != NULL && job->part_ptr->max_share == 0));
}

static bool holds_for_its_owner(const job_record_t *job)
{
	return job->details != NULL && keeps_nodes_for_owner(job);
}

void exclusive_begin(void)
{
	struct table spare = before_kept;

	before_kept = now_kept;
	now_kept = spare;
	now_kept.count = 0;
	free(left);
	left = NULL;
}

/* Takes a running job's GPUs from what its nodes have left; a job on several
 * nodes has as many on each. */
static void take_given(const job_record_t *job)
{
	struct gpu_counts has = {{0}};

	if (job->node_cnt == 0 || !gpu_counts_add(&has, job->tres_alloc_cnt))
		return;
	for (int i = next_in_bitmap(job->node_bitmap, 0); i >= 0;
	     i = next_in_bitmap(job->node_bitmap, i + 1)) {
		if ((size_t)i >= left_count)
			continue;
		for (size_t k = 0; k < gpu_tres_count(); k++) {
			uint64_t share = has.of[k] / job->node_cnt;

			left[i].of[k] -= left[i].of[k] > share ? share : left[i].of[k];
		}
	}
}

/* What each node has left beside what its running jobs have been given. */
static void work_out_left(void)
{
	list_walk_t walk;
	job_record_t *job;

	left_count = (size_t)node_record_count;
	left = calloc(left_count + 1, sizeof(*left));
	if (left == NULL)
		fatal("priority/budget: no memory");
	for (size_t i = 0; i < left_count; i++)
		node_gpus((int)i, &left[i]);
	walk = list_iterator_create(job_list);
	while ((job = list_next(walk)) != NULL)
		if (IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job))
			take_given(job);
	list_iterator_destroy(walk);
}

static void add(struct gpu_counts *counts, const struct gpu_counts *more)
{
	for (size_t i = 0; i < gpu_tres_count(); i++)
		counts->of[i] += more->of[i];
}

static void remember(uint32_t job_id, const struct gpu_counts *counts)
{
	if (now_kept.count == now_kept.room) {
		now_kept.room = now_kept.room * 2 + 16;
		now_kept.rests = realloc(now_kept.rests, now_kept.room * sizeof(*now_kept.rests));
		if (now_kept.rests == NULL)
			fatal("priority/budget: no memory");
	}
	now_kept.rests[now_kept.count].job_id = job_id;
	now_kept.rests[now_kept.count++].counts = *counts;
}

void exclusive_add_rest(const job_record_t *job, struct gpu_counts *counts)
{
	struct gpu_counts kept = {{0}};

	if (!holds_for_its_owner(job) || holds_whole_nodes(job) || job->node_bitmap == NULL)
		return;
	if (left == NULL)
		work_out_left();
	for (int i = next_in_bitmap(job->node_bitmap, 0); i >= 0;
	     i = next_in_bitmap(job->node_bitmap, i + 1)) {
		if ((size_t)i >= left_count)
			continue;
		add(&kept, &left[i]);
		memset(&left[i], 0, sizeof(left[i])); /* charged once */
	}
	add(counts, &kept);
	remember(job->job_id, &kept);
}

static const struct rest *find(const struct table *table, uint32_t job_id)
{
	for (size_t i = 0; i < table->count; i++)
		if (table->rests[i].job_id == job_id)
			return &table->rests[i];
	return NULL;
}

void exclusive_add_last_rest(const job_record_t *job, struct gpu_counts *counts)
{
	const struct rest *kept = find(&now_kept, job->job_id);

	if (!holds_for_its_owner(job))
		return;
	if (kept == NULL)
		kept = find(&before_kept, job->job_id);
	if (kept == NULL)
		return;
	add(counts, &kept->counts);
	if (find(&now_kept, job->job_id) == NULL)
		remember(job->job_id, &kept->counts);
}
