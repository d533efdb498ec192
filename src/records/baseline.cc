#include "warpsmith/records/baseline.h"

#include <array>

#include "warpsmith/base/error.h"
#include "warpsmith/base/untrusted.h"

namespace warpsmith {

namespace {

constexpr std::array<std::string_view, 3> kStates = {"covered", "missing", "not_covered"};

}  // namespace

std::string_view to_string(BaselineState state) { return kStates[static_cast<std::size_t>(state)]; }

Json to_json(const BaselineTiming& t) {
  Json j = {{"task", t.task},
            {"baseline", t.name},
            {"math", t.math},
            {"state", to_string(t.state)},
            {"seconds", t.seconds}};
  if (!t.reason.empty()) j["reason"] = t.reason;
  if (!t.flags.empty()) j["flags"] = t.flags;
  if (!t.device_kind.empty())
    j["device"] = {{"kind", t.device_kind}, {"name", t.device_name}, {"uuid", t.device_uuid}};
  if (t.state != BaselineState::kCovered) return j;
  j["ratio"] = t.ratio;
  j["interval"] = {t.low, t.high};
  j["imprecise"] = t.imprecise;
  j["eager_ns"] = t.eager_ns;
  j["baseline_ns"] = t.baseline_ns;
  j["variance"] = t.variance;
  j["rounds"] = t.rounds;
  j["batch"] = t.batch;
  Json shape = Json::array();
  for (const auto& [name, size] : t.shape) shape.push_back({name, size});
  j["shape"] = std::move(shape);
  return j;
}

BaselineTiming baseline_timing_from_json(const Json& j) {
  BaselineTiming t;
  try {
    t.task = j.at("task").get<std::string>();
    t.name = j.at("baseline").get<std::string>();
    t.math = j.value("math", "");
    const std::string state = j.at("state").get<std::string>();
    std::size_t place = 0;
    while (place < kStates.size() && kStates[place] != state) ++place;
    if (place == kStates.size()) throw Error("baseline record: unknown state `" + state + "`");
    t.state = static_cast<BaselineState>(place);
    t.reason = j.value("reason", "");
    t.seconds = j.value("seconds", 0.0);
    if (const auto it = j.find("flags"); it != j.end())
      t.flags = it->get<std::map<std::string, std::string>>();
    if (const auto it = j.find("device"); it != j.end()) {
      t.device_kind = it->value("kind", "");
      t.device_name = it->value("name", "");
      t.device_uuid = it->value("uuid", "");
    }
    if (t.state != BaselineState::kCovered) return t;
    t.ratio = j.at("ratio").get<double>();
    t.low = j.at("interval").at(0).get<double>();
    t.high = j.at("interval").at(1).get<double>();
    t.imprecise = j.value("imprecise", false);
    t.eager_ns = j.at("eager_ns").get<double>();
    t.baseline_ns = j.at("baseline_ns").get<double>();
    t.variance = j.value("variance", 0.0);
    t.rounds = j.value("rounds", 0);
    t.batch = j.value("batch", 1);
    if (const auto it = j.find("shape"); it != j.end())
      for (const Json& axis : *it)
        t.shape.emplace_back(axis.at(0).get<std::string>(), axis.at(1).get<std::int64_t>());
  } catch (const Json::exception& e) {
    throw Error(std::string("baseline record: ") + in_words(e));
  }
  return t;
}

}  // namespace warpsmith
