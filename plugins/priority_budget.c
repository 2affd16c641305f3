/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * priority/budget: Slurm's entry points, and no more. In slurmctld it wraps
 * priority/multifactor, which goes on keeping the books of limits, QOS and
 * jobs without GPUs, and starts our threads: one orders the others, one keeps
 * state. Anywhere else (sshare) it is only loaded and does nothing.
 */
#include <math.h>
#include <stdatomic.h>

#include "plugins/engine.h"
#include "plugins/slurm/books.h"
#include "plugins/slurm/compat.h"
#include "plugins/slurm/job_priority.h"
#include "plugins/slurm/job_view.h"
#include "plugins/slurm/keeper.h"
#include "plugins/slurm/multifactor.h"
#include "plugins/slurm/outside.h"
#include "plugins/slurm/stock_tick.h"
#include "plugins/slurm/tick.h"

const char plugin_name[] = "Priority by budgets of GPU time";
const char plugin_type[] = "priority/budget";
const uint32_t plugin_version = COMPILED_FOR_SLURM;

static _Atomic uint32_t provisional_number = BUDGET_PRIORITY_LOW;

static void log_line(enum budget_log_level level, const char *line)
{
	if (level == BUDGET_LOG_ERROR)
		error("priority/budget: %s", line);
	else if (level == BUDGET_LOG_INFO)
		info("priority/budget: %s", line);
	else
		debug("priority/budget: %s", line);
}

/* Multifactor is ours to listen to only along its fair tree, and sshare works
 * shares out as multifactor is set. */
static void insist_on_fair_tree(void)
{
	if (slurm_conf.priority_flags & PRIORITY_FLAGS_FAIR_TREE)
		return;
	error("priority/budget: PriorityFlags=NO_FAIR_TREE cannot be had with budgets and is "
	      "ignored: take NO_FAIR_TREE out of PriorityFlags");
	slurm_conf.priority_flags |= PRIORITY_FLAGS_FAIR_TREE;
}

/* Shares are stored as the flags were when the associations were loaded. */
static void normalize_shares(void)
{
	assoc_mgr_lock_t write_assoc = {.assoc = WRITE_LOCK};
	list_walk_t walk;
	slurmdb_assoc_rec_t *assoc;

	assoc_mgr_lock(&write_assoc);
	if (assoc_mgr_assoc_list != NULL) {
		walk = list_iterator_create(assoc_mgr_assoc_list);
		while ((assoc = list_next(walk)) != NULL)
			assoc_mgr_normalize_assoc_shares(assoc);
		list_iterator_destroy(walk);
	}
	assoc_mgr_unlock(&write_assoc);
}

static void take_parameters(void)
{
	bool had_fair_tree = slurm_conf.priority_flags & PRIORITY_FLAGS_FAIR_TREE;

	keeper_configure();
	insist_on_fair_tree();
	if (!had_fair_tree)
		normalize_shares();
	budget_engine_configure(slurm_conf.priority_params);
	outside_set_band(budget_engine_no_gpu_band());
	atomic_store(&provisional_number, budget_engine_provisional_priority());
}

static int start_multifactor(void)
{
	if (!multifactor_open())
		return SLURM_ERROR;
	books_open();
	stock_tick_start();
	if (multifactor.init() != SLURM_SUCCESS) {
		error(
		    "priority/budget: priority/multifactor, which it is built on, does not start");
		stock_tick_stop();
		multifactor_close();
		return SLURM_ERROR;
	}
	return SLURM_SUCCESS;
}

static bool start_threads(void)
{
	if (!keeper_start())
		return false;
	if (tick_start())
		return true;
	keeper_stop();
	return false;
}

int init(void)
{
	if (!in_slurmctld())
		return SLURM_SUCCESS;
	if (slurm_conf.accounting_storage_type == NULL || !slurm_with_slurmdbd())
		error("priority/budget: there are no budgets without slurmdbd: write "
		      "AccountingStorageType=accounting_storage/slurmdbd");
	budget_engine_set_log(log_line);
	budget_engine_load(slurm_conf.state_save_location, time(NULL));
	take_parameters();
	gpu_tres_load();
	if (start_multifactor() != SLURM_SUCCESS)
		return SLURM_ERROR;
	if (!HAVE_THREAD_START && !slurmctld_is_ending() && !start_threads())
		return SLURM_ERROR;
	return SLURM_SUCCESS;
}

FINI_RESULT fini(void)
{
	if (!in_slurmctld() || multifactor.fini == NULL)
		return FINI_DONE;
	tick_stop();
	keeper_stop();
	multifactor.fini();
	stock_tick_stop();
	books_close();
	multifactor_close();
	return FINI_DONE;
}

/* From 23.11 on. */
void priority_p_thread_start(void);
void priority_p_thread_start(void)
{
	if (multifactor.thread_start != NULL)
		multifactor.thread_start();
	start_threads();
}

/* From 23.02 on: once the jobs have been recovered, with their numbers. */
uint32_t priority_p_recover(uint32_t boost);
uint32_t priority_p_recover(uint32_t boost)
{
	(void)boost;
	return SLURM_SUCCESS;
}

static uint32_t set_in_budget(job_record_t *job)
{
	struct budget_rank rank;
	uint32_t number = atomic_load(&provisional_number);

	tick_kick();
	if (job->direct_set_prio && job->priority > 0)
		return job->priority;
	if (budget_engine_rank(job->job_id, &rank))
		number = rank.priority;
	job_priority_show(job, number);
	return number;
}

uint32_t priority_p_set(uint32_t last_priority, job_record_t *job);
uint32_t priority_p_set(uint32_t last_priority, job_record_t *job)
{
	if (job_has_budget(job))
		return set_in_budget(job);
	return outside_set(last_priority, job);
}

void priority_p_reconfig(bool assoc_clear);
void priority_p_reconfig(bool assoc_clear)
{
	take_parameters();
	multifactor.reconfig(assoc_clear);
	tick_kick();
}

/* An association that no pass has seen has used nothing. */
void priority_p_set_assoc_usage(slurmdb_assoc_rec_t *assoc);
void priority_p_set_assoc_usage(slurmdb_assoc_rec_t *assoc)
{
	assoc->usage->usage_norm = 0;
	assoc->usage->usage_efctv = 0;
}

/* sshare asks for it where its slurm.conf says NO_FAIR_TREE; up to 25.05. */
double priority_p_calc_fs_factor(long double usage_efctv, long double shares_norm);
double priority_p_calc_fs_factor(long double usage_efctv, long double shares_norm)
{
	double dampening = slurm_conf.fs_dampening_factor > 0 ? slurm_conf.fs_dampening_factor : 1;

	if (shares_norm <= 0 || usage_efctv >= (long double)NO_VAL)
		return 0;
	return pow(2.0, (double)-(usage_efctv / shares_norm / dampening));
}

/* Multifactor's list adds the factors of partition and QOS (from 24.11) to each
 * entry of a job that asks for several; our numbers are the same in all. */
static void show_numbers(struct xlist *objects)
{
	const slurmctld_lock_t read_job = {.job = READ_LOCK, .node = READ_LOCK, .part = READ_LOCK};
	list_walk_t walk;
	priority_factors_object_t *object;

	if (FACTORS_LIST_LOCKS)
		lock_slurmctld(read_job);
	walk = list_iterator_create(objects);
	while ((object = list_next(walk)) != NULL) {
		job_factors_t *factors = factors_of_object(object);
		job_record_t *job;

		if (factors == NULL || (factors->priority_part == 0 && factors->priority_qos == 0))
			continue;
		job = find_job_record(object_job_id(object));
		if (job != NULL && job_has_budget(job))
			factors->priority_part = factors->priority_qos = 0;
	}
	list_iterator_destroy(walk);
	if (FACTORS_LIST_LOCKS)
		unlock_slurmctld(read_job);
}

struct xlist *priority_p_get_priority_factors_list(FACTORS_LIST_PARAMETERS);
struct xlist *priority_p_get_priority_factors_list(FACTORS_LIST_PARAMETERS)
{
	struct xlist *objects = multifactor.factors_list(FACTORS_LIST_ARGUMENTS);

	if (objects != NULL)
		show_numbers(objects);
	return objects;
}

void priority_p_job_end(job_record_t *job);
void priority_p_job_end(job_record_t *job)
{
	struct ended_job ended;

	if (job_view_of_end(job, &ended))
		tick_job_ended(&ended);
	books_end_job(job, multifactor.job_end);
	tick_kick();
}
