// SPDX-License-Identifier: GPL-2.0-or-later
//
// read_1m_rows: a million rows of sacct, some of steps and of jobs without GPUs, with
// tags and text behind them; each is read, with its tag and its rate. CPU time, the best
// of five; making up the text is not measured.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>

#include "bench.h"
#include "common/accounting_rows.h"

namespace {

constexpr std::uint32_t kRows = 1'000'000;

struct Load {
    std::string text;
    budget::Wide gpu_time = 0;  // of the rows with GPUs
};

Load make_load() {
    std::mt19937_64 random(20240229);
    Load load;
    load.text = budget::kAccountingColumns;
    std::replace(load.text.begin(), load.text.end(), ',', '|');
    load.text += '\n';
    for (std::uint32_t i = 1; i <= kRows; ++i) {
        const std::uint64_t start = 1'700'000'000 + i / 2;
        const std::uint64_t length = 60 + random() % 86'400;
        const std::uint64_t gpus = random() % 9;
        const bool step = i % 16 == 0;
        load.text += std::to_string(i) + (step ? ".batch|" : "|") + "account" + std::to_string(random() % 1000) +
                     "|user" + std::to_string(random() % 5000) + "|gpu|" + std::to_string(1 + random() % 10'000) + "|1001|" +
                     std::to_string(start - 60) + "|" + std::to_string(start) + "|" + std::to_string(start + length) +
                     "|00:00:00|COMPLETED|billing=8,cpu=8,";
        if (gpus > 0) load.text += "gres/gpu:a100=" + std::to_string(gpus) + ",gres/gpu=" + std::to_string(gpus) + ",";
        load.text += "mem=64G,node=1|[budget class=allocated contract=7200] text of others\n";
        if (!step) load.gpu_time += budget::Wide{gpus * length} * budget::kGpu;
    }
    return load;
}

// The time in which the rows are read, in seconds.
double read(const Load& load) {
    const std::clock_t begun = std::clock();
    budget::RowRates rates(budget::Parameters{}, budget::GpuParts{});
    budget::Wide gpu_time = 0;
    const auto counts = budget::read_accounting_rows(load.text, '|', [&](const budget::AccountingRow& row) {
        const std::optional<budget::RunTag> tag = budget::read_tag(row.admin_comment);
        if (tag && tag->contract == 7200) gpu_time += budget::Wide{rates.rate(row, tag)} * (*row.end - *row.start);
    });
    const double taken = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
    if (!counts || counts.value().rows != kRows || gpu_time != load.gpu_time) {
        std::fprintf(stderr, "bench: the rows are not read right\n");
        std::exit(EXIT_FAILURE);
    }
    return taken;
}

}  // namespace

void bench_rows() {
    const Load load = make_load();
    double best = read(load);
    for (int i = 1; i < 5; ++i) best = std::min(best, read(load));
    std::printf("read_1m_rows %.3f s\n", best);
}
