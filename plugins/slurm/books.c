/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The books of multifactor's usage; see books.h. One row per association, in
 * the order of slurmctld's list. A row holds what was charged to the
 * association itself: a user's own usage, or, for an account, that of members
 * who are gone; the usage of an account is the sum of the rows below it.
 */
#include <endian.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugins/slurm/books.h"
#include "plugins/slurm/books_file.h"

#define NO_ROW UINT32_MAX

struct row {
	uint32_t id;
	uint32_t parent_id; /* 0: the root account */
	uint32_t shares;
	uint32_t parent; /* its row, NO_ROW for the root account */
	bool user;
	long double own;     /* multifactor's usage of the association itself */
	double wall;         /* multifactor's wall clock time when last looked at */
	long double written; /* usage_raw as we left it */
	bool published;      /* the budget's share is known: */
	struct budget_share share;
};

struct id_row {
	uint32_t id;
	uint32_t row;
};

struct factor {
	uint32_t id;
	double factor;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct row *rows;
static struct id_row *by_id; /* sorted */
static size_t row_count;
static time_t charged_to; /* multifactor's last tick, 0: none yet */
static bool unsaved;

/* Read while jobs are weighed, so apart from the rest. */
static pthread_mutex_t factors_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct factor *factors; /* sorted by id */
static size_t factor_count;

static void *need(void *memory)
{
	if (memory == NULL)
		fatal("priority/budget: no memory");
	return memory;
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

static uint32_t row_index(uint32_t id)
{
	const struct id_row *found =
	    row_count > 0 ? bsearch(&id, by_id, row_count, sizeof(*by_id), compare_ids) : NULL;

	return found != NULL ? found->row : NO_ROW;
}

static struct row *row_of(uint32_t id)
{
	uint32_t index = row_index(id);

	return index != NO_ROW ? &rows[index] : NULL;
}

/* --- following slurmctld's list of associations; callers hold the mutex and at
 * least a read lock on the associations --- */

static bool list_is_known(void)
{
	struct xlist *list = assoc_mgr_assoc_list;
	slurmdb_assoc_rec_t *assoc;
	list_walk_t walk;
	size_t i = 0;
	bool same = (size_t)list_count(list) == row_count;

	walk = list_iterator_create(list);
	while (same && (assoc = list_next(walk)) != NULL) {
		same = i < row_count && rows[i].id == assoc->id &&
		       rows[i].parent_id == assoc->parent_id;
		if (same)
			rows[i].shares = assoc->shares_raw;
		i++;
	}
	list_iterator_destroy(walk);
	return same;
}

static void index_rows(void)
{
	free(by_id);
	by_id = need(calloc(row_count + 1, sizeof(*by_id)));
	for (uint32_t i = 0; i < row_count; i++)
		by_id[i] = (struct id_row){.id = rows[i].id, .row = i};
	if (row_count > 1)
		qsort(by_id, row_count, sizeof(*by_id), compare_ids);
	for (size_t i = 0; i < row_count; i++)
		rows[i].parent = rows[i].parent_id != 0 ? row_index(rows[i].parent_id) : NO_ROW;
}

/* The usage of a deleted association stays with the account it was in, as in
 * slurmctld, or with the nearest ancestor that is left. */
static void pass_on(const struct row *old, size_t old_count, const struct row *gone)
{
	uint32_t heir = gone->parent;

	while (heir != NO_ROW && heir < old_count && row_of(old[heir].id) == NULL)
		heir = old[heir].parent;
	if (heir != NO_ROW && heir < old_count)
		row_of(old[heir].id)->own += gone->own;
}

static void rebuild(void)
{
	struct row *old = rows;
	size_t old_count = row_count;
	struct id_row *old_by_id = by_id;
	list_walk_t walk = list_iterator_create(assoc_mgr_assoc_list);
	slurmdb_assoc_rec_t *assoc;

	rows = need(calloc((size_t)list_count(assoc_mgr_assoc_list) + 1, sizeof(*rows)));
	row_count = 0;
	while ((assoc = list_next(walk)) != NULL) {
		const struct id_row *known =
		    old_count > 0
			? bsearch(&assoc->id, old_by_id, old_count, sizeof(*old_by_id), compare_ids)
			: NULL;
		struct row *row = &rows[row_count++];

		if (known != NULL)
			*row = old[known->row];
		row->id = assoc->id;
		row->parent_id = assoc->parent_id;
		row->shares = assoc->shares_raw;
		row->user = assoc->user != NULL;
	}
	list_iterator_destroy(walk);
	index_rows();
	for (size_t i = 0; i < old_count; i++)
		if (row_of(old[i].id) == NULL)
			pass_on(old, old_count, &old[i]);
	free(old);
}

/* Multifactor's usage was reset where its wall clock time went to nothing; that
 * of former members, where slurmctld has no record of them any more. */
static void look_for_reset(struct row *row, const slurmdb_assoc_rec_t *assoc)
{
	const slurmdb_assoc_usage_t *leaf = row->user ? assoc->usage : assoc->leaf_usage;
	double wall = leaf != NULL ? leaf->grp_used_wall : 0;

	if (wall == 0 && (row->wall > 0 || !row->user) && row->own > 0) {
		row->own = 0;
		unsaved = true;
	}
	row->wall = wall;
}

static void follow_list(void)
{
	list_walk_t walk;
	slurmdb_assoc_rec_t *assoc;
	size_t i = 0;

	if (!list_is_known())
		rebuild();
	walk = list_iterator_create(assoc_mgr_assoc_list);
	while ((assoc = list_next(walk)) != NULL)
		look_for_reset(&rows[i++], assoc);
	list_iterator_destroy(walk);
}

/* Calls act for each association and its row. */
static void for_each_row(void (*act)(struct row *row, slurmdb_assoc_rec_t *assoc))
{
	list_walk_t walk = list_iterator_create(assoc_mgr_assoc_list);
	slurmdb_assoc_rec_t *assoc;
	size_t i = 0;

	while ((assoc = list_next(walk)) != NULL)
		act(&rows[i++], assoc);
	list_iterator_destroy(walk);
}

/* --- opening --- */

/* When multifactor last ran, from its own file; 0 if it never did. */
static time_t multifactor_ran(void)
{
	char path[4096];
	uint64_t packed = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/priority_last_decay_ran", slurm_conf.state_save_location);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (read(fd, &packed, sizeof(packed)) != (ssize_t)sizeof(packed))
		packed = 0;
	close(fd);
	return (time_t)be64toh(packed);
}

static void take_usage_raw(struct row *row, slurmdb_assoc_rec_t *assoc)
{
	const slurmdb_assoc_usage_t *leaf = row->user ? assoc->usage : assoc->leaf_usage;

	row->own = leaf != NULL ? leaf->usage_raw : 0;
	row->written = assoc->usage->usage_raw;
}

/* What was billed is what multifactor charges, as far as limits are enforced. */
static void take_billed(struct row *row, slurmdb_assoc_rec_t *assoc)
{
	const slurmdb_assoc_usage_t *leaf = row->user ? assoc->usage : assoc->leaf_usage;

	row->own = leaf != NULL ? leaf->usage_tres_raw[TRES_ARRAY_BILLING] : 0;
	row->written = assoc->usage->usage_raw;
}

static void look_at_loaded(struct row *row, slurmdb_assoc_rec_t *assoc)
{
	look_for_reset(row, assoc);
}

static void take_entries(const struct books_entry *entries, size_t count)
{
	for_each_row(take_usage_raw);
	for (size_t i = 0; i < row_count; i++)
		rows[i].own = 0;
	for (size_t i = 0; i < count; i++) {
		struct row *row = row_of(entries[i].assoc_id);

		if (row != NULL)
			row->own = entries[i].usage;
	}
}

/* Where the books are taken from, as one line for the log. */
static const char *take_up(enum books_file_state state, const struct books_entry *entries,
			   size_t count, time_t file_charged_to)
{
	charged_to = multifactor_ran();
	if (state == BOOKS_FILE_READ && file_charged_to >= charged_to) {
		charged_to = file_charged_to;
		take_entries(entries, count);
		return "from their file";
	}
	if (state == BOOKS_FILE_DAMAGED) {
		for_each_row(take_billed);
		return "from the billed TRES, because their file cannot be used";
	}
	for_each_row(take_usage_raw);
	return state == BOOKS_FILE_READ
		   ? "from usage_raw, because multifactor has run since their file was written"
		   : "from usage_raw as multifactor left it";
}

void books_open(void)
{
	assoc_mgr_lock_t read_assoc = {.assoc = READ_LOCK};
	struct books_entry *entries = NULL;
	size_t count = 0;
	time_t file_charged_to = 0;
	const char *source = NULL;
	enum books_file_state state =
	    books_file_read(slurm_conf.state_save_location, &entries, &count, &file_charged_to);

	pthread_mutex_lock(&mutex);
	assoc_mgr_lock(&read_assoc);
	if (assoc_mgr_assoc_list != NULL) {
		rebuild();
		source = take_up(state, entries, count, file_charged_to);
		for_each_row(look_at_loaded);
	}
	assoc_mgr_unlock(&read_assoc);
	unsaved = true;
	pthread_mutex_unlock(&mutex);
	free(entries);
	if (source != NULL)
		info("priority/budget: multifactor's own usage of %zu associations is taken %s",
		     row_count, source);
	books_save(slurm_conf.state_save_location);
}

/* --- a tick of multifactor --- */

/* What multifactor multiplies all usage with, by its own formula. */
static double decay_until(time_t start)
{
	double half_life = (double)slurm_conf.priority_decay_hl;
	double per_second = half_life > 0 ? 1 - 0.693 / half_life : 1;
	double decay;

	if (charged_to == 0 || start <= charged_to)
		return 1;
	decay = pow(per_second, difftime(start, charged_to));
	return decay < DBL_MIN ? DBL_MIN : decay;
}

/* Puts the budget's usage back into usage_raw, or takes note of what stands
 * there as long as the budget has not said anything. */
static void put_back(struct row *row, slurmdb_assoc_rec_t *assoc)
{
	if (row->published)
		assoc->usage->usage_raw = row->written;
	else
		row->written = assoc->usage->usage_raw;
}

void books_begin_tick(time_t start)
{
	assoc_mgr_lock_t write_assoc = {.assoc = WRITE_LOCK};
	double decay;

	pthread_mutex_lock(&mutex);
	assoc_mgr_lock(&write_assoc);
	if (assoc_mgr_assoc_list != NULL) {
		follow_list();
		for_each_row(put_back);
	}
	assoc_mgr_unlock(&write_assoc);
	decay = decay_until(start);
	for (size_t i = 0; decay != 1 && i < row_count; i++)
		rows[i].own *= decay;
	if (start > charged_to)
		charged_to = start;
	unsaved = true;
}

void books_end_tick(void)
{
	pthread_mutex_unlock(&mutex);
}

/* The chain of a job's association up to the root account. */
static void put_back_chain(slurmdb_assoc_rec_t *assoc)
{
	for (; assoc != NULL; assoc = assoc->usage->parent_assoc_ptr) {
		struct row *row = row_of(assoc->id);

		if (row != NULL)
			put_back(row, assoc);
	}
}

static void add_gain(struct row *row, long double gain)
{
	if (gain > 0) {
		row->own += gain;
		unsaved = true;
	}
}

void books_take_gain(job_record_t *job)
{
	assoc_mgr_lock_t write_assoc = {.assoc = WRITE_LOCK};
	slurmdb_assoc_rec_t *assoc = job->assoc_ptr;
	struct row *row;

	if (assoc == NULL)
		return;
	assoc_mgr_lock(&write_assoc);
	row = row_of(assoc->id);
	if (row != NULL) {
		add_gain(row, assoc->usage->usage_raw - row->written);
		row->wall = assoc->usage->grp_used_wall;
	}
	put_back_chain(assoc);
	assoc_mgr_unlock(&write_assoc);
}

/* --- the end of a job --- */

struct usage_before {
	long double own;
	long double others; /* the root account's less that */
};

static struct usage_before look_before_end(slurmdb_assoc_rec_t *assoc)
{
	assoc_mgr_lock_t read_assoc = {.assoc = READ_LOCK};
	struct usage_before before = {0};
	struct row *row;

	assoc_mgr_lock(&read_assoc);
	row = row_of(assoc->id);
	if (row != NULL)
		look_for_reset(row, assoc);
	else
		follow_list();
	before.own = assoc->usage->usage_raw;
	before.others = assoc_mgr_root_assoc->usage->usage_raw - before.own;
	assoc_mgr_unlock(&read_assoc);
	return before;
}

/* What was added to usage_raw, though a tick may have decayed everything in
 * between: then the others' usage has shrunk by the same factor. */
static long double gain_since(const struct usage_before *before, const slurmdb_assoc_rec_t *assoc)
{
	long double after = assoc->usage->usage_raw;
	long double others = assoc_mgr_root_assoc->usage->usage_raw - after;
	long double decay = before->others > 0 ? others / before->others : 1;
	long double expected = decay_until(time(NULL));

	if (fabsl(decay - expected) > 0.05L * (1 - expected))
		decay = 1; /* no tick: nothing happened, or something was reset */
	return after - before->own * decay;
}

void books_end_job(job_record_t *job, void (*end)(job_record_t *job))
{
	assoc_mgr_lock_t write_assoc = {.assoc = WRITE_LOCK};
	slurmdb_assoc_rec_t *assoc = job->assoc_ptr;
	struct usage_before before;
	struct row *row;

	if (assoc == NULL) {
		end(job);
		return;
	}
	pthread_mutex_lock(&mutex);
	before = look_before_end(assoc);
	end(job);
	assoc_mgr_lock(&write_assoc);
	row = row_of(assoc->id);
	if (row != NULL) {
		add_gain(row, gain_since(&before, assoc));
		row->wall = assoc->usage->grp_used_wall;
	}
	put_back_chain(assoc);
	assoc_mgr_unlock(&write_assoc);
	pthread_mutex_unlock(&mutex);
}

/* --- multifactor's fair tree --- */

/* The usage of a row and of everything below it, in place of the index i. */
static long double *totals(void)
{
	long double *total = need(calloc(row_count + 1, sizeof(*total)));

	for (size_t i = 0; i < row_count; i++)
		for (uint32_t at = (uint32_t)i; rows[i].own > 0 && at != NO_ROW;
		     at = rows[at].parent)
			total[at] += rows[i].own;
	return total;
}

static struct budget_fair_tree_row *fair_tree_rows(void)
{
	struct budget_fair_tree_row *tree = need(calloc(row_count + 1, sizeof(*tree)));
	long double *total = totals();

	for (size_t i = 0; i < row_count; i++)
		tree[i] = (struct budget_fair_tree_row){
		    .id = rows[i].id,
		    .parent_id = rows[i].parent_id,
		    .shares = rows[i].shares,
		    .user = rows[i].user,
		    .usage = total[i],
		};
	free(total);
	return tree;
}

static void show_factors(struct factor *table, size_t count)
{
	struct factor *old;

	if (count > 1)
		qsort(table, count, sizeof(*table), compare_ids);
	pthread_mutex_lock(&factors_mutex);
	old = factors;
	factors = table;
	factor_count = count;
	pthread_mutex_unlock(&factors_mutex);
	free(old);
}

void books_rank(void)
{
	struct budget_fair_tree_row *tree;
	struct factor *table;
	size_t count;

	pthread_mutex_lock(&mutex);
	count = row_count;
	tree = fair_tree_rows();
	pthread_mutex_unlock(&mutex);
	budget_fair_tree(tree, count);
	table = need(calloc(count + 1, sizeof(*table)));
	for (size_t i = 0; i < count; i++)
		table[i] = (struct factor){.id = tree[i].id, .factor = tree[i].fs_factor};
	free(tree);
	show_factors(table, count);
}

double books_factor(uint32_t assoc_id)
{
	const struct factor *found = NULL;
	double factor;

	pthread_mutex_lock(&factors_mutex);
	if (factor_count > 0)
		found = bsearch(&assoc_id, factors, factor_count, sizeof(*factors), compare_ids);
	factor = found != NULL ? found->factor : 0;
	pthread_mutex_unlock(&factors_mutex);
	return factor;
}

/* --- what sshare shows --- */

static void write_share(struct row *row, slurmdb_assoc_rec_t *assoc)
{
	slurmdb_assoc_usage_t *usage = assoc->usage;

	if (!row->published)
		return;
	if (usage->parent_assoc_ptr != NULL)
		usage->shares_norm = row->share.norm_shares;
	usage->usage_raw = row->share.usage_raw;
	usage->usage_norm = row->share.usage_norm;
	usage->usage_efctv = row->share.usage_efctv;
	usage->level_fs = row->share.level_fs;
	usage->fs_factor = row->share.fs_factor;
	row->written = usage->usage_raw;
}

void books_publish(const struct budget_share *shares, size_t count)
{
	assoc_mgr_lock_t write_assoc = {.assoc = WRITE_LOCK};

	pthread_mutex_lock(&mutex);
	assoc_mgr_lock(&write_assoc);
	if (assoc_mgr_assoc_list != NULL) {
		follow_list();
		for (size_t i = 0; i < count; i++) {
			struct row *row = row_of(shares[i].assoc_id);

			if (row != NULL) {
				row->share = shares[i];
				row->published = true;
			}
		}
		for_each_row(write_share);
	}
	assoc_mgr_unlock(&write_assoc);
	pthread_mutex_unlock(&mutex);
}

/* --- the file, and the end --- */

void books_save(const char *folder)
{
	struct books_entry *entries;
	size_t count = 0;
	time_t now_charged_to;

	pthread_mutex_lock(&mutex);
	if (!unsaved) {
		pthread_mutex_unlock(&mutex);
		return;
	}
	entries = need(calloc(row_count + 1, sizeof(*entries)));
	for (size_t i = 0; i < row_count; i++)
		if (rows[i].own > 0)
			entries[count++] =
			    (struct books_entry){.assoc_id = rows[i].id, .usage = rows[i].own};
	now_charged_to = charged_to;
	unsaved = false;
	pthread_mutex_unlock(&mutex);
	books_file_write(folder, entries, count, now_charged_to);
	free(entries);
}

static void give_back(void)
{
	long double *total = totals();
	list_walk_t walk = list_iterator_create(assoc_mgr_assoc_list);
	slurmdb_assoc_rec_t *assoc;
	size_t i = 0;

	while ((assoc = list_next(walk)) != NULL) {
		assoc->usage->usage_raw = total[i];
		if (!rows[i].user && assoc->leaf_usage != NULL)
			assoc->leaf_usage->usage_raw = rows[i].own;
		rows[i].published = false;
		rows[i].written = total[i];
		i++;
	}
	list_iterator_destroy(walk);
	free(total);
}

static void forget(void)
{
	free(rows);
	free(by_id);
	rows = NULL;
	by_id = NULL;
	row_count = 0;
	show_factors(NULL, 0);
}

void books_close(void)
{
	assoc_mgr_lock_t write_assoc = {.assoc = WRITE_LOCK};

	pthread_mutex_lock(&mutex);
	assoc_mgr_lock(&write_assoc);
	if (assoc_mgr_assoc_list != NULL) {
		follow_list();
		give_back();
	}
	assoc_mgr_unlock(&write_assoc);
	forget();
	pthread_mutex_unlock(&mutex);
	if (dump_assoc_mgr_state() == SLURM_SUCCESS)
		books_file_remove(slurm_conf.state_save_location);
}
