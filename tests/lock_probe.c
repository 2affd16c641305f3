/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * To be preloaded into a slurmctld: for how long a tick of Slurm's own
 * priority/multifactor holds the job write lock. A tick of its fair tree has two
 * such holds; in the first it calls decay_apply_new_usage() for every job, in
 * the second decay_apply_weighted_factors(). The names here win over those in
 * the module, which calls them through its PLT and GOT; a hold is taken from the
 * first such call to the last one (less up to STRIDE calls: a little too short).
 * Only the decay thread counts. Environment: LOCK_PROBE_FILE gets a line per
 * tick, "usage CALLS MICROSECONDS weights CALLS MICROSECONDS"; with
 * LOCK_PROBE_PERIOD=SECONDS the decay thread waits only so long between ticks,
 * under priority/budget, which wraps multifactor, too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MODULE "/priority_multifactor.so"
#define STRIDE 16u /* the clock is read once in so many calls, so that it costs next to nothing */

bool decay_apply_new_usage(void *job, time_t *start);
int decay_apply_weighted_factors(void *job, time_t *start);

struct hold {
	uint64_t calls, first, last;
};

/* Of the decay thread alone. */
static struct hold usage, weights;
static bool (*real_usage)(void *job, time_t *start);
static int (*real_weights)(void *job, time_t *start);

static int (*real_wait)(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until);

/* Past libfaketime. */
static uint64_t microseconds(void)
{
	struct timespec now;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000u + (uint64_t) now.tv_nsec / 1000u;
}

static void note_call(struct hold *hold)
{
	if (hold->calls++ % STRIDE != 0)
		return;
	hold->last = microseconds();
	if (hold->calls == 1)
		hold->first = hold->last;
}

static int find_module(struct dl_phdr_info *object, size_t size, void *path)
{
	size_t length = strlen(object->dlpi_name);

	(void) size;
	if (length < strlen(MODULE) || length >= 4096 || strcmp(object->dlpi_name + length - strlen(MODULE), MODULE) != 0)
		return 0;
	memcpy(path, object->dlpi_name, length + 1);
	return 1;
}

/* The module's own functions; its names are not those that everybody sees. */
static void find_real(void)
{
	char path[4096];
	void *module = NULL, *symbol;

	if (dl_iterate_phdr(find_module, path))
		module = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	symbol = module != NULL ? dlsym(module, "decay_apply_new_usage") : NULL;
	memcpy(&real_usage, &symbol, sizeof(symbol));
	symbol = module != NULL ? dlsym(module, "decay_apply_weighted_factors") : NULL;
	memcpy(&real_weights, &symbol, sizeof(symbol));
	if (real_usage == NULL || real_weights == NULL) {
		fprintf(stderr, "lock_probe: the caller's functions are not found in a loaded %s\n", MODULE + 1);
		abort();
	}
}

bool decay_apply_new_usage(void *job, time_t *start)
{
	if (real_usage == NULL)
		find_real();
	note_call(&usage);
	return real_usage(job, start);
}

int decay_apply_weighted_factors(void *job, time_t *start)
{
	if (real_weights == NULL)
		find_real();
	note_call(&weights);
	return real_weights(job, start);
}

static void write_tick(void)
{
	const char *path = getenv("LOCK_PROBE_FILE");
	FILE *file = path != NULL && usage.calls > 0 ? fopen(path, "ae") : NULL;

	if (file != NULL) {
		fprintf(file, "usage %ju %ju weights %ju %ju\n", (uintmax_t) usage.calls,
			(uintmax_t) (usage.last - usage.first), (uintmax_t) weights.calls,
			(uintmax_t) (weights.last - weights.first));
		fclose(file);
	}
	memset(&usage, 0, sizeof(usage));
	memset(&weights, 0, sizeof(weights));
}

static bool is_decay_thread(void)
{
	static _Thread_local int answer = -1;
	char name[16];

	if (answer < 0)
		answer = prctl(PR_GET_NAME, name) == 0 && strcmp(name, "decay") == 0;
	return answer;
}

/* What the decay thread does between two ticks. */
int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
	const char *period = getenv("LOCK_PROBE_PERIOD");
	struct timespec sooner;

	if (!is_decay_thread())
		return real_wait(cond, mutex, until);
	write_tick();
	if (period == NULL)
		return real_wait(cond, mutex, until);
	clock_gettime(CLOCK_REALTIME, &sooner);
	sooner.tv_sec += atoi(period);
	return real_wait(cond, mutex, &sooner);
}

__attribute__((constructor)) static void find_wait(void)
{
	void *symbol = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");

	if (symbol == NULL) /* where there never was an older one */
		symbol = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
	memcpy(&real_wait, &symbol, sizeof(symbol));
}
