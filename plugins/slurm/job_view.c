/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Reading job records; see job_view.h. What Slurm does with them that matters
 * here: a requeue counts restart_cnt up before (by request) or after (failed
 * node) the end of the job is told, and leaves start, end and allocated TRES of
 * the run in place until all nodes have completed; suspend_time is that of the
 * last suspend or resume; a run that ends while suspended ends at suspend_time, and
 * its tot_sus_time goes beyond that.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "plugins/slurm/exclusive.h"
#include "plugins/slurm/job_priority.h"
#include "plugins/slurm/job_view.h"
#include "plugins/slurm/kept.h"
#include "plugins/slurm/node_view.h"

/* What a pending job asks for. With --exclusive that is all GPUs of the nodes:
 * of the largest ones of its partition, which a job without a GPU request gets
 * for certain only where all nodes have GPUs. */
static bool counts_wanted(const job_record_t *job, struct gpu_counts *counts)
{
	struct gpu_counts node;
	bool any = gpu_counts_add(counts, job->tres_req_cnt);

	if (!holds_whole_nodes(job) || (!part_is_all_gpus(job->part_ptr, &node) && !any))
		return any;
	for (size_t i = 0; i < gpu_tres_count(); i++)
		node.of[i] *= job->details->min_nodes > 0 ? job->details->min_nodes : 1;
	gpu_counts_max(counts, &node);
	return true;
}

/* What a run has been given, as the accounting database is told of it. */
static bool counts_given(const job_record_t *job, struct gpu_counts *counts)
{
	return gpu_counts_add(counts, job->tres_alloc_cnt);
}

/* What a run holds, or has held. */
static bool counts_held(const job_record_t *job, struct gpu_counts *counts)
{
	struct gpu_counts nodes = {{0}};

	counts_given(job, counts);
	if (holds_whole_nodes(job) && job->node_bitmap != NULL) {
		nodes_gpus(job->node_bitmap, &nodes);
		gpu_counts_max(counts, &nodes);
	}
	if (IS_JOB_PENDING(job) || IS_JOB_FINISHED(job))
		exclusive_add_last_rest(job, counts);
	return gpu_counts_any(counts);
}

bool job_has_budget(const job_record_t *job)
{
	struct gpu_counts counts = {{0}};

	if (is_systems_user(job->user_id))
		return false;
	if (!IS_JOB_PENDING(job))
		return counts_held(job, &counts);
	return gpu_counts_add(&counts, job->tres_req_cnt) ||
	       (holds_whole_nodes(job) && part_is_all_gpus(job->part_ptr, NULL));
}

/* Has slurmctld found a limit in the way, or something else that is up to the
 * job, its owner or an administrator? Waiting for nodes, licences or burst
 * buffers is not. */
static bool is_blocked(uint32_t reason)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
	    {WAIT_DEPENDENCY, WAIT_DEPENDENCY},
	    {WAIT_PART_NODE_LIMIT, WAIT_TIME},
	    {WAIT_ASSOC_JOB_LIMIT, WAIT_NODE_NOT_AVAIL},
	    {WAIT_HELD_USER, WAIT_HELD_USER},
	    {FAIL_BAD_CONSTRAINTS, FAIL_BAD_CONSTRAINTS},
	    {FAIL_ACCOUNT, WAIT_QOS_TIME_LIMIT},
	    {WAIT_CLEANING, WAIT_CLEANING},
	    {WAIT_QOS, WAIT_MAX_REQUEUE},
	    {WAIT_ASSOC_GRP_UNK, WAIT_ACCOUNT_POLICY},
	    {WAIT_PN_MEM_LIMIT, LAST_BLOCKING_REASON},
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (reason >= ranges[i].first && reason <= ranges[i].last)
			return true;
	return false;
}

/* How many more tasks the array's own limit lets start (--array=...%N). */
static uint32_t task_room(const job_record_t *job)
{
	const job_record_t *array = job;

	if (job->array_recs == NULL && job->array_job_id != 0)
		array = find_job_record(job->array_job_id);
	if (array == NULL || array->array_recs == NULL || array->array_recs->max_run_tasks == 0)
		return UINT32_MAX;
	if (array->array_recs->tot_run_tasks >= array->array_recs->max_run_tasks)
		return 0;
	return array->array_recs->max_run_tasks - array->array_recs->tot_run_tasks;
}

/* begin_time is 0 until slurmctld has looked at the job's dependencies. */
static bool is_delayed(const job_record_t *job, time_t now)
{
	if (job->details->begin_time == 0)
		return job->details->dependency != NULL;
	return job->details->begin_time > now || (job->bit_flags & JOB_DEPENDENT);
}

static bool is_eligible(const job_record_t *job, time_t now)
{
	return !is_delayed(job, now) && !IS_JOB_COMPLETING(job) && !is_blocked(job->state_reason);
}

static uint32_t pending_tasks(const job_record_t *job)
{
	if (job->array_recs == NULL || job->array_task_id != NO_VAL ||
	    job->array_recs->task_cnt < 1)
		return 1;
	return job->array_recs->task_cnt;
}

/* Of the rest of an array the first task that waits. */
static uint32_t first_task(const job_record_t *job)
{
	int64_t first;

	if (job->array_task_id != NO_VAL)
		return job->array_task_id;
	if (job->array_recs == NULL || job->array_recs->task_id_bitmap == NULL)
		return 0;
	first = bit_ffs(job->array_recs->task_id_bitmap);
	return first > 0 ? (uint32_t)first : 0;
}

int64_t job_view_time_limit(const job_record_t *job)
{
	uint32_t minutes = job->time_limit;

	if (minutes == NO_VAL && job->part_ptr != NULL)
		minutes = job->part_ptr->default_time != NO_VAL ? job->part_ptr->default_time
								: job->part_ptr->max_time;
	return minutes == NO_VAL || minutes == INFINITE ? 0 : (int64_t)minutes * 60;
}

/* A new view with what is common to all. */
static struct budget_job *add_view(struct job_views *views, job_record_t *job)
{
	size_t room = views->room;
	struct budget_job *view;

	views->records =
	    kept_grown(views->records, &room, views->count + 1, sizeof(*views->records));
	views->jobs = kept_grown(views->jobs, &views->room, views->count + 1, sizeof(*views->jobs));
	views->records[views->count] = job;
	view = &views->jobs[views->count++];
	memset(view, 0, sizeof(*view));
	view->job_id = job->job_id;
	view->restart_count = job->restart_cnt;
	view->assoc_id = job->assoc_id;
	view->tasks = 1;
	view->task_room = UINT32_MAX;
	view->eligible_time = job->details != NULL ? job->details->begin_time : 0;
	view->het_job_id = job->het_job_id;
	view->time_limit = job_view_time_limit(job);
	view->qos_priority = job_qos_priority(job);
	if (job->details != NULL)
		view->nice = (int64_t)job->details->nice - NICE_OFFSET;
	if (views->rooms.node_count > 0) {
		view->partitions = kept_name(job->partition);
		view->qos = kept_name(job->qos_ptr != NULL ? job->qos_ptr->name : NULL);
	}
	return view;
}

static void note_repair(struct job_views *views)
{
	views->repairs = kept_grown(views->repairs, &views->repair_room, views->repair_count + 1,
				    sizeof(*views->repairs));
	views->repairs[views->repair_count++] = (uint32_t)(views->count - 1);
}

/* Does Slurm wait for others to end that it has stopped for this one? Not if that was
 * for an earlier run: a requeue is a new submission. */
static bool is_being_placed(const job_record_t *job, time_t now)
{
	time_t since = job->details->preempt_start_time;

	return since + slurm_conf.kill_wait + slurm_conf.msg_timeout > now &&
	       since >= job->details->submit_time;
}

/* C8: a partition says so, or it runs in a reservation. (A QOS with PreemptMode=OFF cannot
 * be told from one that leaves it to the cluster.) */
static bool is_never_victim(const job_record_t *job)
{
	return job->resv_name != NULL ||
	       (job->part_ptr != NULL && job->part_ptr->preempt_mode == PREEMPT_MODE_OFF);
}

/* The same of one that waits, which may come into any of its partitions. */
static bool will_be_no_victim(const job_record_t *job)
{
	list_walk_t walk;
	bool all = true;
	const part_record_t *part;

	if (job->resv_name != NULL || job->part_ptr_list == NULL)
		return is_never_victim(job);
	walk = list_iterator_create(job->part_ptr_list);
	while (all && (part = list_next(walk)) != NULL)
		all = part->preempt_mode == PREEMPT_MODE_OFF;
	list_iterator_destroy(walk);
	return all;
}

static void add_pending(struct job_views *views, job_record_t *job, time_t now)
{
	struct gpu_counts counts = {{0}};
	struct budget_job *view;

	if (job->details == NULL || IS_JOB_REVOKED(job) || !counts_wanted(job, &counts))
		return;
	view = add_view(views, job);
	view->state = BUDGET_JOB_PENDING;
	view->eligible = is_eligible(job, now);
	view->held = job->priority == 0 || job->direct_set_prio != 0;
	view->array_job_id = job->array_job_id;
	view->array_task = first_task(job);
	view->tasks = pending_tasks(job);
	view->task_room = task_room(job);
	view->priority = job->priority;
	view->rate = gpu_counts_rate(&counts);
	view->tag = budget_engine_read_tag(job->admin_comment);
	view->being_placed = is_being_placed(job, now);
	view->never_victim = will_be_no_victim(job);
	view->request = room_view_request(&views->rooms, job);
	if (job->priority != 0 && !job_priority_is_shown(job))
		note_repair(views);
}

static int64_t later(time_t a, time_t b)
{
	return a > b ? a : b;
}

/* Has the cluster ended this run (U7)? A batch script that dies of a signal leaves
 * FAIL_LAUNCH too. Of a requeued run little is left: only its end tells of a
 * failed node, and later only this text of a failed prolog or launch. */
static bool is_broken(const job_record_t *job)
{
	uint32_t base = job->job_state & JOB_STATE_BASE;

	if (base == JOB_NODE_FAIL || base == JOB_BOOT_FAIL)
		return true;
	if (base == JOB_FAILED)
		return job->state_reason == FAIL_LAUNCH && !WIFSIGNALED(job->exit_code);
	return base == JOB_PENDING && IS_JOB_COMPLETING(job) &&
	       !xstrcmp(job->state_desc, "launch failed requeued held");
}

/* How long it was suspended, but for a suspension that lasts or lasted to its end.
 * pre_sus_time is how long it ran before the last one. */
static int64_t suspended_before(const job_record_t *job, int64_t end)
{
	int64_t others = end - job->start_time - job->pre_sus_time;

	if (end == 0 || end != job->suspend_time)
		return job->tot_sus_time;
	return others > 0 ? others : 0;
}

/* Who ended this run: an operator who is neither its owner nor coordinates its account (U7)?
 * (The lock for users comes after that for QOS, which is held.) */
static bool is_ended_by_operator(const job_record_t *job)
{
	uint32_t base = job->job_state & JOB_STATE_BASE;

	return base == JOB_CANCELLED && job->requid != NO_VAL && job->requid != (uint32_t)-1 &&
	       job->requid != job->user_id && !is_coordinator(job->requid, job->account);
}

/* Has it ended of itself, or by its owner's word (U11)? */
static bool is_ended_by_itself(const job_record_t *job)
{
	switch (job->job_state & JOB_STATE_BASE) {
	case JOB_COMPLETE:
	case JOB_FAILED:
	case JOB_TIMEOUT:
	case JOB_CANCELLED:
	case JOB_OOM:
	case JOB_DEADLINE:
		return true;
	default:
		return false;
	}
}

/* Fills in what is common to the views of runs. */
static void show_run(struct budget_job *view, const job_record_t *job,
		     const struct gpu_counts *counts)
{
	struct gpu_counts given = {{0}};

	counts_given(job, &given);
	view->beyond_tres = memcmp(given.of, counts->of, gpu_tres_count() * sizeof(given.of[0]));
	view->start = job->start_time;
	view->changed = later(job->resize_time, job->suspend_time);
	view->tag = budget_engine_read_tag(job->admin_comment);
	if (view->state == BUDGET_JOB_ENDED) {
		view->end = later(job->end_time, job->start_time);
		view->broken = is_broken(job);
		view->by_operator = !view->broken && is_ended_by_operator(job);
		view->by_itself = !view->broken && !view->by_operator && is_ended_by_itself(job);
	} else if (job->details != NULL) {
		view->submitted = job->details->submit_time;
	}
	view->suspended_before = suspended_before(job, view->end);
}

/* Somebody outside the budgets has it (C8). */
static void add_other(struct job_views *views, const job_record_t *job)
{
	room_view_add(&views->rooms, &views->rooms.others, job);
}

/* How long before a stop it is to get its own signal (P7): as it has asked for, KillWait at the most. */
static int64_t notice_of(const job_record_t *job)
{
	if (job->warn_signal == 0)
		return 0;
	return job->warn_time < slurm_conf.kill_wait ? job->warn_time : slurm_conf.kill_wait;
}

static void add_running(struct job_views *views, job_record_t *job)
{
	struct gpu_counts counts = {{0}};
	struct budget_job *view;

	counts_held(job, &counts);
	exclusive_add_rest(job, &counts);
	if (!gpu_counts_any(&counts)) {
		add_other(views, job);
		return;
	}
	view = add_view(views, job);
	view->state = IS_JOB_SUSPENDED(job) ? BUDGET_JOB_SUSPENDED : BUDGET_JOB_RUNNING;
	view->rate = gpu_counts_rate(&counts);
	show_run(view, job, &counts);
	view->partitions = kept_name(job->part_ptr != NULL ? job->part_ptr->name : job->partition);
	view->never_victim = is_never_victim(job);
	view->being_stopped = job->preempt_time != 0;
	view->notice = notice_of(job);
	view->signalled = (job->warn_flags & WARN_SENT) != 0;
	view->first_holding = (uint32_t)views->rooms.holdings.count;
	if (!view->being_stopped || room_is_stuck(job, views->rooms.now))
		view->holding_count =
		    (uint32_t)room_view_add(&views->rooms, &views->rooms.holdings, job);
}

/* A run that is over: of a finished job, or the last one of a requeued job. It ends
 * before its start where another controller's clock, ahead of ours, started it. */
static void add_ended(struct job_views *views, job_record_t *job, uint32_t restart_count)
{
	struct gpu_counts counts = {{0}};
	struct budget_job *view;

	if (job->start_time == 0 || job->end_time == 0 || !counts_held(job, &counts))
		return;
	view = add_view(views, job);
	view->state = BUDGET_JOB_ENDED;
	view->restart_count = restart_count;
	view->rate = gpu_counts_rate(&counts);
	show_run(view, job, &counts);
}

static void add_job(struct job_views *views, job_record_t *job, time_t now)
{
	/* The room of a job that is ending counts as free, so that whoever it is for fits into it.
	 */
	if (IS_JOB_COMPLETING(job) && room_is_stuck(job, now))
		add_other(views, job);
	if (is_systems_user(job->user_id)) {
		if (IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job))
			add_other(views, job);
		return;
	}
	if (IS_JOB_PENDING(job)) {
		if (IS_JOB_COMPLETING(job) && job->restart_cnt > 0)
			add_ended(views, job, job->restart_cnt - 1u);
		add_pending(views, job, now);
	} else if (IS_JOB_FINISHED(job)) {
		add_ended(views, job, job->restart_cnt);
	} else {
		add_running(views, job);
	}
}

void job_views_collect(struct job_views *views, time_t now)
{
	assoc_mgr_lock_t read_qos = {.qos = READ_LOCK};
	list_walk_t walk;
	job_record_t *job;

	views->count = 0;
	views->repair_count = 0;
	room_view_begin(&views->rooms, now);
	assoc_mgr_lock(&read_qos);
	exclusive_begin();
	walk = list_iterator_create(job_list);
	while ((job = list_next(walk)) != NULL)
		add_job(views, job, now);
	list_iterator_destroy(walk);
	assoc_mgr_unlock(&read_qos);
}

bool job_view_of_end(const job_record_t *job, struct ended_job *ended)
{
	memset(ended, 0, sizeof(*ended));
	if (is_systems_user(job->user_id) || IS_JOB_RESIZING(job) || job->start_time == 0 ||
	    job->end_time <= job->start_time || !counts_held(job, &ended->counts))
		return false;
	ended->job.job_id = job->job_id;
	ended->job.restart_count = job->restart_cnt;
	if (IS_JOB_PENDING(job) && job->restart_cnt > 0)
		ended->job.restart_count--;
	ended->job.assoc_id = job->assoc_id;
	ended->job.state = BUDGET_JOB_ENDED;
	ended->job.tasks = 1;
	show_run(&ended->job, job, &ended->counts);
	return true;
}

void job_views_free(struct job_views *views)
{
	free(views->jobs);
	free(views->records);
	free(views->repairs);
	room_view_free(&views->rooms);
	memset(views, 0, sizeof(*views));
}
