// SPDX-License-Identifier: GPL-2.0-or-later
//
// A run's charge is a list of edges that follows from the run alone. Whatever
// changes in it, its edges are taken back from the first instant at which the run
// differs, and entered anew as it is now: a moved start, a resize, a late end, a
// refund and a corrected class are all the same case. What the accounting database
// tells stands in the same table, under restart counts of our own, and makes way
// for a run that is seen. Not thread-safe.

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
           within(view.contract, 0, kMaxContract) && within(view.suspended_before, 0, kMaxInstant) &&
           (!view.end || within(*view.end, view.start, kMaxInstant));
}

RunView within_range(RunView view) {
    view.rate = std::clamp<Rate>(view.rate, 0, kMaxRate);
    view.start = std::clamp<Seconds>(view.start, 0, kMaxInstant);
    view.contract = std::clamp<Seconds>(view.contract, 0, kMaxContract);
    view.suspended_before = std::clamp<Seconds>(view.suspended_before, 0, kMaxInstant);
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
    if (known) return view.changed;
    return run.steps ? std::max(now, run.steps->back().at) : now;
}

bool ended_by_itself(const RunView& view) {
    return view.by_itself && view.end;
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

// What it was charged last, or would have been but for a suspension.
Rate rate_at_end(const Run& run) {
    Rate rate = run.rate;
    for (const RunStep& step : run.steps ? std::span<const RunStep>(*run.steps) : std::span<const RunStep>()) {
        if (step.at < run.until || step.at <= run.start) rate = step.rate;
    }
    return rate;
}

// Since when the run is suspended without a known end of it; kNever where it is not.
Seconds suspended_since(const Run& run) {
    if (!last_step(run).suspended) return kNever;
    auto first = run.steps->end() - 1;
    while (first != run.steps->begin() && std::prev(first)->suspended) --first;
    return std::max(first->at, run.start);
}

// How long it was suspended, or not, before this instant.
Seconds time_before(const Run& run, Seconds to, bool suspended) {
    Seconds sum = 0;
    for_each_stretch(run, [&](const RunStep& step, Seconds until) {
        if (step.suspended == suspended && step.at < to) sum += std::min(until, to) - step.at;
    });
    return sum;
}

// Before this instant were the suspensions that nobody has seen.
Seconds latest_resume(const Run& run, const RunView& view, Seconds now) {
    const Seconds latest = std::min(view.end.value_or(now), now);
    return view.changed > run.start && view.changed <= latest ? view.changed : latest;
}

// How long the run was suspended without being seen so, as far as there is room for it. Slurm ends a suspended
// job at the instant of its suspension, and adds what came after that; so the sum tells nothing then.
[[gnu::noinline]] Seconds unseen_suspension(const Run& run, const RunView& view, Seconds now) {
    if (view.suspended_before <= 0 || (view.end && view.changed >= *view.end)) return 0;
    const Seconds until = std::min(suspended_since(run), view.end.value_or(kNever));
    const Seconds unseen = view.suspended_before - time_before(run, until, true);
    return std::clamp<Seconds>(unseen, 0, time_before(run, latest_resume(run, view, now), false));
}

// All steps, from the start on.
std::vector<RunStep> steps_of(const Run& run) {
    std::vector<RunStep> steps = {{.at = run.start, .rate = run.rate}};
    if (run.steps) steps.insert(steps.end(), run.steps->begin(), run.steps->end());
    for (RunStep& step : steps) step.at = std::max(step.at, run.start);
    return steps;
}

// The run with these; a step that changes nothing is left out.
void set_steps(Run& run, std::span<const RunStep> steps) {
    auto changes = std::make_unique<std::vector<RunStep>>();
    RunStep last{.at = run.start, .rate = run.rate};
    for (const RunStep& step : steps) {
        if (step.at <= run.start && !step.suspended) {
            run.rate = last.rate = step.rate;
            changes->clear();
        } else if (step.rate != last.rate || step.suspended != last.suspended) {
            changes->push_back(step);
        }
        last = step;
    }
    if (changes->empty()) changes.reset();
    run.steps = std::move(changes);
}

// Makes the run different between two instants: edit(step) is called for what it is in between.
template <typename Edit>
void edit_stretch(Run& run, Seconds from, Seconds to, Edit edit) {
    std::vector<RunStep> steps = steps_of(run);
    for (const Seconds cut : {from, to}) {
        auto next = std::find_if(steps.begin(), steps.end(), [&](const RunStep& step) { return step.at > cut; });
        if (next == steps.begin() || std::prev(next)->at == cut) continue;
        RunStep begins = *std::prev(next);
        begins.at = cut;
        steps.insert(next, begins);
    }
    for (RunStep& step : steps)
        if (step.at >= from && step.at < to) edit(step);
    set_steps(run, steps);
}

// Makes the last so many seconds before `to` in which the run was not suspended a suspension.
void suspend_before(Run& run, Seconds to, Seconds seconds) {
    std::vector<std::pair<Seconds, Seconds>> charged;  // from, until
    for_each_stretch(run, [&](const RunStep& step, Seconds until) {
        if (!step.suspended && step.at < to) charged.emplace_back(step.at, std::min(until, to));
    });
    for (; seconds > 0 && !charged.empty(); charged.pop_back()) {
        const auto [from, until] = charged.back();
        const Seconds begin = std::max(from, until - seconds);
        edit_stretch(run, begin, until, [](RunStep& step) { step.suspended = true; });
        seconds -= until - begin;
    }
}

Run copy_of(const Run& run) {
    Run copy = {.key = run.key, .owner = run.owner, .contract = run.contract, .start = run.start, .until = run.until};
    copy.rate = run.rate;
    if (run.steps) copy.steps = std::make_unique<std::vector<RunStep>>(*run.steps);
    copy.run_class = run.run_class;
    copy.refunded = run.refunded;
    copy.ended = run.ended;
    copy.gone = run.gone;
    copy.resized = run.resized;
    copy.by_itself = run.by_itself;
    copy.beside = run.beside;
    copy.expiring = run.expiring;
    copy.scan = run.scan;
    copy.used = run.used;
    copy.open_position = run.open_position;
    copy.next = run.next;
    return copy;
}

// Is the same known of both?
bool is_same(const Run& a, const Run& b) {
    const bool same_steps = a.steps && b.steps ? *a.steps == *b.steps : !a.steps && !b.steps;
    return same_steps && a.owner == b.owner && a.contract == b.contract && a.start == b.start && a.until == b.until &&
           a.rate == b.rate && a.run_class == b.run_class && a.refunded == b.refunded && a.ended == b.ended &&
           a.gone == b.gone && a.resized == b.resized && a.by_itself == b.by_itself;
}

SavedRun saved(const Run& run) {
    SavedRun saved = {.key = run.key, .owner = run.owner, .run_class = run.run_class};
    saved.refunded = run.refunded;
    saved.ended = run.ended;
    saved.gone = run.gone;
    saved.resized = run.resized;
    saved.by_itself = run.by_itself;
    saved.contract = run.contract;
    saved.start = run.start;
    saved.until = run.until;
    saved.rate = run.rate;
    if (run.steps) saved.steps = *run.steps;
    return saved;
}

std::string owner_name(std::string_view account, std::string_view user, std::string_view partition) {
    std::string name(account);
    name.append(1, '\0').append(user).append(1, '\0').append(partition);
    return name;
}

// Does it come from the accounting database alone?
bool is_past(const Run& run) {
    return run.key.restart_count >= kPastRestarts && run.key.restart_count < kRetiredRestarts;
}

// Of a run that is on, only what lies before it was last seen is known.
bool overlaps(const Run& run, Seconds start, Seconds end) {
    return run.start == start || (run.start < end && start < run.until);
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

bool is_another_job(const Run& run, const RunView& view) {
    if (view.start <= run.start) return false;
    return view.submitted > run.start || (run.ended && view.start >= run.until);
}

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
    take_out(slot);
    release(slot);
}

void RunTable::take_out(Slot slot) {
    Run& run = (*this)[slot];
    Slot* link = &bucket(run.key);
    while (*link != slot) link = &(*this)[*link].next;
    *link = run.next;
    run = Run{};
    --size_;
}

void RunTable::release(Slot slot) {
    (*this)[slot].next = std::exchange(free_, slot);
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

Ledger::Ledger(Seconds window, std::uint32_t unused_charge_millis)
    : allocated_(window),
      unallocated_(window),
      unused_(window),
      unused_millis_(unused_charge_millis),
      node_parents_{kRoot} {
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
    allocated_ = empty_window(window);
    unallocated_ = empty_window(window);
    unused_ = empty_window(window);
    for_each_run([this](const Run& run) { post(run, 0, 1); });
    summed_ = false;
}

void Ledger::set_unused_charge(std::uint32_t millis) {
    if (millis == unused_millis_) return;
    unused_millis_ = millis;
    unused_ = empty_window(unused_.length());
    for_each_run([this](const Run& run) { post_unused(run, 1); });
    summed_ = false;
}

// Of the same owners and at the same now.
UsageWindow Ledger::empty_window(Seconds length) const {
    UsageWindow window(length);
    for (std::size_t i = 0; i < owners_.size(); ++i) window.add_owner();
    window.advance(now());
    return window;
}

// Every run goes through here again and again: what it calls is compiled into it.
[[gnu::flatten]] void Ledger::observe(const RunView& view) {
    if (!is_within_range(view)) return observe(within_range(view));
    Slot slot = runs_.find(view.key);
    if (slot != RunTable::kNone && is_another_job(runs_[slot], view)) {
        retire(slot);
        slot = RunTable::kNone;
    }
    if (slot == RunTable::kNone) return observe_new(view);
    Run& run = runs_[slot];
    if (run.beside || view.start < run.start || view.suspended_before > 0) return observe_whole(run, slot, view);
    run.scan = scan_;
    run.gone = false;
    if (!run.ended) run.until = now();
    const OwnerIndex known = owner_by_assoc_.find(view.assoc);
    const OwnerIndex owner = known == OwnerById::kNone ? run.owner : known;
    const Seconds from = first_difference(run, view, owner, now());
    if (from == kNever && run.contract == view.contract && run.by_itself == ended_by_itself(view)) return;

    post(run, from, -1);
    take_up(run, view, owner);
    post(run, from, 1);
    file(slot);
}

// The same of a run that past ones or unseen suspensions may have to do with, as few have.
[[gnu::noinline]] void Ledger::observe_whole(Run& run, Slot slot, const RunView& view) {
    const PastParts past = run.beside || view.start < run.start ? take_past(view) : PastParts();
    run.scan = scan_;
    run.gone = false;
    if (!run.ended) run.until = now();
    if (!view.end) run.beside = false;
    const OwnerIndex owner = owner_of(view, run, past);
    Seconds from = first_difference(run, view, owner, now());
    const bool moves_suspensions =
        view.suspended_before > 0 && (from != kNever || unseen_suspension(run, view, now()) > 0);
    if (moves_suspensions || !past.resized.empty()) from = 0;
    if (from == kNever && run.contract == view.contract && run.by_itself == ended_by_itself(view)) return;

    post(run, from, -1);
    take_up(run, view, owner);
    take_up_parts(run, past);
    post(run, from, 1);
    file(slot);
}

void Ledger::observe_new(const RunView& view) {
    if (view.end && reach(*view.end, view.contract, view.by_itself) <= allocated_.forgotten_before()) return;
    const PastParts past = take_past(view);
    const Slot slot = runs_.insert(view.key);
    Run& run = runs_[slot];
    run.scan = scan_;
    run.rate = view.rate;
    run.start = view.start;
    take_up(run, view, owner_of(view, run, past));
    take_up_parts(run, past);
    post(run, 0, 1);
    file(slot);
}

// Drops the past runs that are of this one, which is now seen, and tells what it needs of them.
[[gnu::noinline]] Ledger::PastParts Ledger::take_past(const RunView& view) {
    PastParts parts;
    runs_.for_each_of(view.key.job_id, [&](Slot slot) {
        const Run& run = runs_[slot];
        if (!is_past(run) || !overlaps(run, view.start, view.end.value_or(kNever))) return;
        if (run.resized) parts.resized.push_back({.from = run.start, .to = run.until, .rate = run.rate});
        if (run.owner != kNobody) parts.owner = run.owner;
        drop(slot);
    });
    return parts;
}

void Ledger::take_up_parts(Run& run, const PastParts& parts) {
    for (const PastParts::Part& part : parts.resized)
        edit_stretch(run, part.from, part.to, [&](RunStep& step) { step.rate = part.rate; });
}

// The key goes to another job: what is known of the run stays, under a count of our own.
[[gnu::noinline]] void Ledger::retire(Slot slot) {
    if (!runs_[slot].ended) close(slot);
    runs_[slot].key = free_key(runs_[slot].key.job_id, kRetiredRestarts);
}

// A key of this job that no run has, with a count from the first one on of a range that is kPastRestarts wide
// at least.
RunKey Ledger::free_key(std::uint32_t job_id, std::uint32_t first) const {
    RunKey key{.job_id = job_id, .restart_count = first};
    runs_.for_each_of(job_id, [&](Slot slot) {
        const std::uint32_t taken = runs_[slot].key.restart_count;
        if (taken >= key.restart_count && taken - first < kRetiredRestarts - kPastRestarts)
            key.restart_count = taken + 1;
    });
    return key;
}

void Ledger::take_up(Run& run, const RunView& view, OwnerIndex owner) const {
    run.owner = owner;
    run.run_class = view.run_class;
    run.refunded = view.refunded;
    run.start = view.start;
    run.ended = view.end.has_value();
    run.gone = false;
    run.until = view.end.value_or(now());
    run.contract = static_cast<std::uint32_t>(view.contract);
    run.by_itself = ended_by_itself(view);
    if (view.suspended_before > 0) take_up_resume(run, view);
    if (changes_rate(run, view)) {
        const Seconds at = change_instant(run, view, now());
        if (!run.steps) run.steps = std::make_unique<std::vector<RunStep>>();
        run.steps->push_back({.at = at, .rate = view.rate, .suspended = view.suspended});
    }
    const Seconds unseen = unseen_suspension(run, view, now());
    if (unseen > 0) suspend_before(run, latest_resume(run, view, now()), unseen);
}

// It was suspended when last seen, and has been resumed: after so long as the view tells, which is
// before the last change if it was suspended once more.
[[gnu::noinline]] void Ledger::take_up_resume(Run& run, const RunView& view) const {
    const Seconds since = suspended_since(run);
    if (since == kNever) return;
    const Seconds lasted = view.suspended_before - time_before(run, since, true);
    const Seconds changed = view.suspended ? std::min(view.changed, now()) : change_instant(run, view, now());
    const RunStep last = last_step(run);
    if (lasted <= 0 || since + lasted >= changed || since + lasted <= last.at) return;
    run.steps->push_back({.at = since + lasted, .rate = last.rate});
}

bool Ledger::observe_past(const PastRun& past) {
    const Seconds start = std::clamp<Seconds>(past.start, 0, kMaxInstant);
    const Seconds end = std::clamp<Seconds>(past.end, start, kMaxInstant);
    const Slot seen = seen_at(past.job_id, start, end);
    if (seen != RunTable::kNone) return correct(seen, past, start, end);
    if (reach(end, past.contract, past.by_itself) <= allocated_.forgotten_before()) return false;
    return take_up_past(past, start, end);
}

// The seen run that a row with these ends is of: one that starts with it, else the latest.
Ledger::Slot Ledger::seen_at(std::uint32_t job_id, Seconds start, Seconds end) const {
    Slot best = RunTable::kNone;
    const auto fit = [&](Slot slot) { return std::pair(runs_[slot].start == start, runs_[slot].start); };
    runs_.for_each_of(job_id, [&](Slot slot) {
        if (is_past(runs_[slot]) || !overlaps(runs_[slot], start, end)) return;
        if (best == RunTable::kNone || fit(slot) > fit(best)) best = slot;
    });
    return best;
}

// What the database knows better of a run that was seen. Of one that is on it tells the end that
// it has if it turns out to have gone, which is not before the last scan that saw it.
bool Ledger::correct(Slot slot, const PastRun& past, Seconds start, Seconds end) {
    Run next = copy_of(runs_[slot]);
    const bool end_unknown = !next.ended || next.gone;
    const bool is_on = !next.ended && next.scan == scan_;
    if (next.owner == kNobody) next.owner = owner_of(past);
    if (past.resized) {
        const Rate rate = std::clamp<Rate>(past.rate, 0, kMaxRate);
        edit_stretch(next, start, end, [&](RunStep& step) { step.rate = rate; });
    }
    if (end_unknown && (past.resized || is_on)) {
        next.until = std::max(next.until, end);
    } else if (end_unknown) {
        next.until = std::max(next.start, end);
        next.refunded = past.refunded;
        next.by_itself = past.by_itself;
    }
    return replace(slot, std::move(next));
}

// Past runs of one job never overlap. Where rows do, each instant goes to the one that started first.
bool Ledger::take_up_past(const PastRun& past, Seconds start, Seconds end) {
    const Seconds suspended_from = end - std::clamp<Seconds>(past.suspended, 0, end - start);
    runs_.for_each_of(past.job_id, [&](Slot slot) {
        const Run& run = runs_[slot];
        if (is_past(run) && run.start < start && start < run.until) start = run.until;
    });
    Slot own = find_past(past.job_id, start);
    if (start >= end || (own != RunTable::kNone && runs_[own].until > end)) return false;
    runs_.for_each_of(past.job_id, [&](Slot slot) {
        if (is_past(runs_[slot]) && start < runs_[slot].start && runs_[slot].start < end) cut_front(slot, end);
    });
    if (own == RunTable::kNone) own = runs_.insert(free_key(past.job_id, kPastRestarts));
    Run next = copy_of(runs_[own]);
    next.owner = owner_of(past);
    next.contract = static_cast<std::uint32_t>(std::clamp<Seconds>(past.contract, 0, kMaxContract));
    next.start = start;
    next.until = end;
    next.rate = std::clamp<Rate>(past.rate, 0, kMaxRate);
    next.steps.reset();
    next.run_class = past.run_class;
    next.refunded = past.refunded;
    next.ended = true;
    next.resized = past.resized;
    next.by_itself = past.by_itself;
    if (suspended_from < end) edit_stretch(next, suspended_from, end, [](RunStep& step) { step.suspended = true; });
    mark_beside(past.job_id);
    return replace(own, std::move(next));
}

Ledger::Slot Ledger::find_past(std::uint32_t job_id, Seconds start) const {
    Slot found = RunTable::kNone;
    runs_.for_each_of(job_id, [&](Slot slot) {
        if (is_past(runs_[slot]) && runs_[slot].start == start) found = slot;
    });
    return found;
}

// The seen runs of a job that has past ones have to look for them when they go on.
void Ledger::mark_beside(std::uint32_t job_id) {
    runs_.for_each_of(job_id, [&](Slot slot) { runs_[slot].beside = !is_past(runs_[slot]); });
}

// A past run begins no earlier than this.
void Ledger::cut_front(Slot slot, Seconds start) {
    if (runs_[slot].until <= start) return drop(slot);
    Run next = copy_of(runs_[slot]);
    next.start = start;
    set_steps(next, steps_of(next));
    replace(slot, std::move(next));
}

// Knows this of the run from now on; false if it is what was known.
bool Ledger::replace(Slot slot, Run next) {
    Run& run = runs_[slot];
    if (is_same(run, next)) return false;
    post(run, 0, -1);
    run = std::move(next);
    post(run, 0, 1);
    file(slot);
    return true;
}

// The past run counts no more. Its slot is free when its turn comes among those that have ended.
void Ledger::drop(Slot slot) {
    post(runs_[slot], 0, -1);
    runs_.take_out(slot);
}

// The association of the view; of an unknown one the run stays where it is, or where the database has it.
OwnerIndex Ledger::owner_of(const RunView& view, const Run& run, const PastParts& past) const {
    const OwnerIndex known = owner_by_assoc_.find(view.assoc);
    if (known != OwnerById::kNone) return known;
    return run.owner == kNobody ? past.owner : run.owner;
}

// By id where that is still of this account and user, else by name. A job's partition is that of its association only
// where there is such a one; or where the user has another one, whose id would be known: then it has been deleted.
OwnerIndex Ledger::owner_of(const PastRun& past) {
    const OwnerIndex known = owner_by_assoc_.find(past.assoc);
    if (known != OwnerById::kNone && owners_[known].account == past.account && owners_[known].user == past.user)
        return known;
    if (past.account.empty()) return kNobody;
    const auto bound = owner_by_name_.find(owner_name(past.account, past.user, past.partition));
    if (bound != owner_by_name_.end()) return bound->second;
    const std::size_t count = owners_.size();
    const OwnerIndex account = intern({.account = past.account});
    const auto plain = owner_by_name_.find(owner_name(past.account, past.user, {}));
    const bool was_bound = past.assoc != 0 && known == OwnerById::kNone && !past.user.empty() &&
                           plain != owner_by_name_.end() && owners_[plain->second].exists;
    const OwnerIndex owner = intern(
        {.account = past.account, .user = past.user, .partition = was_bound ? past.partition : std::string_view()});
    for (std::size_t index = count; index < owners_.size(); ++index) {  // nobody has told of them before
        owners_[index].parent = index == owner && owner != account ? account : kNobody;
        owners_[index].heir = heir(static_cast<OwnerIndex>(index));
        owners_[index].node = owners_[owners_[index].heir].node;
    }
    return owner;
}

const Run* Ledger::find(RunKey key) const {
    const Slot slot = runs_.find(key);
    return slot == RunTable::kNone ? nullptr : &runs_[slot];
}

LedgerImage Ledger::image() const {
    LedgerImage image{.now = now()};
    for (const Owner& owner : owners_)
        image.owners.push_back(
            {.account = owner.account, .user = owner.user, .partition = owner.partition, .parent = owner.parent});
    std::vector<std::pair<std::uint64_t, const Run*>> runs;
    runs.reserve(runs_.size());
    for_each_run([&](const Run& run) {
        const std::uint64_t order = std::uint64_t{run.key.job_id} << 32 | run.key.restart_count;
        if (!run.ended || counts_still(run)) runs.emplace_back(order, &run);
    });
    std::sort(runs.begin(), runs.end());
    image.runs.reserve(runs.size());
    for (const auto& [order, run] : runs) image.runs.push_back(saved(*run));
    return image;
}

Ledger::Ledger(Seconds window, const LedgerImage& image, Seconds now, std::uint32_t unused_charge_millis)
    : Ledger(window, unused_charge_millis) {
    std::vector<OwnerIndex> owners;
    for (const SavedOwner& saved : image.owners)
        owners.push_back(intern({.account = saved.account, .user = saved.user, .partition = saved.partition}));
    for (std::size_t i = 0; i < owners.size(); ++i)
        if (owners[i] != kNobody) owners_[owners[i]].parent = owners[image.owners[i].parent];
    advance(now);
    scan_ = 1;                          // which has seen none of the runs
    std::vector<const SavedRun*> runs;  // by end, as they are to be listed
    runs.reserve(image.runs.size());
    for (const SavedRun& run : image.runs)
        if (!run.ended || reach(run.until, run.contract, run.by_itself) > allocated_.forgotten_before())
            runs.push_back(&run);
    std::sort(runs.begin(), runs.end(), [](const SavedRun* a, const SavedRun* b) { return a->until < b->until; });
    for (const SavedRun* run : runs) restore(*run, owners[run->owner]);
    for (const SavedRun* run : runs)
        if (is_past(runs_[runs_.find(run->key)])) mark_beside(run->key.job_id);
}

void Ledger::restore(const SavedRun& saved, OwnerIndex owner) {
    const Slot slot = runs_.insert(saved.key);
    Run& run = runs_[slot];
    run.owner = owner;
    run.contract = saved.contract;
    run.start = saved.start;
    run.until = saved.until;
    run.rate = saved.rate;
    if (!saved.steps.empty()) run.steps = std::make_unique<std::vector<RunStep>>(saved.steps);
    run.run_class = saved.run_class;
    run.refunded = saved.refunded;
    run.ended = saved.ended;
    run.gone = saved.gone;
    run.resized = saved.resized;
    run.by_itself = saved.by_itself;
    post(run, 0, 1);
    file(slot);
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
    run.gone = true;
    run.until = end;
    post(run, end, 1);
    file(slot);
}

void Ledger::advance(Seconds now) {
    if (now <= this->now()) return;
    allocated_.advance(now);
    unallocated_.advance(now);
    unused_.advance(now);
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
    if (unused_millis_ > 0) {
        unused_.settle();
        for (OwnerIndex index = 0; index < owners_.size(); ++index) {
            Usage unused = unused_.usage(index);
            unused.running = 0;
            by_owner_[index].allocated += unused;
        }
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
    std::string name = owner_name(association.account, association.user, association.partition);
    const auto [found, is_new] = owner_by_name_.emplace(std::move(name), static_cast<OwnerIndex>(owners_.size()));
    if (!is_new) return found->second;
    owners_.push_back({.account = std::string(association.account),
                       .user = std::string(association.user),
                       .partition = std::string(association.partition)});
    allocated_.add_owner();
    unused_.add_owner();
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

// Drops ended runs that have left the window, and frees the slots of those taken out. One that ended out of order is
// kept until those before it have left; one that is to end in the future makes way.
void Ledger::forget_runs() {
    while (!ended_.empty()) {
        const Slot slot = ended_.front();
        if (ended_.size() > kFetchAhead) __builtin_prefetch(&runs_[ended_[kFetchAhead]]);
        Run& run = runs_[slot];
        const bool still_counts = run.ended && counts_still(run);
        if (still_counts && run.until <= now()) return;
        ended_.pop_front();
        if (still_counts) {
            ended_.push_back(slot);
            return;
        }
        run.expiring = false;
        if (!run.used) {
            runs_.release(slot);
        } else if (run.ended) {
            runs_.erase(slot);
        }
    }
}

// Enters the run's edges from an instant on into its window, or takes them back (sign -1).
void Ledger::post(const Run& run, Seconds from, int sign) {
    summed_ = false;
    if (run.by_itself) post_unused(run, sign);
    if (run.refunded || last_edge(run) < from) return;
    UsageWindow& window = run.run_class == RunClass::kAllocated ? allocated_ : unallocated_;
    for_each_charge(run, [&](Seconds at, Rate change) {
        if (at >= from && change != 0) window.add_edge({.at = at, .change = sign * change, .owner = run.owner});
    });
}

// The same of what is charged for the part of its contract that it did not use.
[[gnu::noinline]] void Ledger::post_unused(const Run& run, int sign) {
    const Seconds prolonged = prolongation(run);
    if (prolonged <= 0) return;
    const Rate change = sign * rate_at_end(run);
    unused_.add_edge({.at = run.until, .change = change, .owner = run.owner});
    unused_.add_edge({.at = std::min(run.until + prolonged, kMaxInstant), .change = -change, .owner = run.owner});
}

// For how long after its end it is charged.
[[gnu::noinline]] Seconds Ledger::prolongation(const Run& run) const {
    if (unused_millis_ == 0 || !run.by_itself || !run.ended || run.refunded || run.run_class != RunClass::kAllocated)
        return 0;
    const Seconds unused = run.contract - time_before(run, run.until, false);
    return std::max<Seconds>(unused, 0) * unused_millis_ / 1000;
}

// Of a run that has ended: is anything of it charged in the window, or later?
bool Ledger::counts_still(const Run& run) const {
    if (run.until > allocated_.forgotten_before()) return true;
    return run.by_itself && run.until + prolongation(run) > allocated_.forgotten_before();
}

// Up to when a run with this end may be charged, at the most.
Seconds Ledger::reach(Seconds end, Seconds contract, bool by_itself) const {
    return by_itself && unused_millis_ > 0 ? end + contract : end;
}

}  // namespace budget
