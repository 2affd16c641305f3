// SPDX-License-Identifier: GPL-2.0-or-later
//
// GPU time charged inside a sliding window (now - W, now], exact to the second,
// for many owners (rule U3). An owner's rate is known by its edges, the instants
// at which it changes; the window holds sums of change x instant alone, and
// docs/usage.md has the formulas. GPU time is in 1/5040 GPU-seconds.
// Owned by one ledger; not thread-safe.
#ifndef SLURM_BUDGET_COMMON_USAGE_WINDOW_H
#define SLURM_BUDGET_COMMON_USAGE_WINDOW_H

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "units.h"

namespace budget {

using OwnerIndex = std::uint32_t;  // who is charged: a row of the window
inline constexpr unsigned kOwnerBits = 24;
inline constexpr OwnerIndex kMaxOwners = OwnerIndex{1} << kOwnerBits;

enum class WindowShape : std::uint8_t { kBox, kTapered };

// What one owner has in the window; integers, so that sums over owners are exact.
// Add those of a node's owners to get the node's. Never negative.
struct Usage {
    Wide box = 0;       // integral of the rate over the window
    Wide tapered2 = 0;  // integral of the rate x 2 (W - age): W times the tapered usage of U3
    Rate running = 0;   // the rate now

    Usage& operator+=(const Usage& other) {
        box = saturating_add(box, other.box);
        tapered2 = saturating_add(tapered2, other.tapered2);
        running = saturating_rate(Wide{running} + other.running);
        return *this;
    }
};

// At this instant the owner's rate changes by so much. 0 <= at <= kMaxInstant.
struct Edge {
    Seconds at = 0;
    Rate change = 0;
    OwnerIndex owner = 0;
};

// All edges of all owners stand in one log ordered by time, which two cursors
// pass: the leading one at now, the trailing one at now - W. They move when
// somebody asks for sums, or when much lies before them.
class UsageWindow {
   public:
    // Precondition: 0 < length <= kMaxWindow. Time starts at 0.
    explicit UsageWindow(Seconds length);

    Seconds length() const { return length_; }
    Seconds now() const { return now_; }

    // Edges at or before this instant are behind the window.
    Seconds forgotten_before() const { return now_ - length_; }

    // Adds the next owner and returns its index; indices count up from 0.
    // Precondition: there are fewer than kMaxOwners.
    OwnerIndex add_owner();

    // Counts an edge, whether it lies ahead of the window, in it or behind it.
    // The opposite edge (same owner and instant, -change) takes it back exactly.
    // Amortised O(1); edges out of order are sorted in by the next settle().
    void add_edge(const Edge& edge);

    // Moves the window's end to now. An earlier now than before has no effect.
    void advance(Seconds now);

    // Moves the cursors up to now and drops the edges that have left the window.
    // Amortised O(1) per edge.
    void settle();

    // O(1). Precondition: settled since now was last moved.
    Usage usage(OwnerIndex owner) const;

    // How many edges are held: those in the window and ahead of it.
    std::size_t edges() const { return log_.size(); }

   private:
    // An edge as it stands in the log: its instant and its owner in one word.
    struct Entry {
        std::uint64_t at_and_owner;
        Rate change;

        static Entry of(const Edge& edge) {
            return {static_cast<std::uint64_t>(edge.at) << kOwnerBits | edge.owner, edge.change};
        }
        Seconds at() const { return static_cast<Seconds>(at_and_owner >> kOwnerBits); }
        OwnerIndex owner() const { return static_cast<OwnerIndex>(at_and_owner & (kMaxOwners - 1)); }
        Edge edge() const { return {.at = at(), .change = change, .owner = owner()}; }
    };

    // Sums are kept modulo 2^128: what wraps on the way cancels in usage(),
    // whose results are far smaller. One cache line.
    using Sum = unsigned __int128;
    struct alignas(64) Row {
        Sum lead_rate = 0;   // sum of change over the edges passed by the leading cursor
        Sum trail_rate = 0;  // the same of the trailing one
        Sum first = 0;       // sum of change x at over the edges between the cursors
        Sum second = 0;      // sum of change x at^2 over them
    };

    void enter(const Edge& edge);  // the leading cursor passes it
    void leave(const Edge& edge);  // the trailing cursor passes it
    void sort_log();

    using Log = std::deque<Entry>;
    template <typename Pass>
    Log::iterator walk(Log::iterator next, Seconds until, Pass pass);

    Seconds length_;
    Seconds now_ = 0;
    Seconds settled_ = 0;  // where the leading cursor stands
    std::vector<Row> rows_;
    Log log_;                // by instant, but for the last fresh_ of it; begins at the trailing cursor
    Seconds last_ = 0;       // no entry in order is later
    std::size_t ahead_ = 0;  // how many in order the leading cursor has not passed
    std::size_t fresh_ = 0;  // how many came out of order
};

}  // namespace budget

#endif
