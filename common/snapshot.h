// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a pass decided, for those who ask between passes: Snapshot is the
// finished order and the claims, immutable; Published<T> hands the newest one to
// any number of threads without a lock (sprio, and later preemption checks,
// of which there are millions a scheduling cycle). Instants are UTC seconds.
#ifndef SLURM_BUDGET_COMMON_SNAPSHOT_H
#define SLURM_BUDGET_COMMON_SNAPSHOT_H

#include <atomic>
#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "claim.h"
#include "ledger.h"
#include "tree.h"
#include "units.h"

namespace budget {

// Where a pending job stands.
struct Rank {
    std::uint32_t job_id = 0;
    std::uint32_t priority = 0;  // the number it was given (Q6)
    std::uint32_t position = 0;  // 1 is first
    NodeIndex leaf = kRoot;
    RunClass run_class = RunClass::kAllocated;
    Seconds eligible_since = 0;  // Q3
};

class Snapshot {
   public:
    // Of several ranks of one job (tasks of an array) the one with the lowest
    // position is kept. allocated: the claims that the order was made with.
    Snapshot(Seconds pass_time, std::vector<Rank> ranks, Claims allocated);

    Seconds pass_time() const { return pass_time_; }
    std::size_t size() const { return ranks_.size(); }

    // Nothing for a job that the pass did not rank. O(log n). The pointer lives
    // as long as the snapshot.
    const Rank* find(std::uint32_t job_id) const;

    // Claims of the allocated class: ratio() of a leaf, and better() (P3). Node
    // indices are those of the tree at pass_time; claims().size() bounds them.
    const Claims& claims() const { return claims_; }

   private:
    Seconds pass_time_;
    std::vector<Rank> ranks_;  // by job id
    Claims claims_;
};

// The newest T, for many readers at once and one writer at a time.
//
// Values stand in slots that live as long as this object; current_ points at
// the newest. A reader counts itself in at the slot and looks again whether
// that is still current; if so, the writer sees the count before it touches the
// value, as it does so only after current_ has moved on; if not, the reader
// counts itself out, untouched by what the writer does, and tries the next.
// So readers never wait (they retry only after a publish), and the writer
// never waits either: a slot that is still read is left to a later publish.
template <typename T>
class Published {
    struct Slot {
        std::atomic<std::uint32_t> readers = 0;
        std::unique_ptr<const T> value;  // written only by the writer, while not current and without readers
    };

   public:
    // Keeps a value alive; to be held briefly. Empty before the first publish.
    class Pin {
       public:
        Pin() = default;
        Pin(Pin&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
        Pin& operator=(Pin&& other) noexcept {
            std::swap(slot_, other.slot_);
            return *this;
        }
        ~Pin() {
            if (slot_ != nullptr) slot_->readers.fetch_sub(1, std::memory_order_release);
        }

        explicit operator bool() const { return slot_ != nullptr; }
        const T& operator*() const { return *slot_->value; }
        const T* operator->() const { return slot_->value.get(); }

       private:
        friend class Published;
        explicit Pin(Slot* slot) : slot_(slot) {}
        Slot* slot_ = nullptr;
    };

    Published() = default;
    Published(const Published&) = delete;
    Published& operator=(const Published&) = delete;

    // Precondition: no pin is left.
    ~Published() {
        for ([[maybe_unused]] const auto& slot : slots_) assert(slot->readers == 0);
    }

    // The newest value. Any thread.
    Pin pin() const {
        for (;;) {
            Slot* slot = current_.load();
            if (slot == nullptr) return Pin();
            slot->readers.fetch_add(1);
            if (current_.load() == slot) return Pin(slot);
            slot->readers.fetch_sub(1, std::memory_order_release);
        }
    }

    // Makes value the newest one, and frees older ones that nobody reads.
    // Precondition: value is not null. One thread at a time.
    void publish(std::unique_ptr<const T> value) {
        assert(value != nullptr);
        Slot* next = free_slot();
        next->value = std::move(value);
        current_.store(next);
        reclaim();
    }

   private:
    // The order of this against pin() is what makes it safe: all four accesses
    // are sequentially consistent.
    bool is_free(const Slot* slot) const { return slot != current_.load() && slot->readers.load() == 0; }

    Slot* free_slot() {
        for (const auto& slot : slots_)
            if (is_free(slot.get())) return slot.get();
        slots_.push_back(std::make_unique<Slot>());
        return slots_.back().get();
    }

    void reclaim() {
        for (const auto& slot : slots_)
            if (is_free(slot.get())) slot->value.reset();
    }

    std::atomic<Slot*> current_ = nullptr;
    std::vector<std::unique_ptr<Slot>> slots_;  // the writer's
};

}  // namespace budget

#endif
