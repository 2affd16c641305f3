// SPDX-License-Identifier: GPL-2.0-or-later
//
// Ratios and progressive filling; see claim.h. Numerators are kept within
// [0, kMaxNumerator], so that the product of one with a weight (32 bits) cannot
// overflow. No real cluster meets the bound: in the largest unit, it is four
// million GPUs busy for a year.
#include "claim.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>
#include <numeric>

namespace budget {

namespace {

constexpr Wide kMaxNumerator = static_cast<Wide>(1) << 95;

constexpr Wide within_bounds(Wide numerator) {
    return std::clamp<Wide>(numerator, 0, kMaxNumerator);
}

// U5 without division: numerator = usage x usage_factor + commitment x
// commitment_factor + running x running_factor. Multiplied by 1000 over the
// greatest common divisor with the lead, and by W for the tapered shape, as its
// usage is.
class Scale {
   public:
    explicit Scale(const Parameters& parameters) : shape_(parameters.window_shape) {
        const Wide lead_unit = std::gcd(parameters.lead_millis, 1000U);
        const Wide one = 1000 / lead_unit;
        const Wide shape_unit = shape_ == WindowShape::kBox ? 1 : parameters.window;
        usage_factor_ = one;
        commitment_factor_ = one * shape_unit;
        running_factor_ = parameters.lead_millis / lead_unit * shape_unit * parameters.window;
    }

    Wide numerator(const Usage& usage, Wide commitment) const {
        const Wide used = shape_ == WindowShape::kBox ? usage.box : usage.tapered2;
        const Wide sum =
            saturating_add(saturating_mul(used, usage_factor_), saturating_mul(commitment, commitment_factor_));
        return within_bounds(saturating_add(sum, saturating_mul(usage.running, running_factor_)));
    }

    // What a start adds (U4): its commitment and its lead.
    Wide cost(Rate rate, Seconds length) const {
        return numerator(Usage{.box = 0, .tapered2 = 0, .running = rate}, static_cast<Wide>(rate) * length);
    }

    // The numerator of one unit of GPU time committed.
    Wide unit() const { return commitment_factor_; }
    // And that of one unit of rate started, by the lead.
    Wide running_unit() const { return running_factor_; }

   private:
    WindowShape shape_;
    Wide usage_factor_ = 0;
    Wide commitment_factor_ = 0;
    Wide running_factor_ = 0;
};

// By NodeIndex. Unallocated runs have no commitment (Q4).
std::vector<Wide> numerators(const Tree& tree, std::span<const NodeUsage> usage, RunClass run_class,
                             const Scale& scale) {
    assert(usage.size() >= tree.nodes().size());
    std::vector<Wide> result;
    result.reserve(tree.nodes().size());
    for (const NodeUsage& node : usage.first(tree.nodes().size()))
        result.push_back(run_class == RunClass::kAllocated ? scale.numerator(node.allocated, node.commitment)
                                                           : scale.numerator(node.unallocated, 0));
    return result;
}

// a/b against c/d for weights b and d; see Claims::compare.
std::weak_ordering compare_ratios(Wide a, std::uint32_t b, Wide c, std::uint32_t d) {
    if (b == 0 || d == 0) return (b == 0) <=> (d == 0);
    if (b == d) return a <=> c;
    return a * d <=> c * b;
}

// n * m for n within bounds, in 192 bits: P3 multiplies by a weight and by 1 + margin.
struct Product {
    unsigned __int128 high = 0;
    std::uint64_t low = 0;
    Product(Wide n, std::uint64_t m) {
        const auto u = static_cast<unsigned __int128>(n);
        const unsigned __int128 below = static_cast<unsigned __int128>(static_cast<std::uint64_t>(u)) * m;
        low = static_cast<std::uint64_t>(below);
        high = (u >> 64) * m + (below >> 64);
    }
    bool operator<(const Product& other) const { return high != other.high ? high < other.high : low < other.low; }
};

}  // namespace

RunClass class_in_queue(const Tree& tree, const PendingJob& job) {
    return job.run_class == RunClass::kAllocated && tree.node(job.leaf).has_budget ? RunClass::kAllocated
                                                                                   : RunClass::kUnallocated;
}

Claims::Claims(const Tree& tree, std::span<const NodeUsage> usage, RunClass run_class, const Parameters& parameters,
               Rate capacity)
    : margin_millis_(parameters.margin_millis), quantum_(parameters.quantum) {
    const Scale scale(parameters);
    committed_unit_ = scale.unit();
    running_unit_ = scale.running_unit();
    const std::vector<Wide> numerator = numerators(tree, usage, run_class, scale);
    whole_ = static_cast<double>(scale.unit()) * static_cast<double>(capacity) * static_cast<double>(parameters.window);
    nodes_.reserve(numerator.size());
    for (const Node& node : tree.nodes()) {
        NodeClaim claim;
        claim.numerator = numerator[nodes_.size()];
        claim.parent = node.parent;
        claim.depth = node.depth;
        claim.weight = node.weight;
        claim.has_budget = node.has_budget;
        if (node.depth == 0)
            claim.entitlement = 1;
        else if (node.level_weight > 0)
            claim.entitlement = nodes_[node.parent].entitlement * node.weight / static_cast<double>(node.level_weight);
        nodes_.push_back(claim);
    }
}

std::weak_ordering Claims::compare(NodeIndex a, NodeIndex b) const {
    assert(nodes_[a].parent == nodes_[b].parent);
    return compare_ratios(nodes_[a].numerator, nodes_[a].weight, nodes_[b].numerator, nodes_[b].weight);
}

std::optional<double> Claims::ratio(NodeIndex n) const {
    return ratio(n, 0);
}

std::optional<double> Claims::ratio(NodeIndex n, Wide ahead) const {
    const NodeClaim& node = nodes_[n];
    const double entitled = node.entitlement * whole_;
    if (!node.has_budget || !(entitled > 0)) return std::nullopt;
    return static_cast<double>(within_bounds(saturating_add(node.numerator, ahead))) / entitled;
}

std::optional<Claims::Fork> Claims::fork(NodeIndex preemptor_leaf, NodeIndex victim_leaf) const {
    NodeIndex p = preemptor_leaf;
    NodeIndex v = victim_leaf;
    while (nodes_[p].depth > nodes_[v].depth) p = nodes_[p].parent;
    while (nodes_[v].depth > nodes_[p].depth) v = nodes_[v].parent;
    if (p == v) return std::nullopt;
    while (nodes_[p].parent != nodes_[v].parent) {
        p = nodes_[p].parent;
        v = nodes_[v].parent;
    }
    return Fork{p, v};
}

bool Claims::wins(const Fork& fork, Wide ahead) const {
    const NodeClaim& p = nodes_[fork.preemptor];
    const NodeClaim& v = nodes_[fork.victim];
    if (v.weight == 0) return true;
    const std::uint64_t with_margin = 1000U + margin_millis_;
    return Product(within_bounds(saturating_add(p.numerator, ahead)), with_margin * v.weight) <
           Product(v.numerator, std::uint64_t{1000} * p.weight);
}

bool Claims::better(NodeIndex preemptor_leaf, NodeIndex victim_leaf) const {
    if (!nodes_[preemptor_leaf].has_budget) return false;
    const std::optional<Fork> parted = fork(preemptor_leaf, victim_leaf);
    return parted && wins(*parted, 0);
}

Wide Claims::cost(Rate rate, Seconds contract) const {
    const Wide committed = saturating_mul(saturating_mul(rate, std::max(contract, quantum_)), committed_unit_);
    return within_bounds(saturating_add(committed, saturating_mul(rate, running_unit_)));
}

std::vector<std::uint32_t> Claims::ranks_from_worst() const {
    const auto count = static_cast<NodeIndex>(nodes_.size());
    std::vector<NodeIndex> first(count, 0);
    std::vector<NodeIndex> children(count, 0);
    for (NodeIndex n = count; n-- > 1;) {
        first[nodes_[n].parent] = n;
        ++children[nodes_[n].parent];
    }
    std::vector<std::uint32_t> ranks(count, 0);
    std::vector<NodeIndex> open = {kRoot};  // to be visited, the next one last
    std::uint32_t rank = 0;
    NodeIndex last = kRoot;
    while (!open.empty()) {
        const NodeIndex n = open.back();
        open.pop_back();
        const bool ties = n != kRoot && last != kRoot && children[n] == 0 && children[last] == 0 &&
                          nodes_[n].parent == nodes_[last].parent && compare(n, last) == 0;
        if (n != kRoot && !ties) ++rank;
        ranks[n] = rank;
        last = n;
        const std::size_t begin = open.size();
        for (NodeIndex c = first[n]; c < first[n] + children[n]; ++c) open.push_back(c);
        std::sort(open.begin() + static_cast<std::ptrdiff_t>(begin), open.end(), [&](NodeIndex a, NodeIndex b) {
            const std::weak_ordering claim = compare(a, b);
            if (claim != 0) return claim < 0;  // the worst is visited first
            if ((children[a] == 0) != (children[b] == 0)) return children[a] == 0;
            return a > b;
        });
    }
    return ranks;
}

void Contest::add(NodeIndex leaf, Wide cost) {
    for (NodeIndex n = leaf; n != kRoot; n = claims_.parent(n)) ahead_[n] = saturating_add(ahead_[n], cost);
}

bool Contest::better(NodeIndex preemptor_leaf, NodeIndex victim_leaf) const {
    if (!claims_.has_budget(preemptor_leaf)) return false;
    const std::optional<Claims::Fork> fork = claims_.fork(preemptor_leaf, victim_leaf);
    return fork && claims_.wins(*fork, ahead_[fork->preemptor]);
}

Contest::Ratios Contest::ratios(NodeIndex preemptor_leaf, NodeIndex victim_leaf) const {
    const std::optional<Claims::Fork> fork = claims_.fork(preemptor_leaf, victim_leaf);
    if (!fork) return {};
    return {.preemptor = claims_.ratio(fork->preemptor, ahead_[fork->preemptor]).value_or(0),
            .victim = claims_.ratio(fork->victim).value_or(0)};
}

namespace {

// What the filling needs of a job at every pick; small, as it is read in no
// order that a cache could guess.
struct Cost {
    Rate rate = 0;
    std::uint32_t length = 0;  // what counts as its contract
    std::uint32_t places = 1;  // tasks with a place of their own, and one for the rest
};

// A pending job by Q3.
struct Entry {
    Seconds eligible_since = 0;
    std::int64_t nice = 0;
    std::uint32_t qos_priority = 0;
    std::uint64_t id = 0;   // job id, array task
    std::uint32_t job = 0;  // index into the list
    bool eligible = true;
    Cost cost;

    bool operator<(const Entry& other) const {
        if (qos_priority != other.qos_priority) return qos_priority > other.qos_priority;
        if (nice != other.nice) return nice < other.nice;
        if (eligible_since != other.eligible_since) return eligible_since < other.eligible_since;
        return id < other.id;
    }
};

Cost make_cost(const PendingJob& job, bool allocated, Seconds quantum) {
    const Seconds length = std::max(allocated ? job.contract : 0, quantum);
    const std::uint32_t tasks = std::max<std::uint32_t>(job.tasks, 1);
    Cost cost;
    cost.rate = job.rate;
    cost.length = static_cast<std::uint32_t>(std::clamp<Seconds>(length, 0, std::numeric_limits<std::uint32_t>::max()));
    cost.places = tasks > job.tasks_ahead ? job.tasks_ahead + 1 : tasks;
    return cost;
}

// What is left of an array keeps its id, and comes behind the tasks split off it.
std::uint64_t order_id(const PendingJob& job) {
    const std::uint64_t id = job.array_job_id != 0 ? job.array_job_id : job.job_id;
    return id << 32 | job.array_task;
}

Entry make_entry(const PendingJob& job, std::uint32_t index, const Cost& cost) {
    return {.eligible_since = job.eligible_since,
            .nice = job.nice,
            .qos_priority = job.qos_priority,
            .id = order_id(job),
            .job = index,
            .eligible = job.eligible,
            .cost = cost};
}

// The jobs by class, by node and by Q3: those of node n are
// entries[begin[n]] to entries[begin[n + 1]], with n counted on by the number
// of nodes for unallocated ones. Sorted by counting, then node by node.
class SortedJobs {
   public:
    SortedJobs(const Tree& tree, std::span<const PendingJob> jobs, Seconds quantum)
        : nodes_(tree.nodes().size()), begin_(2 * nodes_ + 1, 0), entries_(jobs.size()) {
        std::vector<std::uint32_t> bucket;
        bucket.reserve(jobs.size());
        for (const PendingJob& job : jobs) {
            const bool allocated = class_in_queue(tree, job) == RunClass::kAllocated;
            bucket.push_back(allocated ? job.leaf : job.leaf + static_cast<std::uint32_t>(nodes_));
            ++begin_[bucket.back() + 1];
        }
        std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
        std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
        for (std::uint32_t i = 0; i < bucket.size(); ++i)
            entries_[next[bucket[i]]++] = make_entry(jobs[i], i, make_cost(jobs[i], bucket[i] < nodes_, quantum));
        for (std::size_t n = 0; n + 1 < begin_.size(); ++n)
            std::sort(entries_.begin() + begin_[n], entries_.begin() + begin_[n + 1]);
        costs_.reserve(entries_.size());
        for (const Entry& entry : entries_) costs_.push_back(entry.cost);
    }

    // One class: positions in entries() by NodeIndex, and one more for the end.
    std::span<const std::uint32_t> begin(RunClass run_class) const {
        return std::span(begin_).subspan(run_class == RunClass::kAllocated ? 0 : nodes_, nodes_ + 1);
    }
    const std::vector<Entry>& entries() const { return entries_; }
    const std::vector<Cost>& costs() const { return costs_; }  // by position too

    std::span<const Entry> entries(RunClass run_class) const {
        return std::span(entries_).subspan(begin(run_class).front(),
                                           begin(run_class).back() - begin(run_class).front());
    }

   private:
    std::size_t nodes_;
    std::vector<std::uint32_t> begin_;
    std::vector<Entry> entries_;
    std::vector<Cost> costs_;
};

// Ratios as 64-bit integers that may be compared instead of them unless they
// are equal: the quotient of numerator and weight rounded down, after a shift
// by which no numerator up to `highest` overflows. Weight 0 is the highest.
class RatioKeys {
   public:
    explicit RatioKeys(Wide highest) {
        const auto high = static_cast<std::uint64_t>(highest >> 64);
        const auto low = static_cast<std::uint64_t>(highest);
        const int bits = 128 - (high > 0 ? std::countl_zero(high) : 64 + std::countl_zero(low));
        right_ = std::max(0, bits - 64);
        left_ = std::min(std::max(0, 64 - bits), 63);
    }

    std::uint64_t key(Wide numerator, std::uint32_t weight) const {
        if (weight == 0) return std::numeric_limits<std::uint64_t>::max();
        return (static_cast<std::uint64_t>(numerator >> right_) << left_) / weight;
    }

   private:
    int right_ = 0;
    int left_ = 0;
};

// The highest numerator that a filling can come to.
Wide highest_numerator(std::span<const Wide> numerators, std::span<const Entry> entries, const Scale& scale) {
    Wide highest = *std::max_element(numerators.begin(), numerators.end());
    for (const Entry& entry : entries) {
        const Wide cost = scale.cost(entry.cost.rate, entry.cost.length);
        highest = within_bounds(saturating_add(highest, saturating_mul(cost, entry.cost.places)));
    }
    return highest;
}

// One filling over the jobs of a class, or over the eligible ones of them. A
// heap of the children that have jobs left stands at each node, all in one
// array, at the place of the children themselves. Only the best child of
// each node on a path changes with a pick, so that each heap is repaired from
// its top.
class Filling {
   public:
    Filling(const Tree& tree, std::span<const Wide> numerators, const SortedJobs& jobs, RunClass run_class,
            const Scale& scale, bool eligible_only)
        : entries_(jobs.entries()),
          costs_(jobs.costs()),
          scale_(scale),
          eligible_only_(eligible_only),
          keys_(highest_numerator(numerators, jobs.entries(run_class), scale)),
          sides_(tree.nodes().size()),
          queues_(tree.nodes().size()),
          heap_(tree.nodes().size()) {
        const std::span<const std::uint32_t> begin = jobs.begin(run_class);
        for (NodeIndex n = 0; n < sides_.size(); ++n) {
            const Node& node = tree.node(n);
            sides_[n] = {.numerator = numerators[n],
                         .weight = node.weight,
                         .parent = node.parent,
                         .first_child = node.first_child};
            queues_[n] = {.next = begin[n], .end = begin[n + 1]};
            skip_blocked(queues_[n]);
        }
        for (auto n = static_cast<NodeIndex>(sides_.size()); n-- > 0;) build_heap(sides_[n], tree.node(n).child_count);
    }

    // Appends all places in order.
    void run(std::vector<Place>& places) {
        const std::size_t first = places.size();
        while (has_jobs(kRoot)) places.push_back(pick());
        for (std::size_t i = first; i < places.size(); ++i) places[i].job = entries_[places[i].job].job;
    }

   private:
    struct Side {
        Wide numerator = 0;
        std::uint32_t weight = 0;
        NodeIndex parent = kRoot;
        NodeIndex first_child = 0;
        std::uint32_t children = 0;  // in the heap: those with jobs left
    };
    // The jobs left that are charged to the node itself: entries [next, end).
    struct Queue {
        std::uint32_t next = 0;
        std::uint32_t end = 0;
        std::uint32_t task = 0;  // of the next one
    };
    // A child in the heap of its parent.
    struct Child {
        std::uint64_t key = 0;
        NodeIndex node = 0;
    };

    bool has_jobs(NodeIndex n) const { return sides_[n].children > 0 || queues_[n].next < queues_[n].end; }

    void skip_blocked(Queue& queue) const {
        while (eligible_only_ && queue.next < queue.end && !entries_[queue.next].eligible) ++queue.next;
    }

    // The node whose job is taken next below n.
    NodeIndex leaf_below(NodeIndex n) const {
        while (sides_[n].children > 0) n = heap_[sides_[n].first_child].node;
        return n;
    }

    // Q2: the better claim, then the head jobs.
    bool before(const Child& a, const Child& b) const {
        return a.key != b.key ? a.key < b.key : before_exactly(a.node, b.node);
    }

    bool before_exactly(NodeIndex a, NodeIndex b) const {
        const Side& x = sides_[a];
        const Side& y = sides_[b];
        const std::weak_ordering claim = compare_ratios(x.numerator, x.weight, y.numerator, y.weight);
        if (claim != 0) return claim < 0;
        const Entry& job_a = entries_[queues_[leaf_below(a)].next];
        const Entry& job_b = entries_[queues_[leaf_below(b)].next];
        if (job_a.eligible_since != job_b.eligible_since) return job_a.eligible_since < job_b.eligible_since;
        if (job_a.id != job_b.id) return job_a.id < job_b.id;
        return a < b;  // keeps the order strict where ids are not unique
    }

    Child child(NodeIndex n) const { return {keys_.key(sides_[n].numerator, sides_[n].weight), n}; }

    // Precondition: the nodes below have been done, which all have higher indices.
    void build_heap(Side& side, std::uint32_t child_count) {
        Child* heap = heap_.data() + side.first_child;
        for (NodeIndex c = side.first_child; c < side.first_child + child_count; ++c)
            if (has_jobs(c)) heap[side.children++] = child(c);
        for (std::uint32_t i = side.children / 2; i-- > 0;) sift_down(heap, side.children, i, heap[i]);
    }

    // Puts moved into the heap, whose place `hole` is free.
    void sift_down(Child* heap, std::uint32_t size, std::uint32_t hole, const Child moved) const {
        for (;;) {
            std::uint32_t next = 2 * hole + 1;
            if (next >= size) break;
            if (next + 1 < size) next += before(heap[next + 1], heap[next]) ? 1 : 0;
            if (!before(heap[next], moved)) break;
            heap[hole] = heap[next];
            hole = next;
        }
        heap[hole] = moved;
    }

    // The place's job is a position in entries_ still.
    Place pick() {
        const NodeIndex n = leaf_below(kRoot);
        Queue& queue = queues_[n];
        const Cost& cost = costs_[queue.next];
        const Place place{queue.next, queue.task};
        if (++queue.task == cost.places) {
            queue.task = 0;
            ++queue.next;
            skip_blocked(queue);
        }
        charge(n, scale_.cost(cost.rate, cost.length));
        return place;
    }

    // Adds the cost from n up to the root, and puts the heaps on the way right.
    void charge(NodeIndex n, Wide cost) {
        while (n != kRoot) {
            Side& side = sides_[n];
            side.numerator = std::min(side.numerator + cost, kMaxNumerator);
            Side& parent = sides_[side.parent];
            Child* heap = heap_.data() + parent.first_child;
            if (has_jobs(n))
                sift_down(heap, parent.children, 0, child(n));
            else if (--parent.children > 0)
                sift_down(heap, parent.children, 0, heap[parent.children]);
            n = side.parent;
        }
    }

    const std::vector<Entry>& entries_;
    const std::vector<Cost>& costs_;
    const Scale scale_;
    const bool eligible_only_;
    const RatioKeys keys_;
    std::vector<Side> sides_;
    std::vector<Queue> queues_;
    std::vector<Child> heap_;
};

// Appends the places of one class.
void order_class(const Tree& tree, std::span<const NodeUsage> usage, std::span<const PendingJob> jobs,
                 const Parameters& parameters, const SortedJobs& sorted, RunClass run_class,
                 std::vector<Place>& places) {
    const std::span<const Entry> entries = sorted.entries(run_class);
    if (entries.empty()) return;
    const Scale scale(parameters);
    const std::vector<Wide> claims = numerators(tree, usage, run_class, scale);
    if (std::all_of(entries.begin(), entries.end(), [](const Entry& entry) { return entry.eligible; })) {
        Filling(tree, claims, sorted, run_class, scale, false).run(places);
        return;
    }
    std::vector<Place> eligible;
    std::vector<Place> all;
    Filling(tree, claims, sorted, run_class, scale, true).run(eligible);
    Filling(tree, claims, sorted, run_class, scale, false).run(all);
    auto next = eligible.begin();
    for (const Place& place : all) places.push_back(jobs[place.job].eligible ? *next++ : place);
}

}  // namespace

std::vector<Place> order(const Tree& tree, std::span<const NodeUsage> usage, std::span<const PendingJob> jobs,
                         const Parameters& parameters) {
    const SortedJobs sorted(tree, jobs, parameters.quantum);
    std::vector<Place> places;
    places.reserve(jobs.size());
    for (RunClass run_class : {RunClass::kAllocated, RunClass::kUnallocated})
        order_class(tree, usage, jobs, parameters, sorted, run_class, places);
    return places;
}

}  // namespace budget
