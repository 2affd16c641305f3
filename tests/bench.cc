// SPDX-License-Identifier: GPL-2.0-or-later
//
// Prints all figures, `name value unit` a line (`make bench`).

#include "bench.h"

int main() {
    bench_charge();
    bench_rows();
    bench_order();
    bench_preempt();
    bench_preemption();
    return 0;
}
