/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What the nodes have of GPUs. GPU weight in 1/5040 GPU. Callers hold at least
 * slurmctld's node read lock, for partitions the part read lock as well.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_NODE_VIEW_H
#define SLURM_BUDGET_PLUGINS_SLURM_NODE_VIEW_H

#include "plugins/slurm/gpu_tres.h"

struct node_view {
	int64_t capacity;        /* U5: of the nodes neither down nor drained */
	uint64_t shards_per_gpu; /* on the nodes that have them; 0: none has */
	uint64_t mps_per_gpu;
};

/* Looks at all nodes; by our thread alone, as it asks the engine. */
struct node_view node_view_collect(void);

/* The GPUs of one node; false if it has none. */
bool node_gpus(int index, struct gpu_counts *counts);

/* The first node of a bitmap (NULL: empty) from an index on, -1 if there is none. */
int next_in_bitmap(const bitstr_t *nodes, int from);

/* Adds up the GPUs of all nodes of a bitmap. */
void nodes_gpus(const bitstr_t *nodes, struct gpu_counts *counts);

/* Does every node of the partition have GPUs? Also gives those of the node that
 * has most of them (largest may be NULL). Looks at the nodes every ten seconds. */
bool part_is_all_gpus(const part_record_t *part, struct gpu_counts *largest);

#endif
