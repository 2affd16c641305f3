/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The association tree as the engine wants it. One memory of what was last
 * shown; used by our thread alone.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_ASSOC_VIEW_H
#define SLURM_BUDGET_PLUGINS_SLURM_ASSOC_VIEW_H

#include <stdbool.h>

/* Tells the engine if anything differs from the last time. Takes the association
 * read lock; no lock held. Returns whether the engine has a tree. */
bool assoc_view_show(void);

void assoc_view_free(void);

#endif
