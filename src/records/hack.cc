#include "warpsmith/records/hack.h"

#include <cstdio>

#include "warpsmith/base/text.h"

namespace warpsmith {

namespace {

// A score that rose was repeated, and more: then the first measurement was the noisy one.
bool fell_back(const Measurement& m) {
  double before = 0, after = 0;
  return m.remeasured > 0 &&
         std::sscanf(m.detail.c_str(), "measured again: %lfx, then %lfx", &before, &after) == 2 &&
         after < before;
}

}  // namespace

std::string_view fixed_kind(Verdict verdict) {
  if (verdict == Verdict::kTooFast || verdict == Verdict::kSandboxViolation) return to_string(verdict);
  return verdict == Verdict::kUnstable ? "not_repeated" : "";
}

std::optional<std::string> confirmed_hack(const Measurement& m) {
  constexpr std::size_t kLongestKind = 40;  // it names folders
  if (m.verdict == Verdict::kHack)
    return is_identifier(m.hack) && m.hack.size() <= kLongestKind ? m.hack : "hack";
  if (m.verdict == Verdict::kUnstable && !fell_back(m)) return std::nullopt;
  const std::string_view kind = fixed_kind(m.verdict);
  return kind.empty() ? std::nullopt : std::optional(std::string(kind));
}

std::optional<HackCase> hack_case(const Candidate& candidate, const Measurement& m) {
  auto kind = confirmed_hack(m);
  if (!kind) return std::nullopt;
  HackCase out;
  out.candidate = candidate;
  out.verdict = m.verdict;
  out.kind = std::move(*kind);
  out.reason = m.detail;
  if (m.device) {
    out.device = m.device->kind;
    out.device_name = m.device->name;
  }
  return out;
}

}  // namespace warpsmith
