#include "cudnn_calls.h"

#include "warpsmith/base/error.h"

#ifndef WARPSMITH_HAS_CUDNN

namespace warpsmith::measure {

bool has_cudnn() { return false; }

std::unique_ptr<GpuCalls> make_cudnn_calls(GpuHarness&, const task::Task&, const task::Dims&, bool,
                                           const GpuAddresses&, std::map<std::string, std::string>&) {
  throw Error("this program was built without cuDNN's headers");
}

}  // namespace warpsmith::measure

#else

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "cudnn_graph.h"
#include "cudnn_library.h"
#include "cudnn_operators.h"
#include "warpsmith/measure/compare.h"

namespace warpsmith::measure {

namespace {

constexpr double kTimeout = 60;  // seconds
constexpr std::size_t kMostPlans = 8;
constexpr std::size_t kTrialCalls = 8;  // in a row
constexpr int kTrialRounds = 8;         // the first brings what is needed for the first time

using Call = std::function<void()>;

void wait_for(const device::Gpu& gpu) {
  if (const device::GpuOutcome done = gpu.wait(kTimeout); !done.ok())
    throw device::GpuError("cuDNN on the GPU: " + done.detail, done);
}

class CudnnCalls : public GpuCalls {
 public:
  CudnnCalls(GpuHarness& harness, const task::Task& task, const task::Dims& dims, bool strict,
             const GpuAddresses& inputs, std::map<std::string, std::string>& flags)
      : gpu_(harness.gpu()) {
    for (const std::int64_t size : task::shape_at(task.outputs.front(), dims))
      bytes_ *= static_cast<std::uint64_t>(size);
    apart_ = (bytes_ + 255) / 256 * 256;
    outputs_ = device::GpuMemory(apart_ * std::max<std::size_t>(1, inputs.size()));
    if (is_graph_operator(task.cudnn->op))
      bind_graph(harness, graph_shape(task, dims), strict, inputs, flags);
    else
      bind_operator(make_cudnn_operator(task, dims, strict, flags), task, inputs);
    run(0, 1);  // what is needed for the first time
    wait_for(gpu_);
  }

  void run(int first, int count) override {
    for (int call = first; call < first + count; ++call) calls_[static_cast<std::size_t>(call)]();
  }

  std::vector<std::span<const std::byte> > output_memory(int first, int count) const override {
    std::vector<std::span<const std::byte> > memory;
    for (int call = first; call < first + count; ++call)
      memory.emplace_back(reinterpret_cast<const std::byte*>(address(call)),
                          static_cast<std::size_t>(bytes_));
    return memory;
  }

  std::vector<Comparison> compare(int call, const Reference::Calls& right,
                                  const std::vector<double>& bounds) const override {
    return right.compare(0, output_memory(call, 1), bounds);
  }

 private:
  device::GpuAddress address(int call) const {
    return outputs_.address() + apart_ * static_cast<std::uint64_t>(call);
  }
  void* output(std::size_t call) const { return reinterpret_cast<void*>(address(static_cast<int>(call))); }

  void bind_operator(const CudnnOperator& made, const task::Task& task, const GpuAddresses& inputs) {
    workspace_ = made.workspace;
    for (std::size_t set = 0; set < inputs.size(); ++set) {
      std::vector<const void*> operands;
      for (const std::string& name : task.cudnn->inputs)
        for (std::size_t i = 0; i < task.inputs.size(); ++i)
          if (task.inputs[i].name == name) operands.push_back(inputs[set][i].data());
      calls_.emplace_back([operands, enqueue = made.enqueue, to = output(set)] { enqueue(operands, to); });
    }
  }

  std::vector<Call> bound(std::size_t plan, const GpuAddresses& inputs, std::size_t sets) const {
    std::vector<Call> calls;
    for (std::size_t set = 0; set < sets; ++set) {
      std::vector<void*> addresses;
      for (const std::span<std::byte> input : inputs[set]) addresses.push_back(input.data());
      calls.push_back(graph_->bind(plan, addresses, output(set)));
    }
    return calls;
  }

  void bind_graph(GpuHarness& harness, GraphShape shape, bool strict, const GpuAddresses& inputs,
                  std::map<std::string, std::string>& flags) {
    graph_ = std::make_unique<CudnnGraph>(std::move(shape));
    graph_->make_plans(strict, kMostPlans);
    std::vector<std::vector<Call> > rows;
    for (std::size_t plan = 0; plan < graph_->plans(); ++plan)
      rows.push_back(bound(plan, inputs, std::min<std::size_t>(inputs.size(), kTrialCalls)));
    const std::size_t best = fastest(harness, rows);
    flags["algorithm"] = graph_->name(best);
    flags["algorithms"] = std::to_string(rows.size());
    calls_ = bound(best, inputs, inputs.size());
  }

  // Which of the rows takes the GPU least: as it will be timed, on a stream that is held back, several times
  // each. A plan that fails has no time.
  static std::size_t fastest(GpuHarness& harness, const std::vector<std::vector<Call> >& rows) {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    std::vector<double> best(rows.size(), kNever);
    std::string trouble;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      try {
        for (int round = 0; round < kTrialRounds; ++round) {
          const GpuTimes times = harness.clock().time_calls(
              {},
              [&] {
                for (const Call& call : rows[i]) call();
                return device::GpuOutcome{};
              },
              kTimeout);
          if (!times.outcome.ok())
            throw device::GpuError("cuDNN on the GPU: " + times.outcome.detail, times.outcome);
          if (round > 0 && !times.late) best[i] = std::min(best[i], times.queued_ns);
        }
      } catch (const device::GpuError&) {
        throw;  // of the device nothing can be asked any more
      } catch (const Error& e) {
        best[i] = kNever;
        trouble = e.what();
        wait_for(harness.gpu());
      }
    }
    const auto least = std::min_element(best.begin(), best.end());
    if (*least == kNever)
      throw Error(trouble.empty() ? "no plan of cuDNN could be enqueued in time" : trouble);
    return static_cast<std::size_t>(least - best.begin());
  }

  const device::Gpu& gpu_;
  std::shared_ptr<device::GpuMemory> workspace_;
  std::unique_ptr<CudnnGraph> graph_;
  std::uint64_t bytes_ = sizeof(float), apart_ = 0;
  device::GpuMemory outputs_;
  std::vector<Call> calls_;  // by set
};

}  // namespace

bool has_cudnn() { return true; }

std::unique_ptr<GpuCalls> make_cudnn_calls(GpuHarness& harness, const task::Task& task,
                                           const task::Dims& dims, bool strict, const GpuAddresses& inputs,
                                           std::map<std::string, std::string>& flags) {
  flags["cudnn"] = std::to_string(cudnn::api().cudnnGetVersion());
  flags["op"] = task.cudnn->op;
  return std::make_unique<CudnnCalls>(harness, task, dims, strict, inputs, flags);
}

}  // namespace warpsmith::measure

#endif
