// SPDX-License-Identifier: GPL-2.0-or-later
//
// --min-runtime=TIME for sbatch, salloc and srun (rule C1), and in the job, until when
// it is protected (P7). The text is checked here and travels in the job's SPANK
// environment to job_submit/contract; all else is the controller's to decide. Loaded
// into Slurm's commands and slurmstepd, one thread calls; instants are UTC seconds.
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
extern "C" {
#include <slurm/spank.h>
// A constant of C++ is not exported unless it was declared so before.
extern const char plugin_name[];
extern const char plugin_type[];
extern const unsigned int plugin_version;
extern const unsigned int spank_plugin_version;
}
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <string>

#include "common/run_tag.h"
#include "common/time_text.h"

SPANK_PLUGIN(budget, 1)

namespace {

// As Slurm names the option in the job's SPANK environment, and the variable from which it takes the
// option's value in the environment: after those of the script and before those of the command line.
constexpr const char* kEntry = "_SLURM_SPANK_OPTION_budget_min_runtime";
constexpr const char* kSlurmsVariable = "SLURM_SPANK__SLURM_SPANK_OPTION_budget_min_runtime";

// What the job finds in its environment.
constexpr const char* kMinimum = "SLURM_BUDGET_MIN_RUNTIME";
constexpr const char* kUntil = "SLURM_BUDGET_PROTECTED_UNTIL";
constexpr const char* kUntilText = "SLURM_BUDGET_PROTECTED_UNTIL_TEXT";

// How long the start of a job may wait for slurmctld's answer.
constexpr int kPatienceMilliseconds = 4000;

// What one command is told. A heterogeneous job is read part by part.
struct Command {
    std::string variable;                         // SBATCH_MIN_RUNTIME and the like
    std::optional<std::string> from_environment;  // its value
    std::optional<std::string> stated;            // for the part being read
    std::optional<std::string> before;            // what the part before it got
    bool by_option = false;                       // stated in the script or on the command line
    bool is_step = false;                         // srun in an allocation
    bool announced = false;
};
Command command;

bool called_as(const char* name) {
    return strcmp(program_invocation_short_name, name) == 0;
}

const char* variable_of(spank_context_t context) {
    if (context == S_CTX_LOCAL) return "SLURM_MIN_RUNTIME";
    return called_as("salloc") ? "SALLOC_MIN_RUNTIME" : "SBATCH_MIN_RUNTIME";
}

// Takes the default from the environment. What an enclosing job has left there is not ours; what stands in
// kSlurmsVariable without a default of ours is passed over by take_option.
void prepare(spank_context_t context) {
    command = Command{.variable = variable_of(context)};
    command.is_step = context == S_CTX_LOCAL && getenv("SLURM_JOB_ID") != nullptr;
    unsetenv(kEntry);
    const char* value = getenv(command.variable.c_str());
    if (value == nullptr || *value == '\0' || command.is_step) return;
    command.from_environment = value;
    setenv(kSlurmsVariable, value, 1);
}

int take(std::string name, const std::string& text) {
    const budget::Result<budget::Seconds> duration = budget::parse_duration(text);
    if (!duration) {
        slurm_error("%s=%s", name.c_str(), duration.error().c_str());
        return -1;
    }
    command.stated = text;
    return 0;
}

// Slurm reads script, environment and command line, in this order: the last one stands. The environment is
// known by the address of its text; after the first part of a heterogeneous job Slurm has put
// that part's value there.
int take_option(const char* text) {
    if (called_as("scrontab")) {
        slurm_error("--min-runtime: scrontab does not pass it on; write #SCRON --comment=min-runtime=TIME");
        return -1;
    }
    if (text == getenv(kSlurmsVariable))
        return command.from_environment ? take(command.variable, *command.from_environment) : 0;
    command.by_option = true;
    return take("--min-runtime", text);
}

// A part that states nothing has what the one before it has: they share one contract (C7).
void hand_over(spank_t spank) {
    const std::optional<std::string> value = command.stated ? command.stated : command.before;
    if (command.is_step && command.by_option)
        slurm_spank_log(
            "--min-runtime has no effect on a step: it belongs to the job; "
            "sbudget contract %s --min-runtime=TIME changes it",
            getenv("SLURM_JOB_ID"));
    if (value && !command.is_step) {
        spank_job_control_setenv(spank, kEntry, value->c_str(), 1);
        setenv(kEntry, value->c_str(), 1);
    } else {
        spank_job_control_unsetenv(spank, kEntry);
        unsetenv(kEntry);
    }
    command.before = value;
    command.stated.reset();
    command.by_option = false;
}

// --- in the job ---

// What slurmctld says of a job.
struct Report {
    int error = 0;  // of Slurm; -1: no answer in time
    bool tagged = false;
    budget::Seconds minimum = 0;
    budget::Seconds start = 0;
};

Report ask(uint32_t job_id) {
    job_info_msg_t* answer = nullptr;
    if (slurm_load_job(&answer, job_id, SHOW_ALL) != SLURM_SUCCESS) return Report{.error = errno};
    Report report{.error = ESLURM_INVALID_JOB_ID};
    for (uint32_t i = 0; i < answer->record_count; i++) {
        const slurm_job_info_t& job = answer->job_array[i];
        if (job.job_id != job_id) continue;
        const std::optional<budget::RunTag> tag = budget::read_tag(job.admin_comment ? job.admin_comment : "");
        report = Report{.tagged = tag.has_value(), .minimum = tag ? std::max<budget::Seconds>(tag->contract, 0) : 0, .start = job.start_time};
    }
    slurm_free_job_info_msg(answer);
    return report;
}

int milliseconds_now() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<int>((now.tv_sec & 0xfffff) * 1000 + now.tv_nsec / 1000000);
}

// The whole report from the pipe, or an error when the time is over.
Report receive(int pipe) {
    Report report{.error = -1};
    pollfd event{.fd = pipe, .events = POLLIN, .revents = 0};
    const int start = milliseconds_now();
    for (;;) {
        const int left = kPatienceMilliseconds - (milliseconds_now() - start);
        if (left <= 0 || left > kPatienceMilliseconds) return report;
        const int ready = poll(&event, 1, left);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return report;
        Report received{};
        // Less than PIPE_BUF: it comes in one piece.
        if (read(pipe, &received, sizeof received) == static_cast<ssize_t>(sizeof received)) report = received;
        return report;
    }
}

// Asks in a process of its own, which can be ended: Slurm's call knows only its own
// time limit, MessageTimeout, and tries again.
Report ask_in_time(uint32_t job_id) {
    int ends[2];
    if (pipe(ends) != 0) return Report{.error = errno};
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        const Report report = ask(job_id);
        const ssize_t written = write(ends[1], &report, sizeof report);
        _exit(written == static_cast<ssize_t>(sizeof report) ? 0 : 1);
    }
    close(ends[1]);
    const Report report = child > 0 ? receive(ends[0]) : Report{.error = errno};
    close(ends[0]);
    if (child > 0) {
        kill(child, SIGKILL);
        while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    return report;
}

std::string local_time(budget::Seconds instant) {
    const time_t seconds = static_cast<time_t>(instant);
    tm parts{};
    char text[32] = "";
    localtime_r(&seconds, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    return text;
}

// Sets (or with nullptr removes) a variable of the job: of the batch step by SPANK, in srun in its own
// environment, which its tasks get.
void set_in_job(spank_t spank, const char* name, const char* value) {
    const bool remote = spank_context() == S_CTX_REMOTE;
    if (remote && value != nullptr)
        spank_setenv(spank, name, value, 1);
    else if (remote)
        spank_unsetenv(spank, name);
    else if (value != nullptr)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

void announce(spank_t spank) {
    uint32_t job_id = 0;
    for (const char* name : {kMinimum, kUntil, kUntilText}) set_in_job(spank, name, nullptr);
    if (spank_get_item(spank, S_JOB_ID, &job_id) != ESPANK_SUCCESS) return;
    const Report report = ask_in_time(job_id);
    if (report.error != 0) {
        slurm_error("budget: job %u is not told until when it is protected: %s", job_id,
                    report.error < 0 ? "slurmctld gave no answer in time" : slurm_strerror(report.error));
        return;
    }
    if (!report.tagged) return;
    const budget::Seconds until = report.start + report.minimum;
    set_in_job(spank, kMinimum, std::to_string(report.minimum).c_str());
    set_in_job(spank, kUntil, std::to_string(until).c_str());
    set_in_job(spank, kUntilText, local_time(until).c_str());
}

bool is_client() {
    return spank_context() == S_CTX_LOCAL || spank_context() == S_CTX_ALLOCATOR;
}

bool is_batch_step(spank_t spank) {
    uint32_t step = 0;
    return spank_context() == S_CTX_REMOTE && spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS &&
           step == SLURM_BATCH_SCRIPT;
}

int option_given(int, const char* text, int remote) {
    if (remote != 0 || text == nullptr) return 0;
    try {
        return take_option(text);
    } catch (const std::exception& failure) {
        slurm_error("--min-runtime: %s", failure.what());
        return -1;
    }
}

}  // namespace

extern "C" int slurm_spank_init(spank_t spank, int, char**) {
    static char name[] = "min-runtime";
    static char argument[] = "TIME";
    static char usage[] =
        "run undisturbed for at least TIME once started: until then the job is not preempted, and all its GPU time is "
        "charged to the budget. 0: run for free, after all others, and be preempted at any time. TIME is in Slurm's "
        "forms (2:00:00, 1-0; a plain number is minutes) or has a unit (90m, 2h).";
    spank_option option{name, argument, usage, 1, 0, option_given};
    const spank_context_t context = spank_context();
    if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE) return 0;
    try {
        if (is_client()) prepare(context);
    } catch (const std::exception& failure) {
        slurm_error("budget: %s", failure.what());
    }
    return spank_option_register(spank, &option) == ESPANK_SUCCESS ? 0 : -1;
}

extern "C" int slurm_spank_init_post_opt(spank_t spank, int, char**) {
    try {
        if (is_client())
            hand_over(spank);
        else if (is_batch_step(spank))
            announce(spank);
    } catch (const std::exception& failure) {
        slurm_error("budget: %s", failure.what());
    }
    return 0;
}

// In srun, when it has its allocation and before it starts the tasks.
extern "C" int slurm_spank_local_user_init(spank_t spank, int, char**) {
    try {
        if (!command.is_step && !command.announced) {
            command.announced = true;
            announce(spank);
        }
    } catch (const std::exception& failure) {
        slurm_error("budget: %s", failure.what());
    }
    return 0;
}
