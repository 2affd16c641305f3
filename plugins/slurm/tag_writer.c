/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Writing tags into admin_comment; see tag_writer.h. In small portions, so that
 * the job write lock is never held long: on the day of installation every
 * running job gets one.
 */
#include <stdlib.h>

#include "plugins/slurm/hold_times.h"
#include "plugins/slurm/tag_writer.h"

/* What is written in one hold of the lock, in records. */
#define PORTION 200u

/* The record if what was viewed is still so: the run on, or the job pending. */
static job_record_t *find_viewed(const struct budget_job *view)
{
	job_record_t *job = find_job_record(view->job_id);
	bool same;

	if (job == NULL || job->restart_cnt != view->restart_count)
		return NULL;
	if (view->state == BUDGET_JOB_PENDING)
		same = IS_JOB_PENDING(job);
	else
		same = IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job);
	return same ? job : NULL;
}

/* The old text may have changed since it was viewed: it is taken from the record. */
static void write_tag(job_record_t *job, const struct budget_tag *tag)
{
	char *comment = budget_engine_put_tag(tag, job->admin_comment);

	if (comment == NULL || !xstrcmp(comment, job->admin_comment)) {
		free(comment);
		return;
	}
	xfree(job->admin_comment);
	job->admin_comment = xstrdup(comment);
	free(comment);
	last_job_update = time(NULL);
}

uint64_t tag_writer_write(const struct budget_pass *pass, const struct job_views *views)
{
	uint64_t held = 0;
	size_t at = 0;

	while (at < pass->tagging_count) {
		uint32_t left = PORTION;

		hold_job_lock();
		for (; at < pass->tagging_count && left > 0; at++, left--) {
			const struct budget_tagging *tagging = &pass->taggings[at];
			job_record_t *job = find_viewed(&views->jobs[tagging->job]);

			if (job != NULL)
				write_tag(job, &tagging->tag);
		}
		held += release_job_lock(HOLDER_THREAD);
		if (at < pass->tagging_count)
			pause_for_others();
	}
	return held;
}
