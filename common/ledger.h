// SPDX-License-Identifier: GPL-2.0-or-later
//
// Who has used how much (rules U1 to U9): the runs of jobs, charged to their
// association by name, and their sums over the window at every node of a
// budget tree. Level-triggered: the caller shows each run as it is, as often
// as it likes, and the ledger takes up the difference, so nothing is charged
// twice. GPU time in 1/5040 GPU-seconds. Not thread-safe; owned by one engine.
#ifndef SLURM_BUDGET_COMMON_LEDGER_H
#define SLURM_BUDGET_COMMON_LEDGER_H

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tree.h"
#include "units.h"
#include "usage_window.h"

namespace budget {

// A run: one start of one job. Slurm's restart count tells requeued runs apart.
struct RunKey {
    std::uint32_t job_id = 0;
    std::uint32_t restart_count = 0;
    bool operator==(const RunKey&) const = default;
};

enum class RunClass : std::uint8_t {
    kAllocated,    // charged to the budget
    kUnallocated,  // free; counted in a window of its own (U9)
};

// A run as it is at the ledger's now.
struct RunView {
    RunKey key = {};
    AssocId assoc = 0;  // as in any tree set so far; an unknown one leaves the run where it is, at first at the root
    RunClass run_class = RunClass::kAllocated;
    Rate rate = 0;  // while not suspended
    Seconds start = 0;
    std::optional<Seconds> end = {};  // nothing while it runs
    Seconds contract = 0;             // protected seconds from the start (0: none); suspended time not counted (U6)
    bool suspended = false;
    bool refunded = false;         // U7: the cluster broke the contract, nothing is charged
    Seconds changed = 0;           // when rate or suspended last changed (resize or suspend time), 0: unknown
    Seconds suspended_before = 0;  // how long it was suspended in all, but for a suspension that lasts
    bool by_itself = false;        // U11: it ended by itself; of one with an end alone
    Seconds submitted = 0;         // 0: unknown. A run that starts later than a known one of its key, and was
                                   // submitted later, is of another job: Slurm has started its ids over
};

// A run, or a part of one between two resizes, as the accounting database has it (U10).
struct PastRun {
    std::uint32_t job_id = 0;
    AssocId assoc = 0;  // counts if it is of this account and user
    std::string_view account;
    std::string_view user;
    std::string_view partition;  // of the job
    RunClass run_class = RunClass::kAllocated;
    Rate rate = 0;
    Seconds start = 0;
    Seconds end = 0;
    Seconds suspended = 0;  // nobody knows when: it is taken to have been at the end
    Seconds contract = 0;
    bool refunded = false;
    bool resized = false;    // it ended by a resize, and so goes on
    bool by_itself = false;  // U11: it ended by itself
};

// From this instant on a run is like this.
struct RunStep {
    Seconds at = 0;
    Rate rate = 0;
    bool suspended = false;
    bool operator==(const RunStep&) const = default;
};

// What the ledger knows of a run. One cache line.
struct alignas(64) Run {
    RunKey key = {};
    OwnerIndex owner = 0;        // Ledger::owner
    std::uint32_t contract = 0;  // seconds
    Seconds start = 0;
    Seconds until = 0;                                 // its end, or while it runs when it was last seen or told of
    Rate rate = 0;                                     // from its start on
    std::unique_ptr<std::vector<RunStep>> steps = {};  // what changed after the start, by time; mostly none
    RunClass run_class = RunClass::kAllocated;
    bool refunded : 1 = false;
    bool ended : 1 = false;
    bool gone : 1 = false;       // ended because it was missing from a scan; only the database may have told its end
    bool resized : 1 = false;    // a past run that ended by a resize
    bool by_itself : 1 = false;  // U11: it ended by itself

    // The ledger's own.
    bool beside : 1 = false;            // there may be past runs of its job that are parts of it
    bool expiring = false;              // listed among those that have ended
    std::uint8_t scan = 0;              // the last scan that saw it
    bool used = false;                  // is a run at all
    std::uint32_t open_position = ~0u;  // in the list of those that run
    std::uint32_t next = ~0u;           // in the chain of its bucket, or of free slots
};

// Does the view show another job under the key of a known run? Slurm has started its ids over: the view's
// run was submitted after the known one had started, or starts after that had ended.
bool is_another_job(const Run& run, const RunView& view);

// Who is charged: an association by name, whether it still exists or not.
struct Owner {
    std::string account;  // empty for the owner of runs whose association was never known
    std::string user;
    std::string partition;
    OwnerIndex parent = 0;   // of its account, or its account's parent, when last known
    bool exists = false;     // in the tree last set
    OwnerIndex heir = 0;     // the nearest that exists, from itself upwards (U8)
    NodeIndex node = kRoot;  // where its usage is shown in the tree last set
};

// Restart counts from here on are not Slurm's: of past runs, of which nobody tells the count,
inline constexpr std::uint32_t kPastRestarts = std::uint32_t{1} << 31;
// and of runs that were seen, and whose key has gone to another job.
inline constexpr std::uint32_t kRetiredRestarts = std::uint32_t{3} << 30;

// A ledger to be kept over the process's end.
struct SavedOwner {
    std::string account;
    std::string user;
    std::string partition;
    OwnerIndex parent = 0;
    bool operator==(const SavedOwner&) const = default;
};
struct SavedRun {
    RunKey key = {};
    OwnerIndex owner = 0;  // index into LedgerImage::owners
    RunClass run_class = RunClass::kAllocated;
    bool refunded = false;
    bool ended = false;
    bool gone = false;
    bool resized = false;
    bool by_itself = false;
    std::uint32_t contract = 0;
    Seconds start = 0;
    Seconds until = 0;
    Rate rate = 0;
    std::vector<RunStep> steps = {};
    bool operator==(const SavedRun&) const = default;
};
struct LedgerImage {
    Seconds now = 0;
    std::vector<SavedOwner> owners = {};  // the first is nobody
    std::vector<SavedRun> runs = {};      // by key
    bool operator==(const LedgerImage&) const = default;
};

// What a node of the tree has, itself and below it.
struct NodeUsage {
    Usage allocated;
    Usage unallocated;
    Wide commitment = 0;  // U4

    NodeUsage& operator+=(const NodeUsage& other) {
        allocated += other.allocated;
        unallocated += other.unallocated;
        commitment = saturating_add(commitment, other.commitment);
        return *this;
    }
};

// The runs known, by key. A slot keeps its run until it is erased. Job ids come
// in rows, so that chains by job id are short and neighbours in memory.
class RunTable {
   public:
    using Slot = std::uint32_t;
    static constexpr Slot kNone = ~Slot{0};

    Slot find(RunKey key) const;  // kNone where there is none
    Slot insert(RunKey key);      // precondition: there is none
    void erase(Slot slot);        // take_out() and release()
    void take_out(Slot slot);     // its run is no more, but the slot is not used again before
    void release(Slot slot);      // this
    std::size_t size() const { return size_; }
    Slot slots() const { return slots_; }  // used or not

    // Calls visit(slot) for the runs of one job. It may take out the run that it is called for.
    template <typename Visit>
    void for_each_of(std::uint32_t job_id, Visit visit) const {
        if (buckets_.empty()) return;
        Slot slot = buckets_[job_id & (buckets_.size() - 1)];
        while (slot != kNone) {
            const Slot next = (*this)[slot].next;
            if ((*this)[slot].key.job_id == job_id) visit(slot);
            slot = next;
        }
    }

    Run& operator[](Slot slot) { return chunks_[slot / kChunk][slot % kChunk]; }
    const Run& operator[](Slot slot) const { return chunks_[slot / kChunk][slot % kChunk]; }

   private:
    static constexpr Slot kChunk = 1024;

    Slot& bucket(RunKey key) { return buckets_[key.job_id & (buckets_.size() - 1)]; }
    Slot free_slot();
    void grow();

    std::vector<Slot> buckets_;  // a power of two of them
    std::vector<std::unique_ptr<Run[]>> chunks_;
    Slot slots_ = 0;
    Slot free_ = kNone;
    std::size_t size_ = 0;
};

// Owners by association id. Slurm counts ids up from 1, so that pages fill.
class OwnerById {
   public:
    static constexpr OwnerIndex kNone = ~OwnerIndex{0};

    OwnerIndex find(AssocId id) const;  // kNone where there is none
    void set(AssocId id, OwnerIndex owner);

   private:
    static constexpr AssocId kPage = 4096;
    std::vector<std::vector<OwnerIndex>> pages_;
};

class Ledger {
    using Slot = RunTable::Slot;

   public:
    // Precondition: 0 < window <= kMaxWindow. Time starts at 0. unused_charge_millis: U11, in thousandths.
    explicit Ledger(Seconds window, std::uint32_t unused_charge_millis = 0);

    // The tree in force from now on, built from these associations. Usage
    // follows its association by account, user and partition; that of associations no
    // longer there stays with the account they were under, or the nearest ancestor left (U8).
    void set_tree(std::span<const Association> associations, const Tree& tree);

    // A window of another length over the runs still known.
    void set_window(Seconds window);

    // U11: a run that ends by itself inside its contract is charged, beside what it used, its last rate for this
    // part of the contract that it did not use, in whole seconds, as if it had gone on for so long; nobody is
    // taken to be running then. Another part counts for all runs still known.
    void set_unused_charge(std::uint32_t millis);
    std::uint32_t unused_charge() const { return unused_millis_; }

    // Takes up the run as it is now; idempotent. A changed rate or suspension counts
    // from view.changed where that lies between the last change known and now,
    // else from now. Runs wholly before the window are passed over.
    void observe(const RunView& view);

    // A scan of all jobs at `now`: advances; runs without an end that are not observed
    // between the two calls have gone, and are taken to have ended when last seen.
    void begin_scan(Seconds now);
    void end_scan();

    // A run from the accounting database (U10), any number of times. What was seen of a run
    // while it was there goes before it: of such runs it only tells the rate before a resize, the owner
    // if no view has, and the end and refund of those that have gone. True if it has changed what is known.
    bool observe_past(const PastRun& past);

    // What is known of a run; nothing where it is unknown or forgotten.
    const Run* find(RunKey key) const;

    // All that has to be kept, and the ledger that had it, at another now, be it earlier than that
    // of the image, and over another window. Precondition: owners are within range.
    LedgerImage image() const;
    Ledger(Seconds window, const LedgerImage& image, Seconds now, std::uint32_t unused_charge_millis = 0);

    // Moves now, and with it the window; an earlier one than before has no effect.
    // Runs are forgotten once they have left the window.
    void advance(Seconds now);
    Seconds now() const { return allocated_.now(); }

    // Sums for every node of the tree last set, by NodeIndex; valid until the
    // ledger is changed. A node's usage is exactly the sum of its children's
    // and of what was charged to itself directly. O(owners) after a change.
    const std::vector<NodeUsage>& node_usage();

    // What was charged to each of these associations itself, in its own name or in that of
    // former ones below it (U8), by position; nothing is added up along the tree. For
    // the associations of the tree last set their sum is the root's node_usage().
    std::vector<NodeUsage> own_usage(std::span<const Association> associations);

    // The rate now in use by all runs, allocated and not.
    Rate running();

    std::size_t run_count() const { return runs_.size(); }

    // Calls visit(const Run&) for every run known, in no particular order.
    template <typename Visit>
    void for_each_run(Visit visit) const {
        for (Slot slot = 0; slot < runs_.slots(); ++slot) {
            if (runs_[slot].used) visit(runs_[slot]);
        }
    }

    const Owner& owner(OwnerIndex index) const { return owners_[index]; }
    std::size_t owner_count() const { return owners_.size(); }

   private:
    OwnerIndex intern(const Association& association);
    OwnerIndex heir(OwnerIndex index) const;
    // What past runs tell of the run that they were parts of.
    struct PastParts {
        struct Part {
            Seconds from = 0;
            Seconds to = 0;
            Rate rate = 0;
        };
        std::vector<Part> resized = {};
        OwnerIndex owner = 0;
    };

    OwnerIndex owner_of(const PastRun& past);
    OwnerIndex owner_of(const RunView& view, const Run& run, const PastParts& past) const;

    void observe_new(const RunView& view);
    void observe_whole(Run& run, Slot slot, const RunView& view);
    PastParts take_past(const RunView& view);
    static void take_up_parts(Run& run, const PastParts& parts);
    void take_up(Run& run, const RunView& view, OwnerIndex owner) const;
    void take_up_resume(Run& run, const RunView& view) const;
    void retire(Slot slot);
    RunKey free_key(std::uint32_t job_id, std::uint32_t first) const;

    Slot seen_at(std::uint32_t job_id, Seconds start, Seconds end) const;
    Slot find_past(std::uint32_t job_id, Seconds start) const;
    bool correct(Slot slot, const PastRun& past, Seconds start, Seconds end);
    bool take_up_past(const PastRun& past, Seconds start, Seconds end);
    void mark_beside(std::uint32_t job_id);
    void cut_front(Slot slot, Seconds start);
    bool replace(Slot slot, Run next);
    void drop(Slot slot);
    void restore(const SavedRun& saved, OwnerIndex owner);

    void close(Slot slot);
    void file(Slot slot);
    void forget_runs();

    void post(const Run& run, Seconds from, int sign);
    void post_unused(const Run& run, int sign);
    Seconds prolongation(const Run& run) const;
    bool counts_still(const Run& run) const;
    Seconds reach(Seconds end, Seconds contract, bool by_itself) const;
    UsageWindow empty_window(Seconds length) const;

    void sum_up();
    void sum_owners();

    UsageWindow allocated_;
    UsageWindow unallocated_;
    UsageWindow unused_;  // of allocated runs (U11)
    std::uint32_t unused_millis_ = 0;

    std::vector<Owner> owners_;
    OwnerIndex root_owner_ = 0;  // of the root account
    std::unordered_map<std::string, OwnerIndex> owner_by_name_;
    OwnerById owner_by_assoc_;  // those of former trees too
    std::vector<NodeIndex> node_parents_;

    RunTable runs_;
    std::vector<Slot> open_;  // the runs without an end
    std::deque<Slot> ended_;  // those with one, in the order in which they ended
    std::uint8_t scan_ = 0;

    bool summed_ = false;  // whether these are up to date:
    std::vector<NodeUsage> by_owner_;
    std::vector<NodeUsage> by_node_;
};

}  // namespace budget

#endif
