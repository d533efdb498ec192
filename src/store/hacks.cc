#include "warpsmith/store/hacks.h"

#include <map>
#include <set>

#include "record_rows.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/records/run_files.h"
#include "warpsmith/records/shard.h"

namespace warpsmith::store {

namespace {

class HackReader {
 public:
  explicit HackReader(const fs::path& run_folder) : run_folder_(run_folder) {}

  std::vector<HackCase> read() {
    run_ = run_folder_.filename().string();
    try {
      if (path_exists(run_folder_ / "run.json")) run_ = read_run_json(run_folder_).value("name", run_);
    } catch (const Error& e) {
      leave_out(run_folder_, e.what());
    }
    for (const StageVersion& version : stage_versions(run_folder_))
      for (const auto& [round, round_folder] :
           numbered_folders(run_folder_ / "stages" / version.stage / version.hash8))
        for (int turn = 1; turn <= kMostTurns; ++turn)
          for (const char* job : {"compile", "measure"})
            read_job(round_folder / job_of_turn(job, turn), version.stage, static_cast<int>(round));
    return std::move(cases_);
  }

 private:
  // Verdicts of a compilation are a measurement's, too: a sandbox that was left by what a source includes.
  static Measurement measurement_of(const Json& record, bool compiled) {
    if (!compiled) return measurement_from_json(record);
    Measurement m;
    m.verdict = parse_verdict(record.value("verdict", "")).value_or(Verdict::kNotMeasured);
    m.detail = record.value("log", "");
    return m;
  }

  void read_job(const fs::path& folder, const std::string& stage, int round) {
    try {
      if (!path_exists(folder / "items.jsonl")) return;
    } catch (const Error& e) {
      return leave_out(folder, e.what());
    }
    std::map<std::string, Measurement> confirmed;  // by item
    for (const auto& [number, shard] : numbered_folders(folder))
      scan_shard_records(
          shard,
          [&](Json&& record, const fs::path&) {
            const auto verdict = record.find("verdict");
            if (verdict == record.end() || *verdict == to_string(Verdict::kOk)) return;
            try {
              Measurement m = measurement_of(record, kind_of_job(folder.filename().string()) == "compile");
              if (confirmed_hack(m)) confirmed.emplace(record.value("item", ""), std::move(m));
            } catch (const std::exception& e) {
              leave_out(shard, e.what());
            }
          },
          [&](const Error& e) { leave_out(shard, e.what()); });
    if (confirmed.empty()) return;
    const auto take = [&](Json&& item, std::uint64_t) {
      const auto id = item.find("id");
      const auto found =
          confirmed.find(id != item.end() && id->is_string() ? id->get<std::string>() : std::string());
      const auto candidate = item.find("candidate");
      if (found == confirmed.end() || candidate == item.end() || !candidate->is_object()) return;
      Candidate program;
      try {
        program = candidate_from_json(*candidate);
      } catch (const Error& e) {
        log_warning((folder / "items.jsonl").string() + ": " + e.what() + "; it is left out");
        return;
      }
      HackCase hack = *hack_case(program, found->second);
      if (!seen_.emplace(hack.candidate.id, hack.kind).second) return;
      hack.run = run_;
      hack.stage = stage;
      hack.round = round;
      cases_.push_back(std::move(hack));
    };
    scan_json_lines(folder / "items.jsonl", 0, take,
                    [&](const BadContent& e) { leave_out(folder, e.what()); });
  }

  static void leave_out(const fs::path& place, const std::string& why) {
    log_warning(place.string() + ": " + why + "; it is left out");
  }

  const fs::path run_folder_;
  std::string run_;
  std::set<std::pair<std::string, std::string>> seen_;  // candidates and kinds
  std::vector<HackCase> cases_;
};

}  // namespace

std::vector<HackCase> read_hacks(const fs::path& run_folder) {
  try {
    return HackReader(run_folder).read();
  } catch (const Error& e) {
    throw e.with_context("while reading the records of " + run_folder.string());
  }
}

}  // namespace warpsmith::store
