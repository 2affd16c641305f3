/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Taking the stated minimum out of a job description; see min_runtime.h. The
 * name of the entry is what Slurm makes of our SPANK plugin's and its option's.
 */
#include <stdlib.h>
#include <string.h>

#include "plugins/engine.h"
#include "plugins/slurm/min_runtime.h"

static const char entry_name[] = "_SLURM_SPANK_OPTION_budget_min_runtime=";

static const char note_name[] = "_SLURM_BUDGET_OWN_QOS=";

/* The value of the first entry of the name; all of them are removed, and with the last one the
 * list: where there are no entries slurmctld copies none when it splits an array, and all its
 * records would free the same list. */
static char *take_entries(job_desc_msg_t *desc, const char *name)
{
	size_t length = strlen(name);
	char *value = NULL;
	uint32_t kept = 0;

	for (uint32_t i = 0; desc->spank_job_env != NULL && i < desc->spank_job_env_size; i++) {
		char *entry = desc->spank_job_env[i];

		desc->spank_job_env[i] = NULL;
		if (entry == NULL || strncmp(entry, name, length)) {
			desc->spank_job_env[kept++] = entry;
			continue;
		}
		if (value == NULL)
			value = xstrdup(entry + length);
		xfree(entry);
	}
	desc->spank_job_env_size = kept;
	if (kept == 0)
		xfree(desc->spank_job_env);
	return value;
}

static void add_entry(job_desc_msg_t *desc, const char *name, const char *value)
{
	uint32_t count = desc->spank_job_env != NULL ? desc->spank_job_env_size : 0;

	xrealloc(desc->spank_job_env, (count + 2) * sizeof(char *));
	desc->spank_job_env[count] = xstrdup_printf("%s%s", name, value);
	desc->spank_job_env[count + 1] = NULL;
	desc->spank_job_env_size = count + 1;
}

static char *take_from_comment(job_desc_msg_t *desc)
{
	char *rest = NULL;
	char *word = budget_engine_take_token(desc->comment, &rest);
	char *value;

	if (word == NULL)
		return NULL;
	value = xstrdup(word);
	xfree(desc->comment);
	if (rest != NULL && rest[0] != '\0')
		desc->comment = xstrdup(rest);
	free(word);
	free(rest);
	return value;
}

char *min_runtime_take(job_desc_msg_t *desc)
{
	char *option = take_entries(desc, entry_name);
	char *word = take_from_comment(desc);

	if (option == NULL)
		return word;
	xfree(word);
	return option;
}

void min_runtime_leave(job_desc_msg_t *desc, const char *value)
{
	add_entry(desc, entry_name, value);
}

void own_qos_note(job_desc_msg_t *desc)
{
	add_entry(desc, note_name, "");
}

void own_qos_take(job_desc_msg_t *desc)
{
	char *note = take_entries(desc, note_name);

	if (note != NULL)
		xfree(desc->qos);
	xfree(note);
}
