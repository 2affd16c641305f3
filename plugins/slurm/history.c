/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Asking sacct; see history.h. `sacct -P` is Slurm's documented form for
 * programs. It prints its header before it asks slurmdbd, so that a header says
 * nothing: an answer counts only with exit status 0 and without a word of
 * slurmdbd's failure.
 */
#define _GNU_SOURCE 1 /* pipe2, posix_spawn_file_actions_addclosefrom_np */
#include <errno.h>
#include <fcntl.h>
#include <features.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugins/slurm/history.h"
#include "plugins/slurm/hold_times.h"

#define PROGRAM "sacct"
#define DEADLINE (600 * (uint64_t)1000000) /* microseconds */
#define MARGIN 60                          /* seconds asked for on both sides of the gap */
#define LONGEST_TEXT ((size_t)1 << 30)
#define CHUNK ((size_t)65536)

extern char **environ;

struct history {
	pid_t pid;    /* 0: none, or it has been waited for */
	int out, err; /* -1: closed */
	uint64_t asked_at;
	enum history_state state;
	char *text;
	size_t size, room;
	char words[1024]; /* the beginning of what it said on stderr */
	size_t word_count;
	char reason[2048];
};

static enum history_state fail(struct history *history, const char *why)
{
	snprintf(history->reason, sizeof(history->reason), "%s", why);
	history->state = HISTORY_FAILED;
	return HISTORY_FAILED;
}

static enum history_state fail_by_error(struct history *history, const char *call, int code)
{
	snprintf(history->reason, sizeof(history->reason), "%s: %s", call, strerror(code));
	history->state = HISTORY_FAILED;
	return HISTORY_FAILED;
}

/* --- the question --- */

static bool changes_output(const char *variable)
{
	static const char *const prefixes[] = {
	    "SACCT_",          "SLURM_TIME_FORMAT=", "SLURM_CONF=",
	    "SLURM_CLUSTERS=", "SLURM_BITSTR_LEN=",  "LC_",
	    "LANG=",           "LANGUAGE=",
	};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(variable, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/* slurmctld's environment but for what changes the output; the array for free(),
 * its strings belong to others. */
static char **make_environment(char *conf)
{
	static char format[] = "SLURM_TIME_FORMAT=%s", language[] = "LC_ALL=C";
	size_t count = 0, kept = 0;
	char **made;

	while (environ[count] != NULL)
		count++;
	made = calloc(count + 4, sizeof(*made));
	if (made == NULL)
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (!changes_output(environ[i]))
			made[kept++] = environ[i];
	made[kept++] = format;
	made[kept++] = language;
	made[kept] = conf;
	return made;
}

/* Slurm's own, or the one found along PATH. */
static const char *program(void)
{
#ifdef SLURM_PREFIX
	if (!access(SLURM_PREFIX "/bin/" PROGRAM, X_OK))
		return SLURM_PREFIX "/bin/" PROGRAM;
#endif
	return PROGRAM;
}

static int spawn(struct history *history, char **arguments, char **environment, int out, int err)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int code;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
#if __GLIBC_PREREQ(2, 34)
	/* It may outlive a killed slurmctld, whose ports it must not keep. */
	posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
#endif
	code = posix_spawnp(&history->pid, program(), &files, &attributes, arguments, environment);
	if (code)
		history->pid = 0;
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return code;
}

/* Starts it with the ends of two pipes; they are closed here in any case. */
static void start(struct history *history, char **arguments, char *conf)
{
	char **environment = make_environment(conf);
	int out[2] = {-1, -1}, err[2] = {-1, -1};
	int code = ENOMEM;

	if (environment != NULL)
		code = pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC) ? errno : 0;
	history->out = out[0];
	history->err = err[0];
	if (!code && (fcntl(out[0], F_SETFL, O_NONBLOCK) || fcntl(err[0], F_SETFL, O_NONBLOCK)))
		code = errno;
	if (!code)
		code = spawn(history, arguments, environment, out[1], err[1]);
	if (code)
		fail_by_error(history, PROGRAM " cannot be started", code);
	if (out[1] >= 0)
		close(out[1]);
	if (err[1] >= 0)
		close(err[1]);
	free(environment);
}

/* Instants as Slurm takes them since long before 22.05: "uts" and UTC seconds, which no
 * change of the local time makes ambiguous. */
static void put_instant(char *text, size_t size, char option, int64_t instant)
{
	snprintf(text, size, "-%cuts%lld", option, (long long)instant);
}

struct history *history_ask(const struct budget_gap *gap, const char *slurm_conf)
{
	char from[40], to[40], format[1024], conf[4096 + 16], delimiter[] = "--delimiter= ";
	char name[] = PROGRAM, options[] = "-aXDP", here[] = "--local", plain[] = "--noconvert";
	char *arguments[] = {name, options, here, plain, delimiter, format, from, to, NULL};
	struct history *history = calloc(1, sizeof(*history));

	if (history == NULL)
		fatal("priority/budget: no memory");
	history->out = history->err = -1;
	history->asked_at = microseconds();
	delimiter[sizeof(delimiter) - 2] = HISTORY_DELIMITER;
	put_instant(from, sizeof(from), 'S', gap->from - MARGIN);
	put_instant(to, sizeof(to), 'E', gap->to + MARGIN);
	snprintf(format, sizeof(format), "--format=%s", budget_engine_accounting_columns());
	snprintf(conf, sizeof(conf), "SLURM_CONF=%s", slurm_conf);
	start(history, arguments, conf);
	return history;
}

/* --- the answer --- */

/* More of what can be read, into `at` with so much room; 0 when the pipe has been
 * closed or is broken, -1 when there is no more for now. */
static ssize_t take(int *pipe, char *at, size_t room)
{
	ssize_t got;

	do
		got = read(*pipe, at, room);
	while (got < 0 && errno == EINTR);
	if (got < 0 && errno == EAGAIN)
		return -1;
	if (got <= 0) {
		close(*pipe);
		*pipe = -1;
		return 0;
	}
	return got;
}

static bool take_text(struct history *history)
{
	for (;;) {
		ssize_t got;

		if (history->room - history->size < CHUNK) {
			size_t room = history->room * 2 + 2 * CHUNK;
			char *text = room <= LONGEST_TEXT ? realloc(history->text, room) : NULL;

			if (text == NULL)
				return false;
			history->text = text;
			history->room = room;
		}
		got = take(&history->out, history->text + history->size, CHUNK);
		if (got <= 0)
			return true;
		history->size += (size_t)got;
	}
}

/* Keeps the beginning of what it says on stderr. */
static void take_words(struct history *history)
{
	char some[1024];
	ssize_t got;

	while ((got = take(&history->err, some, sizeof(some))) > 0) {
		size_t room = sizeof(history->words) - 1 - history->word_count;
		size_t kept = (size_t)got < room ? (size_t)got : room;

		memcpy(history->words + history->word_count, some, kept);
		history->word_count += kept;
	}
}

/* Waits in vain: for a moment at most, until `wake` can be read. */
static void rest(int wake)
{
	struct pollfd fds = {.fd = wake, .events = POLLIN};

	poll(&fds, 1, 10);
}

static bool has_rows(const struct history *history)
{
	const char *end = history->size > 0 ? memchr(history->text, '\n', history->size) : NULL;

	return end != NULL && end + 1 < history->text + history->size;
}

/* Does what it said on stderr tell that slurmdbd did not answer? Complaints about
 * slurm.conf do not. */
static bool tells_of_failure(const char *words)
{
	return strstr(words, "DBD_") != NULL || strstr(words, "slurmdbd") != NULL ||
	       strstr(words, "ersist") != NULL;
}

/* It failed, as its first words say, or its end. */
static enum history_state fail_by_end(struct history *history, int status)
{
	history->words[strcspn(history->words, "\n")] = '\0';
	if (history->words[0] != '\0')
		return fail(history, history->words);
	if (WIFSIGNALED(status))
		snprintf(history->reason, sizeof(history->reason),
			 PROGRAM " was ended by signal %d", WTERMSIG(status));
	else
		snprintf(history->reason, sizeof(history->reason),
			 PROGRAM " ended with exit status %d and %zu bytes of output",
			 WEXITSTATUS(status), history->size);
	history->state = HISTORY_FAILED;
	return HISTORY_FAILED;
}

/* Both pipes are closed: takes its exit status, as soon as there is one. */
static enum history_state judge(struct history *history, int wake)
{
	int status = 0;
	pid_t ended = waitpid(history->pid, &status, WNOHANG);

	if (ended == 0) {
		rest(wake);
		return HISTORY_ASKING;
	}
	history->pid = 0;
	if (ended < 0)
		return fail_by_error(history, "the exit status of " PROGRAM, errno);
	if (!WIFEXITED(status) || WEXITSTATUS(status) || history->size == 0)
		return fail_by_end(history, status);
	if (!has_rows(history) && tells_of_failure(history->words))
		return fail_by_end(history, status);
	history->state = HISTORY_ANSWERED;
	return HISTORY_ANSWERED;
}

enum history_state history_wait(struct history *history, int wake, int milliseconds)
{
	struct pollfd fds[3] = {{.fd = history->out, .events = POLLIN},
				{.fd = history->err, .events = POLLIN},
				{.fd = wake, .events = POLLIN}};

	if (history->state != HISTORY_ASKING)
		return history->state;
	if (microseconds() - history->asked_at > DEADLINE)
		return fail(history, PROGRAM " gave no answer in 10 minutes");
	if (history->out < 0 && history->err < 0)
		return judge(history, wake);
	if (poll(fds, 3, milliseconds) < 0 && errno != EINTR)
		return fail_by_error(history, "poll", errno);
	if (history->out >= 0 && !take_text(history))
		return fail(history, "the answer of " PROGRAM " is too long for the memory");
	if (history->err >= 0)
		take_words(history);
	return HISTORY_ASKING;
}

const char *history_text(const struct history *history, size_t *size)
{
	*size = history->size;
	return history->text;
}

const char *history_reason(const struct history *history)
{
	return history->reason;
}

void history_end(struct history *history)
{
	if (history->out >= 0)
		close(history->out);
	if (history->err >= 0)
		close(history->err);
	if (history->pid > 0) {
		kill(history->pid, SIGKILL);
		waitpid(history->pid, NULL, 0);
	}
	free(history->text);
	free(history);
}
