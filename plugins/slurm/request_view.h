/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What a pending job asks for, as common/placement can see it: GPUs, cores, memory, whole
 * nodes, and which nodes it may use. What else it asks for only makes it `not modelled`.
 * Used by our thread alone, under job, node and part read locks; requests are kept
 * until the next pass begins.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_REQUEST_VIEW_H
#define SLURM_BUDGET_PLUGINS_SLURM_REQUEST_VIEW_H

#include "plugins/engine.h"
#include "plugins/slurm/compat.h"

/* Begins a pass: looks at the reservations. */
void request_view_begin(time_t now);

const struct budget_request *request_view(const job_record_t *job, uint32_t node_count);

#endif
