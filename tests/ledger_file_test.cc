// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of plugins/ledger_file: the frozen sample of version 1, bytes cut, flipped,
// made up and out of their senses, and the file in its folder with calls that fail one
// after the other. Builds its own files byte by byte, with a checksum of its own.
#include "plugins/ledger_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "tests/check_main.h"

// What is asked of the heap, to see that no number in a file is taken for a size. (Not inlined, or valgrind, which
// has operators of its own, would see one half of them only.)
namespace {
std::size_t asked_bytes = 0;
void* counted(std::size_t size) {
    asked_bytes += size;
    if (void* memory = std::malloc(size != 0 ? size : 1); memory != nullptr) return memory;
    throw std::bad_alloc();
}
}  // namespace
[[gnu::noinline]] void* operator new(std::size_t size) {
    return counted(size);
}
[[gnu::noinline]] void* operator new[](std::size_t size) {
    return counted(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace {

using namespace budget;

constexpr Seconds kSaved = 1700000000;

// The state that tests/data/state-v1.bin was written from. Never changed.
State sample_state() {
    State state;
    state.ledger.now = kSaved;
    state.ledger.owners = {
        {},
        {.account = "root"},
        {.account = "vision", .parent = 1},
        {.account = "vision", .user = "ann", .parent = 2},
        {.account = "vision", .user = "ann", .partition = "gpu-long", .parent = 2},
        {.account = "old team", .parent = 2},
        {.account = "old team", .user = "bj\xc3\xb6rn", .parent = 5},
        {.account = "root", .user = "root", .parent = 1},
    };
    SavedRun run = {.key = {.job_id = 17, .restart_count = 0}, .owner = 3};
    run.start = kSaved - 5000;
    run.until = kSaved;
    run.rate = 4 * kGpu;
    run.contract = 7200;
    run.steps = {{.at = kSaved - 4000, .rate = 2 * kGpu},
                 {.at = kSaved - 3000, .rate = 2 * kGpu, .suspended = true},
                 {.at = kSaved - 2500, .rate = 2 * kGpu}};
    state.ledger.runs.push_back(run);
    run = {.key = {.job_id = 17, .restart_count = 1}, .owner = 6, .run_class = RunClass::kUnallocated};
    run.start = kSaved + 20;  // by a clock ahead of ours
    run.until = kSaved;
    run.rate = 1;
    state.ledger.runs.push_back(run);
    run = {.key = {.job_id = 18, .restart_count = 0}, .owner = 4, .refunded = true, .ended = true};
    run.start = kSaved - 90000;
    run.until = kSaved - 80000;
    run.rate = 5 * kGpu + 720;
    state.ledger.runs.push_back(run);
    run = {.key = {.job_id = 18, .restart_count = kPastRestarts}, .owner = 5, .ended = true, .resized = true};
    run.start = 0;
    run.until = kMaxInstant;
    run.rate = kMaxRate;
    state.ledger.runs.push_back(run);
    run = {.key = {.job_id = 0xfffffffe, .restart_count = 0xffffffff}, .owner = 0, .ended = true, .gone = true};
    run.start = run.until = kSaved - 100;
    run.contract = 0xffffffff;
    run.steps = {{.at = kSaved - 100, .rate = 0, .suspended = true}, {.at = kSaved - 100, .rate = kMaxRate}};
    state.ledger.runs.push_back(run);
    state.first_eligible = {{30, kSaved - 60}, {21, kSaved - 600}, {0xffffffff, 0}};
    state.parameters = "window=7-00:00:00,window_shape=box,lead=0.25,gpu_weight=a100:1/h100:2.5";
    state.incomplete_before = kSaved - 3 * kDay;
    state.gap_from = kSaved - 7 * kDay;
    return state;
}

// The state that tests/data/state-v1-by-itself.bin was written from. Never changed.
State by_itself_state() {
    State state = sample_state();
    for (const std::size_t index : {2u, 4u}) state.ledger.runs[index].by_itself = true;
    state.parameters = "max_min_runtime=04:00:00,unused_contract_charge=0.5";
    return state;
}

State small_state(Seconds saved) {
    State state;
    state.ledger.now = saved;
    state.ledger.owners = {{}};
    return state;
}

// CRC-32 (IEEE), bit by bit, as docs/state_format.md has it.
std::uint32_t crc_of(const std::string& bytes) {
    std::uint32_t crc = ~0u;
    for (const char c : bytes) {
        crc ^= static_cast<unsigned char>(c);
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0xedb88320u : 0u);
    }
    return ~crc;
}

std::string little(std::uint64_t value, std::size_t size) {
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i));
    return bytes;
}
std::string u16(std::uint64_t value) {
    return little(value, 2);
}
std::string u32(std::uint64_t value) {
    return little(value, 4);
}
std::string u64(std::uint64_t value) {
    return little(value, 8);
}
std::string text(const std::string& value) {
    return u32(value.size()) + value;
}
std::string record(unsigned tag, const std::string& content) {
    return u16(tag) + u32(content.size()) + content;
}

// With the right length and checksum.
std::string file_of(unsigned version, const std::string& records) {
    const std::string bytes = "SBSTATE\n" + u32(version) + u64(20 + records.size() + 4) + records;
    return bytes + u32(crc_of(bytes));
}

// The bytes with the checksum made right again.
std::string closed(std::string bytes) {
    bytes.resize(bytes.size() - 4);
    return bytes + u32(crc_of(bytes));
}

// The message of the fault, "newer: MESSAGE", or "" for a state.
std::string fault_in(const std::string& bytes) {
    const std::variant<State, StateFault> decoded = decode(bytes);
    const StateFault* fault = std::get_if<StateFault>(&decoded);
    if (fault == nullptr) return "";
    ck_assert_msg(!fault->message.empty() && fault->message.find('\n') == std::string::npos, "a fault is one line");
    return (fault->kind == StateFault::Kind::kNewer ? "newer: " : "") + fault->message;
}

bool gives(const std::string& bytes, const State& state) {
    const std::variant<State, StateFault> decoded = decode(bytes);
    const State* got = std::get_if<State>(&decoded);
    return got != nullptr && *got == state;
}

std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void put_file(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

START_TEST(frozen_sample) {
    const std::string bytes = contents(STATE_SAMPLE);
    ck_assert_msg(!bytes.empty(), "%s is there", STATE_SAMPLE);
    ck_assert_msg(gives(bytes, sample_state()), "version 1 reads as it was written: %s", fault_in(bytes).c_str());
    ck_assert_msg(encode(sample_state()) == bytes,
                  "and is written as ever: a change needs docs/state_format.md's rules");
}
END_TEST

START_TEST(frozen_sample_by_itself) {
    const std::string bytes = contents(STATE_SAMPLE_BY_ITSELF);
    ck_assert_msg(!bytes.empty(), "%s is there", STATE_SAMPLE_BY_ITSELF);
    ck_assert_msg(gives(bytes, by_itself_state()), "it reads as it was written: %s", fault_in(bytes).c_str());
    ck_assert_msg(encode(by_itself_state()) == bytes, "and is written as ever");
}
END_TEST

// A file written from the table in docs/state_format.md alone.
START_TEST(documented_format) {
    const std::string bytes = file_of(1, record(1, u64(kSaved) + u64(5) + u64(6)) + record(2, text("lead=1")) +
                                             record(3, u32(0) + text("") + text("") + text("")) +
                                             record(3, u32(0) + text("vision") + text("ann") + text("gpu")) +
                                             record(4, u16(41) + u32(7) + u32(2) + u32(1) + u32(60) + u64(100) +
                                                           u64(200) + u64(5040) + little(1 | 4 | 16, 1)) +
                                             record(5, u16(21) + u32(0) + u64(150) + u64(2520) + little(1, 1)) +
                                             record(6, u16(12) + u32(9) + u64(99)) + record(0x8001, u16(4) + u32(0)));
    State state = small_state(kSaved);
    state.incomplete_before = 5;
    state.gap_from = 6;
    state.parameters = "lead=1";
    state.ledger.owners.push_back({.account = "vision", .user = "ann", .partition = "gpu"});
    SavedRun run = {.key = {.job_id = 7, .restart_count = 2}, .owner = 1, .run_class = RunClass::kUnallocated};
    run.ended = run.resized = run.by_itself = true;
    run.contract = 60;
    run.start = 100;
    run.until = 200;
    run.rate = 5040;
    run.steps = {{.at = 150, .rate = 2520, .suspended = true}};
    state.ledger.runs = {run};
    state.first_eligible = {{9, 99}};
    ck_assert_msg(gives(bytes, state), "it reads as documented: %s", fault_in(bytes).c_str());
    ck_assert_msg(encode(state) == bytes, "it is written as documented");
}
END_TEST

START_TEST(there_and_back) {
    ck_assert_msg(gives(encode(State()), State()), "nothing at all");
    ck_assert_msg(gives(encode(small_state(1)), small_state(1)), "next to nothing");
    State state = sample_state();
    state.parameters = std::string(70000, 'x') + '\0' + "\n\xff";
    ck_assert_msg(gives(encode(state), state), "any text");
    state = small_state(kSaved);
    for (std::uint32_t i = 0; i < 60000; ++i) {
        SavedRun run = {.key = {.job_id = i / 2, .restart_count = i % 2}, .ended = i % 3 == 0};
        run.start = kSaved - i;
        run.until = kSaved;
        run.rate = i;
        run.by_itself = i % 6 == 0;
        if (i % 2 == 0) run.steps.assign(i % 5, {.at = kSaved - 1, .rate = i, .suspended = i % 4 == 0});
        state.ledger.runs.push_back(std::move(run));
        state.first_eligible.emplace_back(60000 - i, i);
    }
    ck_assert_msg(gives(encode(state), state), "tables that go over several records");
    state.first_eligible.clear();
    state.ledger.runs.resize(20000);
    for (SavedRun& run : state.ledger.runs) run.steps.clear();
    ck_assert_msg(encode(state).size() <= 1'000'000, "20,000 runs are at most 1 MB");
}
END_TEST

START_TEST(cut_at_every_byte) {
    const std::string bytes = encode(by_itself_state());
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        ck_assert_msg(!fault_in(bytes.substr(0, size)).empty(), "cut off after %zu of %zu bytes", size, bytes.size());
    }
    ck_assert_msg(!fault_in(bytes + '\0').empty(), "a byte too many");
    ck_assert_msg(!fault_in(bytes + bytes).empty(), "twice");
}
END_TEST

START_TEST(flipped_at_every_byte) {
    const std::string bytes = encode(by_itself_state());
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        for (const int flip : {0x01, 0x80, 0xff}) {
            std::string flipped = bytes;
            flipped[at] = static_cast<char>(flipped[at] ^ flip);
            ck_assert_msg(!fault_in(flipped).empty(), "byte %zu flipped by %02x", at, static_cast<unsigned>(flip));
        }
    }
}
END_TEST

// Whatever decode() lets through can be written and read again.
void either_fault_or_right(const std::string& bytes, const char* why) {
    asked_bytes = 0;
    const std::variant<State, StateFault> decoded = decode(bytes);
    ck_assert_msg(asked_bytes <= 4096 + 40 * bytes.size(), "%s: %zu bytes of memory for %zu bytes", why, asked_bytes,
                  bytes.size());
    const State* state = std::get_if<State>(&decoded);
    if (state == nullptr) return;
    ck_assert_msg(fault_of(*state).empty(), "%s: read with a fault", why);
    ck_assert_msg(gives(encode(*state), *state), "%s: does not come back", why);
}

START_TEST(damaged_with_right_checksum) {
    const std::string bytes = encode(by_itself_state());
    for (std::size_t at = 0; at + 4 < bytes.size(); ++at) {
        for (const int flip : {0x01, 0x80, 0xff}) {
            std::string flipped = bytes;
            flipped[at] = static_cast<char>(flipped[at] ^ flip);
            either_fault_or_right(closed(flipped), "a byte");
        }
    }
    std::mt19937 random(7);
    for (int round = rounds(4000); round > 0; --round) {
        std::string records = bytes.substr(20, bytes.size() - 24);
        for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
            const std::size_t at = random() % records.size();
            switch (random() % 4) {
                case 0:
                    records[at] = static_cast<char>(random());
                    break;
                case 1:
                    records.replace(at, std::min<std::size_t>(4, records.size() - at), "\xff\xff\xff\xff");
                    break;
                case 2:
                    records.erase(at, random() % 40);
                    break;
                default:
                    records.insert(at, records.substr(random() % records.size(), random() % 60));
                    break;
            }
            if (records.empty()) break;
        }
        either_fault_or_right(file_of(1, records), "some changes");
    }
}
END_TEST

const std::string kInstants = record(1, u64(kSaved) + u64(0) + u64(0));
const std::string kNobody = record(3, u32(0) + text("") + text("") + text(""));
const std::string kOwners = kInstants + kNobody;
std::string run_entry(unsigned bits) {
    return u32(7) + u32(0) + u32(0) + u32(0) + u64(100) + u64(200) + u64(5040) + little(bits, 1);
}

struct FrameRow {
    const char* why;
    std::string bytes;
    const char* fault;  // what the line contains; "" for a state
};

// All have the right checksum but for those that say otherwise.
const FrameRow kFrameRows[] = {
    {"nothing at all", "", "cut off after 0 bytes"},
    {"the beginning alone", "SBSTATE\n", "cut off after 8 bytes"},
    {"another file", "SBBOOKS\n" + std::string(40, 'x'), "does not begin as a state file"},
    {"a short text", "hello", "does not begin as a state file"},
    {"zeros, as after a crash of the machine", std::string(4096, '\0'), "does not begin as a state file"},
    {"the checksum", file_of(1, kOwners).replace(25, 1, "x"), "its checksum is wrong"},
    {"a length that is not the file's", closed(file_of(1, kOwners).replace(12, 8, u64(1000))), "bytes instead of 1000"},
    {"a length beyond all bounds", closed(file_of(1, kOwners).replace(12, 8, u64(~0ull))),
     "bytes instead of 18446744073709551615"},
    {"a newer version", file_of(2, "whatever"), "newer: it has version 2, and this slurm-budget reads version 1"},
    {"the newest version", file_of(~0u, ""), "newer: it has version 4294967295"},
    {"a newer version that is damaged", file_of(2, "whatever").replace(20, 1, "x"), "its checksum is wrong"},
    {"no version", file_of(0, kOwners), "there is no version 0"},
    {"the least", file_of(1, kOwners), ""},
    {"no record", file_of(1, ""), "the record of its instants is missing"},
    {"no instants", file_of(1, kNobody), "the record of its instants is missing"},
    {"two instants", file_of(1, kOwners + kInstants), "two records of its instants"},
    {"two parameters", file_of(1, kOwners + record(2, text("")) + record(2, text(""))), "two records of parameters"},
    {"half a head of a record", file_of(1, kOwners + "\1\0\0"), "its last record goes beyond its end"},
    {"a head without its record", file_of(1, kOwners + u16(2) + u32(1)), "its last record goes beyond its end"},
    {"a record without an end", file_of(1, kOwners + u16(2) + u32(~0u)), "its last record goes beyond its end"},
    {"a record cut short", file_of(1, kNobody + record(1, u64(kSaved) + u64(0))), "a record of kind 1 is too short"},
    {"an empty record", file_of(1, kNobody + record(1, "")), "a record of kind 1 is too short"},
    {"a text that goes beyond its record", file_of(1, kOwners + record(2, u32(4) + "abc") + record(7 | 0x8000, "d")),
     "a record of kind 2 is too short"},
    {"a text without an end", file_of(1, kOwners + record(2, u32(~0u) + "abc")), "a record of kind 2 is too short"},
    {"an owner cut short", file_of(1, kOwners + record(3, u32(0) + text("a") + text("b"))),
     "a record of kind 3 is too short"},
    {"an unknown record", file_of(1, kOwners + record(7, "abc")), "a record of the unknown kind 7"},
    {"the record of number 0", file_of(1, kOwners + record(0, "")), "a record of the unknown kind 0"},
    {"an unknown record that may be passed over", file_of(1, record(0x8007, "abc") + kOwners + record(0xffff, "")), ""},
    {"a known number with the mark is another kind", file_of(1, kOwners + record(0x8002, "abc")), ""},
    {"fields added to records",
     file_of(1, record(1, u64(kSaved) + u64(0) + u64(0) + "new") + record(2, text("") + "new") +
                    record(3, u32(0) + text("") + text("") + text("") + "new")),
     ""},
    {"fields added to an entry", file_of(1, kOwners + record(4, u16(44) + run_entry(4) + "new")), ""},
    {"an empty table", file_of(1, kOwners + record(4, u16(41))), ""},
    {"a table without its size", file_of(1, kOwners + record(4, "")), "a record of kind 4 is too short"},
    {"a table with half its size", file_of(1, kOwners + record(4, "\51")), "a record of kind 4 is too short"},
    {"entries of no size", file_of(1, kOwners + record(4, u16(0) + run_entry(4))), "a table has entries of 0 bytes"},
    {"entries a byte too small", file_of(1, kOwners + record(4, u16(40) + run_entry(4))),
     "a table has entries of 40 bytes, 41 are needed"},
    {"half an entry", file_of(1, kOwners + record(4, u16(41) + run_entry(4) + run_entry(4).substr(1))),
     "the last entry of a table is cut off"},
    {"a mark of a run that nobody knows", file_of(1, kOwners + record(4, u16(41) + run_entry(32))),
     "run 7.0 has unknown marks"},
    {"a mark of a step that nobody knows",
     file_of(1, kOwners + record(4, u16(41) + run_entry(4)) + record(5, u16(21) + u32(0) + u64(1) + u64(1) + "\2")),
     "run 7.0 has a step with unknown marks"},
    {"a step of no run", file_of(1, kOwners + record(5, u16(21) + u32(0) + u64(1) + u64(1) + '\0')),
     "a step is of run number 0, which is not there"},
    {"U11: a run that has ended by itself is not there", file_of(1, kOwners + record(0x8001, u16(4) + u32(0))),
     "run number 0 has ended by itself, and is not there"},
    {"U11: half a number", file_of(1, kOwners + record(0x8001, u16(4) + u16(0))),
     "the last entry of a table is cut off"},
    {"a step before its run",
     file_of(1, kOwners + record(5, u16(21) + u32(0) + u64(1) + u64(1) + '\0') + record(4, u16(41) + run_entry(4))),
     "a step is of run number 0, which is not there"},
    {"a run of nobody, but there is no nobody", file_of(1, kInstants + record(4, u16(41) + run_entry(4))),
     "run 7.0 is of owner 0, which is not there"},
};

START_TEST(frame) {
    const FrameRow& row = kFrameRows[_i];
    const std::string got = fault_in(row.bytes);
    const bool right = *row.fault == '\0' ? got.empty() : got.find(row.fault) != std::string::npos;
    ck_assert_msg(right, "%s: got \"%s\", wanted \"%s\"", row.why, got.c_str(), row.fault);
    either_fault_or_right(row.bytes, row.why);
}
END_TEST

struct SenseRow {
    const char* why;
    void (*change)(State& state);  // of sample_state()
    const char* fault;             // the whole line
};

const SenseRow kSenseRows[] = {
    {"saved before time began", [](State& s) { s.ledger.now = -1; }, "the instant of saving is out of range: -1"},
    {"saved when time is over", [](State& s) { s.ledger.now = kMaxInstant + 1; },
     "the instant of saving is out of range: 1099511627776"},
    {"U10: incomplete before no instant", [](State& s) { s.incomplete_before = -5; },
     "the instant before which usage is incomplete is out of range: -5"},
    {"U10: a gap from no instant", [](State& s) { s.gap_from = kMaxInstant + 1; },
     "the instant from which history is missing is out of range: 1099511627776"},
    {"the first owner has a name", [](State& s) { s.ledger.owners[0].user = "x"; },
     "owner 0 is not the one without a name"},
    {"the first owner has a parent", [](State& s) { s.ledger.owners[0].parent = 1; },
     "owner 0 is not the one without a name"},
    {"no owners, but runs", [](State& s) { s.ledger.owners.clear(); }, "run 17.0 is of owner 3, which is not there"},
    {"U8: a parent that is not there", [](State& s) { s.ledger.owners[5].parent = 8; },
     "owner 5 is below owner 8, which is not there"},
    {"U8: a parent far away", [](State& s) { s.ledger.owners[1].parent = ~0u; },
     "owner 1 is below owner 4294967295, which is not there"},
    {"U8: its own parent", [](State& s) { s.ledger.owners[2].parent = 2; }, "the parents of owner 2 form a circle"},
    {"U8: a circle of two, found from below", [](State& s) { s.ledger.owners[2].parent = 5; },
     "the parents of owner 2 form a circle"},
    {"U8: a circle of four",
     [](State& s) {
         s.ledger.owners[1].parent = 2;
         s.ledger.owners[2].parent = 5;
         s.ledger.owners[5].parent = 7;
     },
     "the parents of owner 1 form a circle"},
    {"an owner twice",
     [](State& s) {
         s.ledger.owners[7].account = "vision";
         s.ledger.owners[7].user = "ann";
     },
     "owner 3 and owner 7 have the same name"},
    {"nobody twice", [](State& s) { s.ledger.owners[1].account = ""; }, "owner 0 and owner 1 have the same name"},
    {"a zero byte would make names alike", [](State& s) { s.ledger.owners[2].account += std::string("\0ann", 4); },
     "owner 2 has a zero byte in its name"},
    {"the owner of a run", [](State& s) { s.ledger.runs[3].owner = 8; },
     "run 18.2147483648 is of owner 8, which is not there"},
    {"a run twice", [](State& s) { s.ledger.runs[1].key.restart_count = 0; }, "run 17.0 is there twice"},
    {"runs out of order", [](State& s) { std::swap(s.ledger.runs[0], s.ledger.runs[2]); },
     "run 17.1 stands behind run 18.0"},
    {"starts before time", [](State& s) { s.ledger.runs[0].start = -1; }, "run 17.0 starts out of range"},
    {"starts after time", [](State& s) { s.ledger.runs[0].start = kMaxInstant + 1; }, "run 17.0 starts out of range"},
    {"seen before time", [](State& s) { s.ledger.runs[0].until = -1; }, "run 17.0 is seen or ends out of range"},
    {"ends after time", [](State& s) { s.ledger.runs[3].until = kMaxInstant + 1; },
     "run 18.2147483648 is seen or ends out of range"},
    {"ends before it starts", [](State& s) { s.ledger.runs[2].until = s.ledger.runs[2].start - 1; },
     "run 18.0 ends before it starts"},
    {"U1: a negative rate", [](State& s) { s.ledger.runs[2].rate = -1; }, "run 18.0 has a rate out of range"},
    {"U1: a rate beyond the highest", [](State& s) { s.ledger.runs[2].rate = kMaxRate + 1; },
     "run 18.0 has a rate out of range"},
    {"U6: steps out of order", [](State& s) { s.ledger.runs[0].steps[1].at = kSaved - 4001; },
     "run 17.0 has steps out of order"},
    {"U11: a run that is on has not ended", [](State& s) { s.ledger.runs[0].by_itself = true; },
     "run 17.0 has ended by itself and has no end"},
    {"U6: a step before time", [](State& s) { s.ledger.runs[0].steps[0].at = -1; }, "run 17.0 has a step out of range"},
    {"U6: a step after time", [](State& s) { s.ledger.runs[0].steps[2].at = kMaxInstant + 1; },
     "run 17.0 has a step out of range"},
    {"U1: a negative rate later", [](State& s) { s.ledger.runs[0].steps[2].rate = -kGpu; },
     "run 17.0 has a step with a rate out of range"},
    {"U1: a rate beyond the highest later", [](State& s) { s.ledger.runs[0].steps[2].rate = kMaxRate + 1; },
     "run 17.0 has a step with a rate out of range"},
    {"Q3: a job twice", [](State& s) { s.first_eligible.emplace_back(30, 1); }, "job 30 was first eligible twice"},
    {"Q3: first eligible before time", [](State& s) { s.first_eligible[1].second = -1; },
     "job 21 was first eligible out of range"},
    {"Q3: first eligible after time", [](State& s) { s.first_eligible[1].second = kMaxInstant + 1; },
     "job 21 was first eligible out of range"},
};

// A folder of its own for each test.
class Folder {
   public:
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "ledger_file_test-XXXXXX").string();
        ck_assert_msg(mkdtemp(name.data()) != nullptr, "a folder can be made");
        path_ = name;
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    const std::string& path() const { return path_; }
    std::string file(const char* ending = "") const { return path_ + "/slurm_budget_state" + ending; }
    bool has(const char* ending) const { return std::filesystem::exists(file(ending)); }

    // Its files by name without "slurm_budget_state", "[]" for the file itself.
    std::string listing() const {
        std::vector<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(path_)) {
            names.push_back("[" + entry.path().filename().string().substr(18) + "]");
        }
        std::sort(names.begin(), names.end());
        std::string line;
        for (const std::string& name : names) line += name;
        return line;
    }

   private:
    std::string path_;
};

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

START_TEST(sense) {
    const SenseRow& row = kSenseRows[_i];
    State state = sample_state();
    row.change(state);
    const std::string got = fault_in(encode(state));
    ck_assert_msg(got == row.fault, "%s: got \"%s\", wanted \"%s\"", row.why, got.c_str(), row.fault);
    const Folder folder;
    FileCalls calls;
    StateFile file(calls);
    ck_assert_msg(file.save(folder.path(), sample_state()).ok(), "the sample is saved");
    const Result<std::size_t> saved = file.save(folder.path(), state);
    ck_assert_msg(!saved.ok() && contains(saved.error(), row.fault) && contains(saved.error(), folder.file()),
                  "%s: what could not be read again is not written", row.why);
    ck_assert_msg(gives(contents(folder.file()), sample_state()), "%s: and the old file stays", row.why);
}
END_TEST

// Fails the n-th call, or in other ways; else does what is asked.
class FaultyCalls : public FileCalls {
   public:
    int fail_at = 0;  // the number of the call, from 1
    int error = EIO;
    std::size_t most = ~std::size_t{0};  // bytes that one write takes
    std::size_t room = ~std::size_t{0};  // bytes until the disk is full
    bool interrupted = false;            // every call is, the first time, but for renames
    bool writes_nothing = false;
    std::function<void()> at_fsync;
    std::vector<std::string> made;  // calls, each with the ending of its path where it has one

    int open(const char* path, int flags, unsigned mode) override {
        if (fails("open " + ending(path))) return -1;
        return FileCalls::open(path, flags, mode);
    }
    long write(int fd, const void* data, std::size_t size) override {
        if (fails("write")) return -1;
        if (writes_nothing) return 0;
        size = std::min({size, most, room});
        if (size == 0) {
            errno = ENOSPC;
            return -1;
        }
        room -= size;
        return FileCalls::write(fd, data, size);
    }
    int fsync(int fd) override {
        if (fails("fsync")) return -1;
        if (at_fsync) at_fsync();
        return FileCalls::fsync(fd);
    }
    int close(int fd) override {
        FileCalls::close(fd);
        interrupt_ = false;  // what is interrupted here is closed
        return fails("close") ? -1 : 0;
    }
    int rename(const char* from, const char* to) override {
        interrupt_ = interrupted;  // a rename never is
        return fails("rename " + ending(from)) ? -1 : FileCalls::rename(from, to);
    }
    int unlink(const char* path) override { return fails("unlink " + ending(path)) ? -1 : FileCalls::unlink(path); }

    std::string story() const {
        std::string line;
        for (const std::string& call : made) line += (line.empty() ? "" : ", ") + call;
        return line;
    }

   private:
    static std::string ending(const std::string& path) {
        const std::string name = path.substr(path.rfind('/') + 1);
        return name.rfind("slurm_budget_state", 0) == 0 ? "[" + name.substr(18) + "]" : "folder";
    }

    bool fails(const std::string& call) {
        interrupt_ = interrupted && !interrupt_;
        if (interrupt_) {
            errno = EINTR;
            return true;
        }
        made.push_back(call);
        errno = error;
        return static_cast<int>(made.size()) == fail_at;
    }
    bool interrupt_ = false;
};

START_TEST(order_of_calls) {
    const Folder folder;
    FaultyCalls calls;
    StateFile file(calls);
    const Result<std::size_t> saved = file.save(folder.path(), sample_state());
    ck_assert_msg(saved.ok() && saved.value() == encode(sample_state()).size(), "its size is told");
    const std::string wanted = "open [.new], write, fsync, close, rename [.new], open folder, fsync, close";
    ck_assert_msg(calls.story() == wanted, "all is flushed before it is renamed, and then the folder: %s",
                  calls.story().c_str());
    ck_assert_msg(folder.listing() == "[]", "nothing is left over: %s", folder.listing().c_str());
    struct stat status = {};
    ck_assert_msg(stat(folder.file().c_str(), &status) == 0 && (status.st_mode & 07777) == 0600,
                  "nobody else may read it");
}
END_TEST

struct CallRow {
    const char* why;
    int fail_at;
    int error;
    const char* message;  // what the line contains, after the folder; nullptr: all is well
    bool old_file;        // the file stays as it was
};

const CallRow kCallRows[] = {
    {"the new file cannot be made", 1, EROFS, "/slurm_budget_state.new: open failed: Read-only file system", true},
    {"nothing can be written", 2, ENOSPC, "/slurm_budget_state.new: write failed: No space left on device", true},
    {"it cannot be flushed", 3, EIO, "/slurm_budget_state.new: fsync failed: Input/output error", true},
    {"it cannot be closed", 4, EDQUOT, "/slurm_budget_state.new: close failed: Disk quota exceeded", true},
    {"it cannot be renamed", 5, EACCES, "/slurm_budget_state.new: rename failed: Permission denied", true},
    {"the folder cannot be opened", 6, EMFILE, ": open failed: Too many open files", false},
    {"the folder cannot be flushed", 7, EIO, ": fsync failed: Input/output error", false},
    {"the folder cannot be flushed on this file system", 7, EINVAL, nullptr, false},
    {"closing the folder means nothing", 8, EIO, nullptr, false},
    {"no such call is made", 9, EIO, nullptr, false},
};

START_TEST(failing_call) {
    const CallRow& row = kCallRows[_i];
    for (const bool is_first : {false, true}) {
        const Folder folder;
        FaultyCalls calls;
        StateFile file(calls);
        if (!is_first) ck_assert_msg(file.save(folder.path(), small_state(1)).ok(), "the first save");
        calls.made.clear();
        calls.fail_at = row.fail_at;
        calls.error = row.error;
        const Result<std::size_t> saved = file.save(folder.path(), sample_state());
        ck_assert_msg(saved.ok() == (row.message == nullptr), "%s: whether it fails", row.why);
        if (!saved.ok()) {
            ck_assert_msg(saved.error() == folder.path() + row.message, "%s: %s", row.why, saved.error().c_str());
        }
        const char* wanted = row.old_file && is_first ? "" : "[]";
        ck_assert_msg(folder.listing() == wanted, "%s: what is there: %s", row.why, folder.listing().c_str());
        if (!is_first || !row.old_file) {
            ck_assert_msg(gives(contents(folder.file()), row.old_file ? small_state(1) : sample_state()),
                          "%s: the file is a whole one", row.why);
        }
        calls.fail_at = 0;
        ck_assert_msg(file.save(folder.path(), small_state(2)).ok() && folder.listing() == "[]" &&
                          gives(contents(folder.file()), small_state(2)),
                      "%s: the next one is written", row.why);
    }
}
END_TEST

START_TEST(hard_writes) {
    const std::size_t size = encode(sample_state()).size();
    const Folder folder;
    FaultyCalls calls;
    StateFile file(calls);
    ck_assert_msg(file.save(folder.path(), small_state(1)).ok(), "the first save");
    for (const std::size_t room : {std::size_t{0}, std::size_t{1}, size / 2, size - 1}) {
        calls.room = room;
        const Result<std::size_t> full = file.save(folder.path(), sample_state());
        ck_assert_msg(!full.ok() && contains(full.error(), ".new: write failed: No space left on device"),
                      "the disk is full after %zu bytes", room);
        ck_assert_msg(folder.listing() == "[]" && gives(contents(folder.file()), small_state(1)),
                      "the disk is full: the old file stays, and what was begun makes room again");
    }
    calls.room = ~std::size_t{0};
    calls.writes_nothing = true;
    ck_assert_msg(!file.save(folder.path(), sample_state()).ok(), "a write of nothing is not tried for ever");
    calls.writes_nothing = false;
    calls.most = 7;
    ck_assert_msg(file.save(folder.path(), sample_state()).ok() && gives(contents(folder.file()), sample_state()),
                  "seven bytes at a time");
    calls.interrupted = true;
    ck_assert_msg(file.save(folder.path(), small_state(3)).ok() && gives(contents(folder.file()), small_state(3)),
                  "with signals");
    calls.interrupted = false;
    calls.made.clear();
    calls.fail_at = 3;
    calls.most = 30;
    calls.error = ENOSPC;
    ck_assert_msg(!file.save(folder.path(), sample_state()).ok() && gives(contents(folder.file()), small_state(3)),
                  "a later write fails: %s", calls.story().c_str());
}
END_TEST

START_TEST(left_over) {
    const Folder folder;
    FileCalls calls;
    put_file(folder.file(".new"), std::string(100000, 'x'));
    StateFile file(calls);
    ck_assert_msg(file.load(folder.path()).found == StateFile::Found::kNone, "a left-over is no state");
    ck_assert_msg(file.save(folder.path(), sample_state()).ok() && folder.listing() == "[]" &&
                      contents(folder.file()) == encode(sample_state()),
                  "and nothing of it gets into the next one");
    const std::string nowhere = folder.path() + "/nowhere";
    StateFile other(calls);
    ck_assert_msg(other.load(nowhere).found == StateFile::Found::kNone, "no folder, no state");
    const Result<std::size_t> saved = other.save(nowhere, sample_state());
    ck_assert_msg(
        !saved.ok() && saved.error() == nowhere + "/slurm_budget_state.new: open failed: No such file or directory",
        "and nothing can be saved there");
}
END_TEST

START_TEST(load_what_was_saved) {
    const Folder folder;
    FileCalls calls;
    StateFile file(calls);
    ck_assert_msg(file.load(folder.path()).found == StateFile::Found::kNone, "nothing yet");
    ck_assert_msg(file.save(folder.path(), sample_state()).ok(), "saved");
    StateFile next(calls);
    const StateFile::Loaded loaded = next.load(folder.path());
    ck_assert_msg(loaded.found == StateFile::Found::kRead && loaded.state == sample_state() && loaded.message.empty(),
                  "loaded");
    ck_assert_msg(next.save(folder.path(), small_state(5)).ok(), "who has loaded it goes on with it");
    ck_assert_msg(gives(contents(folder.file()), small_state(5)), "and it is written");
}
END_TEST

// Every beginning of a file, through load(): never used, kept as it is.
START_TEST(load_cut_files) {
    const Folder folder;
    const std::string bytes = encode(small_state(kSaved));
    FileCalls calls;
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        put_file(folder.file(), bytes.substr(0, size));
        StateFile file(calls);
        const StateFile::Loaded loaded = file.load(folder.path());
        ck_assert_msg(loaded.found == StateFile::Found::kUnusable && loaded.state == State(), "cut after %zu", size);
        ck_assert_msg(contains(loaded.message, folder.file() + " cannot be used: ") &&
                          contains(loaded.message, "; it is kept as " + folder.file(".damaged")),
                      "cut after %zu: %s", size, loaded.message.c_str());
        ck_assert_msg(folder.listing() == "[.damaged]" && contents(folder.file(".damaged")) == bytes.substr(0, size),
                      "cut after %zu: it is kept", size);
    }
}
END_TEST

START_TEST(load_newer) {
    const Folder folder;
    FileCalls calls;
    StateFile file(calls);
    const std::string newer = file_of(7, record(9, "what we do not know"));
    put_file(folder.file(), newer);
    put_file(folder.file(".version-7"), "an older one of that name");
    const StateFile::Loaded loaded = file.load(folder.path());
    ck_assert_msg(loaded.found == StateFile::Found::kUnusable &&
                      loaded.message == folder.file() +
                                            " cannot be used: it has version 7, and this slurm-budget reads "
                                            "version 1; it is kept as " +
                                            folder.file(".version-7"),
                  "what is said: %s", loaded.message.c_str());
    ck_assert_msg(file.save(folder.path(), sample_state()).ok() && folder.listing() == "[.version-7][]" &&
                      contents(folder.file(".version-7")) == newer && gives(contents(folder.file()), sample_state()),
                  "it is kept beside the new one");
}
END_TEST

START_TEST(load_no_file) {
    const Folder folder;
    FileCalls calls;
    StateFile file(calls);
    std::filesystem::create_directory(folder.file());
    StateFile::Loaded loaded = file.load(folder.path());
    ck_assert_msg(loaded.found == StateFile::Found::kUnusable && contains(loaded.message, "it is no regular file") &&
                      folder.listing() == "[.damaged]",
                  "a folder: %s", loaded.message.c_str());
    std::filesystem::remove(folder.file(".damaged"));
    ck_assert_msg(mkfifo(folder.file().c_str(), 0600) == 0, "a pipe can be made");
    loaded = file.load(folder.path());
    ck_assert_msg(loaded.found == StateFile::Found::kUnusable && contains(loaded.message, "it is no regular file"),
                  "a pipe, which is not waited for: %s", loaded.message.c_str());
    put_file(folder.file(), "x");
    std::filesystem::resize_file(folder.file(), std::uintmax_t{1} << 40);
    asked_bytes = 0;
    loaded = file.load(folder.path());
    ck_assert_msg(loaded.found == StateFile::Found::kUnusable &&
                      contains(loaded.message, "it has 1099511627776 bytes, more than any state") &&
                      asked_bytes < 100000,
                  "a terabyte: %s", loaded.message.c_str());
    FaultyCalls faulty;
    faulty.fail_at = 1;
    faulty.error = EACCES;
    StateFile barred(faulty);
    put_file(folder.file(), encode(sample_state()));
    loaded = barred.load(folder.path());
    ck_assert_msg(
        loaded.found == StateFile::Found::kUnusable && contains(loaded.message, "open failed: Permission denied"),
        "one that cannot be opened: %s", loaded.message.c_str());
    ck_assert_msg(contents(folder.file(".damaged")) == encode(sample_state()), "is kept too");
}
END_TEST

START_TEST(load_cannot_rename) {
    const Folder folder;
    FaultyCalls calls;
    StateFile file(calls);
    put_file(folder.file(), "damaged");
    calls.fail_at = 3;  // after open and close
    calls.error = EROFS;
    const StateFile::Loaded loaded = file.load(folder.path());
    ck_assert_msg(loaded.found == StateFile::Found::kUnusable &&
                      loaded.message == folder.file() +
                                            " cannot be used: it does not begin as a state file; it is to be kept as " +
                                            folder.file(".damaged") + ", but " + folder.file() +
                                            ": rename failed: Read-only file system",
                  "what is said: %s", loaded.message.c_str());
    calls.fail_at = 4;
    const Result<std::size_t> saved = file.save(folder.path(), sample_state());
    ck_assert_msg(!saved.ok() && saved.error() == folder.file() + ": rename failed: Read-only file system" &&
                      folder.listing() == "[]" && contents(folder.file()) == "damaged",
                  "it is not overwritten later either");
    calls.fail_at = 0;
    ck_assert_msg(file.save(folder.path(), sample_state()).ok() && contents(folder.file(".damaged")) == "damaged" &&
                      gives(contents(folder.file()), sample_state()),
                  "but renamed as soon as that is possible");
}
END_TEST

// Refused for that reason, and the file is as it was.
void refused(StateFile& file, const Folder& folder, const char* reason, const char* why) {
    const std::string before = contents(folder.file());
    const Result<std::size_t> saved = file.save(folder.path(), sample_state());
    ck_assert_msg(!saved.ok() && contains(saved.error(), folder.file() + reason) &&
                      contains(saved.error(), "another slurmctld writes it"),
                  "%s: %s", why, saved.ok() ? "saved" : saved.error().c_str());
    ck_assert_msg(contents(folder.file()) == before && folder.listing() == "[]", "%s: it is left alone", why);
}

START_TEST(taken_over) {
    const Folder folder;
    FileCalls calls;
    StateFile first(calls);
    StateFile second(calls);
    ck_assert_msg(first.load(folder.path()).found == StateFile::Found::kNone, "there is none");
    ck_assert_msg(second.save(folder.path(), small_state(1)).ok(), "another writes it");
    refused(first, folder, ": has appeared", "one that was not there");
    ck_assert_msg(second.save(folder.path(), small_state(2)).ok(), "the other goes on");
    ck_assert_msg(first.load(folder.path()).found == StateFile::Found::kRead, "who reads it takes over");
    ck_assert_msg(first.save(folder.path(), small_state(3)).ok(), "and may write");
    refused(second, folder, ": is not the file that was read or written last", "the other one from then on");
    std::filesystem::remove(folder.file());
    ck_assert_msg(second.save(folder.path(), small_state(4)).ok(), "one that has vanished is written again");
    put_file(folder.file(), encode(small_state(5)));
    refused(second, folder, ": is not the file", "written over in its place");
    StateFile third(calls);
    refused(third, folder, ": has appeared", "saved without having been loaded");
}
END_TEST

START_TEST(taken_over_meanwhile) {
    const Folder folder;
    FileCalls plain;
    FaultyCalls calls;
    StateFile first(calls);
    ck_assert_msg(first.save(folder.path(), small_state(1)).ok(), "saved");
    calls.at_fsync = [&] {
        StateFile second(plain);
        second.load(folder.path());
        ck_assert_msg(second.save(folder.path(), small_state(2)).ok(), "the other");
    };
    const Result<std::size_t> saved = first.save(folder.path(), sample_state());
    ck_assert_msg(!saved.ok() && contains(saved.error(), "another slurmctld writes it"), "while it is flushed");
    ck_assert_msg(gives(contents(folder.file()), small_state(2)) && folder.listing() == "[]", "the other's stays");
}
END_TEST

Suite* suite() {
    Suite* s = suite_create("ledger_file");
    TCase* bytes = tcase_create("bytes");
    tcase_add_test(bytes, frozen_sample);
    tcase_add_test(bytes, frozen_sample_by_itself);
    tcase_add_test(bytes, documented_format);
    tcase_add_test(bytes, there_and_back);
    tcase_add_test(bytes, cut_at_every_byte);
    tcase_add_test(bytes, flipped_at_every_byte);
    tcase_add_test(bytes, damaged_with_right_checksum);
    tcase_add_loop_test(bytes, frame, 0, static_cast<int>(std::size(kFrameRows)));
    tcase_add_loop_test(bytes, sense, 0, static_cast<int>(std::size(kSenseRows)));
    suite_add_tcase(s, bytes);
    TCase* file = tcase_create("file");
    tcase_add_test(file, order_of_calls);
    tcase_add_loop_test(file, failing_call, 0, static_cast<int>(std::size(kCallRows)));
    tcase_add_test(file, hard_writes);
    tcase_add_test(file, left_over);
    tcase_add_test(file, load_what_was_saved);
    tcase_add_test(file, load_cut_files);
    tcase_add_test(file, load_newer);
    tcase_add_test(file, load_no_file);
    tcase_add_test(file, load_cannot_rename);
    tcase_add_test(file, taken_over);
    tcase_add_test(file, taken_over_meanwhile);
    suite_add_tcase(s, file);
    return s;
}

}  // namespace

int main() {
    return run_suite(suite());
}
