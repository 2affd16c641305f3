// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of common/ledger.h: rules U1 to U10, first as tables of small scenes, then
// against models that paint every run second by second. Rates are in whole
// GPUs, GPU time in GPU-seconds, unless said.

#include "common/ledger.h"

#include <check.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "check_main.h"

namespace {

using budget::Association;
using budget::AssocId;
using budget::kDay;
using budget::kGpu;
using budget::kHour;
using budget::kMinute;
using budget::kRoot;
using budget::kSharesParent;
using budget::Ledger;
using budget::LedgerImage;
using budget::NodeUsage;
using budget::PastRun;
using budget::Rate;
using budget::RunClass;
using budget::RunView;
using budget::Seconds;
using budget::Tree;
using budget::Usage;
using budget::Wide;

constexpr Seconds kWeek = 7 * kDay;
constexpr Seconds kT = 1'700'000'000;  // when the scenes begin

constexpr AssocId kA = 3, kB = 4, kC = 6, kAnn = 7, kBob = 8;

// root { p1 60 { a 70 (ann, bob), b 30 (ann) }, p2 40 { c 1 } }
std::vector<Association> small_tree() {
    return {{.id = 1, .account = "root"},
            {.id = 2, .parent_id = 1, .account = "p1", .shares = 60},
            {.id = kA, .parent_id = 2, .account = "a", .shares = 70},
            {.id = kB, .parent_id = 2, .account = "b", .shares = 30},
            {.id = 5, .parent_id = 1, .account = "p2", .shares = 40},
            {.id = kC, .parent_id = 5, .account = "c", .shares = 1},
            {.id = kAnn, .parent_id = kA, .account = "a", .user = "ann", .shares = 1},
            {.id = kBob, .parent_id = kA, .account = "a", .user = "bob", .shares = 1},
            {.id = 9, .parent_id = kB, .account = "b", .user = "ann", .shares = kSharesParent}};
}

// A ledger with a tree, and its sums by account name.
struct Scene {
    explicit Scene(Seconds window = kWeek) : ledger(window) { set_tree(small_tree()); }

    void set_tree(const std::vector<Association>& list) {
        associations = list;
        auto built = Tree::build(list);
        ck_assert_msg(built.ok(), "%s", built.ok() ? "" : built.error().c_str());
        tree = std::move(built).value();
        ledger.set_tree(associations, tree);
    }

    // A run of one user of account a, unless the view says otherwise.
    void show(RunView view, Seconds gpus = 8) {
        if (view.assoc == 0) view.assoc = kAnn;
        if (view.key.job_id == 0) view.key.job_id = 1;
        view.rate = gpus * kGpu;
        ledger.observe(view);
    }

    // A row of the accounting database, of ann in account a and job 1 unless it says otherwise.
    bool tell(PastRun past, Seconds gpus = 8) {
        if (past.job_id == 0) past.job_id = 1;
        if (past.account.empty()) past.account = "a", past.user = "ann";
        past.rate = gpus * kGpu;
        return ledger.observe_past(past);
    }

    // The process ends, and another one goes on from its state.
    void restart(Seconds now, Seconds window = kWeek) {
        ledger = Ledger(window, ledger.image(), now, ledger.unused_charge());
        set_tree(associations);
    }

    // One scan in which these runs are all there are.
    void scan(Seconds now, std::initializer_list<RunView> views) {
        ledger.begin_scan(now);
        for (const RunView& view : views) show(view);
        ledger.end_scan();
    }

    const NodeUsage& at(std::string_view account) { return ledger.node_usage()[tree.find_account(account).value()]; }
    double used(std::string_view account) { return budget::gpu_seconds(at(account).allocated.box); }

    Ledger ledger;
    Tree tree;
    std::vector<Association> associations;
};

RunView run_from(Seconds start) {
    return {.start = start};
}
RunView run_of(Seconds start, Seconds end) {
    return {.start = start, .end = end};
}

PastRun row_of(Seconds start, Seconds end) {
    return {.start = start, .end = end};
}
PastRun resized_row(Seconds start, Seconds end) {
    return {.start = start, .end = end, .resized = true};
}

// Each scene leaves these GPU-seconds at account a.
const struct PlayedScene {
    const char* why;
    void (*play)(Scene&);
    double allocated;
    double unallocated;
    double commitment;
    double running;
} kScenes[] = {
    {"nothing has run", [](Scene& s) { s.ledger.advance(kT); }, 0, 0, 0, 0},
    {"U2: a run is charged from its start to now",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show(run_from(kT));
         s.ledger.advance(kT + 100);
     },
     800, 0, 0, 8},
    {"U2: and to its end",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show(run_from(kT));
         s.ledger.advance(kT + 100);
         s.show(run_of(kT, kT + 60));
         s.ledger.advance(kT + 500);
     },
     480, 0, 0, 0},
    {"U2: shown a thousand times, before and after its end, it is charged once (US-06)",
     [](Scene& s) {
         for (int i = 0; i < 1000; ++i) {
             s.ledger.advance(kT + i);
             s.show(run_from(kT));
         }
         for (int i = 0; i < 1000; ++i) s.show(run_of(kT, kT + 999));
     },
     8 * 999, 0, 0, 0},
    {"U2: two views of one end, requeue at the very end (US-06)",
     [](Scene& s) {
         for (Seconds i = 0; i < 1000; ++i) {
             const Seconds start = kT + 10 * i;
             RunView run = run_from(start);
             run.key = {.job_id = 1, .restart_count = static_cast<std::uint32_t>(i)};
             s.scan(start, {run});
             run.end = start + 5;
             s.scan(start + 5, {run});
             s.scan(start + 5, {run, run});
             ck_assert_msg(s.used("a") == static_cast<double>(40 * (i + 1)), "restart %ld", static_cast<long>(i));
         }
     },
     40'000, 0, 0, 0},
    {"U2: each run of a requeued job counts (US-05)",
     [](Scene& s) {
         Seconds start = kT;
         std::uint32_t restart = 0;
         for (const Seconds minutes : {65, 75, 102, 36}) {
             RunView run = run_from(start);
             run.key = {.job_id = 4711, .restart_count = restart++};
             s.ledger.advance(start);
             s.show(run);
             run.end = start + minutes * kMinute;
             s.ledger.advance(*run.end);
             s.show(run);
             start = *run.end + 300;
         }
     },
     8 * 278 * 60, 0, 0, 0},
    {"U2: replayed in the wrong order it is the same (US-05)",
     [](Scene& s) {
         s.ledger.advance(kT + kDay);
         std::uint32_t restart = 4;
         for (const Seconds minutes : {36, 102, 75, 65}) {
             const Seconds start = kT + 7200 * --restart;
             s.ledger.observe({.key = {.job_id = 4711, .restart_count = restart},
                               .assoc = kAnn,
                               .rate = 8 * kGpu,
                               .start = start,
                               .end = start + minutes * kMinute});
         }
     },
     8 * 278 * 60, 0, 0, 0},
    {"U2: a start that is moved later moves the run",
     [](Scene& s) {
         s.ledger.advance(kT + 10);
         s.show(run_from(kT));
         s.ledger.advance(kT + 300);
         s.show(run_from(kT + 280));
     },
     160, 0, 0, 8},
    {"U2: a start that is moved earlier too",
     [](Scene& s) {
         s.ledger.advance(kT + 300);
         s.show(run_from(kT + 280));
         s.show(run_from(kT + 200));
     },
     800, 0, 0, 8},
    {"U2: a start moved into the future and back (US-16)",
     [](Scene& s) {
         s.ledger.advance(kT + 100);
         s.show(run_from(kT));
         s.show(run_from(kT + 150));
         ck_assert_msg(s.used("a") == 0 && s.at("a").allocated.running == 0, "not yet charged");
         s.show(run_from(kT + 50));
     },
     400, 0, 0, 8},
    {"U2: a start that stays in the future is charged when it comes",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show(run_from(kT + 150));
         s.ledger.advance(kT + 160);
     },
     80, 0, 0, 8},
    {"U2: a run resized before it starts, twice",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show(run_from(kT + 100));
         s.ledger.advance(kT + 10);
         s.show(run_from(kT + 100), 4);
         s.ledger.advance(kT + 20);
         s.show(run_from(kT + 100), 2);
         s.ledger.advance(kT + 150);
     },
     100, 0, 0, 2},
    {"U2: a resize changes the rate from its instant",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show(run_from(kT));
         s.ledger.advance(kT + 100);
         s.show({.start = kT, .changed = kT + 40}, 2);
     },
     8 * 40 + 2 * 60, 0, 0, 2},
    {"U2: or from when it is seen, where the instant is unknown",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show(run_from(kT));
         s.ledger.advance(kT + 100);
         s.show(run_from(kT), 2);
         s.ledger.advance(kT + 110);
     },
     820, 0, 0, 2},
    {"U2: an instant that is not later than the last change is that of the last change",
     [](Scene& s) {
         s.ledger.advance(kT + 100);
         s.show({.start = kT, .suspended = true, .changed = kT + 10});
         s.show({.start = kT, .changed = kT + 10}, 2);
         s.ledger.advance(kT + 200);
     },
     80 + 200, 0, 0, 2},
    {"U2: an instant in the future is none",
     [](Scene& s) {
         s.ledger.advance(kT + 100);
         s.show(run_from(kT));
         s.show({.start = kT, .changed = kT + 200}, 2);
         s.ledger.advance(kT + 200);
     },
     1000, 0, 0, 2},
    {"U2: a later end replaces an earlier one",
     [](Scene& s) {
         s.ledger.advance(kT + 500);
         s.show(run_of(kT, kT + 100));
         s.show(run_of(kT, kT + 300));
     },
     2400, 0, 0, 0},
    {"U2: an earlier end replaces a later one",
     [](Scene& s) {
         s.ledger.advance(kT + 500);
         s.show(run_of(kT, kT + 300));
         s.show(run_of(kT, kT + 100));
     },
     800, 0, 0, 0},
    {"U2: an end earlier than a resize takes the resize with it, a later one brings it back",
     [](Scene& s) {
         s.ledger.advance(kT + 300);
         s.show(run_from(kT));
         s.show({.start = kT, .changed = kT + 200}, 4);
         s.show({.start = kT, .end = kT + 100, .changed = kT + 200}, 4);
         ck_assert_msg(s.used("a") == 800, "without the resize");
         s.show({.start = kT, .end = kT + 250, .changed = kT + 200}, 4);
     },
     1600 + 200, 0, 0, 0},
    {"U2: inside the contract and after it alike",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show({.start = kT, .contract = 50});
         s.ledger.advance(kT + 100);
     },
     800, 0, 0, 8},
    {"U2: a run that is no longer there has ended when it was last seen",
     [](Scene& s) {
         s.scan(kT, {run_from(kT)});
         s.scan(kT + 30, {run_from(kT)});
         s.scan(kT + 60, {});
         s.scan(kT + 90, {});
     },
     240, 0, 0, 0},
    {"U2: its true end, told later, replaces that",
     [](Scene& s) {
         s.scan(kT, {run_from(kT)});
         s.scan(kT + 30, {});
         s.scan(kT + 60, {run_of(kT, kT + 20)});
     },
     160, 0, 0, 0},
    {"U2: if it is there again, it has run on",
     [](Scene& s) {
         s.scan(kT, {run_from(kT)});
         s.scan(kT + 30, {});
         s.scan(kT + 60, {run_from(kT)});
         s.scan(kT + 90, {run_from(kT)});
     },
     720, 0, 0, 8},
    {"U2: one that vanishes before its start costs nothing",
     [](Scene& s) {
         s.scan(kT, {run_from(kT + 100)});
         s.scan(kT + 30, {});
         s.ledger.advance(kT + 200);
     },
     0, 0, 0, 0},
    {"U2: 256 scans and more, and still the one that is missing is found",
     [](Scene& s) {
         RunView other = run_from(kT);
         other.key.job_id = 2;
         for (Seconds i = 0; i <= 600; ++i) s.scan(kT + i, {run_from(kT), other});
         s.scan(kT + 700, {other});
     },
     8 * 600 + 8 * 700, 0, 0, 8},
    {"U4: a run counts from its start with its whole contract",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show({.start = kT, .contract = kHour});
     },
     0, 0, 8 * 3600, 8},
    {"U4: then with what is left of it",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show({.start = kT, .contract = kHour});
         s.ledger.advance(kT + 600);
     },
     4800, 0, 8 * 3000, 8},
    {"U4: after it not any more",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show({.start = kT, .contract = kHour});
         s.ledger.advance(kT + 3601);
     },
     8 * 3601, 0, 0, 8},
    {"U4: nor after an end inside it",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show({.start = kT, .contract = kHour});
         s.ledger.advance(kT + 600);
         s.show({.start = kT, .end = kT + 600, .contract = kHour});
     },
     4800, 0, 0, 0},
    {"U4: not before its start either does it shrink",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show({.start = kT + 100, .contract = 50});
         s.ledger.advance(kT + 90);
     },
     0, 0, 400, 0},
    {"U4: a resized run is committed at its new rate",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show({.start = kT, .contract = 1000});
         s.ledger.advance(kT + 400);
         s.show({.start = kT, .contract = 1000}, 2);
     },
     3200, 0, 1200, 2},
    {"C6: a shorter contract only ends the commitment earlier",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show({.start = kT, .contract = 1000});
         s.ledger.advance(kT + 400);
         s.show({.start = kT, .contract = 500});
     },
     3200, 0, 800, 8},
    {"C6, U4: a longer one is committed at once, also when the old one was over",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show({.start = kT, .contract = 100});
         s.ledger.advance(kT + 400);
         ck_assert_msg(s.at("a").commitment == 0, "it was over");
         s.show({.start = kT, .contract = 500});
     },
     3200, 0, 800, 8},
    {"C6, U4: one of 0 ends it at once, and nothing else",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show({.start = kT, .contract = kHour});
         s.ledger.advance(kT + 400);
         ck_assert_msg(s.at("a").commitment == Wide{8 * 3200} * kGpu, "it is on");
         s.show({.start = kT});
     },
     3200, 0, 0, 8},
    {"U11: a part of the unused contract is charged as time passes, and nobody runs then",
     [](Scene& s) {
         s.ledger.set_unused_charge(500);
         s.ledger.advance(kT + 100);
         s.show({.start = kT, .end = kT + 100, .contract = 301, .by_itself = true});
         ck_assert_msg(s.used("a") == 800 && s.ledger.running() == 0, "nothing in advance");
         s.ledger.advance(kT + 150);
         ck_assert_msg(s.used("a") == 1200 && s.ledger.running() == 0, "by the second");
         s.ledger.advance(kT + 500);
     },
     800 + 8 * 100, 0, 0, 0},
    {"U11: nothing as shipped",
     [](Scene& s) {
         s.ledger.advance(kT + 500);
         s.show({.start = kT, .end = kT + 100, .contract = 301, .by_itself = true});
     },
     800, 0, 0, 0},
    {"U11: nothing if the contract was used",
     [](Scene& s) {
         s.ledger.set_unused_charge(1000);
         s.ledger.advance(kT + 500);
         s.show({.start = kT, .end = kT + 100, .contract = 100, .by_itself = true});
     },
     800, 0, 0, 0},
    {"U11: nothing if others ended it",
     [](Scene& s) {
         s.ledger.set_unused_charge(1000);
         s.ledger.advance(kT + 500);
         s.show({.start = kT, .end = kT + 100, .contract = 300});
     },
     800, 0, 0, 0},
    {"U7, U11: nor of one that is refunded",
     [](Scene& s) {
         s.ledger.set_unused_charge(1000);
         s.ledger.advance(kT + 500);
         s.show({.start = kT, .end = kT + 100, .contract = 300, .refunded = true, .by_itself = true});
     },
     0, 0, 0, 0},
    {"U2, U11: nor of one that is not charged",
     [](Scene& s) {
         s.ledger.set_unused_charge(1000);
         s.ledger.advance(kT + 500);
         RunView run{.run_class = RunClass::kUnallocated, .start = kT, .end = kT + 100, .contract = 300};
         run.by_itself = true;
         s.show(run);
     },
     0, 800, 0, 0},
    {"U11: one that is on has not ended by itself",
     [](Scene& s) {
         s.ledger.set_unused_charge(1000);
         s.ledger.advance(kT);
         s.show({.start = kT, .contract = 300, .by_itself = true});
         s.ledger.advance(kT + 100);
     },
     800, 0, 1600, 8},
    {"U6, U11: suspended time has used nothing of the contract",
     [](Scene& s) {
         s.ledger.set_unused_charge(1000);
         s.ledger.advance(kT);
         s.show({.start = kT, .contract = 200});
         s.ledger.advance(kT + 50);
         s.show({.start = kT, .contract = 200, .suspended = true});
         s.ledger.advance(kT + 500);
         s.show({.start = kT, .end = kT + 100, .contract = 200, .suspended = true, .by_itself = true});
     },
     8 * 50 + 8 * 150, 0, 0, 0},
    {"U11: a resized run is charged its last rate for it",
     [](Scene& s) {
         s.ledger.set_unused_charge(1000);
         s.ledger.advance(kT);
         s.show({.start = kT, .contract = 200});
         s.ledger.advance(kT + 50);
         s.show({.start = kT, .contract = 200}, 2);
         s.ledger.advance(kT + 500);
         s.show({.start = kT, .end = kT + 100, .contract = 200, .by_itself = true}, 2);
     },
     8 * 50 + 2 * 50 + 2 * 100, 0, 0, 0},
    {"U11: shown again and again it is charged once",
     [](Scene& s) {
         s.ledger.set_unused_charge(1000);
         s.ledger.advance(kT);
         s.show({.start = kT, .contract = 300});
         for (Seconds i = 100; i < 500; ++i) {
             s.ledger.advance(kT + i);
             s.show({.start = kT, .end = kT + 100, .contract = 300, .by_itself = true});
         }
     },
     800 + 1600, 0, 0, 0},
    {"U11: a verdict that comes later, or is taken back, counts from then",
     [](Scene& s) {
         s.ledger.set_unused_charge(1000);
         s.ledger.advance(kT + 500);
         s.show({.start = kT, .end = kT + 100, .contract = 300});
         s.show({.start = kT, .end = kT + 100, .contract = 300, .by_itself = true});
         ck_assert_msg(s.used("a") == 2400, "it has ended by itself");
         s.show({.start = kT, .end = kT + 100, .contract = 300});
         ck_assert_msg(s.used("a") == 800, "it has not");
         s.show({.start = kT, .end = kT + 150, .contract = 300, .by_itself = true});
     },
     1200 + 8 * 150, 0, 0, 0},
    {"U11: another part counts for all runs",
     [](Scene& s) {
         s.ledger.set_unused_charge(1000);
         s.ledger.advance(kT + 500);
         s.show({.start = kT, .end = kT + 100, .contract = 300, .by_itself = true});
         s.ledger.set_unused_charge(0);
         ck_assert_msg(s.used("a") == 800, "nothing");
         s.ledger.set_unused_charge(250);
     },
     800 + 8 * 50, 0, 0, 0},
    {"U11: in a window of another length too",
     [](Scene& s) {
         s.ledger.set_unused_charge(1000);
         s.ledger.advance(kT + 500);
         s.show({.start = kT, .end = kT + 100, .contract = 300, .by_itself = true});
         s.ledger.set_window(250);  // begins 50 seconds before that is over
     },
     8 * 50, 0, 0, 0},
    {"U3, U11: it leaves the window like any usage, and the run is kept so long",
     [](Scene& s) {
         s.ledger.set_unused_charge(1000);
         s.ledger.advance(kT + 100);
         s.show({.start = kT, .end = kT + 100, .contract = kDay, .by_itself = true});
         s.ledger.advance(kT + 100 + kWeek);
         ck_assert_msg(s.used("a") == 8 * (kDay - 100) && s.ledger.run_count() == 1, "the run itself has left");
         s.restart(kT + kWeek + kDay - 10);
         ck_assert_msg(s.used("a") == 80, "nor does a restart change it");
         s.ledger.advance(kT + kWeek + kDay);
         ck_assert_msg(s.ledger.run_count() == 0, "and then it is gone");
     },
     0, 0, 0, 0},
    {"U10, U11: a row that tells of it",
     [](Scene& s) {
         s.ledger.set_unused_charge(500);
         s.ledger.advance(kT + 500);
         s.tell({.start = kT, .end = kT + 100, .contract = 300, .by_itself = true});
     },
     800 + 800, 0, 0, 0},
    {"U10, U11: of a run that has gone as well",
     [](Scene& s) {
         s.ledger.set_unused_charge(500);
         s.scan(kT, {{.start = kT, .contract = 300}});
         s.scan(kT + 500, {});
         s.tell({.start = kT, .end = kT + 100, .contract = 300, .by_itself = true});
     },
     800 + 800, 0, 0, 0},
    {"U6: suspended time is not charged (US-04)",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show(run_from(kT), 4);
         s.ledger.advance(kT + kHour);
         s.show({.start = kT, .suspended = true, .changed = kT + kHour}, 4);
         s.ledger.advance(kT + 3 * kHour);
         s.show({.start = kT, .changed = kT + 3 * kHour}, 4);
         s.ledger.advance(kT + 4 * kHour);
         s.show(run_of(kT, kT + 4 * kHour), 4);
     },
     4 * 2 * 3600, 0, 0, 0},
    {"U6: nor is it running",
     [](Scene& s) {
         s.ledger.advance(kT + 100);
         s.show({.start = kT, .suspended = true, .changed = kT + 60});
     },
     480, 0, 0, 0},
    {"U6: while suspended the rest of the contract stays",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show({.start = kT, .contract = 1000});
         s.ledger.advance(kT + 300);
         s.show({.start = kT, .contract = 1000, .suspended = true, .changed = kT + 200});
         s.ledger.advance(kT + 50'000);
     },
     1600, 0, 8 * 800, 0},
    {"U6: and goes on when it goes on",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show({.start = kT, .contract = 1000});
         s.ledger.advance(kT + 200);
         s.show({.start = kT, .contract = 1000, .suspended = true, .changed = kT + 200});
         s.ledger.advance(kT + 700);
         s.show({.start = kT, .contract = 1000, .changed = kT + 600});
         s.ledger.advance(kT + 900);
     },
     1600 + 2400, 0, 8 * 500, 8},
    {"U6: a run first seen suspended has run until then",
     [](Scene& s) {
         s.ledger.advance(kT + 100);
         s.show({.start = kT, .suspended = true});
         s.ledger.advance(kT + 200);
     },
     800, 0, 0, 0},
    {"U6: ended while suspended",
     [](Scene& s) {
         s.ledger.advance(kT + 100);
         s.show({.start = kT, .suspended = true, .changed = kT + 60});
         s.ledger.advance(kT + 200);
         s.show({.start = kT, .end = kT + 150, .changed = kT + 60});
         s.ledger.advance(kT + 300);
     },
     480, 0, 0, 0},
    {"U7: a contract broken by the cluster is not charged (US-19)",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show({.start = kT, .contract = kHour}, 16);
         s.ledger.advance(kT + 45 * kMinute);
         s.show({.start = kT, .end = kT + 45 * kMinute, .contract = kHour, .refunded = true}, 16);
         RunView again{.key = {.job_id = 1, .restart_count = 1}, .start = kT + 50 * kMinute, .contract = kHour};
         s.ledger.advance(kT + 60 * kMinute);
         s.show(again, 16);
     },
     16 * 600, 0, 16 * 3000, 16},
    {"U7: a refund taken back is charged again",
     [](Scene& s) {
         s.ledger.advance(kT + 200);
         s.show({.start = kT, .end = kT + 100, .refunded = true});
         s.show(run_of(kT, kT + 100));
     },
     800, 0, 0, 0},
    {"U9: an unallocated run is in the other window, without commitment (US-12)",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show({.run_class = RunClass::kUnallocated, .start = kT, .contract = kHour});
         s.ledger.advance(kT + 100);
     },
     0, 800, 0, 0},
    {"U9: a corrected class moves its time over",
     [](Scene& s) {
         s.ledger.advance(kT + 100);
         s.show({.run_class = RunClass::kUnallocated, .start = kT});
         s.show(run_from(kT));
     },
     800, 0, 0, 8},
    {"U1: the rate is the whole job's, however many nodes (US-03)",
     [](Scene& s) {
         s.ledger.advance(kT + kHour);
         s.show(run_of(kT, kT + kHour), 32);
     },
     32 * 3600, 0, 0, 0},
    {"U3: a run that began before the window and goes on (US-09)",
     [](Scene& s) {
         s.ledger.advance(kT + 10 * kDay);
         s.show(run_from(kT));
     },
     8 * 168 * 3600, 0, 0, 8},
    {"U3: the same two days later, ended in between (US-09)",
     [](Scene& s) {
         s.ledger.advance(kT);
         s.show(run_from(kT));
         s.ledger.advance(kT + 10 * kDay);
         s.ledger.advance(kT + 12 * kDay);
         s.show(run_of(kT, kT + 11 * kDay));
     },
     8 * 144 * 3600, 0, 0, 0},
    {"U3: usage leaves when nobody submits anything (US-09)",
     [](Scene& s) {
         s.ledger.advance(kT + 100);
         s.show(run_of(kT, kT + 100));
         s.ledger.advance(kT + kWeek + 90);
     },
     80, 0, 0, 0},
    {"U3: and has gone to the second",
     [](Scene& s) {
         s.ledger.advance(kT + 100);
         s.show(run_of(kT, kT + 100));
         s.ledger.advance(kT + kWeek + 99);
         ck_assert_msg(s.used("a") == 8, "its last second");
         s.ledger.advance(kT + kWeek + 100);
     },
     0, 0, 0, 0},
    {"US-10: a hold on the account is no matter, what runs is charged",
     [](Scene& s) {
         RunView other = run_from(kT);
         other.key.job_id = 2;
         other.assoc = kC;
         s.scan(kT, {run_from(kT), other});
         s.scan(kT + 100, {run_from(kT), other});
         ck_assert_msg(s.used("a") == s.used("c"), "equal usage");
     },
     800, 0, 0, 8},
    {"RK-09: usage lands on the account of the job",
     [](Scene& s) {
         RunView other = run_from(kT);
         other.key.job_id = 2;
         other.assoc = 9;  // ann in account b
         s.scan(kT, {run_from(kT), other});
         s.scan(kT + 10, {run_from(kT)});
         ck_assert_msg(s.used("b") == 0, "it vanished at once");
     },
     80, 0, 0, 8},
    {"RK-11: many small runs add up",
     [](Scene& s) {
         for (Seconds i = 0; i < 10'080; ++i) {
             RunView run = run_of(kT + i * 60, kT + i * 60 + 30);
             run.key.job_id = static_cast<std::uint32_t>(i + 1);
             s.ledger.advance(*run.end);
             s.show(run, 1);
         }
         s.ledger.advance(kT + kWeek);
     },
     302'400, 0, 0, 0},
    {"RK-11: and are exactly nothing a month later",
     [](Scene& s) {
         for (Seconds i = 0; i < 10'080; ++i) {
             RunView run = run_of(kT + i * 60, kT + i * 60 + 30);
             run.key.job_id = static_cast<std::uint32_t>(i + 1);
             s.ledger.advance(*run.end);
             s.show(run, 1);
         }
         s.ledger.advance(kT + 37 * kDay);
         ck_assert_msg(s.at("a").allocated.box == 0 && s.at("a").allocated.tapered2 == 0, "exactly");
         ck_assert_msg(s.ledger.run_count() == 0, "and forgotten");
     },
     0, 0, 0, 0},
    {"US-16: the clock steps back, the run goes on at the old now",
     [](Scene& s) {
         s.scan(kT, {run_from(kT)});
         s.scan(kT + 1800, {run_from(kT)});
         s.scan(kT + 600, {run_from(kT)});
         ck_assert_msg(s.used("a") == 14'400 && s.ledger.now() == kT + 1800, "nothing is taken back");
         s.scan(kT + 1800, {run_from(kT)});
         s.scan(kT + 1900, {run_from(kT)});
     },
     15'200, 0, 0, 8},
    {"US-16: one that starts and ends while the clock is behind",
     [](Scene& s) {
         s.scan(kT + 1800, {});
         s.scan(kT + 600, {run_from(kT + 600)});
         s.scan(kT + 700, {run_of(kT + 600, kT + 700)});
     },
     800, 0, 0, 0},
    {"US-16: one that vanishes while the clock is behind is noticed",
     [](Scene& s) {
         s.scan(kT + 1800, {run_from(kT + 1700)});
         s.scan(kT + 600, {});
         s.ledger.advance(kT + 3000);
     },
     800, 0, 0, 0},
    {"US-16: one whose clock ran ahead when it ended",
     [](Scene& s) {
         s.scan(kT, {run_from(kT)});
         s.scan(kT + 100, {run_of(kT, kT + 1300)});
         ck_assert_msg(s.used("a") == 800, "only up to now");
         s.scan(kT + 2000, {});
     },
     10'400, 0, 0, 0},
    {"an end before the start is no time at all (TP-14)",
     [](Scene& s) {
         s.ledger.advance(kT + 500);
         s.show(run_of(kT + 100, kT + 40));
     },
     0, 0, 0, 0},
    {"a negative rate is none",
     [](Scene& s) {
         s.ledger.advance(kT + 500);
         s.show(run_from(kT), -8);
     },
     0, 0, 0, 0},
    {"a start before time began is at its beginning",
     [](Scene& s) {
         s.ledger.advance(100);
         s.show(run_from(-1'000'000));
     },
     800, 0, 0, 8},
};

// What the accounting database tells, ids that start over, and suspensions that nobody has seen.
const PlayedScene kPastScenes[] = {
    {"U10: a row charges its time, once however often it is given",
     [](Scene& s) {
         s.ledger.advance(kT + 500);
         ck_assert_msg(s.tell(row_of(kT, kT + 100)), "something new");
         ck_assert_msg(!s.tell(row_of(kT, kT + 100)), "nothing new");
     },
     800, 0, 0, 0},
    {"U10: with a later end it charges up to that, and an earlier one is passed over",
     [](Scene& s) {
         s.ledger.advance(kT + 500);
         s.tell(row_of(kT, kT + 100));
         s.tell(row_of(kT, kT + 200));
         s.tell(row_of(kT, kT + 100));
     },
     1600, 0, 0, 0},
    {"U10: no time at all is no run",
     [](Scene& s) {
         s.ledger.advance(kT + 500);
         s.tell(row_of(kT, kT));
         s.tell(row_of(kT + 100, kT));
         ck_assert_msg(s.ledger.run_count() == 0, "nothing is kept");
     },
     0, 0, 0, 0},
    {"U10: a row from before the window is passed over",
     [](Scene& s) {
         s.ledger.advance(kT + kWeek);
         ck_assert_msg(!s.tell(row_of(kT - 100, kT)) && s.ledger.run_count() == 0, "nothing is kept");
         s.tell({.job_id = 2, .start = kT - 100, .end = kT + 1});
     },
     8, 0, 0, 0},
    {"U10: each run of a requeued job counts, the latest row first",
     [](Scene& s) {
         s.ledger.advance(kT + 1000);
         for (Seconds start = 900; start >= 0; start -= 100) s.tell(row_of(kT + start, kT + start + 100));
         ck_assert_msg(s.ledger.run_count() == 10, "each is a run of its own");
     },
     8000, 0, 0, 0},
    {"U9, U10: given again with another class its time moves over",
     [](Scene& s) {
         s.ledger.advance(kT + 500);
         s.tell(row_of(kT, kT + 100));
         s.tell({.run_class = RunClass::kUnallocated, .start = kT, .end = kT + 100});
     },
     0, 800, 0, 0},
    {"U10: and with another owner as well",
     [](Scene& s) {
         s.ledger.advance(kT + 500);
         s.tell(row_of(kT, kT + 100));
         s.tell({.account = "c", .user = "", .start = kT, .end = kT + 100});
         ck_assert_msg(s.used("c") == 800, "charged to the other");
     },
     0, 0, 0, 0},
    {"U7, U10: a refunded row is not charged",
     [](Scene& s) {
         s.ledger.advance(kT + 500);
         s.tell(row_of(kT, kT + 100));
         s.tell({.start = kT, .end = kT + 100, .refunded = true});
     },
     0, 0, 0, 0},
    {"U6, U10: what it was suspended is not charged, and no more than it ran",
     [](Scene& s) {
         s.ledger.advance(kT + 500);
         s.tell({.start = kT, .end = kT + 100, .suspended = 40});
         s.tell({.job_id = 2, .start = kT, .end = kT + 100, .suspended = 4000});
     },
     480, 0, 0, 0},
    {"U10: garbage in a row is taken to be at the limit",
     [](Scene& s) {
         s.ledger.advance(100);
         s.tell({.start = -1000, .end = 50, .suspended = -7, .contract = -1});
     },
     400, 0, 0, 0},
    {"U10: of a seen run a row tells nothing, neither end nor class nor owner nor rate",
     [](Scene& s) {
         s.ledger.advance(kT + 500);
         s.show(run_of(kT, kT + 100));
         ck_assert_msg(!s.tell({.account = "c", .run_class = RunClass::kUnallocated, .start = kT, .end = kT + 300}, 2),
                       "nothing changes");
     },
     800, 0, 0, 0},
    {"U10: but whose it is, if no view knew",
     [](Scene& s) {
         s.ledger.advance(kT + 100);
         s.show({.assoc = 77, .start = kT, .end = kT + 100});
         s.tell(row_of(kT, kT + 100));
     },
     800, 0, 0, 0},
    {"U7, U10: one that has gone was broken by the cluster",
     [](Scene& s) {
         s.scan(kT, {run_from(kT)});
         s.scan(kT + 100, {});
         s.tell({.start = kT, .end = kT + 50, .refunded = true});
     },
     0, 0, 0, 0},
    {"U10: one that has gone ended before it was last seen, or at once",
     [](Scene& s) {
         s.scan(kT + 100, {run_from(kT), {.key = {.job_id = 2}, .start = kT}});
         s.scan(kT + 200, {});
         ck_assert_msg(s.used("a") == 1600, "when last seen");
         s.tell(row_of(kT, kT + 50));
         s.tell({.job_id = 2, .start = kT, .end = kT});
     },
     400, 0, 0, 0},
    {"U10: the same after a restart, before the first scan",
     [](Scene& s) {
         s.scan(kT + 100, {run_from(kT), {.key = {.job_id = 2}, .start = kT}});
         s.restart(kT + 200);
         s.tell(row_of(kT, kT + 50));
         s.tell({.job_id = 2, .start = kT, .end = kT + 100, .refunded = true});
         s.scan(kT + 200, {});
     },
     400, 0, 0, 0},
    {"U10: one that goes on after its row is on",
     [](Scene& s) {
         s.scan(kT + 100, {run_from(kT)});
         s.tell(row_of(kT, kT + 50));
         s.scan(kT + 200, {run_from(kT)});
         s.scan(kT + 300, {});
     },
     1600, 0, 0, 0},
    {"U4, U10: a job that has been resized is committed at its rate now",
     [](Scene& s) {
         s.ledger.advance(kT + 200);
         s.tell(resized_row(kT, kT + 100), 16);
         s.show({.start = kT, .contract = 1000, .changed = kT + 100});
     },
     1600 + 800, 0, 8 * 800, 8},
    {"U10: the first of three parts lies before the window",
     [](Scene& s) {
         s.ledger.advance(kT + kWeek);
         s.tell(resized_row(kT - 200, kT - 100), 32);
         s.tell(resized_row(kT - 100, kT + 100), 16);
         s.show({.start = kT - 200, .end = kT + 200, .changed = kT + 100}, 4);
     },
     1600 + 400, 0, 0, 0},
    {"U2: a job under the id and count of one that has ended is another one",
     [](Scene& s) {
         s.scan(kT, {run_from(kT)});
         s.scan(kT + 100, {run_of(kT, kT + 100)});
         s.scan(kT + 200, {run_from(kT + 150)});
         ck_assert_msg(s.ledger.run_count() == 2, "both are known");
         s.scan(kT + 300, {run_from(kT + 150)});
     },
     800 + 1200, 0, 0, 8},
    {"U2: nor is it the one that was on, if it was submitted after that started",
     [](Scene& s) {
         s.scan(kT, {run_from(kT)});
         s.scan(kT + 100, {run_from(kT)});
         s.scan(kT + 200, {{.start = kT + 150, .submitted = kT + 140}});
         s.scan(kT + 200, {{.start = kT + 150, .submitted = kT + 140}});
     },
     800 + 400, 0, 0, 8},
    {"U2: even if that seemed to be on when the other one started",
     [](Scene& s) {
         s.scan(kT + 200, {run_from(kT)});
         s.scan(kT + 200, {{.start = kT + 150, .submitted = kT + 140}});
     },
     1600 + 400, 0, 0, 8},
    {"U2: and a third one, and the rows of all of them",
     [](Scene& s) {
         s.scan(kT, {run_from(kT)});
         s.scan(kT + 100, {{.start = kT + 50, .submitted = kT + 50}});
         s.scan(kT + 200, {{.start = kT + 150, .submitted = kT + 150}});
         s.tell(row_of(kT, kT + 40));
         s.tell(row_of(kT + 50, kT + 120));
         s.scan(kT + 300, {});
         s.tell(row_of(kT + 150, kT + 250));
         ck_assert_msg(s.ledger.run_count() == 3, "each is known once");
     },
     320 + 560 + 800, 0, 0, 0},
    {"U2: a start moved by a power-up is of the same job, which was submitted before",
     [](Scene& s) {
         s.scan(kT, {{.start = kT, .submitted = kT - 10}});
         s.scan(kT + 100, {{.start = kT + 80, .submitted = kT - 10}});
         ck_assert_msg(s.ledger.run_count() == 1, "one run");
     },
     160, 0, 0, 8},
    {"U2: a submit time that is rewritten makes no other job of a run that started when it did",
     [](Scene& s) {
         s.scan(kT, {{.start = kT, .submitted = kT - 10}});
         s.scan(kT + 100, {{.start = kT, .end = kT + 90, .submitted = kT + 90}});
         ck_assert_msg(s.ledger.run_count() == 1, "one run");
     },
     720, 0, 0, 0},
    {"U6: a suspension that nobody saw, of a new run",
     [](Scene& s) {
         s.ledger.advance(kT + 200);
         for (int i = 0; i < 3; ++i)
             s.show({.start = kT, .contract = 500, .changed = kT + 150, .suspended_before = 40});
     },
     8 * 160, 0, 8 * 340, 8},
    {"U6: of a known one",
     [](Scene& s) {
         s.ledger.advance(kT + 10);
         s.show({.start = kT, .contract = 500});
         s.ledger.advance(kT + 200);
         for (int i = 0; i < 3; ++i) s.show({.start = kT, .contract = 500, .suspended_before = 40});
     },
     8 * 160, 0, 8 * 340, 8},
    {"U6: of a new one that is suspended once more",
     [](Scene& s) {
         s.ledger.advance(kT + 200);
         for (int i = 0; i < 3; ++i)
             s.show({.start = kT, .contract = 500, .suspended = true, .changed = kT + 150, .suspended_before = 40});
     },
     8 * 110, 0, 8 * 390, 0},
    {"U6: of a known one that was suspended, and is so once more",
     [](Scene& s) {
         s.ledger.advance(kT + 50);
         s.show({.start = kT, .suspended = true, .changed = kT + 50});
         s.ledger.advance(kT + 200);
         for (int i = 0; i < 3; ++i)
             s.show({.start = kT, .suspended = true, .changed = kT + 150, .suspended_before = 40});
     },
     8 * 110, 0, 0, 0},
    {"U6: a resume that is seen adds nothing to what the sum tells",
     [](Scene& s) {
         s.ledger.advance(kT + 50);
         s.show({.start = kT, .suspended = true, .changed = kT + 50});
         s.ledger.advance(kT + 200);
         for (int i = 0; i < 3; ++i) s.show({.start = kT, .changed = kT + 90, .suspended_before = 40});
     },
     8 * 160, 0, 0, 8},
    {"U6: a resume at an unknown instant was when the sum tells",
     [](Scene& s) {
         s.ledger.advance(kT + 50);
         s.show({.start = kT, .suspended = true, .changed = kT + 50});
         s.ledger.advance(kT + 200);
         for (int i = 0; i < 3; ++i) s.show({.start = kT, .suspended_before = 40});
     },
     8 * 160, 0, 0, 8},
    {"U6: an unseen suspension and then a seen one",
     [](Scene& s) {
         s.ledger.advance(kT + 100);
         s.show({.start = kT, .changed = kT + 80, .suspended_before = 30});
         s.ledger.advance(kT + 150);
         s.show({.start = kT, .suspended = true, .changed = kT + 120, .suspended_before = 30});
         s.ledger.advance(kT + 200);
         s.show({.start = kT, .changed = kT + 160, .suspended_before = 70});
         s.ledger.advance(kT + 300);
         s.show({.start = kT, .end = kT + 300, .changed = kT + 160, .suspended_before = 70});
     },
     8 * 230, 0, 0, 0},
    {"U6: more than it has run leaves nothing",
     [](Scene& s) {
         s.ledger.advance(kT + 200);
         for (int i = 0; i < 3; ++i) s.show({.start = kT, .changed = kT + 150, .suspended_before = 4000});
     },
     8 * 50, 0, 0, 8},
    {"U6: a suspended job ends when it was suspended, and Slurm's sum has what came after",
     [](Scene& s) {
         s.ledger.advance(kT + 100);
         s.show({.start = kT, .suspended = true, .changed = kT + 60});
         s.ledger.advance(kT + 200);
         s.show({.start = kT, .end = kT + 60, .changed = kT + 60, .suspended_before = 90});
         s.show({.key = {.job_id = 2}, .start = kT, .end = kT + 60, .changed = kT + 60, .suspended_before = 90});
     },
     8 * 120, 0, 0, 0},
    {"U6, U10: rates before a resize, and a suspension that nobody saw",
     [](Scene& s) {
         s.ledger.advance(kT + 200);
         s.show({.start = kT, .changed = kT + 100, .suspended_before = 40});
         s.tell(resized_row(kT, kT + 50), 16);
     },
     16 * 50 + 8 * 110, 0, 0, 8},
    {"a restart: the run goes on, the rest of its contract too",
     [](Scene& s) {
         s.scan(kT, {{.start = kT, .contract = 1000}});
         s.restart(kT + 100);
         s.scan(kT + 200, {{.start = kT, .contract = 1000}});
     },
     1600, 0, 6400, 8},
    {"US-16: a restart under a clock that is behind",
     [](Scene& s) {
         s.scan(kT + 300, {{.start = kT, .suspended = true, .changed = kT + 250, .suspended_before = 50}});
         s.restart(kT + 210);
         s.scan(kT + 210, {{.start = kT, .suspended = true, .changed = kT + 250, .suspended_before = 50}});
         s.scan(kT + 220, {{.start = kT, .suspended_before = 50}});
         s.scan(kT + 400, {{.start = kT, .end = kT + 400, .suspended_before = 200}});
     },
     8 * 200, 0, 0, 0},
};

void expect(const char* why, const char* what, double is, double should) {
    ck_assert_msg(is > should - 1e-6 && is < should + 1e-6, "%s: %s is %.3f, should be %.3f", why, what, is, should);
}

void play(const PlayedScene& row) {
    Scene scene;
    row.play(scene);
    const NodeUsage& usage = scene.at("a");
    expect(row.why, "allocated", budget::gpu_seconds(usage.allocated.box), row.allocated);
    expect(row.why, "unallocated", budget::gpu_seconds(usage.unallocated.box), row.unallocated);
    expect(row.why, "commitment", budget::gpu_seconds(usage.commitment), row.commitment);
    expect(row.why, "running", budget::gpu_seconds(usage.allocated.running), row.running);
}

START_TEST(scenes) {
    play(kScenes[_i]);
}
END_TEST

START_TEST(past_scenes) {
    play(kPastScenes[_i]);
}
END_TEST

// Scans, and rows that may come at any time once they have ended: all is the same in the end.
struct Scan {
    Seconds now;
    std::vector<RunView> views;
};
struct Row {
    PastRun past;
    Seconds gpus;
};
const struct {
    const char* why;
    std::vector<Scan> scans;
    std::vector<Row> rows;
    double used;
} kAnyOrder[] = {
    {"requeued runs, disjoint", {}, {{row_of(10, 20), 8}, {row_of(20, 30), 8}, {row_of(50, 60), 4}}, 200},
    {"rows that overlap charge each second once",
     {},
     {{row_of(10, 30), 8}, {row_of(20, 40), 8}, {row_of(15, 25), 8}},
     240},
    {"the earlier one goes first", {}, {{row_of(10, 30), 8}, {row_of(20, 40), 4}}, 200},
    {"twins with one start: the longer one", {}, {{row_of(10, 30), 8}, {row_of(10, 40), 4}, {row_of(10, 20), 2}}, 120},
    {"U2: the seen run goes before its row", {{100, {run_of(10, 40)}}}, {{row_of(10, 60), 4}}, 240},
    {"U2: a seen run, and rows of others before and after it",
     {{100, {run_of(30, 40)}}},
     {{row_of(10, 30), 4}, {row_of(40, 50), 2}, {row_of(30, 40), 1}},
     80 + 80 + 20},
    {"a job that is on has been resized",
     {{100, {{.start = 10, .changed = 50}}}},
     {{resized_row(10, 50), 16}},
     640 + 400},
    {"a job that has been resized twice has ended",
     {{100, {{.start = 10, .end = 90, .changed = 70}}}},
     {{resized_row(10, 50), 16}, {resized_row(50, 70), 2}, {row_of(70, 90), 8}},
     640 + 40 + 160},
    {"a resized job that nobody has seen",
     {},
     {{resized_row(10, 50), 16}, {resized_row(50, 70), 2}, {row_of(70, 90), 8}},
     640 + 40 + 160},
    {"one that was seen before its first resize, and then only in rows",
     {{30, {{.start = 10}}}, {100, {}}},
     {{resized_row(10, 50), 8}, {resized_row(50, 70), 2}, {row_of(70, 90), 4}},
     320 + 40 + 80},
    {"one that was seen before two resizes and after them",
     {{30, {{.start = 10}}}, {60, {}}, {100, {{.start = 10, .changed = 70}}}},
     {{resized_row(10, 50), 8}, {resized_row(50, 70), 2}},
     320 + 40 + 240},
    {"one that has gone ended later than it was seen", {{30, {run_from(10)}}, {100, {}}}, {{row_of(10, 60), 8}}, 400},
    {"after one that has gone came others",
     {{30, {run_from(10)}}, {100, {}}},
     {{row_of(10, 40), 8}, {row_of(40, 50), 8}, {row_of(60, 70), 4}},
     240 + 80 + 40},
    {"one that was there again: what was seen goes before rows",
     {{30, {run_from(10)}}, {60, {}}, {90, {run_from(10)}}},
     {{row_of(10, 40), 8}, {row_of(50, 60), 8}},
     720},
    {"U6: its suspension was seen",
     {{100, {{.start = 10, .end = 90, .changed = 50, .suspended_before = 20}}}},
     {{{.start = 10, .end = 90, .suspended = 20}, 8}},
     480},
};

// Plays the scans with row k told before the scan places[k]; rows at one place in their order.
void play_in_order(std::size_t which, const std::vector<std::size_t>& order, const std::vector<std::size_t>& places) {
    const auto& row = kAnyOrder[which];
    for (const int repeats : {1, 3}) {
        Scene scene(1000);
        for (std::size_t i = 0; i <= row.scans.size(); ++i) {
            if (i == row.scans.size()) scene.ledger.advance(100);
            for (int n = 0; n < repeats; ++n)
                for (const std::size_t k : order)
                    if (places[k] == i) scene.tell(row.rows[k].past, row.rows[k].gpus);
            if (i == row.scans.size()) break;
            scene.ledger.begin_scan(row.scans[i].now);
            for (const RunView& view : row.scans[i].views) scene.show(view);
            scene.ledger.end_scan();
        }
        expect(row.why, repeats == 1 ? "used" : "used, each row three times", scene.used("a"), row.used);
    }
}

START_TEST(any_order) {
    const auto& row = kAnyOrder[_i];
    std::vector<std::size_t> order(row.rows.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    do {
        std::vector<std::size_t> places(order.size());
        for (std::size_t k = 0; k < places.size();) {
            bool possible = true;
            for (std::size_t i = 0; i < places.size(); ++i)
                possible &= places[i] == row.scans.size() || row.rows[i].past.end <= row.scans[places[i]].now;
            if (possible) play_in_order(static_cast<std::size_t>(_i), order, places);
            for (k = 0; k < places.size() && ++places[k] > row.scans.size(); ++k) places[k] = 0;
        }
    } while (std::next_permutation(order.begin(), order.end()));
}
END_TEST

START_TEST(absurd) {
    Scene scene;
    scene.ledger.set_window(budget::kMaxWindow);
    scene.ledger.advance(kT + budget::kMaxWindow);
    for (std::uint32_t i = 1; i <= 3000; ++i) {
        scene.ledger.observe({.key = {.job_id = i},
                              .assoc = kAnn,
                              .rate = std::numeric_limits<Rate>::max(),
                              .start = kT,
                              .contract = std::numeric_limits<Seconds>::max()});
    }
    const NodeUsage& root = scene.ledger.node_usage()[kRoot];
    const Wide each = Wide{budget::kMaxRate} * budget::kMaxWindow;
    ck_assert_msg(root.allocated.box == each * 3000 && scene.used("a") > 1.8e19, "RK-13: beyond 1.8e19 GPU-s");
    ck_assert_msg(root.allocated.tapered2 == each * budget::kMaxWindow * 3000, "RK-13: tapered too");
    ck_assert_msg(root.commitment > 0 && scene.ledger.running() == budget::kMaxRate * 3000, "RS-11: no end in sight");
}
END_TEST

START_TEST(forgotten) {
    Scene scene;
    for (std::uint32_t i = 0; i < 5000; ++i) {
        RunView run = run_of(kT + i, kT + i + 100);
        run.key.job_id = i + 1;
        scene.ledger.advance(*run.end);
        scene.show(run);
    }
    ck_assert_msg(scene.ledger.run_count() == 5000, "all are kept while they count");
    scene.ledger.advance(kT + kWeek + 100 + 2499);
    ck_assert_msg(scene.ledger.run_count() == 2500, "U3: half of them have left: %zu", scene.ledger.run_count());
    RunView old = run_of(kT, kT + 100);
    scene.show(old);
    ck_assert_msg(scene.ledger.run_count() == 2500, "one shown again is passed over");
    RunView reused = run_of(kT + 2600, kT + 2700);
    reused.key.job_id = 99'999;
    scene.show(reused);
    ck_assert_msg(scene.ledger.run_count() == 2501, "a place is used again");
    std::size_t visited = 0;
    scene.ledger.for_each_run([&](const budget::Run& run) {
        ++visited;
        ck_assert_msg(run.key.job_id > 2500 && run.ended, "only those kept are visited");
        ck_assert_str_eq(scene.ledger.owner(run.owner).user.c_str(), "ann");
    });
    ck_assert_uint_eq(visited, 2501);
    scene.ledger.advance(kT + 3 * kWeek);
    ck_assert_msg(scene.ledger.run_count() == 0 && scene.used("a") == 0, "nothing is left");
}
END_TEST

START_TEST(ends_out_of_order) {
    Scene scene;
    scene.ledger.advance(kT + 1000);
    std::uint32_t id = 0;
    for (const Seconds end : {kT + 50 * kDay, kT + 900, kT + 500}) {
        RunView run = run_of(kT, end);
        run.key.job_id = ++id;
        scene.show(run);
    }
    RunView back = run_of(kT, kT + 600);
    back.key.job_id = ++id;
    scene.show(back);
    back.end.reset();
    scene.show(back);
    for (Seconds t = 0; t < 5; ++t) scene.ledger.advance(kT + 900 + kWeek + t);
    ck_assert_msg(scene.ledger.run_count() == 2, "one that is to end in the future holds up nobody");
    scene.ledger.advance(kT + 50 * kDay + kWeek);
    ck_assert_msg(scene.ledger.run_count() == 1, "one that runs again is kept");
    back.end = kT + 700;
    scene.show(back);
    scene.ledger.advance(kT + 50 * kDay + kWeek + 1);
    ck_assert_msg(scene.ledger.run_count() == 0, "until it has ended");
}
END_TEST

START_TEST(other_window) {
    Scene scene;
    scene.ledger.advance(kT);
    scene.show({.start = kT, .contract = 5 * kDay});
    scene.ledger.advance(kT + 3 * kDay);
    scene.show({.key = {.job_id = 2}, .run_class = RunClass::kUnallocated, .start = kT + kDay, .end = kT + 2 * kDay});
    scene.ledger.set_window(kDay);
    ck_assert_msg(scene.used("a") == 8 * 86'400, "U3: a shorter window");
    ck_assert_msg(scene.at("a").unallocated.box == 0, "U9: of the other class too");
    scene.ledger.set_window(2 * kDay);
    ck_assert_msg(scene.used("a") == 2 * 8 * 86'400, "U3: a longer one");
    ck_assert_msg(budget::gpu_seconds(scene.at("a").unallocated.box) == 8 * 86'400, "U9: of the other class too");
    ck_assert_msg(budget::gpu_seconds(scene.at("a").commitment) == 2 * 8 * 86'400, "U4: commitments stay");
    scene.ledger.advance(kT + 4 * kDay);
    scene.show({.start = kT, .end = kT + 4 * kDay, .contract = 5 * kDay});
    ck_assert_msg(scene.used("a") == 2 * 8 * 86'400, "and it goes on from there");
    scene.ledger.advance(kT + 6 * kDay);
    ck_assert_msg(scene.used("a") == 0 && scene.ledger.run_count() == 0, "to the end");
}
END_TEST

START_TEST(unknown_association) {
    Scene scene;
    scene.ledger.advance(kT + 100);
    scene.show({.assoc = 77, .start = kT});
    ck_assert_msg(scene.used("root") == 800 && scene.used("p1") == 0,
                  "U8: charged to the root as long as it is unknown");
    auto list = small_tree();
    list.push_back({.id = 77, .parent_id = kA, .account = "a", .user = "new"});
    scene.set_tree(list);
    scene.show({.assoc = 77, .start = kT});
    ck_assert_msg(scene.used("root") == 800 && scene.used("a") == 800, "then to its own");
    scene.ledger.observe({.key = {.job_id = 1}, .assoc = 0, .rate = 8 * kGpu, .start = kT});
    ck_assert_msg(scene.used("a") == 800, "a run whose association has gone stays where it is");
}
END_TEST

// Moves by association: what is where after the tree has changed.
std::vector<Association> without(std::vector<Association> list, std::initializer_list<AssocId> gone) {
    std::erase_if(list, [&](const Association& a) { return std::find(gone.begin(), gone.end(), a.id) != gone.end(); });
    return list;
}

const struct {
    const char* why;
    void (*change)(Scene&);
    std::map<std::string, double> used;
} kChanges[] = {
    {"as it was", [](Scene&) {}, {{"root", 900}, {"p1", 800}, {"a", 800}, {"p2", 100}, {"c", 100}}},
    {"U8: a deleted user's usage stays in the account",
     [](Scene& s) { s.set_tree(without(small_tree(), {kAnn})); },
     {{"root", 900}, {"p1", 800}, {"a", 800}, {"p2", 100}}},
    {"U8: a deleted account's stays in the parent",
     [](Scene& s) {
         s.set_tree(without(small_tree(), {kA, kAnn, kBob}));
     },
     {{"root", 900}, {"p1", 800}, {"b", 0}, {"p2", 100}}},
    {"U8: the nearest ancestor that is left",
     [](Scene& s) {
         s.set_tree(without(small_tree(), {2, kA, kB, kAnn, kBob, 9}));
     },
     {{"root", 900}, {"p2", 100}}},
    {"U8: an account deleted after its users takes their usage along",
     [](Scene& s) {
         s.set_tree(without(small_tree(), {kAnn, kBob}));
         s.set_tree(without(small_tree(), {kA, kAnn, kBob}));
     },
     {{"root", 900}, {"p1", 800}, {"b", 0}}},
    {"U8: an account that is moved takes its former users' usage along",
     [](Scene& s) {
         auto list = without(small_tree(), {kAnn});
         s.set_tree(list);
         list[2].parent_id = 5;
         s.set_tree(list);
     },
     {{"root", 900}, {"p1", 0}, {"p2", 900}, {"a", 800}}},
    {"U8: one that is created again gets its own back, whatever its id",
     [](Scene& s) {
         s.set_tree(without(small_tree(), {kA, kAnn, kBob}));
         auto list = without(small_tree(), {kA, kAnn, kBob});
         list.push_back({.id = 20, .parent_id = 5, .account = "a"});
         list.push_back({.id = 21, .parent_id = 20, .account = "a", .user = "ann"});
         s.set_tree(list);
     },
     {{"root", 900}, {"p1", 0}, {"p2", 900}, {"a", 800}}},
    {"U8: parents that have changed places, and then are gone",
     [](Scene& s) {
         auto list = small_tree();
         list[1].parent_id = 5;  // p1 below p2
         s.set_tree(list);
         list = without(small_tree(), {kC});
         list[4].parent_id = 2;  // p2 below p1
         s.set_tree(list);
         s.set_tree(without(list, {5}));
         s.set_tree({{.id = 1, .account = "root"}, {.id = 30, .parent_id = 1, .account = "x"}});
     },
     {{"root", 900}, {"x", 0}}},
    {"U8: with another root account everything is there",
     [](Scene& s) {
         s.set_tree({{.id = 50, .account = "top"}, {.id = 51, .parent_id = 50, .account = "x"}});
     },
     {{"top", 900}, {"x", 0}}},
    {"B5: another weight changes no usage (BT-13)",
     [](Scene& s) {
         auto list = small_tree();
         list[2].shares = 1;
         list[1].shares = 0;
         s.set_tree(list);
     },
     {{"root", 900}, {"p1", 800}, {"a", 800}, {"c", 100}}},
    {"B3: an account made transparent leaves its usage to the nearest weighted one",
     [](Scene& s) {
         auto list = small_tree();
         list[4].shares = kSharesParent;
         s.set_tree(list);
     },
     {{"root", 900}, {"p1", 800}, {"p2", 900}, {"c", 100}}},
    {"the list in another order",
     [](Scene& s) {
         auto list = small_tree();
         std::reverse(list.begin(), list.end());
         s.set_tree(list);
     },
     {{"root", 900}, {"p1", 800}, {"a", 800}, {"p2", 100}, {"c", 100}}},
};

// The sum of what is charged to each association itself, which is the root's.
void check_own_usage(Scene& scene, const char* why) {
    NodeUsage own;
    for (const NodeUsage& usage : scene.ledger.own_usage(scene.associations)) own += usage;
    const NodeUsage& root = scene.ledger.node_usage()[kRoot];
    ck_assert_msg(own.allocated.box == root.allocated.box && own.unallocated.box == root.unallocated.box &&
                      own.commitment == root.commitment,
                  "the sum of the associations' own is the root's: %s", why);
}

START_TEST(changes) {
    const auto& row = kChanges[_i];
    Scene scene;
    scene.ledger.advance(kT);
    scene.show({.start = kT, .contract = 1000});
    scene.show({.key = {.job_id = 2}, .assoc = kC, .start = kT}, 1);
    scene.ledger.advance(kT + 100);
    scene.show({.start = kT, .end = kT + 100});
    scene.show({.key = {.job_id = 2}, .assoc = kC, .start = kT, .end = kT + 100}, 1);
    row.change(scene);
    for (const auto& [account, used] : row.used) expect(row.why, account.c_str(), scene.used(account), used);
    check_own_usage(scene, row.why);
    scene.set_tree(small_tree());
    expect(row.why, "a, with the first tree again", scene.used("a"), 800);
    scene.ledger.advance(kT + kWeek + 100);
    expect(row.why, "what is left behind the window", scene.used("root"), 0);
}
END_TEST

START_TEST(own_usage) {
    Scene scene;
    scene.ledger.advance(kT + 100);
    scene.show({.start = kT, .contract = 1000});
    scene.show({.key = {.job_id = 2}, .assoc = 77, .run_class = RunClass::kUnallocated, .start = kT}, 1);
    scene.show({.key = {.job_id = 3}, .assoc = kBob, .start = kT}, 2);
    scene.set_tree(without(small_tree(), {kBob}));
    const std::vector<NodeUsage> own = scene.ledger.own_usage(scene.associations);
    ck_assert_uint_eq(own.size(), scene.associations.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
        const AssocId id = scene.associations[i].id;
        const double allocated = id == kAnn ? 800 : id == kA ? 200 : 0;
        expect("U8: a former member's is the account's own", "allocated", budget::gpu_seconds(own[i].allocated.box),
               allocated);
        expect("U9: what nobody is known for is the root's", "unallocated", budget::gpu_seconds(own[i].unallocated.box),
               id == 1 ? 100 : 0);
        expect("U4", "commitment", budget::gpu_seconds(own[i].commitment), id == kAnn ? 7200 : 0);
    }
    const std::vector<Association> stranger = {{.id = 1234, .account = "nobody"}};
    ck_assert_msg(scene.ledger.own_usage(stranger)[0].allocated.box == 0, "an unknown association has nothing");
    ck_assert_msg(scene.ledger.running() == 11 * kGpu, "both classes run");
}
END_TEST

// Whom a row is charged to, by its association's id and names.
const struct {
    const char* why;
    PastRun past;
    const char* account;  // where it is shown
    const char* user;     // whose it is
    const char* partition = "";
} kOwners[] = {
    {"by id", {.assoc = kAnn, .account = "a", .user = "ann"}, "a", "ann"},
    {"by name, as the id is another's by now", {.assoc = kBob, .account = "a", .user = "ann"}, "a", "ann"},
    {"by name, as the id is unknown", {.assoc = 99, .account = "c", .user = ""}, "c", ""},
    {"U8: a deleted user of an account that is there", {.assoc = 99, .account = "a", .user = "zoe"}, "a", "zoe"},
    {"U8: a deleted account", {.assoc = 99, .account = "old", .user = "zoe"}, "root", "zoe"},
    {"of nobody", {.assoc = kAnn}, "root", ""},
    {"bound to a partition, by id", {.assoc = 40, .account = "b", .user = "eve", .partition = "x"}, "b", "eve", "fast"},
    {"bound to a partition, by name", {.account = "b", .user = "eve", .partition = "fast"}, "b", "eve", "fast"},
    {"U8: bound to a partition and deleted, beside one that is not: the account's, until there is such a one",
     {.assoc = 99, .account = "a", .user = "ann", .partition = "fast"},
     "a",
     "ann",
     "fast"},
    {"in a partition, of a deleted user",
     {.assoc = 99, .account = "a", .user = "zoe", .partition = "fast"},
     "a",
     "zoe"},
    {"in a partition, by name without an id", {.account = "a", .user = "ann", .partition = "fast"}, "a", "ann"},
    {"in another partition", {.account = "b", .user = "ann", .partition = "fast"}, "b", "ann"},
};

START_TEST(past_owner) {
    const auto& row = kOwners[_i];
    Scene scene;
    auto list = small_tree();
    list.push_back({.id = 40, .parent_id = kB, .account = "b", .user = "eve", .partition = "fast", .shares = 1});
    scene.set_tree(list);
    scene.ledger.advance(kT + 100);
    PastRun past = row.past;
    past.job_id = 1, past.rate = kGpu, past.start = kT, past.end = kT + 100;
    scene.ledger.observe_past(past);
    scene.ledger.for_each_run([&](const budget::Run& run) {
        ck_assert_str_eq(scene.ledger.owner(run.owner).user.c_str(), row.user);
        ck_assert_str_eq(scene.ledger.owner(run.owner).partition.c_str(), row.partition);
    });
    for (const char* account : {"a", "b", "c"})
        expect(row.why, account, scene.used(account), std::string(account) == row.account ? 100 : 0);
    expect(row.why, "root", scene.used("root"), 100);
    check_own_usage(scene, row.why);
    list.push_back({.id = 20, .parent_id = 5, .account = "old"});
    scene.set_tree(list);
    expect("U8: an account created again gets its own", row.why, scene.used("old"),
           row.past.account == "old" ? 100 : 0);
}
END_TEST

START_TEST(restored_owners) {
    Scene scene;
    scene.ledger.advance(kT + 100);
    scene.show({.start = kT});
    scene.set_tree(without(small_tree(), {kAnn, kBob}));
    scene.set_tree(without(small_tree(), {kA, kAnn, kBob}));
    const LedgerImage image = scene.ledger.image();
    scene.ledger = Ledger(kWeek, image, kT + 100);
    ck_assert_msg(scene.ledger.image() == image, "the image of the restored one is the same");
    ck_assert_msg(budget::gpu_seconds(scene.ledger.node_usage()[kRoot].allocated.box) == 800,
                  "without a tree: the root's");
    scene.show({.start = kT});
    ck_assert_msg(scene.ledger.image() == image, "an id that is unknown yet moves nothing");
    scene.set_tree(scene.associations);
    ck_assert_msg(scene.used("p1") == 800, "U8: of a deleted account, in its parent");
    auto list = without(small_tree(), {kA, kAnn, kBob});
    list.push_back({.id = 20, .parent_id = 5, .account = "a"});
    scene.set_tree(list);
    ck_assert_msg(scene.used("p1") == 0 && scene.used("a") == 800, "U8: back by name");
}
END_TEST

// A run painted second by second, as it truly is; what the ledger is shown of it are views.
class PaintedRun {
   public:
    static constexpr Seconds kEnd = 900;

    PaintedRun(std::uint32_t id, AssocId assoc, RunClass run_class, Seconds start, Rate rate, Seconds contract)
        : rate_(kEnd, rate), suspended_(kEnd, false) {
        view = {.key = {.job_id = id % 7, .restart_count = id / 7},
                .assoc = assoc,
                .run_class = run_class,
                .rate = rate,
                .start = start,
                .contract = contract};
    }

    // From `at` on the run is so. The view tells since when, or does not.
    void change(Seconds at, Rate rate, bool suspended, bool tell) {
        std::fill(rate_.begin() + at, rate_.end(), rate);
        std::fill(suspended_.begin() + at, suspended_.end(), suspended);
        view.rate = rate;
        view.suspended = suspended;
        view.changed = tell ? at : 0;
        last_change = at;
    }

    void add_to(NodeUsage& usage, Seconds now, Seconds window, Seconds unused_millis) const {
        Usage& part = view.run_class == RunClass::kAllocated ? usage.allocated : usage.unallocated;
        if (view.refunded) return;
        for (Seconds s = std::max(now - window, view.start); s < std::min(now, end()); ++s) {
            part.box += charged(s);
            part.tapered2 += charged(s) * (2 * (window - (now - s)) + 1);
        }
        for (Seconds s = std::max(now - window, end()); s < std::min(now, end() + prolongation(unused_millis)); ++s) {
            part.box += rate_at_end();
            part.tapered2 += Wide{rate_at_end()} * (2 * (window - (now - s)) + 1);
        }
        if (view.start <= now && now < end()) part.running += static_cast<Rate>(charged(now));
        if (view.run_class == RunClass::kAllocated && !view.end) usage.commitment += commitment(now);
    }

    RunView view;
    bool vanished = false;
    Seconds last_seen = 0;
    Seconds last_change = -1;

   private:
    Seconds end() const { return view.end.value_or(kEnd); }
    Wide charged(Seconds s) const {
        return suspended_[static_cast<std::size_t>(s)] ? 0 : rate_[static_cast<std::size_t>(s)];
    }
    // U11: this part of what is left of the contract at its end.
    Seconds prolongation(Seconds millis) const {
        if (!view.end || !view.by_itself || view.run_class != RunClass::kAllocated) return 0;
        Seconds left = view.contract;
        for (Seconds s = view.start; s < end(); ++s) left -= suspended_[static_cast<std::size_t>(s)] ? 0 : 1;
        return std::max<Seconds>(left, 0) * millis / 1000;
    }
    Rate rate_at_end() const { return rate_[static_cast<std::size_t>(end() > view.start ? end() - 1 : view.start)]; }
    Wide commitment(Seconds now) const {
        Seconds left = view.contract;
        for (Seconds s = view.start; s < now && left > 0; ++s) left -= suspended_[static_cast<std::size_t>(s)] ? 0 : 1;
        return Wide{rate_.back()} * left;
    }

    std::vector<Rate> rate_;
    std::vector<bool> suspended_;
};

// Random lives of runs, shown to a ledger scan by scan and compared at each node.
class Life {
   public:
    explicit Life(unsigned seed) : random_(seed), window_(20 + up_to(80)), scene_(window_) {
        if (seed % 2 == 0) change_unused_charge();
    }

    void play() {
        for (Seconds now = 1; now < PaintedRun::kEnd - 1; now += up_to(up_to(20) == 0 ? 100 : 3)) {
            if (up_to(2) > 0) begin(now);
            for (PaintedRun& run : runs_) live(run, now);
            if (unused_millis_ > 0 && up_to(40) == 0) change_unused_charge();  // forgotten runs are shown again
            scan(now);
            compare(now);
            if (up_to(40) == 0) {
                window_ -= up_to(window_ / 2);
                scene_.ledger.set_window(window_);
                compare(now);
            }
        }
    }

   private:
    Seconds up_to(Seconds n) { return static_cast<Seconds>(random_() % static_cast<unsigned>(n + 1)); }

    void change_unused_charge() {
        unused_millis_ = 1 + up_to(999);
        scene_.ledger.set_unused_charge(static_cast<std::uint32_t>(unused_millis_));
    }

    // A run starts, was started a while ago, or will start soon.
    void begin(Seconds now) {
        static constexpr AssocId kAssocs[] = {kAnn, kBob, 9, kC, kA};
        const Seconds start = std::clamp<Seconds>(now + 4 - up_to(up_to(9) == 0 ? 120 : 8), 0, PaintedRun::kEnd - 2);
        runs_.emplace_back(++ids_, kAssocs[up_to(4)], up_to(3) == 0 ? RunClass::kUnallocated : RunClass::kAllocated,
                           start, up_to(9), up_to(1) * up_to(60));
    }

    bool is_behind(const PaintedRun& run, Seconds now) const { return run.view.end && *run.view.end <= now - window_; }

    // What may happen to a run before the next scan.
    void live(PaintedRun& run, Seconds now) {
        if (run.last_seen == 0 || is_behind(run, now)) return;
        const bool open = !run.view.end;
        switch (up_to(30)) {
            case 0:  // moved start (not past a change, which would be another life)
                if (run.last_change < 0 && open) run.view.start = std::max<Seconds>(now + 3 - up_to(30), 0);
                break;
            case 1:
            case 2:
                resize_or_suspend(run, now);
                break;
            case 3:
            case 4:
            case 5:
                end(run, now);
                break;
            case 6:
                run.view.refunded = !open && up_to(1) == 0;
                break;
            case 7:
                run.view.run_class = up_to(1) == 0 ? RunClass::kUnallocated : RunClass::kAllocated;
                break;
            case 8:
                run.view.assoc = up_to(1) == 0 ? kBob : kC;
                break;
            case 9:
                run.view.contract = up_to(60);
                break;
            case 10:
                run.vanished = open && up_to(1) == 0;
                break;
            case 11:
            case 12:
                run.view.by_itself = up_to(2) > 0;  // of one that is on it counts for nothing
                break;
            default:
                break;
        }
    }

    void resize_or_suspend(PaintedRun& run, Seconds now) {
        const Seconds earliest = std::max({run.last_change + 1, run.view.start, Seconds{1}});
        if (run.view.end || earliest > now) return;
        const bool tell = up_to(1) == 0;
        const Seconds at = tell ? earliest + up_to(now - earliest) : now;
        const bool suspend = up_to(1) == 0;
        run.change(at, suspend ? run.view.rate : up_to(9), suspend != run.view.suspended, tell);
    }

    // The first end, or another one in place of it.
    void end(PaintedRun& run, Seconds now) {
        if (run.vanished) return;
        const Seconds earliest = std::max(run.view.start, now - window_ + 1);
        if (earliest <= now + 3) run.view.end = earliest + up_to(now + 3 - earliest);
    }

    void scan(Seconds now) {
        scene_.ledger.begin_scan(now);
        for (PaintedRun& run : runs_) {
            if (run.vanished) {
                run.view.end = std::max(run.last_seen, run.view.start);
                run.view.by_itself = false;  // nobody knows
                run.vanished = false;
                continue;
            }
            for (Seconds times = up_to(2); times >= 0; --times) scene_.ledger.observe(run.view);
            run.last_seen = now;
        }
        scene_.ledger.end_scan();
    }

    void compare(Seconds now) {
        std::vector<NodeUsage> should(scene_.tree.nodes().size());
        for (const PaintedRun& run : runs_) {
            for (auto n = scene_.tree.find(run.view.assoc).value();; n = scene_.tree.node(n).parent) {
                run.add_to(should[n], now, window_, unused_millis_);
                if (n == kRoot) break;
            }
        }
        const std::vector<NodeUsage>& is = scene_.ledger.node_usage();
        for (std::size_t n = 0; n < should.size(); ++n) {
            same("allocated", is[n].allocated, should[n].allocated, n, now);
            same("unallocated", is[n].unallocated, should[n].unallocated, n, now);
            ck_assert_msg(is[n].commitment == should[n].commitment, "U4: node %zu at %ld: %.0f, should be %.0f", n,
                          static_cast<long>(now), static_cast<double>(is[n].commitment),
                          static_cast<double>(should[n].commitment));
        }
        check_own_usage(scene_, "at every step");
    }

    static void same(const char* what, const Usage& is, const Usage& should, std::size_t node, Seconds now) {
        ck_assert_msg(is.box >= 0 && is.tapered2 >= 0 && is.running >= 0, "%s is negative", what);
        ck_assert_msg(is.box == should.box && is.tapered2 == should.tapered2 && is.running == should.running,
                      "U3: %s of node %zu at %ld: box %.0f, should be %.0f; running %ld, should be %ld", what, node,
                      static_cast<long>(now), static_cast<double>(is.box), static_cast<double>(should.box),
                      static_cast<long>(is.running), static_cast<long>(should.running));
    }

    std::mt19937 random_;
    Seconds window_;
    Seconds unused_millis_ = 0;
    Scene scene_;
    std::vector<PaintedRun> runs_;
    std::uint32_t ids_ = 0;
};

// Jobs with several runs of several parts, under a controller that is away at times, and a database
// whose rows come late, in any order and again. Once all have come, usage is as it truly was.
class Told {
   public:
    explicit Told(unsigned seed) : random_(seed), window_(up_to(1) == 0 ? 2000 : 300), one_(window_), other_(window_) {
        for (std::uint32_t job = 1; job <= 8; ++job) make_job(job);
    }

    void play() {
        for (Seconds now = 1; now < kEnd; now += 1 + up_to(3)) {
            one_.ledger.advance(now);
            other_.ledger.advance(now);
            if (up_to(up_ ? 60 : 20) == 0) {
                up_ = !up_;
                one_.restart(now, window_);
            }
            if (up_) scan(now);
            for (const Part& part : parts_)
                if (part.end <= now && up_to(30) == 0) tell(part);
            check_same();
        }
        std::shuffle(parts_.begin(), parts_.end(), random_);
        for (Scene* scene : {&one_, &other_}) {  // those that were on last are seen to have ended
            scene->ledger.begin_scan(kEnd);
            scene->ledger.end_scan();
        }
        for (const Part& part : parts_) tell(part);
        check_same();
        check_truth();
        for (Scene* scene : {&one_, &other_}) {
            ck_assert_msg(scene->ledger.run_count() <= parts_.size(), "no run twice");
            scene->ledger.advance(kEnd + 2 * window_ + 1);
            ck_assert_msg(scene->ledger.run_count() == 0 && scene->used("root") == 0, "nothing is left");
        }
    }

   private:
    static constexpr Seconds kEnd = 900;
    struct Part {
        budget::RunKey key;
        Seconds run_start, start, end;
        Seconds gpus;
        bool resized;
        AssocId assoc;
        RunClass run_class;
    };

    Seconds up_to(Seconds n) { return static_cast<Seconds>(random_() % static_cast<unsigned>(n + 1)); }

    void make_job(std::uint32_t job) {
        Part part{.key = {.job_id = job}, .assoc = up_to(1) == 0 ? kAnn : kC};
        part.run_class = up_to(3) == 0 ? RunClass::kUnallocated : RunClass::kAllocated;
        for (Seconds at = 1 + up_to(200); at < kEnd - 150; at += up_to(1) * up_to(60), ++part.key.restart_count) {
            part.run_start = at;
            for (Seconds left = up_to(2); left >= 0; --left) {
                part.start = at;
                part.end = at += 1 + up_to(50);
                part.gpus = 1 + up_to(8);
                part.resized = left > 0;
                parts_.push_back(part);
            }
        }
    }

    // Shows what runs, and what has just ended for as long as the record is there.
    void scan(Seconds now) {
        one_.ledger.begin_scan(now);
        other_.ledger.begin_scan(now);
        for (const Part& part : parts_) {
            const bool on = part.start <= now && now < part.end;
            if (!on && (part.resized || part.end > now || part.end < now - 30 || part.key.job_id % 2 == 0)) continue;
            RunView view{.key = part.key, .assoc = part.assoc, .run_class = part.run_class, .start = part.run_start};
            if (part.start > part.run_start) view.changed = part.start;
            if (!on) view.end = part.end;
            one_.show(view, part.gpus);
            other_.show(view, part.gpus);
        }
        one_.ledger.end_scan();
        other_.ledger.end_scan();
    }

    void tell(const Part& part) {
        PastRun past{.job_id = part.key.job_id, .assoc = part.assoc, .run_class = part.run_class};
        past.account = part.assoc == kC ? "c" : "a";
        past.user = part.assoc == kC ? "" : "ann";
        past.start = part.start;
        past.end = part.end;
        past.resized = part.resized;
        one_.tell(past, part.gpus);
        other_.tell(past, part.gpus);
    }

    // The one that was saved and restored, and the one that never was.
    void check_same() {
        for (std::size_t n = 0; n < one_.tree.nodes().size(); ++n) {
            const NodeUsage& a = one_.ledger.node_usage()[n];
            const NodeUsage& b = other_.ledger.node_usage()[n];
            ck_assert_msg(a.allocated.box == b.allocated.box && a.allocated.tapered2 == b.allocated.tapered2 &&
                              a.allocated.running == b.allocated.running && a.unallocated.box == b.unallocated.box &&
                              a.unallocated.tapered2 == b.unallocated.tapered2 && a.commitment == b.commitment,
                          "node %zu at %ld", n, static_cast<long>(one_.ledger.now()));
        }
        if (up_to(19) > 0) return;
        const LedgerImage image = one_.ledger.image();
        ck_assert_msg(image == Ledger(window_, image, image.now).image(), "saved, restored and saved again");
    }

    void check_truth() {
        for (const AssocId assoc : {kAnn, kC}) {
            Wide used[2] = {0, 0};
            for (const Part& part : parts_) {
                const Seconds from = std::max(part.start, one_.ledger.now() - window_);
                if (part.assoc == assoc && from < part.end)
                    used[part.run_class == RunClass::kAllocated] += Wide{part.gpus * kGpu} * (part.end - from);
            }
            const NodeUsage& is = one_.at(assoc == kC ? "c" : "a");
            expect("U10", "allocated", budget::gpu_seconds(is.allocated.box), budget::gpu_seconds(used[1]));
            expect("U10", "unallocated", budget::gpu_seconds(is.unallocated.box), budget::gpu_seconds(used[0]));
        }
    }

    std::mt19937 random_;
    Seconds window_;
    Scene one_;
    Scene other_;
    std::vector<Part> parts_;
    bool up_ = true;
};

START_TEST(as_told) {
    Told(static_cast<unsigned>(_i)).play();
}
END_TEST

// Nonsense in any order: the lists stay whole, nothing is negative, slots do not leak.
START_TEST(any_nonsense) {
    std::mt19937 random(static_cast<unsigned>(_i));
    const auto up_to = [&](Seconds n) { return static_cast<Seconds>(random() % static_cast<unsigned>(n + 1)); };
    Scene scene(50);
    Seconds now = 100;
    for (int i = rounds(5000); i > 0; --i) {
        const Seconds start = now - up_to(60), end = start + up_to(40);
        RunView view{.key = {.job_id = static_cast<std::uint32_t>(1 + up_to(4)),
                             .restart_count = static_cast<std::uint32_t>(up_to(2))}};
        view.assoc = static_cast<AssocId>(up_to(9));
        view.start = start;
        if (up_to(1) == 0) view.end = end;
        view.contract = up_to(50);
        view.suspended = !view.end && up_to(3) == 0;
        view.refunded = up_to(9) == 0;
        view.by_itself = up_to(1) == 0;
        view.changed = up_to(2) == 0 ? start + up_to(60) : 0;
        view.suspended_before = up_to(2) == 0 ? up_to(40) : 0;
        view.submitted = up_to(1) == 0 ? start - up_to(30) : 0;
        if (up_to(9) == 0) scene.ledger.begin_scan(now += up_to(3));
        if (up_to(1) == 0) scene.show(view, up_to(9));
        PastRun past{.job_id = view.key.job_id, .start = start, .end = end, .suspended = up_to(9)};
        past.resized = up_to(2) == 0;
        past.by_itself = up_to(2) == 0;
        past.contract = up_to(1) * up_to(50);
        if (up_to(49) == 0) scene.ledger.set_unused_charge(static_cast<std::uint32_t>(up_to(2) * 500));
        if (up_to(1) == 0) scene.tell(past, up_to(9));
        if (up_to(19) == 0) scene.ledger.end_scan();
        if (up_to(99) == 0) scene.restart(now - up_to(20), 40 + up_to(20));
        for (const NodeUsage& usage : scene.ledger.node_usage())
            ck_assert_msg(usage.allocated.box >= 0 && usage.allocated.tapered2 >= 0 && usage.allocated.running >= 0 &&
                              usage.commitment >= 0,
                          "never negative");
        std::size_t count = 0;
        scene.ledger.for_each_run([&](const budget::Run& run) {
            ++count;
            ck_assert_msg(scene.ledger.find(run.key) == &run, "found by its key");
        });
        ck_assert_msg(count == scene.ledger.run_count() && count < 400, "%zu runs", count);
    }
    const LedgerImage image = scene.ledger.image();
    ck_assert_msg(Ledger(40, image, image.now).image().runs.size() <= image.runs.size(),
                  "a shorter window has no more");
    ck_assert_msg(Ledger(60, image, image.now, scene.ledger.unused_charge()).image() == image,
                  "saved, restored and saved again");
    scene.ledger.begin_scan(now);
    scene.ledger.end_scan();
    scene.ledger.advance(now + 1000);
    ck_assert_msg(scene.ledger.run_count() == 0 && scene.used("root") == 0, "nothing is left");
}
END_TEST

START_TEST(as_painted) {
    Life(static_cast<unsigned>(_i)).play();
}
END_TEST

}  // namespace

int main() {
    Suite* suite = suite_create("ledger");
    TCase* tcase = tcase_create("ledger");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, scenes, 0, std::ssize(kScenes));
    tcase_add_loop_test(tcase, past_scenes, 0, std::ssize(kPastScenes));
    tcase_add_loop_test(tcase, any_order, 0, std::ssize(kAnyOrder));
    tcase_add_loop_test(tcase, past_owner, 0, std::ssize(kOwners));
    tcase_add_test(tcase, restored_owners);
    tcase_add_loop_test(tcase, as_told, 0, rounds(20));
    tcase_add_loop_test(tcase, any_nonsense, 0, 4);
    tcase_add_loop_test(tcase, changes, 0, std::ssize(kChanges));
    tcase_add_test(tcase, absurd);
    tcase_add_test(tcase, forgotten);
    tcase_add_test(tcase, ends_out_of_order);
    tcase_add_test(tcase, other_window);
    tcase_add_test(tcase, unknown_association);
    tcase_add_test(tcase, own_usage);
    tcase_add_loop_test(tcase, as_painted, 0, rounds(60));
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
