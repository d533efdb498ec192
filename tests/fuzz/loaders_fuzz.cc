// A libFuzzer target for what people and jobs write:
//   loaders_fuzz MODE SOURCE [libFuzzer's options and corpus folders]
// MODE is task, plan, workflow, site, records, run, manifest, safetensors or tokenizer; SOURCE is the
// checkout. A mistake in the input must end as diagnostics, PlanError or Error. Any other exception, a crash,
// a hang or a leak is a finding.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/temporary_folder.h"
#include "warpsmith/model/manifest.h"
#include "warpsmith/model/safetensors.h"
#include "warpsmith/records/baseline.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/records/job.h"
#include "warpsmith/records/measurement.h"
#include "warpsmith/records/run_files.h"
#include "warpsmith/records/shard.h"
#include "warpsmith/task/launch_plan.h"
#include "warpsmith/task/task.h"
#ifdef WARPSMITH_HAS_TEXT_LIBRARIES
#include "warpsmith/tokenizer/pretrained.h"
#endif
#include "warpsmith/workflow/load.h"
#include "warpsmith/workflow/site.h"

namespace {

using namespace warpsmith;

fs::path source_folder;

void evaluate(const task::LaunchPlan& plan, const task::Task& task) {
  for (const auto* shapes : {&task.timing, &task.hidden})
    for (const task::Dims& dims : *shapes) try {
        plan.evaluate(task::plan_bindings(task, dims));
      } catch (const task::PlanError&) {
      }
}

void fuzz_task(std::string_view text) {
  Diagnostics mistakes;
  const auto task = task::load_task_text(text, "some_task", mistakes);
  if (task.has_value() != mistakes.empty()) std::abort();
  if (!task) return;
  const auto plan = task::LaunchPlan::parse("// plan: launch k<<<1, 1>>>(out)\n", *task, "k.cu", mistakes);
  if (mistakes.empty()) evaluate(plan, *task);
}

// Several tasks: expressions name dims, scalars and strides of theirs.
const std::vector<task::Task>& dataset() {
  static const std::vector<task::Task> tasks = [] {
    Diagnostics mistakes;
    return task::load_tasks(source_folder / "datasets", mistakes);
  }();
  return tasks;
}

void fuzz_plan(std::string_view text) {
  for (std::size_t i = 0; i < dataset().size(); i += 7) {
    const task::Task& task = dataset()[i];
    Diagnostics mistakes;
    const auto plan = task::LaunchPlan::parse(text, task, "k.cu", mistakes);
    if (mistakes.empty()) evaluate(plan, task);
  }
}

void fuzz_workflow(std::string_view text) {
  const auto loaded = workflow::load_workflow_text(
      text, "/w/w.yaml", {.overrides = {}, .seed = {}, .base_folder = "/w", .check_files = false});
  if (loaded.spec.has_value() != loaded.mistakes.empty()) std::abort();
}

void fuzz_site(std::string_view text) {
  Diagnostics mistakes;
  workflow::is_site_text(text);
  workflow::load_site_text(text, "/s/s.yaml", mistakes);
}

void take(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error&) {
  }
}

// A folder whose files `names` all have the bytes that were written last.
class FilesInMemory {
 public:
  explicit FilesInMemory(const std::vector<fs::path>& names) {
    for (const fs::path& name : names) {
      fs::create_directories((folder_.path() / name).parent_path());
      fs::create_symlink("/proc/self/fd/" + std::to_string(file_), folder_.path() / name);
    }
  }
  const fs::path& write(std::string_view text) {
    if (::ftruncate(file_, 0) != 0 ||
        ::pwrite(file_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
      std::abort();
    return folder_.path();
  }

 private:
  const TemporaryFolder folder_{"fuzz"};
  const int file_ = ::memfd_create("text", 0);
};

// A shard whose attempt has these bytes as records.jsonl, and as the blob that records may point into.
void fuzz_records(std::string_view text) {
  static FilesInMemory files({"1/records.jsonl", "1/blob.bin"});
  const fs::path& folder = files.write(text);
  take([&] {
    scan_shard_records(folder, [](Json&& record, const fs::path& attempt) {
      take([&] { measurement_from_json(record.value("measurement", record)); });
      take([&] { candidate_from_json(record.value("candidate", record)); });
      take([&] { baseline_timing_from_json(record.value("baseline", record)); });
      take([&] { job_file_from_json(record.value("job", record)); });
      take([&] { read_blob(attempt, blob_ref_from_json(record.value("blob", record))); });
    });
  });
}

void fuzz_run(std::string_view text) {
  static FilesInMemory files({"run.json", "state.json"});
  const fs::path& folder = files.write(text);
  take([&] { read_run_json(folder); });
  take([&] { read_state_json(folder); });
}

// Once as it is, and once with the right checksum, which fuzzing cannot find.
void fuzz_manifest(std::string_view text) {
  static FilesInMemory files({"manifest.json", "origin.json", "model.h5"});
  const auto read = [](const fs::path& folder) {
    model::checkpoint_damage(folder);
    take([&] { model::read_checkpoint_facts(folder); });
  };
  read(files.write(text));
  take([&] {
    Json manifest = parse_json(text, "manifest.json");
    if (!manifest.is_object()) return;
    manifest["schema"] = model::kCheckpointSchema;
    manifest["checksum"] = model::manifest_checksum(manifest);
    read(files.write(manifest.dump()));
  });
}

// Every byte that a tensor is said to have is read.
void fuzz_safetensors(std::string_view text) {
  static FilesInMemory files({"model.safetensors"});
  const fs::path& folder = files.write(text);
  take([&] {
    const model::StoredTensors stored = model::StoredTensors::open(folder);
    volatile unsigned sum = 0;
    for (const auto& [name, tensor] : stored.all())
      for (const std::byte byte : tensor.bytes) sum = sum + static_cast<unsigned>(byte);
  });
}

void fuzz_tokenizer([[maybe_unused]] std::string_view text) {
#ifdef WARPSMITH_HAS_TEXT_LIBRARIES
  take([&] {
    const tokenizer::Pretrained read = tokenizer::Pretrained::from_json(text, "tokenizer.json");
    for (const char* some : {"", "the  <a> \n 12 caf\u00e9 \u4f60\u597d\r\n\tthe", "<a><a>b   "})
      take([&] { (void)read.decode(read.encode(some), false); });
  });
#endif
}

void (*entry)(std::string_view) = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::map<std::string, void (*)(std::string_view)> modes = {
      {"task", fuzz_task},          {"plan", fuzz_plan},
      {"workflow", fuzz_workflow},  {"site", fuzz_site},
      {"records", fuzz_records},    {"run", fuzz_run},
      {"manifest", fuzz_manifest},  {"safetensors", fuzz_safetensors},
      {"tokenizer", fuzz_tokenizer}};
  const auto mode = *argc < 3 ? modes.end() : modes.find((*argv)[1]);
  if (mode == modes.end()) {
    std::fprintf(
        stderr,
        "usage: loaders_fuzz task|plan|workflow|site|records|run|manifest|safetensors|tokenizer SOURCE "
        "[libFuzzer's arguments]\n");
    std::exit(2);
  }
  entry = mode->second;
  source_folder = (*argv)[2];
  (*argv)[2] = (*argv)[0];
  *argv += 2;
  *argc -= 2;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  entry(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
