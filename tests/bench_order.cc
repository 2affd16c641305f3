// SPDX-License-Identifier: GPL-2.0-or-later
//
// order_100k_jobs_10k_leaves: all places of 100,000 pending jobs on a tree of
// 10,000 leaves, 4 deep, sorting included; random usage, rates, contracts, stated
// priorities and eligible times. Medians of kRuns, in processor time of one core.
// order_100k_memory is what the process grows by at its peak inside order(), result
// included, arguments not.

#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "bench.h"
#include "common/claim.h"
#include "common/numbering.h"
#include "common/parameters.h"
#include "common/tree.h"

namespace {

using budget::NodeIndex;
using budget::NodeUsage;
using budget::PendingJob;

constexpr int kRuns = 15;
constexpr std::uint32_t kFanOut = 10;
constexpr std::uint32_t kLeaves = 10'000;
constexpr std::uint32_t kJobs = 100'000;

void must(bool held, const char* what) {
    if (held) return;
    std::fprintf(stderr, "bench: %s\n", what);
    std::exit(EXIT_FAILURE);
}

// Three levels of accounts and one of users, ten to each, with random shares.
budget::Tree make_tree(std::mt19937_64& random) {
    constexpr std::uint32_t kAccounts = 1111;
    std::vector<std::string> accounts;
    std::vector<std::string> users;
    for (std::uint32_t i = 0; i < kAccounts; ++i) accounts.push_back("a" + std::to_string(i));
    for (std::uint32_t i = 0; i < kFanOut; ++i) users.push_back("u" + std::to_string(i));
    std::vector<budget::Association> list;
    const auto shares = [&] { return static_cast<std::uint32_t>(1 + random() % 100); };
    for (std::uint32_t i = 0; i < kAccounts; ++i)
        list.push_back(
            {.id = i + 1, .parent_id = i == 0 ? 0 : (i - 1) / kFanOut + 1, .account = accounts[i], .shares = shares()});
    for (std::uint32_t account = 111; account < kAccounts; ++account)
        for (std::uint32_t u = 0; u < kFanOut; ++u)
            list.push_back({.id = static_cast<std::uint32_t>(list.size() + 1),
                            .parent_id = account + 1,
                            .account = accounts[account],
                            .user = users[u],
                            .shares = shares()});
    budget::Result<budget::Tree> tree = budget::Tree::build(list);
    must(tree.ok(), "the tree does not build");
    return std::move(tree).value();
}

std::vector<NodeIndex> leaves_of(const budget::Tree& tree) {
    std::vector<NodeIndex> leaves;
    for (NodeIndex n = 0; n < tree.nodes().size(); ++n)
        if (tree.node(n).child_count == 0) leaves.push_back(n);
    return leaves;
}

std::vector<NodeUsage> make_usage(const budget::Tree& tree, std::mt19937_64& random) {
    std::vector<NodeUsage> usage(tree.nodes().size());
    for (auto n = static_cast<NodeIndex>(usage.size()); n-- > 0;) {
        if (tree.node(n).child_count == 0 && random() % 4 != 0) {
            usage[n].allocated.running = static_cast<budget::Rate>(random() % 9) * budget::kGpu;
            usage[n].allocated.box = static_cast<budget::Wide>(random() % 8'000'000) * budget::kGpu;
            usage[n].allocated.tapered2 = usage[n].allocated.box * static_cast<budget::Wide>(random() % budget::kDay);
            usage[n].commitment = static_cast<budget::Wide>(usage[n].allocated.running) * (random() % 28'800);
            usage[n].unallocated = usage[n].allocated;
        }
        if (n != budget::kRoot) usage[tree.node(n).parent] += usage[n];
    }
    return usage;
}

struct Case {
    const char* name;
    budget::WindowShape shape = budget::WindowShape::kBox;
    std::uint32_t lead_millis = 0;
    bool one_leaf = false;
    bool mixed = false;  // both classes, and a fifth of the jobs blocked
};

std::vector<PendingJob> make_jobs(const std::vector<NodeIndex>& leaves, const Case& shape, std::mt19937_64& random) {
    std::vector<PendingJob> jobs(kJobs);
    for (std::uint32_t i = 0; i < kJobs; ++i) {
        PendingJob& job = jobs[i];
        job.job_id = 1000 + i;
        job.leaf = shape.one_leaf ? leaves[0] : leaves[random() % leaves.size()];
        job.rate = static_cast<budget::Rate>(1 + random() % 64) * budget::kGpu;
        job.contract = static_cast<budget::Seconds>(random() % 28'800);
        job.qos_priority = static_cast<std::uint32_t>(random() % 3);
        job.nice = static_cast<std::int64_t>(random() % 3) * 100;
        job.eligible_since = 1'700'000'000 + static_cast<budget::Seconds>(random() % 86'400);
        if (shape.mixed) {
            job.run_class = random() % 3 == 0 ? budget::RunClass::kUnallocated : budget::RunClass::kAllocated;
            job.eligible = random() % 5 != 0;
        }
    }
    std::shuffle(jobs.begin(), jobs.end(), random);
    return jobs;
}

// Processor time of this thread in milliseconds, so that other programs count little.
double thread_ms() {
    timespec time{};
    must(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0, "no processor time");
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

// Milliseconds, the median over kRuns calls.
template <typename Call>
double median_ms(Call call) {
    std::vector<double> taken;
    for (int i = 0; i < kRuns; ++i) {
        const double begun = thread_ms();
        call(i);
        taken.push_back(thread_ms() - begun);
    }
    std::nth_element(taken.begin(), taken.begin() + kRuns / 2, taken.end());
    return taken[kRuns / 2];
}

// A field of this process's status in KiB.
double status_kib(const char* field) {
    std::FILE* file = std::fopen("/proc/self/status", "r");
    must(file != nullptr, "no /proc/self/status");
    char line[256];
    double value = -1;
    while (std::fgets(line, sizeof line, file) != nullptr)
        if (std::strncmp(line, field, std::strlen(field)) == 0)
            value = std::strtod(line + std::strlen(field) + 1, nullptr);
    std::fclose(file);
    must(value >= 0, "a field is missing in /proc/self/status");
    return value;
}

// MiB that the process grows by at its peak inside the call, with nothing left
// over in the allocator that the call could use unseen.
template <typename Call>
double peak_mib(Call call) {
    malloc_trim(0);
    std::FILE* file = std::fopen("/proc/self/clear_refs", "w");
    must(file != nullptr && std::fputs("5", file) >= 0 && std::fclose(file) == 0, "the peak cannot be reset");
    const double before = status_kib("VmRSS");
    call();
    return (status_kib("VmHWM") - before) / 1024;
}

// Numbers for the order of one pass, after the order of the pass before it in
// which a tenth of the jobs stood elsewhere.
double renumber_ms(std::mt19937_64& random) {
    constexpr budget::NumberBand kBand{(1U << 30) + (1U << 28), 1U << 31};
    std::vector<std::uint32_t> numbers(kJobs, 0);
    budget::renumber(numbers, kBand);
    for (std::uint32_t i = 0; i < kJobs / 10; ++i) std::swap(numbers[random() % kJobs], numbers[random() % kJobs]);
    std::vector<std::vector<std::uint32_t>> copies(kRuns, numbers);
    std::size_t changed = 0;
    const double taken =
        median_ms([&](int i) { changed = budget::renumber(copies[static_cast<std::size_t>(i)], kBand); });
    must(changed > 0 && changed <= kJobs / 5, "renumbering changed too few or too many");
    must(std::is_sorted(copies[0].rbegin(), copies[0].rend()), "the numbers do not fall");
    return taken;
}

}  // namespace

void bench_order() {
    std::mt19937_64 random(20240229);
    const budget::Tree tree = make_tree(random);
    const std::vector<NodeIndex> leaves = leaves_of(tree);
    must(leaves.size() == kLeaves && tree.node(leaves[0]).depth == 4, "the tree has not the shape it should have");
    const std::vector<NodeUsage> usage = make_usage(tree, random);

    const Case cases[] = {
        {.name = "order_100k_jobs_10k_leaves"},
        {.name = "order_100k_jobs_10k_leaves_tapered", .shape = budget::WindowShape::kTapered},
        {.name = "order_100k_jobs_10k_leaves_lead", .lead_millis = 250},
        {.name = "order_100k_jobs_10k_leaves_mixed", .mixed = true},
        {.name = "order_100k_jobs_1_leaf", .one_leaf = true},
    };
    for (const Case& shape : cases) {
        const std::vector<PendingJob> jobs = make_jobs(leaves, shape, random);
        budget::Parameters parameters;
        parameters.window_shape = shape.shape;
        parameters.lead_millis = shape.lead_millis;
        std::size_t places = 0;
        const double taken = median_ms([&](int) { places = budget::order(tree, usage, jobs, parameters).size(); });
        must(places == kJobs, "not every job has a place");
        std::printf("%s %.1f ms\n", shape.name, taken);
        if (&shape == &cases[0])
            std::printf("order_100k_memory %.1f MiB\n",
                        peak_mib([&] { places = budget::order(tree, usage, jobs, parameters).size(); }));
    }
    std::printf("renumber_100k %.1f ms\n", renumber_ms(random));
}
