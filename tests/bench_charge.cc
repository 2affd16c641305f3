// SPDX-License-Identifier: GPL-2.0-or-later
//
// charge_1m_runs: a million runs on random leaves of a tree of 10,000 leaves, 4 deep,
// overlapping, none mergeable; each start and end is applied in time order as
// it happens, then the window moves once past all of them. CPU time, the best of
// five; making up the load is not measured.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench.h"
#include "common/ledger.h"
#include "common/tree.h"

namespace {

using budget::AssocId;
using budget::Seconds;

constexpr int kFanOut = 10;  // of each of the four levels
constexpr std::uint32_t kRuns = 1'000'000;
constexpr Seconds kBegin = 1'700'000'000;

struct Names {
    std::vector<std::string> account;
    std::vector<std::string> user;
};

// The root, 10, 100 and 1000 accounts, 10 users in each of the last; ids level by level.
std::vector<budget::Association> ten_thousand_leaves(Names& names) {
    for (int i = 0; i < 1111; ++i) names.account.push_back("a" + std::to_string(i));
    for (int i = 0; i < kFanOut; ++i) names.user.push_back("u" + std::to_string(i));
    std::vector<budget::Association> list;
    for (AssocId i = 0; i < 1111; ++i) {
        list.push_back({.id = i + 1, .parent_id = i == 0 ? 0 : (i - 1) / kFanOut + 1, .account = names.account[i]});
    }
    for (AssocId account = 111; account < 1111; ++account) {
        for (AssocId u = 0; u < kFanOut; ++u) {
            list.push_back({.id = static_cast<AssocId>(list.size() + 1),
                            .parent_id = account + 1,
                            .account = names.account[account],
                            .user = names.user[u]});
        }
    }
    return list;
}

struct Load {
    struct Run {
        AssocId assoc;
        std::uint32_t gpus;
        std::uint32_t length;
    };
    std::vector<Run> runs;
    std::vector<std::uint32_t> events;  // by time: 2 i is the start of run i, 2 i + 1 its end

    Seconds start(std::uint32_t i) const { return kBegin + i / 2; }
    Seconds end(std::uint32_t i) const { return start(i) + runs[i].length; }
};

// A start every half second; 1 to 20 minutes long, so that more than a thousand overlap.
Load make_load() {
    std::mt19937_64 random(20240229);
    Load load;
    std::vector<std::pair<Seconds, std::uint32_t>> events;
    for (std::uint32_t i = 0; i < kRuns; ++i) {
        load.runs.push_back({.assoc = static_cast<AssocId>(1112 + random() % 10'000),
                             .gpus = static_cast<std::uint32_t>(1 + random() % 64),
                             .length = static_cast<std::uint32_t>(60 + random() % 1140)});
        events.emplace_back(load.start(i), 2 * i);
        events.emplace_back(load.end(i), 2 * i + 1);
    }
    std::sort(events.begin(), events.end());
    for (const auto& event : events) load.events.push_back(event.second);
    return load;
}

// Shows the ledger each run at its start and at its end.
void apply(const Load& load, budget::Ledger& ledger) {
    for (const std::uint32_t event : load.events) {
        const std::uint32_t i = event / 2;
        budget::RunView view{.key = {.job_id = i + 1},
                             .assoc = load.runs[i].assoc,
                             .rate = load.runs[i].gpus * budget::kGpu,
                             .start = load.start(i),
                             .contract = budget::kHour};
        if (event % 2 == 1) view.end = load.end(i);
        ledger.advance(view.end.value_or(view.start));
        ledger.observe(view);
    }
}

void must(bool held, const char* what) {
    if (held) return;
    std::fprintf(stderr, "bench: %s\n", what);
    std::exit(EXIT_FAILURE);
}

double cpu_seconds() {
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

class ChargeBench {
   public:
    ChargeBench() : associations_(ten_thousand_leaves(names_)), load_(make_load()) {
        auto built = budget::Tree::build(associations_);
        must(built.ok(), "the tree does not build");
        tree_ = std::move(built).value();
        for (const Load::Run& run : load_.runs) charged_ += budget::Wide{run.gpus} * budget::kGpu * run.length;
    }

    // The time in which a new ledger is charged with the load, in seconds.
    double charge() const {
        const double begun = cpu_seconds();
        budget::Ledger ledger(7 * budget::kDay);
        ledger.set_tree(associations_, tree_);
        apply(load_, ledger);
        const budget::NodeUsage used = ledger.node_usage()[budget::kRoot];
        ledger.advance(load_.end(load_.events.back() / 2) + 7 * budget::kDay);
        const budget::NodeUsage left = ledger.node_usage()[budget::kRoot];
        const double taken = cpu_seconds() - begun;
        must(used.allocated.box == charged_, "the tree's sum is not the runs' sum");
        must(used.commitment == 0 && left.allocated.box == 0 && ledger.run_count() == 0, "something stays");
        return taken;
    }

    // The time in which every node of the tree gets its sums, in microseconds.
    double sum_nodes() const {
        constexpr int kRounds = 100;
        budget::Ledger ledger(7 * budget::kDay);
        ledger.set_tree(associations_, tree_);
        for (std::uint32_t i = 0; i < 10'000; ++i) {
            ledger.observe({.key = {.job_id = i + 1}, .assoc = 1112 + i, .rate = budget::kGpu, .start = kBegin});
        }
        ledger.advance(kBegin + budget::kDay);
        budget::Rate running = ledger.running();
        const double begun = cpu_seconds();
        for (Seconds second = 1; second <= kRounds; ++second) {
            ledger.advance(kBegin + budget::kDay + second);
            running += ledger.node_usage()[budget::kRoot].allocated.running;
        }
        const double taken = cpu_seconds() - begun;
        must(running == budget::Rate{kRounds + 1} * 10'000 * budget::kGpu, "some runs are not running");
        return taken / kRounds * 1e6;
    }

   private:
    Names names_;
    std::vector<budget::Association> associations_;
    budget::Tree tree_;
    Load load_;
    budget::Wide charged_ = 0;
};

}  // namespace

void bench_charge() {
    const ChargeBench bench;
    double best = bench.charge();
    for (int i = 1; i < 5; ++i) best = std::min(best, bench.charge());
    std::printf("charge_1m_runs %.3f s\n", best);
    std::printf("sum_10k_leaves %.0f us\n", bench.sum_nodes());
}
