// SPDX-License-Identifier: GPL-2.0-or-later
//
// Does with a folder what the engine does at its start and later: loads its state file,
// then saves the state of another file there, with the real system calls. Prints a line
// about each. For t8002-state-file.t; not installed.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "plugins/ledger_file.h"

namespace {

using namespace budget;

void load(StateFile& file, const char* folder) {
    const StateFile::Loaded loaded = file.load(folder);
    switch (loaded.found) {
        case StateFile::Found::kRead:
            std::printf("loaded, saved at %lld\n", static_cast<long long>(loaded.state.ledger.now));
            break;
        case StateFile::Found::kNone:
            std::printf("none\n");
            break;
        case StateFile::Found::kUnusable:
            std::printf("unusable: %s\n", loaded.message.c_str());
            break;
    }
}

// Whether the file has been written.
bool save(StateFile& file, const char* folder, const State& state) {
    const Result<std::size_t> size = file.save(folder, state);
    if (size) {
        std::printf("saved %zu bytes\n", size.value());
    } else {
        std::printf("not saved: %s\n", size.error().c_str());
    }
    return size.ok();
}

}  // namespace

int main(int count, char** words) {
    if (count != 3 && count != 4) {
        std::fputs(
            "usage: state_save FOLDER FILE [COMMAND]\n"
            "With a COMMAND it is run by sh between the two. Exit status: 0 saved, 1 not saved, 2 usage.\n",
            stderr);
        return 2;
    }
    std::ifstream source(words[2], std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(source)), std::istreambuf_iterator<char>());
    const std::variant<State, StateFault> decoded = decode(bytes);
    if (!std::holds_alternative<State>(decoded)) {
        std::fprintf(stderr, "state_save: %s: no state\n", words[2]);
        return 2;
    }
    FileCalls calls;
    StateFile file(calls);
    load(file, words[1]);
    std::fflush(stdout);
    if (count == 4 && std::system(words[3]) != 0) return 2;
    return save(file, words[1], *std::get_if<State>(&decoded)) ? 0 : 1;
}
