/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * From the engine's taggings to the records of runs and pending jobs: what stands at the front of
 * their admin_comment (U10), from where slurmctld hands it to the accounting
 * database when the run ends. Used by our thread alone.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_TAG_WRITER_H
#define SLURM_BUDGET_PLUGINS_SLURM_TAG_WRITER_H

#include "plugins/slurm/job_view.h"

/* Writes the tags of a pass over `views`. A record whose run is over by now, or has begun, is
 * left as it is. Takes the job write lock; no lock held. Returns the microseconds with it. */
uint64_t tag_writer_write(const struct budget_pass *pass, const struct job_views *views);

#endif
