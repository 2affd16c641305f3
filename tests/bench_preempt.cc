// SPDX-License-Identifier: GPL-2.0-or-later
//
// What Slurm pays for asking whether a job may be stopped: it asks for each record
// of its job list, for each job that it tests. A thousand nodes full of jobs of one
// GPU, and one that wants eight. Records are as large as Slurm's.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "plugins/engine.h"
#include "tests/bench.h"

namespace {

constexpr std::int64_t kNow = 1'800'000'000;
constexpr std::uint32_t kNodes = 1000;
constexpr std::uint32_t kPerNode = 8;
constexpr std::uint32_t kPreemptor = 500'000;
constexpr std::size_t kRecords = 100'000;

// As preempt_contract.c sees one: what it reads stands apart, as in job_record_t.
struct Record {
    char before[600];
    std::uint32_t job_id;
    char between[200];
    std::uint32_t state;
    char further[300];
    std::uint32_t restart_count;
    std::int64_t start;
    char behind[256];
};
constexpr std::uint32_t kRunning = 1;

[[gnu::noinline]] bool preemptable(const Record& victim, std::uint32_t preemptor) {
    if ((victim.state & 0xff) != kRunning) return false;
    return budget_engine_preemptable(preemptor, victim.job_id, victim.restart_count, victim.start);
}

void fill_cluster() {
    const budget_tres tres = {.name = "gpu", .type = nullptr};
    budget_engine_set_tres(&tres, 1, 0, 0);
    budget_engine_configure("");
    const budget_association tree[] = {
        {.id = 1, .parent_id = 0, .shares = 1, .account = "root", .user = "", .partition = ""},
        {.id = 2, .parent_id = 1, .shares = 1, .account = "a", .user = "", .partition = ""},
        {.id = 3, .parent_id = 1, .shares = 1, .account = "b", .user = "", .partition = ""}};
    budget_engine_set_tree(tree, 3);
    budget_engine_use_preemption();
    std::vector<budget_job> jobs;
    std::vector<budget_holding> totals, holdings;
    const std::uint64_t one = 1;
    for (std::uint32_t i = 0; i < kNodes * kPerNode; ++i) {
        budget_job job{};
        job.job_id = i + 1;
        job.assoc_id = 2;
        job.state = BUDGET_JOB_RUNNING;
        job.tasks = 1;
        job.rate = budget_engine_rate(&one, 1);
        job.start = kNow - 7200;
        job.tag = {.readable = true, .allocated = true, .contract = 3600, .rate = 0, .has_reason = false};
        job.first_holding = i;
        job.holding_count = 1;
        jobs.push_back(job);
        holdings.push_back({.node = i / kPerNode, .tres = 0, .gpus = 1, .cpus = 4, .memory = 0});
        if (i % kPerNode == 0)
            totals.push_back({.node = i / kPerNode, .tres = 0, .gpus = kPerNode, .cpus = 64, .memory = 0});
    }
    budget_request request{};
    request.min_nodes = request.max_nodes = 1;
    request.tres = UINT32_MAX;
    request.gpus = kPerNode;
    request.gpu_chunk = 1;
    request.modelled = true;
    budget_job waiting{};
    waiting.job_id = kPreemptor;
    waiting.assoc_id = 3;
    waiting.state = BUDGET_JOB_PENDING;
    waiting.eligible = true;
    waiting.tasks = 1;
    waiting.task_room = UINT32_MAX;
    waiting.priority = 1U << 20;
    waiting.rate = kPerNode * budget_engine_rate(&one, 1);
    waiting.eligible_time = kNow - 60;
    waiting.tag = {.readable = true, .allocated = true, .contract = 3600, .rate = 0, .has_reason = false};
    waiting.request = &request;
    jobs.push_back(waiting);
    const std::unique_ptr<bool[]> open(new bool[kNodes]);
    std::fill_n(open.get(), kNodes, true);
    budget_pass pass{};
    pass.now = kNow;
    pass.capacity = kNodes * waiting.rate;
    pass.jobs = jobs.data();
    pass.job_count = jobs.size();
    pass.node_count = kNodes;
    pass.open = open.get();
    pass.totals = totals.data();
    pass.total_count = totals.size();
    pass.holdings = holdings.data();
    pass.holding_count = holdings.size();
    const auto begin = std::chrono::steady_clock::now();
    budget_engine_pass(&pass);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    budget_pass_free(&pass);
    std::printf("preempt_pass_8k_runs %.1f ms\n", took.count());
}

// The median over rounds of what a question costs, over these records.
double nanoseconds(const std::vector<Record>& records, std::size_t count, int rounds, std::size_t* yes) {
    std::vector<double> each;
    for (int round = 0; round < rounds; ++round) {
        *yes = 0;
        const auto begin = std::chrono::steady_clock::now();
        for (std::size_t i = 0; i < count; ++i) *yes += preemptable(records[i], kPreemptor);
        const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
        each.push_back(took.count() / static_cast<double>(count));
    }
    std::nth_element(each.begin(), each.begin() + rounds / 2, each.end());
    return each[static_cast<std::size_t>(rounds / 2)];
}

}  // namespace

void bench_preempt() {
    fill_cluster();
    std::vector<Record> records(kRecords);
    for (std::size_t i = 0; i < kRecords; ++i) {
        records[i].job_id = static_cast<std::uint32_t>(i + 1);
        records[i].state = kRunning;
        records[i].start = kNow - 7200;
    }
    std::size_t yes = 0;
    const double hot = nanoseconds(records, 64, 20'001, &yes);
    std::printf("preemptable_running %.1f ns\n", hot);
    const double cold = nanoseconds(records, kRecords, 11, &yes);
    std::printf("preemptable_running_cold_100k %.1f ns\n", cold);
    if (yes != kPerNode) std::printf("preemptable_running WRONG: %zu victims instead of %u\n", yes, kPerNode);
    for (Record& record : records) record.state = 3;
    std::printf("preemptable_not_running %.1f ns\n", nanoseconds(records, 64, 20'001, &yes));
    std::printf("preemptable_not_running_cold_100k %.1f ns\n", nanoseconds(records, kRecords, 11, &yes));
}
