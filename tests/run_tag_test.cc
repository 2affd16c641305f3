// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of common/run_tag: what is written and what is read, rates exactly, and
// comments that are cut or garbled anywhere. Each row says why.
#include "common/run_tag.h"

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/check_main.h"

namespace {

using namespace budget;

using Reason = PreemptedFor::Reason;
constexpr RunClass kAllocated = RunClass::kAllocated;
constexpr RunClass kUnallocated = RunClass::kUnallocated;
constexpr Seconds kLongest = std::numeric_limits<std::uint32_t>::max();
constexpr Rate kHighest = std::numeric_limits<Rate>::max();

struct TextRow {
    const char* why;
    RunTag tag;
    const char* text;
};

const TextRow kTextRows[] = {
    {"U10: class and contract", {kAllocated, 7200}, "[budget class=allocated contract=7200]"},
    {"U10: a contract of 0 is written", {kAllocated, 0}, "[budget class=allocated contract=0]"},
    {"C9: nobody asked for one", {kAllocated, kNotAsked}, "[budget class=allocated contract=none]"},
    {"the longest contract", {kAllocated, kLongest}, "[budget class=allocated contract=4294967295]"},
    {"C3: an unallocated run has none", {kUnallocated, 0}, "[budget class=unallocated]"},
    {"U1: whole GPUs", {kAllocated, 60, 8 * kGpu}, "[budget class=allocated contract=60 gpus=8]"},
    {"U1: a part is an exact fraction", {kAllocated, 60, 2880}, "[budget class=allocated contract=60 gpus=4/7]"},
    {"U1: more than one, in parts", {kAllocated, 60, 12600}, "[budget class=allocated contract=60 gpus=5/2]"},
    {"U1: the smallest weight", {kAllocated, 60, 1}, "[budget class=allocated contract=60 gpus=1/5040]"},
    {"no weight", {kAllocated, 60, 0}, "[budget class=allocated contract=60 gpus=0]"},
    {"of an unallocated run too", {kUnallocated, 0, kGpu}, "[budget class=unallocated gpus=1]"},
    {"P2: why an unallocated run was stopped",
     {kUnallocated, 0, {}, PreemptedFor{9, Reason::kUnallocated, "physics", 0, 0, 0}},
     "[budget class=unallocated preempted_for=9 reason=unallocated account=physics over=0]"},
    {"P3: by the better claim, with both ratios",
     {kAllocated, 7200, {}, PreemptedFor{4294967295, Reason::kClaim, "c", 410, 1930, 310}},
     "[budget class=allocated contract=7200 preempted_for=4294967295 reason=claim account=c ratios=0.410/1.930 "
     "over=310]"},
    {"P4: by the higher stated priority, behind a rate",
     {kAllocated, 60, kGpu, PreemptedFor{9, Reason::kPriority, "c", 0, 0, kLongest}},
     "[budget class=allocated contract=60 gpus=1 preempted_for=9 reason=priority account=c over=4294967295]"},
    {"P3: by an account that is not to be told",
     {kAllocated, 60, {}, PreemptedFor{9, Reason::kClaim, "", 0, 999'999'999'999, 1}},
     "[budget class=allocated contract=60 preempted_for=9 reason=claim ratios=0.000/999999999.999 over=1]"},
    {"an account of other letters and signs",
     {kAllocated, 60, {}, PreemptedFor{9, Reason::kPriority, "a=b/\xc3\xa4,'\"{}", 0, 0, 1}},
     "[budget class=allocated contract=60 preempted_for=9 reason=priority account=a=b/\xc3\xa4,'\"{} over=1]"},
    {"the highest rate",
     {kAllocated, 60, kHighest},
     "[budget class=allocated contract=60 gpus=1317624576693539401/720]"},
};

START_TEST(text_row) {
    const TextRow& row = kTextRows[_i];
    const std::string got = to_string(row.tag);
    ck_assert_msg(got == row.text, "%s: got %s", row.why, got.c_str());
    ck_assert_msg(read_tag(got) == row.tag, "%s: %s does not come back", row.why, row.text);
    ck_assert_msg(behind_tag(got).empty(), "%s: something stands behind it", row.why);
}
END_TEST

START_TEST(beyond_range) {
    ck_assert_msg(to_string({kAllocated, -2}) == "[budget class=allocated contract=0]", "a negative contract is 0");
    ck_assert_msg(to_string({kAllocated, kLongest + 1}) == "[budget class=allocated contract=4294967295]",
                  "a contract that is too long is the longest");
    ck_assert_msg(to_string({kUnallocated, 60}) == "[budget class=unallocated]", "C3: no contract is written");
    ck_assert_msg(to_string({kAllocated, 0, -1}) == "[budget class=allocated contract=0 gpus=0]",
                  "a negative rate is none");
    const RunTag extreme{kUnallocated, 0, {}, PreemptedFor{1, Reason::kClaim, "c", -1, Seconds{1} << 60, -1}};
    ck_assert_msg(to_string(extreme) ==
                      "[budget class=unallocated preempted_for=1 reason=claim account=c "
                      "ratios=0.000/999999999.999 over=0]",
                  "ratios and times beyond what can be told are held at the ends");
}
END_TEST

START_TEST(an_account_that_would_break_the_tag) {
    for (const char* account : {"a]b", "a[b", "a b", "a\tb", "a\nb", "a\x7f", "]", " "}) {
        const RunTag tag{kAllocated, 5, {}, PreemptedFor{9, Reason::kPriority, account, 0, 0, 1}};
        RunTag without = tag;
        without.preempted->account.clear();
        const std::string comment = put_tag(tag, "text");
        ck_assert_msg(read_tag(comment) == without, "\"%s\" is left out, and nothing else: %s", account,
                      comment.c_str());
        ck_assert_msg(behind_tag(comment) == "text", "\"%s\" does not end the tag: %s", account, comment.c_str());
    }
}
END_TEST

struct ReadRow {
    const char* why;
    const char* comment;
    std::optional<RunTag> tag;
    const char* behind;
};

const ReadRow kReadRows[] = {
    {"no comment", "", {}, ""},
    {"a comment of others", "hello [budget class=unallocated]", {}, "hello [budget class=unallocated]"},
    {"text behind", "[budget class=unallocated] hello", RunTag{kUnallocated, 0}, "hello"},
    {"one blank separates, the others are text", "[budget class=unallocated]  hello ", RunTag{kUnallocated, 0},
     " hello "},
    {"no blank separates", "[budget class=unallocated]hello", RunTag{kUnallocated, 0}, "hello"},
    {"text behind with brackets", "[budget class=unallocated] [x] ]", RunTag{kUnallocated, 0}, "[x] ]"},
    {"text behind on lines", "[budget class=unallocated]\nhello\n", RunTag{kUnallocated, 0}, "\nhello\n"},
    {"keys in another order", "[budget contract=5 gpus=1/2 class=allocated]", RunTag{kAllocated, 5, 2520}, ""},
    {"several blanks", "[budget   class=allocated  contract=5 ]", RunTag{kAllocated, 5}, ""},
    {"a key of a later version", "[budget class=allocated until=x/y contract=5 a=]", RunTag{kAllocated, 5}, ""},
    {"a fraction that is not reduced", "[budget class=unallocated gpus=8/14]", RunTag{kUnallocated, 0, 2880}, ""},
    {"leading zeros", "[budget class=allocated contract=007]", RunTag{kAllocated, 7}, ""},

    {"P3: a reason in another order",
     "[budget over=7 ratios=0.001/2.000 class=allocated account=c reason=claim contract=5 preempted_for=9]",
     RunTag{kAllocated, 5, {}, PreemptedFor{9, Reason::kClaim, "c", 1, 2000, 7}}, ""},
    {"a reason that is not known is none, and the tag stands",
     "[budget class=unallocated preempted_for=9 reason=x over=1]", RunTag{kUnallocated, 0}, ""},
    {"so is one without its time", "[budget class=unallocated preempted_for=9 reason=priority]",
     RunTag{kUnallocated, 0}, ""},
    {"a job id of more than 32 bits", "[budget class=unallocated preempted_for=4294967296 reason=priority over=1]",
     RunTag{kUnallocated, 0}, ""},
    {"no job", "[budget class=unallocated reason=priority over=1 account=c]", RunTag{kUnallocated, 0}, ""},
    {"P3: a claim without ratios", "[budget class=unallocated preempted_for=9 reason=claim over=1]",
     RunTag{kUnallocated, 0}, ""},
    {"P3: with one ratio", "[budget class=unallocated preempted_for=9 reason=claim ratios=0.100 over=1]",
     RunTag{kUnallocated, 0}, ""},
    {"P3: with ratios in other forms",
     "[budget class=unallocated preempted_for=9 reason=claim ratios=0.1/0.100 over=1]", RunTag{kUnallocated, 0}, ""},
    {"P3: with negative ones", "[budget class=unallocated preempted_for=9 reason=claim ratios=-0.100/0.100 over=1]",
     RunTag{kUnallocated, 0}, ""},
    {"unreadable: says nothing", "[budget] x", {}, "x"},
    {"unreadable: no class", "[budget contract=5] x", {}, "x"},
    {"unreadable: an unknown class", "[budget class=free contract=5] x", {}, "x"},
    {"unreadable: no class at all", "[budget class= contract=5] x", {}, "x"},
    {"unreadable: capitals", "[budget class=Allocated contract=5] x", {}, "x"},
    {"C9: an allocated run without contract is not one of 0", "[budget class=allocated] x", {}, "x"},
    {"unreadable: an unallocated run with one", "[budget class=unallocated contract=5] x", {}, "x"},
    {"unreadable: a class twice", "[budget class=unallocated class=unallocated] x", {}, "x"},
    {"unreadable: a contract twice", "[budget class=allocated contract=5 contract=6] x", {}, "x"},
    {"unreadable: a rate twice", "[budget class=unallocated gpus=1 gpus=1] x", {}, "x"},
    {"unreadable: a word alone", "[budget class=unallocated gpus] x", {}, "x"},
    {"unreadable: a contract of no digits", "[budget class=allocated contract=] x", {}, "x"},
    {"unreadable: a sign", "[budget class=allocated contract=+5] x", {}, "x"},
    {"unreadable: a negative contract", "[budget class=allocated contract=-5] x", {}, "x"},
    {"unreadable: a unit", "[budget class=allocated contract=5s] x", {}, "x"},
    {"unreadable: a contract too long", "[budget class=allocated contract=4294967296] x", {}, "x"},
    {"unreadable: beyond 64 bits", "[budget class=allocated contract=18446744073709551621] x", {}, "x"},
    {"unreadable: no whole number of 1/5040 GPU", "[budget class=unallocated gpus=1/11] x", {}, "x"},
    {"unreadable: by nothing", "[budget class=unallocated gpus=1/0] x", {}, "x"},
    {"unreadable: half a fraction", "[budget class=unallocated gpus=1/] x", {}, "x"},
    {"unreadable: the other half", "[budget class=unallocated gpus=/2] x", {}, "x"},
    {"unreadable: two slashes", "[budget class=unallocated gpus=1/2/3] x", {}, "x"},
    {"unreadable: a negative rate", "[budget class=unallocated gpus=-1] x", {}, "x"},
    {"unreadable: a decimal", "[budget class=unallocated gpus=0.5] x", {}, "x"},
    {"unreadable: a rate of more than 63 bits", "[budget class=unallocated gpus=9223372036854775808/5040] x", {}, "x"},
    {"unreadable: tabs", "[budget class=unallocated\tgpus=1] x", {}, "x"},

    {"another word is text of others", "[budgets class=unallocated] x", {}, "[budgets class=unallocated] x"},
    {"so is a blank before", " [budget class=unallocated]", {}, " [budget class=unallocated]"},
    {"so is another case", "[Budget class=unallocated]", {}, "[Budget class=unallocated]"},
    {"no bracket closes it", "[budget class=unallocated", {}, "[budget class=unallocated"},
    {"one of another opens before", "[budget class=unallocated [x]", {}, "[budget class=unallocated [x]"},
    {"nor does one on the next line", "[budget class=unallocated\n]", {}, "[budget class=unallocated\n]"},
};

START_TEST(read_row) {
    const ReadRow& row = kReadRows[_i];
    const std::optional<RunTag> got = read_tag(row.comment);
    ck_assert_msg(got == row.tag, "%s: \"%s\" is taken for %s", row.why, row.comment,
                  got ? to_string(*got).c_str() : "none");
    const std::string behind(behind_tag(row.comment));
    ck_assert_msg(behind == row.behind, "%s: behind it is \"%s\"", row.why, behind.c_str());

    const RunTag tag{kAllocated, 4711, 2880};
    const std::string comment = put_tag(tag, row.comment);
    ck_assert_msg(read_tag(comment) == tag, "%s: the new tag is not read from \"%s\"", row.why, comment.c_str());
    ck_assert_msg(behind_tag(comment) == behind, "%s: the text behind becomes \"%s\"", row.why, comment.c_str());
    ck_assert_msg(put_tag(tag, comment) == comment, "%s: once more changes \"%s\"", row.why, comment.c_str());
}
END_TEST

START_TEST(put) {
    const RunTag tag{kUnallocated, 0};
    ck_assert_msg(put_tag(tag, "") == "[budget class=unallocated]", "alone, without a blank");
    ck_assert_msg(put_tag(tag, "a\tb\n c ") == "[budget class=unallocated] a\tb\n c ", "before text of others");
    ck_assert_msg(put_tag(tag, "[budget class=allocated contract=5] a") == "[budget class=unallocated] a",
                  "in place of another");
    ck_assert_msg(put_tag(tag, "[budget nonsense] a") == "[budget class=unallocated] a", "of an unreadable one too");
    const std::string bytes("\xff\0\x01[]", 5);
    ck_assert_msg(put_tag(tag, bytes) == "[budget class=unallocated] " + bytes, "any bytes");
}
END_TEST

// Not ck_assert_msg: that notes down each time it holds, which takes long for many values.
void comes_back(const RunTag& tag) {
    const std::string text = to_string(tag);
    if (read_tag(text) != tag) ck_abort_msg("%s does not come back", text.c_str());
    if (tag.preempted) return;
    const bool whole = tag.rate.value_or(0) % kGpu == 0;
    if ((text.find('/') == std::string::npos) != whole)
        ck_abort_msg("a fraction where it is not whole: %s", text.c_str());
}

void comes_back(Rate rate) {
    comes_back(RunTag{kAllocated, 1, rate});
}

START_TEST(every_rate_comes_back) {
    for (Rate rate = 0; rate <= 3 * kGpu; ++rate) comes_back(rate);
    for (int bit = 0; bit < 63; ++bit)
        for (const Rate near : {-1, 0, 1}) comes_back((Rate{1} << bit) + near);
    for (Rate back = 0; back <= kGpu; ++back) comes_back(kHighest - back);
    std::mt19937_64 random(20240229);
    for (int i = rounds(30'000); i > 0; --i) comes_back(static_cast<Rate>((random() >> 1) >> random() % 63));
}
END_TEST

START_TEST(every_reason_comes_back) {
    std::mt19937_64 random(20261130);
    for (int i = rounds(30'000); i > 0; --i) {
        PreemptedFor told{static_cast<std::uint32_t>(random()), static_cast<Reason>(random() % 3)};
        for (std::uint64_t k = random() % 4; k > 0; --k) {
            const auto byte = static_cast<char>(random());
            if (static_cast<unsigned char>(byte) > ' ' && byte != '[' && byte != ']' && byte != '\x7f')
                told.account += byte;
        }
        told.over = static_cast<Seconds>((random() >> 32) >> random() % 32);
        if (told.reason == Reason::kClaim) {
            told.preemptor_ratio_millis = static_cast<std::int64_t>(random() % 1'000'000'000'000);
            told.victim_ratio_millis = static_cast<std::int64_t>(random() % 10'000);
        }
        comes_back(RunTag{kAllocated, 1, {}, told});
    }
}
END_TEST

START_TEST(every_contract_comes_back) {
    std::mt19937_64 random(20240301);
    for (int i = rounds(30'000); i > 0; --i) {
        comes_back(RunTag{kAllocated, static_cast<Seconds>((random() >> 32) >> random() % 32)});
    }
}
END_TEST

// What holds of any comment, be it garbage.
void holds(const std::string& comment) {
    const std::optional<RunTag> tag = read_tag(comment);
    const std::string_view behind = behind_tag(comment);
    bool right = comment.ends_with(behind);
    if (tag) {
        right = right && comment.starts_with("[budget ") && behind.size() < comment.size();
        right = right && tag->contract >= kNotAsked && tag->contract <= kLongest && tag->rate.value_or(0) >= 0;
        right = right && read_tag(put_tag(*tag, comment)) == tag;
    }
    if (!right) ck_abort_msg("wrong of \"%s\"", comment.c_str());
}

const char* const kSamples[] = {
    "[budget class=allocated contract=7200] text of others",
    "[budget class=unallocated]",
    "[budget class=allocated contract=0 gpus=8] [x]\nz",
    "[budget class=allocated contract=4294967295 gpus=9223372036854775807/5040]",
    "[budget class=unallocated gpus=4/7 later=1]",
    "[budget class=allocated contract=72 preempted_for=9 reason=claim account=c ratios=0.410/0.930 over=310] x",
};

START_TEST(cut_anywhere) {
    for (const std::string sample : kSamples) {
        const std::size_t bracket = sample.find(']');
        for (std::size_t size = 0; size <= sample.size(); ++size) {
            const std::string cut = sample.substr(0, size);
            holds(cut);
            const bool whole = size > bracket;
            ck_assert_msg(read_tag(cut) == (whole ? read_tag(sample) : std::nullopt), "cut to \"%s\"", cut.c_str());
            holds(sample.substr(size));
        }
    }
}
END_TEST

START_TEST(any_byte_another) {
    int unreadable = 0;
    for (const std::string sample : kSamples) {
        for (std::size_t at = 0; at < sample.size(); ++at) {
            for (int byte = 0; byte < 256; ++byte) {
                std::string changed = sample;
                changed[at] = static_cast<char>(byte);
                holds(changed);
                if (!read_tag(changed)) ++unreadable;
            }
        }
    }
    ck_assert_msg(unreadable > 10'000, "most are noticed, not %d alone", unreadable);
}
END_TEST

Suite* run_tag_suite() {
    Suite* suite = suite_create("run_tag");
    TCase* tcase = tcase_create("run_tag");
    tcase_add_loop_test(tcase, text_row, 0, std::ssize(kTextRows));
    tcase_add_test(tcase, beyond_range);
    tcase_add_test(tcase, an_account_that_would_break_the_tag);
    tcase_add_loop_test(tcase, read_row, 0, std::ssize(kReadRows));
    tcase_add_test(tcase, put);
    tcase_add_test(tcase, every_rate_comes_back);
    tcase_add_test(tcase, every_reason_comes_back);
    tcase_add_test(tcase, every_contract_comes_back);
    tcase_add_test(tcase, cut_anywhere);
    tcase_add_test(tcase, any_byte_another);
    suite_add_tcase(suite, tcase);
    return suite;
}

}  // namespace

int main() {
    return run_suite(run_tag_suite());
}
