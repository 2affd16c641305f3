/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Our thread in slurmctld: shows the engine nodes, associations and jobs, writes
 * the numbers and shares it answers. A pass each second, sooner after a kick,
 * and never so often that its writing would hold up slurmctld.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_TICK_H
#define SLURM_BUDGET_PLUGINS_SLURM_TICK_H

#include "plugins/slurm/job_view.h"

/* Starts the thread; it takes slurmctld's locks only when it runs, so callers
 * may hold them. false after one error line. */
bool tick_start(void);

/* Ends it and waits for its end; callers hold no lock. */
void tick_stop(void);

/* Something has changed: a pass soon. Any thread, any locks. */
void tick_kick(void);

/* A run has ended: hand it to the engine, soon. Any thread, any locks. */
void tick_job_ended(const struct ended_job *ended);

#endif
