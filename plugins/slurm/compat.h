/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What differs between Slurm's releases, in this one file: the only one that
 * may look at SLURM_VERSION_NUMBER. Also which of slurmctld's symbols may be
 * missing, since sshare loads priority plugins too. 22.05 is run and tested;
 * what is said of later releases has been compiled at most.
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
#include "src/slurmctld/locks.h"
#include "src/slurmctld/slurmctld.h"

/* The release this is compiled for, as plugins state it. */
#define COMPILED_FOR_SLURM SLURM_VERSION_NUMBER

/* Data of slurmctld: absent (address NULL) in every other process. Functions
 * need no such note, they are bound when first called. */
extern struct xlist *job_list __attribute__((weak));
extern time_t last_job_update __attribute__((weak));
extern int slurmctld_tres_cnt __attribute__((weak));
extern slurmctld_config_t slurmctld_config __attribute__((weak));

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

/* From 23.11 a plugin's thread starts on Slurm's word. */
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 11, 0)
#define HAVE_THREAD_START 0
#else
#define HAVE_THREAD_START 1
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

/* The numbers of a job in several partitions, one for each (from 25.05 one for
 * each pair of partition and QOS): how many there are, where they stand (NULL:
 * nowhere yet), and making room for them. */
static inline int job_number_count(const job_record_t *job)
{
	int partitions = job->part_ptr_list != NULL ? list_count(job->part_ptr_list) : 0;
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(25, 5, 0)
	return partitions;
#else
	int qos = job->qos_list != NULL ? list_count(job->qos_list) : 0;

	return partitions > 0 && qos > 0 ? partitions * qos : partitions + qos;
#endif
}

static inline uint32_t *job_numbers(const job_record_t *job)
{
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(24, 5, 0)
	return job->priority_array;
#elif SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(25, 5, 0)
	return job->part_prio != NULL ? job->part_prio->priority_array : NULL;
#else
	return job->prio_mult != NULL ? job->prio_mult->priority_array : NULL;
#endif
}

static inline void job_numbers_make(job_record_t *job)
{
	uint32_t *numbers = xcalloc((size_t)job_number_count(job) + 1, sizeof(uint32_t));

#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(24, 5, 0)
	job->priority_array = numbers;
#elif SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(25, 5, 0)
	if (job->part_prio == NULL)
		job->part_prio = xmalloc(sizeof(*job->part_prio));
	job->part_prio->priority_array = numbers;
#else
	if (job->prio_mult == NULL)
		job->prio_mult = xmalloc(sizeof(*job->prio_mult));
	job->prio_mult->priority_array = numbers;
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
