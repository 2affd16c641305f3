/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The stock plugin priority/multifactor, loaded by ours and kept to itself: it
 * goes on charging TRES, QOS and limits as always, while its ticks end in our
 * fair_tree_hook. One per process, opened in init and closed in fini.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_MULTIFACTOR_H
#define SLURM_BUDGET_PLUGINS_SLURM_MULTIFACTOR_H

#include "plugins/fair_tree_hook.h"
#include "plugins/slurm/compat.h"

/* Its entry points; all set after multifactor_open, but for those that the
 * running release of Slurm does not have (NULL). */
struct multifactor {
	int (*init)(void);
	FINI_RESULT (*fini)(void);
	uint32_t (*set)(uint32_t last_priority, job_record_t *job);
	void (*reconfig)(bool assoc_clear);
	struct xlist *(*factors_list)(FACTORS_LIST_PARAMETERS);
	void (*job_end)(job_record_t *job);
	void (*thread_start)(void);
	/* Of its tick: charges a running job's time up to *start. */
	bool (*apply_usage)(job_record_t *job, time_t *start);
	/* Of its tick: gives a pending job its sum of weighted factors. */
	int (*apply_weights)(job_record_t *job, time_t *start);
	/* Not its own: sets what its ticks call in the place of its fair tree. */
	void (*set_hook)(budget_fair_tree_fn function);
};
extern struct multifactor multifactor;

/* Loads it along PluginDir behind our hook. false after one error line. */
bool multifactor_open(void);

/* Unloads it; after its fini. */
void multifactor_close(void);

#endif
