// SPDX-License-Identifier: GPL-2.0-or-later
//
// The bytes of a state: encode(), decode() and fault_of() of ledger_file.h. docs/state_format.md says
// what each byte means; a change of one is a change of both. Nothing that is read
// is believed before the checksum and fault_of() have passed it. Instants in UTC
// seconds, rates in 1/5040 GPU. Not thread-safe.
#include <zlib.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <type_traits>

#include "plugins/ledger_file.h"

namespace budget {

namespace {

constexpr std::string_view kMagic = "SBSTATE\n";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeadSize = 8 + 4 + 8;  // magic, version, length
constexpr std::size_t kTailSize = 4;          // checksum

// The kinds of records. Never renumbered; a kind that is retired stays here as a comment.
enum class Tag : std::uint16_t {
    kInstants = 1,
    kParameters = 2,
    kOwner = 3,
    kRuns = 4,
    kSteps = 5,
    kFirstEligible = 6,
    kByItself = 0x8001,
};
constexpr std::uint16_t kOptional = 0x8000;  // code that does not know this tag passes it over

// Entries of the tables.
constexpr std::uint16_t kRunSize = 41;
constexpr std::uint16_t kStepSize = 21;
constexpr std::uint16_t kFirstEligibleSize = 12;
constexpr std::uint16_t kByItselfSize = 4;
constexpr std::size_t kFullRecord = std::size_t{1} << 20;  // a table goes on in a record of its own

// Bits of a run.
constexpr std::uint8_t kUnallocated = 1;
constexpr std::uint8_t kRefunded = 2;
constexpr std::uint8_t kEnded = 4;
constexpr std::uint8_t kGone = 8;
constexpr std::uint8_t kResized = 16;
constexpr std::uint8_t kRunBits = 31;
// Bits of a step.
constexpr std::uint8_t kSuspended = 1;

std::uint32_t checksum(std::string_view bytes) {
    return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// Puts values one after the other, little-endian.
class Writer {
   public:
    template <typename Int>
    void put(Int value) {
        char bytes[sizeof(Int)];
        for (std::size_t i = 0; i < sizeof(Int); ++i) {
            bytes[i] = static_cast<char>(static_cast<std::make_unsigned_t<Int>>(value) >> (8 * i));
        }
        bytes_.append(bytes, sizeof(Int));
    }

    void put_text(std::string_view text) {
        put(static_cast<std::uint32_t>(text.size()));
        bytes_.append(text);
    }

    void put_plain(std::string_view bytes) { bytes_.append(bytes); }

    void begin_record(Tag tag) {
        put(static_cast<std::uint16_t>(tag));
        put(std::uint32_t{0});
        record_ = bytes_.size();
    }

    std::size_t record_size() const { return bytes_.size() - record_; }
    void end_record() { put_at(record_ - 4, static_cast<std::uint32_t>(record_size())); }

    std::string close() {
        put_at(kMagic.size() + 4, static_cast<std::uint64_t>(bytes_.size() + kTailSize));
        put(checksum(bytes_));
        return std::move(bytes_);
    }

   private:
    template <typename Int>
    void put_at(std::size_t at, Int value) {
        for (std::size_t i = 0; i < sizeof(Int); ++i) bytes_[at + i] = static_cast<char>(value >> (8 * i));
    }

    std::string bytes_;
    std::size_t record_ = 0;  // where the content of the record begins
};

// A table: one record or more, each begins with the size of an entry; none where there are no entries.
class TableWriter {
   public:
    TableWriter(Writer& out, Tag tag, std::uint16_t entry_size) : out_(out), tag_(tag), entry_size_(entry_size) {}
    ~TableWriter() {
        if (open_) out_.end_record();
    }
    TableWriter(const TableWriter&) = delete;
    TableWriter& operator=(const TableWriter&) = delete;

    void begin_entry() {
        if (open_ && out_.record_size() < kFullRecord) return;
        if (open_) out_.end_record();
        out_.begin_record(tag_);
        out_.put(entry_size_);
        open_ = true;
    }

   private:
    Writer& out_;
    Tag tag_;
    std::uint16_t entry_size_;
    bool open_ = false;
};

void put_head(Writer& out, const State& state) {
    out.put_plain(kMagic);
    out.put(kVersion);
    out.put(std::uint64_t{0});
    out.begin_record(Tag::kInstants);
    out.put(state.ledger.now);
    out.put(state.incomplete_before);
    out.put(state.gap_from);
    out.end_record();
    out.begin_record(Tag::kParameters);
    out.put_text(state.parameters);
    out.end_record();
}

void put_owners(Writer& out, const std::vector<SavedOwner>& owners) {
    for (const SavedOwner& owner : owners) {
        out.begin_record(Tag::kOwner);
        out.put(owner.parent);
        out.put_text(owner.account);
        out.put_text(owner.user);
        out.put_text(owner.partition);
        out.end_record();
    }
}

std::uint8_t bits_of(const SavedRun& run) {
    int bits = run.run_class == RunClass::kUnallocated ? kUnallocated : 0;
    if (run.refunded) bits |= kRefunded;
    if (run.ended) bits |= kEnded;
    if (run.gone) bits |= kGone;
    if (run.resized) bits |= kResized;
    return static_cast<std::uint8_t>(bits);
}

void put_runs(Writer& out, const std::vector<SavedRun>& runs) {
    TableWriter table(out, Tag::kRuns, kRunSize);
    for (const SavedRun& run : runs) {
        table.begin_entry();
        out.put(run.key.job_id);
        out.put(run.key.restart_count);
        out.put(run.owner);
        out.put(run.contract);
        out.put(run.start);
        out.put(run.until);
        out.put(run.rate);
        out.put(bits_of(run));
    }
}

void put_steps(Writer& out, const std::vector<SavedRun>& runs) {
    TableWriter table(out, Tag::kSteps, kStepSize);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        for (const RunStep& step : runs[i].steps) {
            table.begin_entry();
            out.put(static_cast<std::uint32_t>(i));
            out.put(step.at);
            out.put(step.rate);
            out.put(step.suspended ? kSuspended : std::uint8_t{0});
        }
    }
}

void put_by_itself(Writer& out, const std::vector<SavedRun>& runs) {
    TableWriter table(out, Tag::kByItself, kByItselfSize);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        if (!runs[i].by_itself) continue;
        table.begin_entry();
        out.put(static_cast<std::uint32_t>(i));
    }
}

void put_first_eligible(Writer& out, const State& state) {
    TableWriter table(out, Tag::kFirstEligible, kFirstEligibleSize);
    for (const auto& [job_id, since] : state.first_eligible) {
        table.begin_entry();
        out.put(job_id);
        out.put(since);
    }
}

// Takes values one after the other. What lies behind the end is 0, and ok() is false from then on.
class Reader {
   public:
    explicit Reader(std::string_view bytes) : bytes_(bytes) {}

    template <typename Int>
    Int get() {
        const std::string_view bytes = take(sizeof(Int));
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
        }
        return static_cast<Int>(value);
    }

    std::string_view take(std::size_t size) {
        if (size > bytes_.size()) {
            ok_ = false;
            bytes_ = {};
            return {};
        }
        const std::string_view taken = bytes_.substr(0, size);
        bytes_.remove_prefix(size);
        return taken;
    }

    std::string text() { return std::string(take(get<std::uint32_t>())); }

    std::size_t left() const { return bytes_.size(); }
    bool ok() const { return ok_; }

   private:
    std::string_view bytes_;
    bool ok_ = true;
};

// The functions that look for faults return the first one as one line, or nothing.

// What stays the same in all versions: magic, version, length, and the checksum at the end.
std::string frame_fault(std::string_view bytes) {
    if (bytes.substr(0, kMagic.size()) != kMagic.substr(0, bytes.size())) return "it does not begin as a state file";
    if (bytes.size() < kHeadSize + kTailSize) return "it is cut off after " + std::to_string(bytes.size()) + " bytes";
    Reader head(bytes.substr(kMagic.size() + 4));
    const auto length = head.get<std::uint64_t>();
    if (length != bytes.size()) {
        return "it has " + std::to_string(bytes.size()) + " bytes instead of " + std::to_string(length);
    }
    Reader tail(bytes.substr(bytes.size() - kTailSize));
    const bool right = tail.get<std::uint32_t>() == checksum(bytes.substr(0, bytes.size() - kTailSize));
    return right ? "" : "its checksum is wrong";
}

// Reads the records of one file into a state.
class Decoder {
   public:
    std::string read(std::string_view records);
    State take() { return std::move(state_); }

   private:
    std::string read_record(std::uint16_t tag, Reader in);
    std::string read_instants(Reader& in);
    std::string read_parameters(Reader& in);
    std::string read_owner(Reader& in);
    std::string read_run(Reader& in);
    std::string read_step(Reader& in);
    std::string read_first_eligible(Reader& in);
    std::string read_by_itself(Reader& in);

    using ReadEntry = std::string (Decoder::*)(Reader&);
    std::string read_table(Reader& in, std::uint16_t least, ReadEntry read_entry);

    State state_;
    bool has_instants_ = false;
    bool has_parameters_ = false;
};

std::string Decoder::read(std::string_view records) {
    Reader in(records);
    while (in.left() > 0) {
        const auto tag = in.get<std::uint16_t>();
        const auto length = in.get<std::uint32_t>();
        const std::string_view content = in.take(length);
        if (!in.ok()) return "its last record goes beyond its end";
        std::string fault = read_record(tag, Reader(content));
        if (!fault.empty()) return fault;
    }
    return has_instants_ ? "" : "the record of its instants is missing";
}

std::string Decoder::read_record(std::uint16_t tag, Reader in) {
    std::string fault;
    switch (static_cast<Tag>(tag)) {
        case Tag::kInstants:
            fault = read_instants(in);
            break;
        case Tag::kParameters:
            fault = read_parameters(in);
            break;
        case Tag::kOwner:
            fault = read_owner(in);
            break;
        case Tag::kRuns:
            fault = read_table(in, kRunSize, &Decoder::read_run);
            break;
        case Tag::kSteps:
            fault = read_table(in, kStepSize, &Decoder::read_step);
            break;
        case Tag::kFirstEligible:
            fault = read_table(in, kFirstEligibleSize, &Decoder::read_first_eligible);
            break;
        case Tag::kByItself:
            fault = read_table(in, kByItselfSize, &Decoder::read_by_itself);
            break;
        default:
            if ((tag & kOptional) == 0) fault = "it has a record of the unknown kind " + std::to_string(tag);
    }
    if (fault.empty() && !in.ok()) fault = "a record of kind " + std::to_string(tag) + " is too short";
    return fault;
}

std::string Decoder::read_instants(Reader& in) {
    if (std::exchange(has_instants_, true)) return "it has two records of its instants";
    state_.ledger.now = in.get<Seconds>();
    state_.incomplete_before = in.get<Seconds>();
    state_.gap_from = in.get<Seconds>();
    return "";
}

std::string Decoder::read_parameters(Reader& in) {
    if (std::exchange(has_parameters_, true)) return "it has two records of parameters";
    state_.parameters = in.text();
    return "";
}

std::string Decoder::read_owner(Reader& in) {
    SavedOwner owner;
    owner.parent = in.get<OwnerIndex>();
    owner.account = in.text();
    owner.user = in.text();
    owner.partition = in.text();
    state_.ledger.owners.push_back(std::move(owner));
    return "";
}

std::string Decoder::read_table(Reader& in, std::uint16_t least, ReadEntry read_entry) {
    const auto size = in.get<std::uint16_t>();
    if (!in.ok()) return "";
    if (size < least)
        return "a table has entries of " + std::to_string(size) + " bytes, " + std::to_string(least) + " are needed";
    if (in.left() % size != 0) return "the last entry of a table is cut off";
    while (in.left() > 0) {
        Reader entry(in.take(size));
        std::string fault = (this->*read_entry)(entry);
        if (!fault.empty()) return fault;
    }
    return "";
}

std::string name_of(const SavedRun& run) {
    return "run " + std::to_string(run.key.job_id) + "." + std::to_string(run.key.restart_count);
}

std::string Decoder::read_run(Reader& in) {
    SavedRun& run = state_.ledger.runs.emplace_back();
    run.key.job_id = in.get<std::uint32_t>();
    run.key.restart_count = in.get<std::uint32_t>();
    run.owner = in.get<OwnerIndex>();
    run.contract = in.get<std::uint32_t>();
    run.start = in.get<Seconds>();
    run.until = in.get<Seconds>();
    run.rate = in.get<Rate>();
    const auto bits = in.get<std::uint8_t>();
    if ((bits & ~kRunBits) != 0) return name_of(run) + " has unknown marks";
    run.run_class = (bits & kUnallocated) != 0 ? RunClass::kUnallocated : RunClass::kAllocated;
    run.refunded = (bits & kRefunded) != 0;
    run.ended = (bits & kEnded) != 0;
    run.gone = (bits & kGone) != 0;
    run.resized = (bits & kResized) != 0;
    return "";
}

std::string Decoder::read_step(Reader& in) {
    const auto index = in.get<std::uint32_t>();
    RunStep step;
    step.at = in.get<Seconds>();
    step.rate = in.get<Rate>();
    const auto bits = in.get<std::uint8_t>();
    if (index >= state_.ledger.runs.size())
        return "a step is of run number " + std::to_string(index) + ", which is not there";
    SavedRun& run = state_.ledger.runs[index];
    if ((bits & ~kSuspended) != 0) return name_of(run) + " has a step with unknown marks";
    step.suspended = bits != 0;
    run.steps.push_back(step);
    return "";
}

std::string Decoder::read_first_eligible(Reader& in) {
    const auto job_id = in.get<std::uint32_t>();
    state_.first_eligible.emplace_back(job_id, in.get<Seconds>());
    return "";
}

std::string Decoder::read_by_itself(Reader& in) {
    const auto index = in.get<std::uint32_t>();
    if (index >= state_.ledger.runs.size())
        return "run number " + std::to_string(index) + " has ended by itself, and is not there";
    state_.ledger.runs[index].by_itself = true;
    return "";
}

bool is_instant(Seconds value) {
    return 0 <= value && value <= kMaxInstant;
}
bool is_rate(Rate value) {
    return 0 <= value && value <= kMaxRate;
}

std::string instants_fault(const State& state) {
    const std::pair<const char*, Seconds> instants[] = {
        {"the instant of saving", state.ledger.now},
        {"the instant before which usage is incomplete", state.incomplete_before},
        {"the instant from which history is missing", state.gap_from},
    };
    for (const auto& [name, value] : instants) {
        if (!is_instant(value)) return std::string(name) + " is out of range: " + std::to_string(value);
    }
    return "";
}

std::string name_of(OwnerIndex index) {
    return "owner " + std::to_string(index);
}

auto names(const SavedOwner& owner) {
    return std::tie(owner.account, owner.user, owner.partition);
}

// Whether all ways up end at nobody; a way once walked is not walked again.
std::string parents_fault(const std::vector<SavedOwner>& owners) {
    constexpr OwnerIndex kUnknown = kMaxOwners;
    std::vector<OwnerIndex> walked_from(owners.size(), kUnknown);
    walked_from[0] = 0;
    for (OwnerIndex index = 0; index < owners.size(); ++index) {
        if (owners[index].parent >= owners.size()) {
            return name_of(index) + " is below " + name_of(owners[index].parent) + ", which is not there";
        }
    }
    for (OwnerIndex index = 1; index < owners.size(); ++index) {
        OwnerIndex at = index;
        while (walked_from[at] == kUnknown) {
            walked_from[at] = index;
            at = owners[at].parent;
        }
        if (walked_from[at] == index && at != 0) return "the parents of " + name_of(index) + " form a circle";
    }
    return "";
}

std::string owners_fault(const std::vector<SavedOwner>& owners) {
    if (owners.empty()) return "";
    if (owners[0] != SavedOwner{}) return "owner 0 is not the one without a name";
    if (owners.size() > kMaxOwners) return "it has more than " + std::to_string(kMaxOwners) + " owners";
    for (OwnerIndex index = 0; index < owners.size(); ++index) {
        for (const std::string* name : {&owners[index].account, &owners[index].user, &owners[index].partition}) {
            if (name->find('\0') != std::string::npos) return name_of(index) + " has a zero byte in its name";
        }
    }
    std::vector<OwnerIndex> by_name(owners.size());
    std::iota(by_name.begin(), by_name.end(), OwnerIndex{0});
    std::sort(by_name.begin(), by_name.end(), [&](OwnerIndex a, OwnerIndex b) {
        return std::tuple_cat(names(owners[a]), std::tie(a)) < std::tuple_cat(names(owners[b]), std::tie(b));
    });
    for (std::size_t i = 1; i < by_name.size(); ++i) {
        if (names(owners[by_name[i - 1]]) != names(owners[by_name[i]])) continue;
        return name_of(by_name[i - 1]) + " and " + name_of(by_name[i]) + " have the same name";
    }
    return parents_fault(owners);
}

// A start may move, and a run may start after now by another machine's clock: so steps and the
// last sight of one that runs may lie before its start.
const char* run_fault(const SavedRun& run) {
    if (!is_instant(run.start)) return "starts out of range";
    if (!is_instant(run.until)) return "is seen or ends out of range";
    if (!is_rate(run.rate)) return "has a rate out of range";
    if (run.ended && run.until < run.start) return "ends before it starts";
    if (run.by_itself && !run.ended) return "has ended by itself and has no end";
    for (std::size_t i = 0; i < run.steps.size(); ++i) {
        if (!is_instant(run.steps[i].at)) return "has a step out of range";
        if (!is_rate(run.steps[i].rate)) return "has a step with a rate out of range";
        if (i > 0 && run.steps[i].at < run.steps[i - 1].at) return "has steps out of order";
    }
    return nullptr;
}

std::string runs_fault(const LedgerImage& ledger) {
    const auto key = [](const SavedRun& run) { return std::pair(run.key.job_id, run.key.restart_count); };
    const SavedRun* last = nullptr;
    for (const SavedRun& run : ledger.runs) {
        if (run.owner >= ledger.owners.size()) {
            return name_of(run) + " is of " + name_of(run.owner) + ", which is not there";
        }
        if (last != nullptr && key(run) == key(*last)) return name_of(run) + " is there twice";
        if (last != nullptr && key(run) < key(*last)) return name_of(run) + " stands behind " + name_of(*last);
        if (const char* fault = run_fault(run); fault != nullptr) return name_of(run) + " " + fault;
        last = &run;
    }
    return "";
}

std::string first_eligible_fault(const State& state) {
    std::vector<std::uint32_t> ids;
    ids.reserve(state.first_eligible.size());
    for (const auto& [job_id, since] : state.first_eligible) {
        if (!is_instant(since)) return "job " + std::to_string(job_id) + " was first eligible out of range";
        ids.push_back(job_id);
    }
    if (!std::is_sorted(ids.begin(), ids.end())) std::sort(ids.begin(), ids.end());
    const auto twice = std::adjacent_find(ids.begin(), ids.end());
    return twice == ids.end() ? "" : "job " + std::to_string(*twice) + " was first eligible twice";
}

}  // namespace

std::string fault_of(const State& state) {
    std::string fault = instants_fault(state);
    if (fault.empty()) fault = owners_fault(state.ledger.owners);
    if (fault.empty()) fault = runs_fault(state.ledger);
    if (fault.empty()) fault = first_eligible_fault(state);
    return fault;
}

std::string encode(const State& state) {
    Writer out;
    put_head(out, state);
    put_owners(out, state.ledger.owners);
    put_runs(out, state.ledger.runs);
    put_steps(out, state.ledger.runs);
    put_first_eligible(out, state);
    put_by_itself(out, state.ledger.runs);
    return out.close();
}

std::variant<State, StateFault> decode(std::string_view bytes) {
    std::string fault = frame_fault(bytes);
    if (!fault.empty()) return StateFault{.message = std::move(fault)};
    const auto version = Reader(bytes.substr(kMagic.size())).get<std::uint32_t>();
    if (version > kVersion) {
        return StateFault{.kind = StateFault::Kind::kNewer,
                          .message = "it has version " + std::to_string(version) +
                                     ", and this slurm-budget reads version " + std::to_string(kVersion),
                          .version = version};
    }
    if (version != kVersion) return StateFault{.message = "there is no version " + std::to_string(version)};
    Decoder decoder;
    fault = decoder.read(bytes.substr(kHeadSize, bytes.size() - kHeadSize - kTailSize));
    if (!fault.empty()) return StateFault{.message = std::move(fault)};
    State state = decoder.take();
    fault = fault_of(state);
    if (!fault.empty()) return StateFault{.message = std::move(fault)};
    return state;
}

}  // namespace budget
