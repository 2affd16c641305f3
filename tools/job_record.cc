// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reading and updating jobs; see job_record.h.
#include "job_record.h"

#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "common/time_text.h"

namespace budget {

namespace {

constexpr std::uint32_t kLargestTask = 4000000;

std::string text_of(const char* text) {
    return text != nullptr ? text : "";
}

std::optional<std::uint32_t> number(std::string_view text) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

// 1, 1-3 or 1-9:2
bool add_range(std::string_view text, std::vector<std::uint32_t>& tasks) {
    const std::size_t colon = text.find(':');
    const std::optional<std::uint32_t> step = colon == std::string_view::npos ? 1 : number(text.substr(colon + 1));
    text = text.substr(0, colon);
    const std::size_t dash = text.find('-');
    const std::optional<std::uint32_t> first = number(text.substr(0, dash));
    const std::optional<std::uint32_t> last = dash == std::string_view::npos ? first : number(text.substr(dash + 1));
    if (!first || !last || !step || *step == 0 || *first > *last || *last > kLargestTask) return false;
    for (std::uint32_t task = *first; task <= *last; task += *step) tasks.push_back(task);
    return true;
}

// Ranges by commas, perhaps with a throttle behind (%5), which Slurm shows as well.
std::optional<std::vector<std::uint32_t>> tasks_in(std::string_view text) {
    std::vector<std::uint32_t> tasks;
    text = text.substr(0, text.find('%'));
    while (!text.empty()) {
        const std::string_view range = text.substr(0, text.find(','));
        text.remove_prefix(std::min(range.size() + 1, text.size()));
        if (!add_range(range, tasks)) return std::nullopt;
    }
    std::sort(tasks.begin(), tasks.end());
    if (tasks.empty()) return std::nullopt;
    return tasks;
}

bool overlap(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
    auto i = a.begin();
    for (auto j = b.begin(); i != a.end() && j != b.end();) {
        if (*i == *j) return true;
        if (*i < *j)
            ++i;
        else
            ++j;
    }
    return false;
}

bool is_meant(const JobName& name, const slurm_job_info_t& job) {
    if (name.part) return job.het_job_id == name.id && job.het_job_offset == *name.part;
    if (name.tasks.empty()) return true;
    if (job.array_task_id != NO_VAL) return std::binary_search(name.tasks.begin(), name.tasks.end(), job.array_task_id);
    const auto pending = tasks_in(text_of(job.array_task_str));
    // A list that Slurm has cut short cannot be read to its end: the job may be meant.
    return !pending || overlap(name.tasks, *pending);
}

std::string name_of(const slurm_job_info_t& job) {
    if (job.het_job_id != 0 && job.het_job_id != NO_VAL)
        return std::to_string(job.het_job_id) + "+" + std::to_string(job.het_job_offset);
    if (job.array_job_id == 0 || job.array_job_id == NO_VAL) return std::to_string(job.job_id);
    const std::string array = std::to_string(job.array_job_id) + "_";
    if (job.array_task_id != NO_VAL) return array + std::to_string(job.array_task_id);
    return array + "[" + text_of(job.array_task_str) + "]";
}

// By number, as Slurm shows them.
std::string state_text(std::uint32_t state) {
    constexpr const char* kStates[] = {"PENDING", "RUNNING",   "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED",
                                       "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE",  "OUT_OF_MEMORY"};
    return state < std::size(kStates) ? kStates[state] : "UNKNOWN";
}

JobRecord copied(const slurm_job_info_t& job) {
    const std::uint32_t state = job.job_state & JOB_STATE_BASE;
    JobRecord record{.name = name_of(job), .state = state_text(state), .uid = job.user_id};
    record.pending = state == JOB_PENDING;
    record.active = state == JOB_RUNNING || state == JOB_SUSPENDED;
    record.start = job.start_time;
    if (state == JOB_SUSPENDED)
        record.ran = job.pre_sus_time;
    else if (job.suspend_time > 0)  // of the last resume
        record.suspended_before = std::max<Seconds>(job.suspend_time - job.start_time - job.pre_sus_time, 0);
    if (job.time_limit != NO_VAL && job.time_limit != INFINITE) record.time_limit = job.time_limit * kMinute;
    record.partitions = text_of(job.partition);
    record.qos = text_of(job.qos);
    record.tag = read_tag(text_of(job.admin_comment));
    return record;
}

JobFailure failure_of(const std::string& job) {
    const int error = errno;
    if (error == ESLURM_INVALID_JOB_ID)
        return {4, "there is no job " + job + ", or it is not shown to you (one that has ended: sacct -j " + job +
                       " -o AdminComment)"};
    if (error == ESLURM_ACCESS_DENIED || error == ESLURM_USER_ID_MISSING)
        return {1, "job " + job + " is another's: its owner or an operator may change it"};
    if (error > 0 && error < SLURM_COMMUNICATIONS_CONNECTION_ERROR)
        return {3, std::string("slurmctld cannot be asked: ") + slurm_strerror(error)};
    return {error >= ESLURM_INVALID_PARTITION_NAME ? 1 : 3,
            "job " + job + ": slurmctld says: " + slurm_strerror(error)};
}

}  // namespace

Result<JobName> JobName::parse(std::string_view text) {
    const Error wrong{printable(text) + " is no job: write 5, 5_3, 5_[1-3,7] or 5+1"};
    JobName name{.text = std::string(text)};
    const std::size_t end = text.find_first_of("_+");
    const std::optional<std::uint32_t> id = number(text.substr(0, end));
    if (!id || *id == 0) return wrong;
    name.id = *id;
    if (end == std::string_view::npos) return name;
    std::string_view rest = text.substr(end + 1);
    if (text[end] == '+') {
        name.part = number(rest);
        return name.part ? Result<JobName>(name) : wrong;
    }
    if (rest == "*") return name;
    if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
    const auto tasks = rest.find('%') == std::string_view::npos ? tasks_in(rest) : std::nullopt;
    if (!tasks) return wrong;
    name.tasks = *tasks;
    return name;
}

std::variant<std::vector<JobRecord>, JobFailure> read_jobs(const JobName& name) {
    job_info_msg_t* reply = nullptr;
    if (slurm_load_job(&reply, name.id, SHOW_ALL) != SLURM_SUCCESS) {
        JobFailure failure = failure_of(name.text);
        if (failure.code == 1) failure.code = 3;
        return failure;
    }
    std::vector<JobRecord> records;
    for (std::uint32_t i = 0; i < reply->record_count; i++)
        if (is_meant(name, reply->job_array[i])) records.push_back(copied(reply->job_array[i]));
    slurm_free_job_info_msg(reply);
    if (records.empty()) return JobFailure{4, "there is no job " + name.text};
    return records;
}

std::optional<JobFailure> send_minimum(const JobName& name, const std::string& minimum) {
    std::string job = name.text;
    std::string comment = "min-runtime=" + minimum;
    job_desc_msg_t update;
    slurm_init_job_desc_msg(&update);
    update.job_id_str = job.data();
    update.comment = comment.data();
    job_array_resp_msg_t* answers = nullptr;
    if (slurm_update_job2(&update, &answers) != SLURM_SUCCESS) return failure_of(job);
    std::optional<JobFailure> failure;
    for (std::uint32_t i = 0; answers != nullptr && i < answers->job_array_count; i++)
        if (answers->error_code[i] != SLURM_SUCCESS && !failure)
            failure = {1, "job " + text_of(answers->job_array_id[i]) +
                              ": slurmctld says: " + slurm_strerror(static_cast<int>(answers->error_code[i]))};
    if (answers != nullptr) slurm_free_job_array_resp(answers);
    return failure;
}

}  // namespace budget
