// SPDX-License-Identifier: GPL-2.0-or-later
//
// Result<T>: a value, or an Error with one line for a person: which file, line
// or field, what is wrong, and what would be right. A failing call changes
// nothing. Value type; no state, any thread.
#ifndef SLURM_BUDGET_COMMON_RESULT_H
#define SLURM_BUDGET_COMMON_RESULT_H

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace budget {

struct Error {
    std::string message;
};

template <typename T>
class [[nodiscard]] Result {
   public:
    Result(T value) : content_(std::move(value)) {}
    Result(Error error) : content_(std::move(error)) {}

    bool ok() const { return std::holds_alternative<T>(content_); }
    explicit operator bool() const { return ok(); }

    // Only where ok().
    const T& value() const& {
        assert(ok());
        return *std::get_if<T>(&content_);
    }
    T&& value() && {
        assert(ok());
        return std::move(*std::get_if<T>(&content_));
    }

    // Only where not ok().
    const std::string& error() const {
        assert(!ok());
        return std::get_if<Error>(&content_)->message;
    }

   private:
    std::variant<T, Error> content_;
};

}  // namespace budget

#endif
