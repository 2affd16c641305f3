// SPDX-License-Identifier: GPL-2.0-or-later
//
// The file that has the bytes of the state, and the system calls that put it in
// place; see ledger_file.h. What its bytes mean is in ledger_bytes.cc. Not
// thread-safe.
#include "plugins/ledger_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace budget {

namespace {

// A file beyond this is not ours: 25 million runs have room in it.
constexpr std::size_t kLargestFile = std::size_t{1} << 30;

FileIdentity identity_of(const struct stat& status) {
    constexpr std::int64_t kNanoseconds = 1'000'000'000;
    return {.inode = status.st_ino, .written = status.st_mtim.tv_sec * kNanoseconds + status.st_mtim.tv_nsec};
}

// Of the file of this name; zeros where there is none, and nothing else has failed.
bool identify(const std::string& path, FileIdentity& identity) {
    struct stat status = {};
    identity = {};
    if (::stat(path.c_str(), &status) != 0) return errno == ENOENT;
    identity = identity_of(status);
    return true;
}

// "PATH: CALL failed: why", by errno.
std::string call_failed(const std::string& path, const char* call) {
    return path + ": " + call + " failed: " + std::strerror(errno);
}

// Calls again what a signal has interrupted.
template <typename Call>
auto uninterrupted(Call call) {
    auto result = call();
    while (result < 0 && errno == EINTR) result = call();
    return result;
}

std::string read_whole(int fd, const struct stat& status, std::string& bytes) {
    if (!S_ISREG(status.st_mode)) return "it is no regular file";
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size > kLargestFile) return "it has " + std::to_string(size) + " bytes, more than any state";
    bytes.resize(size);
    std::size_t have = 0;
    while (have < size) {
        const ssize_t got = uninterrupted([&] { return ::read(fd, bytes.data() + have, size - have); });
        if (got < 0) return std::string("read failed: ") + std::strerror(errno);
        if (got == 0) break;
        have += static_cast<std::size_t>(got);
    }
    bytes.resize(have);
    return "";
}

// Reads what is under this name, and which file that is. Where there is none, that is no fault, and `there` is false.
std::string read_file(FileCalls& calls, const std::string& path, std::string& bytes, FileIdentity& identity,
                      bool& there) {
    // Not to wait for ever if somebody has put a pipe there.
    const int fd = uninterrupted([&] { return calls.open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0); });
    there = fd >= 0 || errno != ENOENT;
    if (!there) return "";
    if (fd < 0) {
        std::string fault = std::string("open failed: ") + std::strerror(errno);
        identify(path, identity);
        return fault;
    }
    struct stat status = {};
    std::string fault;
    if (::fstat(fd, &status) != 0) {
        fault = std::string("fstat failed: ") + std::strerror(errno);
    } else {
        identity = identity_of(status);
        fault = read_whole(fd, status, bytes);
    }
    calls.close(fd);
    return fault;
}

}  // namespace

int FileCalls::open(const char* path, int flags, unsigned mode) {
    return ::open(path, flags, mode);
}
long FileCalls::write(int fd, const void* data, std::size_t size) {
    return ::write(fd, data, size);
}
int FileCalls::fsync(int fd) {
    return ::fsync(fd);
}
int FileCalls::close(int fd) {
    return ::close(fd);
}
int FileCalls::rename(const char* from, const char* to) {
    return std::rename(from, to);
}
int FileCalls::unlink(const char* path) {
    return ::unlink(path);
}

StateFile::Loaded StateFile::load(const std::string& folder) {
    const std::string path = folder + "/slurm_budget_state";
    known_ = {};
    keep_as_.clear();
    std::string bytes;
    bool there = false;
    std::string fault = read_file(calls_, path, bytes, known_, there);
    if (!there) return {};
    keep_as_ = path + ".damaged";
    if (fault.empty()) {
        std::variant<State, StateFault> decoded = decode(bytes);
        if (State* state = std::get_if<State>(&decoded); state != nullptr) {
            keep_as_.clear();
            return {.found = Found::kRead, .state = std::move(*state)};
        }
        const StateFault& why = *std::get_if<StateFault>(&decoded);
        fault = why.message;
        if (why.kind == StateFault::Kind::kNewer) keep_as_ = path + ".version-" + std::to_string(why.version);
    }
    const std::string kept_as = keep_as_;
    const std::string trouble = keep(path);
    return {.found = Found::kUnusable,
            .state = {},
            .message = path + " cannot be used: " + fault +
                       (trouble.empty() ? "; it is kept as " + kept_as
                                        : "; it is to be kept as " + kept_as + ", but " + trouble)};
}

// Renames the file that cannot be used, if there is one.
std::string StateFile::keep(const std::string& path) {
    if (keep_as_.empty()) return "";
    if (calls_.rename(path.c_str(), keep_as_.c_str()) != 0 && errno != ENOENT) return call_failed(path, "rename");
    keep_as_.clear();
    known_ = {};
    return "";
}

std::string StateFile::taken_over(const std::string& path) const {
    FileIdentity there;
    if (!identify(path, there)) return call_failed(path, "stat");
    if (there == FileIdentity{} || there == known_) return "";
    const char* what = known_ == FileIdentity{} ? ": has appeared" : ": is not the file that was read or written last";
    return path + what + "; another slurmctld writes it, so it is left alone";
}

Result<std::size_t> StateFile::save(const std::string& folder, const State& state) {
    const std::string path = folder + "/slurm_budget_state";
    const std::string new_path = path + ".new";
    std::string fault = fault_of(state);
    if (!fault.empty()) return Error{path + ": not written, since it could not be read again: " + fault};
    const std::string bytes = encode(state);
    if (bytes.size() > kLargestFile) {
        return Error{path + ": not written, " + std::to_string(bytes.size()) + " bytes are more than it may have"};
    }
    fault = taken_over(path);
    if (fault.empty()) fault = keep(path);
    if (fault.empty()) fault = write_new(new_path, bytes);
    if (!fault.empty()) return Error{std::move(fault)};
    fault = put_in_place(path, new_path);
    if (!fault.empty()) {
        calls_.unlink(new_path.c_str());
        return Error{std::move(fault)};
    }
    fault = flush_folder(folder);
    if (!fault.empty()) return Error{std::move(fault)};
    return bytes.size();
}

// Writes and flushes it; leaves nothing behind on failure.
std::string StateFile::write_new(const std::string& path, std::string_view bytes) {
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    const int fd = uninterrupted([&] { return calls_.open(path.c_str(), flags, 0600); });
    if (fd < 0) return call_failed(path, "open");
    std::string fault;
    while (!bytes.empty() && fault.empty()) {
        const long done = uninterrupted([&] { return calls_.write(fd, bytes.data(), bytes.size()); });
        if (done == 0) errno = EIO;
        if (done <= 0) {
            fault = call_failed(path, "write");
        } else {
            bytes.remove_prefix(static_cast<std::size_t>(done));
        }
    }
    if (fault.empty() && uninterrupted([&] { return calls_.fsync(fd); }) != 0) fault = call_failed(path, "fsync");
    // After EINTR the descriptor is closed all the same.
    if (calls_.close(fd) != 0 && errno != EINTR && fault.empty()) fault = call_failed(path, "close");
    if (!fault.empty()) calls_.unlink(path.c_str());
    return fault;
}

// Looks once more whose file it is: flushing may have taken long.
std::string StateFile::put_in_place(const std::string& path, const std::string& new_path) {
    std::string fault = taken_over(path);
    if (!fault.empty()) return fault;
    FileIdentity written;
    if (!identify(new_path, written) || written == FileIdentity{}) return call_failed(new_path, "stat");
    if (calls_.rename(new_path.c_str(), path.c_str()) != 0) return call_failed(new_path, "rename");
    known_ = written;
    return "";
}

std::string StateFile::flush_folder(const std::string& folder) {
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    const int fd = uninterrupted([&] { return calls_.open(folder.c_str(), flags, 0); });
    if (fd < 0) return call_failed(folder, "open");
    std::string fault;
    // EINVAL: a file system that flushes no folders.
    if (uninterrupted([&] { return calls_.fsync(fd); }) != 0 && errno != EINVAL) fault = call_failed(folder, "fsync");
    calls_.close(fd);
    return fault;
}

}  // namespace budget
