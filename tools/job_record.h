// SPDX-License-Identifier: GPL-2.0-or-later
//
// Jobs as people name them (5, 5_3, 5_[1-3,7], 5+1), and what slurmctld knows of them
// that concerns their contract. Instants are UTC seconds. One thread.
#ifndef SLURM_BUDGET_TOOLS_JOB_RECORD_H
#define SLURM_BUDGET_TOOLS_JOB_RECORD_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/result.h"
#include "common/run_tag.h"

namespace budget {

// A job, tasks of an array, or a part of a heterogeneous job.
struct JobName {
    std::uint32_t id = 0;
    std::vector<std::uint32_t> tasks = {};  // ascending; empty: all
    std::optional<std::uint32_t> part = {};
    std::string text = {};  // as Slurm takes it

    // The error says which forms there are.
    static Result<JobName> parse(std::string_view text);
};

struct JobRecord {
    std::string name;   // 5, 5_3, 5_[1-3], 5+1
    std::string state;  // PENDING, RUNNING, ...
    bool pending = false;
    bool active = false;  // has an allocation
    std::uint32_t uid = 0;
    Seconds start = 0;
    Seconds suspended_before = 0;     // how long it was suspended, but for a suspension that lasts
    std::optional<Seconds> ran = {};  // while it is suspended: how long it has run
    std::optional<Seconds> time_limit;
    std::string partitions;
    std::string qos;
    std::optional<RunTag> tag;
};

// Why there is no answer: the exit code, and one line.
struct JobFailure {
    int code;  // 1 refused, 3 no controller, 4 no such job
    std::string message;
};

std::variant<std::vector<JobRecord>, JobFailure> read_jobs(const JobName& name);

// Asks slurmctld for another minimum. Nothing: done.
std::optional<JobFailure> send_minimum(const JobName& name, const std::string& minimum);

}  // namespace budget

#endif
