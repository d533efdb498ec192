// Reading a hack database.
#include "warpsmith/workflow/hack_database.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "hack_case.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/base/text.h"
#include "warpsmith/yaml/node.h"

namespace warpsmith::workflow {

namespace {

using yaml::MapReader;

constexpr std::uintmax_t kLargestFile = 1u << 20;  // bytes, of a source

const std::vector<std::string> kTiers = {"plan", "extension", "python"};
const std::vector<std::string> kVerdicts = {"hack", "too_fast", "sandbox_violation", "unstable"};

// "2026-05-01", with or without the time of day.
bool is_date(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:ddZ";
  if (text.size() != 10 && text.size() != kForm.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (kForm[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != kForm[i]) return false;
  const auto two = [&](std::size_t at) { return (text[at] - '0') * 10 + (text[at + 1] - '0'); };
  const std::chrono::year_month_day day{std::chrono::year(two(0) * 100 + two(2)),
                                        std::chrono::month(static_cast<unsigned>(two(5))),
                                        std::chrono::day(static_cast<unsigned>(two(8)))};
  if (!day.ok()) return false;
  return text.size() == 10 || (two(11) < 24 && two(14) < 60 && two(17) < 61);  // 60: a leap second
}

void read_schema(MapReader& map) {
  const auto schema = map.text("schema", {.required = true});
  if (schema && *schema != kHackSchema)
    map.mistake("schema", fmt::format("schema `{}` is not known to this version", *schema),
                fmt::format("schema: {}", kHackSchema));
}

void read_sources(MapReader& map, const fs::path& folder, Candidate& candidate, Diagnostics& mistakes) {
  for (const yaml::Node& item : map.sequence("files", {.required = true})) {
    const auto path = yaml::read_text(item, "`files`", mistakes);
    if (!path) continue;
    const fs::path file = folder / *path;
    std::error_code error;
    const auto mistake = [&](const std::string& what) {
      mistakes.push_back(yaml::mistake_at(item.place(), fmt::format("`files`: {}", what)));
    };
    if (!stays_inside(*path))
      mistake(*path + " is no file of the case's folder");
    else if (fs::symlink_status(file, error).type() != fs::file_type::regular)
      mistake("there is no file " + *path);
    else if (fs::file_size(file, error) > kLargestFile)
      mistake(*path + " is larger than 1 MiB");
    else
      try {
        candidate.files.push_back({*path, read_file(file)});
      } catch (const Error& e) {
        mistake(e.what());
      }
  }
}

void read_kind(MapReader& map, HackCase& out) {
  const auto verdict = map.word("verdict", kVerdicts, {.required = true});
  const auto kind = map.string("kind", {.required = true});
  if (!verdict || !kind) return;
  out.verdict = *parse_verdict(*verdict);
  out.kind = *kind;
  const std::string_view fixed = fixed_kind(out.verdict);
  if (!is_identifier(*kind))
    map.mistake("kind", fmt::format("`{}` is no kind of a hack", *kind), "letters, digits, _ and -");
  else if (!fixed.empty() && *kind != fixed)
    map.mistake("kind", fmt::format("verdict `{}` has no kind `{}`", *verdict, *kind),
                fmt::format("kind: {}", fixed));
}

std::optional<HackCase> read_case(const fs::path& folder, Diagnostics& mistakes) {
  const fs::path file = folder / kHackFile;
  if (std::error_code error; !fs::is_regular_file(file, error)) {
    mistakes.push_back({folder.string(), 0, 0, fmt::format("this folder holds no {}", kHackFile),
                        "each folder of a hack database is a case"});
    return std::nullopt;
  }
  const std::size_t before = mistakes.size();
  const yaml::Node root = yaml::load_file(file, mistakes);
  if (mistakes.size() > before || !yaml::is_map_file(root, "case", kHackSchema, mistakes))
    return std::nullopt;
  HackCase out;
  MapReader map(root, "case", mistakes);
  read_schema(map);
  const auto id = map.text("candidate", {.required = true});
  out.candidate.id = id.value_or("");
  out.candidate.task = map.text("task", {.required = true}).value_or("");
  out.candidate.tier = parse_tier(map.word("tier", kTiers, {.required = true}).value_or("plan"));
  out.candidate.options = map.texts("options");
  read_sources(map, folder, out.candidate, mistakes);
  read_kind(map, out);
  out.reason = map.text("reason", {.required = true}).value_or("");
  out.device = map.text("device").value_or("");
  out.device_name = map.text("device_name").value_or("");
  out.run = map.text("run").value_or("");
  out.stage = map.text("stage").value_or("");
  out.round = static_cast<int>(map.integer("round", {.low = 0, .high = 1e9}).value_or(0));
  out.date = map.text("date", {.required = true}).value_or("");
  if (!out.date.empty() && !is_date(out.date))
    map.mistake("date", fmt::format("`{}` is no date", out.date),
                "such as 2026-05-01 or 2026-05-01T12:00:00Z");
  map.finish();
  if (mistakes.size() > before) return std::nullopt;
  if (out.candidate.files.empty()) {
    map.mistake("files", "`files` names no file", "files: [kernel.cu]");
  } else if (candidate_id(out.candidate) != out.candidate.id) {
    map.mistake("candidate", "the id is not that of this task, tier and these files",
                "a program that was changed is another candidate: " + candidate_id(out.candidate));
  }
  return mistakes.size() > before ? std::nullopt : std::optional(std::move(out));
}

std::vector<fs::path> case_folders(const fs::path& database, Diagnostics& mistakes) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(database, error), end; !error && it != end; it.increment(error))
    if (std::error_code gone; it->is_directory(gone) && !it->path().filename().string().starts_with('.'))
      found.push_back(it->path());
  if (error) mistakes.push_back({database.string(), 0, 0, "cannot list the folder: " + error.message(), ""});
  std::sort(found.begin(), found.end());
  return found;
}

std::string digest_of(const std::vector<HackCase>& cases) {
  Sha256 digest;
  for (const HackCase& c : cases) digest.field(c.candidate.id).field(c.kind).field(c.reason);
  return digest.hex();
}

}  // namespace

std::optional<HackDatabase> load_hack_database(const fs::path& folder, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.size();
  HackDatabase database;
  std::map<std::pair<std::string, std::string>, std::string> places;  // candidate and kind -> folder
  for (const fs::path& one : case_folders(folder, diagnostics)) {
    auto read = read_case(one, diagnostics);
    if (!read) continue;
    const std::string name = one.filename().string();
    if (const auto [it, fresh] = places.emplace(std::pair(read->candidate.id, read->kind), name); !fresh)
      diagnostics.push_back({(one / kHackFile).string(), 1, 1,
                             fmt::format("the same candidate and kind as {}", it->second),
                             "one of the two folders is to go"});
    database.cases.push_back(std::move(*read));
  }
  if (diagnostics.size() > before) return std::nullopt;
  const auto key = [](const HackCase& c) { return std::tie(c.date, c.candidate.id, c.kind); };
  std::sort(database.cases.begin(), database.cases.end(),
            [&](const HackCase& a, const HackCase& b) { return key(a) < key(b); });
  database.digest = digest_of(database.cases);
  return database;
}

}  // namespace warpsmith::workflow
