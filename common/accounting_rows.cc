// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reading what sacct prints; see accounting_rows.h. One pass over the text, which
// is never copied. A row is held back until the next one has begun: lines
// between may belong to its comment.
#include "accounting_rows.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "run_terms.h"
#include "time_text.h"

namespace budget {

const std::string_view kAccountingColumns =
    "JobIDRaw,Account,User,Partition,AssocID,UID,Submit,Start,End,Suspended,State,AllocTRES,AdminComment";

namespace {

enum Column : std::size_t {
    kJobIdRaw,
    kJobId,
    kAccount,
    kUser,
    kPartition,
    kAssocId,
    kUid,
    kSubmit,
    kStart,
    kEnd,
    kSuspended,
    kState,
    kAllocTres,
    kAdminComment,
    kUnknown,  // a column that nobody asked for
};
constexpr std::array<std::string_view, kUnknown> kNames = {
    "JobIDRaw", "JobID", "Account", "User",      "Partition", "AssocID",   "UID",
    "Submit",   "Start", "End",     "Suspended", "State",     "AllocTRES", "AdminComment",
};
using Fields = std::array<std::string_view, kUnknown + 1>;  // by column; those that are missing stay empty

// The part up to the separator, which is taken off the front of rest with it.
std::string_view take(std::string_view& rest, char separator) {
    const std::string_view part = rest.substr(0, rest.find(separator));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    return part;
}

// Digits alone, at most the highest.
std::optional<std::uint64_t> read_number(std::string_view text, std::uint64_t highest) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number > highest) return std::nullopt;
    return number;
}

// The readers of a field: false if it cannot be read.

bool read_id(std::string_view text, std::uint32_t& id) {
    const std::optional<std::uint64_t> number = read_number(text, std::numeric_limits<std::uint32_t>::max());
    id = static_cast<std::uint32_t>(number.value_or(0));
    return number.has_value();
}

// Nothing where Slurm knows of no such instant.
bool read_instant(std::string_view text, std::optional<Seconds>& instant) {
    instant = std::nullopt;
    if (text.empty() || text == "Unknown" || text == "None" || text == "0") return true;
    if (const std::optional<std::uint64_t> number = read_number(text, kMaxInstant))
        instant = static_cast<Seconds>(*number);
    return instant.has_value();
}

// [days-]hours:minutes:seconds, or seconds.
bool read_suspended(std::string_view text, Seconds& suspended) {
    suspended = 0;
    if (text.empty() || text == "00:00:00") return true;
    if (std::count(text.begin(), text.end(), ':') == 2) {
        const Result<Seconds> duration = parse_duration(text);
        if (duration) suspended = duration.value();
        return duration.ok();
    }
    const std::optional<std::uint64_t> seconds = read_number(text, kLongestDuration);
    suspended = static_cast<Seconds>(seconds.value_or(0));
    return seconds.has_value();
}

// "cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G": the GPU-like ones. A count with a suffix (1K) is
// rounded, so it is none.
bool read_gpus(std::string_view text, std::vector<TresCount>& gpus) {
    constexpr std::string_view kFamily = "gres/";
    gpus.clear();
    while (!text.empty()) {
        std::string_view count = take(text, ',');
        const bool cut_off = count.find('=') == std::string_view::npos;
        std::string_view type = take(count, '=');
        if (cut_off) return false;
        if (!type.starts_with(kFamily)) continue;
        type.remove_prefix(kFamily.size());
        const std::string_view name = take(type, ':');
        if (name != "gpu" && name != "shard" && name != "mps") continue;
        const std::optional<std::uint64_t> number = read_number(count, std::numeric_limits<std::uint64_t>::max());
        if (!number) return false;
        if (*number > 0) gpus.push_back({.name = name, .type = type, .count = *number});
    }
    return true;
}

// The part of a run behind a resize has the run's start: it begins when it was submitted, which is the
// instant of the resize. No other row is submitted later than it starts.
void move_to_resize(std::string_view submit, AccountingRow& row) {
    std::optional<Seconds> submitted;
    if (!row.start || !read_instant(submit, submitted) || !submitted) return;
    if (*submitted <= *row.start || (row.end && *submitted > *row.end)) return;
    row.start = submitted;
    row.behind_resize = true;
}

constexpr std::string_view kCancelledBy = "CANCELLED by ";

// Nothing where it is no uid: what hangs on it is not done then, and the row counts all the same.
std::optional<std::uint32_t> read_uid(std::string_view text) {
    std::uint32_t uid = 0;
    return read_id(text, uid) ? std::optional(uid) : std::nullopt;
}

// False if the row makes no sense.
bool read_row(const Fields& fields, std::string_view job_id, AccountingRow& row) {
    if (!read_id(job_id, row.job_id) || row.job_id == 0) return false;
    row.assoc = 0;
    row.behind_resize = false;
    if (!fields[kAssocId].empty() && !read_id(fields[kAssocId], row.assoc)) return false;
    if (!read_instant(fields[kStart], row.start) || !read_instant(fields[kEnd], row.end)) return false;
    if (row.start && row.end && *row.end < *row.start) return false;
    move_to_resize(fields[kSubmit], row);
    if (!read_suspended(fields[kSuspended], row.suspended)) return false;
    if (!read_gpus(fields[kAllocTres], row.gpus)) return false;
    row.account = fields[kAccount];
    row.user = fields[kUser];
    row.partition = fields[kPartition];
    row.uid = read_uid(fields[kUid]);
    row.state = fields[kState].substr(0, fields[kState].find(' '));
    row.cancelled_by =
        fields[kState].starts_with(kCancelledBy) ? read_uid(fields[kState].substr(kCancelledBy.size())) : std::nullopt;
    row.admin_comment = fields[kAdminComment];
    return true;
}

using Visit = std::function<void(const AccountingRow&)>;

class RowReader {
   public:
    RowReader(char delimiter, const Visit& visit) : delimiter_(delimiter), visit_(visit) {}

    // Which column stands where. An error names the first that is missing.
    std::optional<Error> read_header(std::string_view line);

    // A line behind the header; ended: by a line end.
    void read_line(std::string_view line, bool ended);

    // Behind the last line.
    RowCounts finish();

   private:
    std::size_t split(std::string_view line, Fields& fields) const;
    bool is_of_comment(const Fields& fields, std::size_t count) const;
    void take_up();

    char delimiter_;
    const Visit& visit_;
    std::vector<Column> columns_;  // in the order of the text
    Column id_ = kJobIdRaw;
    bool comment_is_last_ = false;
    bool holds_ = false;  // a row is held back:
    Fields held_;
    AccountingRow row_;
    RowCounts counts_;
};

std::optional<Error> RowReader::read_header(std::string_view line) {
    std::string_view rest = line;
    while (!rest.empty()) {
        const auto* const name = std::find(kNames.begin(), kNames.end(), take(rest, delimiter_));
        columns_.push_back(static_cast<Column>(name - kNames.begin()));
    }
    if (line.ends_with(delimiter_)) columns_.push_back(kUnknown);  // sacct -p
    comment_is_last_ = !columns_.empty() && columns_.back() == kAdminComment;
    const auto has = [this](Column column) {
        return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
    };
    if (!has(kJobIdRaw) && has(kJobId)) id_ = kJobId;
    for (const Column column : {id_, kStart, kEnd, kState, kAllocTres}) {
        if (has(column)) continue;
        return Error{"no column " + std::string(kNames[column]) + " in the header \"" + printable(line) +
                     "\" of sacct's output; ask for it by sacct -P --format=" + std::string(kAccountingColumns)};
    }
    return std::nullopt;
}

// The number of fields; one too many counts, but is not kept.
std::size_t RowReader::split(std::string_view line, Fields& fields) const {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        const bool takes_all = comment_is_last_ && i + 1 == columns_.size();
        const std::size_t end = takes_all ? std::string_view::npos : line.find(delimiter_);
        fields[columns_[i]] = line.substr(0, end);
        if (end == std::string_view::npos) return i + 1;
        line.remove_prefix(end + 1);
    }
    return columns_.size() + 1;
}

// A line with too few fields: does it go on with the comment of the row that is held back?
bool RowReader::is_of_comment(const Fields& fields, std::size_t count) const {
    if (!holds_ || !comment_is_last_) return false;
    if (count < 2 || columns_.front() != id_) return true;
    const std::string_view id = fields[id_];
    return id.empty() || id.front() < '0' || id.front() > '9' || id.find(' ') != std::string_view::npos;
}

void RowReader::read_line(std::string_view line, bool ended) {
    Fields fields;
    const std::size_t count = split(line, fields);
    if (count < columns_.size() && ended && is_of_comment(fields, count)) {
        std::string_view& comment = held_[kAdminComment];
        comment = {comment.data(), static_cast<std::size_t>(line.data() + line.size() - comment.data())};
        return;
    }
    if (line.empty()) return;
    take_up();
    ++counts_.rows;
    holds_ = count == columns_.size();
    if (holds_)
        held_ = fields;
    else
        ++counts_.unreadable;
}

// The row that is held back, now that its comment is known as a whole.
void RowReader::take_up() {
    if (!holds_) return;
    holds_ = false;
    const auto is_step = [](std::string_view id) { return id.find('.') != std::string_view::npos; };
    if (is_step(held_[kJobIdRaw]) || is_step(held_[kJobId])) {
        ++counts_.steps;
        return;
    }
    if (!read_row(held_, held_[id_], row_)) {
        ++counts_.unreadable;
        return;
    }
    if (!row_.start) {
        ++counts_.not_started;
        return;
    }
    row_.tag = read_tag(row_.admin_comment);
    if (row_.gpus.empty() && (!row_.tag || row_.tag->rate.value_or(0) == 0)) {
        ++counts_.without_gpus;
        return;
    }
    if (!row_.end) ++counts_.no_end;
    if (!row_.tag) ++counts_.untagged;
    visit_(row_);
}

RowCounts RowReader::finish() {
    take_up();
    return counts_;
}

}  // namespace

Result<RowCounts> read_accounting_rows(std::string_view text, char delimiter,
                                       const std::function<void(const AccountingRow&)>& visit) {
    if (text.empty()) return Error{"sacct's output is empty, without even a header; run sacct -P without --noheader"};
    RowReader reader(delimiter, visit);
    if (const std::optional<Error> error = reader.read_header(take(text, '\n'))) return *error;
    const char* const end = text.data() + text.size();
    while (!text.empty()) {
        const std::string_view line = take(text, '\n');
        reader.read_line(line, line.data() + line.size() != end);
    }
    return reader.finish();
}

Rate RowRates::rate(const AccountingRow& row, const std::optional<RunTag>& tag) {
    if (tag && tag->rate) return *tag->rate;
    kinds_.clear();
    counts_.clear();
    for (const TresCount& gpu : row.gpus) {
        kinds_.append(gpu.name).append(1, ':').append(gpu.type).append(1, ',');
        counts_.push_back(gpu.count);
    }
    auto found = by_kinds_.find(kinds_);
    if (found == by_kinds_.end()) {
        std::vector<TresKind> kinds;
        for (const TresCount& gpu : row.gpus) kinds.push_back({std::string(gpu.name), std::string(gpu.type)});
        found = by_kinds_.emplace(kinds_, GpuRates(parameters_, kinds, parts_)).first;
    }
    return found->second.rate(counts_);
}

bool is_refunded(const AccountingRow& row, Seconds contract) {
    const bool broken = row.state == "NODE_FAIL" || row.state == "BOOT_FAIL" || row.state == "LAUNCH_FAILED";
    const bool by_another = row.cancelled_by && row.uid && *row.cancelled_by != *row.uid;
    if (!(broken || by_another) || !row.start || !row.end) return false;
    return ends_within_contract(*row.start, *row.end, row.suspended, contract);
}

bool is_by_itself(const AccountingRow& row) {
    constexpr std::string_view kOwn[] = {"COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE"};
    if (!row.end || row.behind_resize) return false;
    if (row.cancelled_by) return row.uid == row.cancelled_by;
    return std::find(std::begin(kOwn), std::end(kOwn), row.state) != std::end(kOwn);
}

}  // namespace budget
