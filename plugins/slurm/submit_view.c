/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Views of submissions and updates; see submit_view.h. slurmctld fills in account,
 * partition, QOS and time limit only after the plugins have been asked, so they are
 * looked up here as it will do it. Time limits in minutes, as Slurm has them.
 */
#include <pthread.h>
#include <string.h>

#include "plugins/slurm/exclusive.h"
#include "plugins/slurm/gpu_request.h"
#include "plugins/slurm/job_view.h"
#include "plugins/slurm/node_view.h"
#include "plugins/slurm/submit_view.h"

/* The list of GPU TRES is this module's own, and read again when Slurm's has grown. */
static pthread_mutex_t tres_mutex = PTHREAD_MUTEX_INITIALIZER;

static bool is_all_gpus(const part_record_t *part)
{
	bool all;

	pthread_mutex_lock(&tres_mutex);
	if (gpu_tres_is_behind())
		gpu_tres_load();
	all = part_is_all_gpus(part, NULL);
	pthread_mutex_unlock(&tres_mutex);
	return all;
}

static bool has_gpus(const uint64_t *tres)
{
	struct gpu_counts counts = {{0}};
	bool any;

	pthread_mutex_lock(&tres_mutex);
	if (gpu_tres_is_behind())
		gpu_tres_load();
	any = gpu_counts_add(&counts, tres);
	pthread_mutex_unlock(&tres_mutex);
	return any;
}

static uint32_t shorter(uint32_t a, uint32_t b)
{
	return a < b ? a : b; /* INFINITE is the largest but NO_VAL, which does not come here */
}

/* What the partitions of a list say of the job. */
struct parts {
	bool known;                /* all of them are there */
	uint32_t limit;            /* that will apply where the job states none: the shortest */
	bool whole_nodes_are_gpus; /* the job would hold GPUs by holding whole nodes */
	bool never_preempt;        /* nobody is stopped in any of them */
	char *first;               /* for xfree() */
};

static void look_at_parts(struct parts *parts, const char *names, bool exclusive)
{
	char *rest = NULL, *list = xstrdup(names);

	*parts =
	    (struct parts){.known = list != NULL, .limit = INFINITE, .never_preempt = list != NULL};
	for (char *name = list != NULL ? strtok_r(list, ",", &rest) : NULL; name != NULL;
	     name = strtok_r(NULL, ",", &rest)) {
		const part_record_t *part = find_part_record(name);

		if (part == NULL) {
			parts->known = parts->never_preempt = false;
			continue;
		}
		if (part->preempt_mode != PREEMPT_MODE_OFF)
			parts->never_preempt = false;
		if (parts->first == NULL)
			parts->first = xstrdup(name);
		parts->limit =
		    shorter(parts->limit,
			    part->default_time != NO_VAL ? part->default_time : part->max_time);
		if ((exclusive || part->max_share == 0) && is_all_gpus(part))
			parts->whole_nodes_are_gpus = true;
	}
	xfree(list);
}

/* Whose job it is, as far as associations tell. */
struct holder {
	uint32_t assoc_id; /* 0: unknown */
	uint32_t limit;    /* MaxWall of association and QOS, where limits are enforced */
	bool qos_known;
	char *qos; /* for xfree() */
};

static slurmdb_assoc_rec_t *find_assoc(uint32_t user_id, char *account, char *part)
{
	slurmdb_assoc_rec_t wanted, *found = NULL;

	memset(&wanted, 0, sizeof(wanted));
	wanted.acct = account;
	wanted.partition = part;
	wanted.uid = user_id;
	(void)assoc_mgr_fill_in_assoc(acct_db_conn, &wanted, 0, &found, true);
	if (found != NULL || account == NULL ||
	    (slurm_conf.accounting_storage_enforce & ACCOUNTING_ENFORCE_ASSOCS))
		return found;
	return find_assoc(user_id, NULL, part);
}

static slurmdb_qos_rec_t *find_qos(slurmdb_assoc_rec_t *assoc, const char *name)
{
	slurmdb_qos_rec_t wanted, *found = NULL;
	char *own = xstrdup(name);

	memset(&wanted, 0, sizeof(wanted));
	wanted.name = own;
	if (name == NULL)
		assoc_mgr_get_default_qos_info(assoc, &wanted);
	(void)assoc_mgr_fill_in_qos(acct_db_conn, &wanted, 0, &found, true);
	xfree(own);
	return found;
}

/* Slurm takes a list of QOS from 24.11 on, and each of them may be the one. name: NULL: the default
 * one. */
static void look_at_qos(struct holder *holder, slurmdb_assoc_rec_t *assoc, const char *name)
{
	bool enforced = slurm_conf.accounting_storage_enforce & ACCOUNTING_ENFORCE_LIMITS;
	char *rest = NULL, *list = xstrdup(name);
	char *one = list != NULL ? strtok_r(list, ",", &rest) : NULL;

	holder->qos_known = true;
	do {
		slurmdb_qos_rec_t *qos = find_qos(assoc, one);

		if (qos == NULL)
			holder->qos_known = false;
		else if (enforced)
			holder->limit = shorter(holder->limit, qos->max_wall_pj);
		if (qos != NULL && one == NULL)
			holder->qos = xstrdup(qos->name);
	} while (one != NULL && (one = strtok_r(NULL, ",", &rest)) != NULL);
	if (holder->qos == NULL)
		holder->qos = xstrdup(name);
	xfree(list);
}

static const assoc_mgr_lock_t read_holders = {
    .assoc = READ_LOCK, .qos = READ_LOCK, .user = READ_LOCK};

/* account and qos: as stated, NULL: the default one. */
static void look_at_holder(struct holder *holder, uint32_t user_id, const char *account, char *part,
			   const char *qos_name)
{
	assoc_mgr_lock_t locks = read_holders;
	char *own_account = xstrdup(account);
	slurmdb_assoc_rec_t *assoc;

	*holder = (struct holder){.limit = INFINITE};
	xstrtolower(own_account);
	assoc_mgr_lock(&locks);
	assoc = find_assoc(user_id, own_account, part);
	holder->assoc_id = assoc != NULL ? assoc->id : 0;
	if (assoc != NULL && (slurm_conf.accounting_storage_enforce & ACCOUNTING_ENFORCE_LIMITS))
		holder->limit = shorter(holder->limit, assoc->max_wall_pj);
	look_at_qos(holder, assoc, qos_name);
	assoc_mgr_unlock(&locks);
	xfree(own_account);
}

static bool has_text(const char *text)
{
	return text != NULL && text[0] != '\0';
}

/* A limit of 0 minutes is one, not none. */
static int64_t limit_seconds(uint32_t minutes)
{
	if (minutes == INFINITE || minutes == NO_VAL)
		return 0;
	return minutes > 0 ? (int64_t)minutes * 60 : 1;
}

static bool fields_ask_gpus(const job_desc_msg_t *desc)
{
	return tres_ask_gpus(desc->tres_per_job) || tres_ask_gpus(desc->tres_per_node) ||
	       tres_ask_gpus(desc->tres_per_socket) || tres_ask_gpus(desc->tres_per_task) ||
	       (desc->ntasks_per_tres != NO_VAL16 && desc->ntasks_per_tres != 0);
}

/* slurmctld gives jobs with a deadline and no limit a time_min of one minute. */
static uint32_t time_min_to_be(const job_desc_msg_t *desc)
{
	if (desc->time_min != NO_VAL)
		return desc->time_min;
	return desc->deadline != 0 && desc->time_limit == NO_VAL ? 1 : 0;
}

void submit_view_of_job(const job_desc_msg_t *desc, uint32_t uid, const char *min_runtime,
			struct submit_view *view)
{
	struct budget_submission *job = &view->submission;
	uint32_t user_id = names_user(desc->user_id) ? desc->user_id : uid;
	uint16_t requeue = desc->requeue != NO_VAL16 ? desc->requeue : slurm_conf.job_requeue;
	uint32_t limit = desc->time_limit;
	struct parts parts;
	struct holder holder;

	memset(view, 0, sizeof(*view));
	view->partitions = xstrdup(desc->partition != NULL    ? desc->partition
				   : default_part_loc != NULL ? default_part_loc->name
							      : NULL);
	look_at_parts(&parts, view->partitions, desc->shared == 0);
	look_at_holder(&holder, user_id, desc->account, parts.first, desc->qos);
	xfree(parts.first);
	view->qos = holder.qos;
	if (limit == NO_VAL)
		limit = shorter(parts.limit, holder.limit);
	job->gpus = fields_ask_gpus(desc) || parts.whole_nodes_are_gpus;
	job->system = is_systems_user(user_id);
	job->assoc_id = holder.assoc_id;
	job->partitions = view->partitions;
	job->qos = view->qos;
	job->never_victim = parts.never_preempt || has_text(desc->reservation);
	job->min_runtime = min_runtime;
	job->time_limit = limit_seconds(limit);
	job->time_min = (int64_t)time_min_to_be(desc) * 60;
	/* Of a heterogeneous job the first part alone has the script. */
	job->interactive = desc->script == NULL && desc->script_buf == NULL &&
			   (desc->het_job_offset == NO_VAL || desc->het_job_offset == 0);
	job->requeueable = requeue && !job->interactive;
	job->in_het_job = desc->het_job_offset != NO_VAL;
	job->pending = true;
}

static bool changes_tres(const job_desc_msg_t *desc)
{
	return desc->tres_per_job != NULL || desc->tres_per_node != NULL ||
	       desc->tres_per_socket != NULL || desc->tres_per_task != NULL;
}

/* An account or a QOS may be exempt, or have limits, where the one before has not. */
static bool changes_limit(const job_desc_msg_t *desc)
{
	return desc->time_limit != NO_VAL || desc->end_time != 0 || desc->account != NULL ||
	       desc->partition != NULL || desc->qos != NULL || desc->reservation != NULL;
}

bool submit_view_concerns(const job_desc_msg_t *desc)
{
	return changes_tres(desc) || changes_limit(desc) || desc->ntasks_per_tres != NO_VAL16 ||
	       desc->time_min != NO_VAL || desc->shared != NO_VAL16;
}

static const char *either(const char *changed, const char *present)
{
	return changed != NULL ? changed : present;
}

/* What a job has once asked for stays in its counts, whatever an update takes out of its texts. */
static bool update_asks_gpus(const job_desc_msg_t *desc, const job_record_t *job)
{
	if (!IS_JOB_PENDING(job))
		return has_gpus(job->tres_alloc_cnt);
	return has_gpus(job->tres_req_cnt) || (desc != NULL && fields_ask_gpus(desc));
}

/* Seconds; with a new minimum the shorter one of the present limit and the wanted, since the
 * update of the limit may still fail when the minimum stands. */
static int64_t update_limit(const job_desc_msg_t *desc, const job_record_t *job,
			    uint32_t without_limit, bool new_minimum)
{
	int64_t present =
	    limit_seconds(job->time_limit != NO_VAL ? job->time_limit : without_limit);
	int64_t wanted = present;

	if (desc == NULL)
		return present;
	if (desc->time_limit != NO_VAL)
		wanted = limit_seconds(desc->time_limit);
	if (desc->end_time != 0 && !IS_JOB_PENDING(job)) {
		int64_t runs = desc->end_time - job->start_time - job->tot_sus_time;

		wanted = runs > 0 ? runs : 1;
	}
	if (new_minimum && present != 0 && (wanted == 0 || wanted > present))
		return present;
	return wanted;
}

static bool asks_exclusive(const job_desc_msg_t *desc, const job_record_t *job)
{
	if (desc != NULL && desc->shared != NO_VAL16)
		return desc->shared == 0;
	return holds_whole_nodes(job);
}

/* The QOS that is wanted, NULL: that of the record; "" stands for the default one. */
static const char *wanted_qos(const job_desc_msg_t *desc)
{
	return desc != NULL ? desc->qos : NULL;
}

static char *present_qos(const job_record_t *job)
{
	assoc_mgr_lock_t read_qos = {.qos = READ_LOCK};
	char *name;

	assoc_mgr_lock(&read_qos);
	name = job->qos_ptr != NULL ? xstrdup(job->qos_ptr->name) : NULL;
	assoc_mgr_unlock(&read_qos);
	return name;
}

/* Whose job it will be; false if Slurm cannot find that either. */
static bool look_at_new_holder(struct holder *holder, const job_desc_msg_t *desc,
			       const job_record_t *job, char *part)
{
	const char *qos = wanted_qos(desc);
	bool moves = desc != NULL && (desc->account != NULL || desc->partition != NULL);
	char *present = qos == NULL ? present_qos(job) : NULL;

	look_at_holder(holder, job->user_id,
		       desc != NULL ? either(desc->account, job->account) : job->account, part,
		       qos == NULL      ? present
		       : qos[0] != '\0' ? qos
					: NULL);
	xfree(present);
	if (!moves)
		holder->assoc_id = job->assoc_id;
	return (!moves || holder->assoc_id != 0) && (qos == NULL || holder->qos_known);
}

static void fill_update(struct budget_submission *update, const job_desc_msg_t *desc,
			const job_record_t *job, uint32_t uid)
{
	uint32_t time_min =
	    desc != NULL && desc->time_min != NO_VAL ? desc->time_min : job->time_min;
	bool requeue = job->details != NULL && job->details->requeue != 0;

	if (desc != NULL && desc->requeue != NO_VAL16)
		requeue = desc->requeue != 0;
	update->system = is_systems_user(job->user_id);
	update->time_min = (int64_t)time_min * 60;
	update->interactive = !job->batch_flag;
	update->requeueable = requeue && job->batch_flag;
	update->in_het_job = job->het_job_id != 0;
	update->update = true;
	update->pending = IS_JOB_PENDING(job);
	update->by_operator = validate_operator(uid);
	update->limit_changes = desc != NULL && changes_limit(desc);
	update->tag = budget_engine_read_tag(job->admin_comment);
}

bool submit_view_of_update(const job_desc_msg_t *desc, const job_record_t *job, uint32_t uid,
			   const char *min_runtime, struct submit_view *view)
{
	struct budget_submission *update = &view->submission;
	struct parts parts;
	struct holder holder;
	bool known;

	memset(view, 0, sizeof(*view));
	view->partitions =
	    xstrdup(desc != NULL && desc->partition != NULL        ? desc->partition
		    : IS_JOB_PENDING(job) || job->part_ptr == NULL ? job->partition
								   : job->part_ptr->name);
	look_at_parts(&parts, view->partitions, asks_exclusive(desc, job));
	known = look_at_new_holder(&holder, desc, job, parts.first) &&
		(parts.known || desc == NULL || desc->partition == NULL);
	xfree(parts.first);
	view->qos = holder.qos;
	if (!known) {
		submit_view_free(view);
		return false;
	}
	fill_update(update, desc, job, uid);
	update->gpus = update_asks_gpus(desc, job) || parts.whole_nodes_are_gpus ||
		       (!update->pending && update->tag.readable);
	update->assoc_id = holder.assoc_id;
	update->partitions = view->partitions;
	update->qos = view->qos;
	update->never_victim =
	    parts.never_preempt ||
	    has_text(desc != NULL ? either(desc->reservation, job->resv_name) : job->resv_name);
	update->min_runtime = min_runtime;
	update->time_limit =
	    update_limit(desc, job, shorter(parts.limit, holder.limit), min_runtime != NULL);
	return true;
}

bool assoc_may_use_qos(uint32_t assoc_id, const char *name)
{
	assoc_mgr_lock_t locks = read_holders;
	slurmdb_assoc_rec_t wanted, *assoc = NULL;
	slurmdb_qos_rec_t *qos;
	bool may;

	memset(&wanted, 0, sizeof(wanted));
	wanted.id = assoc_id;
	assoc_mgr_lock(&locks);
	if (assoc_id != 0)
		(void)assoc_mgr_fill_in_assoc(acct_db_conn, &wanted, 0, &assoc, true);
	qos = find_qos(assoc, name);
	may = qos != NULL;
	if (may && (slurm_conf.accounting_storage_enforce & ACCOUNTING_ENFORCE_QOS))
		may = assoc != NULL && assoc->usage != NULL && assoc->usage->valid_qos != NULL &&
		      bit_test(assoc->usage->valid_qos, qos->id);
	assoc_mgr_unlock(&locks);
	return may;
}

void submit_view_free(struct submit_view *view)
{
	xfree(view->partitions);
	xfree(view->qos);
	memset(&view->submission, 0, sizeof(view->submission));
}
