/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The engine's view of the room on the nodes: what they have, what runs hold of it,
 * and what pending jobs ask for. Cores in Slurm's CPUs, memory in MB, GPUs by TRES. Used
 * by our thread alone, under job, node and part read locks; what a view points at is
 * kept until the next pass begins.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_ROOM_VIEW_H
#define SLURM_BUDGET_PLUGINS_SLURM_ROOM_VIEW_H

#include "plugins/engine.h"
#include "plugins/slurm/compat.h"

struct holding_list {
	struct budget_holding *at;
	size_t count;
	size_t room;
};

struct room_view {
	uint32_t node_count; /* 0: nobody needs to know */
	bool *open;
	size_t open_room;
	struct holding_list totals;
	struct holding_list holdings;
	struct holding_list others;
	time_t now;
};

/* Begins a pass: what the nodes have. Where nobody preempts, nothing is looked at
 * by this or what follows. */
void room_view_begin(struct room_view *view, time_t now);

/* Adds what the job holds now to `list`, one of the view's; returns how many holdings that is. */
size_t room_view_add(struct room_view *view, struct holding_list *list, const job_record_t *job);

/* Has a job that is ending kept its nodes for longer than Slurm gives it? */
bool room_is_stuck(const job_record_t *job, time_t now);

/* What a pending job asks for; NULL if nobody needs to know. */
const struct budget_request *room_view_request(const struct room_view *view,
					       const job_record_t *job);

void room_view_free(struct room_view *view);

#endif
