// SPDX-License-Identifier: GPL-2.0-or-later
//
// A run's charge is a list of edges that follows from the run alone. Whatever
// changes in it, its edges are taken back from the first instant at which the run
// differs, and entered anew as it is now: a moved start, a resize, a late end, a
// refund and a corrected class are all the same case. Not thread-safe.

#include "ledger.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace budget {

namespace {

static_assert(sizeof(Run) == 64, "a run fills one cache line");

// Charged where no association is known; shown at the root.
constexpr OwnerIndex kNobody = 0;

constexpr std::size_t kFirstBuckets = 64;

// A run that is to be dropped soon is fetched so many runs before.
constexpr std::size_t kFetchAhead = 16;

constexpr Seconds kNever = kMaxInstant + 1;
constexpr Seconds kMaxContract = std::numeric_limits<std::uint32_t>::max();

// What a caller may show: within the range of units.h, and no end before the start.
bool is_within_range(const RunView& view) {
    const auto within = [](std::int64_t value, std::int64_t low, std::int64_t high) {
        return low <= value && value <= high;
    };
    return within(view.rate, 0, kMaxRate) && within(view.start, 0, kMaxInstant) &&
           within(view.contract, 0, kMaxContract) && (!view.end || within(*view.end, view.start, kMaxInstant));
}

RunView within_range(RunView view) {
    view.rate = std::clamp<Rate>(view.rate, 0, kMaxRate);
    view.start = std::clamp<Seconds>(view.start, 0, kMaxInstant);
    view.contract = std::clamp<Seconds>(view.contract, 0, kMaxContract);
    if (view.end) view.end = std::clamp(*view.end, view.start, kMaxInstant);
    return view;
}

RunStep last_step(const Run& run) {
    return run.steps ? run.steps->back() : RunStep{.at = run.start, .rate = run.rate};
}

Seconds last_edge(const Run& run) {
    return run.ended ? run.until : std::max(run.start, last_step(run).at);
}

// When what is new in the view has begun. A time not after the last change known
// is that of the last change, not of this one.
Seconds change_instant(const Run& run, const RunView& view, Seconds now) {
    const Seconds earliest = run.steps ? run.steps->back().at + 1 : run.start;
    const bool known = view.changed > 0 && view.changed >= earliest && view.changed <= now;
    return known ? view.changed : now;
}

bool changes_rate(const Run& run, const RunView& view) {
    const RunStep last = last_step(run);
    return last.rate != view.rate || last.suspended != view.suspended;
}

// Up to this instant the run is charged as the view shows it; kNever where it is throughout.
Seconds first_difference(const Run& run, const RunView& view, OwnerIndex owner, Seconds now) {
    if (run.owner != owner || run.run_class != view.run_class || run.refunded != view.refunded ||
        run.start != view.start) {
        return 0;
    }
    const Seconds change = changes_rate(run, view) ? change_instant(run, view, now) : kNever;
    const Seconds old_end = run.ended ? run.until : kNever;
    const Seconds new_end = view.end.value_or(kNever);
    return std::min(change, old_end == new_end ? kNever : std::min(old_end, new_end));
}

// Calls visit(step, until) for the stretches of the run between start and end in which
// nothing changes; `until` of the last one is kNever while it runs.
template <typename Visit>
void for_each_stretch(const Run& run, Visit visit) {
    const Seconds end = run.ended ? run.until : kNever;
    RunStep current{.at = run.start, .rate = run.rate};
    for (const RunStep& next : run.steps ? std::span<const RunStep>(*run.steps) : std::span<const RunStep>()) {
        const Seconds until = std::clamp(next.at, current.at, end);
        if (current.at < until) visit(current, until);
        current = {.at = until, .rate = next.rate, .suspended = next.suspended};
    }
    if (current.at < end) visit(current, end);
}

// Calls put(at, change) for the edges of the rate that is charged (U2, U6).
template <typename Put>
void for_each_charge(const Run& run, Put put) {
    Rate charged = 0;
    for_each_stretch(run, [&](const RunStep& step, Seconds) {
        const Rate rate = step.suspended ? 0 : step.rate;
        put(step.at, rate - charged);
        charged = rate;
    });
    if (run.ended) put(run.until, -charged);
}

// What is promised to a run that has no end: its rate for the rest of its contract (U4).
// Suspended time is none of the contract (U6).
Wide commitment(const Run& run, Seconds now) {
    if (run.refunded || run.run_class != RunClass::kAllocated) return 0;
    Seconds used = 0;
    for_each_stretch(run, [&](const RunStep& step, Seconds until) {
        if (!step.suspended) used += std::max<Seconds>(std::min(until, now) - step.at, 0);
    });
    return Wide{last_step(run).rate} * std::max<Seconds>(run.contract - used, 0);
}

}  // namespace

RunTable::Slot RunTable::find(RunKey key) const {
    if (buckets_.empty()) return kNone;
    Slot slot = buckets_[key.job_id & (buckets_.size() - 1)];
    while (slot != kNone && (*this)[slot].key != key) slot = (*this)[slot].next;
    return slot;
}

RunTable::Slot RunTable::insert(RunKey key) {
    if (size_ == buckets_.size()) grow();
    const Slot slot = free_slot();
    Run& run = (*this)[slot];
    run.key = key;
    run.used = true;
    run.next = std::exchange(bucket(key), slot);
    ++size_;
    return slot;
}

void RunTable::erase(Slot slot) {
    Run& run = (*this)[slot];
    Slot* link = &bucket(run.key);
    while (*link != slot) link = &(*this)[*link].next;
    *link = run.next;
    run = Run{};
    run.next = std::exchange(free_, slot);
    --size_;
}

RunTable::Slot RunTable::free_slot() {
    if (free_ != kNone) return std::exchange(free_, (*this)[free_].next);
    if (slots_ % kChunk == 0) chunks_.push_back(std::make_unique<Run[]>(kChunk));
    return slots_++;
}

void RunTable::grow() {
    buckets_.assign(std::max(kFirstBuckets, 2 * buckets_.size()), kNone);
    for (Slot slot = 0; slot < slots_; ++slot) {
        Run& run = (*this)[slot];
        if (run.used) run.next = std::exchange(bucket(run.key), slot);
    }
}

OwnerIndex OwnerById::find(AssocId id) const {
    const std::size_t page = id / kPage;
    return page < pages_.size() && !pages_[page].empty() ? pages_[page][id % kPage] : kNone;
}

void OwnerById::set(AssocId id, OwnerIndex owner) {
    const std::size_t page = id / kPage;
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (pages_[page].empty()) pages_[page].assign(kPage, kNone);
    pages_[page][id % kPage] = owner;
}

Ledger::Ledger(Seconds window) : allocated_(window), unallocated_(window), node_parents_{kRoot} {
    intern({});
}

void Ledger::set_tree(std::span<const Association> associations, const Tree& tree) {
    for (Owner& owner : owners_) owner.exists = false;
    for (const Association& association : associations) {
        const OwnerIndex index = intern(association);
        owner_by_assoc_.set(association.id, index);
        owners_[index].exists = true;
        owners_[index].node = tree.find(association.id).value_or(kRoot);
        if (association.parent_id == 0) root_owner_ = index;
    }
    for (const Association& association : associations) {
        const OwnerIndex parent = owner_by_assoc_.find(association.parent_id);
        owners_[owner_by_assoc_.find(association.id)].parent = parent == OwnerById::kNone ? kNobody : parent;
    }
    for (OwnerIndex index = 0; index < owners_.size(); ++index) {
        owners_[index].heir = heir(index);
        owners_[index].node = owners_[owners_[index].heir].node;
    }
    node_parents_.clear();
    for (const Node& node : tree.nodes()) node_parents_.push_back(node.parent);
    summed_ = false;
}

void Ledger::set_window(Seconds window) {
    UsageWindow* const windows[] = {&allocated_, &unallocated_};
    for (UsageWindow* w : windows) {
        UsageWindow other(window);
        for (std::size_t i = 0; i < owners_.size(); ++i) other.add_owner();
        other.advance(w->now());
        *w = std::move(other);
    }
    for_each_run([this](const Run& run) { post(run, 0, 1); });
    summed_ = false;
}

// Every run goes through here again and again: what it calls is compiled into it.
[[gnu::flatten]] void Ledger::observe(const RunView& view) {
    if (!is_within_range(view)) return observe(within_range(view));
    Slot slot = runs_.find(view.key);
    const bool is_new = slot == RunTable::kNone;
    if (is_new) {
        if (view.end && *view.end <= allocated_.forgotten_before()) return;
        slot = runs_.insert(view.key);
    }
    Run& run = runs_[slot];
    run.scan = scan_;
    if (!run.ended) run.until = now();
    const OwnerIndex known = owner_by_assoc_.find(view.assoc);
    const OwnerIndex owner = known == OwnerById::kNone ? run.owner : known;
    const Seconds from = is_new ? 0 : first_difference(run, view, owner, now());
    if (from == kNever && run.contract == view.contract) return;

    if (is_new) {
        run.rate = view.rate;
    } else {
        post(run, from, -1);
    }
    take_up(run, view, owner);
    post(run, from, 1);
    file(slot);
}

void Ledger::take_up(Run& run, const RunView& view, OwnerIndex owner) const {
    run.owner = owner;
    run.run_class = view.run_class;
    run.refunded = view.refunded;
    run.start = view.start;
    run.ended = view.end.has_value();
    run.until = view.end.value_or(now());
    run.contract = static_cast<std::uint32_t>(view.contract);
    if (!changes_rate(run, view)) return;
    const Seconds at = change_instant(run, view, now());
    if (!run.steps) run.steps = std::make_unique<std::vector<RunStep>>();
    run.steps->push_back({.at = at, .rate = view.rate, .suspended = view.suspended});
}

void Ledger::begin_scan(Seconds now) {
    advance(now);
    ++scan_;
}

void Ledger::end_scan() {
    for (std::size_t i = open_.size(); i-- > 0;) {  // close() fills the gap from the back
        if (runs_[open_[i]].scan != scan_) close(open_[i]);
    }
}

// Ends a run when it was last seen.
void Ledger::close(Slot slot) {
    Run& run = runs_[slot];
    const Seconds end = std::max(run.until, run.start);
    post(run, end, -1);
    run.ended = true;
    run.until = end;
    post(run, end, 1);
    file(slot);
}

void Ledger::advance(Seconds now) {
    if (now <= this->now()) return;
    allocated_.advance(now);
    unallocated_.advance(now);
    forget_runs();
    summed_ = false;
}

const std::vector<NodeUsage>& Ledger::node_usage() {
    sum_up();
    return by_node_;
}

std::vector<NodeUsage> Ledger::own_usage(std::span<const Association> associations) {
    sum_up();
    std::vector<NodeUsage> by_heir(owners_.size());
    for (OwnerIndex index = 0; index < owners_.size(); ++index) by_heir[owners_[index].heir] += by_owner_[index];
    std::vector<NodeUsage> own;
    own.reserve(associations.size());
    for (const Association& association : associations) {
        const OwnerIndex owner = owner_by_assoc_.find(association.id);
        own.push_back(owner == OwnerById::kNone ? NodeUsage() : by_heir[owner]);
    }
    return own;
}

void Ledger::sum_up() {
    if (summed_) return;
    sum_owners();
    by_node_.assign(node_parents_.size(), {});
    for (OwnerIndex index = 0; index < owners_.size(); ++index) by_node_[owners_[index].node] += by_owner_[index];
    for (std::size_t node = by_node_.size(); node-- > 1;) by_node_[node_parents_[node]] += by_node_[node];
    summed_ = true;
}

void Ledger::sum_owners() {
    allocated_.settle();
    unallocated_.settle();
    by_owner_.resize(owners_.size());
    for (OwnerIndex index = 0; index < owners_.size(); ++index) {
        by_owner_[index] = {.allocated = allocated_.usage(index), .unallocated = unallocated_.usage(index)};
    }
    for (const Slot slot : open_) {
        const Run& run = runs_[slot];
        if (run.contract > 0) by_owner_[run.owner].commitment += commitment(run, now());
    }
}

Rate Ledger::running() {
    const NodeUsage& root = node_usage()[kRoot];
    return saturating_rate(Wide{root.allocated.running} + root.unallocated.running);
}

OwnerIndex Ledger::intern(const Association& association) {
    std::string name(association.account);
    name.append(1, '\0').append(association.user).append(1, '\0').append(association.partition);
    const auto [found, is_new] = owner_by_name_.emplace(std::move(name), static_cast<OwnerIndex>(owners_.size()));
    if (!is_new) return found->second;
    owners_.push_back({.account = std::string(association.account),
                       .user = std::string(association.user),
                       .partition = std::string(association.partition)});
    allocated_.add_owner();
    return unallocated_.add_owner();
}

// There is no circle among those who are gone: a parent was there as long as its child.
OwnerIndex Ledger::heir(OwnerIndex index) const {
    while (index != kNobody && !owners_[index].exists) index = owners_[index].parent;
    return index == kNobody ? root_owner_ : index;
}

// Keeps the lists of open and of ended runs.
void Ledger::file(Slot slot) {
    Run& run = runs_[slot];
    const bool listed = run.open_position != RunTable::kNone;
    if (!run.ended) {
        if (listed) return;
        run.open_position = static_cast<Slot>(open_.size());
        open_.push_back(slot);
        return;
    }
    if (listed) {
        runs_[open_.back()].open_position = run.open_position;
        open_[run.open_position] = open_.back();
        open_.pop_back();
        run.open_position = RunTable::kNone;
    }
    if (!std::exchange(run.expiring, true)) ended_.push_back(slot);
}

// Drops ended runs that have left the window. One that ended out of order is kept
// until those before it have left; one that is to end in the future makes way.
void Ledger::forget_runs() {
    while (!ended_.empty()) {
        const Slot slot = ended_.front();
        if (ended_.size() > kFetchAhead) __builtin_prefetch(&runs_[ended_[kFetchAhead]]);
        Run& run = runs_[slot];
        const bool still_counts = run.ended && run.until > allocated_.forgotten_before();
        if (still_counts && run.until <= now()) return;
        ended_.pop_front();
        if (still_counts) {
            ended_.push_back(slot);
            return;
        }
        run.expiring = false;
        if (run.ended) runs_.erase(slot);
    }
}

// Enters the run's edges from an instant on into its window, or takes them back (sign -1).
void Ledger::post(const Run& run, Seconds from, int sign) {
    summed_ = false;
    if (run.refunded || last_edge(run) < from) return;
    UsageWindow& window = run.run_class == RunClass::kAllocated ? allocated_ : unallocated_;
    for_each_charge(run, [&](Seconds at, Rate change) {
        if (at >= from && change != 0) window.add_edge({.at = at, .change = sign * change, .owner = run.owner});
    });
}

}  // namespace budget
