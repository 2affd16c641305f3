/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Loading priority_multifactor.so; see multifactor.h. The order matters: the
 * hook has to be visible to the whole process before multifactor is loaded, or
 * its ticks would bind to its own fair_tree_decay().
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "plugins/slurm/multifactor.h"

struct multifactor multifactor;

#define HOOK_LIBRARY "libslurm_budget_hook.so"

static void *library;

#define ENTRY(member, symbol, needed)                                                              \
	{                                                                                          \
		symbol, offsetof(struct multifactor, member), needed                               \
	}

static const struct {
	const char *symbol;
	size_t member;
	bool needed;
} entries[] = {
    ENTRY(init, "init", true),
    ENTRY(fini, "fini", true),
    ENTRY(set, "priority_p_set", true),
    ENTRY(reconfig, "priority_p_reconfig", true),
    ENTRY(factors_list, "priority_p_get_priority_factors_list", true),
    ENTRY(job_end, "priority_p_job_end", true),
    ENTRY(thread_start, "priority_p_thread_start", HAVE_THREAD_START),
    ENTRY(apply_usage, "decay_apply_new_usage", true),
    ENTRY(apply_weights, "decay_apply_weighted_factors", true),
};

/* Loads the hook so that everybody sees it. It is found along our run path. */
static bool load_hook(void)
{
	void *hook = dlopen(HOOK_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
	void *setter = hook != NULL ? dlsym(hook, "budget_fair_tree_hook_set") : NULL;

	if (setter == NULL) {
		error("priority/budget: %s cannot be loaded, install slurm-budget again: %s",
		      HOOK_LIBRARY, dlerror());
		return false;
	}
	memcpy(&multifactor.set_hook, &setter, sizeof(setter));
	return true;
}

/* The first priority_multifactor.so along PluginDir, or NULL. */
static void *open_library(void)
{
	char path[4096];
	const char *folder = slurm_conf.plugindir;
	void *found = NULL;

	while (folder != NULL && *folder != '\0' && found == NULL) {
		size_t length = strcspn(folder, ":");

		snprintf(path, sizeof(path), "%.*s/priority_multifactor.so", (int)length, folder);
		found = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
		folder += length;
		if (*folder == ':')
			folder++;
	}
	if (found == NULL)
		error("priority/budget: no priority_multifactor.so in PluginDir=%s, which it is "
		      "built on: %s",
		      slurm_conf.plugindir, dlerror());
	return found;
}

/* A plugin of another release would read our records wrongly. */
static bool is_of_this_release(void)
{
	const uint32_t *version = dlsym(library, "plugin_version");

	if (version != NULL && *version == COMPILED_FOR_SLURM)
		return true;
	error("priority/budget: priority_multifactor.so is of version 0x%x, this plugin of 0x%x: "
	      "build slurm-budget against the installed Slurm",
	      version != NULL ? *version : 0, COMPILED_FOR_SLURM);
	return false;
}

static bool find_entries(void)
{
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		void *address = dlsym(library, entries[i].symbol);

		if (address == NULL && entries[i].needed) {
			error("priority/budget: priority_multifactor.so has no %s: this release of "
			      "Slurm is not supported",
			      entries[i].symbol);
			return false;
		}
		memcpy((char *)&multifactor + entries[i].member, &address, sizeof(address));
	}
	return true;
}

bool multifactor_open(void)
{
	if (!load_hook())
		return false;
	library = open_library();
	if (library == NULL)
		return false;
	if (is_of_this_release() && find_entries())
		return true;
	multifactor_close();
	return false;
}

void multifactor_close(void)
{
	if (library != NULL)
		dlclose(library);
	library = NULL;
	memset(&multifactor, 0, sizeof(multifactor));
}
