/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Multifactor's own usage of each association, kept aside: what sshare shows
 * in usage_raw and the factors is the budget's, so what multifactor adds to and
 * decays there is taken out again and kept here. Needed to order jobs without
 * GPUs (Q7), and put back when slurmctld ends, so that multifactor finds its own
 * numbers if the site returns to it. Usage in multifactor's unit (billed TRES x
 * seconds). One mutex, taken after slurmctld's locks and before those of the
 * associations; all functions may be called from any thread.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_BOOKS_H
#define SLURM_BUDGET_PLUGINS_SLURM_BOOKS_H

#include "plugins/engine.h"
#include "plugins/slurm/compat.h"

/* Opens the books: from their file, or from usage_raw as slurmctld has loaded
 * it. Once, before multifactor's init; association lock not held. */
void books_open(void);

/* Puts the books back into usage_raw, has slurmctld save it, and removes the
 * file. After multifactor's fini; no lock held. */
void books_close(void);

/* Around the charging of all running jobs by a tick of multifactor that ends at
 * `start`: the mutex is held in between, and the job lock by the caller. */
void books_begin_tick(time_t start);
void books_take_gain(job_record_t *job);
void books_end_tick(void);

/* Multifactor's end of job, with what it charges taken into the books. Caller:
 * job write lock. */
void books_end_job(job_record_t *job, void (*end)(job_record_t *job));

/* Works out multifactor's fair-share factors from the books; no lock held. */
void books_rank(void);

/* The factor multifactor would have given; 0 for an association that no tick has
 * seen, as with multifactor. */
double books_factor(uint32_t assoc_id);

/* Writes what the budget's shares are into the associations, where it differs.
 * No lock held. */
void books_publish(const struct budget_share *shares, size_t count);

/* Writes the file in this folder (StateSaveLocation) if anything was charged since
 * the last time; no lock held. */
void books_save(const char *folder);

#endif
