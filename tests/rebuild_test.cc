// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of common/rebuild.h (rule U10): what is asked of the accounting database
// and when, and what its rows become in a ledger.

#include "common/rebuild.h"

#include <check.h>

#include <iterator>
#include <string>
#include <vector>

#include "check_main.h"

namespace {

using budget::Association;
using budget::Gap;
using budget::GpuParts;
using budget::kDay;
using budget::kGpu;
using budget::kHour;
using budget::kMinute;
using budget::Ledger;
using budget::Parameters;
using budget::PastCounts;
using budget::Result;
using budget::RowRates;
using budget::RunView;
using budget::Seconds;
using budget::Tree;

constexpr Seconds kT = 1'700'000'000;
constexpr Seconds kWeek = 7 * kDay;

// The parts asked for from kT on, with an answer each, as "from-to" relative to kT.
std::string asked(Gap& gap, Seconds now) {
    std::string parts;
    while (const std::optional<Gap::Part> part = gap.next(now)) {
        parts += std::to_string(part->from - kT) + ".." + std::to_string(part->to - kT) + " ";
        if (gap.filled(*part)) parts += "all ";
    }
    return parts;
}

const struct {
    const char* why;
    void (*open)(Gap&);
    Seconds now;
    const char* parts;
    Seconds from;  // of what is wanted afterwards, relative to kT; -kT is nothing
} kAsked[] = {
    {"nothing is missing", [](Gap&) {}, kT, "", -kT},
    {"a short time is one part", [](Gap& gap) { gap.open(kT - 60); }, kT, "-60..0 all ", -60},
    {"days are asked for one by one", [](Gap& gap) { gap.open(kT - 2 * kDay - 5); }, kT,
     "-172805..-86405 -86405..-5 -5..0 all ", -172805},
    {"the earlier start counts",
     [](Gap& gap) {
         gap.open(kT - 60);
         gap.open(kT - 100);
         gap.open(kT - 10);
     },
     kT, "-100..0 all ", -100},
    {"what begins in the future is waited for", [](Gap& gap) { gap.open(kT + 5); }, kT, "", 5},
    {"after a failure it is not asked at once",
     [](Gap& gap) {
         gap.open(kT - 60);
         gap.failed(kT - 1);
     },
     kT, "", -60},
    {"but half a minute later",
     [](Gap& gap) {
         gap.open(kT - 60);
         gap.failed(kT - Gap::kRetry);
     },
     kT, "-60..0 all ", -60},
};

START_TEST(asks) {
    const auto& row = kAsked[_i];
    Gap gap;
    row.open(gap);
    const std::string parts = asked(gap, row.now);
    ck_assert_msg(parts == row.parts, "%s: %s", row.why, parts.c_str());
    ck_assert_msg(gap.from() - kT == row.from, "%s: from %ld", row.why, static_cast<long>(gap.from() - kT));
}
END_TEST

void check_asked(Gap& gap, Seconds now, const std::string& parts) {
    const std::string got = asked(gap, now);
    ck_assert_msg(got == parts, "at %ld: \"%s\", not \"%s\"", static_cast<long>(now - kT), got.c_str(), parts.c_str());
}

START_TEST(looks_twice) {
    Gap gap;
    gap.open(kT - 60);
    check_asked(gap, kT, "-60..0 all ");
    ck_assert_msg(!gap.is_open(), "all is known");
    check_asked(gap, kT + Gap::kSecondLook - 1, "");
    check_asked(gap, kT + Gap::kSecondLook, "-60..120 ");
    ck_assert_msg(gap.from() == 0, "and then never again");
    check_asked(gap, kT + kDay, "");
}
END_TEST

START_TEST(is_opened_while_looking_twice) {
    Gap gap;
    gap.open(kT - 60);
    asked(gap, kT);
    gap.open(kT + 10);
    check_asked(gap, kT + 20, "-60..20 all ");
}
END_TEST

START_TEST(fails_on_the_way) {
    Gap gap;
    gap.open(kT - 2 * kDay);
    const Gap::Part first = gap.next(kT).value();
    gap.filled(first);
    gap.failed(kT);
    ck_assert_msg(!gap.next(kT + Gap::kRetry - 1), "not yet");
    ck_assert_msg(gap.next(kT + Gap::kRetry)->from == first.to, "goes on where it failed");
    ck_assert_msg(gap.from() == first.to, "and so after a restart");
}
END_TEST

// root { a 1 (ann, bob), free 0 (fay) }
const std::vector<Association> kTree = {{.id = 1, .account = "root"},
                                        {.id = 2, .parent_id = 1, .account = "a"},
                                        {.id = 3, .parent_id = 2, .account = "a", .user = "ann"},
                                        {.id = 4, .parent_id = 2, .account = "a", .user = "bob"},
                                        {.id = 5, .parent_id = 1, .account = "free", .shares = 0},
                                        {.id = 6, .parent_id = 5, .account = "free", .user = "fay"},
                                        {.id = 7, .parent_id = 1, .account = "root", .user = "root"}};

constexpr const char* kHeader =
    "JobIDRaw|Account|User|Partition|AssocID|UID|Submit|Start|End|Suspended|State|AllocTRES|AdminComment\n";

struct Scene {
    Scene() : tree(Tree::build(kTree).value()) {
        ledger.set_tree(kTree, tree);
        ledger.advance(kT);
    }
    PastCounts fill(const std::string& rows) {
        RowRates rates{Parameters(), GpuParts()};
        Result<PastCounts> counts = take_up_past(ledger, tree, kHeader + rows, '|', "slurm", rates);
        ck_assert_msg(counts.ok(), "%s", counts.ok() ? "" : counts.error().c_str());
        return counts.value();
    }
    double used() { return budget::gpu_seconds(ledger.node_usage()[budget::kRoot].allocated.box); }
    double free_used() { return budget::gpu_seconds(ledger.node_usage()[budget::kRoot].unallocated.box); }

    Ledger ledger{kWeek};
    Tree tree;
};

// A row that ran from -a to -b seconds before kT, submitted long ago or -submitted before.
std::string row(const std::string& job, const std::string& who, Seconds a, Seconds b, const std::string& state,
                int gpus, const std::string& comment = "", const std::string& suspended = "00:00:00",
                Seconds submitted = kT) {
    return job + "|" + who + "|main|0|1001|" + std::to_string(kT - submitted) + "|" + std::to_string(kT - a) + "|" +
           (b < 0 ? "Unknown" : std::to_string(kT - b)) + "|" + suspended + "|" + state +
           "|cpu=1,gres/gpu=" + std::to_string(gpus) + "|" + comment + "\n";
}

const struct {
    const char* why;
    std::string rows;
    double used;
    double free_used;
    std::size_t changes;
    std::size_t untagged;
} kRows[] = {
    {"U10: a run is charged from start to end", row("1", "a|ann", 100, 40, "COMPLETED", 8), 480, 0, 1, 1},
    {"U10: twice in the answer, once charged",
     row("1", "a|ann", 100, 40, "COMPLETED", 8) + row("1", "a|ann", 100, 40, "COMPLETED", 8), 480, 0, 1, 1},
    {"US-05: all runs of a requeued job",
     row("1", "a|ann", 400, 300, "REQUEUED", 8) + row("1", "a|ann", 200, 150, "REQUEUED", 8) +
         row("1", "a|ann", 100, 40, "COMPLETED", 8),
     8 * 210, 0, 3, 3},
    {"US-07: a row without an end is not charged", row("1", "a|ann", 300 * kDay, -1, "RUNNING", 8), 0, 0, 0, 0},
    {"U10: the tag tells the class", row("1", "a|ann", 100, 40, "COMPLETED", 8, "[budget class=unallocated] x"), 0, 480,
     1, 0},
    {"U10: the tag tells what AllocTRES does not",
     row("1", "a|ann", 100, 40, "COMPLETED", 1, "[budget class=allocated contract=0 gpus=8]"), 480, 0, 1, 0},
    {"B4: without a tag and without a budget nothing is charged", row("1", "free|fay", 100, 40, "COMPLETED", 8), 0, 480,
     1, 1},
    {"C8: jobs of root and SlurmUser are not charged",
     row("1", "root|root", 100, 40, "COMPLETED", 8) + row("2", "a|slurm", 100, 40, "COMPLETED", 8), 0, 0, 0, 0},
    {"U7: a failed node inside the contract is refunded",
     row("1", "a|ann", 100, 40, "NODE_FAIL", 8, "[budget class=allocated contract=61]"), 0, 0, 1, 0},
    {"U7: after the contract nothing is",
     row("1", "a|ann", 100, 40, "NODE_FAIL", 8, "[budget class=allocated contract=60]"), 480, 0, 1, 0},
    {"U7: nor if somebody else cancelled it inside",
     row("1", "a|ann", 100, 40, "CANCELLED by 0", 8, "[budget class=allocated contract=61]"), 0, 0, 1, 0},
    {"U7: its own user's scancel is charged",
     row("1", "a|ann", 100, 40, "CANCELLED by 1001", 8, "[budget class=allocated contract=61]"), 480, 0, 1, 0},
    {"U6: suspended time is not charged", row("1", "a|ann", 100, 40, "COMPLETED", 8, "", "00:00:20"), 320, 0, 1, 1},
    {"U2: parts between resizes are charged each",
     row("1", "a|ann", 100, 40, "RESIZING", 16) + row("1", "a|ann", 40, 20, "COMPLETED", 8), 16 * 60 + 8 * 20, 0, 2, 2},
    {"U2: also those that have the start of the first one",
     row("1", "a|ann", 100, 40, "RESIZING", 16) + row("1", "a|ann", 100, 20, "COMPLETED", 8, "", "00:00:00", 40),
     16 * 60 + 8 * 20, 0, 2, 2},
    {"U8: of a deleted user, at the account", row("1", "a|gone", 100, 40, "COMPLETED", 8), 480, 0, 1, 1},
    {"U8: of a deleted account, at the root", row("1", "old|gone", 100, 40, "COMPLETED", 8), 480, 0, 1, 1},
    {"U3: only what lies in the window", row("1", "a|ann", kWeek + 100, kWeek - 60, "COMPLETED", 8), 480, 0, 1, 1},
    {"U1: a job without GPUs costs nothing", row("1", "a|ann", 100, 40, "COMPLETED", 0), 0, 0, 0, 0},
};

START_TEST(takes_up) {
    const auto& row = kRows[_i];
    Scene scene;
    for (int times = 0; times < 2; ++times) {
        const PastCounts counts = scene.fill(row.rows);
        ck_assert_msg(scene.used() == row.used, "%s: %f", row.why, scene.used());
        ck_assert_msg(scene.free_used() == row.free_used, "%s: free %f", row.why, scene.free_used());
        ck_assert_msg(counts.changes == (times == 0 ? row.changes : 0), "%s: %zu changes", row.why, counts.changes);
        if (times == 0) ck_assert_msg(counts.untagged == row.untagged, "%s: %zu untagged", row.why, counts.untagged);
    }
}
END_TEST

START_TEST(unused_contracts) {
    Scene scene;
    scene.ledger.set_unused_charge(500);
    scene.fill(row("1", "a|ann", 100, 40, "COMPLETED", 8, "[budget class=allocated contract=80]") +
               row("2", "a|ann", 100, 40, "PREEMPTED", 8, "[budget class=allocated contract=80]"));
    ck_assert_msg(scene.used() == 8 * (60 + 10 + 60), "U11: half of what the first did not use: %f", scene.used());
}
END_TEST

// What slurmctld shows of its jobs goes before the database, whichever comes first.
START_TEST(makes_way) {
    for (const bool seen_first : {false, true}) {
        Scene scene;
        const RunView view = {.key = {.job_id = 1}, .assoc = 3, .rate = 8 * kGpu, .start = kT - 100};
        if (seen_first) scene.ledger.observe(view);
        scene.fill(row("1", "a|ann", 400, 300, "REQUEUED", 8) + row("1", "a|ann", 100, 90, "COMPLETED", 8));
        if (!seen_first) scene.ledger.observe(view);
        ck_assert_msg(scene.used() == 8 * 200, "%d: %f", seen_first, scene.used());
    }
}
END_TEST

START_TEST(tells_the_oldest) {
    Scene scene;
    const PastCounts counts =
        scene.fill(row("1", "a|ann", 500, 300, "COMPLETED", 8) + row("2", "a|ann", 900, 300, "COMPLETED", 0));
    ck_assert_msg(counts.oldest == kT - 500 || counts.oldest == kT - 900, "%ld",
                  static_cast<long>(counts.oldest.value_or(0)));
    ck_assert_msg(scene.fill("").oldest == std::nullopt, "nothing");
}
END_TEST

Suite* rebuild_suite() {
    Suite* suite = suite_create("rebuild");
    TCase* tests = tcase_create("rebuild");
    tcase_add_loop_test(tests, asks, 0, static_cast<int>(std::size(kAsked)));
    tcase_add_test(tests, looks_twice);
    tcase_add_test(tests, is_opened_while_looking_twice);
    tcase_add_test(tests, fails_on_the_way);
    tcase_add_loop_test(tests, takes_up, 0, static_cast<int>(std::size(kRows)));
    tcase_add_test(tests, unused_contracts);
    tcase_add_test(tests, makes_way);
    tcase_add_test(tests, tells_the_oldest);
    suite_add_tcase(suite, tests);
    return suite;
}

}  // namespace

int main() {
    return run_suite(rebuild_suite());
}
