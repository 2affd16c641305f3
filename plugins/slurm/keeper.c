/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Keeping state and fetching history; see keeper.h. While an answer of the
 * database is on its way state is saved all the same.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "plugins/engine.h"
#include "plugins/slurm/books.h"
#include "plugins/slurm/history.h"
#include "plugins/slurm/hold_times.h"
#include "plugins/slurm/keeper.h"
#include "plugins/slurm/tick.h"

#define SECOND 1000000u
#define SHORTEST_INTERVAL (5 * SECOND) /* between two saves */
#define INTERVAL_PER_SAVE 100u         /* and as many times what the last one took */
#define LOOK_INTERVAL 1000             /* milliseconds */
#define LAST_MOMENT 100                /* milliseconds */

/* Copies of what slurm.conf says. */
struct configuration {
	char *folder;
	char *slurm_conf;
	char *slurm_user;
};

static pthread_t thread;
static bool running;
static int wake = -1; /* an eventfd */
static _Atomic bool stopping, may_fetch, settled, pass_made;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static struct configuration configured;

static struct configuration used;  /* of the thread alone */
static _Atomic uint64_t next_save; /* earliest, by microseconds() */

static char *copy(const char *text)
{
	char *copied = strdup(text != NULL ? text : "");

	if (copied == NULL)
		fatal("priority/budget: no memory");
	return copied;
}

static void forget(struct configuration *configuration)
{
	free(configuration->folder);
	free(configuration->slurm_conf);
	free(configuration->slurm_user);
	memset(configuration, 0, sizeof(*configuration));
}

void keeper_configure(void)
{
	struct configuration now = {
	    .folder = copy(slurm_conf.state_save_location),
	    .slurm_conf = copy(slurm_conf.slurm_conf),
	    .slurm_user = copy(slurm_conf.slurm_user_name),
	};
	struct configuration before;

	pthread_mutex_lock(&mutex);
	before = configured;
	configured = now;
	pthread_mutex_unlock(&mutex);
	forget(&before);
}

/* Takes a copy, since the other one may be replaced at any time. */
static void read_configuration(void)
{
	forget(&used);
	pthread_mutex_lock(&mutex);
	used.folder = copy(configured.folder);
	used.slurm_conf = copy(configured.slurm_conf);
	used.slurm_user = copy(configured.slurm_user);
	pthread_mutex_unlock(&mutex);
}

/* --- state --- */

static void save_if_due(void)
{
	uint64_t begun = microseconds(), interval;

	if (begun < next_save)
		return;
	read_configuration();
	if (pass_made)
		budget_engine_save(used.folder);
	books_save(used.folder);
	interval = (microseconds() - begun) * INTERVAL_PER_SAVE;
	next_save = microseconds() + (interval > SHORTEST_INTERVAL ? interval : SHORTEST_INTERVAL);
}

/* --- history --- */

static void wake_up(void)
{
	if (running && eventfd_write(wake, 1))
		error("priority/budget: %s: %m", __func__);
}

/* Forgets earlier wake-ups; what they were about is looked at next. */
static void rub_eyes(void)
{
	eventfd_t count;

	(void)eventfd_read(wake, &count);
}

static void rest(int milliseconds)
{
	struct pollfd fds = {.fd = wake, .events = POLLIN};

	poll(&fds, 1, milliseconds);
	rub_eyes();
}

/* Is slurmctld about to end? Whoever ends it may have ended sacct a moment before. */
static bool is_ending(void)
{
	rest(LAST_MOMENT);
	return stopping || slurmctld_is_ending();
}

/* Fetches one part; false if it could not, or there is no time left. */
static bool fetch(const struct budget_gap *gap)
{
	struct history *history;
	enum history_state state = HISTORY_ASKING;
	const char *text;
	size_t size;
	bool filled = false;

	read_configuration();
	history = history_ask(gap, used.slurm_conf);
	while (!stopping && state == HISTORY_ASKING) {
		state = history_wait(history, wake, LOOK_INTERVAL);
		rub_eyes();
		save_if_due();
	}
	if (state == HISTORY_ANSWERED) {
		text = history_text(history, &size);
		filled =
		    budget_engine_fill_gap(gap, text, size, HISTORY_DELIMITER, used.slurm_user);
	} else if (state == HISTORY_FAILED && !is_ending()) {
		budget_engine_gap_failed(time(NULL), history_reason(history));
	}
	history_end(history);
	return filled;
}

/* Fetches what is wanted, part by part, each followed by a pass. */
static void fetch_all(void)
{
	struct budget_gap gap = budget_engine_gap(time(NULL));

	while (!stopping && gap.wanted && fetch(&gap)) {
		tick_kick();
		save_if_due();
		gap = budget_engine_gap(time(NULL));
	}
	if (!settled) {
		settled = true;
		tick_kick();
	}
}

/* --- the thread --- */

static void *run(void *nothing)
{
	prctl(PR_SET_NAME, "budget-keeper", NULL, NULL, NULL);
	while (!stopping) {
		rest(LOOK_INTERVAL);
		if (may_fetch && !stopping)
			fetch_all();
		save_if_due();
	}
	next_save = 0;
	save_if_due();
	return nothing;
}

bool keeper_start(void)
{
	stopping = may_fetch = settled = pass_made = false;
	next_save = 0;
	wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	running = wake >= 0 && !pthread_create(&thread, NULL, run, NULL);
	if (running)
		return true;
	error("priority/budget: the thread that keeps state cannot be started: %m");
	if (wake >= 0)
		close(wake);
	wake = -1;
	return false;
}

void keeper_begin(void)
{
	may_fetch = true;
	wake_up();
}

bool keeper_is_settled(void)
{
	return settled || !running;
}

void keeper_note_pass(void)
{
	if (atomic_exchange(&pass_made, true))
		return;
	next_save = 0; /* soon */
	wake_up();
}

void keeper_stop(void)
{
	if (!running)
		return;
	stopping = true;
	wake_up();
	pthread_join(thread, NULL);
	running = false;
	close(wake);
	wake = -1;
	forget(&used);
	pthread_mutex_lock(&mutex);
	forget(&configured);
	pthread_mutex_unlock(&mutex);
}
