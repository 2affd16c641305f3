// SPDX-License-Identifier: GPL-2.0-or-later
//
// See rebuild.h.

#include "rebuild.h"

#include <algorithm>

namespace budget {

void Gap::open(Seconds from) {
    from = std::max<Seconds>(from, 1);
    if (again_ != 0) from = std::min(from, again_);
    again_ = 0;
    if (first_ == 0 || from < first_) first_ = from;
    if (begin_ == 0 || from < begin_) begin_ = from;
    wait_until_ = 0;
}

std::optional<Gap::Part> Gap::next(Seconds now) const {
    const Seconds from = this->from();
    if (from == 0 || now < wait_until_ || now <= from) return std::nullopt;
    return Part{.from = from, .to = std::min(from + kPart, now)};
}

// A part that is shorter than it might be ends now.
bool Gap::filled(Part part) {
    if (part.from != from()) return false;
    const bool is_last = part.to < part.from + kPart;
    if (!is_last) {
        (first_ != 0 ? first_ : again_) = part.to;
        return false;
    }
    if (first_ == 0) {
        again_ = 0;
        return false;
    }
    again_ = begin_;
    first_ = begin_ = 0;
    wait_until_ = part.to + kSecondLook;
    return true;
}

namespace {

bool has_budget(const Tree& tree, const AccountingRow& row) {
    std::optional<NodeIndex> node = tree.find(row.assoc);
    if (!node) node = tree.find_account(row.account);
    return !node || tree.node(*node).has_budget;
}

}  // namespace

Result<PastCounts> take_up_past(Ledger& ledger, const Tree& tree, std::string_view text, char delimiter,
                                std::string_view slurm_user, RowRates& rates) {
    PastCounts counts;
    const auto take_up = [&](const AccountingRow& row) {
        counts.oldest = std::min(counts.oldest.value_or(*row.start), *row.start);
        if (!row.end) return;
        if (row.user == "root" || row.user == slurm_user) {
            ++counts.systems;
            return;
        }
        PastRun run = {.job_id = row.job_id,
                       .assoc = row.assoc,
                       .account = row.account,
                       .user = row.user,
                       .partition = row.partition,
                       .rate = rates.rate(row, row.tag),
                       .start = *row.start,
                       .end = *row.end,
                       .suspended = row.suspended};
        if (run.rate == 0) return;
        run.run_class = has_budget(tree, row) ? RunClass::kAllocated : RunClass::kUnallocated;
        if (row.tag) {
            run.run_class = row.tag->run_class;
            run.contract = std::max<Seconds>(row.tag->contract, 0);
        }
        run.refunded = is_refunded(row, run.contract);
        run.resized = row.state == "RESIZING";
        run.by_itself = is_by_itself(row);
        ++counts.runs;
        if (!ledger.observe_past(run)) return;
        ++counts.changes;
        if (!row.tag) ++counts.untagged;
    };
    Result<RowCounts> rows = read_accounting_rows(text, delimiter, take_up);
    if (!rows) return Error{rows.error()};
    counts.rows = rows.value();
    return counts;
}

}  // namespace budget
