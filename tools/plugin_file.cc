// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reading a number out of an ELF file; see plugin_file.h. Every offset that comes from
// the file is checked against its size.
#include "plugin_file.h"

#include <elf.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

namespace budget {

namespace {

using Bytes = std::vector<char>;

template <typename T>
std::optional<T> at(const Bytes& bytes, std::uint64_t offset) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
}

template <typename T>
std::optional<T> entry(const Bytes& bytes, std::uint64_t table, std::uint64_t index) {
    return at<T>(bytes, table + index * sizeof(T));
}

bool name_is(const Bytes& bytes, std::uint64_t offset, std::string_view name) {
    if (offset > bytes.size() || bytes.size() - offset < name.size() + 1) return false;
    return std::memcmp(bytes.data() + offset, name.data(), name.size()) == 0 && bytes[offset + name.size()] == '\0';
}

std::optional<Elf64_Shdr> section_of_type(const Bytes& bytes, const Elf64_Ehdr& header, std::uint32_t type) {
    for (std::uint64_t i = 0; i < header.e_shnum; i++) {
        const auto section = entry<Elf64_Shdr>(bytes, header.e_shoff, i);
        if (section && section->sh_type == type) return section;
    }
    return std::nullopt;
}

// Where in the file that address of the loaded plugin is kept.
std::optional<std::uint64_t> file_offset(const Bytes& bytes, const Elf64_Ehdr& header, std::uint64_t address) {
    for (std::uint64_t i = 0; i < header.e_phnum; i++) {
        const auto part = entry<Elf64_Phdr>(bytes, header.e_phoff, i);
        if (part && part->p_type == PT_LOAD && address >= part->p_vaddr && address - part->p_vaddr < part->p_filesz)
            return part->p_offset + (address - part->p_vaddr);
    }
    return std::nullopt;
}

}  // namespace

std::string find_plugin(std::string_view folders, const std::string& name) {
    while (!folders.empty()) {
        const std::string_view folder = folders.substr(0, folders.find(':'));
        folders.remove_prefix(std::min(folder.size() + 1, folders.size()));
        const std::string file = std::string(folder) + "/" + name;
        if (access(file.c_str(), F_OK) == 0) return file;
    }
    return "";
}

std::optional<std::uint32_t> plugin_version(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    const Bytes bytes((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    const auto header = at<Elf64_Ehdr>(bytes, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64)
        return std::nullopt;
    const auto symbols = section_of_type(bytes, *header, SHT_DYNSYM);
    if (!symbols) return std::nullopt;
    const auto names = entry<Elf64_Shdr>(bytes, header->e_shoff, symbols->sh_link);
    if (!names) return std::nullopt;
    for (std::uint64_t i = 0; i < symbols->sh_size / sizeof(Elf64_Sym); i++) {
        const auto symbol = entry<Elf64_Sym>(bytes, symbols->sh_offset, i);
        if (!symbol || !name_is(bytes, names->sh_offset + symbol->st_name, "plugin_version")) continue;
        const auto offset = file_offset(bytes, *header, symbol->st_value);
        return offset ? at<std::uint32_t>(bytes, *offset) : std::nullopt;
    }
    return std::nullopt;
}

std::string release_text(std::uint32_t number) {
    const auto two = [](std::uint32_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
    return two(number >> 16) + "." + two(number >> 8 & 255) + "." + std::to_string(number & 255);
}

}  // namespace budget
