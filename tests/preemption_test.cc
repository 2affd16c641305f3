// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of common/preemption: rows say why, citing rules. Scenes are written as text, see Scene: teams on a few
// nodes of 8 GPUs, runs that hold places, and a queue. At the end random scenes are checked for what every
// decision promises, and the claims ahead are added up a second time, plainly.
#include "common/preemption.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/check_main.h"
#include "tests/scene_text.h"

namespace {

using namespace budget;

constexpr Seconds kNow = 1'000'000;

// Lists by commas; the window is 10 h long.
//   tree:  PATH SHARES USED          p 60 100, p/a 1 30    (GPU-hours charged to it itself)
//   runs:  NAME@PATH NODE=GPUS ...   and the words ends=MINUTES from now (-10 by default: past its contract),
//          started=MINUTES ago (60), checkpoint=MINUTES ago, qos= nice= group=, free: unallocated, exempt
//   jobs:  PATH GPUS                 and the words contract=MINUTES (60), qos= nice= nodes=, free, placed, left,
//          unknown: not modelled; on=NODE alone; part=GROUP of a heterogeneous job of two parts; more than 8 GPUs may
//          be on several nodes; xN: N of them
class Scene {
   public:
    Scene(std::size_t nodes, const std::string& accounts, const std::string& runs, const std::string& jobs) {
        parameters.window = 10 * kHour;
        add_tree(accounts);
        for (NodeId n = 0; n < nodes; ++n) totals.push_back({.node = n, .kind = 0, .room = {8, 64, 512}});
        for (const std::string& run : split(runs, ',')) add_run(run);
        for (const std::string& job : split(jobs, ',')) add_job(job);
    }

    NodeIndex leaf(const std::string& path) const { return tree.find(ids_.at(path)).value(); }

    Plan decide(std::size_t limit = 100000) const {
        const Surroundings around{.node_count = totals.size(),
                                  .totals = totals,
                                  .open = std::vector<bool>(totals.size(), true),
                                  .others = others};
        return plan(tree, usage, parameters, static_cast<Rate>(totals.size()) * 8 * kGpu, around, incumbents,
                    candidates, now, limit);
    }

    // "fits n0 | blocked | preempts n0 n1: x y": with the victims in their order.
    std::string text(const Plan& plan) const {
        const char* const words[] = {"fits", "preempts", "left", "blocked", "never"};
        std::string all;
        for (const Decision& decision : plan.decisions) {
            all += (all.empty() ? "" : " | ") + std::string(words[static_cast<int>(decision.outcome)]);
            for (const Holding& place : decision.places) all += " n" + std::to_string(place.node);
            if (!decision.victims.empty()) all += ":";
            for (const Victim& victim : decision.victims) all += " " + names[victim.incumbent];
        }
        return all;
    }
    std::string text() const { return text(decide()); }

    Tree tree;
    std::vector<NodeUsage> usage;
    Parameters parameters;
    Seconds now = kNow;
    std::vector<Holding> totals;
    std::vector<Holding> others;
    std::vector<std::string> names;  // of the incumbents
    std::vector<Incumbent> incumbents;
    std::vector<Candidate> candidates;

   private:
    void add_tree(const std::string& text) {
        std::vector<Association> list = {{.id = 1, .parent_id = 0, .account = "root"}};
        std::vector<std::string> accounts;
        std::vector<std::pair<std::string, Wide>> used;
        const std::vector<std::string> items = split(text, ',');
        accounts.reserve(items.size());
        ids_["root"] = 1;
        for (const std::string& item : items) {
            const std::vector<std::string> words = split(item, ' ');
            const std::size_t slash = words[0].rfind('/');
            accounts.push_back(words[0]);
            const auto id = static_cast<AssocId>(list.size() + 1);
            ids_[words[0]] = id;
            list.push_back({.id = id,
                            .parent_id = slash == std::string::npos ? 1 : ids_.at(words[0].substr(0, slash)),
                            .account = accounts.back(),
                            .shares = static_cast<std::uint32_t>(std::stoul(words[1]))});
            if (words.size() > 2) used.emplace_back(words[0], std::stoll(words[2]));
        }
        Result<Tree> built = Tree::build(list);
        ck_assert_msg(built.ok(), "the scene has a bad tree: %s", built.ok() ? "" : built.error().c_str());
        tree = std::move(built).value();
        usage.resize(tree.nodes().size());
        for (const auto& [path, hours] : used)
            for (NodeIndex n = leaf(path);; n = tree.node(n).parent) {
                usage[n].allocated.box += hours * kGpu * kHour;
                if (n == kRoot) break;
            }
    }

    void add_run(const std::string& text) {
        const std::vector<std::string> words = split(text, ' ');
        const std::size_t at = words[0].find('@');
        names.push_back(words[0].substr(0, at));
        Incumbent run;
        run.key = {static_cast<std::uint32_t>(names.size()), 0};
        run.leaf = leaf(words[0].substr(at + 1));
        Seconds ends = -10;
        Seconds started = 60;
        std::optional<Seconds> checkpoint;
        for (std::size_t i = 1; i < words.size(); ++i) {
            const std::string key = words[i].substr(0, words[i].find('='));
            const std::string value = words[i].substr(words[i].find('=') + 1);
            if (key == "free")
                run.run_class = RunClass::kUnallocated;
            else if (key == "exempt")
                run.exempt = true;
            else if (key == "ends")
                ends = std::stoll(value);
            else if (key == "started")
                started = std::stoll(value);
            else if (key == "checkpoint")
                checkpoint = std::stoll(value);
            else if (key == "qos")
                run.stated.qos_priority = static_cast<std::uint32_t>(std::stoul(value));
            else if (key == "nice")
                run.stated.nice = std::stoll(value);
            else if (key == "group")
                run.group = std::stoul(value);
            else
                run.holdings.push_back({.node = static_cast<NodeId>(std::stoul(key)),
                                        .kind = 0,
                                        .room = {static_cast<std::uint32_t>(std::stoul(value)), 1, 1}});
        }
        for (const Holding& held : run.holdings) run.rate += held.room.gpus * kGpu;
        run.start = kNow - started * kMinute;
        run.protected_until =
            run.run_class == RunClass::kUnallocated ? run.start : std::max(run.start, kNow + ends * kMinute);
        run.checkpoint = checkpoint ? kNow - *checkpoint * kMinute : run.start;
        incumbents.push_back(run);
    }

    void add_job(const std::string& text) {
        const std::vector<std::string> words = split(text, ' ');
        Candidate job;
        job.leaf = leaf(words[0]);
        job.request.gpus = static_cast<std::uint32_t>(std::stoul(words[1]));
        job.request.max_nodes = job.request.gpus > 8 ? 0 : 1;
        job.rate = job.request.gpus * kGpu;
        job.contract = kHour;
        std::size_t times = 1;
        for (std::size_t i = 2; i < words.size(); ++i) {
            const std::string key = words[i].substr(0, words[i].find('='));
            const std::string value = words[i].substr(words[i].find('=') + 1);
            if (key == "free")
                job.run_class = RunClass::kUnallocated;
            else if (key == "placed")
                job.being_placed = true;
            else if (key == "left")
                job.left_to_slurm = true;
            else if (key == "unknown")
                job.modelled = false;
            else if (key == "contract")
                job.contract = std::stoll(value) * kMinute;
            else if (key == "qos")
                job.stated.qos_priority = static_cast<std::uint32_t>(std::stoul(value));
            else if (key == "nice")
                job.stated.nice = std::stoll(value);
            else if (key == "part")  // of a heterogeneous job of two
                job.group = std::stoul(value), job.parts = 2;
            else if (key == "on") {
                job.request.allowed.assign(totals.size(), false);
                job.request.allowed[std::stoul(value)] = true;
            } else if (key == "nodes")
                job.request.min_nodes = job.request.max_nodes = static_cast<std::uint32_t>(std::stoul(value));
            else
                times = std::stoul(key.substr(1));
        }
        for (std::size_t i = 0; i < times; ++i) {
            job.job_id = static_cast<std::uint32_t>(1000 + candidates.size());
            candidates.push_back(job);
        }
    }

    std::map<std::string, AssocId> ids_;
};

struct Row {
    const char* why;
    std::size_t nodes;
    const char* tree;
    const char* runs;
    const char* jobs;
    const char* expected;
};

// Each of two equal teams on one node is due 40 GPU-hours in the 10 h.
const Row kRows[] = {
    {"what is free comes first", 2, "a 1, b 1 40", "x@b 0=8", "a 8", "fits n1"},
    // P1
    {"P1: an unallocated job preempts nobody", 1, "a 1, b 1 40", "x@b 0=8 free", "a 8 free", "blocked"},
    {"P1: but it fits into what is free", 1, "a 1, b 1 40", "x@b 0=4", "a 4 free", "fits n0"},
    {"P1, C5: without budget nobody preempts", 1, "a 0, b 1 40", "x@b 0=8 free", "a 8", "blocked"},
    {"P1, Q5: not for a part of its places", 2, "a 1, b 1 80", "x@b 0=8 free, y@b 1=8 ends=5", "a 16", "blocked"},
    {"P1, Q5: all at once as soon as both may", 2, "a 1, b 1 80", "x@b 0=8 free, y@b 1=8", "a 16",
     "preempts n0 n1: x y"},
    {"P1: only what it needs", 1, "a 1, b 1 40", "x@b 0=4, y@b 0=4", "a 4", "preempts n0: x"},
    // P2
    {"P2: at any time", 1, "a 1, b 1", "x@b 0=8 free started=0", "a 8", "preempts n0: x"},
    {"P2: that of its own team as well", 1, "a 1 500, b 1", "x@a 0=8 free", "a 8", "preempts n0: x"},
    {"P2: of a better claim as well", 1, "a 1 500, b 1", "x@b 0=8 free", "a 8", "preempts n0: x"},
    {"P2: an exempt one is no victim", 1, "a 1, b 1", "x@b 0=8 free exempt", "a 8", "blocked"},
    // P3
    {"P3: past the contract, for a better claim", 1, "a 1, b 1 40", "x@b 0=8", "a 8", "preempts n0: x"},
    {"P3, C2: not inside the contract", 1, "a 1, b 1 40", "x@b 0=8 ends=1", "a 8", "blocked"},
    {"P3, C2: but at its end", 1, "a 1, b 1 40", "x@b 0=8 ends=0", "a 8", "preempts n0: x"},
    {"P3: equal is not better", 1, "a 1 40, b 1 40", "x@b 0=8", "a 8", "blocked"},
    {"P3: nor is less than the margin", 1, "a 1 100, b 1 105", "x@b 0=8", "a 8", "blocked"},
    {"P3: more than the margin is", 1, "a 1 100, b 1 106", "x@b 0=8", "a 8", "preempts n0: x"},
    {"P3: its own contract does not count", 1, "a 1 30, b 1 40", "x@b 0=8", "a 8 contract=6000", "preempts n0: x"},
    {"P3: that of a job ahead does", 2, "a 1 30, b 1 40", "x@b 0=8, y@b 1=8", "a 8 contract=120, a 8",
     "preempts n0: x | blocked"},
    {"P3: a short one counts as the quantum", 2, "a 1 37, b 1 40", "x@b 0=8, y@b 1=8", "a 8 contract=0, a 8",
     "preempts n0: x | blocked"},
    {"P3: and no more than that", 2, "a 1 36, b 1 40", "x@b 0=8, y@b 1=8", "a 8 contract=0, a 8",
     "preempts n0: x | preempts n1: y"},
    {"P3: that of a blocked job ahead as well", 2, "a 1 30, b 1 40", "x@b 0=8, y@b 1=8 ends=5", "a 16, a 8",
     "blocked | blocked"},
    {"P3: not that of an unallocated one", 2, "a 1 30, b 1 40", "x@b 0=8, y@b 1=8 ends=5", "a 16 free, a 8",
     "blocked | preempts n0: x"},
    {"P3: nor that of an impossible one", 2, "a 1 30, b 1 40", "x@b 0=8, y@b 1=8", "a 24, a 8",
     "never | preempts n0: x"},
    {"P3: nor that of another team", 2, "a 1 30, b 1 40, c 1 30", "x@b 0=8, y@b 1=8", "c 8 contract=600, a 8",
     "preempts n0: x | preempts n1: y"},
    {"P3: that of one whose victims are being stopped, behind it", 2, "a 1 30, b 1 40", "x@b 0=8, y@b 1=8 exempt",
     "a 8, a 8 contract=120 placed", "blocked | blocked"},
    {"P3: which gets no more victims", 2, "a 1, b 1 40", "x@b 0=8, y@b 1=8 exempt", "a 8 placed", "blocked"},
    {"P3: and starts once they have gone", 2, "a 1, b 1 40", "x@b 0=8", "a 8 placed", "fits n1"},
    {"P3: the costs are those of its side of the fork: of its project for a run of another one", 2,
     "p 1, p/a 1 15, p/c 1 15, q 1, q/b 1 40", "x@q/b 0=8, y@q/b 1=8", "p/c 8 contract=120, p/a 8",
     "preempts n0: x | blocked"},
    {"P3: and of its team for one of its project", 2, "p 1, p/a 1 15, p/c 1 15, p/d 1 40, q 1, q/b 1 70",
     "x@p/d 0=8, y@p/d 1=8", "p/c 8 contract=120, p/a 8", "preempts n0: x | preempts n1: y"},
    {"P3: compared where the paths part: of a rich team in a poor project", 1, "p 1, p/a 1 30, p/c 1, q 1, q/b 1 40",
     "x@q/b 0=8", "p/a 8", "preempts n0: x"},
    {"P3: and not of a poor team in a rich project", 1, "p 1, p/a 1, p/c 1 40, q 1, q/b 1 30", "x@q/b 0=8", "p/a 8",
     "blocked"},
    {"P3: the project that has used nothing first, then the team that has used less", 1,
     "p 1, p/a 1 2, p/b 1, q 1, q/c 1", "x@p/a 0=8", "q/c 8, p/b 8", "preempts n0: x | blocked"},
    {"B4: a run whose budget is gone", 1, "a 1 40, b 0", "x@b 0=8", "a 8", "preempts n0: x"},
    {"P3: wrong team: the better claim of another one stays", 2, "a 1 20, b 1 40, c 1 10", "x@c 0=8, y@b 1=8",
     "a 8, a 8", "preempts n1: y | blocked"},
    // P4
    {"P4: equal stated priorities in one team", 1, "a 1, b 1", "x@a 0=8", "a 8", "blocked"},
    {"P4: a higher one", 1, "a 1, b 1", "x@a 0=8", "a 8 qos=1", "preempts n0: x"},
    {"P4: by nice", 1, "a 1, b 1", "x@a 0=8 nice=10", "a 8 nice=5", "preempts n0: x"},
    {"P4: QOS goes before nice", 1, "a 1, b 1", "x@a 0=8 qos=2 nice=10", "a 8 qos=1 nice=5", "blocked"},
    {"P4, C2: only after the contract", 1, "a 1, b 1", "x@a 0=8 ends=1", "a 8 qos=1", "blocked"},
    {"P4, Q3: no effect on another team", 1, "a 1 40, b 1", "x@b 0=8", "a 8 qos=9", "blocked"},
    {"P4: a lower one has the worse stated priority, and the better claim does not help", 1, "a 1, b 1",
     "x@a 0=8 qos=5", "a 8 qos=4", "blocked"},
    {"P4: a later job with a higher one is tried although an equal one has failed", 1, "a 1, b 1", "x@a 0=8 qos=1",
     "a 8 qos=1, a 8 qos=2", "blocked | preempts n0: x"},
    {"alone: ten equal jobs of one team", 1, "a 1", "x@a 0=8", "a 8 x10",
     "blocked | blocked | blocked | blocked | blocked | blocked | blocked | blocked | blocked | blocked"},
    // P5
    {"P5: unallocated, then the worst claim, then the least lost", 1, "a 1, b 1 40, c 1 50",
     "x@b 0=2 started=90, y@c 0=2 started=80, z@c 0=2 ends=-5, u@b 0=2 free started=600", "a 8",
     "preempts n0: u z y x"},
    {"P5: the worst claim where it has the choice", 2, "a 1, b 1 40, c 1 50",
     "x@b 0=8 ends=-1, y@c 1=8 ends=-300 started=400", "a 8", "preempts n1: y"},
    {"P5: the least lost since the last checkpoint", 2, "a 1, b 1 40",
     "x@b 0=8 ends=-30, y@b 1=8 ends=-30 checkpoint=5", "a 8", "preempts n1: y"},
    {"P5: the end of a contract is one", 2, "a 1, b 1 40", "x@b 0=8 started=500 ends=-2, y@b 1=8 started=60 ends=-30",
     "a 8", "preempts n0: x"},
    {"P5: parts of one job as a whole", 2, "a 1, b 1 40", "x@b 0=8 group=3, y@b 1=8 group=3", "a 8",
     "preempts n0: x y"},
    {"P5: or not at all", 2, "a 1, b 1 40", "x@b 0=8 group=3, y@b 1=8 group=3 ends=1", "a 8", "blocked"},
    {"P5: two victims for two jobs, not both for both", 2, "a 1, b 1 40", "x@b 0=8, y@b 1=8", "a 8, a 8",
     "preempts n0: x | preempts n1: y"},
    {"P5: what a victim leaves over goes to the next", 1, "a 1, b 1 40", "x@b 0=8", "a 4, a 4, a 4",
     "preempts n0: x | fits n0 | blocked"},
    {"P5: also to a team that has been blocked before", 1, "a 1 30, b 1 40, c 1 40", "x@b 0=8", "c 4, a 4, c 4",
     "blocked | preempts n0: x | fits n0"},
    // C8
    {"C8, U6: exempt, suspended, being stopped", 1, "a 1, b 1 40", "x@b 0=8 exempt", "a 8", "blocked"},
    // what cannot be seen
    {"left: all rightful victims by P5", 2, "a 1, b 1 40, c 1 50", "x@b 0=4, y@c 0=4, u@b 1=4 free, z@c 1=4 ends=1",
     "a 8 unknown", "left: u y x"},
    {"left: its cost counts for those behind", 2, "a 1 30, b 1 40", "x@b 0=8, y@b 1=8", "a 8 left contract=120, a 8",
     "left: x y | blocked"},
    {"left: an unallocated one has no victims", 1, "a 1, b 1 40", "x@b 0=8 free", "a 8 unknown free", "left"},
    {"left: and no more if Slurm stops some for it already", 1, "a 1, b 1 40", "x@b 0=8", "a 8 left placed", "left"},
    // heterogeneous jobs
    {"Q5: no part of a job preempts before the other can", 2, "a 1, b 1 40", "x@b 0=8, y@b 1=8 ends=50",
     "a 8 on=0 part=1, a 8 on=1 part=1", "blocked | blocked"},
    {"Q5: nor if that one comes first in the queue", 2, "a 1, b 1 40", "x@b 0=8, y@b 1=8 ends=50",
     "a 8 on=1 part=1, a 8 on=0 part=1", "blocked | blocked"},
    {"Q5: then both at once", 2, "a 1, b 1 40", "x@b 0=8, y@b 1=8", "a 8 on=0 part=1, a 8 on=1 part=1",
     "preempts n0: x | preempts n1: y"},
    {"Q5: one into what is free", 2, "a 1, b 1 40", "x@b 0=8", "a 8 on=0 part=1, a 8 on=1 part=1",
     "preempts n0: x | fits n1"},
    {"P3: no part costs the other", 2, "a 1 37, b 1 40", "x@b 0=8, y@b 1=8",
     "a 8 on=0 part=1 contract=600, a 8 on=1 part=1", "preempts n0: x | preempts n1: y"},
    {"P3: but both cost those behind them", 3, "a 1 30, b 1 40", "x@b 0=8, y@b 1=8, z@b 2=8",
     "a 8 on=0 part=1, a 8 on=1 part=1, a 8", "preempts n0: x | preempts n1: y | blocked"},
    {"P5: the parts do not share a victim", 1, "a 1, b 1 40", "x@b 0=8", "a 8 part=1, a 8 part=1", "blocked | blocked"},
    {"Q5: a part that does not wait yet keeps the other back", 2, "a 1, b 1 40", "x@b 0=8", "a 8 on=0 part=1",
     "blocked"},
    {"P3: what a failed job would have had is there for the next", 2, "a 1, c 1, b 1 40", "x@b 0=8, y@b 1=8 ends=50",
     "a 8 on=0 part=1, a 8 on=1 part=1, c 8", "blocked | blocked | preempts n0: x"},
    {"P3: one part's victims are going, the other's go now", 2, "a 1, b 1 40", "y@b 1=8",
     "a 8 on=0 part=1 placed, a 8 on=1 part=1", "fits n0 | preempts n1: y"},
    {"left: a part that cannot be seen, with all rightful victims", 2, "a 1, b 1 40", "x@b 0=8, y@b 1=8",
     "a 8 on=0 part=1, a 8 on=1 part=1 unknown", "preempts n0: x | left: y"},
    {"left: none if the other part has to wait", 2, "a 1, b 1 40", "x@b 0=8 ends=50, y@b 1=8",
     "a 8 on=0 part=1, a 8 on=1 part=1 unknown", "blocked | blocked"},
    // large jobs
    {"an impossible head does not stop the job behind it", 1, "x 1, y 1 40", "v@y 0=4, w@y 0=4", "x 9 nodes=1, x 8",
     "never | preempts n0: v w"},
};

void check_text(const std::string& text, const char* expected) {
    ck_assert_msg(text == expected, "expected %s, got %s", expected, text.c_str());
}

START_TEST(plan_row) {
    const Row& row = kRows[_i];
    const std::string text = Scene(row.nodes, row.tree, row.runs, row.jobs).text();
    ck_assert_msg(text == row.expected, "%s: expected %s, got %s", row.why, row.expected, text.c_str());
}
END_TEST

START_TEST(a_team_that_returns_does_not_empty_the_cluster) {
    // Two equal teams on 32 GPUs, with a window of 1 h, so that 16 GPU-hours are the due of each. A has all 32 GPUs,
    // past their contracts, and a ratio of 1.0. Each of B's 64 jobs costs 1 GPU-hour: 15 x 1.05 < 16 <= 16 x 1.05.
    std::string runs;
    for (int i = 0; i < 32; ++i) runs += "r@a " + std::to_string(i / 8) + "=1,";
    Scene scene(4, "a 1 16, b 1", runs, "b 1 x64");
    scene.parameters.window = kHour;
    const Plan plan = scene.decide();
    for (std::size_t i = 0; i < 64; ++i) {
        const Decision& decision = plan.decisions[i];
        ck_assert_msg(decision.outcome == (i < 16 ? Outcome::kPreempts : Outcome::kBlocked), "P3: job %zu", i);
        if (i >= 16) continue;
        ck_assert_msg(decision.victims.size() == 1, "P5: job %zu", i);
        const Victim& victim = decision.victims[0];
        ck_assert_msg(victim.right == Right::kClaim, "job %zu", i);
        ck_assert_msg(std::fabs(victim.victim_ratio - 1.0) < 1e-9, "A's ratio is %f", victim.victim_ratio);
        ck_assert_msg(std::fabs(victim.preemptor_ratio - static_cast<double>(i) / 16) < 1e-9,
                      "B's ratio with %zu contracts ahead is %f", i, victim.preemptor_ratio);
    }
}
END_TEST

START_TEST(the_example_of_the_manual) {
    // slurm-budget(7), WHO GIVES WAY TO WHOM: 2 x 2,688 GPU-hours are due in 7 days.
    std::string runs = "y0@y 0=8 ends=120,";
    for (int i = 0; i < 8; ++i) runs += "y1@y 1=1 ends=-120 started=180,";
    runs += "y2@y 2=8 ends=-20, z@z 3=5 free, y3@y 3=3 ends=-60 started=180";
    Scene scene(4, "x 1 1000, y 1 1150, z 0", runs, "x 8 contract=480 x4");
    scene.parameters.window = 7 * kDay;
    check_text(scene.text(), "preempts n3: z y3 | preempts n2: y2 | blocked | blocked");
    const std::vector<Victim> victims = scene.decide().decisions[1].victims;
    ck_assert(std::fabs(victims[0].preemptor_ratio - 0.396) < 5e-4 &&
              std::fabs(victims[0].victim_ratio - 0.428) < 5e-4);
}
END_TEST

START_TEST(why_a_victim_gives_way) {
    const Scene scene(1, "a 1 10, b 1 40", "x@b 0=2, y@a 0=3, z@b 0=3 free", "a 8 qos=3");
    const Plan plan = scene.decide();
    check_text(scene.text(plan), "preempts n0: z x y");
    const std::vector<Victim>& victims = plan.decisions[0].victims;
    ck_assert(victims[0].right == Right::kUnallocated && victims[0].victim_ratio == 0);
    ck_assert(victims[1].right == Right::kClaim);
    ck_assert(std::fabs(victims[1].preemptor_ratio - 0.25) < 1e-9 && std::fabs(victims[1].victim_ratio - 1) < 1e-9);
    ck_assert(victims[2].right == Right::kStatedPriority && victims[2].preemptor_ratio == 0);
}
END_TEST

START_TEST(others_are_never_victims) {
    Scene scene(2, "a 1, b 1 80", "x@b 0=8, y@b 1=8 started=500 ends=-100", "a 8");
    scene.candidates[0].request.cpus_per_gpu = 1;
    scene.others = {{.node = 0, .kind = kAnyGpu, .room = {0, 60, 0}}};
    check_text(scene.text(), "preempts n1: y");
    scene.others.push_back({.node = 1, .kind = kAnyGpu, .room = {0, 60, 0}});
    check_text(scene.text(), "blocked");
}
END_TEST

START_TEST(nodes_that_take_no_work) {
    Scene scene(2, "a 1, b 1 80", "x@b 0=8, y@b 1=8 started=500 ends=-100", "a 8");
    const Surroundings around{.node_count = 2, .totals = scene.totals, .open = {false, true}, .others = scene.others};
    const Plan decided =
        plan(scene.tree, scene.usage, scene.parameters, 8 * kGpu, around, scene.incumbents, scene.candidates, kNow, 10);
    check_text(scene.text(decided), "preempts n1: y");
}
END_TEST

START_TEST(no_more_attempts_than_allowed) {
    const Scene scene(2, "a 1, b 1 40", "x@b 0=8, y@b 1=8", "a 8, a 8, a 8");
    check_text(scene.text(scene.decide(0)), "blocked | blocked | blocked");
    check_text(scene.text(scene.decide(1)), "preempts n0: x | blocked | blocked");
    check_text(scene.text(scene.decide(2)), "preempts n0: x | preempts n1: y | blocked");
}
END_TEST

START_TEST(nobody_there) {
    check_text(Scene(0, "a 1", "", "a 1").text(), "never");
    check_text(Scene(1, "a 1", "", "").text(), "");
}
END_TEST

struct LookRow {
    const char* why;
    const char* tree;
    const char* runs;
    const char* jobs;
    int minutes;  // from now; -1: none
};

const LookRow kLookRows[] = {
    {"the end of the contract that is in the way", "a 1, b 1 40", "x@b 0=8 ends=7", "a 8", 7},
    {"the earliest", "a 1, b 1 40, c 1 40", "x@b 0=2 ends=7, y@c 0=2 ends=4, z@c 0=4 ends=9", "a 8", 4},
    {"not of one with the better claim", "a 1 20, b 1 40, c 1", "x@b 0=4 ends=7, y@c 0=4 ends=4", "a 8", 7},
    {"nobody waits", "a 1, b 1 40", "x@b 0=7 ends=7", "a 1", -1},
    {"nobody waits who may preempt", "a 1, b 1 40", "x@b 0=8 ends=7", "a 1 free", -1},
    {"nobody waits who ever fits", "a 1, b 1 40", "x@b 0=8 ends=7", "a 16", -1},
    {"of an exempt run it does not matter", "a 1, b 1 40", "x@b 0=8 ends=7 exempt", "a 8", -1},
    {"P4: of its own team if its stated priority is higher", "a 1", "x@a 0=4 ends=7, y@a 0=4 ends=3 qos=9", "a 8 qos=1",
     7},
    {"P4: for the job behind as well", "a 1", "x@a 0=4 ends=7, y@a 0=4 ends=3 qos=9", "a 8, a 8 qos=1", 7},
    {"P3: the contracts ahead are not forgotten", "a 1 30, b 1 40", "x@b 0=4 ends=7", "a 4 contract=300, a 8", -1},
    {"for what is left to Slurm as well", "a 1, b 1 40", "x@b 0=8 ends=7", "a 8 unknown", 7},
};

START_TEST(look_row) {
    const LookRow& row = kLookRows[_i];
    const Plan plan = Scene(1, row.tree, row.runs, row.jobs).decide();
    const Seconds expected = row.minutes < 0 ? -1 : kNow + row.minutes * kMinute;
    ck_assert_msg(plan.next_look.value_or(-1) == expected, "%s: got %lld", row.why,
                  static_cast<long long>(plan.next_look.value_or(-1) - kNow));
}
END_TEST

// Acts on a plan: victims are requeued behind all others, whoever has places holds them with a new contract.
void act_on(Scene& scene, const Plan& plan, std::vector<int>& stops) {
    std::vector<Incumbent> stay;
    std::vector<std::string> names;
    std::vector<bool> stopped(scene.incumbents.size(), false);
    std::vector<Candidate> queue;
    for (const Decision& decision : plan.decisions)
        for (const Victim& victim : decision.victims) stopped[victim.incumbent] = true;
    for (std::size_t i = 0; i < scene.incumbents.size(); ++i) {
        if (!stopped[i]) {
            stay.push_back(scene.incumbents[i]);
            names.push_back(scene.names[i]);
        }
    }
    for (std::size_t i = 0; i < plan.decisions.size(); ++i) {
        const Candidate& job = scene.candidates[i];
        if (plan.decisions[i].places.empty()) {
            queue.push_back(job);
            continue;
        }
        Incumbent run;
        run.key = {job.job_id, 0};
        run.leaf = job.leaf;
        run.rate = job.rate;
        run.stated = job.stated;
        run.start = scene.now;
        run.protected_until = scene.now + job.contract;
        run.checkpoint = run.start;
        run.holdings = plan.decisions[i].places;
        stay.push_back(run);
        names.push_back(std::to_string(job.job_id));
    }
    for (std::size_t i = 0; i < scene.incumbents.size(); ++i) {
        if (!stopped[i]) continue;
        const Incumbent& victim = scene.incumbents[i];
        Candidate job;
        job.job_id = victim.key.job_id;
        job.leaf = victim.leaf;
        job.rate = victim.rate;
        job.contract = kHour;
        job.stated = victim.stated;
        job.request.max_nodes = 1;
        job.request.gpus = static_cast<std::uint32_t>(victim.rate / kGpu);
        queue.push_back(job);
        ++stops[job.job_id];
    }
    scene.incumbents = stay;
    scene.names = names;
    scene.candidates = queue;
}

START_TEST(nobody_is_stopped_and_started_in_turn) {
    // A job that can never be placed stands first, one that can behind it; both of a team that has used nothing.
    Scene scene(1, "x 1, y 1 80", "v@y 0=4, w@y 0=4", "x 9 nodes=1, x 8");
    std::vector<int> stops(3000, 0);
    for (int pass = 0; pass < 50; ++pass) {
        act_on(scene, scene.decide(), stops);
        scene.now += kMinute;
    }
    ck_assert_msg(stops[1] == 1 && stops[2] == 1, "the runs of y were stopped %d and %d times", stops[1], stops[2]);
    ck_assert_int_eq(static_cast<int>(scene.incumbents.size()), 1);
    ck_assert_msg(scene.incumbents[0].key.job_id == 1001, "the job that can be placed runs");
}
END_TEST

// --- random scenes, and the rules once more, plainly ---

Scene random_scene(std::mt19937_64& random) {
    const auto up_to = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % (n + 1)); };
    const std::vector<std::string> leaves = {"p/a", "p/b", "q/c", "q/d", "e"};
    std::string tree = "p 2, q 1";
    for (const std::string& leaf : leaves)
        tree += "," + leaf + " " + std::to_string(up_to(6) == 0 ? 0 : 1 + up_to(2)) + " " + std::to_string(up_to(60));
    const std::uint32_t nodes = 1 + up_to(3);
    std::string runs;
    std::vector<std::uint32_t> left(nodes, 8);
    for (std::uint32_t i = up_to(8); i-- > 0;) {
        const std::uint32_t node = up_to(nodes - 1);
        const std::uint32_t gpus = std::min(1 + up_to(7), left[node]);
        if (gpus == 0) continue;
        left[node] -= gpus;
        runs += "r" + std::to_string(i) + "@" + leaves[up_to(4)] + " " + std::to_string(node) + "=" +
                std::to_string(gpus) + " ends=" + std::to_string(static_cast<int>(up_to(40)) - 30) +
                " qos=" + std::to_string(up_to(1)) + " checkpoint=" + std::to_string(up_to(60)) +
                (up_to(4) == 0 ? " free" : "") + (up_to(9) == 0 ? " exempt" : "") + (up_to(5) == 0 ? " group=1," : ",");
    }
    std::string jobs;
    for (std::uint32_t i = up_to(7); i-- > 0;)
        jobs += leaves[up_to(4)] + " " + std::to_string(1 + up_to(up_to(3) == 0 ? 30 : 7)) +
                " contract=" + std::to_string(up_to(200)) + " qos=" + std::to_string(up_to(1)) +
                (up_to(5) == 0 ? " free" : "") + (up_to(9) == 0 ? " unknown" : "") + (up_to(9) == 0 ? " placed," : ",");
    return Scene(nodes, tree, runs, jobs);
}

// The rules, with the costs ahead kept by node.
class Referee {
   public:
    explicit Referee(const Scene& scene)
        : scene_(scene), ahead_(scene.usage.size(), 0), gone_(scene.incumbents.size(), false) {
        for (const Holding& total : scene.totals) free_.push_back(total.room.gpus);
        for (const Incumbent& run : scene.incumbents) hold(run.holdings, -1);
        for (const Candidate& job : scene.candidates)
            if (job.being_placed) charge(job);
    }

    bool may_go(const Candidate& job, std::size_t incumbent) const {
        const Incumbent& run = scene_.incumbents[incumbent];
        if (run.group != 0)
            for (std::size_t i = 0; i < gone_.size(); ++i)
                if (scene_.incumbents[i].group == run.group && !alone_may_go(job, i)) return false;
        return alone_may_go(job, incumbent);
    }

    // Checks the decision, and goes on to the next candidate.
    void judge(const Candidate& job, const Decision& decision, int seed) {
        for (const Victim& victim : decision.victims) {
            ck_assert_msg(!gone_[victim.incumbent], "seed %d: a victim twice", seed);
            ck_assert_msg(may_go(job, victim.incumbent), "seed %d: job %u, a victim without right: %u", seed,
                          job.job_id, victim.incumbent);
        }
        if (decision.outcome == Outcome::kLeft) {
            std::size_t all = 0;
            for (std::size_t i = 0; i < gone_.size(); ++i) all += !gone_[i] && may_go(job, i) ? 1 : 0;
            ck_assert_msg(job.being_placed || decision.victims.size() == all, "seed %d: not all that may go", seed);
        }
        if (decision.outcome == Outcome::kBlocked) check_blocked(job, seed);
        if (!decision.places.empty()) place(job, decision, seed);
        if (decision.outcome != Outcome::kNever && !job.being_placed) charge(job);
    }

   private:
    bool preempts(const Candidate& job) const {
        return job.run_class == RunClass::kAllocated && scene_.tree.node(job.leaf).has_budget;
    }

    void charge(const Candidate& job) {
        if (!preempts(job)) return;
        for (NodeIndex n = job.leaf; n != kRoot; n = scene_.tree.node(n).parent)
            ahead_[n] += Wide{job.rate} * std::max<Seconds>(job.contract, 15 * kMinute);
    }

    void hold(const std::vector<Holding>& holdings, int sign) {
        for (const Holding& held : holdings) free_[held.node] += sign * static_cast<int>(held.room.gpus);
    }

    bool alone_may_go(const Candidate& job, std::size_t incumbent) const {
        const Incumbent& run = scene_.incumbents[incumbent];
        if (!preempts(job) || job.being_placed || run.exempt) return false;
        if (run.run_class == RunClass::kUnallocated) return true;
        if (run.protected_until > scene_.now) return false;
        if (run.leaf == job.leaf) return job.stated.higher_than(run.stated);
        const auto path = [&](NodeIndex n) {
            std::vector<NodeIndex> nodes;
            for (; n != kRoot; n = scene_.tree.node(n).parent) nodes.insert(nodes.begin(), n);
            return nodes;
        };
        const std::vector<NodeIndex> p = path(job.leaf);
        const std::vector<NodeIndex> v = path(run.leaf);
        std::size_t fork = 0;
        while (p[fork] == v[fork]) ++fork;
        const std::uint32_t p_weight = scene_.tree.node(p[fork]).weight;
        const std::uint32_t v_weight = scene_.tree.node(v[fork]).weight;
        if (v_weight == 0) return true;
        return (scene_.usage[p[fork]].allocated.box + ahead_[p[fork]]) * v_weight * 105 <
               scene_.usage[v[fork]].allocated.box * p_weight * 100;
    }

    // Where nobody has gone yet, nothing has been tried before and all may be told.
    void check_blocked(const Candidate& job, int seed) const {
        if (job.being_placed || moved_) return;
        std::vector<int> could = free_;
        for (std::size_t i = 0; i < gone_.size(); ++i)
            if (may_go(job, i))
                for (const Holding& held : scene_.incumbents[i].holdings)
                    could[held.node] += static_cast<int>(held.room.gpus);
        const auto gpus = static_cast<int>(job.request.gpus);
        int sum = 0;
        for (int node : could) sum += node;
        const bool fits =
            job.request.max_nodes == 1 ? *std::max_element(could.begin(), could.end()) >= gpus : sum >= gpus;
        ck_assert_msg(!fits, "seed %d: job %u could be placed", seed, job.job_id);
    }

    void place(const Candidate& job, const Decision& decision, int seed) {
        for (const Victim& victim : decision.victims) {
            gone_[victim.incumbent] = true;
            hold(scene_.incumbents[victim.incumbent].holdings, 1);
        }
        if (!decision.victims.empty()) moved_ = true;
        hold(decision.places, -1);
        std::uint32_t gpus = 0;
        for (const Holding& place : decision.places) gpus += place.room.gpus;
        ck_assert_msg(gpus == job.request.gpus, "seed %d: Q5: a part of its GPUs", seed);
        for (int free : free_) ck_assert_msg(free >= 0, "seed %d: a place that is not free", seed);
    }

    const Scene& scene_;
    std::vector<Wide> ahead_;
    std::vector<bool> gone_;
    std::vector<int> free_;
    bool moved_ = false;
};

START_TEST(random_scenes_keep_the_rules) {
    int victims = 0;
    int blocked = 0;
    for (int seed = 0; seed < rounds(5000); ++seed) {
        std::mt19937_64 random(static_cast<std::uint64_t>(seed));
        Scene scene = random_scene(random);
        const Plan plan = scene.decide();
        Referee referee(scene);
        for (std::size_t i = 0; i < scene.candidates.size(); ++i) {
            referee.judge(scene.candidates[i], plan.decisions[i], seed);
            victims += plan.decisions[i].outcome == Outcome::kPreempts ? 1 : 0;
            blocked += plan.decisions[i].outcome == Outcome::kBlocked ? 1 : 0;
        }
        // The order of the runs is of no consequence.
        const std::string before = scene.text(plan);
        std::vector<std::size_t> order(scene.incumbents.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), random);
        Scene other = scene;
        for (std::size_t i = 0; i < order.size(); ++i) {
            other.incumbents[i] = scene.incumbents[order[i]];
            other.names[i] = scene.names[order[i]];
        }
        const std::string after = other.text();
        ck_assert_msg(before == after, "seed %d: %s, and in another order %s", seed, before.c_str(), after.c_str());
    }
    ck_assert_msg(victims > rounds(5000) / 5 && blocked > rounds(5000) / 5, "too little happened: %d, %d", victims,
                  blocked);
}
END_TEST

Suite* preemption_suite() {
    Suite* suite = suite_create("preemption");
    TCase* rules = tcase_create("rules");
    tcase_add_loop_test(rules, plan_row, 0, static_cast<int>(std::size(kRows)));
    tcase_add_test(rules, a_team_that_returns_does_not_empty_the_cluster);
    tcase_add_test(rules, the_example_of_the_manual);
    tcase_add_test(rules, why_a_victim_gives_way);
    tcase_add_test(rules, others_are_never_victims);
    tcase_add_test(rules, nodes_that_take_no_work);
    tcase_add_test(rules, no_more_attempts_than_allowed);
    tcase_add_test(rules, nobody_there);
    tcase_add_loop_test(rules, look_row, 0, static_cast<int>(std::size(kLookRows)));
    tcase_add_test(rules, nobody_is_stopped_and_started_in_turn);
    suite_add_tcase(suite, rules);
    TCase* random = tcase_create("random");
    tcase_set_timeout(random, 60);
    tcase_add_test(random, random_scenes_keep_the_rules);
    suite_add_tcase(suite, random);
    return suite;
}

}  // namespace

int main() {
    return run_suite(preemption_suite());
}
