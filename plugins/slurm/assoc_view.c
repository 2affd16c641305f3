/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Views of Slurm's associations; see assoc_view.h. Names are copied under the
 * lock, the engine is called after it.
 */
#include <stdlib.h>
#include <string.h>

#include "plugins/engine.h"
#include "plugins/slurm/assoc_view.h"
#include "plugins/slurm/compat.h"

static struct budget_association *shown;
static size_t shown_count;
static bool has_tree;

static bool same_text(const char *a, const char *b)
{
	return !strcmp(a != NULL ? a : "", b != NULL ? b : "");
}

static bool is_shown(size_t i, const slurmdb_assoc_rec_t *assoc)
{
	const struct budget_association *view = &shown[i];

	return i < shown_count && view->id == assoc->id && view->parent_id == assoc->parent_id &&
	       view->shares == assoc->shares_raw && same_text(view->account, assoc->acct) &&
	       same_text(view->user, assoc->user) && same_text(view->partition, assoc->partition);
}

static bool all_shown(void)
{
	list_walk_t walk = list_iterator_create(assoc_mgr_assoc_list);
	slurmdb_assoc_rec_t *assoc;
	bool same = (size_t)list_count(assoc_mgr_assoc_list) == shown_count;

	for (size_t i = 0; same && (assoc = list_next(walk)) != NULL; i++)
		same = is_shown(i, assoc);
	list_iterator_destroy(walk);
	return same;
}

static char *copy(const char *text)
{
	char *copied = strdup(text != NULL ? text : "");

	if (copied == NULL)
		fatal("priority/budget: no memory");
	return copied;
}

static void take_list(void)
{
	list_walk_t walk = list_iterator_create(assoc_mgr_assoc_list);
	slurmdb_assoc_rec_t *assoc;

	assoc_view_free();
	shown = calloc((size_t)list_count(assoc_mgr_assoc_list) + 1, sizeof(*shown));
	if (shown == NULL)
		fatal("priority/budget: no memory");
	while ((assoc = list_next(walk)) != NULL)
		shown[shown_count++] = (struct budget_association){
		    .id = assoc->id,
		    .parent_id = assoc->parent_id,
		    .shares = assoc->shares_raw,
		    .account = copy(assoc->acct),
		    .user = copy(assoc->user),
		    .partition = copy(assoc->partition),
		};
	list_iterator_destroy(walk);
}

bool assoc_view_show(void)
{
	assoc_mgr_lock_t read_assoc = {.assoc = READ_LOCK};
	bool changed = false;

	assoc_mgr_lock(&read_assoc);
	if (assoc_mgr_assoc_list != NULL && !all_shown()) {
		take_list();
		changed = true;
	}
	assoc_mgr_unlock(&read_assoc);
	if (changed)
		has_tree = budget_engine_set_tree(shown, shown_count) || has_tree;
	return has_tree;
}

void assoc_view_free(void)
{
	for (size_t i = 0; i < shown_count; i++) {
		free((char *)shown[i].account);
		free((char *)shown[i].user);
		free((char *)shown[i].partition);
	}
	free(shown);
	shown = NULL;
	shown_count = 0;
}
