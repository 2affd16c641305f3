/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What happens at each tick of multifactor (PriorityCalcPeriod) in the place of
 * its fair tree: every running job is charged by multifactor as ever, and jobs
 * outside the budgets get their numbers. Runs in multifactor's thread.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_STOCK_TICK_H
#define SLURM_BUDGET_PLUGINS_SLURM_STOCK_TICK_H

#include <stdbool.h>

/* From now on ticks pass through here; before multifactor's init. */
void stock_tick_start(void);

/* They do no more; after multifactor's fini. */
void stock_tick_stop(void);

/* false once it is clear that multifactor's ticks do not come through here, which
 * is told of in one error line: then its own fair tree goes on writing usage and
 * numbers at each tick, and our thread has to correct them a moment later. */
bool stock_tick_works(void);

#endif
