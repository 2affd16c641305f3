// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of plugins/slurm/gpu_request.h: what clients of all releases send for GPUs (U1).

extern "C" {
#include "plugins/slurm/gpu_request.h"
}

#include <iterator>

#include "tests/check_main.h"

namespace {

const struct {
    const char* why;
    const char* list;
    bool asks;
} kRows[] = {
    {"nothing was asked for", nullptr, false},
    {"an empty list", "", false},
    {"up to 22.05: a count", "gres:gpu:2", true},
    {"up to 22.05: no count is one", "gres:gpu", true},
    {"up to 22.05: a type", "gres:gpu:a100", true},
    {"up to 22.05: type and count", "gres:gpu:a100:4", true},
    {"later: a count", "gres/gpu:2", true},
    {"later: a count by =", "gres/gpu=2", true},
    {"later: type and count by =", "gres/gpu:a100=2", true},
    {"later: no count", "gres/gpu", true},
    {"without a mark", "gpu:1", true},
    {"0 is none", "gres:gpu:0", false},
    {"later: 0 is none", "gres/gpu:0", false},
    {"later: 0 by = is none", "gres/gpu=0", false},
    {"0 of a type is none", "gres:gpu:a100:0", false},
    {"0 with a suffix is none", "gres:gpu:0k", false},
    {"00 is none", "gres:gpu:00", false},
    {"a type of a digit and letters is one", "gres:gpu:0xa", true},
    {"MIG slices", "gres:gpu:1g.5gb:3", true},
    {"a MIG type without count", "gres/gpu:a100_3g.40gb", true},
    {"shards", "gres:shard:1", true},
    {"MPS shares", "gres/mps:50", true},
    {"another GRES", "gres:tmp:1", false},
    {"a name that begins like it", "gres:gpus:1", false},
    {"a name that ends like it", "gres:igpu:1", false},
    {"behind another GRES", "gres:tmp:1,gres:gpu:1", true},
    {"before another GRES", "gres/gpu:1,gres/tmp:1", true},
    {"two types, the first of them none", "gres:gpu:a100:0,gres:gpu:h100:2", true},
    {"only none", "gres:gpu:a100:0,gres:gpu:h100:0", false},
    {"semicolons", "gres:tmp:1;gres:gpu:1", true},
    {"empty items", ",,gres:gpu:1,", true},
    {"a mark behind something else, where Slurm finds it", "license:gres:gpu:1", true},
    {"a licence", "license:gpu:1", false},
    {"what Slurm cannot read is asked for", "gres:gpu:", true},
};

START_TEST(requests) {
    const auto& row = kRows[_i];
    ck_assert_msg(tres_ask_gpus(row.list) == row.asks, "%s: %s", row.why, row.list ? row.list : "NULL");
}
END_TEST

}  // namespace

int main() {
    Suite* suite = suite_create("gpu_request");
    TCase* tcase = tcase_create("requests");
    tcase_add_loop_test(tcase, requests, 0, std::ssize(kRows));
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
