// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of common/contract: what a submission gets (C1 to C5, C7, C8), what an update may change (C6), the
// terms without a contract (C9), and that whatever is accepted is within its bounds. Each row says why.
#include "common/contract.h"

#include <random>
#include <string>
#include <vector>

#include "tests/check_main.h"

namespace {

using namespace budget;

constexpr Seconds kLimit = 4 * kHour;

Parameters parameters_of(const char* text) {
    return Parameters::parse(text).value();
}

RunTag allocated(Seconds contract) {
    return {.run_class = RunClass::kAllocated, .contract = contract};
}
const RunTag kUnallocated = {.run_class = RunClass::kUnallocated};

std::string all_of(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += (text.empty() ? "" : "|") + line;
    return text;
}

// Is every part, parted by *, in the text, in this order? An empty pattern is the empty text alone.
bool has_parts(std::string_view text, std::string_view parts) {
    if (parts.empty()) return text.empty();
    for (;;) {
        const std::size_t star = parts.find('*');
        const std::string_view part = parts.substr(0, star);
        const std::size_t at = text.find(part);
        if (at == std::string_view::npos) return false;
        text.remove_prefix(at + part.size());
        if (star == std::string_view::npos) return true;
        parts.remove_prefix(star + 1);
    }
}

struct Expected {
    std::optional<RunTag> tag = {};  // none, and a refusal: refused
    const char* refusal = "";
    const char* notices = "";  // parted by |
    std::optional<Seconds> time_min = {};
    bool qos = false;
};

void check_answer(const char* why, const ContractAnswer& got, const Expected& expected) {
    const std::string refusal = got.refusal.value_or("");
    const std::string notices = all_of(got.notices);
    ck_assert_msg(has_parts(refusal, expected.refusal), "%s: the refusal is \"%s\"", why, refusal.c_str());
    ck_assert_msg(got.refusal.has_value() == (*expected.refusal != '\0'), "%s: refused or not", why);
    ck_assert_msg(refusal.find('\n') == std::string::npos && notices.find('\n') == std::string::npos,
                  "%s: more than one line", why);
    if (got.refusal) return;
    ck_assert_msg(got.tag == expected.tag, "%s: the tag is %s", why, got.tag ? to_string(*got.tag).c_str() : "none");
    ck_assert_msg(has_parts(notices, expected.notices), "%s: the notices are \"%s\"", why, notices.c_str());
    ck_assert_msg(got.time_min == expected.time_min, "%s: time_min is %lld", why,
                  static_cast<long long>(got.time_min.value_or(-1)));
    ck_assert_msg(got.in_unallocated_qos == expected.qos, "%s: the QOS of unallocated jobs", why);
}

struct SettleRow {
    const char* why;
    const char* parameters;
    ContractRequest request;
    Expected expected;
};

const SettleRow kSettleRows[] = {
    {"C2: a minimum above 0 makes a job allocated",
     "",
     {.stated = "2:00:00", .time_limit = kLimit},
     {.tag = allocated(2 * kHour)}},
    {"C2: as long as it may be", "", {.stated = "8h"}, {.tag = allocated(8 * kHour)}},
    {"C1: a plain number is minutes, as for --time", "", {.stated = "90"}, {.tag = allocated(90 * kMinute)}},
    {"C2: of one second", "", {.stated = "1s"}, {.tag = allocated(1)}},
    {"C3: a minimum of 0 makes it unallocated, which was asked for", "", {.stated = "0"}, {.tag = kUnallocated}},
    {"C3: in any form", "", {.stated = "0-00:00:00"}, {.tag = kUnallocated}},
    {"C3: the site's QOS shows it",
     "unallocated_qos=free",
     {.qos = "normal", .stated = "0"},
     {.tag = kUnallocated, .qos = true}},
    {"C3: unless the job has it", "unallocated_qos=free", {.qos = "Free", .stated = "0"}, {.tag = kUnallocated}},
    {"C3: a job with a minimum keeps its QOS",
     "unallocated_qos=free",
     {.qos = "normal", .stated = "1h"},
     {.tag = allocated(kHour)}},
    {"C3: and is told if that is the wrong one",
     "unallocated_qos=free",
     {.qos = "free", .stated = "1h"},
     {.tag = allocated(kHour), .notices = "QOS free*--qos"}},

    {"C1: a missing minimum is refused with what to write",
     "",
     {.time_limit = kLimit},
     {.refusal = "--min-runtime is missing*up to 08:00:00*--min-runtime=02:00:00*0 is free"}},
    {"C1: an example that the site allows",
     "max_min_runtime=30m",
     {},
     {.refusal = "up to 00:30:00*--min-runtime=00:30:00"}},
    {"C1: a time limit that may be shortened is no minimum, and the refusal says so",
     "",
     {.time_limit = 8 * kHour, .time_min = 4 * kHour},
     {.refusal = "--min-runtime is missing*--time-min is something else"}},
    {"C1: the site may make it unallocated",
     "missing_min_runtime=unallocated,unallocated_qos=free",
     {},
     {.tag = kUnallocated, .notices = "--min-runtime is missing*free of charge*--min-runtime=02:00:00", .qos = true}},
    {"C1: or give a time",
     "missing_min_runtime=1h",
     {.time_limit = kLimit},
     {.tag = allocated(kHour), .notices = "--min-runtime is missing*01:00:00*default"}},
    {"C4: which is never beyond the limit",
     "missing_min_runtime=1h",
     {.time_limit = 600},
     {.tag = allocated(600), .notices = "taken to be 00:10:00"}},
    {"C1: a default does not stand against what is stated",
     "missing_min_runtime=1h",
     {.stated = "0"},
     {.tag = kUnallocated}},

    {"C1: above the maximum",
     "",
     {.stated = "8:00:01"},
     {.refusal = "--min-runtime=8:00:01 is longer than the 08:00:00*write --min-runtime=08:00:00 or less"}},
    {"C1: of the site", "max_min_runtime=1h", {.stated = "90"}, {.refusal = "--min-runtime=90*than the 01:00:00"}},
    {"a bad value is one error that names option and value",
     "",
     {.stated = "480x"},
     {.refusal = "--min-runtime=480x is not a time from 0 to 08:00:00: write *--min-runtime=02:00:00"}},
    {"trailing characters", "", {.stated = "8hours!"}, {.refusal = "--min-runtime=8hours! is not a time"}},
    {"a full-width zero is not 0", "", {.stated = "\xef\xbc\x90"}, {.refusal = "--min-runtime=??? is not a time"}},
    {"a negative time", "", {.stated = "-1"}, {.refusal = "--min-runtime=-1 is not a time"}},
    {"a fraction", "", {.stated = "1.5h"}, {.refusal = "--min-runtime=1.5h is not a time"}},
    {"no limit is no time", "", {.stated = "UNLIMITED"}, {.refusal = "--min-runtime=UNLIMITED is not a time"}},
    {"nothing at all", "", {.stated = ""}, {.refusal = "--min-runtime= is not a time"}},
    {"a blank", "", {.stated = " 1h"}, {.refusal = "--min-runtime= 1h is not a time"}},
    {"lines of others", "", {.stated = "1h\nhello"}, {.refusal = "--min-runtime=1h?hello is not a time"}},
    {"beyond 64 bits", "", {.stated = "99999999999999999999d"}, {.refusal = "99999999999999999999d is not a time"}},
    {"a bad value is an error without GPUs too", "", {.gpus = false, .stated = "x"}, {.refusal = "--min-runtime=x"}},
    {"and without a budget", "", {.has_budget = false, .stated = "x"}, {.refusal = "--min-runtime=x"}},

    {"C4: a minimum beyond the limit is refused with both values and both ways out",
     "",
     {.stated = "4h", .time_limit = 2 * kHour},
     {.refusal = "--min-runtime=04:00:00 is longer than the time limit of 02:00:00*--time=04:00:00 or more*"
                 "--min-runtime=02:00:00 or less"}},
    {"C4: equal is within", "", {.stated = "4h", .time_limit = kLimit}, {.tag = allocated(kLimit)}},
    {"C4: by one second", "", {.stated = "3601s", .time_limit = kHour}, {.refusal = "01:00:01*01:00:00"}},
    {"C4: no limit is no bound", "", {.stated = "4h"}, {.tag = allocated(4 * kHour)}},
    {"C4: backfill must not cut the limit below the minimum",
     "",
     {.stated = "6h", .time_limit = 8 * kHour, .time_min = 4 * kHour},
     {.tag = allocated(6 * kHour), .notices = "--time-min=04:00:00 is raised to 06:00:00", .time_min = 6 * kHour}},
    {"C4: in whole minutes, upwards",
     "",
     {.stated = "61s", .time_limit = kHour, .time_min = 60},
     {.tag = allocated(61), .notices = "raised to 00:02:00", .time_min = 120}},
    {"C4: one that is long enough stays",
     "",
     {.stated = "4h", .time_limit = 8 * kHour, .time_min = 4 * kHour},
     {.tag = allocated(4 * kHour)}},
    {"C4: without a minimum it is nobody's concern",
     "",
     {.stated = "0", .time_limit = 8 * kHour, .time_min = kHour},
     {.tag = kUnallocated}},
    {"C4: it is raised to a default as well",
     "missing_min_runtime=2h",
     {.time_limit = kLimit, .time_min = kHour},
     {.tag = allocated(2 * kHour), .notices = "taken to be 02:00:00*raised to 02:00:00", .time_min = 2 * kHour}},

    {"C5: without a budget it runs as unallocated, and is told",
     "unallocated_qos=free",
     {.has_budget = false, .stated = "2h"},
     {.tag = kUnallocated, .notices = "no budget*interrupted at any time*whatever --min-runtime says", .qos = true}},
    {"C5: nothing has to be stated then",
     "",
     {.has_budget = false},
     {.tag = kUnallocated, .notices = "no budget*at any time"}},
    {"C5: the site may refuse it",
     "no_budget=refuse",
     {.has_budget = false, .stated = "0"},
     {.refusal = "no budget*--account"}},
    {"C5: what cannot be told counts as a budget", "no_budget=refuse", {.stated = "2h"}, {.tag = allocated(2 * kHour)}},
    {"C5: also in an exempt partition",
     "exempt_partition=debug",
     {.has_budget = false, .partitions = "debug"},
     {.tag = kUnallocated, .notices = "no budget"}},

    {"C7: an interactive job will be ended, and is told",
     "",
     {.stated = "1h", .requeueable = false, .interactive = true},
     {.tag = allocated(kHour), .notices = "interactive*ended, not requeued*after its minimum runtime of 01:00:00"}},
    {"C7: so is one that may not be requeued",
     "",
     {.stated = "1h", .requeueable = false},
     {.tag = allocated(kHour), .notices = "--no-requeue*ended, not requeued"}},
    {"C7: without a minimum at any time",
     "",
     {.stated = "0", .requeueable = false},
     {.tag = kUnallocated, .notices = "--no-requeue*at any time"}},
    {"C7: but not where nobody is stopped",
     "exempt_partition=debug",
     {.partitions = "debug", .stated = "1h", .requeueable = false, .interactive = true},
     {.tag = allocated(kHour)}},
    {"C7: a part of a heterogeneous job may leave it to another part",
     "",
     {.in_het_job = true},
     {.tag = kUnallocated, .notices = "the largest of its parts counts*if no part says one*at any time"}},
    {"C7: or state its own", "", {.stated = "4h", .in_het_job = true}, {.tag = allocated(4 * kHour)}},
    {"C7: a bad value is one in a part too", "", {.stated = "4x", .in_het_job = true}, {.refusal = "=4x"}},
    {"C7: a default is one in a part too",
     "missing_min_runtime=1h",
     {.in_het_job = true},
     {.tag = allocated(kHour), .notices = "taken to be 01:00:00"}},

    {"C8: without GPUs it is outside, and not asked", "", {.gpus = false}, {}},
    {"C8: nor refused for want of a budget", "no_budget=refuse", {.gpus = false, .has_budget = false}, {}},
    {"C8: but told that a minimum does nothing",
     "",
     {.gpus = false, .stated = "2h", .time_limit = kHour},
     {.notices = "--min-runtime has no effect*no GPUs"}},
    {"C8: a system job is outside, whatever it says", "", {.system = true, .stated = "9d"}, {}},
    {"C8: and needs no budget", "no_budget=refuse", {.system = true, .has_budget = false}, {}},
    {"C8: an exempt partition asks for none, and charges",
     "exempt_partition=debug",
     {.partitions = "debug"},
     {.tag = allocated(0)}},
    {"C8: a minimum counts there all the same",
     "exempt_partition=debug",
     {.partitions = "debug", .stated = "1h"},
     {.tag = allocated(kHour)}},
    {"C8: 0 is not free there, since nobody stops it",
     "exempt_partition=debug,unallocated_qos=free",
     {.partitions = "debug", .stated = "0"},
     {.tag = allocated(0)}},
    {"C8: all partitions asked for have to be exempt",
     "exempt_partition=debug/test",
     {.partitions = "debug,gpu,test"},
     {.refusal = "--min-runtime is missing"}},
    {"C8: as they are here", "exempt_partition=debug/test", {.partitions = "test,debug"}, {.tag = allocated(0)}},
    {"C8: an exempt QOS", "exempt_qos=vip", {.partitions = "gpu", .qos = "VIP"}, {.tag = allocated(0)}},
    {"C8: a reservation, or partitions with PreemptMode=OFF", "", {.never_victim = true}, {.tag = allocated(0)}},
    {"C8: 0 is not free there either", "", {.never_victim = true, .stated = "0"}, {.tag = allocated(0)}},
    {"C8: its minimum has bounds as well",
     "exempt_qos=vip",
     {.qos = "vip", .stated = "2h", .time_limit = kHour},
     {.refusal = "02:00:00*01:00:00"}},
};

START_TEST(settle_row) {
    const SettleRow& row = kSettleRows[_i];
    check_answer(row.why, settle_contract(row.request, parameters_of(row.parameters)), row.expected);
}
END_TEST

struct AmendRow {
    const char* why;
    const char* parameters;
    ContractChange change;
    Expected expected;
};

const AmendRow kAmendRows[] = {
    {"C6: a waiting job keeps what it stated",
     "",
     {.job = {.time_limit = kLimit}, .tag = allocated(kHour)},
     {.tag = allocated(kHour)}},
    {"C6: its owner may state another, longer",
     "",
     {.job = {.stated = "2h", .time_limit = kLimit}, .tag = allocated(kHour)},
     {.tag = allocated(2 * kHour)}},
    {"C6: or shorter", "", {.job = {.stated = "1m"}, .tag = allocated(kHour)}, {.tag = allocated(60)}},
    {"C6: or none, which makes it free",
     "unallocated_qos=free",
     {.job = {.stated = "0"}, .tag = allocated(kHour)},
     {.tag = kUnallocated, .qos = true}},
    {"C6: and back", "", {.job = {.stated = "1h"}, .tag = kUnallocated}, {.tag = allocated(kHour)}},
    {"C6: within the maximum",
     "",
     {.job = {.stated = "9h"}, .tag = allocated(kHour)},
     {.refusal = "--min-runtime=9h is longer"}},
    {"C6: an operator too",
     "",
     {.job = {.stated = "9h"}, .tag = allocated(kHour), .by_operator = true},
     {.refusal = "--min-runtime=9h is longer"}},
    {"C6: within the limit",
     "",
     {.job = {.stated = "2h", .time_limit = kHour}, .tag = allocated(kHour)},
     {.refusal = "02:00:00*time limit of 01:00:00"}},
    {"C6: a bad value", "", {.job = {.stated = "2x"}, .tag = allocated(kHour)}, {.refusal = "--min-runtime=2x"}},
    {"C6: an unallocated job stays so when nothing is stated",
     "",
     {.job = {.time_limit = kLimit}, .tag = kUnallocated},
     {.tag = kUnallocated}},
    {"C6: in an exempt partition too",
     "exempt_partition=debug",
     {.job = {.partitions = "debug"}, .tag = kUnallocated},
     {.tag = kUnallocated}},
    {"C4: a limit below the minimum is refused, with the way there",
     "",
     {.job = {.time_limit = kHour}, .tag = allocated(2 * kHour)},
     {.refusal = "01:00:00*shorter*02:00:00: first lower that, with sbudget contract JOB --min-runtime=01:00:00"}},
    {"C4: with a minimum that fits it is none",
     "",
     {.job = {.stated = "1h", .time_limit = kHour}, .tag = allocated(2 * kHour)},
     {.tag = allocated(kHour)}},
    {"C4: an update that has nothing to do with it is not refused, though a partition's default has changed",
     "",
     {.job = {.time_limit = kHour}, .tag = allocated(2 * kHour), .limit_changes = false},
     {.tag = allocated(kHour)}},
    {"C4: time_min cannot be set below it",
     "",
     {.job = {.time_limit = kLimit, .time_min = 60}, .tag = allocated(kHour)},
     {.tag = allocated(kHour), .notices = "--time-min=00:01:00 is raised", .time_min = kHour}},
    {"C1: a maximum that has become shorter cuts",
     "max_min_runtime=1h",
     {.job = {.time_limit = kLimit}, .tag = allocated(2 * kHour)},
     {.tag = allocated(kHour), .notices = "02:00:00*01:00:00*longest"}},
    {"C5: moved to an account without a budget it is free, and told",
     "",
     {.job = {.has_budget = false}, .tag = allocated(kHour)},
     {.tag = kUnallocated, .notices = "no budget"}},
    {"C5: or the move is refused",
     "no_budget=refuse",
     {.job = {.has_budget = false}, .tag = allocated(kHour)},
     {.refusal = "no budget"}},
    {"C5: moved back it stays free until a minimum is stated",
     "",
     {.job = {.has_budget = true}, .tag = kUnallocated},
     {.tag = kUnallocated}},
    {"C8: out of an exempt partition a minimum has to be stated",
     "exempt_partition=debug",
     {.job = {.partitions = "gpu"}, .tag = allocated(0)},
     {.refusal = "--min-runtime is missing*sbudget contract JOB --min-runtime=02:00:00*move"}},
    {"C8: with one it may leave",
     "exempt_partition=debug",
     {.job = {.partitions = "gpu", .stated = "1h"}, .tag = allocated(0)},
     {.tag = allocated(kHour)}},
    {"C8: or with one that was stated there",
     "exempt_partition=debug",
     {.job = {.partitions = "gpu"}, .tag = allocated(kHour)},
     {.tag = allocated(kHour)}},
    {"C8: or with the site's default",
     "exempt_partition=debug,missing_min_runtime=1h",
     {.job = {.partitions = "gpu"}, .tag = allocated(0)},
     {.tag = allocated(kHour), .notices = "01:00:00"}},
    {"C9: one that never was there is not refused for a change of something else",
     "",
     {.job = {.partitions = "gpu"}, .tag = allocated(0), .limit_changes = false},
     {.tag = allocated(8 * kHour)}},
    {"C8: inside it nothing has to be",
     "exempt_partition=debug",
     {.job = {.partitions = "debug"}, .tag = allocated(0)},
     {.tag = allocated(0)}},
    {"C9: a waiting job without a tag gets the default, never a refusal",
     "",
     {.job = {.time_limit = kLimit}},
     {.tag = allocated(kLimit)}},
    {"C9: that of the site", "missing_min_runtime=1h", {.job = {.time_limit = kLimit}}, {.tag = allocated(kHour)}},
    {"C9: without a budget it is free",
     "",
     {.job = {.has_budget = false}},
     {.tag = kUnallocated, .notices = "no budget"}},
    {"C9: nor one that was requeued before anybody asked",
     "",
     {.job = {.time_limit = kLimit}, .tag = allocated(kNotAsked)},
     {.tag = allocated(kLimit)}},
    {"C9: nor is the minimum known of a run of which nobody asked",
     "",
     {.job = {.stated = "1h"}, .tag = allocated(kNotAsked), .pending = false, .by_operator = true},
     {.refusal = "not known yet"}},
    {"C8: without GPUs it is outside", "", {.job = {.gpus = false}, .tag = allocated(kHour)}, {}},
    {"C8: so is a system job", "", {.job = {.system = true, .stated = "x"}, .tag = allocated(kHour)}, {}},

    {"C6: the owner of a run may lower its minimum",
     "",
     {.job = {.stated = "1h", .time_limit = kLimit}, .tag = allocated(2 * kHour), .pending = false},
     {.tag = allocated(kHour)}},
    {"C6: to 0, which does not make it free",
     "unallocated_qos=free",
     {.job = {.stated = "0"}, .tag = allocated(2 * kHour), .pending = false},
     {.tag = allocated(0)}},
    {"C6: and not raise it",
     "",
     {.job = {.stated = "2:00:01"}, .tag = allocated(2 * kHour), .pending = false},
     {.refusal = "02:00:01 would lengthen*02:00:00*operator"}},
    {"C6: to what it is is no change",
     "",
     {.job = {.stated = "2h"}, .tag = allocated(2 * kHour), .pending = false},
     {.tag = allocated(2 * kHour)}},
    {"C6: an operator may",
     "",
     {.job = {.stated = "4h", .time_limit = kLimit}, .tag = allocated(0), .pending = false, .by_operator = true},
     {.tag = allocated(4 * kHour)}},
    {"C6: up to the maximum",
     "",
     {.job = {.stated = "9h"}, .tag = allocated(kHour), .pending = false, .by_operator = true},
     {.refusal = "--min-runtime=9h is longer"}},
    {"C6: and the limit",
     "",
     {.job = {.stated = "5h", .time_limit = kLimit}, .tag = allocated(kHour), .pending = false, .by_operator = true},
     {.refusal = "05:00:00*time limit of 04:00:00"}},
    {"C6: the class of a run is fixed, for operators too",
     "",
     {.job = {.stated = "1h"}, .tag = kUnallocated, .pending = false, .by_operator = true},
     {.refusal = "started without a minimum*pending again"}},
    {"C6: to state that it has none is no change",
     "",
     {.job = {.stated = "0"}, .tag = kUnallocated, .pending = false},
     {.tag = kUnallocated}},
    {"C6: no other field gets round it: an account without a budget",
     "no_budget=refuse",
     {.job = {.has_budget = false, .time_limit = kLimit}, .tag = allocated(kHour), .pending = false},
     {.tag = allocated(kHour)}},
    {"C4: a run's limit cannot be cut below its minimum",
     "",
     {.job = {.time_limit = kHour}, .tag = allocated(2 * kHour), .pending = false},
     {.refusal = "01:00:00*shorter*02:00:00*sbudget contract JOB --min-runtime=01:00:00"}},
    {"C4: an operator's neither",
     "",
     {.job = {.time_limit = kHour}, .tag = allocated(2 * kHour), .pending = false, .by_operator = true},
     {.refusal = "shorter"}},
    {"C4: with the minimum lowered in the same go it can",
     "",
     {.job = {.stated = "1h", .time_limit = kHour}, .tag = allocated(2 * kHour), .pending = false},
     {.tag = allocated(kHour)}},
    {"C9: a run protected for longer than its limit may have other things changed",
     "",
     {.job = {.time_limit = kHour}, .tag = allocated(10 * kHour), .pending = false, .limit_changes = false},
     {.tag = allocated(10 * kHour)}},
    {"C9: a run without a tag gets none here", "", {.job = {.time_limit = kHour}, .pending = false}, {}},
    {"C9: nor a minimum", "", {.job = {.stated = "0"}, .pending = false}, {.refusal = "not known yet"}},
    {"a bad value for a run", "", {.job = {.stated = "x"}, .tag = allocated(9), .pending = false}, {.refusal = "=x"}},
    {"what else is in the tag of a run stays",
     "",
     {.job = {.stated = "0"},
      .tag = RunTag{.run_class = RunClass::kAllocated, .contract = 9, .rate = 8 * kGpu},
      .pending = false},
     {.tag = RunTag{.run_class = RunClass::kAllocated, .contract = 0, .rate = 8 * kGpu}}},
};

START_TEST(amend_row) {
    const AmendRow& row = kAmendRows[_i];
    check_answer(row.why, amend_contract(row.change, parameters_of(row.parameters)), row.expected);
}
END_TEST

struct CombineRow {
    const char* why;
    std::vector<std::optional<RunTag>> parts;
    RunTag expected;
};

const CombineRow kCombineRows[] = {
    {"C7: the largest counts", {allocated(60), allocated(kHour), allocated(600)}, allocated(kHour)},
    {"C7: one with a minimum makes all allocated", {kUnallocated, allocated(4 * kHour)}, allocated(4 * kHour)},
    {"C7: in any order", {allocated(4 * kHour), kUnallocated}, allocated(4 * kHour)},
    {"C7: none has one", {kUnallocated, kUnallocated}, kUnallocated},
    {"C7: parts without GPUs say nothing", {{}, allocated(60), {}}, allocated(60)},
    {"C8: an exempt part makes it allocated", {kUnallocated, allocated(0)}, allocated(0)},
    {"C7: of no parts", {}, kUnallocated},
    {"C7: rates stay with their part",
     {RunTag{.run_class = RunClass::kAllocated, .contract = 5, .rate = kGpu}},
     allocated(5)},
};

START_TEST(combine_row) {
    const CombineRow& row = kCombineRows[_i];
    const RunTag got = combine_terms(row.parts);
    ck_assert_msg(got == row.expected, "%s: %s", row.why, to_string(got).c_str());
}
END_TEST

struct DefaultRow {
    const char* why;
    const char* parameters;
    std::optional<Seconds> time_limit;
    bool exempt;
    RunTag expected;
};

const DefaultRow kDefaultRows[] = {
    {"C9: without a default of the site the longest", "", {}, false, allocated(8 * kHour)},
    {"C9: that it sets", "max_min_runtime=2h", {}, false, allocated(2 * kHour)},
    {"C4: as far as the limit goes", "", kHour, false, allocated(kHour)},
    {"C9: the site's default", "missing_min_runtime=1h", kLimit, false, allocated(kHour)},
    {"C4: as far as the limit goes", "missing_min_runtime=1h", 60, false, allocated(60)},
    {"C9: which may be none", "missing_min_runtime=unallocated", kLimit, false, kUnallocated},
    {"C8: an exempt job needs none", "", kLimit, true, allocated(0)},
};

START_TEST(default_row) {
    const DefaultRow& row = kDefaultRows[_i];
    const RunTag got = default_terms(row.time_limit, row.exempt, parameters_of(row.parameters));
    ck_assert_msg(got == row.expected, "%s: %s", row.why, to_string(got).c_str());
}
END_TEST

struct ExemptRow {
    const char* why;
    const char* partitions;
    const char* qos;
    bool expected;
};

const ExemptRow kExemptRows[] = {
    {"C8: the partition", "debug", "", true},
    {"C8: both of two", "debug,test", "normal", true},
    {"C8: one of two is not enough", "debug,gpu", "normal", false},
    {"C8: nor the other", "gpu,debug", "normal", false},
    {"C8: partitions have upper and lower case in Slurm", "Debug", "", false},
    {"C8: a name that begins so is another", "debug2", "", false},
    {"C8: an empty name is none", "debug,", "", false},
    {"C8: the QOS, of which Slurm ignores the case", "gpu", "Vip", true},
    {"C8: a QOS that begins so is another", "gpu", "vi", false},
    {"C8: neither is known", "", "", false},
    {"C8: the names of a partition and a QOS are two things", "vip", "debug", false},
};

START_TEST(exempt_row) {
    const ExemptRow& row = kExemptRows[_i];
    const Parameters parameters = parameters_of("exempt_partition=debug/test,exempt_qos=vip");
    ck_assert_msg(is_exempt(row.partitions, row.qos, parameters) == row.expected, "%s", row.why);
    ck_assert_msg(!is_exempt(row.partitions, row.qos, Parameters()), "%s: nobody is by default", row.why);
}
END_TEST

struct TokenRow {
    const char* why;
    const char* comment;
    std::optional<const char*> value;
    const char* rest;
};

const TokenRow kTokenRows[] = {
    {"no comment", "", {}, ""},
    {"a comment of others", "ablation 7, min runtime 2h", {}, "ablation 7, min runtime 2h"},
    {"the word alone", "min-runtime=2:00:00", "2:00:00", ""},
    {"at the front", "min-runtime=2:00:00 ablation 7", "2:00:00", "ablation 7"},
    {"at the end", "ablation 7 min-runtime=2:00:00", "2:00:00", "ablation 7"},
    {"in the middle", "ablation min-runtime=0 7", "0", "ablation 7"},
    {"on a line of its own", "one\nmin-runtime=5m\ntwo", "5m", "one\ntwo"},
    {"a part of a word is none", "my-min-runtime=5m x", {}, "my-min-runtime=5m x"},
    {"nor is another word", "min-runtimes=5m", {}, "min-runtimes=5m"},
    {"nor in capitals", "MIN-RUNTIME=5m", {}, "MIN-RUNTIME=5m"},
    {"blanks of others stay", "  a   b  ", {}, "  a   b  "},
    {"without a value it is refused later", "min-runtime= 5m", "", "5m"},
    {"two of them are no time", "min-runtime=1h a min-runtime=2h", "1h,2h", "a"},
    {"any bytes", "\xff min-runtime=\xff\x01", "\xff\x01", "\xff"},
};

START_TEST(token_row) {
    const TokenRow& row = kTokenRows[_i];
    const CommentToken got = take_token(row.comment);
    ck_assert_msg(got.value.has_value() == row.value.has_value(), "%s: found or not", row.why);
    ck_assert_msg(!got.value || *got.value == *row.value, "%s: the value is \"%s\"", row.why, got.value->c_str());
    ck_assert_msg(got.rest == row.rest, "%s: the rest is \"%s\"", row.why, got.rest.c_str());
    ck_assert_msg(!take_token(got.rest).value, "%s: nothing of it is left", row.why);
    if (got.value == "1h,2h")
        ck_assert_msg(settle_contract({.stated = *got.value}, Parameters()).refusal.has_value(), "%s", row.why);
}
END_TEST

// Random jobs and updates. A value of the table now and then, else any number.
class Random {
   public:
    explicit Random(std::uint64_t seed) : random_(seed) {}
    bool chance(int in) { return random_() % static_cast<std::uint64_t>(in) == 0; }
    Seconds seconds() {
        static constexpr Seconds kEdges[] = {0, 1, 59, 60, 61, kHour, 8 * kHour, 8 * kHour + 1, 7 * kDay, 1 << 30};
        return chance(2) ? kEdges[random_() % std::size(kEdges)] : static_cast<Seconds>(random_() % (10 * kHour));
    }
    std::optional<Seconds> maybe_seconds() { return chance(3) ? std::nullopt : std::optional(seconds()); }
    std::optional<RunTag> tag() {
        if (chance(5)) return std::nullopt;
        if (chance(10)) return allocated(kNotAsked);
        return chance(4) ? kUnallocated : allocated(chance(5) ? 0 : seconds());
    }
    Parameters parameters() {
        Parameters p;
        p.max_min_runtime = std::clamp<Seconds>(seconds(), 1, 7 * kDay);
        p.missing_min_runtime = static_cast<Parameters::Missing>(random_() % 3);
        p.missing_time = std::clamp<Seconds>(seconds(), 1, p.max_min_runtime);
        p.no_budget = static_cast<Parameters::NoBudget>(random_() % 2);
        if (chance(2)) p.exempt_partition = {"a"};
        return p;
    }
    // text has to live as long as the request.
    ContractRequest request(std::string& text) {
        ContractRequest r = {.gpus = !chance(10), .system = chance(20)};
        if (!chance(3)) r.has_budget = !chance(3);
        r.partitions = chance(3) ? "a" : "a,b";
        static const char* const kOther[] = {"", "x", "1:00:00", "90", "-5", "8h"};
        text = chance(4) ? kOther[random_() % std::size(kOther)] : std::to_string(seconds()) + "s";
        if (!chance(3)) r.stated = text;
        r.time_limit = maybe_seconds();
        r.time_min = maybe_seconds();
        r.requeueable = !chance(4);
        r.in_het_job = chance(4);
        return r;
    }

   private:
    std::mt19937_64 random_;
};

// What holds of whatever is accepted; longest: of the contract.
bool is_within_bounds(const ContractAnswer& answer, const ContractRequest& job, Seconds longest, bool limited) {
    if (answer.refusal) return !answer.refusal->empty();
    if (!answer.tag) return !answer.time_min && !answer.in_unallocated_qos;
    const Seconds contract = answer.tag->contract;
    bool right = 0 <= contract && contract <= longest;
    right = right && (answer.tag->run_class == RunClass::kAllocated || contract == 0);
    if (limited && job.time_limit) right = right && contract <= *job.time_limit;
    if (answer.time_min) right = right && contract <= *answer.time_min;
    if (answer.time_min && job.time_limit) right = right && *answer.time_min <= *job.time_limit;
    return right;
}

START_TEST(whatever_is_accepted_is_within_bounds) {
    Random random(20261130);
    int accepted = 0;
    for (int i = rounds(100'000); i > 0; --i) {
        const Parameters parameters = random.parameters();
        std::string text;
        ContractChange change = {.job = random.request(text), .tag = random.tag(), .pending = !random.chance(2)};
        change.by_operator = random.chance(3);
        change.limit_changes = !random.chance(3);
        const ContractAnswer settled = settle_contract(change.job, parameters);
        if (!is_within_bounds(settled, change.job, parameters.max_min_runtime, true))
            ck_abort_msg("C1, C4: a submission with --min-runtime=%s", text.c_str());
        const ContractAnswer amended = amend_contract(change, parameters);
        const Seconds before = change.tag ? change.tag->contract : 0;
        const bool may_be_over = !change.pending && !change.limit_changes;
        const Seconds longest =
            change.pending ? parameters.max_min_runtime : std::max(parameters.max_min_runtime, before);
        if (!is_within_bounds(amended, change.job, longest, !may_be_over))
            ck_abort_msg("C4, C6: an update with --min-runtime=%s", text.c_str());
        if (!change.pending && !amended.refusal && amended.tag && amended.tag->run_class != change.tag->run_class)
            ck_abort_msg("C6: the class of a run has changed");
        if (!change.pending && !amended.refusal && amended.tag && !change.by_operator && amended.tag->contract > before)
            ck_abort_msg("C6: an owner has lengthened the minimum of a run");
        const RunTag by_default = default_terms(change.job.time_limit, random.chance(2), parameters);
        if (!is_within_bounds({.tag = by_default}, change.job, parameters.max_min_runtime, true))
            ck_abort_msg("C9: a default");
        accepted += settled.refusal ? 0 : 1;
    }
    ck_assert_msg(accepted > rounds(100'000) / 5, "not all are refused");
}
END_TEST

Suite* contract_suite() {
    Suite* suite = suite_create("contract");
    TCase* tcase = tcase_create("contract");
    tcase_add_loop_test(tcase, settle_row, 0, std::ssize(kSettleRows));
    tcase_add_loop_test(tcase, amend_row, 0, std::ssize(kAmendRows));
    tcase_add_loop_test(tcase, combine_row, 0, std::ssize(kCombineRows));
    tcase_add_loop_test(tcase, default_row, 0, std::ssize(kDefaultRows));
    tcase_add_loop_test(tcase, exempt_row, 0, std::ssize(kExemptRows));
    tcase_add_loop_test(tcase, token_row, 0, std::ssize(kTokenRows));
    tcase_add_test(tcase, whatever_is_accepted_is_within_bounds);
    suite_add_tcase(suite, tcase);
    return suite;
}

}  // namespace

int main() {
    return run_suite(contract_suite());
}
