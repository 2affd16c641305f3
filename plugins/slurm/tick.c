/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Our thread in slurmctld; see tick.h. Of slurmctld's locks it holds one set at
 * a time: read locks to collect, the job write lock to write numbers, the
 * association lock to publish; none while the engine works.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "plugins/slurm/assoc_view.h"
#include "plugins/slurm/books.h"
#include "plugins/slurm/hold_times.h"
#include "plugins/slurm/keeper.h"
#include "plugins/slurm/node_view.h"
#include "plugins/slurm/number_writer.h"
#include "plugins/slurm/outside.h"
#include "plugins/slurm/stock_tick.h"
#include "plugins/slurm/tag_writer.h"
#include "plugins/slurm/tick.h"

#define SECOND 1000000u
#define SHORTEST_GAP 100000u       /* microseconds between two passes */
#define GAP_PER_HOLD 99u           /* and as many times what the last one held slurmctld up: 1 % */
#define LONGEST_GAP SECOND         /* but no more, so that the order follows within 2 s */
#define LOOK_AFTER 2000u           /* microseconds after the instant at which a contract ends */
#define HISTORY_WAIT (20 * SECOND) /* of the first pass, for what the database has */

static pthread_t thread;
static bool running;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static pthread_cond_t wake;
static bool kicked, stopping;
static struct ended_job *ended_jobs;
static size_t ended_count, ended_room;

/* Of the thread alone. */
static struct job_views views;
static struct node_view nodes;
static uint64_t next_pass; /* earliest, by microseconds() */
static time_t next_look;   /* when somebody's contract or notice ends whom another waits for; 0: none */

void tick_kick(void)
{
	pthread_mutex_lock(&mutex);
	if (running) {
		kicked = true;
		pthread_cond_signal(&wake);
	}
	pthread_mutex_unlock(&mutex);
}

void tick_job_ended(const struct ended_job *ended)
{
	pthread_mutex_lock(&mutex);
	if (running && ended_count == ended_room) {
		ended_room = ended_room * 2 + 64;
		ended_jobs = realloc(ended_jobs, ended_room * sizeof(*ended_jobs));
		if (ended_jobs == NULL)
			fatal("priority/budget: no memory");
	}
	if (running)
		ended_jobs[ended_count++] = *ended;
	pthread_mutex_unlock(&mutex);
}

static void hand_over_ended(void)
{
	struct ended_job *ended;
	size_t count;

	pthread_mutex_lock(&mutex);
	ended = ended_jobs;
	count = ended_count;
	ended_jobs = NULL;
	ended_count = ended_room = 0;
	pthread_mutex_unlock(&mutex);
	for (size_t i = 0; i < count; i++) {
		ended[i].job.rate = gpu_counts_rate(&ended[i].counts);
		budget_engine_job_ended(&ended[i].job);
	}
	free(ended);
}

static void collect(time_t now)
{
	const slurmctld_lock_t read_all = {.job = READ_LOCK, .node = READ_LOCK, .part = READ_LOCK};
	struct node_view before = nodes;

	lock_slurmctld(read_all);
	nodes = node_view_collect();
	job_views_collect(&views, now);
	unlock_slurmctld(read_all);
	if (nodes.shards_per_gpu != before.shards_per_gpu ||
	    nodes.mps_per_gpu != before.mps_per_gpu) {
		gpu_tres_tell_engine(nodes.shards_per_gpu, nodes.mps_per_gpu);
		tick_kick();
	}
}

/* Shows the engine what it needs to know before it hears of runs; false if there
 * are no associations yet. */
static bool show_surroundings(void)
{
	if (gpu_tres_refresh())
		gpu_tres_tell_engine(nodes.shards_per_gpu, nodes.mps_per_gpu);
	return assoc_view_show();
}

static void show_rooms(struct budget_pass *pass)
{
	const struct room_view *rooms = &views.rooms;

	pass->node_count = rooms->node_count;
	pass->open = rooms->open;
	pass->totals = rooms->totals.at;
	pass->total_count = rooms->totals.count;
	pass->holdings = rooms->holdings.at;
	pass->holding_count = rooms->holdings.count;
	pass->others = rooms->others.at;
	pass->other_count = rooms->others.count;
}

/* schedule() only wakes the thread of Slurm's main scheduler. Backfill, which alone places heterogeneous
 * jobs and those behind a blocked one, sleeps until something has changed, and the end of a contract is
 * no change that it could see. */
static uint64_t wake_schedulers(void)
{
	uint64_t held;

	hold_job_lock();
	last_job_update = time(NULL);
	held = release_job_lock(HOLDER_THREAD);
	schedule(false);
	return held;
}

/* P7. The record may have changed since it was viewed. */
static uint64_t send_signals(const struct budget_pass *pass)
{
	if (pass->signal_count == 0)
		return 0;
	hold_job_lock();
	for (size_t i = 0; i < pass->signal_count; i++) {
		const struct budget_signal *run = &pass->signals[i];
		job_record_t *job = find_job_record(run->job_id);

		if (job != NULL && job->restart_cnt == run->restart_count && IS_JOB_RUNNING(job))
			send_job_warn_signal(job, true); /* once in a run */
	}
	return release_job_lock(HOLDER_THREAD);
}

/* Returns for how long it held slurmctld's job write lock. */
static uint64_t pass(void)
{
	struct budget_pass answer = {.now = time(NULL)};
	uint64_t held;

	if (!show_surroundings())
		return 0;
	collect(answer.now);
	hand_over_ended();
	answer.capacity = nodes.capacity;
	answer.jobs = views.jobs;
	answer.job_count = views.count;
	show_rooms(&answer);
	if (!budget_engine_pass(&answer))
		return 0;
	next_look = answer.next_look;
	held = send_signals(&answer); /* first: the notice runs */
	held += number_writer_write(&answer, &views);
	held += tag_writer_write(&answer, &views);
	if (!stock_tick_works())
		outside_lift_all();
	books_publish(answer.shares, answer.share_count);
	if (answer.wake_scheduler)
		held += wake_schedulers();
	budget_pass_free(&answer);
	keeper_note_pass();
	return held;
}

static struct timespec to_timespec(uint64_t instant)
{
	return (struct timespec){.tv_sec = (time_t)(instant / SECOND),
				 .tv_nsec = (long)(instant % SECOND) * 1000};
}

/* The first pass is to know what was used before: waits until the keeper has
 * fetched it, or has failed to. */
static void wait_for_history(void)
{
	uint64_t deadline = microseconds() + HISTORY_WAIT;
	struct timespec until = to_timespec(deadline);
	bool late = false;

	show_surroundings();
	collect(time(NULL));
	keeper_begin();
	pthread_mutex_lock(&mutex);
	while (!stopping && !keeper_is_settled() && !late) {
		pthread_cond_timedwait(&wake, &mutex, &until);
		late = microseconds() >= deadline;
	}
	late = late && !stopping && !keeper_is_settled();
	pthread_mutex_unlock(&mutex);
	if (late)
		info("priority/budget: history has not come from the accounting database "
		     "within 20 s: until it does jobs are ordered by what is known without it");
}

/* A second after the last pass, or sooner if a contract ends before that. */
static uint64_t regular_pass(uint64_t last_pass)
{
	uint64_t due = last_pass + SECOND, look;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (next_look <= now.tv_sec)
		return due;
	look = microseconds() + (uint64_t)(next_look - now.tv_sec) * SECOND -
	       (uint64_t)now.tv_nsec / 1000 + LOOK_AFTER;
	return look < due ? look : due;
}

/* Waits until a pass is due; false if there is none any more. */
static bool wait_for_pass(uint64_t last_pass)
{
	struct timespec until;
	bool go_on;

	pthread_mutex_lock(&mutex);
	while (!stopping) {
		uint64_t now = microseconds();
		uint64_t due = kicked ? next_pass : regular_pass(last_pass);

		if (due < next_pass)
			due = next_pass;
		if (now >= due)
			break;
		until = to_timespec(due);
		pthread_cond_timedwait(&wake, &mutex, &until);
	}
	kicked = false;
	go_on = !stopping;
	pthread_mutex_unlock(&mutex);
	return go_on;
}

static uint64_t gap_after(uint64_t held)
{
	uint64_t gap = held * GAP_PER_HOLD;

	if (gap < SHORTEST_GAP)
		return SHORTEST_GAP;
	return gap < LONGEST_GAP ? gap : LONGEST_GAP;
}

static void *run(void *nothing)
{
	uint64_t last_pass = 0;

	prctl(PR_SET_NAME, "budget", NULL, NULL, NULL);
	wait_for_history();
	while (wait_for_pass(last_pass)) {
		uint64_t held;

		if (slurmctld_is_ending()) {
			last_pass = microseconds();
			continue;
		}
		last_pass = microseconds();
		held = pass();
		hold_times_count_pass(microseconds() - last_pass);
		next_pass = microseconds() + gap_after(held);
		hold_times_log();
	}
	return nothing;
}

bool tick_start(void)
{
	pthread_condattr_t attributes;
	bool started;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_lock(&mutex);
	pthread_cond_init(&wake, &attributes);
	stopping = false;
	kicked = true;
	gpu_tres_tell_engine(0, 0);
	started = !pthread_create(&thread, NULL, run, NULL);
	running = started;
	pthread_mutex_unlock(&mutex);
	pthread_condattr_destroy(&attributes);
	if (!started)
		error("priority/budget: no thread can be started: %m");
	return started;
}

void tick_stop(void)
{
	pthread_mutex_lock(&mutex);
	if (!running) {
		pthread_mutex_unlock(&mutex);
		return;
	}
	stopping = true;
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, NULL);
	pthread_mutex_lock(&mutex);
	running = false;
	free(ended_jobs);
	ended_jobs = NULL;
	ended_count = ended_room = 0;
	pthread_mutex_unlock(&mutex);
	pthread_cond_destroy(&wake);
	job_views_free(&views);
	assoc_view_free();
}
