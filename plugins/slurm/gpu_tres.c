/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The list of GPU TRES; see gpu_tres.h.
 */
#include <stdlib.h>
#include <string.h>

#include "plugins/engine.h"
#include "plugins/slurm/gpu_tres.h"

struct gpu_tres {
	int position;  /* in Slurm's arrays of counts */
	char name[32]; /* "gpu", "shard", "mps" */
	char type[64]; /* "" if untyped */
};

static struct gpu_tres list[GPU_TRES_MAX];
static size_t list_size;
static int known_tres_count = -1;

static bool is_gpu_like(const char *name)
{
	return !strcmp(name, "gpu") || !strcmp(name, "shard") || !strcmp(name, "mps");
}

/* "gpu" or "gpu:a100", as in TRES names of the type gres. */
static bool read_tres(struct gpu_tres *tres, const slurmdb_tres_rec_t *record, int position)
{
	const char *colon;

	if (record == NULL || record->type == NULL || record->name == NULL ||
	    strcmp(record->type, "gres"))
		return false;
	memset(tres, 0, sizeof(*tres));
	tres->position = position;
	colon = strchr(record->name, ':');
	snprintf(tres->name, sizeof(tres->name), "%.*s",
		 colon != NULL ? (int)(colon - record->name) : (int)strlen(record->name),
		 record->name);
	snprintf(tres->type, sizeof(tres->type), "%s", colon != NULL ? colon + 1 : "");
	return is_gpu_like(tres->name);
}

static size_t read_list(struct gpu_tres *found)
{
	assoc_mgr_lock_t read_tres_lock = {.tres = READ_LOCK};
	size_t count = 0;

	assoc_mgr_lock(&read_tres_lock);
	for (int i = 0; i < slurmctld_tres_cnt && count < GPU_TRES_MAX; i++)
		if (read_tres(&found[count], assoc_mgr_tres_array[i], i))
			count++;
	assoc_mgr_unlock(&read_tres_lock);
	return count;
}

static void take_list(const struct gpu_tres *found, size_t count)
{
	memcpy(list, found, sizeof(list[0]) * count);
	list_size = count;
	known_tres_count = slurmctld_tres_cnt;
	if (count == 0)
		error("priority/budget: Slurm counts no GPUs, so no job has a budget: write "
		      "AccountingStorageTRES=gres/gpu into slurm.conf");
}

void gpu_tres_load(void)
{
	struct gpu_tres found[GPU_TRES_MAX];

	take_list(found, read_list(found));
}

bool gpu_tres_is_behind(void)
{
	return slurmctld_tres_cnt != known_tres_count;
}

bool gpu_tres_refresh(void)
{
	slurmctld_lock_t write_job = {.job = WRITE_LOCK};
	struct gpu_tres found[GPU_TRES_MAX];
	size_t count;

	if (!gpu_tres_is_behind())
		return false;
	count = read_list(found);
	lock_slurmctld(write_job);
	take_list(found, count);
	unlock_slurmctld(write_job);
	return true;
}

void gpu_tres_tell_engine(uint64_t shards_per_gpu, uint64_t mps_per_gpu)
{
	struct budget_tres tres[GPU_TRES_MAX];

	for (size_t i = 0; i < list_size; i++)
		tres[i] = (struct budget_tres){.name = list[i].name, .type = list[i].type};
	budget_engine_set_tres(tres, list_size, shards_per_gpu, mps_per_gpu);
}

size_t gpu_tres_count(void)
{
	return list_size;
}

uint32_t gpu_tres_find(const char *name, const char *type)
{
	uint32_t untyped = UINT32_MAX;

	for (uint32_t i = 0; i < list_size; i++) {
		if (strcmp(list[i].name, name))
			continue;
		if (type != NULL && !strcasecmp(list[i].type, type))
			return i;
		if (list[i].type[0] == '\0')
			untyped = i;
	}
	return untyped;
}

bool gpu_tres_is_whole(uint32_t index)
{
	return index < list_size && !strcmp(list[index].name, "gpu");
}

bool gpu_tres_has_type(uint32_t index)
{
	return index < list_size && list[index].type[0] != '\0';
}

uint64_t gpu_tres_per_gpu(const struct gpu_counts *counts, const char *name)
{
	uint64_t gpus = 0, parts = 0;

	for (size_t i = 0; i < list_size; i++) {
		if (list[i].type[0] != '\0')
			continue;
		if (!strcmp(list[i].name, "gpu"))
			gpus += counts->of[i];
		else if (!strcmp(list[i].name, name))
			parts += counts->of[i];
	}
	return gpus > 0 ? parts / gpus : 0;
}

bool gpu_counts_add(struct gpu_counts *counts, const uint64_t *tres)
{
	bool any = false;

	for (size_t i = 0; tres != NULL && i < list_size; i++) {
		uint64_t count = tres[list[i].position];

		if (count == 0 || count >= NO_CONSUME_VAL64)
			continue;
		counts->of[i] += count;
		any = true;
	}
	return any;
}

void gpu_counts_max(struct gpu_counts *counts, const struct gpu_counts *other)
{
	for (size_t i = 0; i < list_size; i++)
		if (counts->of[i] < other->of[i])
			counts->of[i] = other->of[i];
}

bool gpu_counts_any(const struct gpu_counts *counts)
{
	for (size_t i = 0; i < list_size; i++)
		if (counts->of[i] > 0)
			return true;
	return false;
}

int64_t gpu_counts_rate(const struct gpu_counts *counts)
{
	return budget_engine_rate(counts->of, list_size);
}
