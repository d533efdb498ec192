#include "twin_layout.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "dtype_bits.h"

namespace warpsmith::device {

namespace {

std::uint64_t round_up(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }

struct Encoder {
  const task::ConcretePlan& plan;
  const Layout& layout;
  std::vector<WireStep> steps;
  std::vector<WireArg> args;
  std::string names;

  std::uint32_t number(const std::string& name) const {
    return static_cast<std::uint32_t>(layout.numbers.at(name));
  }

  bool known(const std::string& name) const { return layout.numbers.contains(name); }
  static PlanProblem launch_error(const task::ConcreteStep& s, const std::string& why) {
    return {Verdict::kLaunchError, "line " + std::to_string(s.line) + ": " + why};
  }
  static PlanProblem unsupported(const task::ConcreteStep& s, const std::string& what) {
    return {Verdict::kUnsupported, "line " + std::to_string(s.line) + ": the CPU twin has no " + what};
  }
  void set_name(WireStep& w, const std::string& name) {
    w.name = static_cast<std::uint32_t>(names.size());
    w.name_bytes = static_cast<std::uint32_t>(name.size());
    names += name;
  }

  // These are empty where all is well.
  PlanProblem step(const task::ConcreteStep& s) {
    WireStep w{};
    w.line = static_cast<std::uint32_t>(s.line);
    PlanProblem problem;
    switch (s.kind) {
      case task::StepKind::kLaunch:
        problem = launch(s, w);
        break;
      case task::StepKind::kFill:
        problem = fill(s, w);
        break;
      case task::StepKind::kCopy:
        w.kind = WireStepKind::kCopy;
        if (!known(s.destination) || !known(s.source))
          return launch_error(s, "no operand `" + (known(s.source) ? s.destination : s.source) + "`");
        w.destination = number(s.destination);
        w.source = number(s.source);
        break;
      case task::StepKind::kConst:
        w.kind = WireStepKind::kConst;
        if (!known(s.source)) return launch_error(s, "no operand `" + s.source + "`");
        set_name(w, s.destination);
        w.source = number(s.source);
        break;
    }
    steps.push_back(w);
    return problem;
  }

  PlanProblem launch(const task::ConcreteStep& s, WireStep& w) {
    w.kind = WireStepKind::kLaunch;
    if (s.cluster != std::array<std::int64_t, 3>{1, 1, 1}) return unsupported(s, "clusters");
    set_name(w, s.kernel);
    for (std::size_t i = 0; i < 3; ++i) {
      if (s.grid[i] < 0 || s.grid[i] > std::numeric_limits<std::int32_t>::max() || s.block[i] < 0 ||
          s.block[i] > 1024)
        return launch_error(s, "a grid or block of impossible size");
      w.grid[i] = static_cast<std::uint32_t>(s.grid[i]);
      w.block[i] = static_cast<std::uint32_t>(s.block[i]);
    }
    if (s.smem < 0 || s.smem > 227 * 1024)
      return launch_error(s, "dynamic shared memory of " + std::to_string(s.smem) + " bytes");
    w.dynamic_bytes = static_cast<std::uint64_t>(s.smem);
    w.cooperative = s.cooperative;
    w.first_arg = static_cast<std::uint32_t>(args.size());
    w.arg_count = static_cast<std::uint32_t>(s.args.size());
    if (s.args.size() > 64) return launch_error(s, "more than 64 arguments");
    for (const task::ConcreteArg& a : s.args)
      if (PlanProblem problem = argument(s, a); problem.verdict != Verdict::kOk) return problem;
    return {};
  }

  PlanProblem argument(const task::ConcreteStep& s, const task::ConcreteArg& a) {
    using enum task::ArgKind;
    switch (a.kind) {
      case kPointer:
        if (!known(a.tensor)) return launch_error(s, "no operand `" + a.tensor + "`");
        args.push_back({WireArgKind::kPointer, 8, number(a.tensor)});
        break;
      case kI32:
        args.push_back(
            {WireArgKind::kInteger, 4, static_cast<std::uint32_t>(static_cast<std::int32_t>(a.integer))});
        break;
      case kI64:
        args.push_back({WireArgKind::kInteger, 8, static_cast<std::uint64_t>(a.integer)});
        break;
      case kF64:
        args.push_back({WireArgKind::kFloat, 8, std::bit_cast<std::uint64_t>(a.real)});
        break;
      case kF32:
        args.push_back({WireArgKind::kFloat, 4, std::bit_cast<std::uint32_t>(static_cast<float>(a.real))});
        break;
      case kF16:
        args.push_back({WireArgKind::kFloat, 2, half_bits(a.real)});
        break;
      case kTensorMap:
        return unsupported(s, "tensor maps");
    }
    return {};
  }

  PlanProblem fill(const task::ConcreteStep& s, WireStep& w) {
    w.kind = WireStepKind::kFill;
    if (!known(s.destination)) return launch_error(s, "no operand `" + s.destination + "`");
    w.destination = number(s.destination);
    const task::Dtype dtype = layout.operands[w.destination].operand.dtype;
    if (!bits_of(dtype, s.value, &w.pattern))
      return unsupported(s, "fill with that number for " + std::string(to_string(dtype)));
    w.pattern_bytes = static_cast<std::uint32_t>(task::size_of(dtype));
    return {};
  }
};

template <typename T>
void append(std::vector<std::byte>& out, const T* data, std::size_t count) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  out.insert(out.end(), bytes, bytes + count * sizeof(T));
}

}  // namespace

Layout lay_out(const task::ConcretePlan& plan, const std::vector<Operand>& operands, int sets) {
  Layout layout;
  layout.sets = sets;
  for (const Operand& o : operands) layout.operands.push_back({o, false, 0, 0, 0});
  for (const task::ConcreteTemp& t : plan.temps)
    layout.operands.push_back({{t.name, t.bytes, true, 0, t.dtype}, true, 0, 0, 0});
  const std::uint64_t start = kControlBytes + kPlanBytes;
  std::uint64_t at = start + kGuardBytes;
  for (std::size_t i = 0; i < layout.operands.size(); ++i) {
    Placed& p = layout.operands[i];
    const std::uint64_t shift = p.operand.misalignment % 256;
    const std::uint64_t room = round_up(p.operand.bytes + shift, 256);
    p.pages_offset = at;
    p.pages_bytes = std::max(round_up(room, kPageBytes), kPageBytes);
    p.offset = at + p.pages_bytes - room + shift;
    at += p.pages_bytes + kGuardBytes;
    layout.data_bytes += p.pages_bytes;
    layout.numbers.emplace(p.operand.name, i);
  }
  layout.set_bytes = at - start;
  layout.data_bytes *= static_cast<std::uint64_t>(sets);
  layout.file_bytes = start + layout.set_bytes * static_cast<std::uint64_t>(sets) + kGuardBytes;
  return layout;
}

std::vector<std::byte> encode_plan(const task::ConcretePlan& plan, const Layout& layout,
                                   PlanProblem* problem) {
  Encoder encoder{plan, layout, {}, {}, {}};
  if (!plan.tensor_maps.empty()) {
    *problem = {Verdict::kUnsupported, "the CPU twin has no tensor maps"};
    return {};
  }
  for (const task::ConcreteStep& s : plan.steps) {
    *problem = encoder.step(s);
    if (problem->verdict != Verdict::kOk) return {};
  }
  std::vector<WireOperand> operands;
  for (const Placed& p : layout.operands)
    operands.push_back(
        {p.offset, p.operand.bytes, p.pages_offset, p.pages_bytes, p.operand.writable ? 1u : 0u, 0});
  const WirePlan head{static_cast<std::uint32_t>(operands.size()),
                      static_cast<std::uint32_t>(encoder.steps.size()),
                      static_cast<std::uint32_t>(encoder.args.size()),
                      static_cast<std::uint32_t>(encoder.names.size()),
                      layout.set_bytes,
                      static_cast<std::uint32_t>(layout.sets),
                      0};
  std::vector<std::byte> out;
  append(out, &head, 1);
  append(out, operands.data(), operands.size());
  append(out, encoder.steps.data(), encoder.steps.size());
  append(out, encoder.args.data(), encoder.args.size());
  append(out, encoder.names.data(), encoder.names.size());
  if (out.size() > kPlanBytes) *problem = {Verdict::kLaunchError, "the plan is too long"};
  return out;
}

PlaceInFile describe_offset(const Layout& layout, std::int64_t offset) {
  const std::int64_t start = kControlBytes + kPlanBytes;
  const auto set_bytes = static_cast<std::int64_t>(layout.set_bytes);
  const auto sets = static_cast<std::int64_t>(layout.sets);
  // A place far before or behind all belongs to the first or the last set.
  const std::int64_t set =
      set_bytes == 0 ? 0 : std::clamp<std::int64_t>((offset - start) / set_bytes, 0, sets - 1);
  const std::int64_t in_set = offset - set * set_bytes;
  const Placed* nearest = nullptr;
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (const Placed& p : layout.operands) {
    const auto begin = static_cast<std::int64_t>(p.offset),
               end = begin + static_cast<std::int64_t>(p.operand.bytes);
    const std::int64_t distance = in_set < begin ? begin - in_set : in_set >= end ? in_set - end + 1 : 0;
    if (distance < best) {
      best = distance;
      nearest = &p;
    }
  }
  PlaceInFile place;
  if (nearest == nullptr) {
    place.words = "outside of all operands";
    return place;
  }
  const auto begin = static_cast<std::int64_t>(nearest->offset);
  const auto end = begin + static_cast<std::int64_t>(nearest->operand.bytes);
  const std::string name = "`" + nearest->operand.name + "`";
  if (best == 0) {
    place.words = "byte " + std::to_string(in_set - begin) + " of " + name;
    place.read_only_data = !nearest->operand.writable;
  } else if (in_set < begin) {
    place.words = std::to_string(begin - in_set) + " bytes before the start of " + name;
  } else {
    place.words = std::to_string(in_set - end) + " bytes behind the end of " + name;
  }
  return place;
}

}  // namespace warpsmith::device
