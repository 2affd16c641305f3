/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Views of Slurm's node records; see node_view.h.
 */
#include <string.h>

#include "plugins/slurm/node_view.h"
#include "src/common/bitstring.h"
#include "src/common/node_conf.h"

bool node_gpus(int index, struct gpu_counts *counts)
{
	const node_record_t *node = index < node_record_count ? node_record_table_ptr[index] : NULL;

	memset(counts, 0, sizeof(*counts));
	return node != NULL && gpu_counts_add(counts, node->tres_cnt);
}

void nodes_gpus(const bitstr_t *nodes, struct gpu_counts *counts)
{
	bitstr_t *bits = (bitstr_t *) nodes;
	int last = bits != NULL ? bit_fls(bits) : -1;

	for (int i = bits != NULL ? bit_ffs(bits) : 0; i >= 0 && i <= last; i++)
		if (bit_test(bits, i) && i < node_record_count && node_record_table_ptr[i] != NULL)
			gpu_counts_add(counts, node_record_table_ptr[i]->tres_cnt);
}

static bool counts_for_capacity(const node_record_t *node)
{
	return !IS_NODE_DOWN(node) && !IS_NODE_FUTURE(node) && !IS_NODE_DRAINED(node);
}

struct node_view node_view_collect(void)
{
	struct node_view view = { 0 };
	node_record_t *node;

	for (int i = 0; (node = next_node(&i)) != NULL; i++) {
		struct gpu_counts counts = { { 0 } };
		uint64_t shards, mps;

		if (!gpu_counts_add(&counts, node->tres_cnt))
			continue;
		shards = gpu_tres_per_gpu(&counts, "shard");
		mps = gpu_tres_per_gpu(&counts, "mps");
		if (view.shards_per_gpu < shards)
			view.shards_per_gpu = shards;
		if (view.mps_per_gpu < mps)
			view.mps_per_gpu = mps;
		if (counts_for_capacity(node))
			view.capacity += gpu_counts_rate(&counts);
	}
	return view;
}

bool part_is_all_gpus(const part_record_t *part)
{
	bitstr_t *bits = part != NULL ? part->node_bitmap : NULL;
	int last = bits != NULL ? bit_fls(bits) : -1;
	struct gpu_counts counts;

	for (int i = last >= 0 ? bit_ffs(bits) : 0; i <= last; i++)
		if (bit_test(bits, i) && !node_gpus(i, &counts))
			return false;
	return last >= 0;
}

void part_largest_node(const part_record_t *part, struct gpu_counts *counts)
{
	bitstr_t *bits = part != NULL ? part->node_bitmap : NULL;
	int last = bits != NULL ? bit_fls(bits) : -1;
	int64_t most = 0;

	memset(counts, 0, sizeof(*counts));
	for (int i = last >= 0 ? bit_ffs(bits) : 0; i <= last; i++) {
		struct gpu_counts node;
		int64_t rate;

		if (!bit_test(bits, i) || !node_gpus(i, &node))
			continue;
		rate = gpu_counts_rate(&node);
		if (rate > most) {
			most = rate;
			*counts = node;
		}
	}
}
