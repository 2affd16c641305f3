// SPDX-License-Identifier: GPL-2.0-or-later
//
// What plan() takes on 1,000 nodes of 8 GPUs full of 1-GPU runs of 100 teams, a third of them inside their contract.
// plan_10k_blocked: 10,000 equal jobs of one team that nobody has to give way to. plan_1k_shapes: 1,000 different
// requests of 10 teams with better claims; plan_1k_shapes_stuck: the same where each node has a run inside its
// contract, so that no whole node can be had; every request is for one. Medians of kRuns, in processor time of
// one core.

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "bench.h"
#include "common/preemption.h"

namespace {

using namespace budget;

constexpr int kRuns = 9;
constexpr NodeId kNodes = 1000;
constexpr std::uint32_t kTeams = 100;
constexpr Seconds kNow = 1'700'000'000;

void must(bool held, const char* what) {
    if (held) return;
    std::fprintf(stderr, "bench: %s\n", what);
    std::exit(EXIT_FAILURE);
}

double thread_ms() {
    timespec time{};
    must(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0, "no processor time");
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

struct Site {
    Tree tree;
    std::vector<NodeIndex> leaves;
    std::vector<NodeUsage> usage;
    Parameters parameters;
    std::vector<Holding> totals;
    std::vector<Incumbent> incumbents;
    std::vector<Candidate> candidates;

    Plan decide() const {
        const Surroundings around{.node_count = kNodes, .totals = totals, .open = std::vector<bool>(kNodes, true)};
        return plan(tree, usage, parameters, Rate{kNodes} * 8 * kGpu, around, incumbents, candidates, kNow, 100'000);
    }
};

// Teams 0 to 9 have used nothing.
Site make_site(std::mt19937_64& random) {
    Site site;
    std::vector<std::string> names = {"root"};
    for (std::uint32_t i = 0; i < kTeams; ++i) names.push_back("team" + std::to_string(i));
    std::vector<Association> list = {{.id = 1, .parent_id = 0, .account = names[0]}};
    for (std::uint32_t i = 1; i <= kTeams; ++i)
        list.push_back({.id = i + 1, .parent_id = 1, .account = names[i], .shares = 10});
    Result<Tree> built = Tree::build(list);
    must(built.ok(), "the tree does not build");
    site.tree = std::move(built).value();
    site.usage.resize(site.tree.nodes().size());
    for (std::uint32_t i = 0; i < kTeams; ++i) {
        site.leaves.push_back(site.tree.find(i + 2).value());
        if (i < 10) continue;
        site.usage[site.leaves[i]].allocated.box =
            Wide{kNodes} * 8 * kGpu * site.parameters.window / kTeams * static_cast<Wide>(80 + random() % 40) / 100;
        site.usage[kRoot] += site.usage[site.leaves[i]];
    }
    for (NodeId n = 0; n < kNodes; ++n) {
        site.totals.push_back({.node = n, .room = {8, 64, 512 * 1024}});
        for (std::uint32_t g = 0; g < 8; ++g) {
            Incumbent run;
            run.key = {static_cast<std::uint32_t>(site.incumbents.size() + 1), 0};
            run.leaf = site.leaves[10 + random() % (kTeams - 10)];
            run.rate = kGpu;
            run.start = kNow - static_cast<Seconds>(random() % 36'000);
            run.protected_until = run.start + 2 * kHour;
            run.checkpoint = run.start;
            run.holdings = {{.node = n, .room = {1, 8, 32 * 1024}}};
            site.incumbents.push_back(run);
        }
    }
    return site;
}

Candidate make_job(const Site& site, std::uint32_t id, std::uint32_t team, std::uint32_t gpus) {
    Candidate job;
    job.job_id = 100'000 + id;
    job.leaf = site.leaves[team];
    job.rate = gpus * kGpu;
    job.contract = kHour;
    job.request.max_nodes = 1;
    job.request.gpus = gpus;
    job.request.cpus_per_gpu = 8;
    job.request.allowed.assign(kNodes, true);
    return job;
}

// least, most: how many of the candidates have to preempt.
void measure(const char* name, const Site& site, long least, long most) {
    std::vector<double> taken;
    for (int i = 0; i < kRuns; ++i) {
        const double begun = thread_ms();
        const Plan decided = site.decide();
        taken.push_back(thread_ms() - begun);
        const long preempt = std::count_if(decided.decisions.begin(), decided.decisions.end(),
                                           [](const Decision& d) { return d.outcome == Outcome::kPreempts; });
        must(preempt >= least && preempt <= most, "not as many preempt as should");
    }
    std::nth_element(taken.begin(), taken.begin() + kRuns / 2, taken.end());
    std::printf("%s %.1f ms\n", name, taken[kRuns / 2]);
}

}  // namespace

void bench_preemption() {
    std::mt19937_64 random(20261130);
    Site site = make_site(random);
    for (std::uint32_t i = 0; i < 10'000; ++i) site.candidates.push_back(make_job(site, i, 99, 1));
    site.usage[site.leaves[99]].allocated.box *= 2;  // the worst claim of all
    measure("plan_10k_blocked", site, 0, 0);

    site.candidates.clear();
    for (std::uint32_t i = 0; i < 1000; ++i) {
        site.candidates.push_back(make_job(site, i, i % 10, 1 + i % 8));
        site.candidates.back().request.memory_per_node = 1 + i;
    }
    measure("plan_1k_shapes", site, 800, 1000);

    std::vector<Candidate> singles = site.candidates;
    site.candidates.resize(100);
    for (Candidate& job : site.candidates) {
        job.request.min_nodes = job.request.max_nodes = 2 + job.request.gpus % 3;
        job.request.gpus_per_node = 8;
        job.request.gpus = 8 * job.request.min_nodes;
    }
    measure("plan_100_gangs", site, 40, 100);
    site.candidates = std::move(singles);

    for (NodeId n = 0; n < kNodes; ++n) site.incumbents[8 * n].protected_until = kNow + kHour;
    for (Candidate& job : site.candidates) {
        job.request.gpus = 8;
        job.rate = kGpu;
    }
    measure("plan_1k_shapes_stuck", site, 0, 0);
}
