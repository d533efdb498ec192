#include "engine/bench.h"

#include "warpsmith/base/random.h"

namespace warpsmith::measure {

Bench::Bench(const task::Task& task, const Settings& settings, Place place)
    : task_(task::under_math(task, settings.math)),
      seed_(settings.seed),
      reference_(task_, place),
      alone_(random_key({seed_, name_key("alone")}),
             [this](int calls, std::uint64_t key) { return rows_alone(calls, key); }) {}

std::uint64_t Bench::bytes_a_call() const {
  return input_bytes(task_, timing_dims()) + output_bytes(task_, timing_dims());
}

std::vector<double> Bench::timed_bounds() {
  // Whose answers are few meets others in timed calls than in the checks.
  for (const CheckCase& check : cases_)
    if (check.dims == timing_dims() && check.distribution < 0) (void)oracle_->widen(check);
  return oracle_->bounds_at(timing_dims());
}

}  // namespace warpsmith::measure
