/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * GPUs that a job keeps from others without having asked for them (U1): those
 * of the nodes of --exclusive jobs, and, with --exclusive=user or =mcs and in
 * ExclusiveUser partitions, those of its nodes that no job has been given. The
 * latter are charged to one of the jobs there, the first in Slurm's list.
 * Callers hold a job lock and the node and part read locks.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_EXCLUSIVE_H
#define SLURM_BUDGET_PLUGINS_SLURM_EXCLUSIVE_H

#include "plugins/slurm/gpu_tres.h"

/* --exclusive, or in a partition with OverSubscribe=EXCLUSIVE. */
bool holds_whole_nodes(const job_record_t *job);

/* Starts a walk of the job list; by our thread alone, as the next one. */
void exclusive_begin(void);

/* For a running job of this walk: adds what it keeps from others. */
void exclusive_add_rest(const job_record_t *job, struct gpu_counts *counts);

/* For a job that has ended: adds what it kept when last seen running. */
void exclusive_add_last_rest(const job_record_t *job, struct gpu_counts *counts);

#endif
