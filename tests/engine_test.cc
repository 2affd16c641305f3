// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of the engine through engine.h, with views as slurmctld's plugins make them:
// which run may be stopped for a waiting job after a pass (C8, P1 to P3, U6), when
// the next contract ends, and what records have to bear (C6, C7, C9, U10).
#include "plugins/engine.h"

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/check_main.h"

namespace {

constexpr std::int64_t kNow = 1'800'000'000;
constexpr std::uint32_t kVictim = 5, kWaiting = 9;

// Two teams, a (2) and b (3), and one node of eight GPUs that a run of a holds, for which a job of b waits.
struct Scene {
    std::int64_t now = kNow;
    std::vector<budget_job> jobs;
    std::vector<budget_holding> totals = {{.node = 0, .tres = 0, .gpus = 8, .cpus = 16, .memory = 0}};
    std::vector<budget_holding> holdings = {{.node = 0, .tres = 0, .gpus = 8, .cpus = 8, .memory = 0}};
    bool open = true;
    std::uint32_t nodes = 1;
    budget_request request{};

    budget_job& victim() { return jobs[0]; }
    budget_job& waiting() { return jobs[1]; }
};

std::int64_t gpus(std::uint64_t count) {
    return budget_engine_rate(&count, 1);
}

budget_tag allocated(std::int64_t contract) {
    return {.readable = true, .allocated = true, .contract = contract, .rate = 0, .has_reason = false};
}

constexpr budget_tag kUnallocated = {
    .readable = true, .allocated = false, .contract = 0, .rate = 0, .has_reason = false};

budget_job run(std::uint32_t job_id, std::int64_t start, budget_tag tag) {
    budget_job job{};
    job.job_id = job_id;
    job.assoc_id = 2;
    job.state = BUDGET_JOB_RUNNING;
    job.tasks = 1;
    job.rate = gpus(8);
    job.start = start;
    job.tag = tag;
    job.holding_count = 1;
    return job;
}

budget_job pending(std::uint32_t job_id, budget_tag tag) {
    budget_job job{};
    job.job_id = job_id;
    job.assoc_id = 3;
    job.state = BUDGET_JOB_PENDING;
    job.eligible = true;
    job.tasks = 1;
    job.task_room = UINT32_MAX;
    job.priority = BUDGET_PRIORITY_LOW;
    job.rate = gpus(8);
    job.eligible_time = kNow - 10;
    job.tag = tag;
    return job;
}

// An engine that knows of no run, with contracts in force from the start of the test on.
void begin(const char* parameters) {
    const budget_tres tres = {.name = "gpu", .type = nullptr};
    const budget_association tree[] = {
        {1, 0, 1, "root", "", ""}, {2, 1, 1, "a", "", ""}, {3, 1, 1, "b", "", ""}, {4, 1, 0, "none", "", ""}};
    budget_engine_load("/nowhere", kNow - 100'000);
    ck_assert(budget_engine_configure(parameters));
    budget_engine_set_tres(&tres, 1, 0, 0);
    ck_assert(budget_engine_set_tree(tree, 4));
    budget_engine_use_preemption();
}

Scene scene() {
    Scene scene;
    scene.jobs = {run(kVictim, kNow - 300, allocated(300)), pending(kWaiting, allocated(60))};
    scene.request.min_nodes = 1;
    scene.request.tres = UINT32_MAX;
    scene.request.gpus = 8;
    scene.request.gpu_chunk = 1;
    scene.request.modelled = true;
    return scene;
}

struct Told {
    std::int64_t next_look = 0;
    std::vector<budget_tagging> taggings;
    std::vector<std::uint32_t> signals;  // to whose runs
    bool wake = false;
};

Told look(Scene& scene) {
    for (budget_job& job : scene.jobs)
        if (job.state == BUDGET_JOB_PENDING) job.request = &scene.request;
    budget_pass pass{};
    pass.now = scene.now;
    pass.capacity = gpus(8);
    pass.jobs = scene.jobs.data();
    pass.job_count = scene.jobs.size();
    pass.node_count = scene.nodes;
    pass.open = &scene.open;
    pass.totals = scene.totals.data();
    pass.total_count = scene.totals.size();
    pass.holdings = scene.holdings.data();
    pass.holding_count = scene.holdings.size();
    ck_assert(budget_engine_pass(&pass));
    Told told{pass.next_look, {pass.taggings, pass.taggings + pass.tagging_count}, {}, pass.wake_scheduler};
    for (std::size_t i = 0; i < pass.signal_count; ++i) told.signals.push_back(pass.signals[i].job_id);
    budget_pass_free(&pass);
    return told;
}

bool may_be_stopped(const Scene& scene) {
    return budget_engine_preemptable(kWaiting, kVictim, 0, scene.jobs[0].start);
}

START_TEST(who_may_be_stopped) {
    const struct {
        const char* why;
        std::function<void(Scene&)> change;
        bool yes;
    } rows[] = {
        {"P3: past its contract, and the other has the better claim", [](Scene&) {}, true},
        {"C2: a second inside its contract", [](Scene& s) { s.victim().start++; }, false},
        {"P2: an unallocated run in its first second",
         [](Scene& s) {
             s.victim().tag = kUnallocated;
             s.victim().start = kNow;
         },
         true},
        {"C9: a run without a readable contract is protected for the longest one",
         [](Scene& s) { s.victim().tag = {}; }, false},
        {"C8: its partition or reservation says never", [](Scene& s) { s.victim().never_victim = true; }, false},
        {"C8: the site exempts its partition", [](Scene& s) { s.victim().partitions = "debug"; }, false},
        {"C8: the site exempts its QOS", [](Scene& s) { s.victim().qos = "vip"; }, false},
        {"others are not exempt",
         [](Scene& s) {
             s.victim().partitions = "main";
             s.victim().qos = "normal";
         },
         true},
        {"U6: suspended time is none of the contract", [](Scene& s) { s.victim().suspended_before = 1; }, false},
        {"U6: a suspended run frees no place", [](Scene& s) { s.victim().state = BUDGET_JOB_SUSPENDED; }, false},
        {"it is being stopped already, and so its room is free",
         [](Scene& s) {
             s.victim().being_stopped = true;
             s.victim().holding_count = 0;
         },
         false},
        {"P1: an unallocated job preempts nobody", [](Scene& s) { s.waiting().tag = kUnallocated; }, false},
        {"P1: not even an unallocated run", [](Scene& s) { s.waiting().tag = s.victim().tag = kUnallocated; }, false},
        {"C9: a waiting job without a contract gets the default, and so is allocated",
         [](Scene& s) { s.waiting().tag = {}; }, true},
        {"Q2: one that cannot start preempts nobody", [](Scene& s) { s.waiting().eligible = false; }, false},
        {"nor one that is held",
         [](Scene& s) {
             s.waiting().held = true;
             s.waiting().priority = 0;
         },
         false},
        {"Q6: one with an operator's number has the same rights",
         [](Scene& s) {
             s.waiting().held = true;
             s.waiting().priority = 7;
         },
         true},
        {"P4: one of the same team and stated priority", [](Scene& s) { s.waiting().assoc_id = 2; }, false},
        {"P4: one of the same team with a higher one",
         [](Scene& s) {
             s.waiting().assoc_id = 2;
             s.waiting().nice = -1;
         },
         true},
        {"an array that is at its own limit", [](Scene& s) { s.waiting().task_room = 0; }, false},
        {"Q5: it would not fit all the same", [](Scene& s) { s.request.gpus = 9; }, false},
        {"the node takes no new work", [](Scene& s) { s.open = false; }, false},
        {"not on a node that it may not use",
         [](Scene& s) {
             static const std::uint64_t kNone[] = {0};
             s.request.allowed = kNone;
         },
         false},
        {"what placement cannot see is left to Slurm, among those who may give way",
         [](Scene& s) { s.request.modelled = false; }, true},
        {"nothing is known of nodes", [](Scene& s) { s.nodes = 0; }, false},
    };
    begin("exempt_partition=debug,exempt_qos=vip");
    for (const auto& row : rows) {
        begin("exempt_partition=debug,exempt_qos=vip");
        Scene each = scene();
        row.change(each);
        look(each);
        ck_assert_msg(may_be_stopped(each) == row.yes, "%s", row.why);
    }
}
END_TEST

START_TEST(the_next_contract_ends) {
    begin("");
    Scene each = scene();
    each.victim().start = kNow - 280;
    ck_assert_msg(look(each).next_look == kNow + 20, "somebody waits for the end of this contract");
    each.now += 20;
    look(each);
    ck_assert_msg(may_be_stopped(each), "at that second");
}
END_TEST

START_TEST(its_own_signal_comes_first) {
    const struct {
        const char* why;
        budget_tag tag;
        bool modelled;
    } rows[] = {
        {"P7: as its contract ends, and somebody waits", allocated(300), true},
        {"P7: an unallocated run", kUnallocated, true},
        {"P7: where Slurm chooses", allocated(300), false},
    };
    for (const auto& row : rows) {
        begin("");
        Scene each = scene();
        each.victim().tag = row.tag;
        each.victim().notice = 2;
        each.request.modelled = row.modelled;
        const Told first = look(each);
        ck_assert_msg(first.signals == std::vector<std::uint32_t>{kVictim}, "%s", row.why);
        ck_assert_msg(first.next_look == kNow + 3 && !first.wake, "the next look is at its end: %s", row.why);
        ck_assert_msg(!may_be_stopped(each), "not yet: %s", row.why);
        each.victim().signalled = true;
        each.now += 3;
        const Told last = look(each);
        ck_assert_msg(last.signals.empty() && last.wake, "once: %s", row.why);
        ck_assert_msg(may_be_stopped(each), "then it is stopped: %s", row.why);
    }
    begin("");
    Scene nobody = scene();
    nobody.victim().notice = 2;
    nobody.jobs.pop_back();
    ck_assert_msg(look(nobody).signals.empty(), "P7: nobody waits for its place");
    begin("");
    Scene inside = scene();
    inside.victim().notice = 2;
    inside.victim().start++;
    ck_assert_msg(look(inside).signals.empty(), "P7: its contract is not over");
}
END_TEST

// Two runs of half the node, for one of which the job asks; the older one would lose more.
START_TEST(who_was_told_goes) {
    begin("");
    Scene each = scene();
    each.victim() = run(kVictim, kNow - 50, kUnallocated);
    each.victim().notice = 2;
    each.jobs.push_back(run(kVictim + 1, kNow - 100, kUnallocated));
    each.jobs[2].first_holding = 1;
    each.jobs[0].rate = each.jobs[2].rate = each.waiting().rate = gpus(4);
    each.request.gpus = 4;
    each.holdings[0].gpus = 4;
    each.holdings.push_back(each.holdings[0]);
    ck_assert_msg(look(each).signals.size() == 1, "P5: the least work lost");
    each.victim().signalled = true;
    each.jobs[2].start = kNow;
    each.now += 3;
    look(each);
    ck_assert_msg(may_be_stopped(each), "P5: it may have saved its work; another that has lost less by now stays");
}
END_TEST

// The record's tag is written by those alone who may.
START_TEST(a_contract_follows_its_tag) {
    begin("");
    Scene each = scene();
    each.victim().tag = allocated(3600);
    look(each);
    ck_assert_msg(!may_be_stopped(each), "inside");
    each.victim().tag = allocated(100);
    each.now++;
    const Told told = look(each);
    ck_assert_msg(may_be_stopped(each), "C6: its owner has ended the protection");
    ck_assert_msg(told.taggings.empty(), "and the tag stays as it was written");
    budget_engine_contract_changed(kVictim);
    ck_assert_msg(!may_be_stopped(each), "C6: changed again: nothing that was said counts");
}
END_TEST

START_TEST(records_bear_their_terms) {
    begin("max_min_runtime=8h,missing_min_runtime=30m");
    Scene each = scene();
    each.victim().tag.has_reason = true;
    each.waiting().tag.has_reason = true;
    each.jobs.push_back(pending(20, {}));
    each.jobs.push_back(pending(21, allocated(60)));
    each.jobs.push_back(pending(22, allocated(7200)));
    each.jobs.push_back(pending(23, kUnallocated));
    for (std::size_t i = 3; i < 6; ++i) each.jobs[i].het_job_id = 21;
    each.jobs[5].time_limit = 3600;
    each.jobs.push_back(pending(24, kUnallocated));
    each.jobs.push_back(pending(25, allocated(7200)));
    each.jobs.push_back(pending(26, allocated(60)));
    for (std::size_t i = 7; i < 9; ++i) each.jobs[i].het_job_id = 25;
    each.jobs[8].assoc_id = 4;
    const Told told = look(each);
    const struct {
        std::uint32_t job;
        bool allocated;
        std::int64_t contract;
        bool has_reason;
        const char* why;
    } rows[] = {
        {0, true, 300, false, "U10: the run that is on has not been stopped"},
        {2, true, 1800, false, "C9: the site's default"},
        {3, true, 7200, false, "C7: the longest of the parts"},
        {5, true, 3600, false, "C7, C4: as far as its limit lets it, allocated as the others are"},
        {7, false, 0, false, "C5, C7: with a part that has no budget none is allocated"},
        {8, false, 0, false, "C5: that part"},
    };
    ck_assert_uint_eq(told.taggings.size(), std::size(rows));
    for (std::size_t i = 0; i < std::size(rows); ++i) {
        const budget_tagging& tagging = told.taggings[i];
        ck_assert_msg(tagging.job == rows[i].job && tagging.tag.allocated == rows[i].allocated &&
                          tagging.tag.contract == rows[i].contract && tagging.tag.has_reason == rows[i].has_reason,
                      "%s", rows[i].why);
    }
}
END_TEST

START_TEST(a_reason_is_kept_or_not) {
    const char* before = "[budget class=allocated contract=60 preempted_for=9 reason=unallocated over=3] text";
    budget_tag tag = budget_engine_read_tag(before);
    ck_assert_msg(tag.readable && tag.has_reason, "it is seen");
    const struct {
        bool keep;
        const char* wanted;
    } rows[] = {
        {true, "[budget class=allocated contract=60 preempted_for=9 reason=unallocated over=3] text"},
        {false, "[budget class=allocated contract=60] text"},
    };
    for (const auto& row : rows) {
        tag.has_reason = row.keep;
        char* after = budget_engine_put_tag(&tag, before);
        ck_assert_str_eq(after, row.wanted);
        std::free(after);
    }
}
END_TEST

START_TEST(the_owner_is_told) {
    begin("");
    Scene each = scene();
    look(each);
    ck_assert(may_be_stopped(each));
    char* told = budget_engine_preempting(kVictim, 0, kNow + 5, true, "[budget class=allocated contract=300] text");
    ck_assert(told != nullptr);
    const std::string comment = told;
    std::free(told);
    ck_assert_msg(comment.find("preempted_for=9 reason=claim account=b ratios=") != std::string::npos, "%s",
                  comment.c_str());
    ck_assert_msg(comment.find(" over=5]") != std::string::npos && comment.ends_with(" text"), "%s", comment.c_str());
    ck_assert_msg(budget_engine_preempting(kVictim, 1, kNow, true, "") == nullptr, "another run was not picked");
    ck_assert_msg(budget_engine_preempting(77, 0, kNow, true, "") == nullptr, "nor was another job");
}
END_TEST

Suite* engine_suite() {
    Suite* suite = suite_create("engine");
    TCase* tcase = tcase_create("engine");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, who_may_be_stopped);
    tcase_add_test(tcase, the_next_contract_ends);
    tcase_add_test(tcase, its_own_signal_comes_first);
    tcase_add_test(tcase, who_was_told_goes);
    tcase_add_test(tcase, a_contract_follows_its_tag);
    tcase_add_test(tcase, records_bear_their_terms);
    tcase_add_test(tcase, a_reason_is_kept_or_not);
    tcase_add_test(tcase, the_owner_is_told);
    suite_add_tcase(suite, tcase);
    return suite;
}

}  // namespace

int main() {
    return run_suite(engine_suite());
}
