// SPDX-License-Identifier: GPL-2.0-or-later
//
// For which release of Slurm a plugin's file was built: the number plugin_version in
// it, read as bytes of an ELF file, since loading it outside slurmctld is not safe.
#ifndef SLURM_BUDGET_TOOLS_PLUGIN_FILE_H
#define SLURM_BUDGET_TOOLS_PLUGIN_FILE_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace budget {

// The file of that name in the first of the folders (by colons) that has it; empty: none has.
std::string find_plugin(std::string_view folders, const std::string& name);

// As Slurm numbers releases (major << 16 | minor << 8 | micro); nothing if it cannot be told.
std::optional<std::uint32_t> plugin_version(const std::string& file);

// 22.05.8
std::string release_text(std::uint32_t number);

}  // namespace budget

#endif
