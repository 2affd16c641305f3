// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a pass decided; see snapshot.h.
#include "snapshot.h"

#include <algorithm>

namespace budget {

Snapshot::Snapshot(Seconds pass_time, std::vector<Rank> ranks, Claims allocated)
    : pass_time_(pass_time), ranks_(std::move(ranks)), claims_(std::move(allocated)) {
    std::sort(ranks_.begin(), ranks_.end(), [](const Rank& a, const Rank& b) {
        return a.job_id != b.job_id ? a.job_id < b.job_id : a.position < b.position;
    });
    const auto end =
        std::unique(ranks_.begin(), ranks_.end(), [](const Rank& a, const Rank& b) { return a.job_id == b.job_id; });
    ranks_.erase(end, ranks_.end());
}

const Rank* Snapshot::find(std::uint32_t job_id) const {
    const auto rank = std::lower_bound(ranks_.begin(), ranks_.end(), job_id,
                                       [](const Rank& a, std::uint32_t id) { return a.job_id < id; });
    return rank != ranks_.end() && rank->job_id == job_id ? &*rank : nullptr;
}

}  // namespace budget
