// SPDX-License-Identifier: GPL-2.0-or-later
//
// Who may be stopped for whom, between two passes (rules P1 to P5). A pass publishes
// its picks; Slurm asks about every running job for each job that it tests,
// millions of times a cycle, and is answered without a lock. Whatever is not in
// the picks of the last pass is a no. Instants are UTC seconds. One thread
// at a time makes passes; any may ask.
#ifndef SLURM_BUDGET_PLUGINS_VERDICTS_H
#define SLURM_BUDGET_PLUGINS_VERDICTS_H

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/ledger.h"
#include "common/placement.h"
#include "common/preemption.h"
#include "common/run_tag.h"
#include "common/snapshot.h"
#include "common/units.h"

namespace budget {

// A run that may be stopped for somebody.
struct PickedVictim {
    RunKey key = {};
    Seconds latest_start = std::numeric_limits<Seconds>::max();  // a record that has started later is a no
    std::uint32_t group = 0;                                     // of a part of a heterogeneous job: that job's id
    Seconds notice = 0;      // its own signal comes so long before a stop (P7); 0: it has none
    bool signalled = false;  // that was sent
    Right right = Right::kUnallocated;
    double preemptor_ratio = 0;  // of kClaim
    double victim_ratio = 0;
    // For people.
    RunClass run_class = RunClass::kAllocated;
    Rate rate = 0;
    Seconds start = 0;
    Seconds contract = 0;
    Seconds protected_until = 0;
    std::string leaf = {};
};

// A pending job and those that may be stopped for it, the first to go first.
struct Pick {
    std::uint32_t job_id = 0;
    bool ours = true;        // false: Slurm chooses among the victims
    bool held_back = false;  // not yet: somebody's notice is not over (P7)
    Rate rate = 0;
    std::string leaf = {};
    std::string account = {};
    std::vector<PickedVictim> victims = {};
};

// What became of a pick whose victims Slurm has been told of, written by those who ask.
struct Attempts {
    std::atomic<std::uint32_t> count = 0;
    std::atomic<std::int64_t> last = 0;  // seconds of a clock that is never set
    std::atomic<bool> stopped = false;   // somebody was
};

class Verdicts {
   public:
    // clock: seconds, never set; asked at each attempt. Nothing: the system's.
    explicit Verdicts(std::int64_t (*clock)() = nullptr);

    // --- for the pass, in this order ---

    void begin_pass() { passes_.fetch_add(1); }

    // The jobs whose picks Slurm has tried in vain twice; they are left to it for kLeftFor, or until they
    // ask for something else.
    std::vector<std::uint32_t> drop_failed(Seconds now);
    bool may_be_left() const { return !left_.empty(); }  // anybody
    bool is_left(std::uint32_t job_id, const PlacementRequest& request, Seconds now);

    // The picks in force from now on, but for those held back.
    struct News {
        bool wake = false;                    // for the scheduler: a pick is new or another, or stands for long
        std::vector<std::string> lines = {};  // for the log: those of ours that are new
    };
    News publish(std::vector<Pick> picks, Seconds now);

    // Every yes on that run's job is void from now on, until a pass has seen the change. Any thread.
    void contract_changed(std::uint32_t job_id);

    // --- for those who ask ---

    bool preemptable(std::uint32_t preemptor, RunKey victim, Seconds start);

    // May parts of this heterogeneous job be stopped for it?
    bool stops_parts(std::uint32_t preemptor, std::uint32_t het_job);

    // Its place among those that may be stopped for the job last asked for in this thread; the highest number if none.
    std::uint32_t victim_order(RunKey victim) const;

    // The victim is about to be stopped for the job last asked for in this thread; nothing if it was none of its
    // victims.
    struct Stop {
        std::uint32_t job_id = 0;  // the preemptor
        bool ours = true;
        std::string leaf = {};
        std::string account = {};
        PickedVictim victim = {};
    };
    std::optional<Stop> preempting(RunKey victim);

    std::uint64_t picks() const { return picks_.load(); }
    std::uint64_t left_to_slurm() const { return left_count_.load(); }
    std::uint64_t preempted() const { return preempted_.load(); }

   private:
    struct Table {
        std::uint64_t pass = 0;
        std::vector<Pick> picks = {};          // by job id
        std::vector<Attempts*> attempts = {};  // of the same index
        const Pick* find(std::uint32_t job_id) const;
    };
    // What a thread keeps of the pick it was last asked about.
    struct Asked;
    static Asked& asked();
    void look_up(Asked& asked, std::uint32_t preemptor) const;
    Asked& asked_for(std::uint32_t preemptor);

    // What is known of a pick that stands.
    struct Standing {
        bool seen = false;
        std::vector<RunKey> victims = {};
        Attempts* attempts = nullptr;  // of one of ours
        Seconds told = 0;
        Seconds woken = 0;
        std::uint64_t pass = 0;
    };
    struct Left {
        Seconds until = 0;
        std::optional<PlacementRequest> request = {};  // as it was when left
    };
    Attempts* new_attempts();
    void take_up(const Pick& pick, Seconds now, News& news);
    void forget_gone();

    std::int64_t (*clock_)();
    std::uint64_t serial_ = 0;  // of this object among all of the process
    // Never freed while this lives: who asks may still count in one that stands for another pick by now.
    std::deque<Attempts> all_attempts_;
    std::vector<Attempts*> spare_attempts_;
    std::unordered_map<std::uint32_t, Standing> standing_;
    std::unordered_map<std::uint32_t, Left> left_;

    std::atomic<std::uint64_t> passes_ = 0;     // begun
    std::atomic<std::uint64_t> published_ = 0;  // the pass whose table is in force
    Published<Table> table_;
    std::array<std::atomic<std::uint64_t>, 1024> voided_ = {};  // by job id: tables up to that of this pass say no
    std::atomic<std::uint64_t> picks_ = 0;
    std::atomic<std::uint64_t> left_count_ = 0;
    std::atomic<std::uint64_t> preempted_ = 0;
};

// The line for the log, and what the victim's owner is told; `names`: by which account too.
std::string to_string(const Verdicts::Stop& stop, Seconds now);
PreemptedFor reason(const Verdicts::Stop& stop, Seconds now, bool names);

}  // namespace budget

#endif
