// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of common/claim: rows say why, citing rules and cases (RK-..). Scenes are
// written as text, see Scene. At the end order() is compared with a filling that
// is as plain as can be, on thousands of small random scenes.
#include "common/claim.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/check_main.h"
#include "tests/scene_text.h"

namespace {

using namespace budget;

// A tree, its usage and its jobs, from lists by commas.
//   tree:  PATH SHARES           p1 60, p1/a 70, p1/@u parent   (@: a user)
//   usage: PATH KEY=NUMBER ...   p1/a box=120 commitment=10 running=1 tapered2=7 free=3
//   jobs:  ID@PATH KEY=NUMBER ... and the words free, blocked
//          keys: rate contract qos nice since tasks ahead
// "." is the root. Usage is that of the node itself; it is summed upwards here.
class Scene {
   public:
    Scene(const std::string& tree, const std::string& usage, const std::string& jobs = "") {
        add_tree(tree);
        usage_.resize(tree_.nodes().size());
        for (const std::string& item : split(usage, ',')) add_usage(item);
        for (auto n = static_cast<NodeIndex>(usage_.size()); n-- > 1;) add(usage_[tree_.node(n).parent], usage_[n]);
        for (const std::string& item : split(jobs, ',')) add_job(item);
    }

    NodeIndex node(const std::string& path) const { return tree_.find(ids_.at(path)).value(); }

    // "1 2.0 2.1 2.rest": ids, with the task for arrays.
    std::string order_text(const Parameters& parameters) const {
        std::string text;
        for (const Place& place : order(tree_, usage_, jobs_, parameters)) {
            const PendingJob& job = jobs_[place.job];
            text += (text.empty() ? "" : " ") + std::to_string(job.job_id);
            if (job.tasks > job.tasks_ahead && place.task == job.tasks_ahead)
                text += ".rest";
            else if (job.tasks > 1)
                text += "." + std::to_string(place.task);
        }
        return text;
    }

    Claims claims(const Parameters& parameters, Rate capacity = kGpu, RunClass run_class = RunClass::kAllocated) const {
        return Claims(tree_, usage_, run_class, parameters, capacity);
    }

    const Tree& tree() const { return tree_; }
    std::vector<PendingJob>& jobs() { return jobs_; }

   private:
    static void add(NodeUsage& sum, const NodeUsage& more) {
        sum.allocated.box += more.allocated.box;
        sum.allocated.tapered2 += more.allocated.tapered2;
        sum.allocated.running += more.allocated.running;
        sum.unallocated.box += more.unallocated.box;
        sum.unallocated.tapered2 += more.unallocated.tapered2;
        sum.unallocated.running += more.unallocated.running;
        sum.commitment += more.commitment;
    }

    void add_tree(const std::string& text) {
        std::vector<std::string> names = {"root"};  // account or user, by id - 1
        std::vector<Association> list = {{.id = 1, .parent_id = 0}};
        ids_["."] = 1;
        for (const std::string& item : split(text, ',')) {
            const std::vector<std::string> words = split(item, ' ');
            const std::size_t slash = words[0].rfind('/');
            const AssocId parent = slash == std::string::npos ? 1 : ids_.at(words[0].substr(0, slash));
            const auto id = static_cast<AssocId>(list.size() + 1);
            ids_[words[0]] = id;
            names.push_back(slash == std::string::npos ? words[0] : words[0].substr(slash + 1));
            const std::uint32_t shares =
                words[1] == "parent" ? kSharesParent : static_cast<std::uint32_t>(std::stoul(words[1]));
            list.push_back({.id = id, .parent_id = parent, .shares = shares});
        }
        for (std::size_t i = 0; i < list.size(); ++i) {
            const bool user = names[i][0] == '@';
            list[i].account = user ? names[list[i].parent_id - 1] : names[i];
            if (user) list[i].user = names[i];
        }
        Result<Tree> tree = Tree::build(list);
        ck_assert_msg(tree.ok(), "the scene has a bad tree: %s", tree.ok() ? "" : tree.error().c_str());
        tree_ = std::move(tree).value();
    }

    // Of the forms NUMBER and NUMBERxNUMBER, a product.
    static Wide number(const std::string& text) {
        const std::size_t times = text.find('x');
        const Wide factor = times == std::string::npos ? 1 : Wide{std::stoll(text.substr(times + 1))};
        return Wide{std::stoll(text.substr(0, times))} * factor;
    }

    template <typename Take>
    void each_key(const std::vector<std::string>& words, Take take) {
        for (std::size_t i = 1; i < words.size(); ++i) {
            const std::size_t equals = words[i].find('=');
            take(words[i].substr(0, equals),
                 equals == std::string::npos ? Wide{0} : number(words[i].substr(equals + 1)));
        }
    }

    void add_usage(const std::string& item) {
        const std::vector<std::string> words = split(item, ' ');
        NodeUsage& usage = usage_[node(words[0])];
        each_key(words, [&](const std::string& key, Wide value) {
            if (key == "box")
                usage.allocated.box += value;
            else if (key == "tapered2")
                usage.allocated.tapered2 += value;
            else if (key == "running")
                usage.allocated.running += static_cast<Rate>(value);
            else if (key == "commitment")
                usage.commitment += value;
            else if (key == "free")
                usage.unallocated.box += value;
            else
                ck_abort_msg("the scene has an unknown key of usage: %s", key.c_str());
        });
    }

    void add_job(const std::string& item) {
        const std::vector<std::string> words = split(item, ' ');
        const std::size_t at = words[0].find('@');
        PendingJob job;
        job.job_id = static_cast<std::uint32_t>(std::stoul(words[0].substr(0, at)));
        job.leaf = node(words[0].substr(at + 1));
        job.rate = 1;
        each_key(words, [&](const std::string& key, Wide value) {
            if (key == "rate")
                job.rate = static_cast<Rate>(value);
            else if (key == "contract")
                job.contract = static_cast<Seconds>(value);
            else if (key == "qos")
                job.qos_priority = static_cast<std::uint32_t>(value);
            else if (key == "nice")
                job.nice = static_cast<std::int64_t>(value);
            else if (key == "since")
                job.eligible_since = static_cast<Seconds>(value);
            else if (key == "tasks")
                job.tasks = static_cast<std::uint32_t>(value);
            else if (key == "ahead")
                job.tasks_ahead = static_cast<std::uint32_t>(value);
            else if (key == "free")
                job.run_class = RunClass::kUnallocated;
            else if (key == "blocked")
                job.eligible = false;
            else
                ck_abort_msg("the scene has an unknown key of a job: %s", key.c_str());
        });
        jobs_.push_back(job);
    }

    std::map<std::string, AssocId> ids_;
    Tree tree_;
    std::vector<NodeUsage> usage_;
    std::vector<PendingJob> jobs_;
};

Parameters parameters_of(const char* text) {
    Result<Parameters> parameters = Parameters::parse(text);
    ck_assert_msg(parameters.ok(), "a row has bad parameters: %s", parameters.ok() ? "" : parameters.error().c_str());
    return std::move(parameters).value();
}

struct OrderRow {
    const char* why;
    const char* tree;
    const char* usage;
    const char* jobs;
    const char* parameters;
    const char* expected;
};

const OrderRow kOrderRows[] = {
    {"Q1: allocated jobs come before unallocated ones, whatever the claims", "a 1, b 1", "a box=1000", "1@b free, 2@a",
     "", "2 1"},
    {"Q2: the lowest ratio first; its job counts before the next pick", "a 1, b 1", "a box=15", "1@a, 2@a, 3@b, 4@b",
     "quantum=10s", "3 4 1 2"},
    {"Q2, RK-10: equal accounts that send many jobs at once take turns", "a 1, b 1", "",
     "1@a since=1, 2@a since=1, 3@a since=1, 11@b since=2, 12@b since=2, 13@b since=2", "quantum=1m", "1 11 2 12 3 13"},
    {"Q2: turns follow the weights, 2 to 1", "a 2, b 1", "", "1@a, 2@a, 3@a, 4@a, 11@b, 12@b", "quantum=1m",
     "1 11 2 3 12 4"},
    {"Q2: the comparison starts at the root: the poorer project first, then the poorer team in it",
     "p1 50, p1/a 50, p1/b 50, p2 50, p2/c 100", "p1/a box=90, p1/b box=5, p2/c box=60", "1@p1/a, 2@p1/b, 3@p2/c",
     "quantum=1s", "3 2 1"},
    {"Q2: a job is counted with rate x contract", "a 1, b 1", "",
     "1@a rate=2 contract=3000, 2@a rate=1, 11@b contract=1500, 12@b contract=1500, 13@b contract=3001 since=9, 14@b "
     "since=10",
     "quantum=1s", "1 11 12 13 2 14"},
    {"Q2: the quantum is the least that a contract counts", "a 1, b 1", "",
     "1@a contract=0, 2@a contract=10, 3@a, 11@b contract=100 since=5, 12@b contract=101 since=5, 13@b since=5",
     "quantum=100s", "1 11 2 12 3 13"},
    {"U4, U5: commitments count like usage", "a 1, b 1", "a box=40 commitment=60, b box=99", "1@a, 2@b", "quantum=1s",
     "2 1"},
    {"U5: no lead by default, the rate running now does not count", "a 1, b 1", "a box=10 running=1000, b box=11",
     "1@a, 2@b", "quantum=1s", "1 2"},
    {"U5: lead x W x rate running now counts", "a 1, b 1", "a box=10 running=1, b box=11", "1@a, 2@b",
     "quantum=1s,lead=0.001,window=2000s", "2 1"},
    {"U5: the lead is exact to a thousandth: 0.001 x 1000 s x 1 is 1 second, a tie that the eligible time decides",
     "a 1, b 1", "a box=10 running=1, b box=11", "1@a since=2, 2@b since=1", "quantum=1s,lead=0.001,window=1000s",
     "2 1"},
    {"U5, Q2: a picked job adds its lead too", "a 1, b 1", "b box=5", "1@a, 2@a, 11@b", "quantum=1s,lead=0.5,window=9s",
     "1 11 2"},
    {"U3: the tapered shape takes the tapered sums", "a 1, b 1", "a box=10 tapered2=500, b box=20 tapered2=400",
     "1@a, 2@b", "quantum=1s,window_shape=tapered,window=100s", "2 1"},
    {"U3: the box shape takes the plain sums", "a 1, b 1", "a box=10 tapered2=500, b box=20 tapered2=400", "1@a, 2@b",
     "quantum=1s,window_shape=box,window=100s", "1 2"},
    {"U3, U4: tapered usage is W times the commitment's unit: 500 / 100 s = 5", "a 1, b 1",
     "a tapered2=500, b commitment=5", "1@a since=2, 2@b since=1, 3@a since=2",
     "quantum=1s,window_shape=tapered,window=100s", "2 1 3"},
    {"U3, U5: tapered, with a lead: 0.5 x 100 s x 1 is 50 seconds", "a 1, b 1", "a running=1, b tapered2=5001",
     "1@a since=2, 2@b since=1", "quantum=1s,window_shape=tapered,window=100s,lead=0.5", "1 2"},
    {"Q2: equal claims: the earlier eligible time of the head jobs", "a 1, b 1, c 1", "",
     "1@a since=30, 2@b since=10, 3@c since=20", "", "2 3 1"},
    {"Q2: the head job is the one that would be taken, not the oldest of the leaf", "a 1, b 1", "",
     "1@a since=1, 2@a since=30 qos=5, 3@b since=20", "quantum=10s", "3 2 1"},
    {"Q2: below an account too the head job is the one that would be taken", "p 1, p/a 1, p/b 1, q 1",
     "p/b box=1, q box=1", "1@p/a since=30, 2@p/b since=1, 3@q since=20", "quantum=10s", "3 1 2"},
    {"Q2: equal claims and times: the lower job id", "a 1, b 1", "", "7@a since=5, 6@b since=5", "", "6 7"},
    {"Q2: a tie of fractions is a tie: 100/3 = 200/6", "a 3, b 6", "a box=100, b box=200", "1@a since=2, 2@b since=1",
     "quantum=1s", "2 1"},
    {"Q2: one unit in 10^18 decides", "a 3, b 3", "a box=1000000000000000001, b box=1000000000000000000",
     "1@a since=1, 2@b since=2", "quantum=1s", "2 1"},
    {"Q2: fractions that doubles cannot tell apart: 10^18/3 > (2 x 10^18 - 1)/6", "a 3, b 6",
     "a box=1000000000000000000, b box=1999999999999999999", "1@a since=1, 2@b since=2", "quantum=1s", "2 1"},
    {"Q2: one unit in 10^24 decides, though it is below what a 64-bit key shows", "a 3, b 3",
     "a box=1000000000000000000x1000000 box=1, b box=1000000000000000000x1000000", "1@a since=1, 2@b since=2",
     "quantum=1s", "2 1"},
    {"Q2: and between different weights: 10^24/3 > (2 x 10^24 - 1)/6", "a 3, b 6",
     "a box=1000000000000000000x1000000, b box=2000000000000000000x1000000 box=-1", "1@a since=1, 2@b since=2",
     "quantum=1s", "2 1"},
    {"Q3: stated priority, then nice, then the eligible time, then the id", "a 1", "",
     "1@a qos=1 since=5, 2@a qos=2 nice=9 since=5, 3@a qos=2 nice=-3 since=5, 4@a qos=1 since=4, 5@a qos=1 since=4 "
     "nice=1, 6@a qos=1 since=4",
     "", "3 2 4 6 1 5"},
    {"Q3, RK-16: what a user states moves no other leaf", "a 1, b 1", "a box=5",
     "1@a qos=4000000000 nice=-2147483645 since=1, 2@b nice=2147483645 since=2", "quantum=1s", "2 1"},
    {"Q3, RK-08: a requeued job keeps its place in the leaf by its first eligible time, but ranks by the leaf's claim",
     "rich 1, poor 1", "rich box=100", "1@rich since=1, 2@rich since=50, 3@poor since=99", "quantum=1s", "3 1 2"},
    {"RK-01: ratio, not difference: 10/1 before 100/11 before 1000/121", "account1 1000, account2 100, account3 10",
     "account1 box=121, account2 box=11, account3 box=1", "1@account1, 2@account2, 3@account3", "quantum=1s", "3 2 1"},
    {"B4, RK-03: weight 0 never comes before a weight, with usage or without; usage 0 of 0 is no claim",
     "z0 0, z1 0, w 1", "z0 free=10, w free=1000", "1@z0 free since=1, 2@z1 free since=2, 3@w free since=3",
     "quantum=1s", "3 1 2"},
    {"C5: an allocated job without budget stands among the unallocated ones, and costs the quantum", "z 0, w 1", "",
     "1@z contract=9000 since=1, 2@z since=1, 3@w free since=9, 4@w since=9", "quantum=1s", "4 3 1 2"},
    {"B4: a weight of 0 above leaves no budget below", "p 0, p/a 5, w 1", "w box=1000", "1@p/a, 2@w", "quantum=1s",
     "2 1"},
    {"B3, RK-05: members of a fairshare=parent account compete with the others of the account above, 1:1:2",
     "A 100, A/B parent, A/B/@u1 1, A/B/@u2 1, A/@u3 2", "",
     "1@A/B/@u1 since=1, 2@A/B/@u1 since=1, 3@A/B/@u2 since=2, 4@A/B/@u2 since=2, "
     "5@A/@u3 since=3, 6@A/@u3 since=3, 7@A/@u3 since=3, 8@A/@u3 since=3",
     "quantum=1s", "1 3 5 6 2 4 7 8"},
    {"B1: users with fairshare=parent share the account as one leaf: stated priority sorts between them",
     "a 1, a/@u1 parent, a/@u2 parent", "a box=5", "1@a/@u1 since=1, 2@a/@u2 since=2 qos=9", "quantum=1s", "2 1"},
    {"B1: users with shares of their own are leaves: stated priority does not reach the other", "a 1, a/@u1 1, a/@u2 1",
     "a/@u2 box=1", "1@a/@u1 since=1, 2@a/@u2 since=2 qos=9", "quantum=1s", "1 2"},
    {"RK-06: a user beside accounts: 3.1 and 3.2 (10/1), then the tied ones (100/12, 1000/120) by eligible time",
     "@leaf01 100, account1 1000, account1/@u 1, account3 10, account3/@u31 1, account3/@u32 1",
     "@leaf01 box=12, account1/@u box=120, account3/@u32 box=1",
     "1@@leaf01 since=2, 2@account1/@u since=1, 3@account3/@u31 since=5, 4@account3/@u32 since=5", "quantum=1s,lead=0",
     "3 2 1 4"},
    {"RK-07: no association but the root's: its jobs are ordered as in a leaf", "", "", "2@. since=2, 1@. since=3", "",
     "2 1"},
    {"RK-07: an account without users, one with a single one, and no jobs at all", "a 1, b 1, b/@u 1", "", "", "", ""},
    {"RK-07: a single user", "b 1, b/@u 1", "b/@u box=4", "1@b/@u", "", "1"},
    {"RK-09: a user in two accounts ranks by the account of the job", "A 1, A/@u 1, B 1, B/@u 1, C 1",
     "A/@u box=100, C box=50", "1@A/@u since=1, 2@B/@u since=3, 3@C since=2", "quantum=1s", "2 3 1"},
    {"RK-11: a second of one GPU in a week of 10,000 GPUs is not nothing", "a 1, b 1, big 1",
     "a box=5040, big box=6048000000x5040", "1@a since=1, 2@b since=2, 3@big since=0", "quantum=1s", "2 1 3"},
    {"RK-11: after the window usage is 0 and the claim the best", "a 1, b 1", "b box=1", "1@a since=9, 2@b since=1",
     "quantum=1s", "1 2"},
    {"RK-13: usage beyond 32 and 64 bits: 1.9 x 10^10 and 9.2 x 10^18 GPU-seconds", "a 1, b 1, c 1",
     "a box=19000000000x5040, b box=9200000000000000000x5040, c box=9199999999999999999x5040", "1@a, 2@b, 3@c",
     "quantum=1s", "1 3 2"},
    {"RK-13: beyond all bounds numerators are equal, and nothing wraps", "a 1, b 2147483646",
     "a box=9200000000000000000x9200000000000000000, b box=9200000000000000000x9200000000000000000",
     "1@a since=1 rate=9200000000000000000 contract=9200000000000000000 tasks=3 ahead=3, 2@b since=2",
     "window=366d,lead=16", "2 1.0 1.1 1.2"},
    {"RK-13: nor does what is picked there: it stays equal", "a 2147483646, b 2147483646",
     "a box=9200000000000000000x9200000000000, b box=9200000000000000000x9200000000000",
     "1@a since=1 rate=9200000000000000000 contract=4000000000 tasks=3 ahead=3, 2@b since=1", "", "1.0 1.1 1.2 2"},
    {"RK-13: claims of more than 64 bits, of which one has the highest bit", "a 1, b 1",
     "a box=3000000000000000000x1000000, b box=1500000000000000000x1000000", "1@a since=1, 2@b since=2", "quantum=1s",
     "2 1"},
    {"Q2, C7: tasks that could start have places of their own, the rest one together", "a 1", "",
     "1@a tasks=10 ahead=3, 2@a", "", "1.0 1.1 1.2 1.rest 2"},
    {"Q2: an array takes turns with another leaf task by task, and its rest counts as one task", "a 1, b 1", "",
     "1@a tasks=10 ahead=2 since=1, 2@a since=2, 11@b since=1, 12@b since=1, 13@b since=1, 14@b since=1", "quantum=1s",
     "1.0 11 1.1 12 1.rest 13 14 2"},
    {"Q2: an array whose tasks all have places has no rest; one whose limit is reached is all rest", "a 1", "",
     "1@a tasks=2 ahead=2, 2@a tasks=2 ahead=9, 3@a tasks=5 ahead=0, 4@a tasks=0 ahead=0 since=1", "",
     "1.0 1.1 2.0 2.1 3.rest 4"},
    {"Q2: a blocked job has the place that it would have, but moves nobody", "a 1, b 1", "",
     "1@a rate=100 blocked since=1, 2@a since=2, 11@b since=3, 12@b since=3", "quantum=1s", "1 2 11 12"},
    {"Q2: behind a blocked head the next of the leaf still counts as its head", "a 1, b 1", "",
     "1@a since=5 qos=1 blocked, 2@a since=1, 11@b since=2", "quantum=1s", "2 1 11"},
    {"Q2: a leaf whose jobs are all blocked; blocked arrays", "a 1, b 1", "",
     "1@a tasks=5 ahead=2 blocked since=1, 2@b since=2, 3@b since=3", "quantum=1s", "1.0 2 1.1 3 1.rest"},
    {"Q4: unallocated jobs are ordered on their own window, not by what was charged", "a 1, b 1",
     "a box=1000 commitment=7 free=1, b free=2", "1@a free, 2@b free", "quantum=1s", "1 2"},
    {"Q4: they cost the quantum, whatever they state", "a 1, b 1", "",
     "1@a free contract=5000 since=1, 2@a free since=1, 3@b free since=2, 4@b free since=2", "quantum=1s", "1 3 2 4"},
    {"Q1, Q4: within both classes the same way", "a 1, b 1", "",
     "1@a free since=1, 2@a since=1, 3@b free since=2, 4@b since=2, 5@a free since=3, 6@a since=3", "quantum=1s",
     "2 4 6 1 3 5"},
    {"jobs charged to an account with members come after its members'", "p 1, p/a 1, q 1", "p/a box=100",
     "1@p since=1 qos=9, 2@p/a since=2, 3@q since=3, 4@. since=0 qos=9", "quantum=1s", "3 2 1 4"},
    {"Q2: a job without a rate costs nothing and keeps its leaf in front", "a 1, b 1", "",
     "1@a rate=0 since=1, 2@a rate=0 since=3, 3@b since=2", "quantum=1s", "1 3 2"},
};

START_TEST(order_row) {
    const OrderRow& row = kOrderRows[_i];
    const Scene scene(row.tree, row.usage, row.jobs);
    const std::string got = scene.order_text(parameters_of(row.parameters));
    ck_assert_msg(got == row.expected, "%s: expected \"%s\", got \"%s\"", row.why, row.expected, got.c_str());
}
END_TEST

START_TEST(order_does_not_depend_on_the_list) {
    const OrderRow& row = kOrderRows[_i];
    std::mt19937 random(static_cast<unsigned>(_i));
    Scene scene(row.tree, row.usage, row.jobs);
    for (int round = 0; round < 5; ++round) {
        std::shuffle(scene.jobs().begin(), scene.jobs().end(), random);
        const std::string got = scene.order_text(parameters_of(row.parameters));
        ck_assert_msg(got == row.expected, "%s, shuffled: expected \"%s\", got \"%s\"", row.why, row.expected,
                      got.c_str());
    }
}
END_TEST

// RK-10 in full: of 16 free GPUs 8 go to each of two accounts that sent 100
// jobs each within one second, as single jobs or as arrays.
void check_burst(const std::string& jobs, const char* why) {
    const Scene scene("A 1, B 1", "", jobs);
    std::istringstream order(scene.order_text(parameters_of("")));
    int of_a = 0;
    int places = 0;
    for (std::string id; places < 16 && order >> id; ++places) of_a += std::stoi(id) < 1000 ? 1 : 0;
    ck_assert_msg(places == 16 && of_a == 8, "%s: %d of the first %d places are A's", why, of_a, places);
}

START_TEST(burst_of_single_jobs) {
    std::string jobs;
    for (int i = 0; i < 100; ++i) jobs += std::to_string(100 + i) + "@A rate=5040 since=7,";
    for (int i = 0; i < 100; ++i) jobs += std::to_string(1000 + i) + "@B rate=5040 since=7,";
    check_burst(jobs, "RK-10, single jobs");
}
END_TEST

START_TEST(burst_of_arrays) {
    check_burst("100@A rate=5040 since=7 tasks=100 ahead=16, 1000@B rate=5040 since=7 tasks=100 ahead=16",
                "RK-10, arrays");
}
END_TEST

START_TEST(burst_of_an_array_and_single_jobs) {
    std::string jobs = "100@A rate=5040 since=7 tasks=100 ahead=16,";
    for (int i = 0; i < 100; ++i) jobs += std::to_string(1000 + i) + "@B rate=5040 since=7,";
    check_burst(jobs, "RK-10, an array against single jobs");
}
END_TEST

struct CompareRow {
    const char* why;
    const char* tree;
    const char* usage;
    const char* parameters;
    int expected;  // a against b: -1 better, 0 equal, 1 worse
};

const CompareRow kCompareRows[] = {
    {"U5: usage over weight", "a 3, b 1", "a box=29, b box=10", "", -1},
    {"U5: equal fractions are equal", "a 3, b 1", "a box=30, b box=10", "", 0},
    {"U5: and one unit more is worse", "a 3, b 1", "a box=31, b box=10", "", 1},
    {"U5: no usage is the best claim, of any weight", "a 1, b 1000", "b box=1", "", -1},
    {"U5: no usage on either side is equal, of any weight", "a 1, b 1000", "", "", 0},
    {"B4, RK-03: weight 0 is worse than an overused weight", "a 0, b 1", "b box=1000000", "", 1},
    {"B4: weight 0 is equal to weight 0, whatever was used", "a 0, b 0", "a box=10", "", 0},
    {"U4: a commitment is usage", "a 1, b 1", "a commitment=5, b box=5", "", 0},
    {"U5: the lead is exact: 0.3 x 10 s x 1 = 3", "a 1, b 1", "a running=1, b box=3", "lead=0.3,window=10s", 0},
    {"U5: the lead has thousandths: 0.333 x 1000 s x 1 = 333", "a 1, b 1", "a running=1, b box=334",
     "lead=0.333,window=1000s", -1},
    {"U3: tapered sums are W times a commitment", "a 1, b 1", "a tapered2=700, b commitment=7",
     "window_shape=tapered,window=100s", 0},
    {"U3, U5: the lead in the tapered shape", "a 1, b 1", "a running=2, b tapered2=2000",
     "window_shape=tapered,window=100s,lead=0.1", 0},
    {"U9: free time does not count here", "a 1, b 1", "a free=100, b box=1", "", -1},
};

START_TEST(compare_row) {
    const CompareRow& row = kCompareRows[_i];
    const Scene scene(row.tree, row.usage);
    const Claims claims = scene.claims(parameters_of(row.parameters));
    const std::weak_ordering expected = row.expected <=> 0;
    const NodeIndex a = scene.node("a");
    const NodeIndex b = scene.node("b");
    ck_assert_msg(claims.compare(a, b) == expected, "%s", row.why);
    ck_assert_msg(claims.compare(b, a) == (0 <=> row.expected), "%s, the other way round", row.why);
    ck_assert_msg(claims.compare(a, a) == 0, "%s, with itself", row.why);
}
END_TEST

struct RatioRow {
    const char* why;
    const char* tree;
    const char* usage;
    const char* parameters;
    Rate capacity;
    const char* path;
    double expected;  // negative: none
};

const RatioRow kRatioRows[] = {
    {"U5: half of the cluster's window used by one with half of it is 1", "a 1, b 1", "a box=50400", "window=10s",
     2 * 5040, "a", 1.0},
    {"U5: unused is 0", "a 1, b 1", "a box=50400", "window=10s", 2 * 5040, "b", 0.0},
    {"B2: entitlement multiplies down the tree: 60 % x 70 %", "p1 60, p1/a 70, p1/b 30, p2 40", "p1/a box=42",
     "window=1s", 100, "p1/a", 1.0},
    {"B2: idle siblings keep their part", "p1 60, p1/a 70, p1/b 30, p2 40", "p1/b box=9", "window=1s", 100, "p1/b",
     0.5},
    {"U5: the root's is the part of the cluster in use", "a 1, b 1", "a box=25", "window=1s", 100, ".", 0.25},
    {"RK-07: a lone user has the claim of its parent", "p 1, p/@u 7, q 3", "p/@u box=50", "window=1s", 100, "p/@u",
     2.0},
    {"U4: commitments count", "a 1", "a box=10 commitment=30", "window=1s", 100, "a", 0.4},
    {"U5: lead", "a 1", "a box=10 running=10", "window=10s,lead=0.25", 100, "a", 0.035},
    {"U3: tapered, W times the usage", "a 1", "a tapered2=400 commitment=10", "window=4s,window_shape=tapered", 100,
     "a", 0.275},
    {"U3, U5: tapered with lead", "a 1", "a tapered2=400 running=10", "window=4s,window_shape=tapered,lead=0.5", 100,
     "a", 0.3},
    {"B4: without budget there is no ratio", "a 0, b 1", "a box=5", "", 100, "a", -1},
    {"B4: nor below", "p 0, p/a 3, b 1", "p/a box=5", "", 100, "p/a", -1},
    {"U5: nor when no node is up", "a 1", "a box=5", "", 0, "a", -1},
    {"RK-13: a finite number however much was used", "a 1", "a box=9200000000000000000x5040", "window=1s", 5040, "a",
     9.2e18},
};

START_TEST(ratio_row) {
    const RatioRow& row = kRatioRows[_i];
    const Scene scene(row.tree, row.usage);
    const std::optional<double> ratio =
        scene.claims(parameters_of(row.parameters), row.capacity).ratio(scene.node(row.path));
    if (row.expected < 0) {
        ck_assert_msg(!ratio, "%s: expected none", row.why);
        return;
    }
    ck_assert_msg(ratio && std::fabs(*ratio - row.expected) <= 1e-9 * row.expected, "%s: expected %g, got %g", row.why,
                  row.expected, ratio.value_or(-1));
}
END_TEST

struct BetterRow {
    const char* why;
    const char* tree;
    const char* usage;
    const char* parameters;
    const char* preemptor;
    const char* victim;
    bool expected;
};

const BetterRow kBetterRows[] = {
    {"P3: a lower ratio by more than the margin", "a 1, b 1", "a box=1000, b box=1051", "margin=0.05", "a", "b", true},
    {"P3: exactly the margin is not better", "a 1, b 1", "a box=1000, b box=1050", "margin=0.05", "a", "b", false},
    {"P3: and the other way round neither", "a 1, b 1", "a box=1000, b box=1051", "margin=0.05", "b", "a", false},
    {"P3: the margin by default is 0.05", "a 1, b 1", "a box=1000, b box=1051", "", "a", "b", true},
    {"P3: equal is not better, without a margin", "a 3, b 1", "a box=30, b box=10", "margin=0", "a", "b", false},
    {"P3: one unit is better, without a margin", "a 3, b 1", "a box=29, b box=10", "margin=0", "a", "b", true},
    {"P3: no usage on either side is not better", "a 1, b 1", "", "margin=0", "a", "b", false},
    {"P3: the margin is exact to a thousandth", "a 1, b 1", "a box=1000000, b box=1001001", "margin=0.001", "a", "b",
     true},
    {"P3: a margin of ten", "a 1, b 1", "a box=100, b box=1100", "margin=10", "a", "b", false},
    {"P3: a margin of ten, passed", "a 1, b 1", "a box=100, b box=1101", "margin=10", "a", "b", true},
    {"P4: never inside one leaf", "a 1, b 1", "b box=10", "margin=0", "a", "a", false},
    {"P4: nor between users who share a leaf", "a 1, a/@u1 parent, a/@u2 parent", "a box=10", "margin=0", "a/@u1",
     "a/@u2", false},
    {"P3: users with shares of their own may", "a 1, a/@u1 1, a/@u2 1", "a/@u2 box=10", "margin=0", "a/@u1", "a/@u2",
     true},
    {"P3: compared where the paths part: a rich member of a poor project", "p1 1, p1/a 1, p1/b 1, p2 1, p2/c 1",
     "p1/a box=90, p2/c box=100", "margin=0", "p1/a", "p2/c", true},
    {"P3: a poor member of a rich project", "p1 1, p1/a 1, p1/b 1, p2 1, p2/c 1", "p1/a box=190, p2/c box=100",
     "margin=0", "p1/b", "p2/c", false},
    {"P3: leaves of different depth, the deeper one preempts", "p1 1, p1/x 1, p1/x/a 1, p2 1", "p1/x/a box=1, p2 box=2",
     "margin=0", "p1/x/a", "p2", true},
    {"P3: leaves of different depth, the deeper one is the victim", "p1 1, p1/x 1, p1/x/a 1, p2 1",
     "p1/x/a box=2, p2 box=1", "margin=0", "p2", "p1/x/a", true},
    {"P3: an account and what is below it do not part: what is charged to the account itself is no victim",
     "p 1, p/a 1", "p box=100", "margin=0", "p/a", "p", false},
    {"P3: nor a preemptor", "p 1, p/a 1", "p/a box=100", "margin=0", "p", "p/a", false},
    {"B4, RK-04: a run without weight is the first victim, even where it used nothing", "best 0, high 1",
     "high box=1000", "", "high", "best", true},
    {"B4, RK-04: a job without weight preempts nobody", "best 0, high 1", "high box=1000", "", "best", "high", false},
    {"B4: nor another one without weight", "x 0, y 0, z 1", "y box=10", "", "x", "y", false},
    {"B4: nor one whose project has weight but who has none", "p 1, p/x 0, p/y 1, q 1", "q box=10", "", "p/x", "q",
     false},
    {"P3: the side of the victim is compared, not the victim: it lives on its project's budget",
     "p 1, p/x 0, p/y 1, q 1", "p/x box=1, q box=10", "", "q", "p/x", false},
    {"RK-14: a weight of 1 in 100,000 on 10,000 GPUs may take back its one GPU", "tiny 1, rest 99999",
     "rest box=6048000000x5040", "", "tiny", "rest", true},
    {"RK-14: and with one GPU-hour used as well, which is less than its share of a week", "tiny 1, rest 99999",
     "tiny box=3600x5040, rest box=6048000000x5040", "", "tiny", "rest", true},
    {"RK-14: but not with more than its share", "tiny 1, rest 99999", "tiny box=60600x5040, rest box=6048000000x5040",
     "", "tiny", "rest", false},
    {"U4: the commitments of a side count", "a 1, b 1", "a commitment=100, b box=50", "margin=0", "b", "a", true},
    {"U9: what a side ran for free does not", "a 1, b 1", "a free=100, b box=50", "margin=0", "b", "a", false},
    {"RK-13: no overflow with the highest weights, numerators and margin", "a 2147483646, b 2147483645",
     "a box=9200000000000000000x5040, b box=9200000000000000000x5040", "margin=10,lead=0.001,window=366d", "b", "a",
     false},
    {"RK-13: nor where it decides", "a 2147483646, b 1",
     "a box=9200000000000000000x5040, b box=9200000000000000000x5040", "margin=10,lead=0.001", "a", "b", true},
    {"RK-13: wide numbers at the margin exactly", "a 2147483646, b 2147483646",
     "a box=9200000000000000000x1000, b box=9200000000000000000x1001", "margin=0.001", "a", "b", false},
    {"RK-13: and one part in 10^22 more", "a 2147483646, b 2147483646",
     "a box=9200000000000000000x1000, b box=9200000000000000000x1001 box=1", "margin=0.001", "a", "b", true},
};

START_TEST(better_row) {
    const BetterRow& row = kBetterRows[_i];
    const Scene scene(row.tree, row.usage);
    for (Rate capacity : {Rate{0}, Rate{1}, Rate{1} << 50}) {
        const Claims claims = scene.claims(parameters_of(row.parameters), capacity);
        ck_assert_msg(claims.better(scene.node(row.preemptor), scene.node(row.victim)) == row.expected,
                      "%s: expected %s (U5: whatever the capacity)", row.why, row.expected ? "better" : "not better");
    }
}
END_TEST

START_TEST(both_classes_have_claims) {
    const Scene scene("a 1, b 1", "a box=9 free=1, b box=1 free=9");
    const Claims free = scene.claims(parameters_of(""), kGpu, RunClass::kUnallocated);
    ck_assert_msg(free.compare(scene.node("a"), scene.node("b")) < 0, "U9: unallocated time orders unallocated jobs");
    ck_assert_msg(scene.claims(parameters_of("")).compare(scene.node("a"), scene.node("b")) > 0, "U9: and no others");
}
END_TEST

START_TEST(class_follows_the_budget) {
    Scene scene("z 0, w 1", "", "1@z, 2@w, 3@w free, 4@z free");
    const RunClass expected[] = {RunClass::kUnallocated, RunClass::kAllocated, RunClass::kUnallocated,
                                 RunClass::kUnallocated};
    for (std::size_t i = 0; i < scene.jobs().size(); ++i)
        ck_assert_msg(class_in_queue(scene.tree(), scene.jobs()[i]) == expected[i], "C5: job %zu", i + 1);
}
END_TEST

// The rules taken literally: at every pick the whole tree is searched again.
class PlainFilling {
   public:
    PlainFilling(const Tree& tree, const std::vector<Wide>& numerators, const std::vector<PendingJob>& jobs,
                 const Parameters& parameters, RunClass run_class, bool eligible_only)
        : tree_(tree),
          numerator_(numerators),
          jobs_(jobs),
          parameters_(parameters),
          run_class_(run_class),
          taken_(jobs.size(), 0) {
        for (std::size_t i = 0; i < jobs.size(); ++i)
            if (class_in_queue(tree, jobs[i]) != run_class || (eligible_only && !jobs[i].eligible))
                taken_[i] = places(jobs[i]);
    }

    std::vector<Place> run() {
        std::vector<Place> result;
        for (;;) {
            const std::optional<std::uint32_t> job = head(kRoot);
            if (!job) return result;
            result.push_back({*job, taken_[*job]++});
            const Seconds length =
                std::max(run_class_ == RunClass::kAllocated ? jobs_[*job].contract : 0, parameters_.quantum);
            const Wide cost =
                Wide{jobs_[*job].rate} * (Wide{1000} * length + Wide{parameters_.lead_millis} * parameters_.window);
            for (NodeIndex n = jobs_[*job].leaf;; n = tree_.node(n).parent) {
                numerator_[n] += cost;
                if (n == kRoot) break;
            }
        }
    }

   private:
    static std::uint32_t places(const PendingJob& job) {
        return job.tasks > job.tasks_ahead ? job.tasks_ahead + 1 : job.tasks;
    }

    // a/b against c/d by Euclid: whole parts, then the inverse of what is left.
    static int compare(Wide a, Wide b, Wide c, Wide d) {
        if (a / b != c / d) return a / b < c / d ? -1 : 1;
        const Wide rest_a = a % b;
        const Wide rest_c = c % d;
        if (rest_a == 0 || rest_c == 0) return rest_a == rest_c ? 0 : rest_a == 0 ? -1 : 1;
        return compare(d, rest_c, b, rest_a);
    }

    bool ahead_in_leaf(const PendingJob& a, const PendingJob& b) const {
        if (a.qos_priority != b.qos_priority) return a.qos_priority > b.qos_priority;
        if (a.nice != b.nice) return a.nice < b.nice;
        if (a.eligible_since != b.eligible_since) return a.eligible_since < b.eligible_since;
        return a.job_id < b.job_id;
    }

    bool ahead_of_sibling(NodeIndex a, std::uint32_t job_a, NodeIndex b, std::uint32_t job_b) const {
        const Node& x = tree_.node(a);
        const Node& y = tree_.node(b);
        if ((x.weight == 0) != (y.weight == 0)) return x.weight != 0;
        const int claim = x.weight == 0 ? 0 : compare(numerator_[a], x.weight, numerator_[b], y.weight);
        if (claim != 0) return claim < 0;
        if (jobs_[job_a].eligible_since != jobs_[job_b].eligible_since)
            return jobs_[job_a].eligible_since < jobs_[job_b].eligible_since;
        return jobs_[job_a].job_id < jobs_[job_b].job_id;
    }

    // The job that is taken next below n.
    std::optional<std::uint32_t> head(NodeIndex n) const {
        std::optional<std::uint32_t> best;
        NodeIndex best_child = 0;
        for (NodeIndex child = 1; child < tree_.nodes().size(); ++child) {
            if (tree_.node(child).parent != n) continue;
            const std::optional<std::uint32_t> job = head(child);
            if (!job || (best && !ahead_of_sibling(child, *job, best_child, *best))) continue;
            best = job;
            best_child = child;
        }
        if (best) return best;
        for (std::uint32_t i = 0; i < jobs_.size(); ++i)
            if (jobs_[i].leaf == n && taken_[i] < places(jobs_[i]) && (!best || ahead_in_leaf(jobs_[i], jobs_[*best])))
                best = i;
        return best;
    }

    const Tree& tree_;
    std::vector<Wide> numerator_;
    const std::vector<PendingJob>& jobs_;
    const Parameters& parameters_;
    RunClass run_class_;
    std::vector<std::uint32_t> taken_;
};

class RandomScene {
   public:
    explicit RandomScene(std::uint64_t seed) : random_(seed) {
        make_tree();
        make_usage();
        make_jobs();
        parameters.window = 1 + below(200);
        parameters.quantum = 1 + below(20);
        parameters.window_shape = below(2) == 0 ? WindowShape::kBox : WindowShape::kTapered;
        parameters.lead_millis = below(3) == 0 ? below(4) * 250 + below(2) : 0;
    }

    // By the rules, in the unit of a thousandth and not shortened by any
    // divisor; tapered numbers are made so that W divides them.
    std::vector<Place> plain_order() const {
        std::vector<Place> result;
        for (RunClass run_class : {RunClass::kAllocated, RunClass::kUnallocated}) {
            const std::vector<Wide> numerators = plain_numerators(run_class);
            const std::vector<Place> eligible = PlainFilling(tree, numerators, jobs, parameters, run_class, true).run();
            std::size_t next = 0;
            for (const Place& place : PlainFilling(tree, numerators, jobs, parameters, run_class, false).run())
                result.push_back(jobs[place.job].eligible ? eligible[next++] : place);
        }
        return result;
    }

    std::vector<NodeUsage> usage_in_window() const {
        std::vector<NodeUsage> result = usage;
        for (NodeUsage& node : result) {
            node.allocated.tapered2 *= parameters.window;
            node.unallocated.tapered2 *= parameters.window;
        }
        return result;
    }

    Tree tree;
    std::vector<NodeUsage> usage;  // tapered2 in units of W
    std::vector<PendingJob> jobs;
    Parameters parameters;

    void shuffle_jobs() { std::shuffle(jobs.begin(), jobs.end(), random_); }

   private:
    std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }

    void make_tree() {
        std::vector<std::string> names;
        std::vector<Association> list;
        const std::uint32_t size = 1 + below(14);
        for (std::uint32_t i = 0; i <= size; ++i) names.push_back("n" + std::to_string(i));
        for (std::uint32_t i = 0; i <= size; ++i) {
            const std::uint32_t parent = i == 0 ? 0 : 1 + below(i);
            const std::uint32_t shares = below(8) == 0 ? 0 : 1 + below(3);
            list.push_back({.id = i + 1, .parent_id = parent, .account = names[i], .shares = shares});
        }
        tree = Tree::build(list).value();
    }

    void make_usage() {
        usage.resize(tree.nodes().size());
        for (auto n = static_cast<NodeIndex>(usage.size()); n-- > 0;) {
            if (below(3) > 0) {
                for (Usage* own : {&usage[n].allocated, &usage[n].unallocated})
                    *own = {.box = below(40), .tapered2 = below(40), .running = static_cast<Rate>(below(3))};
                usage[n].commitment = below(20);
            }
            if (n == kRoot) continue;
            NodeUsage& parent = usage[tree.node(n).parent];
            parent.allocated.box += usage[n].allocated.box;
            parent.allocated.tapered2 += usage[n].allocated.tapered2;
            parent.allocated.running += usage[n].allocated.running;
            parent.unallocated.box += usage[n].unallocated.box;
            parent.unallocated.tapered2 += usage[n].unallocated.tapered2;
            parent.unallocated.running += usage[n].unallocated.running;
            parent.commitment += usage[n].commitment;
        }
    }

    void make_jobs() {
        const std::uint32_t count = below(16);
        for (std::uint32_t i = 0; i < count; ++i) {
            PendingJob job;
            job.job_id = 100 + i;
            job.leaf = below(static_cast<std::uint32_t>(tree.nodes().size()));
            job.run_class = below(4) == 0 ? RunClass::kUnallocated : RunClass::kAllocated;
            job.rate = below(4);
            job.contract = below(30);
            job.qos_priority = below(2);
            job.nice = static_cast<std::int64_t>(below(3)) - 1;
            job.eligible_since = below(4);
            job.tasks = below(4) == 0 ? 1 + below(5) : 1;
            job.tasks_ahead = job.tasks > 1 ? below(6) : 1;
            job.eligible = below(5) > 0;
            jobs.push_back(job);
        }
    }

    std::vector<Wide> plain_numerators(RunClass run_class) const {
        std::vector<Wide> result;
        for (const NodeUsage& node : usage) {
            const Usage& own = run_class == RunClass::kAllocated ? node.allocated : node.unallocated;
            const Wide used = parameters.window_shape == WindowShape::kBox ? own.box : own.tapered2;
            const Wide commitment = run_class == RunClass::kAllocated ? node.commitment : 0;
            result.push_back(1000 * (used + commitment) +
                             Wide{parameters.lead_millis} * parameters.window * own.running);
        }
        return result;
    }

    std::mt19937_64 random_;
};

constexpr int kOracleRounds = 20;
constexpr int kScenesARound = 500;

std::uint64_t scenes_a_round() {
    return static_cast<std::uint64_t>(rounds(kScenesARound));
}

START_TEST(order_is_that_of_a_plain_filling) {
    for (std::uint64_t i = 0; i < scenes_a_round(); ++i) {
        const std::uint64_t seed = static_cast<std::uint64_t>(_i) * kScenesARound + i;
        const RandomScene scene(seed);
        const std::vector<Place> got = order(scene.tree, scene.usage_in_window(), scene.jobs, scene.parameters);
        ck_assert_msg(got == scene.plain_order(), "random scene %llu is not in the order of the plain filling",
                      static_cast<unsigned long long>(seed));
    }
}
END_TEST

START_TEST(order_of_a_random_scene_does_not_depend_on_the_list) {
    for (std::uint64_t seed = 0; seed < scenes_a_round(); ++seed) {
        RandomScene scene(seed);
        const auto ids = [&] {
            std::vector<std::pair<std::uint32_t, std::uint32_t>> result;
            for (const Place& place : order(scene.tree, scene.usage_in_window(), scene.jobs, scene.parameters))
                result.emplace_back(scene.jobs[place.job].job_id, place.task);
            return result;
        };
        const auto first = ids();
        scene.shuffle_jobs();
        ck_assert_msg(ids() == first, "random scene %llu depends on the list", static_cast<unsigned long long>(seed));
    }
}
END_TEST

// With large numbers, where keys and products are wide: the same order as with
// all numbers divided by a common factor.
START_TEST(order_does_not_depend_on_the_unit) {
    for (std::uint64_t seed = 0; seed < scenes_a_round(); ++seed) {
        RandomScene scene(seed);
        const std::vector<Place> first = order(scene.tree, scene.usage_in_window(), scene.jobs, scene.parameters);
        const Wide factor = Wide{1} << (seed % 56);
        for (NodeUsage& node : scene.usage) {
            for (Usage* own : {&node.allocated, &node.unallocated}) {
                own->box *= factor;
                own->tapered2 *= factor;
                own->running = static_cast<Rate>(own->running * factor);
            }
            node.commitment *= factor;
        }
        for (PendingJob& job : scene.jobs) job.rate = static_cast<Rate>(job.rate * factor);
        ck_assert_msg(order(scene.tree, scene.usage_in_window(), scene.jobs, scene.parameters) == first,
                      "random scene %llu depends on the unit", static_cast<unsigned long long>(seed));
    }
}
END_TEST

// Siblings by claims are a strict weak order, extremes included.
START_TEST(claims_are_a_weak_order) {
    constexpr int kSides = 40;
    std::mt19937_64 random(1);
    std::string tree;
    std::string usage;
    for (int i = 0; i < kSides; ++i) {
        const std::string name = "s" + std::to_string(i);
        const std::uint64_t weights[] = {0, 1, 2, 3, 2147483646, random() % 100};
        const std::string amounts[] = {"0", "1", "6x1000", "9223372036854775807x9000000000000",
                                       std::to_string(random() % 100)};
        tree += name + " " + std::to_string(weights[random() % 6]) + ",";
        usage += name + " box=" + amounts[random() % 5] + ",";
    }
    const Scene scene(tree, usage);
    const Claims claims = scene.claims(parameters_of(""));
    const NodeIndex first = scene.tree().node(kRoot).first_child;
    for (NodeIndex a = first; a < first + kSides; ++a)
        for (NodeIndex b = first; b < first + kSides; ++b)
            for (NodeIndex c = first; c < first + kSides; ++c) {
                if (claims.compare(a, b) <= 0 && claims.compare(b, c) <= 0 && claims.compare(a, c) > 0)
                    ck_abort_msg("Q2: nodes %u, %u and %u go round in a circle", a, b, c);
            }
}
END_TEST

Suite* claim_suite() {
    Suite* suite = suite_create("claim");
    TCase* tcase = tcase_create("claim");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, order_row, 0, std::ssize(kOrderRows));
    tcase_add_loop_test(tcase, order_does_not_depend_on_the_list, 0, std::ssize(kOrderRows));
    tcase_add_test(tcase, burst_of_single_jobs);
    tcase_add_test(tcase, burst_of_arrays);
    tcase_add_test(tcase, burst_of_an_array_and_single_jobs);
    tcase_add_loop_test(tcase, compare_row, 0, std::ssize(kCompareRows));
    tcase_add_loop_test(tcase, ratio_row, 0, std::ssize(kRatioRows));
    tcase_add_loop_test(tcase, better_row, 0, std::ssize(kBetterRows));
    tcase_add_test(tcase, both_classes_have_claims);
    tcase_add_test(tcase, class_follows_the_budget);
    tcase_add_loop_test(tcase, order_is_that_of_a_plain_filling, 0, kOracleRounds);
    tcase_add_test(tcase, order_of_a_random_scene_does_not_depend_on_the_list);
    tcase_add_test(tcase, order_does_not_depend_on_the_unit);
    tcase_add_test(tcase, claims_are_a_weak_order);
    suite_add_tcase(suite, tcase);
    return suite;
}

}  // namespace

int main() {
    return run_suite(claim_suite());
}
