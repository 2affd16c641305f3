/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What Slurm's accounting database says of the past, asked of sacct in a process
 * of its own: a second connection inside slurmctld would take the place of the
 * one that its records go out on, and that one would be blocked as long as the
 * answer takes. One question at a time; used by the keeper's thread alone, which
 * holds no lock.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_HISTORY_H
#define SLURM_BUDGET_PLUGINS_SLURM_HISTORY_H

#include "plugins/engine.h"
#include "plugins/slurm/compat.h"

/* What parts the columns of the answer: a character that no text has. */
#define HISTORY_DELIMITER '\x1f'

struct history;

enum history_state { HISTORY_ASKING, HISTORY_ANSWERED, HISTORY_FAILED };

/* Asks for what ran in the gap, on this cluster. slurm_conf: the path of the
 * configuration to use. Never fails; a question that could not be put has failed
 * at the first wait. */
struct history *history_ask(const struct budget_gap *gap, const char *slurm_conf);

/* Reads on until the answer is complete, `wake` can be read, or so many
 * milliseconds have passed. Ten minutes after the question it has failed. */
enum history_state history_wait(struct history *history, int wake, int milliseconds);

/* Of one that is answered: header and rows. */
const char *history_text(const struct history *history, size_t *size);

/* Of one that has failed: why, one line. */
const char *history_reason(const struct history *history);

/* Ends the question, answered or not, and what it has started. */
void history_end(struct history *history);

#endif
