/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Our second thread in slurmctld: keeps state on disk and fetches history from
 * the accounting database. It holds no lock of Slurm, so that a slow disk or
 * database delays no pass. All functions may be called from any thread.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_KEEPER_H
#define SLURM_BUDGET_PLUGINS_SLURM_KEEPER_H

#include <stdbool.h>

/* Takes over what it needs of slurm.conf: the folder of the state, the path of
 * slurm.conf, the name of SlurmUser. Caller: the configuration does not change
 * meanwhile, as in init and reconfig. */
void keeper_configure(void);

/* Starts the thread, after keeper_configure. false after one error line. */
bool keeper_start(void);

/* From now on history may be fetched: the engine knows the GPU TRES, the tree and
 * what a GPU has of shards. */
void keeper_begin(void);

/* Is the first attempt to fetch what history was wanted over? The thread kicks
 * the tick when it is. */
bool keeper_is_settled(void);

/* A pass has been made: there is something to be saved. */
void keeper_note_pass(void);

/* Saves for the last time, ends the thread and waits for its end, and breaks off
 * what it fetches; after tick_stop, no lock held. */
void keeper_stop(void);

#endif
