// SPDX-License-Identifier: GPL-2.0-or-later
//
// charge_1m_runs: a million runs on random leaves of a tree of 10,000 leaves, 4 deep,
// overlapping, none mergeable; each start and end is applied in time order as
// it happens, then the window moves once past all of them. Making up the
// load is not measured.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
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
                             .start = load.start(i)};
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

}  // namespace

void bench_charge() {
    Names names;
    const std::vector<budget::Association> associations = ten_thousand_leaves(names);
    const budget::Result<budget::Tree> tree = budget::Tree::build(associations);
    must(tree.ok(), "the tree does not build");
    const Load load = make_load();

    const auto begun = std::chrono::steady_clock::now();
    budget::Ledger ledger(7 * budget::kDay);
    ledger.set_tree(associations, tree.value());
    apply(load, ledger);
    const budget::Wide used = ledger.node_usage()[budget::kRoot].allocated.box;
    ledger.advance(load.end(load.events.back() / 2) + 7 * budget::kDay);
    const budget::Wide left = ledger.node_usage()[budget::kRoot].allocated.box;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;

    budget::Wide charged = 0;
    for (const Load::Run& run : load.runs) charged += budget::Wide{run.gpus} * budget::kGpu * run.length;
    must(used == charged, "the tree's sum is not the runs' sum");
    must(left == 0 && ledger.run_count() == 0, "something stays behind the window");
    std::printf("charge_1m_runs %.3f s\n", taken.count());
}
