// SPDX-License-Identifier: GPL-2.0-or-later
//
// The sums behind UsageWindow; docs/usage.md derives them.
// An edge is looked at three times at most: added, passed by the leading
// cursor, passed by the trailing one. Not thread-safe.

#include "usage_window.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace budget {

namespace {

// So many edges before the leading cursor are worth a walk.
constexpr std::size_t kBatch = 4096;

// A row that is to be passed soon is fetched so many edges before.
constexpr std::ptrdiff_t kFetchAhead = 16;

}  // namespace

UsageWindow::UsageWindow(Seconds length) : length_(length) {
    assert(length > 0 && length <= kMaxWindow);
}

OwnerIndex UsageWindow::add_owner() {
    assert(rows_.size() < kMaxOwners);
    rows_.emplace_back();
    return static_cast<OwnerIndex>(rows_.size() - 1);
}

void UsageWindow::add_edge(const Edge& edge) {
    assert(0 <= edge.at && edge.at <= kMaxInstant);
    if (edge.at <= settled_) enter(edge);
    if (edge.at <= settled_ - length_) {
        leave(edge);
        return;
    }
    log_.push_back(Entry::of(edge));
    if (fresh_ > 0 || edge.at < last_) {
        ++fresh_;
        return;
    }
    last_ = edge.at;
    if (edge.at > settled_) ++ahead_;
}

void UsageWindow::advance(Seconds now) {
    now_ = std::max(now_, now);
    if (ahead_ + fresh_ >= kBatch) settle();
}

void UsageWindow::settle() {
    sort_log();
    settled_ = now_;
    const auto first = log_.end() - static_cast<std::ptrdiff_t>(ahead_);
    const auto entered = walk(first, settled_, [this](const Edge& edge) { enter(edge); });
    ahead_ = static_cast<std::size_t>(log_.end() - entered);
    const auto left = walk(log_.begin(), forgotten_before(), [this](const Edge& edge) { leave(edge); });
    log_.erase(log_.begin(), left);
}

// Passes the edges from `next` on that are not after `until`, and returns the first that is.
template <typename Pass>
UsageWindow::Log::iterator UsageWindow::walk(Log::iterator next, Seconds until, Pass pass) {
    auto fetch = next + std::min(kFetchAhead, log_.end() - next);
    for (; next != log_.end() && next->at() <= until; ++next) {
        if (fetch != log_.end()) __builtin_prefetch(&rows_[(fetch++)->owner()]);
        pass(next->edge());
    }
    return next;
}

Usage UsageWindow::usage(OwnerIndex owner) const {
    assert(settled_ == now_);
    const Row& row = rows_[owner];
    const auto lead = static_cast<Sum>(now_);
    const auto trail = static_cast<Sum>(forgotten_before());
    const Sum box = lead * row.lead_rate - trail * row.trail_rate - row.first;
    const Sum moment2 = lead * lead * row.lead_rate - trail * trail * row.trail_rate - row.second;
    return {.box = static_cast<Wide>(box),
            .tapered2 = static_cast<Wide>(moment2 - 2 * trail * box),
            .running = saturating_rate(static_cast<Wide>(row.lead_rate))};
}

void UsageWindow::enter(const Edge& edge) {
    Row& row = rows_[edge.owner];
    const auto moment = static_cast<Sum>(Wide{edge.change} * edge.at);
    row.lead_rate += static_cast<Sum>(edge.change);
    row.first += moment;
    row.second += moment * static_cast<Sum>(edge.at);
}

void UsageWindow::leave(const Edge& edge) {
    Row& row = rows_[edge.owner];
    const auto moment = static_cast<Sum>(Wide{edge.change} * edge.at);
    row.trail_rate += static_cast<Sum>(edge.change);
    row.first -= moment;
    row.second -= moment * static_cast<Sum>(edge.at);
}

// Sorts in what came out of order. What of it lies behind the leading cursor was
// entered when it was added, so the cursor only has to be found again.
void UsageWindow::sort_log() {
    if (fresh_ == 0) return;
    const auto earlier = [](const Entry& a, const Entry& b) { return a.at() < b.at(); };
    const auto fresh = log_.end() - static_cast<std::ptrdiff_t>(fresh_);
    std::sort(fresh, log_.end(), earlier);
    std::inplace_merge(std::upper_bound(log_.begin(), fresh, *fresh, earlier), fresh, log_.end(), earlier);
    const auto lead = std::upper_bound(log_.begin(), log_.end(), Entry::of({.at = settled_}), earlier);
    ahead_ = static_cast<std::size_t>(log_.end() - lead);
    last_ = log_.back().at();
    fresh_ = 0;
}

}  // namespace budget
