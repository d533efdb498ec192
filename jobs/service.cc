// warpsmith-service JOB.json SHARD: a server, from its start until it is told to end.
//
// params  {"argv": words, in which {port} becomes a free port, {host} the address to listen at, and {model}
// the
//          folder of a model, "model_folder": that folder, relative to the run's; it may be absent,
//          "health", "api": paths, "ready_s": how long it may take}
// item    {"id": "server"}; it gets no record
//
// <job folder>/service.json, as soon as the server answers at `health` and until it no longer does:
// {"url", "host", "pid", "model" and "weights" where it was given some}. On this machine the server listens
// at 127.0.0.1; in a Slurm job under the node's name, where others on the cluster may ask it, too.
//
// <job folder>/weights.json, {"folder" (relative to the run's), "version"}, is written by who wants other
// weights: then the server is started again with that folder as its {model}.
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/endpoint/client.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/records/shard.h"

using namespace warpsmith;

namespace {

using std::chrono::steady_clock;
constexpr auto kLook = std::chrono::milliseconds(200);
constexpr auto kHealthPause = std::chrono::seconds(10);
constexpr int kMostSilences = 6;  // in a row: it hangs, and is ended

class Service {
 public:
  explicit Service(const ShardSession& shard)
      : file_(shard.job_folder() / "service.json"),
        wanted_(shard.job_folder() / "weights.json"),
        run_(fs::absolute(shard.run_folder()).lexically_normal()),
        params_(shard.job().params) {
    if (params_.contains("model_folder"))
      model_ = (run_ / params_.at("model_folder").get<std::string>()).string();
    ::setenv("no_proxy", "*", 1);  // a proxy leads out of the cluster
    host_ = std::getenv("SLURM_JOB_ID") != nullptr ? process::host_name() : "127.0.0.1";
  }
  ~Service() {
    std::error_code ignored;
    fs::remove(file_, ignored);
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  [[noreturn]] void run() {
    for (;;) serve();
  }

 private:
  // Until other weights are wanted.
  void serve() {
    fs::remove(file_);
    take_weights();
    port_ = process::free_port();  // where another takes it meanwhile, the server fails and is started again
    process::Child server({.argv = argv(), .capture_output = false, .limits = {.processes = 0}});
    const auto until = steady_clock::now() + std::chrono::duration<double>(params_.value("ready_s", 900.0));
    while (!answers()) {
      if (!server.running()) fail(server.wait());
      if (steady_clock::now() > until)
        throw Error("the server does not answer at " + root() + health() + " in time (`ready`)", kExitFailed);
      std::this_thread::sleep_for(kLook);
    }
    Json where = {
        {"url", root() + params_.value("api", "/v1")}, {"host", process::host_name()}, {"pid", server.pid()}};
    if (!model_.empty()) where["model"] = model_;
    if (!version_.empty()) where["weights"] = version_;
    write_file_atomic(file_, where.dump() + "\n");
    log_info("it answers: " + where.value("url", "") +
             (version_.empty() ? "" : ", with the weights " + version_));
    watch(server);
    log_info("other weights are wanted: it is started again");
  }

  // Empty: none; also where the folder is gone, as that of a stage that was set aside.
  Json wanted() const {
    if (!path_exists(wanted_)) return Json::object();
    Json weights = read_json_file(wanted_);
    const fs::path folder = run_ / weights.value("folder", "");
    if (!path_exists(folder / "config.json")) return Json::object();
    weights["folder"] = folder.string();
    return weights;
  }
  void take_weights() {
    const Json weights = wanted();
    version_ = weights.value("version", version_);
    model_ = weights.value("folder", model_);
  }

  std::vector<std::string> argv() const {
    std::vector<std::string> words = json_at<std::vector<std::string>>(params_, "argv", "params of service");
    for (std::string& word : words)
      word = replaced(replaced(replaced(std::move(word), "{port}", std::to_string(port_)), "{host}", host_),
                      "{model}", model_);
    return words;
  }
  std::string root() const { return "http://" + host_ + ":" + std::to_string(port_); }
  std::string health() const { return params_.value("health", "/health"); }

  bool answers() const {
    endpoint::Ledger ledger({}, {});
    endpoint::Server server{.url = root(), .model = "", .key_variable = "", .ca_file = "", .proxy = ""};
    server.connect_s = 5;
    server.answer_s = 20;
    try {
      return endpoint::Client(server, {}, ledger).get(health()).has_value();
    } catch (const Error&) {
      return false;
    }
  }

  // Until other weights are wanted. Throws Error where it ends by itself.
  void watch(process::Child& server) const {
    auto next = steady_clock::now() + kHealthPause;
    for (int silences = 0; wanted().value("version", version_) == version_;
         std::this_thread::sleep_for(kLook)) {
      if (!server.running()) fail(server.wait());
      if (steady_clock::now() < next) continue;
      silences = answers() ? 0 : silences + 1;
      if (silences >= kMostSilences)
        throw Error("the server no longer answers at " + root() + health(), kExitFailed);
      next = steady_clock::now() + kHealthPause;
    }
  }

  [[noreturn]] static void fail(const process::ChildResult& end) {
    throw Error(end.ending == process::Ending::kExited
                    ? "the server has ended with exit code " + std::to_string(end.exit_code)
                    : "the server has ended by signal " + std::to_string(end.signal) + " " + end.problem,
                kExitFailed);
  }

  fs::path file_, wanted_, run_;
  Json params_;
  std::string model_, version_;  // folder and version of its weights; empty: its own
  std::string host_;
  int port_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  return shard_main("warpsmith-service", argc, argv, [](ShardSession& shard) { Service(shard).run(); });
}
