#include "warpsmith/records/shown_file.h"

#include <cctype>
#include <filesystem>

namespace warpsmith {

namespace {

bool is_path_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '/';
}

}  // namespace

std::string shown_file(const Candidate& candidate) {
  if (candidate.files.size() != 1) return "";
  const std::string& path = candidate.files.front().path;
  const bool has_own = (candidate.origin.kind == "dataset" || candidate.origin.kind == "imported") &&
                       candidate.origin.detail.ends_with(std::filesystem::path(path).extension().string());
  return has_own ? candidate.origin.detail : candidate.id.substr(0, 8) + "/" + path;
}

std::string name_shown_file(const std::string& message, const Candidate& candidate) {
  const std::string shown = shown_file(candidate);
  if (shown.empty() || candidate.files.front().path.empty()) return message;
  const std::string& path = candidate.files.front().path;
  std::string out;
  for (std::size_t from = 0;;) {
    const std::size_t at = message.find(path, from);
    if (at == std::string::npos) return out + message.substr(from);
    const std::size_t end = at + path.size();
    const bool is_part = (at > 0 && (is_path_character(message[at - 1]) || message[at - 1] == '.')) ||
                         (end < message.size() && is_path_character(message[end]));
    out += message.substr(from, at - from) + (is_part ? path : shown);
    from = end;
  }
}

}  // namespace warpsmith
