/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * job_submit/contract: Slurm's entry points, and no more. What a submission or an
 * update gets is the engine's answer (C1 to C9); here it is put into the job. Any
 * thread: submissions with slurmctld's job read lock, updates with the write
 * lock, no association lock. Where the engine has no answer jobs go through as they are.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "plugins/engine.h"
#include "plugins/slurm/compat.h"
#include "plugins/slurm/min_runtime.h"
#include "plugins/slurm/submit_view.h"

const char plugin_name[] = "Contracts of minimum runtime at submission";
const char plugin_type[] = "job_submit/contract";
const uint32_t plugin_version = COMPILED_FOR_SLURM;

/* Between two error lines about an engine without answers. */
#define LOG_AGAIN 600

int init(void)
{
	budget_engine_use_contracts();
	return SLURM_SUCCESS;
}

FINI_RESULT fini(void)
{
	return FINI_DONE;
}

static void log_failure(const struct budget_terms *terms)
{
	static _Atomic int64_t logged;
	int64_t now = time(NULL), last = atomic_load(&logged);

	if ((last == 0 || now >= last + LOG_AGAIN) &&
	    atomic_compare_exchange_strong(&logged, &last, now))
		error("job_submit/contract: jobs are accepted without a contract: %s",
		      terms->message != NULL ? terms->message : "the engine has no answer");
}

/* Adds to what plugins before this one had to say. */
static void tell(char **message, const char *text)
{
	if (message == NULL || text == NULL)
		return;
	xstrfmtcat(*message, "%s%s", *message != NULL ? "\n" : "", text);
}

/* The text of others: nobody writes tags but us. */
static const char *text_behind_tags(const char *comment)
{
	size_t length;

	while (comment != NULL && (length = budget_engine_tag_length(comment)) > 0)
		comment += length;
	return comment;
}

static void put_tag(char **comment, const struct budget_tag *tag)
{
	char *tagged = budget_engine_put_tag(tag, *comment);

	if (tagged == NULL)
		return;
	xfree(*comment);
	*comment = xstrdup(tagged);
	free(tagged);
}

static void drop_tags(char **comment)
{
	const char *text = text_behind_tags(*comment);
	char *own;

	if (text == *comment)
		return;
	own = text[0] != '\0' ? xstrdup(text) : NULL;
	xfree(*comment);
	*comment = own;
}

static void set_time_min(job_desc_msg_t *desc, int64_t seconds)
{
	if (seconds > 0)
		desc->time_min = (uint32_t)((seconds + 59) / 60);
}

/* The site's QOS for unallocated jobs, if its owner may use it. Returns whether it was set. */
static bool set_qos(job_desc_msg_t *desc, const struct submit_view *view,
		    const struct budget_terms *terms, char **message)
{
	char *notice;

	if (terms->qos == NULL)
		return false;
	if (assoc_may_use_qos(view->submission.assoc_id, terms->qos)) {
		xfree(desc->qos);
		desc->qos = xstrdup(terms->qos);
		return true;
	}
	notice = xstrdup_printf(
	    "This unallocated job stays in the QOS %s: its account may not use the "
	    "QOS %s, which is this cluster's for unallocated jobs. Ask your "
	    "administrator for: sacctmgr modify account ACCOUNT set qos+=%s",
	    view->qos != NULL ? view->qos : "that it asked for", terms->qos, terms->qos);
	tell(message, notice);
	xfree(notice);
	return false;
}

static int answer_submission(job_desc_msg_t *desc, const struct submit_view *view,
			     const struct budget_terms *terms, char **message)
{
	if (terms->failed) {
		log_failure(terms);
		return SLURM_SUCCESS;
	}
	tell(message, terms->message);
	if (terms->refused)
		return ESLURM_INVALID_TIME_LIMIT;
	drop_tags(&desc->admin_comment);
	if (terms->has_tag)
		put_tag(&desc->admin_comment, &terms->tag);
	set_time_min(desc, terms->time_min);
	(void)set_qos(desc, view, terms, message);
	return SLURM_SUCCESS;
}

int job_submit(job_desc_msg_t *desc, uint32_t uid, char **err_msg);
int job_submit(job_desc_msg_t *desc, uint32_t uid, char **err_msg)
{
	char *min_runtime = min_runtime_take(desc);
	struct submit_view view;
	struct budget_terms terms;
	int answer;

	submit_view_of_job(desc, uid, min_runtime, &view);
	budget_engine_terms(&view.submission, &terms);
	answer = answer_submission(desc, &view, &terms, err_msg);
	budget_terms_free(&terms);
	submit_view_free(&view);
	xfree(min_runtime);
	return answer;
}

/* As slurmctld will decide, which asks its plugins first. */
static bool may_update(const job_desc_msg_t *desc, const job_record_t *job, uint32_t uid)
{
	if (job->user_id == uid || validate_operator(uid))
		return true;
	return is_coordinator(uid, job->account) &&
	       (desc->account == NULL || is_coordinator(uid, desc->account));
}

/* The terms become the record's. An account without a budget takes nothing of what was stated:
 * passes look at the account that the job has by then (C5), and slurmctld may still refuse the
 * update. */
static void write_terms(job_record_t *job, const struct submit_view *view,
			const struct budget_terms *terms)
{
	const struct budget_tag *old = &view->submission.tag;

	if (!terms->has_tag) {
		if (view->submission.pending)
			drop_tags(&job->admin_comment);
		return;
	}
	if (view->submission.min_runtime == NULL && old->readable && old->allocated &&
	    !terms->tag.allocated)
		return;
	if (old->readable && old->allocated == terms->tag.allocated &&
	    old->contract == terms->tag.contract && old->rate == terms->tag.rate)
		return;
	put_tag(&job->admin_comment, &terms->tag);
	/* Only then may a victim that has been picked be protected again. Whoever could void picks
	 * as often as he likes would not have to give way at all. */
	if (!view->submission.pending && terms->tag.contract > old->contract)
		budget_engine_contract_changed(job->job_id);
}

/* An operator's text goes behind the tag that the record has. */
static void keep_tag(job_desc_msg_t *desc, const job_record_t *job)
{
	size_t length = budget_engine_tag_length(job->admin_comment);
	char *tagged = NULL;

	if (desc->admin_comment == NULL)
		return;
	drop_tags(&desc->admin_comment);
	if (length == 0) {
		if (desc->admin_comment == NULL)
			desc->admin_comment = xstrdup("");
		return;
	}
	while (length > 0 && job->admin_comment[length - 1] == ' ')
		length--;
	tagged = xstrndup(job->admin_comment, length);
	if (desc->admin_comment != NULL && desc->admin_comment[0] != '\0')
		xstrfmtcat(tagged, " %s", desc->admin_comment);
	xfree(desc->admin_comment);
	desc->admin_comment = tagged;
}

static int refuse_update(const job_record_t *job, const struct submit_view *view,
			 const struct budget_terms *terms, uint32_t uid)
{
	info("job_submit/contract: update of %pJ by user %u refused: %s", job, uid,
	     terms->message != NULL ? terms->message : "no reason given");
	if (!view->submission.pending && !view->submission.by_operator)
		return ESLURM_ACCESS_DENIED;
	return ESLURM_INVALID_TIME_LIMIT;
}

/* One record. desc is NULL for the other parts of a heterogeneous job; write: not only asked. */
static int settle_update(job_desc_msg_t *desc, job_record_t *job, uint32_t uid,
			 const char *min_runtime, bool write, char **message)
{
	struct submit_view view;
	struct budget_terms terms;
	int answer = SLURM_SUCCESS;

	if (!submit_view_of_update(desc, job, uid, min_runtime, &view))
		return SLURM_SUCCESS;
	budget_engine_terms(&view.submission, &terms);
	if (terms.failed) {
		log_failure(&terms);
	} else if (terms.refused) {
		tell(message, terms.message);
		answer = refuse_update(job, &view, &terms, uid);
	} else if (write) {
		write_terms(job, &view, &terms);
		if (desc != NULL) {
			tell(message, terms.message);
			set_time_min(desc, terms.time_min);
			if (set_qos(desc, &view, &terms, message))
				own_qos_note(desc);
		}
	}
	budget_terms_free(&terms);
	submit_view_free(&view);
	return answer;
}

/* A new minimum is that of all parts of a heterogeneous job (C7). */
static int settle_other_parts(const job_record_t *job, uint32_t uid, const char *min_runtime,
			      bool write, char **message)
{
	job_record_t *leader = job->het_job_id != 0 ? find_job_record(job->het_job_id) : NULL;
	int answer = SLURM_SUCCESS;
	list_walk_t walk;
	job_record_t *part;

	if (min_runtime == NULL || leader == NULL || leader->het_job_list == NULL)
		return SLURM_SUCCESS;
	walk = list_iterator_create(leader->het_job_list);
	while (answer == SLURM_SUCCESS && (part = list_next(walk)) != NULL)
		if (part != job && !IS_JOB_FINISHED(part))
			answer = settle_update(NULL, part, uid, min_runtime, write, message);
	list_iterator_destroy(walk);
	return answer;
}

int job_modify(JOB_MODIFY_PARAMETERS);
int job_modify(JOB_MODIFY_PARAMETERS)
{
	char **message = JOB_MODIFY_MESSAGE;
	char *min_runtime;
	int answer = SLURM_SUCCESS;

	if (!may_update(desc, job, uid))
		return SLURM_SUCCESS;
	own_qos_take(desc);
	min_runtime = min_runtime_take(desc);
	if (min_runtime != NULL || submit_view_concerns(desc)) {
		answer = settle_other_parts(job, uid, min_runtime, false, message);
		if (answer == SLURM_SUCCESS)
			answer = settle_update(desc, job, uid, min_runtime, true, message);
		if (answer == SLURM_SUCCESS)
			answer = settle_other_parts(job, uid, min_runtime, true, message);
	}
	keep_tag(desc, job);
	if (min_runtime != NULL)
		min_runtime_leave(desc, min_runtime);
	xfree(min_runtime);
	return answer;
}
