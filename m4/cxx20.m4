# SPDX-License-Identifier: GPL-2.0-or-later
# Does the C++ compiler take the subset of C++20 that we use? Sets CXX20_FLAG.

AC_DEFUN([BUDGET_CXX20], [
AC_CACHE_CHECK([for the flag that makes $CXX take C++20], [budget_cv_cxx20_flag], [
  AC_LANG_PUSH([C++])
  budget_save_CXXFLAGS=$CXXFLAGS
  budget_cv_cxx20_flag=no
  for budget_flag in -std=c++20 -std=c++2a; do
    CXXFLAGS="$budget_save_CXXFLAGS $budget_flag"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
      #include <compare>
      #include <cstdint>
      #include <optional>
      #include <span>
      #include <string_view>
      #include <variant>
      struct Run {
        std::int64_t start;
        std::int64_t end;
        bool operator==(const Run &) const = default;
      };
      unsigned __int128 wide(std::uint64_t a, std::uint64_t b) {
        return static_cast<unsigned __int128>(a) * b;
      }
      std::size_t size(std::span<const Run> runs) { return runs.size(); }
    ]], [[
      Run run{.start = 1, .end = 2};
      std::optional<Run> none;
      std::variant<int, std::string_view> text{std::string_view{"x"}};
      return run == Run{.start = 1, .end = 2} && !none && wide(1, 2) > 1 &&
             size({&run, 1}) == 1 && text.index() == 1 ? 0 : 1;
    ]])], [budget_cv_cxx20_flag=$budget_flag; break])
  done
  CXXFLAGS=$budget_save_CXXFLAGS
  AC_LANG_POP([C++])
])
if test "$budget_cv_cxx20_flag" = no; then
  BUDGET_MISSING([a compiler for C++20, $CXX is not one: gcc 12 or later; Debian: apt-get install g++])
  CXX20_FLAG=
else
  CXX20_FLAG=$budget_cv_cxx20_flag
fi
AC_SUBST([CXX20_FLAG])
])
