/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Which TRES of this cluster count GPUs (gres/gpu with and without type, shard,
 * mps), where they stand in Slurm's arrays of counts, and what jobs and nodes
 * have of them. Counts come in the order told to the engine. The list is
 * written by our thread alone; readers hold any of slurmctld's job locks.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_GPU_TRES_H
#define SLURM_BUDGET_PLUGINS_SLURM_GPU_TRES_H

#include "plugins/slurm/compat.h"

#define GPU_TRES_MAX 64

/* Counts of the GPU TRES, all of them. */
struct gpu_counts {
	uint64_t of[GPU_TRES_MAX];
};

/* Reads Slurm's list of TRES for the first time, before anybody else looks. */
void gpu_tres_load(void);

/* Has Slurm's list grown since it was read, or not been read yet? */
bool gpu_tres_is_behind(void);

/* Reads it again if it has grown. Takes the job write lock for the change: no
 * lock of Slurm's held. Returns whether it has changed. */
bool gpu_tres_refresh(void);

/* Tells the engine, with how many shards and mps units make a GPU on the nodes. */
void gpu_tres_tell_engine(uint64_t shards_per_gpu, uint64_t mps_per_gpu);

size_t gpu_tres_count(void);

/* The index of a TRES of this name and type (NULL: untyped), UINT32_MAX if there is none; of a
 * type that Slurm does not count that of the untyped one. */
uint32_t gpu_tres_find(const char *name, const char *type);

/* Does it count whole GPUs, and of one type? */
bool gpu_tres_is_whole(uint32_t index);
bool gpu_tres_has_type(uint32_t index);

/* Sums of shards or mps over untyped GPUs, for a node's counts; 0 without either. */
uint64_t gpu_tres_per_gpu(const struct gpu_counts *counts, const char *name);

/* Adds what an array of TRES counts (NULL: none) has; returns whether there was any. */
bool gpu_counts_add(struct gpu_counts *counts, const uint64_t *tres);

/* The larger of both, for each TRES. */
void gpu_counts_max(struct gpu_counts *counts, const struct gpu_counts *other);

bool gpu_counts_any(const struct gpu_counts *counts);

/* U1: the engine's rate of them. */
int64_t gpu_counts_rate(const struct gpu_counts *counts);

#endif
