#include "import_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>
#include <system_error>

#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/task/hosted_files.h"

namespace warpsmith::cli {

namespace {

constexpr std::uint64_t kMostBytes = 1 << 20;       // of a kernel
constexpr std::uint64_t kMostResults = 256u << 20;  // of an eval_results.json

Json read_origins(const fs::path& file) {
  if (!path_exists(file)) return Json::object();
  Json origins = read_json_file(file);
  if (!origins.is_object() ||
      !std::all_of(origins.begin(), origins.end(), [](const Json& one) { return one.is_object(); }))
    throw BadContent(file, file.string() + ": it is not what `warpsmith import` writes");
  return origins;
}

// What is known of a kernel that is there: scores that are new.
void add_published(const Json& from, Json& to) {
  if (!from.contains("published")) return;
  Json published = from.at("published");
  if (to.contains("published")) published.update(to.at("published"));
  to["published"] = std::move(published);
}

// Results of a problem by sample, where a file has them.
const Json* result_of(const Json& results, int number, int sample) {
  const auto problem = results.find(std::to_string(number));
  if (problem == results.end()) return nullptr;
  if (problem->is_object()) return sample == problem->value("sample_id", 0) ? &*problem : nullptr;
  for (const Json& one : *problem)
    if (one.is_object() && one.value("sample_id", -1) == sample) return &one;
  return nullptr;
}

Json published_of(const Json& result) {
  Json published = {{"compiled", result.value("compiled", false)},
                    {"correctness", result.value("correctness", false)}};
  if (const double ms = result.value("runtime", -1.0); ms > 0) published["runtime_ms"] = ms;
  return published;
}

// Puts what the run's results say to each kernel.
void add_results(const fs::path& file, std::vector<RunKernel>& kernels, Diagnostics& mistakes) {
  if (!path_exists(file)) return;
  std::set<int> levels;
  for (const RunKernel& one : kernels) levels.insert(one.level);
  try {
    if (levels.size() > 1) throw Error("it does not say of which level its problems are");
    const Json results = parse_json(read_file_within(file, kMostResults), "the file");
    if (!results.is_object()) throw Error("it is no object of problems");
    for (RunKernel& one : kernels)
      if (const Json* result = result_of(results, one.number, one.kernel.origin.at("sample").get<int>()))
        one.kernel.origin["published"] = published_of(*result);
  } catch (const Json::exception& e) {
    mistakes.push_back({file.string(), 0, 0, in_words(e), ""});
  } catch (const Error& e) {
    mistakes.push_back({file.string(), 0, 0, e.what(), ""});
  }
}

}  // namespace

std::string imported_name(std::string text) {
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-') c = '_';
  return text.empty() ? "_" : text;
}

Added add_kernel(const fs::path& task_folder, const ForeignKernel& kernel, std::string& refused) {
  const fs::path folder = task_folder / task::kImportedFolder, origin_file = folder / task::kImportedOrigin,
                 file = folder / (kernel.name + kernel.ending);
  Json origins = read_origins(origin_file);
  Json entry = kernel.origin;
  const bool missing = entry.contains("missing");
  if (!missing) entry["sha256"] = sha256_hex(kernel.text);
  const Json before = origins.value(kernel.name, Json::object());
  const bool written = !missing && path_exists(file);
  if ((before.contains("sha256") && before["sha256"] != entry.value("sha256", "")) ||
      (written && read_file(file) != kernel.text)) {
    refused = fmt::format("a kernel `{}` of another text lies in {}, and stays as it is", kernel.name,
                          folder.string());
    return Added::kThere;
  }
  if (!missing && !written) {
    make_folders(folder);
    write_file_atomic(file, kernel.text);
    Diagnostics mistakes;
    if (!task::load_imported_source(file, mistakes)) {
      refused = to_string(mistakes.front());
      std::error_code ignored;
      fs::remove(file, ignored);
      return Added::kMissing;
    }
  }
  const bool is_new = before.empty() || (before.contains("missing") && !missing);
  origins[kernel.name] = is_new ? entry : before;
  if (!is_new) add_published(entry, origins[kernel.name]);
  if (is_new || origins[kernel.name] != before) {
    make_folders(folder);
    write_file_atomic(origin_file, origins.dump(2) + "\n");
  }
  return missing ? Added::kMissing : is_new ? Added::kNew : Added::kThere;
}

std::vector<RunKernel> read_kernelbench_run(const fs::path& folder, Diagnostics& mistakes) {
  static const std::regex kFile("level_([0-9]{1,4})_problem_([0-9]{1,6})_sample_([0-9]{1,6})_kernel\\.py");
  const std::string run = absolute_folder(folder).filename().string();
  std::vector<RunKernel> kernels;
  for (const fs::path& file : folder_entries(folder)) {
    const std::string name = file.filename().string();
    std::smatch part;
    if (!std::regex_match(name, part, kFile)) continue;
    RunKernel one{file, std::stoi(part[1]), std::stoi(part[2]), {}};
    one.kernel.name = imported_name(fmt::format("{}_sample_{}", run, std::stoi(part[3])));
    one.kernel.origin = {{"from", name}, {"run", run}, {"sample", std::stoi(part[3])}};
    try {
      one.kernel.text = read_file_within(file, kMostBytes);
      kernels.push_back(std::move(one));
    } catch (const Error& e) {
      mistakes.push_back({file.string(), 0, 0, e.what(), ""});
    }
  }
  if (kernels.empty())
    throw Error(folder.string() + " holds no level_L_problem_P_sample_S_kernel.py of a run of KernelBench",
                kExitUsage);
  std::sort(kernels.begin(), kernels.end(), [](const RunKernel& a, const RunKernel& b) {
    return std::tie(a.level, a.number, a.file) < std::tie(b.level, b.number, b.file);
  });
  add_results(folder / "eval_results.json", kernels, mistakes);
  return kernels;
}

std::vector<ForeignKernel> read_kernels(const std::vector<std::string>& paths, Diagnostics& mistakes) {
  std::vector<fs::path> files;
  for (const std::string& path : paths) {
    if (!path_exists(path)) throw Error(path + ": there is no such file", kExitUsage);
    if (!is_folder(path)) {
      files.emplace_back(path);
      continue;
    }
    for (const fs::path& file : folder_entries(path))
      if (const std::string name = file.filename().string(); !name.starts_with(".") && name != "__pycache__")
        files.push_back(file);
  }
  std::vector<ForeignKernel> kernels;
  for (const fs::path& file : files)
    if (const auto source = task::load_imported_source(file, mistakes))
      kernels.push_back({imported_name(file.stem().string()),
                         file.extension().string(),
                         source->files.front().content,
                         {{"from", file.filename().string()}}});
  return kernels;
}

}  // namespace warpsmith::cli
