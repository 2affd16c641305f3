// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of common/run_terms.h: the class is that of the first sight (C6), the contract the tag's or without one
// the longest (C9), the tag tells of a run that was on before (U10), what is refunded (U7) or has ended by itself
// (U11), and what a waiting job counts as (Q2).

#include "common/run_terms.h"

#include <check.h>

#include <iterator>
#include <optional>

#include "check_main.h"

namespace {

using budget::kGpu;
using budget::Run;
using budget::RunClass;
using budget::RunSigns;
using budget::RunTag;
using budget::RunView;
using budget::Seconds;

constexpr RunClass kAllocated = RunClass::kAllocated;
constexpr RunClass kUnallocated = RunClass::kUnallocated;
constexpr Seconds kStart = 1000;

const RunTag kTwoMinutes = {.run_class = kAllocated, .contract = 120};
const RunTag kNobodyAsked = {.run_class = kAllocated, .contract = budget::kNotAsked};
const RunTag kFree = {.run_class = kUnallocated};

// A known run.
struct Known {
    RunClass run_class = kAllocated;
    std::uint32_t contract = 0;
    Seconds start = kStart;
    bool refunded = false;
    bool ended = false;
};

const struct {
    const char* why;
    RunView view;
    std::optional<Known> known;
    RunSigns signs;
    RunClass run_class;
    Seconds contract;
    bool refunded;
} kTerms[] = {
    {"B4: the class of a run seen starting is that of its budget", {.start = kStart}, {}, {}, kAllocated, 0, false},
    {"B4: without a budget it is unallocated",
     {.start = kStart},
     {},
     {.by_budget = kUnallocated},
     kUnallocated,
     0,
     false},
    {"C2: its contract is that of the tag", {.start = kStart}, {}, {.tag = kTwoMinutes}, kAllocated, 120, false},
    {"C6: the tag of the run before does not make a start free",
     {.start = kStart},
     {},
     {.tag = kFree},
     kAllocated,
     0,
     false},
    {"C6: an unallocated run has no contract",
     {.start = kStart},
     {},
     {.tag = kTwoMinutes, .by_budget = kUnallocated},
     kUnallocated,
     0,
     false},
    {"U10: a run that was on before is what its tag says",
     {.start = kStart},
     {},
     {.tag = kFree, .seen_starting = false},
     kUnallocated,
     0,
     false},
    {"U10: also if its account has no budget any more",
     {.start = kStart},
     {},
     {.tag = kTwoMinutes, .by_budget = kUnallocated, .seen_starting = false},
     kAllocated,
     120,
     false},
    {"U10: without a tag it is charged if there is a budget",
     {.start = kStart},
     {},
     {.seen_starting = false},
     kAllocated,
     0,
     false},
    {"C6: the class stays, and the contract follows the tag, which only those write who may change it",
     {.start = kStart},
     Known{.contract = 60},
     {.tag = kTwoMinutes, .by_budget = kUnallocated},
     kAllocated,
     120,
     false},
    {"C6: down to 0",
     {.start = kStart},
     Known{.contract = 60},
     {.tag = RunTag{.run_class = kAllocated}},
     kAllocated,
     0,
     false},
    {"C6: a tag of another class changes nothing",
     {.start = kStart},
     Known{.contract = 60},
     {.tag = kFree},
     kAllocated,
     60,
     false},
    {"C9: nor does one that is lost",
     {.start = kStart},
     Known{.contract = 60},
     {.contracts_in_force = true, .longest = 480, .now = kStart + 30},
     kAllocated,
     60,
     false},
    {"C6: what stands there after the end may be of the next run",
     {.start = kStart, .end = kStart + 10},
     Known{.contract = 60},
     {.tag = kTwoMinutes},
     kAllocated,
     60,
     false},
    {"C6: an unallocated run stays free",
     {.start = kStart},
     Known{.run_class = kUnallocated},
     {.tag = kTwoMinutes},
     kUnallocated,
     0,
     false},
    {"C6: a start that Slurm moves is the same run",
     {.start = kStart + 60, .submitted = 900},
     Known{.contract = 60},
     {},
     kAllocated,
     60,
     false},
    {"another job with the same key has terms of its own",
     {.start = kStart + 60, .submitted = kStart + 50},
     Known{.run_class = kUnallocated},
     {.tag = kTwoMinutes},
     kAllocated,
     120,
     false},
    {"U7: broken inside the contract",
     {.start = kStart, .end = kStart + 119},
     {},
     {.tag = kTwoMinutes, .broken = true},
     kAllocated,
     120,
     true},
    {"U7: after the contract nothing is refunded",
     {.start = kStart, .end = kStart + 120},
     {},
     {.tag = kTwoMinutes, .broken = true},
     kAllocated,
     120,
     false},
    {"U6, U7: suspended time is none of the contract",
     {.start = kStart, .end = kStart + 150, .suspended_before = 31},
     {},
     {.tag = kTwoMinutes, .broken = true},
     kAllocated,
     120,
     true},
    {"U7: an end that is its own",
     {.start = kStart, .end = kStart + 10},
     {},
     {.tag = kTwoMinutes},
     kAllocated,
     120,
     false},
    {"U7: without a contract there is nothing to break",
     {.start = kStart, .end = kStart},
     {},
     {.broken = true},
     kAllocated,
     0,
     false},
    {"U7: once refunded it stays so, though a later look does not tell why",
     {.start = kStart, .end = kStart + 10},
     Known{.contract = 120, .refunded = true, .ended = true},
     {},
     kAllocated,
     120,
     true},
    {"U7: an operator's kill inside the contract",
     {.start = kStart, .end = kStart + 119},
     {},
     {.tag = kTwoMinutes, .by_operator = true},
     kAllocated,
     120,
     true},
    {"U7: and after it",
     {.start = kStart, .end = kStart + 120},
     {},
     {.tag = kTwoMinutes, .by_operator = true},
     kAllocated,
     120,
     false},
    {"U7: within the contract as it was raised",
     {.start = kStart, .end = kStart + 119},
     Known{.contract = 120},
     {.by_operator = true},
     kAllocated,
     120,
     true},
    {"C9: without a readable tag a run is protected for the longest from when it is first seen",
     {.start = kStart},
     {},
     {.seen_starting = false, .contracts_in_force = true, .longest = 480, .now = kStart + 70},
     kAllocated,
     550,
     false},
    {"C9: by its own clock, as suspended time is none of it",
     {.start = kStart, .suspended_before = 30},
     {},
     {.seen_starting = false, .contracts_in_force = true, .longest = 480, .now = kStart + 70},
     kAllocated,
     520,
     false},
    {"C9: one that starts a moment later too",
     {.start = kStart},
     {},
     {.contracts_in_force = true, .longest = 480, .now = kStart - 5},
     kAllocated,
     480,
     false},
    {"C4, C9: but not beyond its time limit, which ends it anyway",
     {.start = kStart},
     {},
     {.contracts_in_force = true, .longest = 480, .now = kStart + 70, .time_limit = 300},
     kAllocated,
     300,
     false},
    {"C9: one that has ended by then was inside the longest",
     {.start = kStart, .end = kStart + 479},
     {},
     {.broken = true, .contracts_in_force = true, .longest = 480, .now = kStart + 2000},
     kAllocated,
     480,
     true},
    {"B4, C9: without a budget it is free",
     {.start = kStart},
     {},
     {.by_budget = kUnallocated, .contracts_in_force = true, .longest = 480, .now = kStart},
     kUnallocated,
     0,
     false},
    {"C9: where nobody asks for minimums there are none",
     {.start = kStart},
     {},
     {.longest = 480, .now = kStart},
     kAllocated,
     0,
     false},
    {"C9: a readable tag goes before",
     {.start = kStart},
     {},
     {.tag = kTwoMinutes, .contracts_in_force = true, .longest = 480, .now = kStart},
     kAllocated,
     120,
     false},
    {"C9: a run that began when nobody asked is protected from when contracts come into force",
     {.start = kStart},
     Known{},
     {.tag = kNobodyAsked, .seen_starting = false, .contracts_in_force = true, .longest = 480, .now = kStart + 70},
     kAllocated,
     550,
     false},
    {"C9: also if the state was lost",
     {.start = kStart},
     {},
     {.tag = kNobodyAsked, .seen_starting = false, .contracts_in_force = true, .longest = 480, .now = kStart + 70},
     kAllocated,
     550,
     false},
    {"C9: once, though the tag be late",
     {.start = kStart},
     Known{.contract = 550},
     {.tag = kNobodyAsked, .contracts_in_force = true, .longest = 480, .now = kStart + 90},
     kAllocated,
     550,
     false},
    {"C9: but not before",
     {.start = kStart},
     Known{},
     {.tag = kNobodyAsked, .longest = 480, .now = kStart + 70},
     kAllocated,
     0,
     false},
    {"C9: nor at first sight",
     {.start = kStart},
     {},
     {.tag = kNobodyAsked, .longest = 480, .now = kStart + 70},
     kAllocated,
     0,
     false},
    {"C6: a contract that was lowered to 0 stays so",
     {.start = kStart},
     Known{},
     {.tag = RunTag{.run_class = kAllocated}, .contracts_in_force = true, .longest = 480, .now = kStart + 70},
     kAllocated,
     0,
     false},
    {"U10: a run that was on before, with a budget since, is what it was",
     {.start = kStart},
     Known{.run_class = kUnallocated},
     {.tag = kNobodyAsked, .contracts_in_force = true, .longest = 480, .now = kStart + 70},
     kUnallocated,
     0,
     false},
    {"C3: in force, a job that was agreed to be free is",
     {.start = kStart},
     {},
     {.tag = kFree, .contracts_in_force = true, .longest = 480, .now = kStart},
     kUnallocated,
     0,
     false},
    {"C8: but not where nobody may stop it, which is charged",
     {.start = kStart},
     {},
     {.tag = kFree, .never_victim = true, .contracts_in_force = true, .longest = 480, .now = kStart},
     kAllocated,
     0,
     false},
    {"B4, C8: unless it has no budget",
     {.start = kStart},
     {},
     {.tag = kFree,
      .by_budget = kUnallocated,
      .never_victim = true,
      .contracts_in_force = true,
      .longest = 480,
      .now = kStart},
     kUnallocated,
     0,
     false},
    {"C8: its minimum counts for what it is",
     {.start = kStart},
     {},
     {.tag = kTwoMinutes, .never_victim = true, .contracts_in_force = true, .longest = 480, .now = kStart},
     kAllocated,
     120,
     false},
    {"C5: and one whose budget has gone",
     {.start = kStart},
     {},
     {.tag = kTwoMinutes, .by_budget = kUnallocated, .contracts_in_force = true, .longest = 480, .now = kStart},
     kUnallocated,
     0,
     false},
    {"U7: a run that is on is not",
     {.start = kStart},
     Known{.contract = 120, .refunded = true, .ended = true},
     {},
     kAllocated,
     120,
     false},
};

START_TEST(terms) {
    const auto& row = kTerms[_i];
    Run known;
    if (row.known) {
        known.run_class = row.known->run_class;
        known.contract = row.known->contract;
        known.start = row.known->start;
        known.until = kStart + 10;
        known.refunded = row.known->refunded;
        known.ended = row.known->ended;
    }
    RunView view = row.view;
    settle_terms(view, row.known ? &known : nullptr, row.signs);
    ck_assert_msg(view.run_class == row.run_class, "%s: class", row.why);
    ck_assert_msg(view.contract == row.contract, "%s: contract %ld", row.why, static_cast<long>(view.contract));
    ck_assert_msg(view.refunded == row.refunded, "%s: refund", row.why);
}
END_TEST

// Did the run end by itself?
const struct {
    const char* why;
    std::optional<Seconds> end;
    bool shown;
    std::optional<bool> known;  // ended so
    bool expected;
} kByItself[] = {
    {"U11: as it is shown", kStart + 10, true, {}, true},
    {"U11: or not", kStart + 10, false, {}, false},
    {"U11: a run that is on has not ended", {}, true, {}, false},
    {"U11: once it has, it has, though a later look does not tell", kStart + 10, false, true, true},
    {"U11: what was not so may turn out to be", kStart + 10, true, false, true},
    {"U11: if it goes on it has not", {}, false, true, false},
};

START_TEST(by_itself) {
    const auto& row = kByItself[_i];
    Run known;
    known.start = kStart;
    known.ended = true;
    known.by_itself = row.known.value_or(false);
    RunView view = {.start = kStart, .end = row.end, .by_itself = row.shown};
    settle_terms(view, row.known ? &known : nullptr, {});
    ck_assert_msg(view.by_itself == row.expected, "%s", row.why);
}
END_TEST

const struct {
    const char* why;
    std::optional<RunTag> tag;
    bool has_budget;
    std::optional<Seconds> time_limit;
    bool exempt;
    bool in_force;
    const char* parameters;
    RunClass run_class;
    Seconds contract;
} kPending[] = {
    {"Q2, U4: by its tag", kTwoMinutes, true, {}, false, true, "", kAllocated, 120},
    {"Q1: unallocated by its tag", kFree, true, {}, false, true, "", kUnallocated, 0},
    {"B4, C5: without a budget it is free", kTwoMinutes, false, {}, false, true, "", kUnallocated, 0},
    {"C8: an exempt one without a contract is allocated",
     RunTag{.run_class = kAllocated},
     true,
     {},
     true,
     true,
     "",
     kAllocated,
     0},
    {"C9: without a tag the longest", {}, true, {}, false, true, "max_min_runtime=1h", kAllocated, 3600},
    {"C4, C9: within its limit", {}, true, 600, false, true, "", kAllocated, 600},
    {"C9: or the site's default", {}, true, {}, false, true, "missing_min_runtime=unallocated", kUnallocated, 0},
    {"C8, C9: or none, exempt", {}, true, {}, true, true, "", kAllocated, 0},
    {"B4, C9: without a tag and a budget", {}, false, {}, false, true, "", kUnallocated, 0},
    {"C9: one that was requeued before anybody asked",
     kNobodyAsked,
     true,
     {},
     false,
     true,
     "max_min_runtime=1h",
     kAllocated,
     3600},
    {"not in force it has none", kNobodyAsked, true, {}, false, false, "", kAllocated, 0},
    {"not in force, without a tag there is no contract", {}, true, {}, false, false, "", kAllocated, 0},
    {"not in force, the next start is charged if there is a budget", kFree, true, {}, false, false, "", kAllocated, 0},
    {"not in force, a tag's contract is one", kTwoMinutes, true, {}, false, false, "", kAllocated, 120},
};

START_TEST(pending) {
    const auto& row = kPending[_i];
    const budget::PendingTerms got = pending_terms(row.tag, row.has_budget, row.time_limit, row.exempt, row.in_force,
                                                   budget::Parameters::parse(row.parameters).value());
    ck_assert_msg(got.run_class == row.run_class && got.contract == row.contract, "%s: contract %ld", row.why,
                  static_cast<long>(got.contract));
    RunView start{.start = kStart};
    settle_terms(
        start, nullptr,
        {.tag = row.tag && row.tag != kNobodyAsked ? row.tag
                                                   : RunTag{.run_class = got.run_class, .contract = got.contract},
         .by_budget = row.has_budget ? kAllocated : kUnallocated,
         .contracts_in_force = row.in_force});
    ck_assert_msg(start.run_class == got.run_class && start.contract == got.contract, "%s: it starts as it was counted",
                  row.why);
}
END_TEST

START_TEST(tags) {
    Run run;
    run.contract = 120;
    ck_assert_msg(tag_for(run, 8 * kGpu, false, true) == kTwoMinutes, "class and contract");
    ck_assert_msg(tag_for(run, 8 * kGpu, true, true).rate == 8 * kGpu, "and the rate where AllocTRES does not tell");
    ck_assert_msg(tag_for(run, 8 * kGpu, false, false) == kTwoMinutes, "in force or not");
    run.contract = 0;
    ck_assert_msg(tag_for(run, kGpu, false, true).contract == 0, "C6: in force, a contract of 0 is one");
    ck_assert_msg(tag_for(run, kGpu, false, false) == kNobodyAsked, "C9: else nobody asked for it");
    run.run_class = kUnallocated;
    ck_assert_msg(tag_for(run, kGpu, false, false) == kFree, "nor is one written");
    ck_assert_msg(tag_for(run, 8 * kGpu, false, true) == kFree, "an unallocated run has no contract");
}
END_TEST

Suite* run_terms_suite() {
    Suite* suite = suite_create("run_terms");
    TCase* tests = tcase_create("run_terms");
    tcase_add_loop_test(tests, terms, 0, static_cast<int>(std::size(kTerms)));
    tcase_add_loop_test(tests, by_itself, 0, static_cast<int>(std::size(kByItself)));
    tcase_add_loop_test(tests, pending, 0, static_cast<int>(std::size(kPending)));
    tcase_add_test(tests, tags);
    suite_add_tcase(suite, tests);
    return suite;
}

}  // namespace

int main() {
    return run_suite(run_terms_suite());
}
