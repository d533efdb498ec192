// Files and folders that a workflow's stages name: made absolute, looked at, and read where the run needs
// what they say now.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "stage.h"
#include "warpsmith/workflow/hack_database.h"
#include "warpsmith/workflow/load.h"

namespace warpsmith::workflow {

class NamedFiles {
 public:
  // `file`: the workflow's; what is relative begins at `base`.
  NamedFiles(const std::filesystem::path& file, const LoadOptions& options, const std::filesystem::path& base,
             Diagnostics& mistakes, Diagnostics& notes)
      : file_(file), options_(options), base_(base), mistakes_(mistakes), notes_(notes) {}

  // Of an instance whose place in the file is known: mistakes stand there.
  void find(Draft& draft);
  // What enters the stage's hash.
  void find(StageSpec& stage);
  // The folder of a model is made absolute and looked at.
  void find_model(ModelSettings& model, const yaml::Place& place);

 private:
  std::optional<std::filesystem::path> file_beside(const std::string& word) const;
  void check_files_of(const Draft& draft, const std::vector<std::string>& argv);
  void find_files(StageSpec& stage, std::vector<std::string>& argv);
  void find_run(const StageSpec& stage, MeasureSettings& measure);
  std::shared_ptr<const HackDatabase> find_hacks(std::string& named, const yaml::Place& place);
  void find_certificates(const Draft& draft, EndpointSettings& endpoint);

  const std::filesystem::path& file_;
  const LoadOptions& options_;
  const std::filesystem::path& base_;
  Diagnostics &mistakes_, &notes_;
  std::map<std::filesystem::path, std::shared_ptr<const HackDatabase>> hacks_;  // null: it has mistakes
  // By folder, whether with weights, and context; null: it has mistakes.
  std::map<std::tuple<std::filesystem::path, bool, int>, std::shared_ptr<const PretrainedModel>> models_;
};

}  // namespace warpsmith::workflow
