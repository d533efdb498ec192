#include "warpsmith/measure/python_baselines.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "gpu_place.h"
#include "timing/calls_a_row.h"
#include "timing/judge.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/random.h"
#include "warpsmith/measure/baselines.h"
#include "warpsmith/measure/host.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/python/interpreter.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::measure {

namespace {

constexpr double kStart = 600, kOpen = 900,
                 kAnswer = 120;  // seconds: torch from a cold file system; a compilation; a call
constexpr int kEstimateRounds = 7;
constexpr double kPythonRowNs = 3 * kRowNs;  // its clock scatters more
constexpr int kEager = 0, kOther = 1;        // arms in the script

// The child says that something cannot be had.
class NotThere : public Error {
 public:
  using Error::Error;
};

Json ask(python::Interpreter& python, const Json& question, double timeout_s) {
  Json answer = python.ask(question, timeout_s);
  if (const auto it = answer.find("missing"); it != answer.end()) throw NotThere(it->get<std::string>());
  return answer;
}

Json task_json(const task::Task& task) {
  const task::Dims& dims = task.timing.front();
  Json inputs = Json::array(), scalars = Json::array();
  for (const task::TensorSpec& input : task.inputs) {
    Json arguments = Json::array();
    for (std::size_t i = 0; i < input.values.arguments.size(); ++i)
      arguments.push_back(task::value_argument(input.values, i, dims));
    inputs.push_back({{"dtype", task::to_string(input.dtype)},
                      {"shape", task::shape_at(input, dims)},
                      {"strides", task::strides_at(input, dims)},
                      {"elements", tensor_bytes(input, dims) / task::size_of(input.dtype)},
                      {"offset_bytes", task::misalignment_at(input, dims)},
                      {"fixed", input.role == task::Role::kParameter || input.role == task::Role::kBuffer},
                      {"kind", input.values.kind},
                      {"arguments", std::move(arguments)}});
  }
  for (const task::ScalarSpec& scalar : task.scalars)
    scalars.push_back(scalar.is_float ? Json(scalar.value) : Json(static_cast<std::int64_t>(scalar.value)));
  return {{"task", task.id},           {"reference", task.reference}, {"prepare", task.prepare},
          {"prepared", task.prepared}, {"inputs", std::move(inputs)}, {"scalars", std::move(scalars)}};
}

// One of the script's two arms.
class PythonArm : public Arm {
 public:
  PythonArm(python::Interpreter& python, int number) : python_(python), number_(number) {}
  void renew(std::uint64_t key, int calls) override {
    place_ = ask(python_, {{"renew", number_}, {"key", key}, {"calls", calls}}, kAnswer).value("place", 0);
  }
  int place() const override { return place_; }
  Run run(int calls) override {
    const Json answer = ask(python_, {{"run", number_}, {"calls", calls}}, kAnswer);
    enqueue_ns_ = answer.value("enqueue_ns", 0.0);
    return {Verdict::kOk, "", json_at<std::int64_t>(answer, "ns", "answer of python3")};
  }
  double enqueue_ns() const { return enqueue_ns_; }  // what the last run's calls took the host
  std::optional<int> unwritten(int) override { return std::nullopt; }
  Run inspect(int) override { return {}; }  // looked at where it was opened

 private:
  python::Interpreter& python_;
  int number_, place_ = 0;
  double enqueue_ns_ = 0;
};

}  // namespace

struct PythonBaselines::State {
  Settings settings;
  std::string device;
  std::filesystem::path folder;
  std::optional<python::Interpreter> python;
  std::string missing;  // why none can be had at all
  std::string name, uuid;
  std::map<std::string, std::string> flags;

  void start() {
    if (!missing.empty()) throw NotThere(missing);
    if (python) return;
    const std::optional<std::filesystem::path> program = python::find_python();
    if (!program) {
      missing = "there is no python3 here";
      throw NotThere(missing);
    }
    try {
      python.emplace(python::Interpreter::Options{
          .python = *program,
          .script = python::baselines_script(),
          .folder = folder,
          .environment = {{"TORCHINDUCTOR_COMPILE_THREADS", "1"},
                          {"TORCHINDUCTOR_CACHE_DIR", (folder / "inductor").string()},
                          {"TRITON_CACHE_DIR", (folder / "triton").string()}}});
      const Json hello =
          ask(*python, {{"hello", {{"device", device}, {"threads", settings.threads}}}}, kStart);
      name = hello.value("name", "");
      uuid = hello.value("uuid", "");
      flags = hello.value("flags", flags);
      const std::string theirs = hello.value("torch", ""), ours = torch_facts().at("torch");
      if (theirs != ours) throw NotThere("python3 has torch " + theirs + ", and this program " + ours);
    } catch (const Error& e) {
      python.reset();
      missing = e.what();
      throw;
    }
    if (device == "cuda") require_gpu(settings, name);
  }

  FileLock lock() const { return FileLock(device == "cuda" ? gpu_lock_path(uuid) : timing_lock_path()); }

  // Without the GPU's lock: what it compiles takes long.
  void open(const task::Task& task, const std::string& baseline) {
    start();
    ask(*python,
        {{"open", task_json(task)}, {"baseline", baseline}, {"math", task::math_of(task, settings.math)}},
        kOpen);
  }

  // With it: that the answers are right. Returns the flags.
  Json look() { return ask(*python, {{"look", true}}, kOpen); }

  // Others may need the memory.
  void close() noexcept {
    try {
      if (python) ask(*python, {{"close", true}}, kAnswer);
    } catch (const std::exception&) {
      python.reset();  // the next task gets a fresh one
    }
  }

  struct Closing {
    explicit Closing(State& the_state) : state(the_state) {}
    ~Closing() { state.close(); }
    Closing(const Closing&) = delete;
    Closing& operator=(const Closing&) = delete;
    State& state;
  };

  void make_operands(int calls) { ask(*python, {{"operands", calls}}, kAnswer); }

  // Rows of both sides are of one length. A call alone in a row looks longer than it is, up to twice as long.
  void choose_rows(const task::Task& task, PythonArm& eager, PythonArm& other, PairSettings& pairs) {
    make_operands(1);
    const std::uint64_t key = random_key({settings.seed, name_key(task.id), name_key("estimate")});
    int most = 1;
    for (PythonArm* arm : {&eager, &other}) {
      const double call_ns = stats::median(time_alone(*arm, 1, kEstimateRounds, key));
      most = std::max(most, gpu_calls_a_row(call_ns / 2, arm->enqueue_ns(), kPythonRowNs));
    }
    make_operands(most);
    const auto calls_of = [&](PythonArm& arm) {
      return estimate_row(
                 arm, [&] { return arm.enqueue_ns(); }, kPythonRowNs, most, key)
          .calls;
    };
    pairs.calls = calls_of(eager);
    pairs.candidate_calls = calls_of(other);
  }

  // Opened, and the lock taken. Where another process that holds the lock left no memory to open it without,
  // it is opened with the lock.
  FileLock open_and_lock(const task::Task& task, const std::string& baseline) {
    try {
      open(task, baseline);
    } catch (const NotThere& e) {
      if (!std::string_view(e.what()).starts_with("OutOfMemoryError")) throw;
      FileLock alone = lock();
      open(task, baseline);
      return alone;
    }
    return lock();
  }

  void time(const task::Task& task, const std::string& baseline, BaselineTiming& timing) {
    const FileLock alone = open_and_lock(task, baseline);
    timing.device_name = name;
    timing.device_uuid = uuid;
    const Closing closing(*this);
    timing.flags = look().value("flags", flags);
    PairSettings pairs = pair_settings(settings, task.id, "baseline " + baseline, 0);
    pairs.protocol.give_up_below = 0;  // a slow baseline is one as good
    PythonArm eager(*python, kEager), other(*python, kOther);
    choose_rows(task, eager, other, pairs);
    const auto watch = device == "cuda" ? process::GpuWatch::open(uuid) : std::nullopt;
    pairs.disturbed = slowed_down(watch);
    write_steady_pair(
        settings, pairs, [&] { return time_pairs(eager, other, pairs); }, timing);
  }
};

PythonBaselines::PythonBaselines(Settings settings, std::string device, std::filesystem::path folder)
    : state_(std::make_unique<State>()) {
  state_->settings = std::move(settings);
  state_->device = std::move(device);
  state_->folder = std::move(folder);
}
PythonBaselines::~PythonBaselines() = default;

BaselineTiming PythonBaselines::measure(const task::Task& task, const std::string& name) {
  State& s = *state_;
  const double begin = seconds_now();
  BaselineTiming timing = blank_timing(s.settings, task, name);
  try {
    s.time(task, name, timing);
  } catch (const NotThere& e) {
    timing.reason = e.what();
  } catch (const Error& e) {
    if (e.exit_code() == kExitWrongDevice) throw;
    timing.reason = e.what();
    s.python.reset();  // the next task gets a fresh one
  }
  timing.seconds = seconds_now() - begin;
  return timing;
}

std::vector<double> PythonBaselines::eager_alone(const task::Task& task, int calls, int rounds) {
  State& s = *state_;
  const FileLock alone = s.open_and_lock(task, "eager");
  const State::Closing closing(s);
  s.look();
  s.make_operands(calls);
  PythonArm eager(*s.python, kEager);
  return time_alone(eager, calls, rounds,
                    random_key({s.settings.seed, name_key(task.id), name_key("alone")}));
}

}  // namespace warpsmith::measure
