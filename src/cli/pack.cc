// `warpsmith pack RUN` and `warpsmith unpack FOLDER`: a run in parts of a size that can be carried, and back.
//
//   <folder>/pack.json          the run's name; of the whole and of each part its bytes and SHA-256; what was
//   left out <folder>/part-001 …         a gzipped tar of the run's folder, cut
//
// What can be made again from the rest is left out: results.h5, report.html, and exported models.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <map>

#include "print.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/base/text.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/controller/run_folder.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/machine.h"

namespace warpsmith::cli {

namespace {

constexpr const char* kSchema = "warpsmith.pack/1";
constexpr const char* kListFile = "pack.json";
constexpr std::uint64_t kLeastPart = 64 << 10, kMostParts = 10'000;

struct PackOptions {
  std::string run, parts = "64MiB", output;
  bool exports = false;
};

struct UnpackOptions {
  std::string folder, into;
};

// "stages/sft/0a1b2c3d/model/config.json": below the folder that transformers loads.
bool is_exported(const fs::path& path) {
  std::vector<std::string> names;
  for (const fs::path& part : path) names.push_back(part.string());
  return names.size() > 3 && names[0] == "stages" && names[3] == "model";
}

// Files of the run, relative to it and sorted; `left_out`: bytes of the others by what they are.
std::vector<std::string> files_of(const fs::path& run, bool exports,
                                  std::map<std::string, std::uint64_t>& left_out) {
  std::vector<std::string> files;
  for (auto it = fs::recursive_directory_iterator(run); it != fs::recursive_directory_iterator(); ++it) {
    if (it->is_symlink() || !it->is_regular_file()) continue;
    const fs::path path = it->path().lexically_relative(run);
    const std::string top = path.begin()->string();
    const auto leave_out = [&](const char* what) { left_out[what] += it->file_size(); };
    if (top.starts_with("results.h5") || top == "report.html")
      leave_out("results.h5 and report.html");
    else if (top == "set_aside")
      leave_out("results set aside by --force");
    else if (is_exported(path) && !exports)
      leave_out("exported models");
    else if (top != "controller.lock")
      files.push_back(path.string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void run_tar(std::vector<std::string> arguments) {
  process::ChildSpec spec;
  spec.argv = {"tar"};
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  spec.environment = process::our_environment();
  const process::ChildResult result = process::run_child(spec);
  if (result.ending == process::Ending::kExited && result.exit_code == 0) return;
  throw Error("tar failed: " + (result.err.empty() ? result.problem : trim(result.err)), kExitFailed);
}

// The file's bytes [begin, begin + size) as a file of their own.
std::string cut(std::ifstream& from, std::uint64_t size, const fs::path& to) {
  std::string bytes(size, '\0');
  if (!from.read(bytes.data(), static_cast<std::streamsize>(size)))
    throw Error("the archive could not be read again", kExitFailed);
  write_file_atomic(to, bytes);
  return sha256_hex(bytes);
}

int pack(const PackOptions& options, CommandContext& context) {
  const std::optional<std::uint64_t> size = parse_size(options.parts);
  if (!size || *size < kLeastPart)
    throw Error("--parts " + options.parts + ": a size of 64 KiB at least, such as 16MiB", kExitUsage);
  const fs::path run = fs::absolute(find_run(context, options.run)).lexically_normal();
  const controller::RunLock lock(run);
  const std::string name = (run.has_filename() ? run : run.parent_path()).filename().string();
  const fs::path folder = options.output.empty() ? fs::path(name + ".pack") : fs::path(options.output);
  if (path_exists(folder)) throw Error(folder.string() + " is there already", kExitUsage);
  std::map<std::string, std::uint64_t> left_out;
  const std::vector<std::string> files = files_of(run, options.exports, left_out);
  Json said;
  write_folder_whole(folder, [&](const fs::path& partial) {
    std::string list;
    for (const std::string& file : files) list += file + '\0';
    write_file_atomic(partial / "files", list);
    const fs::path whole = partial / "whole";
    run_tar({"--create", "--gzip", "--file", whole.string(), "--directory", run.string(), "--null",
             "--verbatim-files-from", "--no-recursion", "--files-from", (partial / "files").string()});
    const std::uint64_t bytes = fs::file_size(whole);
    if (bytes / *size >= kMostParts)
      throw Error("that would be more than 10,000 parts: larger --parts", kExitUsage);
    Json parts = Json::array();
    std::ifstream from(whole, std::ios::binary);
    for (std::uint64_t begin = 0; begin < bytes; begin += *size) {
      const std::uint64_t part = std::min(*size, bytes - begin);
      const std::string file = fmt::format("part-{:03}", parts.size() + 1);
      parts.push_back({{"file", file}, {"bytes", part}, {"sha256", cut(from, part, partial / file)}});
    }
    said = {{"schema", kSchema}, {"run", name},          {"files", files.size()},
            {"bytes", bytes},    {"left_out", left_out}, {"parts", std::move(parts)}};
    fs::remove(whole);
    fs::remove(partial / "files");
    write_file_atomic(partial / kListFile, said.dump(2) + "\n");
  });
  if (context.json) {
    print_json(context, said);
    return kExitOk;
  }
  const std::size_t parts = said["parts"].size();
  print("%s: %s in %zu part%s, of %zu files of %s\n", folder.string().c_str(),
        format_size(said["bytes"].get<std::uint64_t>()).c_str(), parts, parts == 1 ? "" : "s", files.size(),
        run.string().c_str());
  for (const auto& [what, size_of] : left_out)
    print("left out: %s, %s\n", what.c_str(), format_size(size_of).c_str());
  return kExitOk;
}

int unpack(const UnpackOptions& options, CommandContext& context) {
  const fs::path folder = options.folder;
  if (!path_exists(folder / kListFile))
    throw Error(folder.string() + " is no pack: it has no " + kListFile, kExitUsage);
  const Json said = read_json_file(folder / kListFile);
  const std::string where = (folder / kListFile).string();
  if (json_at<std::string>(said, "schema", where) != kSchema)
    throw Error(where + ": its schema is not " + kSchema, kExitUsage);
  const auto name = json_at<std::string>(said, "run", where);
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
    throw Error(where + ": `" + name + "` is no name of a run", kExitUsage);
  const fs::path run = options.into.empty() ? context.results / name : fs::path(options.into);
  if (path_exists(run))
    throw Error(run.string() + " is there already: name another folder by --into, or move it away",
                kExitUsage);
  write_folder_whole(run, [&](const fs::path& partial) {
    const fs::path whole = partial / ".whole-pack";
    {
      std::ofstream joined(whole, std::ios::binary);
      for (const Json& part : json_at<Json>(said, "parts", where)) {
        const fs::path file = folder / fs::path(json_at<std::string>(part, "file", where)).filename();
        if (!path_exists(file)) throw Error("a part is missing: " + file.string(), kExitUsage);
        const std::string bytes = read_file(file);
        if (sha256_hex(bytes) != json_at<std::string>(part, "sha256", where))
          throw Error("a part is damaged: " + file.string(), kExitUsage);
        joined << bytes;
      }
      if (!joined.flush()) throw Error("cannot write " + whole.string(), kExitFailed);
    }
    run_tar({"--extract", "--gzip", "--file", whole.string(), "--directory", partial.string(),
             "--no-same-owner"});
    fs::remove(whole);
    if (!path_exists(partial / "run.json"))
      throw Error(folder.string() + " holds no run: there is no run.json in it", kExitUsage);
  });
  if (context.json)
    print_json(context, {{"run", run.string()}});
  else
    print("%s\n", run.string().c_str());
  return kExitOk;
}

}  // namespace

void add_pack(CLI::App& app, CommandContext& context) {
  auto packing = std::make_shared<PackOptions>();
  CLI::App* command = add_command(app, context, "pack", "Puts a run into parts that can be carried elsewhere",
                                  "warpsmith pack quickstart --parts 16MiB",
                                  [packing, &context] { return pack(*packing, context); });
  add_run_argument(*command, packing->run);
  command->add_option("--parts", packing->parts, "Size of a part (default: 64MiB)");
  command->add_option("--output", packing->output, "The folder for them (default: RUN.pack)");
  command->add_flag("--exports", packing->exports, "Also the models that stages have exported");
  add_json_flag(*command, context);

  auto unpacking = std::make_shared<UnpackOptions>();
  command = add_command(app, context, "unpack", "Makes a run of such parts again, which then goes on",
                        "warpsmith unpack quickstart.pack",
                        [unpacking, &context] { return unpack(*unpacking, context); });
  command->add_option("FOLDER", unpacking->folder, "The folder with pack.json and the parts")->required();
  command->add_option("--into", unpacking->into, "The run's folder (default: below the results folder)");
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli
