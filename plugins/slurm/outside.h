/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Jobs outside the budgets (Q7): those without GPUs, and those of root and
 * SlurmUser. They get what multifactor would give them by its own books, moved
 * up into their band. Callers hold the job write lock and the node and part
 * read locks, and no association lock.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_OUTSIDE_H
#define SLURM_BUDGET_PLUGINS_SLURM_OUTSIDE_H

#include "plugins/engine.h"
#include "plugins/slurm/compat.h"

/* The band from now on. Any thread. */
void outside_set_band(struct budget_band band);

/* priority_p_set: the number for the job. */
uint32_t outside_set(uint32_t last_priority, job_record_t *job);

/* Would multifactor give the job a number at its tick? */
bool outside_is_weighed(const job_record_t *job);

/* A tick of multifactor at `start`: gives the job its number if multifactor
 * would. Touches last_job_update only if the number changes. */
void outside_tick(job_record_t *job, time_t start);

/* Where multifactor's ticks do not come through stock_tick: moves all numbers it
 * has left below the band into it. Takes the job write lock; no lock held. */
void outside_lift_all(void);

#endif
