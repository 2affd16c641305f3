// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of common/placement: rows say why, citing rules. Clusters and occupants are written as text, see Site.
// At the end single nodes are compared with a search over all sets of victims, and placements over several nodes
// are checked for what they promise, on thousands of small random clusters.
#include "common/placement.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/check_main.h"
#include "tests/scene_text.h"

namespace {

using namespace budget;

// --- a reference: all sets of victims, all sets of nodes, all ways to share out ---

struct Job {
    std::vector<Holding> holdings;
    std::uint64_t group = 0;
    bool may_go = false;
    VictimCost cost;
};

struct World {
    std::vector<Holding> totals;
    std::vector<bool> open;
    std::vector<Job> jobs;
    PlacementRequest request;
};

struct Bill {
    Wide weight = 0;
    std::int64_t rank = -1;
    Wide lost = 0;
    std::size_t count = 0;
    std::vector<std::uint64_t> ties = {};
    bool operator<(const Bill& other) const {
        return std::tie(weight, rank, lost, count, ties) <
               std::tie(other.weight, other.rank, other.lost, other.count, other.ties);
    }
    bool operator==(const Bill& other) const { return !(*this < other) && !(other < *this); }
};

Bill bill_of(const World& world, const std::set<Occupant>& victims) {
    Bill bill;
    std::map<std::uint64_t, std::uint64_t> group_ties;
    for (Occupant o : victims) {
        const Job& job = world.jobs[o];
        bill.lost += job.cost.lost;
        ++bill.count;
        if (job.group == 0)
            bill.ties.push_back(job.cost.tie);
        else if (const auto [entry, fresh] = group_ties.try_emplace(job.group, job.cost.tie); !fresh)
            entry->second = std::min(entry->second, job.cost.tie);
        if (!job.cost.allocated) continue;
        bill.weight += job.cost.rate;
        bill.rank = std::max<std::int64_t>(bill.rank, job.cost.claim_rank);
    }
    for (const auto& [group, tie] : group_ties) bill.ties.push_back(tie);
    std::sort(bill.ties.begin(), bill.ties.end());
    return bill;
}

// What is left on each node, of one kind of GPU.
struct Left {
    std::int64_t gpus = 0;
    std::int64_t cpus = 0;
    std::int64_t memory = 0;
    bool occupied = false;
};

std::vector<Left> left_without(const World& world, const std::set<Occupant>& victims) {
    std::vector<Left> left(world.open.size());
    for (const Holding& total : world.totals) {
        left[total.node].gpus += total.room.gpus;
        left[total.node].cpus += total.room.cpus;
        left[total.node].memory += static_cast<std::int64_t>(total.room.memory);
    }
    for (Occupant o = 0; o < world.jobs.size(); ++o) {
        if (victims.count(o) != 0) continue;
        for (const Holding& held : world.jobs[o].holdings) {
            left[held.node].gpus -= held.room.gpus;
            left[held.node].cpus -= held.room.cpus;
            left[held.node].memory -= static_cast<std::int64_t>(held.room.memory);
            left[held.node].occupied = true;
        }
    }
    return left;
}

// Can these nodes from `first` on give so many GPUs and cores, each its least?
bool can_give(const World& world, const std::vector<Left>& left, const std::vector<NodeId>& nodes, std::size_t first,
              std::int64_t gpus, std::int64_t cpus) {
    const PlacementRequest& r = world.request;
    if (first == nodes.size()) return gpus <= 0 && cpus <= 0;
    const Left& node = left[nodes[first]];
    if (r.whole_nodes && node.occupied) return false;
    const std::int64_t chunk = r.gpu_chunk;
    const std::int64_t wanted = (std::int64_t{r.gpus} + chunk - 1) / chunk * chunk;
    std::int64_t least = (std::int64_t{r.gpus_per_node} + chunk - 1) / chunk * chunk;
    if (least == 0 && static_cast<std::int64_t>(nodes.size()) * chunk <= wanted) least = chunk;
    for (std::int64_t g = least; g <= std::max<std::int64_t>(node.gpus, 0); g += chunk) {
        const std::int64_t c_least = std::max<std::int64_t>(r.cpus_per_node, g * r.cpus_per_gpu);
        for (std::int64_t c = c_least; c <= std::max<std::int64_t>(node.cpus, 0); ++c) {
            const std::int64_t memory = static_cast<std::int64_t>(r.memory_per_node) +
                                        c * static_cast<std::int64_t>(r.memory_per_cpu) +
                                        g * static_cast<std::int64_t>(r.memory_per_gpu);
            if (memory > std::max<std::int64_t>(node.memory, 0)) break;
            if (can_give(world, left, nodes, first + 1, gpus - g, cpus - c)) return true;
        }
    }
    return false;
}

bool fits_on(const World& world, const std::set<Occupant>& victims, const std::vector<NodeId>& nodes) {
    for (NodeId n : nodes)
        if (!world.open[n] || (!world.request.allowed.empty() && !world.request.allowed[n])) return false;
    return can_give(world, left_without(world, victims), nodes, 0, world.request.gpus, world.request.cpus);
}

bool fits_somewhere(const World& world, const std::set<Occupant>& victims) {
    const auto count = world.open.size();
    for (std::uint32_t set = 1; set < 1U << count; ++set) {
        std::vector<NodeId> nodes;
        for (NodeId n = 0; n < count; ++n)
            if ((set >> n & 1) != 0) nodes.push_back(n);
        if (nodes.size() < world.request.min_nodes) continue;
        if (world.request.max_nodes != 0 && nodes.size() > world.request.max_nodes) continue;
        if (world.request.max_nodes == 0 && world.request.gpus == 0 && world.request.cpus == 0 &&
            nodes.size() > world.request.min_nodes)
            continue;
        if (fits_on(world, victims, nodes)) return true;
    }
    return false;
}

// Whole groups of those that may go.
bool rightful(const World& world, const std::set<Occupant>& victims) {
    for (Occupant o : victims) {
        if (!world.jobs[o].may_go) return false;
        for (Occupant other = 0; world.jobs[o].group != 0 && other < world.jobs.size(); ++other)
            if (world.jobs[other].group == world.jobs[o].group && victims.count(other) == 0) return false;
    }
    return true;
}

std::optional<Bill> cheapest(const World& world) {
    std::optional<Bill> best;
    for (std::uint32_t set = 0; set < 1U << world.jobs.size(); ++set) {
        std::set<Occupant> victims;
        for (Occupant o = 0; o < world.jobs.size(); ++o)
            if ((set >> o & 1) != 0) victims.insert(o);
        if (!rightful(world, victims)) continue;
        const Bill bill = bill_of(world, victims);
        if ((!best || bill < *best) && fits_somewhere(world, victims)) best = bill;
    }
    return best;
}

// --- random worlds ---

World random_world(std::mt19937_64& random, bool single) {
    const auto up_to = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % (n + 1)); };
    World world;
    const NodeId nodes = 1 + up_to(3);
    const bool scarce = up_to(3) == 0;  // cores and memory matter
    for (NodeId n = 0; n < nodes; ++n) {
        world.totals.push_back(
            {.node = n, .kind = 0, .room = {.gpus = 2 + up_to(2), .cpus = scarce ? 5U : 8U, .memory = 8}});
        world.open.push_back(up_to(7) != 0);
    }
    std::vector<Left> left = left_without(world, {});
    const std::uint32_t count = up_to(6);
    for (std::uint32_t i = 0; i < count; ++i) {
        Job job;
        const std::uint32_t spread = up_to(4) == 0 ? 1 + up_to(nodes - 1) : 1;
        const NodeId from = up_to(nodes - 1);
        for (std::uint32_t part = 0; part < spread; ++part) {
            const NodeId n = (from + part) % nodes;
            Left& here = left[n];
            const std::uint32_t gpus = up_to(static_cast<std::uint64_t>(std::max<std::int64_t>(here.gpus, 0)));
            const std::uint32_t cpus =
                std::min<std::uint32_t>(static_cast<std::uint32_t>(here.cpus), scarce ? 1 + up_to(2) : gpus);
            const std::uint32_t memory = std::min<std::uint32_t>(static_cast<std::uint32_t>(here.memory), up_to(2));
            here.gpus -= gpus;
            here.cpus -= cpus;
            here.memory -= memory;
            job.holdings.push_back({.node = n, .kind = 0, .room = {.gpus = gpus, .cpus = cpus, .memory = memory}});
            job.cost.rate += gpus * kGpu;
        }
        job.may_go = up_to(4) != 0;
        job.group = up_to(5) == 0 ? 7 : 0;
        job.cost.allocated = up_to(3) != 0;
        job.cost.claim_rank = up_to(2);
        job.cost.lost = up_to(3) * 100;
        job.cost.tie = 100 + i;
        world.jobs.push_back(job);
    }
    PlacementRequest& r = world.request;
    if (single) {
        r.max_nodes = 1;
        r.gpus = 1 + up_to(3);
    } else {
        r.min_nodes = 1 + up_to(2);
        r.max_nodes = up_to(1) == 0 ? 0 : r.min_nodes + up_to(1);
        if (up_to(1) == 0)
            r.gpus = 1 + up_to(8);
        else
            r.gpus_per_node = 1 + up_to(3);
    }
    if (up_to(4) == 0) r.gpu_chunk = 2;
    if (up_to(3) == 0) r.cpus_per_gpu = 1;
    if (up_to(4) == 0) r.cpus_per_node = 1 + up_to(3);
    if (single && up_to(4) == 0) r.cpus = up_to(5);
    if (up_to(4) == 0) r.memory_per_node = up_to(6);
    if (up_to(7) == 0) r.memory_per_gpu = 1;
    if (up_to(7) == 0) r.memory_per_cpu = 1;
    if (up_to(7) == 0) r.whole_nodes = true;
    if (up_to(5) == 0)
        for (NodeId n = 0; n < nodes; ++n) r.allowed.push_back(up_to(2) != 0);
    return world;
}

Cluster cluster_of(const World& world, std::vector<VictimCost>& costs, std::vector<bool>& may_go) {
    Cluster cluster(world.open.size(), world.totals, world.open);
    for (const Job& job : world.jobs) {
        cluster.add(job.holdings, job.group);
        costs.push_back(job.cost);
        may_go.push_back(job.may_go);
    }
    return cluster;
}

std::optional<Placement> answer(const World& world) {
    std::vector<VictimCost> costs;
    std::vector<bool> may_go;
    const Cluster cluster = cluster_of(world, costs, may_go);
    return cluster.fit(world.request, Victims(may_go, costs));
}

std::vector<NodeId> nodes_of(const Placement& placement) {
    std::vector<NodeId> nodes;
    for (const Holding& place : placement.places)
        if (nodes.empty() || nodes.back() != place.node) nodes.push_back(place.node);
    return nodes;
}

// What every placement promises.
void check_promises(const World& world, const Placement& placement, int seed) {
    const std::set<Occupant> victims(placement.victims.begin(), placement.victims.end());
    ck_assert_msg(victims.size() == placement.victims.size(), "seed %d: a victim twice", seed);
    ck_assert_msg(rightful(world, victims), "seed %d: a victim that may not go, or a part of a group", seed);
    const std::vector<NodeId> nodes = nodes_of(placement);
    const PlacementRequest& r = world.request;
    ck_assert_msg(nodes.size() >= r.min_nodes && (r.max_nodes == 0 || nodes.size() <= r.max_nodes),
                  "seed %d: wrong number of nodes", seed);
    const std::vector<Left> left = left_without(world, victims);
    std::int64_t gpus = 0;
    std::int64_t cpus = 0;
    for (const Holding& place : placement.places) {
        const Left& node = left[place.node];
        const auto memory = static_cast<std::int64_t>(place.room.memory);
        ck_assert_msg(world.open[place.node] && (r.allowed.empty() || r.allowed[place.node]), "seed %d: node", seed);
        ck_assert_msg(place.room.gpus <= node.gpus && place.room.cpus <= node.cpus && memory <= node.memory,
                      "seed %d: more than is free", seed);
        ck_assert_msg(r.whole_nodes || place.room.gpus % r.gpu_chunk == 0, "seed %d: chunk", seed);
        ck_assert_msg(place.room.gpus >= r.gpus_per_node && place.room.cpus >= r.cpus_per_node, "seed %d: least", seed);
        ck_assert_msg(place.room.cpus >= place.room.gpus * r.cpus_per_gpu || r.whole_nodes, "seed %d: cores", seed);
        ck_assert_msg(!r.whole_nodes || !node.occupied, "seed %d: a whole node with somebody on it", seed);
        gpus += place.room.gpus;
        cpus += place.room.cpus;
    }
    ck_assert_msg(gpus >= r.gpus && cpus >= r.cpus, "seed %d: less than asked for", seed);
    // P5: nobody can be left out.
    for (Occupant o : placement.victims) {
        std::set<Occupant> fewer = victims;
        for (Occupant other : placement.victims)
            if (other == o || (world.jobs[o].group != 0 && world.jobs[other].group == world.jobs[o].group))
                fewer.erase(other);
        ck_assert_msg(!fits_on(world, fewer, nodes), "seed %d: victim %u is not needed", seed, o);
    }
}

START_TEST(one_node_as_the_reference) {
    int found = 0;
    for (int seed = 0; seed < rounds(20000); ++seed) {
        std::mt19937_64 random(static_cast<std::uint64_t>(seed));
        const World world = random_world(random, true);
        const std::optional<Bill> expected = cheapest(world);
        const std::optional<Placement> placement = answer(world);
        ck_assert_msg(expected.has_value() == placement.has_value(), "seed %d: expected %d, got %d", seed,
                      expected.has_value(), placement.has_value());
        if (!placement) continue;
        check_promises(world, *placement, seed);
        const Bill bill = bill_of(world, {placement->victims.begin(), placement->victims.end()});
        ck_assert_msg(bill == *expected, "seed %d: not the cheapest victims", seed);
        if (!placement->victims.empty()) ++found;
    }
    ck_assert_msg(found > rounds(20000) / 20, "too few rounds with victims: %d", found);
}
END_TEST

START_TEST(several_nodes_keep_the_promises) {
    int found = 0;
    int dearer = 0;
    int missed = 0;
    for (int seed = 0; seed < rounds(10000); ++seed) {
        std::mt19937_64 random(static_cast<std::uint64_t>(seed) + 1000000);
        const World world = random_world(random, false);
        const std::optional<Placement> placement = answer(world);
        const std::optional<Bill> expected = cheapest(world);
        if (!placement) {
            if (expected) ++missed;
            continue;
        }
        check_promises(world, *placement, seed);
        ck_assert_msg(expected.has_value(), "seed %d: a placement that cannot be", seed);
        if (placement->victims.empty()) continue;
        ++found;
        const Bill bill = bill_of(world, {placement->victims.begin(), placement->victims.end()});
        ck_assert_msg(!(bill < *expected), "seed %d: cheaper than the reference", seed);
        if (*expected < bill) ++dearer;
    }
    ck_assert_msg(found > rounds(10000) / 20, "too few rounds with victims: %d", found);
    ck_assert_msg(missed == 0, "%d of %d not placed that could be", missed, found);
    ck_assert_msg(dearer <= found / 50, "%d of %d dearer than need be", dearer, found);
}
END_TEST

START_TEST(any_order_gives_the_same) {
    for (int seed = 0; seed < rounds(5000); ++seed) {
        std::mt19937_64 random(static_cast<std::uint64_t>(seed) + 2000000);
        const World world = random_world(random, seed % 2 == 0);
        const std::optional<Placement> placement = answer(world);
        std::vector<Occupant> order(world.jobs.size());
        for (Occupant o = 0; o < order.size(); ++o) order[o] = o;
        std::shuffle(order.begin(), order.end(), random);
        World other = world;
        for (Occupant o = 0; o < order.size(); ++o) other.jobs[o] = world.jobs[order[o]];
        const std::optional<Placement> again = answer(other);
        ck_assert_msg(placement.has_value() == again.has_value(), "seed %d", seed);
        if (!placement) continue;
        std::set<std::uint64_t> ties;
        std::set<std::uint64_t> ties_again;
        for (Occupant o : placement->victims) ties.insert(world.jobs[o].cost.tie);
        for (Occupant o : again->victims) ties_again.insert(other.jobs[o].cost.tie);
        ck_assert_msg(ties == ties_again, "seed %d: other victims in another order", seed);
        ck_assert_msg(placement->places == again->places, "seed %d: other places in another order", seed);
    }
}
END_TEST

// --- rows ---

std::uint32_t number(const std::string& text) {
    ck_assert_msg(!text.empty(), "a number is missing");
    return static_cast<std::uint32_t>(std::stoul(text));
}

// Lists by commas.
//   nodes:   GPUS/CORES/MEMORY     8/64/512, 4a+4b/64/512 closed    (GPUs of kinds a and b; kind a if not said)
//   runs:    NAME NODE=GPUS/CORES/MEMORY ... and the words lost=5 (GPU-hours) rank=2 group=3 rate=1 (GPUs) tie=4,
//            free: unallocated, fixed: no victim.
//            By default: rank 1, all equal, ties by the names, rate as GPUs held.
//   request: words nodes=2, nodes=1-4 (- : as many as it takes), gpus= per_node= chunk= cores= cores_node=
//            cores_gpu= mem_node= mem_core= mem_gpu= kind=b whole allowed=0+2
class Site {
   public:
    Site(const std::string& nodes, const std::string& runs, const std::string& request) {
        for (const std::string& node : split(nodes, ',')) add_node(node);
        for (const std::string& run : split(runs, ',')) add_run(run);
        for (const std::string& word : split(request, ' ')) add_demand(word);
    }

    // "n0=8 n1=8 - x y": places and victims; "none".
    std::string text() const {
        Cluster cluster = make();
        const std::optional<Placement> placement = cluster.fit(request_, Victims(may_go_, costs_));
        if (!placement) return cluster.can_ever_fit(request_) ? "none" : "never";
        std::string text;
        for (const Holding& place : placement->places) {
            text += "n" + std::to_string(place.node) + "=" + std::to_string(place.room.gpus);
            if (place.kind == 1) text += "b";
            text += " ";
        }
        text += "-";
        for (Occupant o : placement->victims) text += " " + names_[o];
        return text;
    }

    Cluster make() const {
        Cluster cluster(open_.size(), totals_, open_);
        for (std::size_t i = 0; i < holdings_.size(); ++i) cluster.add(holdings_[i], groups_[i]);
        return cluster;
    }
    const PlacementRequest& request() const { return request_; }

   private:
    static Holding holding(NodeId node, const std::string& text) {
        const std::vector<std::string> parts = split(text, '/');
        Holding holding;
        holding.node = node;
        holding.room.gpus = number(parts[0]);
        holding.kind = parts[0].back() == 'b' ? 1 : 0;
        if (parts.size() > 1) holding.room.cpus = number(parts[1]);
        if (parts.size() > 2) holding.room.memory = number(parts[2]);
        return holding;
    }

    void add_node(const std::string& text) {
        const std::vector<std::string> words = split(text, ' ');
        const auto node = static_cast<NodeId>(open_.size());
        open_.push_back(words.size() < 2 || words[1] != "closed");
        const std::size_t plus = words[0].find('+');
        if (plus != std::string::npos) totals_.push_back(holding(node, words[0].substr(0, plus)));
        totals_.push_back(holding(node, plus == std::string::npos ? words[0] : words[0].substr(plus + 1)));
    }

    void add_run(const std::string& text) {
        const std::vector<std::string> words = split(text, ' ');
        names_.push_back(words[0]);
        VictimCost cost{.allocated = true, .claim_rank = 1, .tie = holdings_.size()};
        std::vector<Holding> held;
        bool may_go = true;
        groups_.push_back(0);
        for (std::size_t i = 1; i < words.size(); ++i) {
            const std::string value = words[i].substr(words[i].find('=') + 1);
            const std::string key = words[i].substr(0, words[i].find('='));
            if (words[i] == "free")
                cost.allocated = false;
            else if (words[i] == "fixed")
                may_go = false;
            else if (key == "lost")
                cost.lost = Wide{number(value)} * kGpu * kHour;
            else if (key == "rank")
                cost.claim_rank = number(value);
            else if (key == "tie")
                cost.tie = number(value);
            else if (key == "group")
                groups_.back() = number(value);
            else if (key == "rate")
                cost.rate = number(value) * kGpu;
            else
                held.push_back(holding(number(key), value));
        }
        if (cost.rate == 0)
            for (const Holding& part : held) cost.rate += part.room.gpus * kGpu;
        holdings_.push_back(held);
        costs_.push_back(cost);
        may_go_.push_back(may_go);
    }

    void add_demand(const std::string& word) {
        const std::string key = word.substr(0, word.find('='));
        const std::string value = word.substr(word.find('=') + 1);
        if (key == "nodes") {
            request_.min_nodes = number(value);
            const std::size_t dash = value.find('-');
            if (dash == std::string::npos)
                request_.max_nodes = request_.min_nodes;
            else if (dash + 1 < value.size())
                request_.max_nodes = number(value.substr(dash + 1));
        } else if (key == "kind") {
            request_.kind = value == "b" ? 1 : 0;
        } else if (key == "whole") {
            request_.whole_nodes = true;
        } else if (key == "allowed") {
            request_.allowed.assign(open_.size(), false);
            for (const std::string& node : split(value, '+')) request_.allowed[number(node)] = true;
        } else {
            const std::map<std::string, std::uint32_t*> counts = {{"gpus", &request_.gpus},
                                                                  {"per_node", &request_.gpus_per_node},
                                                                  {"chunk", &request_.gpu_chunk},
                                                                  {"cores", &request_.cpus},
                                                                  {"cores_node", &request_.cpus_per_node},
                                                                  {"cores_gpu", &request_.cpus_per_gpu}};
            const std::map<std::string, std::uint64_t*> sizes = {{"mem_node", &request_.memory_per_node},
                                                                 {"mem_core", &request_.memory_per_cpu},
                                                                 {"mem_gpu", &request_.memory_per_gpu}};
            if (counts.count(key) != 0)
                *counts.at(key) = number(value);
            else
                *sizes.at(key) = number(value);
        }
    }

    std::vector<Holding> totals_;
    std::vector<bool> open_;
    std::vector<std::string> names_;
    std::vector<std::vector<Holding>> holdings_;
    std::vector<std::uint64_t> groups_;
    std::vector<VictimCost> costs_;
    std::vector<bool> may_go_;
    PlacementRequest request_;
};

struct FitRow {
    const char* why;
    const char* nodes;
    const char* runs;
    const char* request;
    const char* expected;
};

#define FOUR "8/64/512, 8/64/512, 8/64/512, 8/64/512"
#define TWO "8/64/512, 8/64/512"
#define ONE "8/64/512"

const FitRow kFitRows[] = {
    // what is free
    {"Q5: an empty node, the lowest of equals", TWO, "", "nodes=1 gpus=4", "n0=4 -"},
    {"best fit: the node that keeps the least", FOUR, "w 1=3, x 2=5, y 3=4", "nodes=1 gpus=3", "n2=3 -"},
    {"best fit: a whole node stays whole", TWO, "w 1=1", "nodes=1 gpus=1", "n1=1 -"},
    {"two nodes for 16", FOUR, "w 0=1", "nodes=1- gpus=16", "n1=8 n2=8 -"},
    {"Q5: one of two nodes is not enough", TWO, "w 0=1 fixed", "nodes=2 per_node=8", "none"},
    {"fragments are put together if the job may be on several nodes", FOUR, "w 0=6, x 1=6, y 2=8, z 3=8",
     "nodes=1- gpus=4", "n0=2 n1=2 -"},
    {"and not if it may not", FOUR, "w 0=6 fixed, x 1=6 fixed, y 2=8 fixed, z 3=8 fixed", "nodes=1 gpus=4", "none"},
    {"the smaller rest: 5 + 3, not 8 + 0", "8/64/512, 8/64/512, 8/64/512", "w 0=3, x 1=5", "nodes=2 gpus=8",
     "n0=5 n1=3 -"},
    {"a node that takes no new work", "8/64/512 closed, 8/64/512", "", "nodes=1 gpus=1", "n1=1 -"},
    {"nor are its runs stopped for it", "8/64/512 closed, 8/64/512", "w 0=8, x 1=8 lost=9", "nodes=1 gpus=8",
     "n1=8 - x"},
    {"a closed node comes back: not never", "8/64/512 closed", "", "nodes=1 gpus=8", "none"},
    {"a job that may use some nodes alone", FOUR, "", "nodes=1 gpus=1 allowed=2+3", "n2=1 -"},
    {"more than a node has", TWO, "", "nodes=1 gpus=9", "never"},
    {"more nodes than there are", TWO, "", "nodes=3 per_node=1", "never"},
    {"more cores than a node has", TWO, "", "nodes=1 gpus=1 cores=65", "never"},
    {"more memory than a node has", TWO, "", "nodes=1 gpus=8 mem_gpu=65", "never"},
    {"a kind that is nowhere", TWO, "", "nodes=1 gpus=1 kind=b", "never"},
    {"cores for each GPU", TWO, "w 0=1/40", "nodes=1 gpus=4 cores_gpu=8", "n1=4 -"},
    {"memory of cores and of GPUs", TWO, "w 0=1/1/400", "nodes=1 gpus=2 cores=10 mem_core=10 mem_gpu=10", "n1=2 -"},
    {"GPUs by chunks: three are free, two count", "3/64/512, 8/64/512", "", "nodes=1- gpus=4 chunk=2", "n1=4 -"},
    {"chunks over nodes", "3/64/512, 3/64/512", "", "nodes=1- gpus=4 chunk=2", "n0=2 n1=2 -"},
    {"a whole node means nobody else on it", TWO, "w 0=1/1 fixed", "nodes=1 gpus=1 whole", "n1=8 -"},
    {"and all that it has", ONE, "", "nodes=1 gpus=2 whole", "n0=8 -"},
    {"kinds: only the one asked for", "4a+4b/64/512", "w 0=4b fixed", "nodes=1 gpus=1 kind=b", "none"},
    {"kinds: any, first of the kind with the least left", "4a+4b/64/512", "w 0=2b", "nodes=1 gpus=5", "n0=3 n0=2b -"},
    {"kinds: any may be all on a node", "4a+4b/64/512", "", "nodes=1 gpus=8", "n0=4 n0=4b -"},
    {"no GPUs at all", TWO, "w 0=0/60", "nodes=1 cores=8", "n1=0 -"},
    // P5
    {"P5: 2 victims rather than 5", TWO, "a 0=4, b 0=4, c 1=1, d 1=1, e 1=2, f 1=2, g 1=2", "nodes=1 gpus=8",
     "n0=8 - a b"},
    {"P5: on 2 x 8 the fewest of all nodes", FOUR,
     "a0 0=4, a1 0=4, b0 1=2, b1 1=2, b2 1=2, b3 1=1, b4 1=1, c0 2=1, c1 2=1, c2 2=1, c3 2=1, c4 2=1, c5 2=1, c6 2=1, "
     "c7 2=1, d0 3=2, d1 3=2, d2 3=1, d3 3=1, d4 3=1, d5 3=1",
     "nodes=2 per_node=8", "n0=8 n1=8 - a0 a1 b0 b1 b2 b3 b4"},
    {"P5: one big victim rather than eight small ones of the same lost work", TWO,
     "a 1=8 lost=8, b 0=1 lost=1, c 0=1 lost=1, d 0=1 lost=1, e 0=1 lost=1, f 0=1 lost=1, g 0=1 lost=1, h 0=1 lost=1, "
     "i 0=1 lost=1",
     "nodes=1 gpus=8", "n1=8 - a"},
    {"P5: unallocated first, however many and however much they lose", TWO,
     "a 0=8, b 1=2 free lost=90, c 1=2 free lost=90, d 1=4 free lost=90", "nodes=1 gpus=8", "n1=8 - b c d"},
    {"P5: then the least weight: a run of 1, not of 8", TWO, "a 0=8, b 1=1 lost=50, c 1=7 lost=50", "nodes=1 gpus=1",
     "n1=1 - b"},
    {"P5: then the worst claim, however much it loses", TWO, "a 0=8 rank=1, b 1=8 rank=0 lost=99", "nodes=1 gpus=8",
     "n1=8 - b"},
    {"P5: of several, the best claim among them counts", TWO,
     "a 0=4 rank=2, b 0=4 rank=0, c 1=4 rank=1 lost=9, d 1=4 rank=1 lost=9", "nodes=1 gpus=8", "n1=8 - c d"},
    {"P5: then the least work lost", TWO, "a 0=8 lost=3, b 1=8 lost=2", "nodes=1 gpus=8", "n1=8 - b"},
    {"P5: equal in all: the lower tie", TWO, "a 0=8 tie=7, b 1=8 tie=6", "nodes=1 gpus=8", "n1=8 - b"},
    {"P5: one task of ten, the one that loses least", ONE,
     "a 0=1 lost=2, b 0=1 lost=2, c 0=1 lost=1, d 0=1 lost=2, e 0=1 lost=2, f 0=1 lost=2, g 0=1 lost=2, h 0=1 lost=2",
     "nodes=1 gpus=1", "n0=1 - c"},
    {"P5: what is free on the node comes first", TWO, "a 0=3 lost=1, b 0=2 lost=2, c 1=8", "nodes=1 gpus=5",
     "n0=5 - b"},
    {"P5: nobody gives way for what cannot be had", TWO, "a 0=7, b 0=1 fixed, c 1=7, d 1=1 fixed", "nodes=1 gpus=8",
     "none"},
    {"Q5: nor for one node of two", TWO, "a 0=8, b 1=8 fixed", "nodes=2 per_node=8", "none"},
    {"an idle node and one victim", TWO, "a 1=8", "nodes=2 per_node=8", "n0=8 n1=8 - a"},
    {"an idle node among many: it is used", FOUR, "a 0=8, b 1=8, d 3=8", "nodes=2 per_node=8", "n0=8 n2=8 - a"},
    {"only the kind asked for is freed", "8a/64/512, 8b/64/512", "a 0=8, b 1=4b lost=9, c 1=4b lost=9",
     "nodes=1 gpus=4 kind=b", "n1=4b - b"},
    {"a node where cores are short because of others: another one", TWO, "cpu 0=0/60 fixed, a 0=8/4, b 1=8/8 lost=9",
     "nodes=1 gpus=8 cores_gpu=1", "n1=8 - b"},
    {"cores are short on all of them: nobody is stopped in vain", ONE, "cpu 0=0/60 fixed, a 0=8/4",
     "nodes=1 gpus=8 cores_gpu=1", "none"},
    {"memory is short", TWO, "m 0=0/1/500 fixed, a 0=8/8/8, b 1=8/8/400 lost=9", "nodes=1 gpus=8 mem_gpu=10",
     "n1=8 - b"},
    {"a run that holds cores alone gives way if these are missing", ONE, "a 0=4/8, b 0=0/50 rate=1 free",
     "nodes=1 gpus=4 cores=20", "n0=4 - b"},
    {"GPUs are free, memory is not: the one that holds it", ONE, "a 0=2/8/100, b 0=2/8/400",
     "nodes=1 gpus=4 mem_node=300", "n0=4 - b"},
    {"a run over two nodes counts once", FOUR, "a 0=8 1=8, b 2=8, c 3=8", "nodes=2 per_node=8", "n0=8 n1=8 - a"},
    {"but not for a place on one", "8/64/512, 8/64/512, 8/64/512", "a 0=8 1=8, b 2=8", "nodes=1 gpus=8", "n2=8 - b"},
    {"parts of one job go together, and cost together", "8/64/512, 8/64/512, 8/64/512",
     "a 0=8 group=5, b 1=8 group=5, c 2=8 lost=9", "nodes=1 gpus=8", "n2=8 - c"},
    {"parts of one job go together", TWO, "a 0=8 group=5, b 1=8 group=5", "nodes=1 gpus=8", "n0=8 - a b"},
    {"and not if one of them may not", TWO, "a 0=8 group=5, b 1=8 group=5 fixed", "nodes=1 gpus=8", "none"},
    {"a whole node: all on it go", TWO, "a 0=1 lost=9, b 1=1, c 1=1", "nodes=1 gpus=1 whole", "n0=8 - a"},
    {"a whole node: not where somebody may not", TWO, "a 0=1 lost=9, b 1=1 free, c 1=0/1 fixed", "nodes=1 gpus=1 whole",
     "n0=8 - a"},
    {"chunks: a GPU that is free alone is of no use", ONE, "a 0=1 lost=1, b 0=6 lost=1 rate=1, c 0=1 fixed",
     "nodes=1 gpus=2 chunk=2", "n0=2 - b"},
    {"16 GPUs anywhere: what is free, and the cheapest for the rest", FOUR,
     "a 0=8 lost=5, b 1=4, c 2=2 lost=1, d 2=6 lost=9, e 3=8 lost=9", "nodes=1- gpus=6", "n1=4 n2=2 - c"},
    {"a holding beyond what is there counts as all of it", ONE, "a 0=9/99/999", "nodes=1 gpus=8", "n0=8 - a"},
    {"more in use than there is: all of it has to go", ONE, "a 0=8, b 0=8", "nodes=1 gpus=1", "n0=1 - a b"},
};

START_TEST(fit_row) {
    const FitRow& row = kFitRows[_i];
    const std::string text = Site(row.nodes, row.runs, row.request).text();
    ck_assert_msg(text == row.expected, "%s: expected %s, got %s", row.why, row.expected, text.c_str());
}
END_TEST

START_TEST(who_has_gone_is_forgotten) {
    const Site site(TWO, "a 0=8 group=4, b 1=8 group=4", "nodes=1 gpus=8");
    Cluster cluster = site.make();
    ck_assert_msg(!cluster.fit(site.request()), "it is full");
    cluster.remove(0);
    cluster.remove(0);
    const std::optional<Placement> placement = cluster.fit(site.request());
    ck_assert_msg(placement && placement->places.front() == (Holding{.node = 0, .kind = 0, .room = {8, 0, 0}}), "n0");
    const Occupant next = cluster.add(placement->places);
    ck_assert_msg(next == 2 && !cluster.fit(site.request()), "it is full again");
    const std::vector<VictimCost> costs(2);
    const std::optional<Placement> other = cluster.fit(site.request(), Victims({true, true}, costs));
    ck_assert_msg(other && other->victims == std::vector<Occupant>{1}, "b, whose group is b alone now");
}
END_TEST

Suite* placement_suite() {
    Suite* suite = suite_create("placement");
    TCase* rows = tcase_create("rows");
    tcase_add_loop_test(rows, fit_row, 0, static_cast<int>(std::size(kFitRows)));
    tcase_add_test(rows, who_has_gone_is_forgotten);
    suite_add_tcase(suite, rows);
    TCase* random = tcase_create("random");
    tcase_set_timeout(random, 60);
    tcase_add_test(random, one_node_as_the_reference);
    tcase_add_test(random, several_nodes_keep_the_promises);
    tcase_add_test(random, any_order_gives_the_same);
    suite_add_tcase(suite, random);
    return suite;
}

}  // namespace

int main() {
    return run_suite(placement_suite());
}
