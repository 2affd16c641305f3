/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What a pending job asks for; see request_view.h. Sets of nodes are shared by the jobs
 * of one partition that meet the same reservations, which are nearly all.
 */
#include <string.h>

#include "plugins/slurm/exclusive.h"
#include "plugins/slurm/gpu_tres.h"
#include "plugins/slurm/kept.h"
#include "plugins/slurm/job_view.h"
#include "plugins/slurm/node_view.h"
#include "plugins/slurm/request_view.h"
#include "src/common/bitstring.h"

#define RESERVATIONS 64u /* that one pass can tell apart; jobs that meet more are not modelled */
#define SETS 64u

/* The nodes of a partition without those of the reservations in `met`. */
struct node_set {
	const part_record_t *part;
	uint64_t met;
	uint64_t *bits;
};

static slurmctld_resv_t *reservations[RESERVATIONS];
static uint32_t reservation_count;
static bool too_many_reservations;
static struct node_set sets[SETS];
static uint32_t set_count;
static time_t pass_time;

void request_view_begin(time_t now)
{
	list_walk_t walk;
	slurmctld_resv_t *reservation;

	pass_time = now;
	set_count = reservation_count = 0;
	too_many_reservations = false;
	if (resv_list == NULL)
		return;
	walk = list_iterator_create(resv_list);
	while ((reservation = list_next(walk)) != NULL) {
		if (reservation->node_bitmap == NULL || reservation->end_time <= now)
			continue;
		if (reservation_count == RESERVATIONS)
			too_many_reservations = true;
		else
			reservations[reservation_count++] = reservation;
	}
	list_iterator_destroy(walk);
}

/* The reservations of others that a job started now would run into. */
static uint64_t reservations_met(const job_record_t *job)
{
	int64_t limit = job_view_time_limit(job);
	uint64_t met = 0;

	for (uint32_t i = 0; i < reservation_count; i++)
		if (limit == 0 || reservations[i]->start_time < pass_time + limit)
			met |= UINT64_C(1) << i;
	return met;
}

static void add_bits(uint64_t *bits, const bitstr_t *nodes, uint32_t count, bool set)
{
	for (int i = next_in_bitmap(nodes, 0); i >= 0 && (uint32_t)i < count;
	     i = next_in_bitmap(nodes, i + 1)) {
		if (set)
			bits[i / 64] |= UINT64_C(1) << (i % 64);
		else
			bits[i / 64] &= ~(UINT64_C(1) << (i % 64));
	}
}

static uint64_t *new_bits(uint32_t count)
{
	return kept_piece((count / 64 + 1) * sizeof(uint64_t));
}

static void take_out_reserved(uint64_t *bits, uint64_t met, uint32_t count)
{
	for (uint32_t i = 0; i < reservation_count; i++)
		if (met & (UINT64_C(1) << i))
			add_bits(bits, reservations[i]->node_bitmap, count, false);
}

static uint64_t *part_nodes(const part_record_t *part, uint64_t met, uint32_t count)
{
	struct node_set *set;

	for (uint32_t i = 0; i < set_count; i++)
		if (sets[i].part == part && sets[i].met == met)
			return sets[i].bits;
	set = &sets[set_count < SETS ? set_count++ : SETS - 1];
	set->part = part;
	set->met = met;
	set->bits = new_bits(count);
	add_bits(set->bits, part->node_bitmap, count, true);
	take_out_reserved(set->bits, met, count);
	return set->bits;
}

/* All nodes of the job's partitions; says whether these have the same ones. */
static uint64_t *all_parts_nodes(const job_record_t *job, uint64_t met, uint32_t count, bool *same)
{
	uint64_t *bits = new_bits(count);
	list_walk_t walk = list_iterator_create(job->part_ptr_list);
	const part_record_t *part, *first = NULL;

	while ((part = list_next(walk)) != NULL) {
		add_bits(bits, part->node_bitmap, count, true);
		if (first == NULL)
			first = part;
		else if (part->node_bitmap == NULL || first->node_bitmap == NULL ||
			 !bit_equal(part->node_bitmap, first->node_bitmap))
			*same = false;
	}
	list_iterator_destroy(walk);
	take_out_reserved(bits, met, count);
	return bits;
}

static uint64_t *copy_bits(const uint64_t *bits, uint32_t count)
{
	return memcpy(new_bits(count), bits, (count / 64 + 1) * sizeof(uint64_t));
}

/* Nodes that the job has to have are all that it may have, if it asks for no more; else
 * placement cannot tell. */
static uint64_t *required_nodes(const job_record_t *job, const uint64_t *bits, uint32_t count,
				bool *modelled)
{
	const bitstr_t *required = job->details->req_node_bitmap;
	uint64_t *only = new_bits(count);
	uint32_t wanted = 0;

	add_bits(only, required, count, true);
	for (uint32_t i = 0; i <= count / 64; i++) {
		wanted += (uint32_t)__builtin_popcountll(only[i]);
		only[i] &= bits[i];
	}
	if (job->details->max_nodes > wanted && job->details->min_nodes != wanted)
		*modelled = false;
	return only;
}

static void ask_nodes(struct budget_request *request, const job_record_t *job, uint32_t count)
{
	uint64_t met = reservations_met(job);
	uint64_t *bits;

	if (too_many_reservations)
		request->modelled = false;
	if (job->part_ptr_list != NULL && list_count(job->part_ptr_list) > 1)
		bits = all_parts_nodes(job, met, count, &request->modelled);
	else
		bits = part_nodes(job->part_ptr, met, count);
	if (job->details->exc_node_bitmap != NULL) {
		bits = copy_bits(bits, count);
		add_bits(bits, job->details->exc_node_bitmap, count, false);
	}
	if (job->details->req_node_bitmap != NULL)
		bits = required_nodes(job, bits, count, &request->modelled);
	request->allowed = bits;
}

static uint32_t held_down(uint64_t number)
{
	return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

/* One entry of the GRES asked for. Of entries for GPUs of several types placement knows
 * no sum. */
static void ask_gres(struct budget_request *request, const gres_state_t *gres,
		     const job_record_t *job)
{
	const gres_job_state_t *wanted = gres->gres_data;
	uint64_t tasks = job->details->num_tasks > 0 ? job->details->num_tasks : 1;
	uint64_t total;

	if (wanted == NULL)
		return;
	if (xstrcmp(gres->gres_name, "gpu") || wanted->gres_per_socket > 0 || request->gpus > 0 ||
	    request->gpus_per_node > 0) {
		request->modelled = false;
		return;
	}
	if (wanted->type_name != NULL) {
		request->tres = gpu_tres_find("gpu", wanted->type_name);
		if (!gpu_tres_has_type(request->tres))
			request->modelled = false;
	}
	total = wanted->gres_per_job;
	if (wanted->gres_per_task > 0) {
		if (total < wanted->gres_per_task * tasks)
			total = wanted->gres_per_task * tasks;
		request->gpu_chunk = held_down(wanted->gres_per_task);
	}
	request->gpus = held_down(total);
	request->gpus_per_node = held_down(wanted->gres_per_node);
	request->cpus_per_gpu =
	    wanted->cpus_per_gres > 0 ? wanted->cpus_per_gres : wanted->def_cpus_per_gres;
	if (slurm_conf.select_type_param & CR_MEMORY)
		request->memory_per_gpu =
		    wanted->mem_per_gres > 0 ? wanted->mem_per_gres : wanted->def_mem_per_gres;
}

static void ask_all_gres(struct budget_request *request, const job_record_t *job)
{
	list_walk_t walk;
	gres_state_t *gres;

	if (job->gres_list_req == NULL)
		return;
	walk = list_iterator_create(job->gres_list_req);
	while ((gres = list_next(walk)) != NULL)
		ask_gres(request, gres, job);
	list_iterator_destroy(walk);
}

static void ask_memory(struct budget_request *request, uint64_t memory)
{
	if (!(slurm_conf.select_type_param & CR_MEMORY) || request->memory_per_gpu > 0)
		return;
	if (memory & MEM_PER_CPU)
		request->memory_per_cpu = memory & ~MEM_PER_CPU;
	else
		request->memory_per_node = memory;
	if (memory == 0 || memory == NO_VAL64) /* all of the node's */
		request->modelled = false;
}

static void ask_cpus(struct budget_request *request, const job_record_t *job)
{
	const JOB_DETAILS *details = job->details;
	uint64_t per_node = details->pn_min_cpus != NO_VAL ? details->pn_min_cpus : 0;
	uint64_t per_task = details->cpus_per_task > 0 && details->cpus_per_task < NO_VAL16
				? details->cpus_per_task
				: 1;

	if (details->ntasks_per_node > 0 && details->ntasks_per_node < NO_VAL16 &&
	    per_node < details->ntasks_per_node * per_task)
		per_node = details->ntasks_per_node * per_task;
	request->cpus_per_node = held_down(per_node);
	if (details->min_cpus < NO_VAL && !details->overcommit)
		request->cpus = details->min_cpus;
}

/* Does it ask for what placement does not see? Licences are no matter: Slurm looks at
 * them before it looks for nodes. */
static bool is_modelled(const job_record_t *job)
{
	const JOB_DETAILS *details = job->details;

	return job->resv_name == NULL &&
	       details->contiguous == 0 && job->req_switch == 0 && details->expanding_jobid == 0 &&
	       (details->core_spec == 0 || details->core_spec == NO_VAL16) &&
	       details->pn_min_tmp_disk == 0 && job->burst_buffer == NULL && job->mcs_label == NULL;
}

/* Nodes with one of the features, for a|b and, on one node, [a|b]. Slurm itself tries the alternatives one by one, and with
 * victims before it comes to the next one. Other forms are not modelled. */
static bool ask_features(struct budget_request *request, const job_record_t *job, uint32_t count)
{
	uint64_t *any = new_bits(count), *both;
	bool simple = true;
	list_walk_t walk = list_iterator_create(job->details->feature_list);
	const job_feature_t *feature;

	while ((feature = list_next(walk)) != NULL) {
		if (feature->node_bitmap_active == NULL || feature->count > 0 ||
		    (feature->op_code != FEATURE_OP_OR && feature->op_code != FEATURE_OP_END &&
		     (feature->op_code != FEATURE_OP_XOR || request->max_nodes != 1))) {
			simple = false;
			break;
		}
		add_bits(any, feature->node_bitmap_active, count, true);
	}
	list_iterator_destroy(walk);
	if (!simple || request->allowed == NULL)
		return false;
	both = copy_bits(request->allowed, count);
	for (uint32_t i = 0; i <= count / 64; i++)
		both[i] &= any[i];
	request->allowed = both;
	return true;
}

const struct budget_request *request_view(const job_record_t *job, uint32_t node_count)
{
	struct budget_request *request = kept_piece(sizeof(*request));
	const JOB_DETAILS *details = job->details;

	request->tres = UINT32_MAX;
	request->gpu_chunk = 1;
	request->modelled = is_modelled(job);
	request->min_nodes = details->min_nodes > 0 ? details->min_nodes : 1;
	if (details->max_nodes > 0 && details->max_nodes < NO_VAL)
		request->max_nodes = details->max_nodes;
	if (job->part_ptr == NULL)
		request->modelled = false;
	else
		ask_nodes(request, job, node_count);
	if (details->feature_list != NULL && !ask_features(request, job, node_count))
		request->modelled = false;
	ask_all_gres(request, job);
	ask_cpus(request, job);
	ask_memory(request, details->pn_min_memory);
	request->whole_nodes = holds_whole_nodes(job);
	return request;
}
