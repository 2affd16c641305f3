/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * GPUs in what people write behind --gres, --gpus, --gpus-per-* and
 * --tres-per-task, as clients hand it to slurmctld: "gres:gpu:2" up to 22.05,
 * "gres/gpu:2" or "gres/gpu=2" later. Pure functions.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_GPU_REQUEST_H
#define SLURM_BUDGET_PLUGINS_SLURM_GPU_REQUEST_H

#include <stdbool.h>

/* Does the list (NULL: empty) ask for GPUs, MIG slices, shards or MPS shares? Not
 * if it asks for 0 of them. What cannot be read is left to Slurm. */
bool tres_ask_gpus(const char *list);

#endif
