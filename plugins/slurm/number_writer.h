/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * From the engine's places to the job records: which records change, which
 * arrays are split, written in small portions so that the job write lock is
 * never held long. Used by our thread alone.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_NUMBER_WRITER_H
#define SLURM_BUDGET_PLUGINS_SLURM_NUMBER_WRITER_H

#include "plugins/slurm/job_view.h"

/* Writes the numbers of a pass over `views`, and repairs what shows others. A
 * record that has changed since it was viewed is left for the next pass. Takes
 * the job write lock; no lock held. Returns the microseconds with it. */
uint64_t number_writer_write(const struct budget_pass *pass, const struct job_views *views);

#endif
