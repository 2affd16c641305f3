// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of plugins/verdicts: who is told yes, until when, and what becomes of picks
// that Slurm does not follow; of plugins/notices: who gets its signal before a stop. The thread test is to be run under
// the thread sanitizer as well.
#include "plugins/verdicts.h"

#include <atomic>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plugins/notices.h"
#include "tests/check_main.h"

namespace {

using namespace budget;

std::int64_t clock_now = 100;
std::int64_t test_clock() {
    return clock_now;
}

PickedVictim victim(std::uint32_t job_id, std::uint32_t restart_count = 0) {
    return {.key = {job_id, restart_count}};
}

// Job 5 in its second run, started at 1000 with a contract of 300; and job 6, unallocated.
Pick sample() {
    PickedVictim five{.key = {5, 1},
                      .latest_start = 1200,
                      .right = Right::kClaim,
                      .preemptor_ratio = 0.41,
                      .victim_ratio = 0.93,
                      .rate = 8 * kGpu,
                      .start = 1000,
                      .contract = 300,
                      .protected_until = 1300,
                      .leaf = "alice (a)"};
    PickedVictim six{.key = {6, 0},
                     .run_class = RunClass::kUnallocated,
                     .rate = kGpu / 2,
                     .start = 1400,
                     .protected_until = 1400,
                     .leaf = "a"};
    return {.job_id = 9, .leaf = "carol (c)", .account = "c", .victims = {six, five}};
}

Verdicts::News next_pass(Verdicts& verdicts, std::vector<Pick> picks, Seconds now = 1500) {
    verdicts.begin_pass();
    return verdicts.publish(std::move(picks), now);
}

START_TEST(yes_is_said_only_of_what_was_picked) {
    Verdicts verdicts(test_clock);
    ck_assert_msg(!verdicts.preemptable(9, {5, 1}, 1000), "before the first pass nobody may be stopped");
    next_pass(verdicts, {sample()});
    const struct {
        std::uint32_t preemptor;
        RunKey victim;
        Seconds start;
        bool yes;
        const char* why;
    } rows[] = {
        {9, {5, 1}, 1000, true, "picked"},
        {9, {6, 0}, 1400, true, "picked, unallocated"},
        {9, {6, 0}, 99999, true, "P2: an unallocated run at any time, whenever its start"},
        {8, {5, 1}, 1000, false, "for this job nobody was picked"},
        {9, {5, 0}, 1000, false, "C2: another run of the job has a contract of its own"},
        {9, {5, 2}, 1000, false, "as has the next one"},
        {9, {7, 0}, 1000, false, "not picked"},
        {9, {69, 1}, 1000, false, "not picked, though its id is like that of one that is"},
        {9, {5, 1}, 1200, true, "moved to a later start, and past its contract all the same"},
        {9, {5, 1}, 1201, false, "C2: with the start moved by a power-up it was not past its contract at the pass"},
        {0, {5, 1}, 1000, false, "no job at all"},
    };
    for (const auto& row : rows)
        ck_assert_msg(verdicts.preemptable(row.preemptor, row.victim, row.start) == row.yes, "%s", row.why);
    next_pass(verdicts, {});
    ck_assert_msg(!verdicts.preemptable(9, {5, 1}, 1000), "the next pass takes everything back");
}
END_TEST

START_TEST(a_changed_contract_voids) {
    Verdicts verdicts(test_clock);
    next_pass(verdicts, {sample()});
    ck_assert(verdicts.preemptable(9, {5, 1}, 1000));
    verdicts.contract_changed(5);
    ck_assert_msg(!verdicts.preemptable(9, {5, 1}, 1000), "C6: void at once");
    ck_assert_msg(verdicts.preemptable(9, {6, 0}, 1400), "of others nothing changes");
    next_pass(verdicts, {sample()});
    ck_assert_msg(!verdicts.preemptable(9, {5, 1}, 1000), "the pass may have looked before the change");
    next_pass(verdicts, {sample()});
    ck_assert_msg(verdicts.preemptable(9, {5, 1}, 1000), "this one has seen it");
    verdicts.begin_pass();
    verdicts.contract_changed(5);
    verdicts.publish({sample()}, 1500);
    ck_assert_msg(!verdicts.preemptable(9, {5, 1}, 1000), "changed while the pass was under way");
}
END_TEST

START_TEST(victims_have_their_order) {
    Verdicts verdicts(test_clock);
    next_pass(verdicts, {sample(), {.job_id = 10, .victims = {victim(5, 1)}}});
    verdicts.preemptable(9, {5, 1}, 1000);
    ck_assert_msg(verdicts.victim_order({6, 0}) == 0, "P5: as in the pick, not by job id");
    ck_assert_msg(verdicts.victim_order({5, 1}) == 1, "then this one");
    ck_assert_msg(verdicts.victim_order({7, 0}) == ~0U, "the last, if it is none");
    verdicts.preemptable(10, {7, 0}, 1000);
    ck_assert_msg(verdicts.victim_order({5, 1}) == 0, "another job's victims have another order");
}
END_TEST

START_TEST(parts_go_together) {
    Verdicts verdicts(test_clock);
    PickedVictim part = victim(5);
    part.group = 4;
    next_pass(verdicts, {{.job_id = 9, .victims = {part, victim(7)}}, {.job_id = 10, .victims = {victim(7)}}});
    ck_assert_msg(verdicts.stops_parts(9, 4), "C7: a part without GPUs goes along with the one picked");
    ck_assert_msg(!verdicts.stops_parts(9, 7), "a victim that is no part has none");
    ck_assert_msg(!verdicts.stops_parts(10, 4), "nobody goes along for a job that stops no part of it");
    next_pass(verdicts, {});
    ck_assert_msg(!verdicts.stops_parts(9, 4), "nor when the pick is gone");
}
END_TEST

START_TEST(the_first_task_of_an_array_has_the_pick) {
    Verdicts verdicts(test_clock);
    next_pass(verdicts, {{.job_id = 9, .victims = {victim(5)}}, {.job_id = 9, .victims = {victim(6)}}});
    ck_assert_msg(verdicts.preemptable(9, {5, 0}, 0), "Slurm looks at the record's first task");
    ck_assert_msg(!verdicts.preemptable(9, {6, 0}, 0), "what the next one needs is not stopped for it");
}
END_TEST

START_TEST(a_pick_not_followed_is_dropped) {
    const struct {
        std::vector<std::int64_t> attempts;  // when, by the clock
        bool stop;
        bool dropped;
        const char* why;
    } rows[] = {
        {{}, false, false, "never tried"},
        {{200}, false, false, "tried once"},
        {{200, 200, 200}, false, false, "several questions of one cycle are one attempt"},
        {{200, 230}, false, true, "tried twice, nobody stopped"},
        {{200, 230}, true, false, "Slurm has stopped somebody for it"},
    };
    for (const auto& row : rows) {
        Verdicts verdicts(test_clock);
        next_pass(verdicts, {sample()}, 1500);
        for (const std::int64_t at : row.attempts) {
            clock_now = at;
            verdicts.preemptable(9, {5, 1}, 1000);
            verdicts.preemptable(9, {6, 0}, 1400);
        }
        if (row.stop) verdicts.preempting({5, 1});
        const std::vector<std::uint32_t> dropped = verdicts.drop_failed(1501);
        ck_assert_msg(dropped == (row.dropped ? std::vector<std::uint32_t>{9} : std::vector<std::uint32_t>{}), "%s",
                      row.why);
        ck_assert_msg(verdicts.left_to_slurm() == (row.dropped ? 1U : 0U), "counted: %s", row.why);
        ck_assert_msg(verdicts.is_left(9, {.gpus = 8}, 1501) == row.dropped, "left: %s", row.why);
    }
}
END_TEST

START_TEST(a_left_job_is_taken_back) {
    const struct {
        Seconds later;
        std::uint32_t gpus;
        bool left;
        const char* why;
    } rows[] = {
        {1, 8, true, "just now"},
        {599, 8, true, "for ten minutes"},
        {600, 8, false, "then it is tried again"},
        {1, 4, false, "it asks for something else now"},
    };
    for (const auto& row : rows) {
        Verdicts verdicts(test_clock);
        next_pass(verdicts, {sample()}, 1500);
        for (const std::int64_t at : {300, 330}) {
            clock_now = at;
            verdicts.preemptable(9, {5, 1}, 1000);
        }
        verdicts.drop_failed(1500);
        ck_assert(verdicts.is_left(9, {.gpus = 8}, 1500));
        ck_assert_msg(!verdicts.is_left(10, {.gpus = 8}, 1500), "others are not left");
        ck_assert_msg(verdicts.is_left(9, {.gpus = row.gpus}, 1500 + row.later) == row.left, "%s", row.why);
    }
}
END_TEST

START_TEST(the_scheduler_is_woken_for_news) {
    Verdicts verdicts(test_clock);
    const Pick pick = sample();
    Pick other = pick;
    other.victims.pop_back();
    const struct {
        Seconds now;
        std::vector<Pick> picks;
        bool wake;
        std::size_t lines;
        const char* why;
    } rows[] = {
        {1500, {pick}, true, 1, "a new pick"},
        {1501, {pick}, false, 0, "it is known"},
        {1509, {pick}, false, 0, "and has been for less than ten seconds"},
        {1510, {pick}, true, 0, "it stands for long"},
        {1511, {other}, true, 0, "others are picked; told of again after a minute only"},
        {1512, {}, false, 0, "none any more"},
        {1513, {pick}, true, 1, "a new one again"},
        {1580, {other}, true, 1, "others, more than a minute after the last line"},
    };
    for (const auto& row : rows) {
        const Verdicts::News news = next_pass(verdicts, row.picks, row.now);
        ck_assert_msg(news.wake == row.wake, "wake: %s", row.why);
        ck_assert_msg(news.lines.size() == row.lines, "lines: %s", row.why);
    }
    ck_assert_msg(verdicts.picks() == 2, "counted once each");
    Pick slurms = pick;
    slurms.ours = false;
    const Verdicts::News news = next_pass(verdicts, {slurms}, 1590);
    ck_assert_msg(news.wake && news.lines.empty(), "what Slurm chooses from is looked at too, and is no pick");
}
END_TEST

START_TEST(a_pick_waits_for_a_notice) {
    struct Look {
        Seconds now;
        bool signalled;  // as the record says
        bool sends;
        bool yes;
        Seconds next_look;
    };
    const struct {
        Seconds notice;
        std::vector<Look> looks;
        const char* why;
    } rows[] = {
        {0, {{1500, false, false, true, 0}}, "it has no signal, or one for the very end"},
        {5, {{1500, true, false, true, 0}}, "P7: Slurm has sent it already"},
        {5, {{1500, false, true, false, 1506}}, "P7: it is sent when the pass picks it"},
        {5,
         {{1500, false, true, false, 1506}, {1501, true, false, false, 1506}, {1505, true, false, false, 1506}},
         "P7: and all of the notice is waited for, a second that had begun not counted"},
        {5, {{1500, false, true, false, 1506}, {1506, true, false, true, 0}}, "P7: then it may be stopped"},
        {5, {{1500, false, true, false, 1506}, {1501, false, true, false, 1506}}, "sent again if it was not"},
        {5, {{1500, false, true, false, 1506}, {1000, true, false, false, 1006}}, "the clock was put back"},
    };
    std::deque<Verdicts> all;  // a thread knows them apart by where they are
    for (const auto& row : rows) {
        Verdicts& verdicts = all.emplace_back(test_clock);
        Notices notices;
        for (const Look& look : row.looks) {
            std::vector<Pick> picks = {sample()};
            picks[0].victims[1].notice = row.notice;
            picks[0].victims[1].signalled = look.signalled;
            const Notices::News news = notices.hold_back(picks, look.now);
            const Verdicts::News wake = next_pass(verdicts, std::move(picks), look.now);
            ck_assert_msg(news.signals == (look.sends ? std::vector<RunKey>{{5, 1}} : std::vector<RunKey>{}),
                          "signals: %s", row.why);
            ck_assert_msg(news.next_look.value_or(0) == look.next_look, "next look: %s", row.why);
            ck_assert_msg(verdicts.preemptable(9, {5, 1}, 1000) == look.yes, "%s", row.why);
            ck_assert_msg(verdicts.preemptable(9, {6, 0}, 1400) == look.yes, "Q5: all or nobody: %s", row.why);
            ck_assert_msg(wake.wake == look.yes, "the scheduler is woken when there is something to do: %s", row.why);
        }
    }
}
END_TEST

START_TEST(a_notice_is_given_once_in_a_run) {
    Notices notices;
    std::vector<Pick> picks = {sample()};
    picks[0].victims[1].notice = 5;
    ck_assert_msg(notices.hold_back(picks, 1500).lines.size() == 1, "the log has it");
    ck_assert_msg(notices.end({5, 1}) == 1506, "until then");
    ck_assert_msg(!notices.end({5, 2}) && !notices.end({6, 0}), "of others nothing is known");
    picks[0].victims[1].signalled = true;
    picks[0].job_id = 10;
    ck_assert_msg(notices.hold_back(picks, 1502).lines.empty(), "picked for another meanwhile: no second notice");
    ck_assert_msg(picks[0].held_back && notices.end({5, 1}) == 1506, "but that one, too, waits for its end");
    picks[0].victims[1].key = {5, 2};
    picks[0].victims[1].signalled = false;
    ck_assert_msg(notices.hold_back(picks, 1600).next_look == 1606, "P6: its next run has a notice of its own");
    notices.forget([](RunKey run) { return run == RunKey{5, 2}; });
    ck_assert_msg(!notices.end({5, 1}) && notices.end({5, 2}), "forgotten with the run");
}
END_TEST

// Among all that may give way, those are told that are likely to go: not all, for one job that waits.
START_TEST(of_a_left_pick_the_first_are_told) {
    const struct {
        Rate asked;
        std::size_t told;
        const char* why;
    } rows[] = {
        {kGpu, 1, "the first has what it asks for"},
        {2 * kGpu, 1, "just so"},
        {2 * kGpu + 1, 2, "the first has not enough"},
        {9 * kGpu, 3, "all together have not"},
    };
    for (const auto& row : rows) {
        Notices notices;
        Pick pick{.job_id = 9, .ours = false, .rate = row.asked};
        for (const std::uint32_t job_id : {5, 6, 7})
            pick.victims.push_back({.key = {job_id, 0}, .notice = 5, .rate = 2 * kGpu});
        std::vector<Pick> picks = {pick};
        const Notices::News news = notices.hold_back(picks, 1500);
        ck_assert_msg(news.signals.size() == row.told && news.signals[0] == RunKey({5, 0}), "%s", row.why);
        ck_assert_msg(picks[0].held_back, "and Slurm waits for them: %s", row.why);
        ck_assert_msg(news.next_look == 1506, "until then: %s", row.why);
    }
}
END_TEST

START_TEST(a_stop_is_explained) {
    Verdicts verdicts(test_clock);
    next_pass(verdicts, {sample()});
    verdicts.preemptable(9, {5, 1}, 1000);
    ck_assert_msg(!verdicts.preempting({7, 0}), "not ours: nothing is said");
    const std::optional<Verdicts::Stop> five = verdicts.preempting({5, 1});
    const std::optional<Verdicts::Stop> six = verdicts.preempting({6, 0});
    ck_assert(five && six);
    const std::string of_five = to_string(*five, 1610);
    const std::string of_six = to_string(*six, 1410);
    ck_assert_str_eq(of_five.c_str(),
                     "preempting JobId=5 restart=1 leaf=\"alice (a)\" class=allocated contract=300 start=1000 over=310 "
                     "gpus=8 for JobId=9 leaf=\"carol (c)\" right=claim ratios=0.410/0.930 pick=ours");
    ck_assert_str_eq(of_six.c_str(),
                     "preempting JobId=6 restart=0 leaf=\"a\" class=unallocated contract=0 start=1400 over=10 gpus=0.5 "
                     "for JobId=9 leaf=\"carol (c)\" right=unallocated pick=ours");
    const PreemptedFor told = reason(*five, 1610, true);
    ck_assert(told == PreemptedFor({.job_id = 9,
                                    .reason = PreemptedFor::Reason::kClaim,
                                    .account = "c",
                                    .preemptor_ratio_millis = 410,
                                    .victim_ratio_millis = 930,
                                    .over = 310}));
    ck_assert_msg(reason(*five, 1610, false).account.empty(), "PrivateData: not by which account");
    ck_assert_msg(verdicts.preempted() == 2, "counted");
}
END_TEST

// While picks come and go, nobody gets a yes that no table has.
START_TEST(asked_while_passes_are_made) {
    Verdicts verdicts;
    std::atomic<bool> done = false;
    std::atomic<bool> wrong = false;
    const auto ask = [&] {
        while (!done.load()) {
            if (verdicts.preemptable(9, {6, 0}, 0)) wrong = true;
            verdicts.preemptable(9, {5, 0}, 0);
            verdicts.preemptable(10, {5, 0}, 0);
            verdicts.victim_order({5, 0});
            if (const auto stop = verdicts.preempting({5, 0}); stop && stop->victim.key.job_id != 5) wrong = true;
        }
    };
    std::thread one(ask), two(ask);
    for (Seconds now = 1; now < 2000; ++now) {
        verdicts.begin_pass();
        verdicts.drop_failed(now);
        verdicts.publish({{.job_id = now % 2 ? 9U : 10U, .victims = {victim(5)}}}, now);
        verdicts.contract_changed(static_cast<std::uint32_t>(now % 7));
    }
    done = true;
    one.join();
    two.join();
    ck_assert(!wrong.load());
}
END_TEST

Suite* verdicts_suite() {
    Suite* suite = suite_create("verdicts");
    TCase* tcase = tcase_create("verdicts");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, yes_is_said_only_of_what_was_picked);
    tcase_add_test(tcase, a_changed_contract_voids);
    tcase_add_test(tcase, victims_have_their_order);
    tcase_add_test(tcase, parts_go_together);
    tcase_add_test(tcase, the_first_task_of_an_array_has_the_pick);
    tcase_add_test(tcase, a_pick_not_followed_is_dropped);
    tcase_add_test(tcase, a_left_job_is_taken_back);
    tcase_add_test(tcase, the_scheduler_is_woken_for_news);
    tcase_add_test(tcase, a_pick_waits_for_a_notice);
    tcase_add_test(tcase, a_notice_is_given_once_in_a_run);
    tcase_add_test(tcase, of_a_left_pick_the_first_are_told);
    tcase_add_test(tcase, a_stop_is_explained);
    tcase_add_test(tcase, asked_while_passes_are_made);
    suite_add_tcase(suite, tcase);
    return suite;
}

}  // namespace

int main() {
    return run_suite(verdicts_suite());
}
