/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What nodes have and what jobs hold of it; see room_view.h. What jobs ask for is in
 * request_view.c.
 */
#include <stdlib.h>
#include <string.h>

#include "plugins/slurm/exclusive.h"
#include "plugins/slurm/gpu_tres.h"
#include "plugins/slurm/kept.h"
#include "plugins/slurm/node_view.h"
#include "plugins/slurm/request_view.h"
#include "plugins/slurm/room_view.h"
#include "src/common/bitstring.h"
#include "src/common/job_resources.h"

#define NO_GPUS UINT32_MAX

static struct budget_holding *add_holding(struct holding_list *list, uint32_t node)
{
	struct budget_holding *holding;

	list->at = kept_grown(list->at, &list->room, list->count + 1, sizeof(*list->at));
	holding = &list->at[list->count++];
	*holding = (struct budget_holding){.node = node, .tres = NO_GPUS};
	return holding;
}

/* Adds all GPUs of a node by kind: the typed ones, then those without a type. `first` is
 * a holding without GPUs that takes one kind. */
static void add_all_gpus(struct holding_list *list, size_t first, int node)
{
	struct gpu_counts counts;
	uint64_t typed = 0;

	if (!node_gpus(node, &counts))
		return;
	for (uint32_t i = 0; i < gpu_tres_count(); i++) {
		uint64_t gpus = counts.of[i];

		if (!gpu_tres_is_whole(i) || gpus == 0)
			continue;
		if (gpu_tres_has_type(i))
			typed += gpus;
		else
			continue;
		if (list->at[first].tres != NO_GPUS)
			first = (size_t)(add_holding(list, (uint32_t)node) - list->at);
		list->at[first].tres = i;
		list->at[first].gpus = (uint32_t)gpus;
	}
	for (uint32_t i = 0; i < gpu_tres_count(); i++) {
		if (!gpu_tres_is_whole(i) || gpu_tres_has_type(i) || counts.of[i] <= typed)
			continue;
		if (list->at[first].tres != NO_GPUS)
			first = (size_t)(add_holding(list, (uint32_t)node) - list->at);
		list->at[first].tres = i;
		list->at[first].gpus = (uint32_t)(counts.of[i] - typed);
	}
}

static void add_node(struct room_view *view, int index, const node_record_t *node)
{
	struct budget_holding *total = add_holding(&view->totals, (uint32_t)index);

	total->cpus = node->cpus_efctv;
	if (slurm_conf.select_type_param & CR_MEMORY)
		total->memory = node->real_memory > node->mem_spec_limit
				    ? node->real_memory - node->mem_spec_limit
				    : 0;
	add_all_gpus(&view->totals, view->totals.count - 1, index);
	view->open[index] = avail_node_bitmap != NULL && bit_test(avail_node_bitmap, index);
}

void room_view_begin(struct room_view *view, time_t now)
{
	node_record_t *node;

	kept_begin();
	view->now = now;
	view->totals.count = view->holdings.count = view->others.count = 0;
	view->node_count = 0;
	if (!budget_engine_preempts() || node_record_count <= 0)
		return;
	view->node_count = (uint32_t)node_record_count;
	view->open = kept_grown(view->open, &view->open_room, view->node_count, sizeof(bool));
	memset(view->open, 0, view->node_count * sizeof(bool));
	for (int i = 0; (node = next_node(&i)) != NULL; i++)
		add_node(view, i, node);
	request_view_begin(now);
}

/* The kind of GPUs that a job has been given on a node: its type, or the only one of the node. */
static uint32_t kind_given(const gres_job_state_t *given, int node)
{
	uint32_t kind = gpu_tres_find("gpu", given->type_name);
	struct gpu_counts counts;
	uint64_t most = 0;

	if (given->type_name != NULL && kind != NO_GPUS)
		return kind;
	node_gpus(node, &counts);
	for (uint32_t i = 0; i < gpu_tres_count(); i++) {
		if (gpu_tres_is_whole(i) && gpu_tres_has_type(i) && counts.of[i] > most) {
			most = counts.of[i];
			kind = i;
		}
	}
	return kind;
}

/* Adds the GPUs of one entry of a job's GRES on its rank-th node. */
static void add_given(struct holding_list *list, size_t first, const gres_state_t *gres, int node,
		      uint32_t rank)
{
	const gres_job_state_t *given = gres->gres_data;
	uint32_t kind;

	if (xstrcmp(gres->gres_name, "gpu") || given == NULL || rank >= given->node_cnt ||
	    given->gres_cnt_node_alloc == NULL || given->gres_cnt_node_alloc[rank] == 0)
		return;
	kind = kind_given(given, node);
	if (list->at[first].tres != NO_GPUS)
		first = (size_t)(add_holding(list, (uint32_t)node) - list->at);
	list->at[first].tres = kind;
	list->at[first].gpus = (uint32_t)given->gres_cnt_node_alloc[rank];
}

static void add_job_gpus(struct holding_list *list, size_t first, const job_record_t *job, int node,
			 uint32_t rank)
{
	list_walk_t walk;
	gres_state_t *gres;

	if (job->gres_list_alloc == NULL)
		return;
	walk = list_iterator_create(job->gres_list_alloc);
	while ((gres = list_next(walk)) != NULL)
		add_given(list, first, gres, node, rank);
	list_iterator_destroy(walk);
}

/* Of a job that has its nodes for itself everything that is there. */
static void add_whole_node(struct holding_list *list, int node)
{
	const node_record_t *record = node_record_table_ptr[node];
	struct budget_holding *held = add_holding(list, (uint32_t)node);

	held->cpus = record->cpus_efctv;
	if (slurm_conf.select_type_param & CR_MEMORY)
		held->memory = record->real_memory;
	add_all_gpus(list, list->count - 1, node);
}

size_t room_view_add(struct room_view *view, struct holding_list *list, const job_record_t *job)
{
	const job_resources_t *given = job->job_resrcs;
	size_t before = list->count;
	bool whole = holds_whole_nodes(job);
	uint32_t rank = 0;

	if (view->node_count == 0 || given == NULL || given->node_bitmap == NULL)
		return 0;
	for (int i = next_in_bitmap(given->node_bitmap, 0); i >= 0;
	     i = next_in_bitmap(given->node_bitmap, i + 1), rank++) {
		struct budget_holding *held;

		if ((uint32_t)i >= view->node_count || rank >= given->nhosts ||
		    node_record_table_ptr[i] == NULL)
			continue;
		/* A resize leaves nodes in the record that the job has given up. */
		if (job->node_bitmap != NULL && !bit_test(job->node_bitmap, i))
			continue;
		if (whole) {
			add_whole_node(list, i);
			continue;
		}
		held = add_holding(list, (uint32_t)i);
		held->cpus = given->cpus != NULL ? given->cpus[rank] : 0;
		if ((slurm_conf.select_type_param & CR_MEMORY) && given->memory_allocated != NULL)
			held->memory = given->memory_allocated[rank];
		add_job_gpus(list, list->count - 1, job, i, rank);
	}
	return list->count - before;
}

bool room_is_stuck(const job_record_t *job, time_t now)
{
	return job->end_time + slurm_conf.kill_wait + slurm_conf.msg_timeout < now;
}

const struct budget_request *room_view_request(const struct room_view *view,
					       const job_record_t *job)
{
	return view->node_count > 0 ? request_view(job, view->node_count) : NULL;
}

void room_view_free(struct room_view *view)
{
	free(view->open);
	free(view->totals.at);
	free(view->holdings.at);
	free(view->others.at);
	memset(view, 0, sizeof(*view));
	kept_free();
}
