// SPDX-License-Identifier: GPL-2.0-or-later
//
// The minimum runtime of a job; see contract.h. Every text here is read by a
// person who has just been refused, or given something else than was asked for:
// option, value, what to write instead, and where. Durations in seconds.
#include "contract.h"

#include <algorithm>
#include <utility>

#include "time_text.h"

namespace budget {

namespace {

constexpr std::string_view kOption = "--min-runtime";
constexpr Seconds kExample = 2 * kHour;  // in texts, where the site lets it

std::string option_with(Seconds minimum) {
    return std::string(kOption) + "=" + format_duration(minimum);
}

std::string example(const Parameters& parameters) {
    return option_with(std::min(kExample, parameters.max_min_runtime));
}

bool is_listed(const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool has_exempt_place(const ContractRequest& request, const Parameters& parameters) {
    return request.never_victim || is_exempt(request.partitions, request.qos, parameters);
}

Seconds within_limit(Seconds minimum, const std::optional<Seconds>& time_limit) {
    return std::max<Seconds>(time_limit ? std::min(minimum, *time_limit) : minimum, 0);
}

ContractAnswer refused(std::string why) {
    ContractAnswer answer;
    answer.refusal = std::move(why);
    return answer;
}

// C1: the minimum as written, or in which words it is refused.
Result<Seconds> read_minimum(std::string_view text, const Parameters& parameters) {
    const Result<Seconds> minimum = parse_duration(text);
    const std::string longest = format_duration(parameters.max_min_runtime);
    const std::string written = std::string(kOption) + "=" + printable(text);
    if (!minimum)
        return Error{written + " is not a time from 0 to " + longest +
                     ": write hours:minutes:seconds, a number with s, m, h or d, or minutes, as in " +
                     example(parameters)};
    if (minimum.value() > parameters.max_min_runtime)
        return Error{written + " is longer than the " + longest + " that this cluster allows: write " +
                     option_with(parameters.max_min_runtime) +
                     " or less (a job may run on after its minimum, until its place is needed)"};
    return minimum.value();
}

// C4, of a minimum that was stated.
std::optional<std::string> beyond_limit(Seconds minimum, const std::optional<Seconds>& time_limit) {
    if (!time_limit || minimum <= *time_limit) return std::nullopt;
    return option_with(minimum) + " is longer than the time limit of " + format_duration(*time_limit) +
           " (from --time, or else the partition's default): write --time=" + format_duration(minimum) +
           " or more, or " + option_with(*time_limit) + " or less";
}

std::string missing_text(const ContractRequest& request, const Parameters& parameters) {
    std::string text = std::string(kOption) + " is missing: say how long the job must not be interrupted, up to " +
                       format_duration(parameters.max_min_runtime) + ", as in " + example(parameters) +
                       " (0 is free of charge, and can be interrupted at any time)";
    if (request.time_min)
        text += "; --time-min is something else: how far Slurm may shorten the time limit to start the job sooner";
    return text;
}

// What the terms are to be, before they are put into an answer.
struct Terms {
    RunClass run_class = RunClass::kAllocated;
    Seconds contract = 0;
};

RunTag tag_of(const Terms& terms) {
    return {.run_class = terms.run_class, .contract = terms.contract};
}

Terms terms_of(Seconds minimum, bool exempt) {
    return {.run_class = minimum > 0 || exempt ? RunClass::kAllocated : RunClass::kUnallocated, .contract = minimum};
}

// C5; nothing where there is a budget, or nobody can tell.
std::optional<ContractAnswer> without_budget(const ContractRequest& request, const Parameters& parameters) {
    if (request.has_budget.value_or(true)) return std::nullopt;
    const std::string why = "the job's account has no budget (a share of 0)";
    if (parameters.no_budget == Parameters::NoBudget::kRefuse)
        return refused(why +
                       ", and this cluster takes no GPU jobs without one: choose another with --account, or ask "
                       "who manages your account's shares");
    ContractAnswer answer;
    answer.tag = RunTag{.run_class = RunClass::kUnallocated};
    answer.notices.push_back(why +
                             ": it is free of charge, comes after all jobs that have one, and can be "
                             "interrupted at any time" +
                             (request.stated ? ", whatever " + std::string(kOption) + " says" : ""));
    return answer;
}

// C1: nothing was stated.
ContractAnswer not_stated(const ContractRequest& request, bool exempt, const Parameters& parameters) {
    ContractAnswer answer;
    if (exempt) {
        answer.tag = tag_of(terms_of(0, true));
    } else if (parameters.missing_min_runtime == Parameters::Missing::kTime) {
        const Seconds minimum = within_limit(parameters.missing_time, request.time_limit);
        answer.tag = tag_of(terms_of(minimum, false));
        answer.notices.push_back(std::string(kOption) + " is missing: taken to be " + format_duration(minimum) +
                                 ", this cluster's default; write what the job needs, up to " +
                                 format_duration(parameters.max_min_runtime) + ", as in " + example(parameters));
    } else if (parameters.missing_min_runtime == Parameters::Missing::kUnallocated) {
        answer.tag = tag_of(terms_of(0, false));
        answer.notices.push_back(std::string(kOption) +
                                 " is missing: the job is free of charge, comes after all jobs with a minimum, and "
                                 "can be interrupted at any time; to prevent that write up to " +
                                 format_duration(parameters.max_min_runtime) + ", as in " + example(parameters));
    } else if (request.in_het_job) {
        answer.tag = tag_of(terms_of(0, false));
        answer.notices.push_back(std::string(kOption) +
                                 " is missing in this part of a heterogeneous job: the largest of its parts counts for "
                                 "all; if no part says one, all are free of charge and can be interrupted at any time");
    } else {
        return refused(missing_text(request, parameters));
    }
    return answer;
}

// C4: backfill must not cut the limit below the minimum.
void raise_time_min(ContractAnswer& answer, const ContractRequest& request) {
    const Seconds contract = answer.tag->contract;
    if (!request.time_min || *request.time_min >= contract) return;
    const Seconds minutes = (contract + kMinute - 1) / kMinute * kMinute;
    answer.time_min = std::max(contract, within_limit(minutes, request.time_limit));
    answer.notices.push_back("--time-min=" + format_duration(*request.time_min) + " is raised to " +
                             format_duration(*answer.time_min) +
                             ": the time limit is not shortened below the minimum runtime");
}

// C7: what preemption does to a job that cannot be requeued. One of an exempt place is never preempted.
void tell_of_end(ContractAnswer& answer, const ContractRequest& request, bool exempt) {
    if (exempt || (request.requeueable && !request.interactive)) return;
    const RunTag& tag = *answer.tag;
    std::string text = request.interactive ? "an interactive job" : "a job with --no-requeue";
    text += " will be ended, not requeued, if its place is needed";
    text += tag.run_class == RunClass::kUnallocated ? ", at any time"
                                                    : " after its minimum runtime of " + format_duration(tag.contract);
    answer.notices.push_back(std::move(text));
}

// C3: the site's QOS for unallocated jobs.
void choose_qos(ContractAnswer& answer, const ContractRequest& request, const Parameters& parameters) {
    if (parameters.unallocated_qos.empty()) return;
    const bool is_there = same_name(request.qos, parameters.unallocated_qos);
    const bool unallocated = answer.tag->run_class == RunClass::kUnallocated;
    answer.in_unallocated_qos = unallocated && !is_there;
    if (!unallocated && is_there)
        answer.notices.push_back("QOS " + parameters.unallocated_qos +
                                 " is this cluster's for jobs without a minimum runtime; the job has one, and is "
                                 "charged: choose another with --qos");
}

ContractAnswer completed(ContractAnswer answer, const ContractRequest& request, const Parameters& parameters) {
    if (answer.refusal || !answer.tag) return answer;
    raise_time_min(answer, request);
    choose_qos(answer, request, parameters);
    return answer;
}

}  // namespace

ContractAnswer settle_contract(const ContractRequest& request, const Parameters& parameters) {
    if (request.system) return {};
    std::optional<Seconds> minimum;
    if (request.stated) {
        const Result<Seconds> read = read_minimum(*request.stated, parameters);
        if (!read) return refused(read.error());
        minimum = read.value();
    }
    if (!request.gpus) {
        ContractAnswer answer;
        if (minimum)
            answer.notices.push_back(std::string(kOption) +
                                     " has no effect: the job asks for no GPUs, and such jobs are neither charged nor "
                                     "interrupted for others");
        return answer;
    }
    const bool exempt = has_exempt_place(request, parameters);
    std::optional<ContractAnswer> answer = without_budget(request, parameters);
    if (!answer && !minimum) answer = not_stated(request, exempt, parameters);
    if (!answer) {
        if (std::optional<std::string> why = beyond_limit(*minimum, request.time_limit)) return refused(*why);
        answer.emplace();
        answer->tag = tag_of(terms_of(*minimum, exempt));
    }
    if (answer->tag) tell_of_end(*answer, request, exempt);
    return completed(*std::move(answer), request, parameters);
}

namespace {

std::string command(Seconds minimum) {
    return "sbudget contract JOB " + option_with(minimum);
}

// C4, of a limit that is to become shorter than the minimum that the job has.
std::string below_contract(Seconds time_limit, Seconds contract) {
    return "a time limit of " + format_duration(time_limit) + " would be shorter than the job's minimum runtime of " +
           format_duration(contract) + ": first lower that, with " + command(time_limit) + " or less";
}

// C6: a pending job with a readable tag, of which nothing new is stated.
ContractAnswer keep_stated(const ContractChange& change, const Parameters& parameters) {
    const ContractRequest& job = change.job;
    const bool exempt = has_exempt_place(job, parameters);
    if (std::optional<ContractAnswer> answer = without_budget(job, parameters)) return *std::move(answer);
    ContractAnswer answer;
    answer.tag = RunTag{.run_class = change.tag->run_class};
    if (change.tag->run_class == RunClass::kUnallocated) return answer;
    if (change.tag->contract <= 0 && !exempt) {
        if (!change.limit_changes) {  // C9: nor did it come from an exempt place just now
            answer.tag = default_terms(job.time_limit, false, parameters);
            return answer;
        }
        answer = not_stated(job, false, parameters);
        if (answer.refusal)
            *answer.refusal += "; where the job is now it needs none: say it there, with " +
                               command(std::min(kExample, parameters.max_min_runtime)) + ", and then move the job";
        return answer;
    }
    const Seconds minimum = std::min(std::max<Seconds>(change.tag->contract, 0), parameters.max_min_runtime);
    if (minimum < change.tag->contract)
        answer.notices.push_back("the job's minimum runtime of " + format_duration(change.tag->contract) + " is now " +
                                 format_duration(minimum) + ", the longest that this cluster allows");
    if (change.limit_changes && job.time_limit && minimum > *job.time_limit)
        return refused(below_contract(*job.time_limit, minimum));
    answer.tag->contract = within_limit(minimum, job.time_limit);
    if (answer.tag->contract == 0 && !exempt) answer.tag->run_class = RunClass::kUnallocated;
    return answer;
}

ContractAnswer amend_pending(const ContractChange& change, const Parameters& parameters) {
    const ContractRequest& job = change.job;
    if (job.stated || !job.gpus) return settle_contract(job, parameters);
    if (change.tag) return completed(keep_stated(change, parameters), job, parameters);
    std::optional<ContractAnswer> answer = without_budget(job, parameters);
    if (!answer) {
        answer.emplace();
        answer->tag = default_terms(job.time_limit, has_exempt_place(job, parameters), parameters);
    }
    return completed(*std::move(answer), job, parameters);
}

// C6: may this run's minimum become so? The words of the refusal if not.
std::optional<std::string> change_fault(const ContractChange& change, Seconds minimum) {
    if (change.tag->run_class == RunClass::kUnallocated) {
        if (minimum == 0) return std::nullopt;
        return "this run was started without a minimum runtime, and stays so until it ends: say " +
               option_with(minimum) + " for its next start when it is pending again (scontrol requeue)";
    }
    if (minimum <= change.tag->contract) return std::nullopt;
    if (!change.by_operator)
        return option_with(minimum) + " would lengthen the minimum runtime of a running job, which is " +
               format_duration(change.tag->contract) + ": its owner can make it shorter; ask an operator for more";
    return beyond_limit(minimum, change.job.time_limit);
}

ContractAnswer amend_run(const ContractChange& change, const Parameters& parameters) {
    const ContractRequest& job = change.job;
    ContractAnswer answer;
    answer.tag = change.tag;
    if (answer.tag) answer.tag->contract = std::max<Seconds>(answer.tag->contract, 0);
    if (job.stated) {
        const Result<Seconds> minimum = read_minimum(*job.stated, parameters);
        if (!minimum) return refused(minimum.error());
        if (!change.tag) return refused("the minimum runtime of this run is not known yet: try again in a few seconds");
        if (std::optional<std::string> why = change_fault(change, minimum.value())) return refused(*std::move(why));
        answer.tag->contract = minimum.value();
    }
    if (!answer.tag || !job.time_limit || answer.tag->contract <= *job.time_limit) return answer;
    if (change.limit_changes) return refused(below_contract(*job.time_limit, answer.tag->contract));
    return answer;
}

}  // namespace

ContractAnswer amend_contract(const ContractChange& change, const Parameters& parameters) {
    if (change.job.system) return {};
    if (change.tag && change.tag->contract == kNotAsked) {
        ContractChange unread = change;
        unread.tag.reset();
        return amend_contract(unread, parameters);
    }
    if (change.pending) return amend_pending(change, parameters);
    if (!change.job.gpus) return {};
    return amend_run(change, parameters);
}

RunTag combine_terms(std::span<const std::optional<RunTag>> parts) {
    Terms all{.run_class = RunClass::kUnallocated};
    for (const std::optional<RunTag>& part : parts) {
        if (!part || part->run_class != RunClass::kAllocated) continue;
        all.run_class = RunClass::kAllocated;
        all.contract = std::max(all.contract, part->contract);
    }
    return tag_of(all);
}

RunTag default_terms(const std::optional<Seconds>& time_limit, bool exempt, const Parameters& parameters) {
    if (exempt) return tag_of(terms_of(0, true));
    switch (parameters.missing_min_runtime) {
        case Parameters::Missing::kUnallocated:
            return tag_of(terms_of(0, false));
        case Parameters::Missing::kTime:
            return tag_of(terms_of(within_limit(parameters.missing_time, time_limit), false));
        case Parameters::Missing::kRefuse:
            break;
    }
    return tag_of(terms_of(within_limit(parameters.max_min_runtime, time_limit), false));
}

bool is_exempt(std::string_view partitions, std::string_view qos, const Parameters& parameters) {
    for (const std::string& name : parameters.exempt_qos)
        if (same_name(name, qos)) return true;
    if (partitions.empty()) return false;
    for (;;) {
        const std::size_t comma = partitions.find(',');
        if (!is_listed(parameters.exempt_partition, partitions.substr(0, comma))) return false;
        if (comma == std::string_view::npos) return true;
        partitions.remove_prefix(comma + 1);
    }
}

CommentToken take_token(std::string_view comment) {
    constexpr std::string_view kWord = "min-runtime=";
    constexpr std::string_view kBlanks = " \t\r\n\v\f";
    CommentToken token;
    std::size_t at = 0;
    while (at < comment.size()) {
        const std::size_t end = std::min(comment.find_first_of(kBlanks, at), comment.size());
        const std::string_view word = comment.substr(at, end - at);
        const std::size_t next = std::min(end + 1, comment.size());
        if (word.starts_with(kWord)) {
            if (token.value) *token.value += ',';
            token.value = token.value.value_or("").append(word.substr(kWord.size()));
            if (next == comment.size() && !token.rest.empty()) token.rest.pop_back();  // the blank before it
        } else {
            token.rest.append(comment.substr(at, next - at));
        }
        at = next;
    }
    return token;
}

}  // namespace budget
