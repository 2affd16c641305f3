// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of common/accounting_rows: rows as sacct prints them, and every way in
// which they go wrong. Each row of a table says why.
#include "common/accounting_rows.h"

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/check_main.h"

namespace {

using namespace budget;

std::string instant(const std::optional<Seconds>& at) {
    return at ? std::to_string(*at) : "never";
}

// "7 acc/user/part 5 100-200 suspended 10 COMPLETED gpu:a100=2+gpu=2 {comment}"
std::string to_string(const AccountingRow& row) {
    std::string text = std::to_string(row.job_id) + " " + std::string(row.account) + "/" + std::string(row.user) + "/" +
                       std::string(row.partition) + " " + std::to_string(row.assoc) + " " + instant(row.start) + "-" +
                       instant(row.end);
    if (row.suspended != 0) text += " suspended " + std::to_string(row.suspended);
    if (row.uid) text += " of " + std::to_string(*row.uid);
    if (row.cancelled_by) text += " by " + std::to_string(*row.cancelled_by);
    if (row.behind_resize) text += " resized";
    text += " " + std::string(row.state) + " ";
    for (std::size_t i = 0; i < row.gpus.size(); ++i) {
        text += (i > 0 ? "+" : "") + std::string(row.gpus[i].name);
        if (!row.gpus[i].type.empty()) text += ":" + std::string(row.gpus[i].type);
        text += "=" + std::to_string(row.gpus[i].count);
    }
    return text + " {" + std::string(row.admin_comment) + "}";
}

// Those that are not 0.
std::string to_string(const RowCounts& counts) {
    const std::pair<const char*, std::size_t> named[] = {
        {"rows", counts.rows},
        {"steps", counts.steps},
        {"unreadable", counts.unreadable},
        {"not_started", counts.not_started},
        {"without_gpus", counts.without_gpus},
        {"no_end", counts.no_end},
        {"untagged", counts.untagged},
    };
    std::string text;
    for (const auto& [name, count] : named)
        if (count > 0) text += (text.empty() ? "" : " ") + std::string(name) + "=" + std::to_string(count);
    return text;
}

struct Read {
    std::string visited;  // a line each
    std::string counts;   // or the error
    bool ok = false;
};

Read read(std::string_view text, char delimiter) {
    Read result;
    const Result<RowCounts> counts = read_accounting_rows(
        text, delimiter, [&](const AccountingRow& row) { result.visited += to_string(row) + "\n"; });
    result.ok = counts.ok();
    result.counts = counts.ok() ? to_string(counts.value()) : counts.error();
    return result;
}

// Ours but for UID and Submit, for which there are rows of their own.
std::string plain_columns() {
    std::string columns(kAccountingColumns);
    return columns.erase(columns.find("UID,Submit,"), 11);
}
const std::string kOurHeader = plain_columns() + "\n";
constexpr const char* kTag = "[budget class=allocated contract=60]";

struct OurRow {
    const char* why;
    const char* lines;  // below our header; $ is a tag
    const char* visited;
    const char* counts;
};

const OurRow kOurRows[] = {
    {"a run that has ended", "7|acc|ann|part|5|100|200|00:00:00|COMPLETED|billing=8,cpu=8,gres/gpu=2,mem=4G,node=1|$\n",
     "7 acc/ann/part 5 100-200 COMPLETED gpu=2 {$}\n", "rows=1"},
    {"two, in the order of the text",
     "9|a|u|p|5|100|200|00:00:00|COMPLETED|gres/gpu=1|$\n7|b|v|q|6|90|91|00:00:00|FAILED|gres/gpu=3|$ x\n",
     "9 a/u/p 5 100-200 COMPLETED gpu=1 {$}\n7 b/v/q 6 90-91 FAILED gpu=3 {$ x}\n", "rows=2"},
    {"US-05: two runs under one id, without duplicates removed",
     "7|a|u|p|5|1|2|00:00:00|REQUEUED|gres/gpu=1|$\n7|a|u|p|5|3|4|00:00:00|PREEMPTED|gres/gpu=1|$\n",
     "7 a/u/p 5 1-2 REQUEUED gpu=1 {$}\n7 a/u/p 5 3-4 PREEMPTED gpu=1 {$}\n", "rows=2"},
    {"no row at all", "", "", ""},
    {"a run of no seconds", "7|a|u|p|5|100|100|00:00:00|FAILED|gres/gpu=1|$\n", "7 a/u/p 5 100-100 FAILED gpu=1 {$}\n",
     "rows=1"},
    {"U10: no tag", "7|a|u|p|5|100|200|00:00:00|COMPLETED|gres/gpu=1|\n", "7 a/u/p 5 100-200 COMPLETED gpu=1 {}\n",
     "rows=1 untagged=1"},
    {"U10: the tag is looked for at the front", "7|a|u|p|5|100|200|00:00:00|COMPLETED|gres/gpu=1|x $\n",
     "7 a/u/p 5 100-200 COMPLETED gpu=1 {x $}\n", "rows=1 untagged=1"},
    {"no association", "7|a|u|p||100|200|00:00:00|COMPLETED|gres/gpu=1|$\n", "7 a/u/p 0 100-200 COMPLETED gpu=1 {$}\n",
     "rows=1"},
    {"no account, user, partition (TP-04)", "7||||5|100|200|00:00:00|COMPLETED|gres/gpu=1|$\n",
     "7 // 5 100-200 COMPLETED gpu=1 {$}\n", "rows=1"},
    {"bytes beyond ASCII (TP-09)", "7|a\xc3\xa0\xff|u|p|5|100|200|00:00:00|COMPLETED|gres/gpu=1|$\n",
     "7 a\xc3\xa0\xff/u/p 5 100-200 COMPLETED gpu=1 {$}\n", "rows=1"},

    // Instants (TP-04, TP-14).
    {"TP-04: it runs", "7|a|u|p|5|100|Unknown|00:00:00|RUNNING|gres/gpu=1|$\n",
     "7 a/u/p 5 100-never RUNNING gpu=1 {$}\n", "rows=1 no_end=1"},
    {"TP-04: End None, empty and 0 are no end",
     "7|a|u|p|5|100|None||RUNNING|gres/gpu=1|$\n8|a|u|p|5|100|||RUNNING|gres/gpu=1|\n9|a|u|p|5|100|0||RUNNING|gres/"
     "gpu=1|$\n",
     "7 a/u/p 5 100-never RUNNING gpu=1 {$}\n8 a/u/p 5 100-never RUNNING gpu=1 {}\n9 a/u/p 5 100-never RUNNING gpu=1 "
     "{$}\n",
     "rows=3 no_end=3 untagged=1"},
    {"TP-04: pending", "7|a|u|p|5|Unknown|Unknown|00:00:00|PENDING||\n", "", "rows=1 not_started=1"},
    {"TP-04: cancelled before it started", "7|a|u|p|5|None|200|00:00:00|CANCELLED by 0||\n", "",
     "rows=1 not_started=1"},
    {"TP-04: Start empty and 0", "7|a|u|p|5||200||CANCELLED||\n7|a|u|p|5|0|200||CANCELLED|gres/gpu=1|$\n", "",
     "rows=2 not_started=2"},
    {"TP-14: an end before the start", "7|a|u|p|5|100|99|00:00:00|COMPLETED|gres/gpu=1|$\n", "", "rows=1 unreadable=1"},
    {"a negative instant", "7|a|u|p|5|-100|99|00:00:00|COMPLETED|gres/gpu=1|$\n", "", "rows=1 unreadable=1"},
    {"a date that is not in seconds", "7|a|u|p|5|2024-02-29T00:00:00|99||COMPLETED|gres/gpu=1|$\n", "",
     "rows=1 unreadable=1"},
    {"an end that is no number", "7|a|u|p|5|100|2oo|00:00:00|COMPLETED|gres/gpu=1|$\n", "", "rows=1 unreadable=1"},
    {"the last instant", "7|a|u|p|5|100|1099511627775|00:00:00|COMPLETED|gres/gpu=1|$\n",
     "7 a/u/p 5 100-1099511627775 COMPLETED gpu=1 {$}\n", "rows=1"},
    {"beyond the last instant", "7|a|u|p|5|100|1099511627776|00:00:00|COMPLETED|gres/gpu=1|$\n", "",
     "rows=1 unreadable=1"},
    {"beyond 64 bits", "7|a|u|p|5|18446744073709551716||00:00:00|COMPLETED|gres/gpu=1|$\n", "", "rows=1 unreadable=1"},
    {"a blank", "7|a|u|p|5| 100|200|00:00:00|COMPLETED|gres/gpu=1|$\n", "", "rows=1 unreadable=1"},

    // Suspended (TP-03).
    {"U6: suspended", "7|a|u|p|5|100|200|00:00:30|COMPLETED|gres/gpu=1|$\n",
     "7 a/u/p 5 100-200 suspended 30 COMPLETED gpu=1 {$}\n", "rows=1"},
    {"TP-03: for days", "7|a|u|p|5|100|200|1-02:24:13|COMPLETED|gres/gpu=1|$\n",
     "7 a/u/p 5 100-200 suspended 95053 COMPLETED gpu=1 {$}\n", "rows=1"},
    {"TP-03: more hours than a day has", "7|a|u|p|5|100|200|24:28:49|COMPLETED|gres/gpu=1|$\n",
     "7 a/u/p 5 100-200 suspended 88129 COMPLETED gpu=1 {$}\n", "rows=1"},
    {"TP-03: for many days", "7|a|u|p|5|100|200|8371-10:29:20|COMPLETED|gres/gpu=1|$\n",
     "7 a/u/p 5 100-200 suspended 723292160 COMPLETED gpu=1 {$}\n", "rows=1"},
    {"a plain number is seconds", "7|a|u|p|5|100|200|45|COMPLETED|gres/gpu=1|$\n",
     "7 a/u/p 5 100-200 suspended 45 COMPLETED gpu=1 {$}\n", "rows=1"},
    {"nothing is none", "7|a|u|p|5|100|200||COMPLETED|gres/gpu=1|$\n", "7 a/u/p 5 100-200 COMPLETED gpu=1 {$}\n",
     "rows=1"},
    {"TP-03: 1-2-3", "7|a|u|p|5|100|200|1-2-3|COMPLETED|gres/gpu=1|$\n", "", "rows=1 unreadable=1"},
    {"TP-03: INVALID", "7|a|u|p|5|100|200|INVALID|COMPLETED|gres/gpu=1|$\n", "", "rows=1 unreadable=1"},
    {"days and hours could be minutes and seconds", "7|a|u|p|5|100|200|1-02|COMPLETED|gres/gpu=1|$\n", "",
     "rows=1 unreadable=1"},
    {"two fields", "7|a|u|p|5|100|200|02:30|COMPLETED|gres/gpu=1|$\n", "", "rows=1 unreadable=1"},
    {"a negative time", "7|a|u|p|5|100|200|-00:00:30|COMPLETED|gres/gpu=1|$\n", "", "rows=1 unreadable=1"},
    {"a negative number", "7|a|u|p|5|100|200|-30|COMPLETED|gres/gpu=1|$\n", "", "rows=1 unreadable=1"},
    {"a suffix", "7|a|u|p|5|100|200|30s|COMPLETED|gres/gpu=1|$\n", "", "rows=1 unreadable=1"},

    // Steps and ids (TP-05, TP-08).
    {"TP-05: steps do not stretch their job",
     "7|a|u|p|5|100|200|00:00:00|COMPLETED|gres/gpu=1|$\n7.batch|a||||100|202|00:00:00|COMPLETED|gres/gpu=1|\n"
     "7.extern|a||||100|202|00:00:00|COMPLETED|gres/gpu=1|\n7.0|a||||150|9999|00:00:00|COMPLETED|gres/gpu=1|\n",
     "7 a/u/p 5 100-200 COMPLETED gpu=1 {$}\n", "rows=4 steps=3"},
    {"TP-05: a step alone", "7.0|a||||150|9999|00:00:00|COMPLETED|gres/gpu=1|\n", "", "rows=1 steps=1"},
    {"the highest id", "4294967295|a|u|p|4294967295|100|200||COMPLETED|gres/gpu=1|$\n",
     "4294967295 a/u/p 4294967295 100-200 COMPLETED gpu=1 {$}\n", "rows=1"},
    {"an id beyond 32 bits", "4294967296|a|u|p|5|100|200||COMPLETED|gres/gpu=1|$\n", "", "rows=1 unreadable=1"},
    {"a negative id", "-7|a|u|p|5|100|200||COMPLETED|gres/gpu=1|$\n", "", "rows=1 unreadable=1"},
    {"no id", "|a|u|p|5|100|200||COMPLETED|gres/gpu=1|$\n", "", "rows=1 unreadable=1"},
    {"id 0", "0|a|u|p|5|100|200||COMPLETED|gres/gpu=1|$\n", "", "rows=1 unreadable=1"},
    {"a name for an id", "job7|a|u|p|5|100|200||COMPLETED|gres/gpu=1|$\n", "", "rows=1 unreadable=1"},
    {"an association beyond 32 bits", "7|a|u|p|4294967296|100|200||COMPLETED|gres/gpu=1|$\n", "",
     "rows=1 unreadable=1"},
    {"a negative association", "7|a|u|p|-1|100|200||COMPLETED|gres/gpu=1|$\n", "", "rows=1 unreadable=1"},

    // States (TP-07).
    {"TP-07: the first word is the state", "7|a|u|p|5|100|200||CANCELLED by 1234|gres/gpu=1|$\n",
     "7 a/u/p 5 100-200 by 1234 CANCELLED gpu=1 {$}\n", "rows=1"},
    {"a part up to a resize", "7|a|u|p|5|100|200||RESIZING|gres/gpu=4|$\n7|a|u|p|5|200|300||COMPLETED|gres/gpu=2|$\n",
     "7 a/u/p 5 100-200 RESIZING gpu=4 {$}\n7 a/u/p 5 200-300 COMPLETED gpu=2 {$}\n", "rows=2"},
    {"a state of a later Slurm", "7|a|u|p|5|100|200||EXPEDITED|gres/gpu=4|$\n",
     "7 a/u/p 5 100-200 EXPEDITED gpu=4 {$}\n", "rows=1"},

    // AllocTRES.
    {"typed and untyped counts of the same GPUs",
     "7|a|u|p|5|1|2||COMPLETED|billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2|$\n",
     "7 a/u/p 5 1-2 COMPLETED gpu:a100=2+gpu=2 {$}\n", "rows=1"},
    {"MIG slices", "7|a|u|p|5|1|2||COMPLETED|gres/gpu:nvidia_a100_3g.40gb=1,gres/gpu=1|$\n",
     "7 a/u/p 5 1-2 COMPLETED gpu:nvidia_a100_3g.40gb=1+gpu=1 {$}\n", "rows=1"},
    {"shards and mps units", "7|a|u|p|5|1|2||COMPLETED|gres/shard=4,gres/mps:a100=50|$\n",
     "7 a/u/p 5 1-2 COMPLETED shard=4+mps:a100=50 {$}\n", "rows=1"},
    {"no GPUs", "7|a|u|p|5|1|2||COMPLETED|billing=8,cpu=8,mem=64G,node=1|\n", "", "rows=1 without_gpus=1"},
    {"nothing allocated", "7|a|u|p|5|1|2||COMPLETED||$\n", "", "rows=1 without_gpus=1"},
    {"other gres are no GPUs", "7|a|u|p|5|1|2||COMPLETED|gres/gpumem=1,gres/nic:gpu=2,license/gpu=1,gres/GPU=2|$\n", "",
     "rows=1 without_gpus=1"},
    {"a count of 0", "7|a|u|p|5|1|2||COMPLETED|gres/gpu=0,gres/gpu:a100=0|$\n", "", "rows=1 without_gpus=1"},
    {"no GPUs and no end", "7|a|u|p|5|1|Unknown||RUNNING|cpu=8|$\n", "", "rows=1 without_gpus=1"},
    {"U1: none in AllocTRES, but a weight in the tag",
     "7|a|u|p|5|1|2||COMPLETED|cpu=8|[budget class=unallocated gpus=8]\n",
     "7 a/u/p 5 1-2 COMPLETED  {[budget class=unallocated gpus=8]}\n", "rows=1"},
    {"a weight of 0 in the tag", "7|a|u|p|5|1|2||COMPLETED|cpu=8|[budget class=unallocated gpus=0]\n", "",
     "rows=1 without_gpus=1"},
    {"a count with a suffix", "7|a|u|p|5|1|2||COMPLETED|gres/gpu=1.50K|$\n8|a|u|p|5|1|2||COMPLETED|gres/gpu=2M|$\n", "",
     "rows=2 unreadable=2"},
    {"a suffix of memory does not matter", "7|a|u|p|5|1|2||COMPLETED|mem=1.50T,gres/gpu=1|$\n",
     "7 a/u/p 5 1-2 COMPLETED gpu=1 {$}\n", "rows=1"},
    {"a negative count", "7|a|u|p|5|1|2||COMPLETED|gres/gpu=-2|$\n", "", "rows=1 unreadable=1"},
    {"no count", "7|a|u|p|5|1|2||COMPLETED|gres/gpu=|$\n7|a|u|p|5|1|2||COMPLETED|cpu=1,gres/gpu|$\n", "",
     "rows=2 unreadable=2"},
    {"a list that is cut off", "7|a|u|p|5|1|2||COMPLETED|cpu=1,gres/g|$\n", "", "rows=1 unreadable=1"},
    {"a count beyond 64 bits", "7|a|u|p|5|1|2||COMPLETED|gres/gpu=18446744073709551616|$\n", "", "rows=1 unreadable=1"},

    // The comment, and rows that are cut off (TP-01, TP-02, TP-10).
    {"TP-01: the delimiter in the comment", "7|a|u|p|5|1|2||COMPLETED|gres/gpu=1|$ a|b||c|\n",
     "7 a/u/p 5 1-2 COMPLETED gpu=1 {$ a|b||c|}\n", "rows=1"},
    {"TP-02: line ends in the comment",
     "7|a|u|p|5|1|2||COMPLETED|gres/gpu=1|$ first\n\n third|x\n42\n8|a|u|p|5|1|2||COMPLETED|gres/gpu=1|$\n",
     "7 a/u/p 5 1-2 COMPLETED gpu=1 {$ first\n\n third|x\n42}\n8 a/u/p 5 1-2 COMPLETED gpu=1 {$}\n", "rows=2"},
    {"TP-02: as many delimiters as a row are one, which makes no sense",
     "7|a|u|p|5|1|2||COMPLETED|gres/gpu=1|$ a\nb||||||||||\nc\n8|a|u|p|5|1|2||COMPLETED|gres/gpu=1|$\n",
     "7 a/u/p 5 1-2 COMPLETED gpu=1 {$ a}\n8 a/u/p 5 1-2 COMPLETED gpu=1 {$}\n", "rows=3 unreadable=1"},
    {"line ends in the comment of a row that is passed over",
     "7|a|u|p|5|1|2||COMPLETED|cpu=1|$ a\nb\n8|a|u|p|5|1|2||COMPLETED|gres/gpu=1|$\n",
     "8 a/u/p 5 1-2 COMPLETED gpu=1 {$}\n", "rows=2 without_gpus=1"},
    {"TP-10: the last row is cut off", "7|a|u|p|5|1|2||COMPLETED|gres/gpu=1|$\n8|a|u|p|5|1|",
     "7 a/u/p 5 1-2 COMPLETED gpu=1 {$}\n", "rows=2 unreadable=1"},
    {"TP-10: cut off in its first column", "7|a|u|p|5|1|2||COMPLETED|gres/gpu=1|$\n8",
     "7 a/u/p 5 1-2 COMPLETED gpu=1 {$}\n", "rows=2 unreadable=1"},
    {"TP-10: a row that is cut off in the middle is not part of a comment",
     "7|a|u|p|5|1|2||COMPLETED|gres/gpu=1|$\n8|a|u|p|5|1|\n9|a|u|p|5|1|2||COMPLETED|gres/gpu=1|$\n",
     "7 a/u/p 5 1-2 COMPLETED gpu=1 {$}\n9 a/u/p 5 1-2 COMPLETED gpu=1 {$}\n", "rows=3 unreadable=1"},
    {"a line that begins with a number and a blank is part of one", "7|a|u|p|5|1|2||COMPLETED|gres/gpu=1|$\n8 of 9|b\n",
     "7 a/u/p 5 1-2 COMPLETED gpu=1 {$\n8 of 9|b}\n", "rows=1"},
    {"no comment goes on behind a row that is cut off", "8|a|u|p|5|1|\nx\n7|a|u|p|5|1|2||COMPLETED|gres/gpu=1|$\n",
     "7 a/u/p 5 1-2 COMPLETED gpu=1 {$}\n", "rows=3 unreadable=2"},
    {"a line of others before the first row", "error: x\n7|a|u|p|5|1|2||COMPLETED|gres/gpu=1|$\n",
     "7 a/u/p 5 1-2 COMPLETED gpu=1 {$}\n", "rows=2 unreadable=1"},
    {"the last row without a line end", "7|a|u|p|5|1|2||COMPLETED|gres/gpu=1|$", "7 a/u/p 5 1-2 COMPLETED gpu=1 {$}\n",
     "rows=1"},
    {"empty lines before the first row", "\n\n7|a|u|p|5|1|2||COMPLETED|gres/gpu=1|$\n",
     "7 a/u/p 5 1-2 COMPLETED gpu=1 {$}\n", "rows=1"},
};

// The text with the tag for each $, and another delimiter.
std::string with_tag(std::string_view text, char delimiter = '|') {
    std::string result;
    for (const char c : text) {
        if (c == '$')
            result += kTag;
        else
            result += c == '|' ? delimiter : c;
    }
    return result;
}

START_TEST(our_row) {
    const OurRow& row = kOurRows[_i];
    for (const char delimiter : {'|', '\x1f', ';'}) {
        std::string header = kOurHeader;
        for (char& c : header)
            if (c == ',') c = delimiter;
        const Read got = read(header + with_tag(row.lines, delimiter), delimiter);
        ck_assert_msg(got.ok, "%s: %s", row.why, got.counts.c_str());
        ck_assert_msg(got.visited == with_tag(row.visited, delimiter), "%s: visited are\n%s", row.why,
                      got.visited.c_str());
        ck_assert_msg(got.counts == row.counts, "%s: counts are %s", row.why, got.counts.c_str());
    }
}
END_TEST

struct ColumnRow {
    const char* why;
    const char* text;  // with its header; $ is a tag
    const char* visited;
    const char* counts;
};

const ColumnRow kColumnRows[] = {
    {"U2: a part behind a resize has the run's start, and begins when it was submitted",
     "JobIDRaw|Submit|Start|End|State|AllocTRES\n7|90|100|150|RESIZING|gres/gpu=4\n7|150|100|180|RESIZING|gres/gpu=2\n"
     "7|180|100|200|COMPLETED|gres/gpu=1\n",
     "7 // 0 100-150 RESIZING gpu=4 {}\n7 // 0 150-180 resized RESIZING gpu=2 {}\n7 // 0 180-200 resized COMPLETED "
     "gpu=1 {}\n",
     "rows=3 untagged=3"},
    {"U2: it may be still on, or as long as nothing",
     "JobIDRaw|Submit|Start|End|State|AllocTRES\n7|150|100|Unknown|RUNNING|gres/gpu=1\n8|200|100|200|COMPLETED|gres/"
     "gpu=1\n",
     "7 // 0 150-never resized RUNNING gpu=1 {}\n8 // 0 200-200 resized COMPLETED gpu=1 {}\n",
     "rows=2 no_end=1 untagged=2"},
    {"submitted after it ended, at no time, or never: its start stands",
     "JobIDRaw|Submit|Start|End|State|AllocTRES\n7|201|100|200|COMPLETED|gres/gpu=1\n8|x|100|200|COMPLETED|gres/gpu=1\n"
     "9|Unknown|100|200|COMPLETED|gres/gpu=1\n",
     "7 // 0 100-200 COMPLETED gpu=1 {}\n8 // 0 100-200 COMPLETED gpu=1 {}\n9 // 0 100-200 COMPLETED gpu=1 {}\n",
     "rows=3 untagged=3"},
    {"U7: whose job it was, and who cancelled it",
     "JobIDRaw|UID|Start|End|State|AllocTRES\n7|1001|100|200|CANCELLED by 0|gres/gpu=1\n"
     "8|1001|100|200|COMPLETED|gres/gpu=1\n",
     "7 // 0 100-200 of 1001 by 0 CANCELLED gpu=1 {}\n8 // 0 100-200 of 1001 COMPLETED gpu=1 {}\n",
     "rows=2 untagged=2"},
    {"U7: a uid that is none is not told, and the row counts",
     "JobIDRaw|UID|Start|End|State|AllocTRES\n7|x|100|200|CANCELLED by nobody|gres/gpu=1\n"
     "8||100|200|CANCELLED|gres/gpu=1\n9|4294967296|100|200|CANCELLED by |gres/gpu=1\n",
     "7 // 0 100-200 CANCELLED gpu=1 {}\n8 // 0 100-200 CANCELLED gpu=1 {}\n9 // 0 100-200 CANCELLED gpu=1 {}\n",
     "rows=3 untagged=3"},
    {"submitted and never started", "JobIDRaw|Submit|Start|End|State|AllocTRES\n7|100|Unknown|Unknown|PENDING|\n", "",
     "rows=1 not_started=1"},
    {"columns in another order, the comment among them",
     "AdminComment|AllocTRES|State|Suspended|End|Start|AssocID|Partition|User|Account|JobIDRaw\n"
     "$|gres/gpu=1|COMPLETED|00:00:05|200|100|5|p|u|a|7\n",
     "7 a/u/p 5 100-200 suspended 5 COMPLETED gpu=1 {$}\n", "rows=1"},
    {"then a delimiter in the comment shifts the others",
     "AdminComment|JobIDRaw|Start|End|State|AllocTRES\n$ a|b|7|100|200|COMPLETED|gres/gpu=1\n", "",
     "rows=1 unreadable=1"},
    {"and a line end cuts it off",
     "JobIDRaw|AdminComment|Start|End|State|AllocTRES\n7|$ a\nb|100|200|COMPLETED|gres/gpu=1\n", "",
     "rows=2 unreadable=2"},
    {"TP-13: columns that nobody knows",
     "Nonsense|JobIDRaw|Start||End|State|Planned|AllocTRES\nx|7|100|y|200|COMPLETED|z|gres/gpu=1\n",
     "7 // 0 100-200 COMPLETED gpu=1 {}\n", "rows=1 untagged=1"},
    {"TP-01: a delimiter at the end of each line (sacct -p)",
     "JobIDRaw|Start|End|State|AllocTRES|AdminComment|\n7|100|200|COMPLETED|gres/gpu=1|$|\n8|100|200|COMPLETED|gres/"
     "gpu=1|$\n",
     "7 // 0 100-200 COMPLETED gpu=1 {$}\n", "rows=2 unreadable=1"},
    {"one field too many without a comment", "JobIDRaw|Start|End|State|AllocTRES\n7|100|200|COMPLETED|gres/gpu=1|x\n",
     "", "rows=1 unreadable=1"},
    {"one field too few without a comment",
     "JobIDRaw|Start|End|State|AllocTRES\n7|100|200|COMPLETED|gres/gpu=1\n7|100|200|COMPLETED\nx\n",
     "7 // 0 100-200 COMPLETED gpu=1 {}\n", "rows=3 unreadable=2 untagged=1"},
    {"TP-08: tasks and parts have the id of JobIDRaw",
     "JobID|JobIDRaw|Start|End|State|AllocTRES\n12_3|15|100|200|COMPLETED|gres/gpu=1\n12_[4-9%2]|12|Unknown|Unknown|"
     "PENDING|\n20+1|21|100|200|COMPLETED|gres/gpu=16\n20+1.0|21.0|100|200|COMPLETED|gres/gpu=16\n",
     "15 // 0 100-200 COMPLETED gpu=1 {}\n21 // 0 100-200 COMPLETED gpu=16 {}\n",
     "rows=4 steps=1 not_started=1 untagged=2"},
    {"TP-05: a step by JobID", "JobIDRaw|JobID|Start|End|State|AllocTRES\n7|7.batch|1|2|COMPLETED|gres/gpu=1\n", "",
     "rows=1 steps=1"},
    {"TP-08: without JobIDRaw a plain id is the job's",
     "JobID|Start|End|State|AllocTRES\n7|100|200|COMPLETED|gres/gpu=1\n7.batch|100|200|COMPLETED|gres/gpu=1\n",
     "7 // 0 100-200 COMPLETED gpu=1 {}\n", "rows=2 steps=1 untagged=1"},
    {"TP-08: but nobody knows the id of a task or part",
     "JobID|Start|End|State|AllocTRES\n12_3|100|200|COMPLETED|gres/gpu=1\n12+1|100|200|COMPLETED|gres/gpu=1\n", "",
     "rows=2 unreadable=2"},
    {"a row that is cut off, by JobID, is not part of a comment",
     "JobID|Start|End|State|AllocTRES|AdminComment\n7|1|2|COMPLETED|gres/gpu=1|$\n12_3|1|2\n12_[1-3]|1|2\nx|1|2\n",
     "7 // 0 1-2 COMPLETED gpu=1 {$}\n", "rows=4 unreadable=3"},
    {"a header alone, without a line end", "JobIDRaw|Start|End|State|AllocTRES", "", ""},
};

START_TEST(column_row) {
    const ColumnRow& row = kColumnRows[_i];
    const Read got = read(with_tag(row.text), '|');
    ck_assert_msg(got.ok, "%s: %s", row.why, got.counts.c_str());
    ck_assert_msg(got.visited == with_tag(row.visited), "%s: visited are\n%s", row.why, got.visited.c_str());
    ck_assert_msg(got.counts == row.counts, "%s: counts are %s", row.why, got.counts.c_str());
}
END_TEST

struct ErrorRow {
    const char* why;
    const char* text;
    const char* error;  // its beginning
};

const ErrorRow kErrorRows[] = {
    {"TP-10: nothing", "", "sacct's output is empty"},
    {"TP-13: no id", "Start|End|State|AllocTRES\n", "no column JobIDRaw in"},
    {"TP-13: no start", "JobIDRaw|End|State|AllocTRES\n", "no column Start in"},
    {"TP-13: no end", "JobIDRaw|Start|State|AllocTRES\n", "no column End in"},
    {"TP-13: no state", "JobIDRaw|Start|End|AllocTRES\n", "no column State in"},
    {"TP-13: AllocGRES of old", "JobIDRaw|Start|End|State|AllocGRES\n", "no column AllocTRES in"},
    {"another delimiter", "JobIDRaw;Start;End;State;AllocTRES\n", "no column JobIDRaw in the header \"JobIDRaw;Start"},
    {"no header", "7|100|200|COMPLETED|gres/gpu=1\n", "no column JobIDRaw in the header \"7|100"},
    {"an empty header", "\n7|100|200|COMPLETED|gres/gpu=1\n", "no column JobIDRaw in the header \"\""},
};

START_TEST(error_row) {
    const ErrorRow& row = kErrorRows[_i];
    const Read got = read(row.text, '|');
    ck_assert_msg(!got.ok && got.visited.empty(), "%s: is taken", row.why);
    ck_assert_msg(got.counts.starts_with(row.error), "%s: %s", row.why, got.counts.c_str());
    ck_assert_msg(got.counts.find('\n') == std::string::npos, "%s: several lines", row.why);
}
END_TEST

// A text that is cut at any byte: what is visited is what was before, but for the comment of the last.
START_TEST(cut_anywhere) {
    std::string header = kOurHeader;
    for (char& c : header)
        if (c == ',') c = '|';
    const std::string text = header + with_tag(kOurRows[_i].lines);
    std::vector<std::string> whole;
    (void)read_accounting_rows(text, '|', [&](const AccountingRow& row) { whole.push_back(to_string(row)); });
    std::size_t rows_before = 0;
    for (std::size_t size = 0; size <= text.size(); ++size) {
        std::size_t rows = 0;
        const auto counts = read_accounting_rows(text.substr(0, size), '|', [&](const AccountingRow& row) {
            const std::string known = to_string(row);
            ck_assert_msg(rows < whole.size() && whole[rows].starts_with(known.substr(0, known.find('{'))),
                          "cut at %zu: %s", size, known.c_str());
            ++rows;
        });
        ck_assert_msg(counts.ok() || size < header.size(), "cut at %zu: %s", size,
                      counts.ok() ? "" : counts.error().c_str());
        ck_assert_msg(rows == rows_before || rows == rows_before + 1, "cut at %zu: %zu rows", size, rows);
        rows_before = rows;
    }
    ck_assert_msg(rows_before == whole.size(), "the whole text has them all");
}
END_TEST

START_TEST(garbage) {
    std::mt19937_64 random(20240229);
    constexpr std::string_view kAlphabet = "||||||0123456789.,=:-\n\n gres/gpu=Unknown\0\xff[budget]";
    std::string header = kOurHeader;
    for (char& c : header)
        if (c == ',') c = '|';
    for (int i = rounds(5'000); i > 0; --i) {
        std::string text = header;
        for (std::size_t size = random() % 300; size > 0; --size) text += kAlphabet[random() % kAlphabet.size()];
        std::size_t visited = 0;
        const auto counts = read_accounting_rows(text, '|', [&](const AccountingRow& row) {
            ++visited;
            ck_assert(row.job_id > 0 && row.start && *row.start > 0 && (!row.end || *row.end >= *row.start));
        });
        ck_assert(counts.ok());
        const RowCounts& c = counts.value();
        ck_assert_msg(c.rows == c.steps + c.unreadable + c.not_started + c.without_gpus + visited,
                      "each row is visited or counted: %s", to_string(c).c_str());
    }
}
END_TEST

struct RateRow {
    const char* why;
    std::vector<TresCount> gpus;
    std::optional<RunTag> tag;
    Rate rate;
};

const RateRow kRateRows[] = {
    {"U1: GPUs", {{"gpu", "", 3}}, {}, 3 * kGpu},
    {"U1: a type with a weight", {{"gpu", "h100", 2}}, {}, 5 * kGpu},
    {"U1: typed and untyped counts of the same GPUs are one", {{"gpu", "h100", 2}, {"gpu", "", 2}}, {}, 5 * kGpu},
    {"in any order", {{"gpu", "", 2}, {"gpu", "h100", 2}}, {}, 5 * kGpu},
    {"US-13: a MIG slice is its part", {{"gpu", "nvidia_a100_3g.40gb", 1}, {"gpu", "", 1}}, {}, 3 * kGpu / 7},
    {"US-13: shards", {{"shard", "", 4}}, {}, kGpu / 2},
    {"US-13: mps units", {{"mps", "", 50}}, {}, kGpu / 2},
    {"the same kinds, another count", {{"gpu", "", 7}, {"gpu", "h100", 7}}, {}, 35 * kGpu / 2},
    {"nothing", {}, {}, 0},
    {"saturates", {{"gpu", "", std::numeric_limits<std::uint64_t>::max()}}, {}, std::numeric_limits<Rate>::max()},
    {"U1: the tag's weight goes before", {{"gpu", "", 3}}, RunTag{RunClass::kAllocated, 0, 8 * kGpu}, 8 * kGpu},
    {"without one in it the GPUs count", {{"gpu", "", 3}}, RunTag{RunClass::kAllocated, 60, {}}, 3 * kGpu},
};

START_TEST(rate_rows) {
    const Parameters parameters = Parameters::parse("gpu_weight=h100:2.5/default:1").value();
    RowRates rates(parameters, {.shards_per_gpu = 8, .mps_per_gpu = 100});
    for (int round = 0; round < 2; ++round) {  // what is remembered is the same again
        for (const RateRow& row : kRateRows) {
            AccountingRow accounting;
            accounting.gpus = row.gpus;
            const Rate got = rates.rate(accounting, row.tag);
            ck_assert_msg(got == row.rate, "%s: %lld", row.why, static_cast<long long>(got));
        }
    }
}
END_TEST

struct RefundRow {
    const char* why;
    const char* state;
    std::optional<Seconds> end;
    Seconds suspended;
    Seconds contract;
    bool refunded;
};

const RefundRow kRefundRows[] = {
    {"U7: a node failed inside the contract", "NODE_FAIL", 1599, 0, 600, true},
    {"U7: as the contract ended", "NODE_FAIL", 1600, 0, 600, false},
    {"U7: after it", "NODE_FAIL", 1601, 0, 600, false},
    {"U7: a node did not boot", "BOOT_FAIL", 1000, 0, 600, true},
    {"U7: nor launch", "LAUNCH_FAILED", 1000, 0, 600, true},
    {"U6: suspended time does not count towards the contract", "NODE_FAIL", 1699, 100, 600, true},
    {"U6: to the second", "NODE_FAIL", 1700, 100, 600, false},
    {"no contract, no refund", "NODE_FAIL", 1000, 0, 0, false},
    {"the job failed by itself", "FAILED", 1100, 0, 600, false},
    {"U7: a requeue is charged", "REQUEUED", 1100, 0, 600, false},
    {"P3: so is a preemption", "PREEMPTED", 1100, 0, 600, false},
    {"cancelled", "CANCELLED", 1100, 0, 600, false},
    {"it has not ended", "NODE_FAIL", {}, 0, 600, false},
    {"no overflow", "NODE_FAIL", 1100, 0, std::numeric_limits<Seconds>::max(), true},
};

struct EndRow {
    const char* why;
    AccountingRow row;
    bool refunded;  // within a contract of 600 seconds
    bool by_itself;
};

AccountingRow ended(std::string_view state, std::optional<std::uint32_t> uid = {},
                    std::optional<std::uint32_t> cancelled_by = {}) {
    AccountingRow row;
    row.start = 1000;
    row.end = 1100;
    row.state = state;
    row.uid = uid;
    row.cancelled_by = cancelled_by;
    return row;
}

AccountingRow after(AccountingRow row, std::optional<Seconds> end) {
    row.end = end;
    return row;
}

AccountingRow behind_resize(AccountingRow row) {
    row.behind_resize = true;
    return row;
}

const EndRow kEndRows[] = {
    {"U7: somebody else cancelled it", ended("CANCELLED", 1001, 0), true, false},
    {"U7: after the contract nothing is refunded", after(ended("CANCELLED", 1001, 0), 1600), false, false},
    {"U11: its own user did", ended("CANCELLED", 1001, 1001), false, true},
    {"U7: root's own job", ended("CANCELLED", 0, 0), false, true},
    {"U7: nobody knows who did", ended("CANCELLED", 1001), false, false},
    {"U7: nobody knows whose it was", ended("CANCELLED", {}, 0), false, false},
    {"U11: its script ended", ended("COMPLETED", 1001), false, true},
    {"U11: with an error", ended("FAILED"), false, true},
    {"U11: at its time limit", ended("TIMEOUT"), false, true},
    {"U11: at its deadline", ended("DEADLINE"), false, true},
    {"U11: out of memory", ended("OUT_OF_MEMORY"), false, true},
    {"U7: a node failed", ended("NODE_FAIL"), true, false},
    {"P3: it was preempted", ended("PREEMPTED"), false, false},
    {"U7: a requeue is charged for what it ran, no more", ended("REQUEUED"), false, false},
    {"U2: it goes on behind a resize", ended("RESIZING"), false, false},
    {"U11: the contract of a resized run began earlier", behind_resize(ended("COMPLETED")), false, false},
    {"it has not ended", after(ended("RUNNING"), {}), false, false},
};

START_TEST(end_row) {
    const EndRow& row = kEndRows[_i];
    ck_assert_msg(is_refunded(row.row, 600) == row.refunded, "%s: refunded", row.why);
    ck_assert_msg(is_by_itself(row.row) == row.by_itself, "%s: by itself", row.why);
}
END_TEST

START_TEST(refund_row) {
    const RefundRow& row = kRefundRows[_i];
    AccountingRow accounting;
    accounting.start = 1000;
    accounting.end = row.end;
    accounting.suspended = row.suspended;
    accounting.state = row.state;
    ck_assert_msg(is_refunded(accounting, row.contract) == row.refunded, "%s", row.why);
    accounting.start = {};
    ck_assert_msg(!is_refunded(accounting, row.contract), "%s: never started", row.why);
}
END_TEST

Suite* accounting_rows_suite() {
    Suite* suite = suite_create("accounting_rows");
    TCase* tcase = tcase_create("accounting_rows");
    tcase_add_loop_test(tcase, our_row, 0, std::ssize(kOurRows));
    tcase_add_loop_test(tcase, column_row, 0, std::ssize(kColumnRows));
    tcase_add_loop_test(tcase, error_row, 0, std::ssize(kErrorRows));
    tcase_add_loop_test(tcase, cut_anywhere, 0, std::ssize(kOurRows));
    tcase_add_test(tcase, garbage);
    tcase_add_test(tcase, rate_rows);
    tcase_add_loop_test(tcase, end_row, 0, std::ssize(kEndRows));
    tcase_add_loop_test(tcase, refund_row, 0, std::ssize(kRefundRows));
    suite_add_tcase(suite, tcase);
    return suite;
}

}  // namespace

int main() {
    return run_suite(accounting_rows_suite());
}
