// SPDX-License-Identifier: GPL-2.0-or-later
//
// Showing and changing a contract; see contract.h. slurmctld of 22.05 gives no reason when
// it refuses an update: the same policy code is asked here, before and after.
#include "contract.h"

#include <json-c/json.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <algorithm>

#include <vector>

#include "common/contract.h"
#include "common/parameters.h"
#include "common/time_text.h"
#include "controller.h"
#include "job_record.h"

namespace budget {

namespace {

int fail(const JobFailure& failure) {
    fprintf(stderr, "sbudget contract: %s\n", failure.message.c_str());
    return failure.code;
}

// 14:40:00 if it is today, else 2026-12-01T14:40:00.
std::string clock_text(Seconds instant) {
    const time_t now = time(nullptr);
    const time_t then = static_cast<time_t>(instant);
    tm today{};
    tm parts{};
    localtime_r(&now, &today);
    localtime_r(&then, &parts);
    const bool same_day = today.tm_year == parts.tm_year && today.tm_yday == parts.tm_yday;
    char text[32] = "";
    strftime(text, sizeof text, same_day ? "%H:%M:%S" : "%Y-%m-%dT%H:%M:%S", &parts);
    return text;
}

// Suspended time is none of the contract (U6), so that of a suspended run it cannot be told.
std::optional<Seconds> protected_until(const JobRecord& job) {
    if (!job.active || !job.tag || job.ran) return std::nullopt;
    return job.start + job.suspended_before + job.tag->contract;
}

std::string summary(const JobRecord& job) {
    if (!job.tag || job.tag->contract == kNotAsked)
        return "no minimum runtime is recorded (a job without GPUs, or outside the budgets)";
    const std::string minimum = "minimum " + format_duration(job.tag->contract);
    if (job.tag->run_class == RunClass::kUnallocated)
        return "unallocated: not charged, after all others, may be preempted at any time";
    if (job.pending) return "pending, protected from its start on (" + minimum + ")";
    if (job.ran) {
        const Seconds left = std::max<Seconds>(job.tag->contract - *job.ran, 0);
        return "suspended, protected for " + format_duration(left) + " more once it is resumed (" + minimum + ")";
    }
    const std::optional<Seconds> until = protected_until(job);
    if (!until) return "ended (" + minimum + ")";
    if (*until > time(nullptr)) return "protected until " + clock_text(*until) + " (" + minimum + ")";
    return "not protected any more since " + clock_text(*until) + " (" + minimum + ")";
}

std::string why_preempted(const PreemptedFor& told) {
    std::string text = "last preempted for job " + std::to_string(told.job_id);
    if (!told.account.empty()) text += " of account " + told.account;
    switch (told.reason) {
        case PreemptedFor::Reason::kUnallocated:
            return text + ": it was unallocated";
        case PreemptedFor::Reason::kClaim:
            text += ", which had the better claim (ratio " + millis_text(told.preemptor_ratio_millis) + " against " +
                    millis_text(told.victim_ratio_millis) + ")";
            break;
        case PreemptedFor::Reason::kPriority:
            text += ", which had the higher priority in its own account";
            break;
    }
    return text + ", " + format_duration(told.over) + " after its minimum";
}

void print_text(const std::vector<JobRecord>& jobs) {
    for (const JobRecord& job : jobs) {
        printf("job %s: %s\n", job.name.c_str(), summary(job).c_str());
        if (job.tag && job.tag->preempted) printf("    %s\n", why_preempted(*job.tag->preempted).c_str());
    }
}

json_object* json_of(const PreemptedFor& told) {
    json_object* object = json_object_new_object();
    const bool by_claim = told.reason == PreemptedFor::Reason::kClaim;
    json_object_object_add(object, "for_job", json_object_new_int64(told.job_id));
    json_object_object_add(object, "reason", json_object_new_string(std::string(name_of(told.reason)).c_str()));
    json_object_object_add(object, "account",
                           told.account.empty() ? nullptr : json_object_new_string(told.account.c_str()));
    json_object_object_add(object, "its_ratio_thousandths",
                           by_claim ? json_object_new_int64(told.preemptor_ratio_millis) : nullptr);
    json_object_object_add(object, "own_ratio_thousandths",
                           by_claim ? json_object_new_int64(told.victim_ratio_millis) : nullptr);
    json_object_object_add(object, "seconds_after_minimum", json_object_new_int64(told.over));
    return object;
}

json_object* json_of(const JobRecord& job) {
    json_object* object = json_object_new_object();
    const std::optional<Seconds> until = protected_until(job);
    json_object_object_add(object, "job", json_object_new_string(job.name.c_str()));
    json_object_object_add(object, "state", json_object_new_string(job.state.c_str()));
    const char* run_class = !job.tag                                     ? nullptr
                            : job.tag->run_class == RunClass::kAllocated ? "allocated"
                                                                         : "unallocated";
    json_object_object_add(object, "class", run_class != nullptr ? json_object_new_string(run_class) : nullptr);
    const bool has_minimum = job.tag && job.tag->contract != kNotAsked;
    json_object_object_add(object, "minimum_seconds", has_minimum ? json_object_new_int64(job.tag->contract) : nullptr);
    json_object_object_add(object, "protected_until", until ? json_object_new_int64(*until) : nullptr);
    json_object_object_add(object, "preempted", job.tag && job.tag->preempted ? json_of(*job.tag->preempted) : nullptr);
    return object;
}

void print_json(const std::vector<JobRecord>& jobs) {
    json_object* root = json_object_new_object();
    json_object* list = json_object_new_array();
    for (const JobRecord& job : jobs) json_object_array_add(list, json_of(job));
    json_object_object_add(root, "jobs", list);
    printf("%s\n", json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(root);
}

// C1, C4, C6: in which words this change is refused.
std::optional<std::string> refusal(const JobRecord& job, const std::string& minimum, const Parameters& parameters,
                                   bool by_operator) {
    if (!job.pending && !job.active) return "the job has ended";
    const ContractChange change{
        .job = {.partitions = job.partitions, .qos = job.qos, .stated = minimum, .time_limit = job.time_limit},
        .tag = job.tag,
        .pending = job.pending,
        .by_operator = by_operator,
        .limit_changes = false};
    return amend_contract(change, parameters).refusal;
}

// Who may be an operator is known to slurmctld: before the change the caller is taken for one.
std::optional<std::string> first_refusal(const std::vector<JobRecord>& jobs, const std::string& minimum,
                                         const Parameters& parameters, bool by_operator) {
    for (const JobRecord& job : jobs)
        if (const std::optional<std::string> why = refusal(job, minimum, parameters, by_operator))
            return "job " + job.name + ": " + *why;
    return std::nullopt;
}

// Nothing if it has been changed.
std::optional<JobFailure> change(const JobName& name, const std::vector<JobRecord>& jobs, const std::string& minimum) {
    const Result<Configuration> configuration = read_configuration();
    if (!configuration) return JobFailure{3, configuration.error()};
    if (configuration.value().submit_plugins.find("contract") == std::string::npos)
        return JobFailure{1, "nobody would take it up: slurm.conf lacks JobSubmitPlugins=contract (sbudget doctor)"};
    // The controller judges in any case, also where we cannot read its parameters.
    const Result<Parameters> read = Parameters::parse(configuration.value().priority_parameters);
    const Parameters parameters = read ? read.value() : Parameters{};
    if (const std::optional<std::string> why = first_refusal(jobs, minimum, parameters, true))
        return JobFailure{1, *why};
    for (const JobRecord& job : jobs)
        if (!job.tag)
            return JobFailure{1, "job " + job.name +
                                     ": no minimum runtime is recorded: a job without GPUs has none, and "
                                     "where job_submit/contract is not loaded nobody has"};
    std::optional<JobFailure> failure = send_minimum(name, minimum);
    if (!failure || failure->code != 1 || jobs.front().uid != getuid()) return failure;
    if (const std::optional<std::string> why = first_refusal(jobs, minimum, parameters, false)) failure->message = *why;
    return failure;
}

// Did slurmctld do it?
bool is_changed(const std::vector<JobRecord>& jobs, Seconds minimum) {
    for (const JobRecord& job : jobs)
        if (!job.tag || job.tag->contract != minimum) return false;
    return true;
}

// The one reason that is no refusal is C5.
std::string why_unchanged(const std::vector<JobRecord>& jobs, const std::string& job) {
    for (const JobRecord& one : jobs)
        if (one.tag && one.tag->run_class == RunClass::kUnallocated)
            return "job " + one.name + " stays unallocated: its account has no budget (sshare)";
    return "job " + job + " was not changed: slurmctld's log says why";
}

}  // namespace

int run_contract(const std::string& job, const std::optional<std::string>& minimum, bool json) {
    const Result<JobName> name = JobName::parse(job);
    if (!name) return fail({2, name.error()});
    if (minimum)
        if (const Result<Seconds> duration = parse_duration(*minimum); !duration)
            return fail({2, "--min-runtime=" + duration.error()});
    auto found = read_jobs(name.value());
    if (const auto* failure = std::get_if<JobFailure>(&found)) return fail(*failure);
    if (minimum) {
        if (const std::optional<JobFailure> failure =
                change(name.value(), std::get<std::vector<JobRecord>>(found), *minimum))
            return fail(*failure);
        found = read_jobs(name.value());
        if (const auto* failure = std::get_if<JobFailure>(&found)) return fail(*failure);
        if (!is_changed(std::get<std::vector<JobRecord>>(found), parse_duration(*minimum).value()))
            return fail({1, why_unchanged(std::get<std::vector<JobRecord>>(found), job)});
    }
    const auto& jobs = std::get<std::vector<JobRecord>>(found);
    if (json)
        print_json(jobs);
    else
        print_text(jobs);
    return 0;
}

}  // namespace budget
