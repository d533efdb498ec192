// Adding cases to a hack database.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "hack_case.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/terminal_text.h"
#include "warpsmith/workflow/hack_database.h"

namespace warpsmith::workflow {

namespace {

constexpr std::size_t kLongestReason = 2000;  // bytes

// In quotes; JSON's escapes are YAML's, also for control characters that a YAML file may not hold as such.
// What is no UTF-8 is replaced.
std::string yaml_string(const std::string& text) {
  return terminal_text(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

// A compiler's log may be long, and a terminal's control characters are nobody's reason.
std::string tidy(std::string reason) {
  if (reason.size() > kLongestReason) reason = reason.substr(0, kLongestReason) + " ...";
  for (char& c : reason)
    if ((static_cast<unsigned char>(c) < ' ' && c != '\n') || c == '\x7f') c = ' ';
  return reason;
}

std::string case_text(const HackCase& c, const std::string& date) {
  Json files = Json::array();
  for (const SourceFile& file : c.candidate.files) files.push_back(file.path);
  std::string text = fmt::format("schema: {}\n", kHackSchema);
  const auto line = [&](const char* key, const std::string& value) {
    if (!value.empty()) text += fmt::format("{}: {}\n", key, yaml_string(value));
  };
  line("candidate", c.candidate.id);
  line("task", c.candidate.task);
  text += fmt::format("tier: {}\n", to_string(c.candidate.tier));
  if (!c.candidate.options.empty()) text += "options: " + Json(c.candidate.options).dump() + "\n";
  text += "files: " + files.dump() + "\n";
  text += fmt::format("verdict: {}\nkind: {}\n", to_string(c.verdict), yaml_string(c.kind));
  text += fmt::format("reason: {}\n", yaml_string(tidy(c.reason)));
  line("device", c.device);
  line("device_name", c.device_name);
  line("run", c.run);
  line("stage", c.stage);
  text += fmt::format("round: {}\ndate: {}\n", c.round, date);
  return text;
}

// False: something of that name is there.
bool write_case(const fs::path& database, const std::string& name, const HackCase& c,
                const std::string& date) {
  const fs::path beside = database / fmt::format(".{}.{}", name, ::getpid());
  std::error_code error;
  fs::remove_all(beside, error);  // of a process that was killed
  try {
    for (const SourceFile& file : c.candidate.files) {
      make_folders((beside / file.path).parent_path());
      write_file_atomic(beside / file.path, file.content);
    }
    write_file_atomic(beside / kHackFile, case_text(c, date));
  } catch (const Error&) {
    fs::remove_all(beside, error);
    throw;
  }
  if (!fs::exists(database / name)) fs::rename(beside, database / name, error);
  const bool there = fs::exists(beside);
  if (there) fs::remove_all(beside);
  if (error && error != std::errc::directory_not_empty && error != std::errc::file_exists)
    throw Error("cannot make " + (database / name).string() + ": " + error.message());
  sync_folder(database);
  return !there;
}

// Whether the database as it is now has the case: somebody else may have added it.
bool holds(const fs::path& folder, const HackCase& c) {
  Diagnostics ignored;
  const auto database = load_hack_database(folder, ignored);
  return database && std::any_of(database->cases.begin(), database->cases.end(), [&](const HackCase& one) {
           return one.candidate.id == c.candidate.id && one.kind == c.kind;
         });
}

void check_paths(const HackCase& c) {
  for (const SourceFile& file : c.candidate.files)
    if (!stays_inside(file.path))
      throw Error(fmt::format("candidate {}: its file `{}` cannot be kept: not a path below its folder",
                              c.candidate.id, file.path),
                  kExitUsage);
}

}  // namespace

bool stays_inside(std::string_view path) {
  const fs::path one(path);
  if (path.empty() || path.back() == '/' || one.is_absolute() || path == kHackFile) return false;
  for (const fs::path& part : one)
    if (part == ".." || part == ".") return false;
  return path.find('\0') == std::string_view::npos;
}

std::vector<AddedHack> add_to_hack_database(const fs::path& folder, const std::vector<HackCase>& cases,
                                            const std::string& date) {
  make_folders(folder);
  Diagnostics mistakes;
  const auto database = load_hack_database(folder, mistakes);
  if (!database) throw InvalidInput(std::move(mistakes));
  std::set<std::pair<std::string, std::string>> known;
  for (const HackCase& c : database->cases) known.emplace(c.candidate.id, c.kind);
  for (const HackCase& c : cases) check_paths(c);
  std::vector<AddedHack> out;
  for (const HackCase& c : cases) {
    AddedHack one{fmt::format("{}-{}", c.candidate.id.substr(0, 8), c.kind), false};
    if (known.emplace(c.candidate.id, c.kind).second) {
      one.added = write_case(folder, one.name, c, date);
      // Another candidate whose id begins alike, or a folder that somebody gave another case's name.
      if (!one.added && !holds(folder, c)) {
        one.name = fmt::format("{}-{}", c.candidate.id, c.kind);
        one.added = write_case(folder, one.name, c, date);
      }
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace warpsmith::workflow
