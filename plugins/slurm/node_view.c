/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Views of Slurm's node records; see node_view.h.
 */
#include <pthread.h>
#include <string.h>

#include "plugins/slurm/hold_times.h"
#include "plugins/slurm/node_view.h"
#include "src/common/bitstring.h"
#include "src/common/node_conf.h"

#define PARTS_KEPT 64u
#define KEEP_FOR 10000000u /* microseconds */

bool node_gpus(int index, struct gpu_counts *counts)
{
	const node_record_t *node = index < node_record_count ? node_record_table_ptr[index] : NULL;

	memset(counts, 0, sizeof(*counts));
	return node != NULL && gpu_counts_add(counts, node->tres_cnt);
}

int next_in_bitmap(const bitstr_t *nodes, int from)
{
	bitstr_t *bits = (bitstr_t *)nodes;
	int size = bits != NULL ? (int)bit_size(bits) : 0;

	while (from < size && !bit_test(bits, from))
		from++;
	return from < size ? from : -1;
}

void nodes_gpus(const bitstr_t *nodes, struct gpu_counts *counts)
{
	for (int i = next_in_bitmap(nodes, 0); i >= 0; i = next_in_bitmap(nodes, i + 1))
		if (i < node_record_count && node_record_table_ptr[i] != NULL)
			gpu_counts_add(counts, node_record_table_ptr[i]->tres_cnt);
}

static bool counts_for_capacity(const node_record_t *node)
{
	return !IS_NODE_DOWN(node) && !IS_NODE_FUTURE(node) && !IS_NODE_DRAINED(node);
}

struct node_view node_view_collect(void)
{
	struct node_view view = {0};
	node_record_t *node;

	for (int i = 0; (node = next_node(&i)) != NULL; i++) {
		struct gpu_counts counts = {{0}};
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

/* What is known of a partition. Asked for at every submission and for every
 * pending --exclusive job, so it is kept for a while. */
struct part_gpus {
	const part_record_t *part;
	uint64_t looked_at;
	bool all;
	struct gpu_counts largest;
};

static pthread_mutex_t parts_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct part_gpus parts[PARTS_KEPT];
static size_t next_part;

static uint64_t total(const struct gpu_counts *counts)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < gpu_tres_count(); i++)
		sum += counts->of[i];
	return sum;
}

static void look_at_part(struct part_gpus *known, const part_record_t *part)
{
	int first = next_in_bitmap(part->node_bitmap, 0);

	memset(known, 0, sizeof(*known));
	known->part = part;
	known->looked_at = microseconds();
	known->all = first >= 0;
	for (int i = first; i >= 0; i = next_in_bitmap(part->node_bitmap, i + 1)) {
		struct gpu_counts node;

		if (!node_gpus(i, &node))
			known->all = false;
		else if (total(&node) > total(&known->largest))
			known->largest = node;
	}
}

/* The entry of a partition, up to date. Caller: parts_mutex. */
static const struct part_gpus *know_part(const part_record_t *part)
{
	struct part_gpus *known = NULL;

	for (size_t i = 0; i < PARTS_KEPT && known == NULL; i++)
		if (parts[i].part == part)
			known = &parts[i];
	if (known == NULL) {
		known = &parts[next_part++ % PARTS_KEPT];
		known->part = NULL;
	}
	if (known->part == NULL || microseconds() - known->looked_at > KEEP_FOR)
		look_at_part(known, part);
	return known;
}

bool part_is_all_gpus(const part_record_t *part, struct gpu_counts *largest)
{
	const struct part_gpus *known;
	bool all;

	if (largest != NULL)
		memset(largest, 0, sizeof(*largest));
	if (part == NULL)
		return false;
	pthread_mutex_lock(&parts_mutex);
	known = know_part(part);
	all = known->all;
	if (largest != NULL)
		*largest = known->largest;
	pthread_mutex_unlock(&parts_mutex);
	return all;
}
