/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * How a minimum runtime reaches slurmctld: as the option of our SPANK plugin in
 * the environment that clients send for prologs, or, from clients without SPANK,
 * as the word min-runtime=TIME in the job's comment. Anybody can write either, so
 * both say only what is asked for, never what was granted.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_MIN_RUNTIME_H
#define SLURM_BUDGET_PLUGINS_SLURM_MIN_RUNTIME_H

#include "plugins/slurm/compat.h"

/* The minimum that is asked for, for xfree(); NULL: none. Takes it out of the description: all
 * entries of the environment, which go before the comment, and the word in the comment. A
 * comment that was that word alone is none. */
char *min_runtime_take(job_desc_msg_t *desc);

/* Leaves it in the environment of an update, where one description is applied
 * to several records one after the other. */
void min_runtime_leave(job_desc_msg_t *desc, const char *value);

/* Leaves a note beside it that the QOS in the description is ours, for one record; and takes
 * the note and the QOS away again before the next. */
void own_qos_note(job_desc_msg_t *desc);
void own_qos_take(job_desc_msg_t *desc);

#endif
