/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What differs between Slurm's releases, in this one file: the only one that
 * may look at SLURM_VERSION_NUMBER. Also which of slurmctld's symbols may be
 * missing, since sshare loads priority plugins too. 22.05 is run and tested by
 * contrib/check; docs/releases.md says for each later one what was compiled,
 * what was run and what was only read.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_COMPAT_H
#define SLURM_BUDGET_PLUGINS_SLURM_COMPAT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include "src/common/assoc_mgr.h"
#include "src/common/list.h"
#include "src/common/log.h"
#include "src/common/xmalloc.h"
#include "src/common/xstring.h"
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 2, 0)
#include "src/slurmctld/burst_buffer.h"
#else
#include "src/interfaces/burst_buffer.h"
#endif
#if __has_include("src/common/job_features.h") /* once a part of slurmctld.h */
#include "src/common/job_features.h"
#endif
#ifndef FEATURE_OP_XOR /* its newer name */
#define FEATURE_OP_XOR FEATURE_OP_MOR
#endif
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 2, 0)
#include "src/common/gres.h"
#include "src/slurmctld/preempt.h"
#else
#include "src/interfaces/gres.h"
#include "src/interfaces/preempt.h"
#endif
#include "src/slurmctld/job_scheduler.h"
#include "src/slurmctld/locks.h"
#include "src/slurmctld/slurmctld.h"

/* The release this is compiled for, as plugins state it. */
#define COMPILED_FOR_SLURM SLURM_VERSION_NUMBER

/* Data of slurmctld: absent (address NULL) in every other process. Functions
 * need no such note, they are bound when first called. */
extern struct xlist *job_list __attribute__((weak));
extern time_t last_job_update __attribute__((weak));
extern int slurmctld_tres_cnt __attribute__((weak));
extern part_record_t *default_part_loc __attribute__((weak));
extern void *acct_db_conn __attribute__((weak));
extern slurmctld_config_t slurmctld_config __attribute__((weak));
extern bitstr_t *avail_node_bitmap __attribute__((weak));
extern struct xlist *resv_list __attribute__((weak));
extern void *acct_db_conn __attribute__((weak));

static inline bool in_slurmctld(void)
{
	return &job_list != NULL;
}

static inline bool slurmctld_is_ending(void)
{
	return slurmctld_config.shutdown_time != 0;
}

/* priority_p_get_priority_factors_list: what Slurm passes, and what to pass on. */
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(24, 5, 0)
#define FACTORS_LIST_PARAMETERS priority_factors_request_msg_t *request, uid_t uid
#define FACTORS_LIST_ARGUMENTS request, uid
#else
#define FACTORS_LIST_PARAMETERS uid_t uid
#define FACTORS_LIST_ARGUMENTS uid
#endif

/* Up to 22.05 the plugin locks for its list of factors, later the caller does. */
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 2, 0)
#define FACTORS_LIST_LOCKS 1
#else
#define FACTORS_LIST_LOCKS 0
#endif

/* What fini() returns: from 25.11 on nothing. */
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(25, 11, 0)
#define FINI_RESULT int
#define FINI_DONE SLURM_SUCCESS
#else
#define FINI_RESULT void
#define FINI_DONE
#endif

/* What Slurm passes to job_modify: from 23.11 on a refusal has a text. */
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 11, 0)
#define JOB_MODIFY_PARAMETERS job_desc_msg_t *desc, job_record_t *job, uint32_t uid
#define JOB_MODIFY_MESSAGE NULL
#else
#define JOB_MODIFY_PARAMETERS job_desc_msg_t *desc, job_record_t *job, uint32_t uid, char **err_msg
#define JOB_MODIFY_MESSAGE err_msg
#endif

/* Is it a user in a job description, or the mark that none is named? */
static inline bool names_user(uint32_t user_id)
{
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 11, 0)
	return user_id != NO_VAL;
#else
	return user_id != NO_VAL && user_id != SLURM_AUTH_NOBODY;
#endif
}

/* What a job record's details are. */
#define JOB_DETAILS __typeof__(*((job_record_t *)0)->details)

/* Is the user a coordinator of this account? No association lock held. */
static inline bool is_coordinator(uid_t uid, char *account)
{
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 11, 0)
	return account != NULL && assoc_mgr_is_user_acct_coord(acct_db_conn, uid, account);
#else
	return account != NULL && assoc_mgr_is_user_acct_coord(acct_db_conn, uid, account, false);
#endif
}

/* From 23.11 a plugin's thread starts on Slurm's word. */
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 11, 0)
#define HAVE_THREAD_START 0
#else
#define HAVE_THREAD_START 1
#endif

/* Up to 24.11 a preempt plugin is asked for everything through one function. */
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(25, 5, 0)
#define HAVE_PREEMPT_GET_DATA 1
#else
#define HAVE_PREEMPT_GET_DATA 0
#endif

/* The job's weighted factors: flat up to 22.05, then nested in what is sent. */
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 2, 0)
typedef priority_factors_object_t job_factors_t;
static inline job_factors_t *factors_of_object(priority_factors_object_t *object)
{
	return object;
}
static inline double object_direct_priority(const priority_factors_object_t *object)
{
	return object->direct_prio;
}
#else
typedef priority_factors_t job_factors_t;
static inline job_factors_t *factors_of_object(priority_factors_object_t *object)
{
	return object->prio_factors;
}
static inline double object_direct_priority(const priority_factors_object_t *object)
{
	return object->direct_prio;
}
#endif

static inline uint32_t object_job_id(const priority_factors_object_t *object)
{
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(26, 5, 0)
	return object->job_id;
#else
	return object->step_id.job_id;
#endif
}

/* An iterator over one of Slurm's lists. */
typedef struct listIterator *list_walk_t;

/* --- the numbers of a job in several partitions, one for each; from 24.11 one
 * for each pair of partition and QOS. Where they stand has been renamed in the
 * middle of two releases. --- */

#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(24, 5, 0)
#elif SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(24, 11, 0)
#define NUMBERS part_prio
#define NUMBERS_NAMES priority_array_parts
#elif SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(24, 11, 7) ||                                       \
    SLURM_VERSION_NUMBER == SLURM_VERSION_NUM(25, 5, 0)
#define NUMBERS part_prio
#define NUMBERS_NAMES priority_array_names
#else
#define NUMBERS prio_mult
#define NUMBERS_NAMES priority_array_names
#endif

static inline int job_number_count(const job_record_t *job)
{
	int partitions = job->part_ptr_list != NULL ? list_count(job->part_ptr_list) : 0;
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(24, 11, 0)
	return partitions;
#else
	int qos = job->qos_list != NULL ? list_count(job->qos_list) : 0;

	return partitions > 0 && qos > 0 ? partitions * qos : partitions + qos;
#endif
}

/* Where they stand; NULL if nowhere yet, or if there is not room for all: 24.11
 * before .7 cuts them off when it splits an array, and no release makes room
 * when other QOS are asked for. */
static inline uint32_t *job_numbers(const job_record_t *job)
{
	size_t needed = (size_t)job_number_count(job) * sizeof(uint32_t);
#ifndef NUMBERS
	uint32_t *numbers = job->priority_array;
#else
	uint32_t *numbers = job->NUMBERS != NULL ? job->NUMBERS->priority_array : NULL;
#endif

	return needed > 0 && numbers != NULL && xsize(numbers) >= needed ? numbers : NULL;
}

/* Takes them away, so that they can be made anew. */
static inline void job_numbers_drop(job_record_t *job)
{
#ifndef NUMBERS
	xfree(job->priority_array);
#else
	if (job->NUMBERS == NULL)
		return;
	xfree(job->NUMBERS->priority_array);
	xfree(job->NUMBERS->NUMBERS_NAMES);
	xfree(job->NUMBERS);
#endif
}

/* Makes room for all. From 24.05 the partitions' names stand beside them, and
 * who prints a job as JSON crashes where there are numbers without names. */
static inline void job_numbers_make(job_record_t *job)
{
	uint32_t *numbers = xcalloc((size_t)job_number_count(job) + 1, sizeof(uint32_t));

	job_numbers_drop(job);
#ifndef NUMBERS
	job->priority_array = numbers;
#else
	job->NUMBERS = xmalloc(sizeof(*job->NUMBERS));
	job->NUMBERS->priority_array = numbers;
	job->NUMBERS->last_update = time(NULL);
	if (job->part_ptr_list != NULL)
		job->NUMBERS->NUMBERS_NAMES = part_list_to_xstr(job->part_ptr_list);
#endif
}

/* The priority of the job's QOS, of several (from 24.11) the highest: its qos_ptr
 * is then the one that was tried last. Caller: read lock on QOS. */
static inline uint32_t job_qos_priority(const job_record_t *job)
{
	uint32_t priority = job->qos_ptr != NULL ? job->qos_ptr->priority : 0;
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
	list_walk_t walk;
	slurmdb_qos_rec_t *qos;

	if (job->qos_list == NULL)
		return priority;
	walk = list_iterator_create(job->qos_list);
	while ((qos = list_next(walk)) != NULL)
		if (priority < qos->priority)
			priority = qos->priority;
	list_iterator_destroy(walk);
#endif
	return priority;
}

/* --- exclusive use, a number up to 23.11, bits from 24.05 on. Of a segment of
 * the topology that is kept (24.05) only the job's own nodes are known. Job
 * details must be there. --- */

static inline bool asks_whole_nodes(const job_record_t *job)
{
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(24, 5, 0)
	return job->details->whole_node == WHOLE_NODE_REQUIRED;
#else
	return job->details->whole_node & WHOLE_NODE_REQUIRED;
#endif
}

static inline bool keeps_nodes_for_owner(const job_record_t *job)
{
	if (job->part_ptr != NULL && (job->part_ptr->flags & PART_FLAG_EXCLUSIVE_USER))
		return true;
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(24, 5, 0)
	return job->details->whole_node == WHOLE_NODE_USER ||
	       job->details->whole_node == WHOLE_NODE_MCS;
#else
	return (job->details->whole_node & (WHOLE_NODE_USER | WHOLE_NODE_MCS)) ||
	       IS_JOB_WHOLE_TOPO(job);
#endif
}

/* Reasons have been added behind WAIT_RESV_DELETED, some in the middle of a
 * release, their numbers being the same in all: an invalid reservation, failing
 * constraints, and MaxTRESRunMins of QOS up to here. What follows waits for nodes. */
#define LAST_BLOCKING_REASON (WAIT_RESV_DELETED + 20)
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
_Static_assert(LAST_BLOCKING_REASON == (int)WAIT_QOS_MAX_UNK_RUN_MINS_PER_USER,
	       "the reasons are numbered as before");
#endif

/* From 23.11.5 slurmctld keeps job states in a table of their own beside the
 * records, which squeue may be answered from. */
static inline void set_pending(job_record_t *job)
{
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 11, 5)
	job->job_state = JOB_PENDING;
#else
	job_state_set(job, JOB_PENDING);
#endif
}

/* Splits the first pending task off; returns the record of the rest. */
static inline job_record_t *split_array(job_record_t *job)
{
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(24, 11, 0)
	return job_array_split(job);
#else
	return job_array_split(job, true);
#endif
}

#endif
