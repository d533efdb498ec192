#include "warpsmith/records/ceilings.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"
#include "warpsmith/base/untrusted.h"

namespace warpsmith {

namespace {

constexpr const char* kSchema = "warpsmith.ceilings/1";

// Three significant digits.
std::string three_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
  return text;
}

// A number of `figure` in the unit that people read it in.
std::string in_its_unit(const std::string& figure, double value) {
  return three_digits(figure.ends_with("_ns") ? value / 1e3 : value / 1e12);
}

std::string unit_of(const std::string& figure) {
  if (figure.ends_with("_ns")) return "us";
  return figure.ends_with("_bytes_s") ? "TB/s" : "TFLOP/s";
}

std::string state_text(const GpuState& s) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (s.sm_clock_mhz) add("SMs at " + std::to_string(*s.sm_clock_mhz) + " MHz");
  if (s.memory_clock_mhz) add("memory at " + std::to_string(*s.memory_clock_mhz) + " MHz");
  if (s.temperature_c) add(std::to_string(*s.temperature_c) + " C");
  if (s.power_w) add(three_digits(*s.power_w) + " W");
  if (!s.clock_reasons.empty()) add("clocks kept down by: " + s.clock_reasons);
  return text.empty() ? "not told" : text;
}

}  // namespace

const CeilingFigure* Ceilings::find(const std::string& figure) const {
  const auto it = figures.find(figure);
  return it == figures.end() ? nullptr : &it->second;
}

Json to_json(const Ceilings& c) {
  Json figures = Json::object();
  for (const auto& [name, f] : c.figures)
    figures[name] = {
        {"median", f.median}, {"low", f.low}, {"high", f.high}, {"repeats", f.repeats}, {"how", f.how}};
  Json j = {{"schema", kSchema},
            {"name", c.name},
            {"uuid", c.uuid},
            {"driver", c.driver},
            {"host", c.host},
            {"compute_capability", {c.major, c.minor}},
            {"sms", c.sms},
            {"l2_bytes", c.l2_bytes},
            {"memory_bytes", c.memory_bytes},
            {"date", c.date},
            {"thorough", c.thorough},
            {"seconds", c.seconds},
            {"settings", c.settings},
            {"figures", std::move(figures)}};
  if (c.before) j["before"] = to_json(*c.before);
  if (c.after) j["after"] = to_json(*c.after);
  return j;
}

Ceilings ceilings_from_json(const Json& j) {
  Ceilings c;
  try {
    if (const auto schema = j.at("schema").get<std::string>(); schema != kSchema)
      throw Error("ceilings of a GPU: schema " + schema + " where " + kSchema + " is known");
    c.name = j.at("name").get<std::string>();
    c.uuid = j.at("uuid").get<std::string>();
    c.driver = j.value("driver", "");
    c.host = j.value("host", "");
    if (const auto it = j.find("compute_capability"); it != j.end()) {
      c.major = it->at(0).get<int>();
      c.minor = it->at(1).get<int>();
    }
    c.sms = j.value("sms", 0);
    c.l2_bytes = j.value("l2_bytes", std::uint64_t{0});
    c.memory_bytes = j.value("memory_bytes", std::uint64_t{0});
    c.date = j.value("date", "");
    c.thorough = j.value("thorough", false);
    c.seconds = j.value("seconds", 0.0);
    c.settings = j.value("settings", std::map<std::string, std::string>{});
    if (const auto it = j.find("before"); it != j.end()) c.before = gpu_state_from_json(*it);
    if (const auto it = j.find("after"); it != j.end()) c.after = gpu_state_from_json(*it);
    for (const auto& [name, f] : j.at("figures").items()) {
      CeilingFigure figure{f.at("median").get<double>(), f.at("low").get<double>(),
                           f.at("high").get<double>(), f.value("repeats", 0), f.value("how", "")};
      if (!(figure.median > 0) || !std::isfinite(figure.median) || !(figure.high >= figure.median))
        throw Error("ceilings of a GPU: `" + name + "` is no figure");
      c.figures[name] = figure;
    }
  } catch (const Json::exception& e) {
    throw Error(std::string("ceilings of a GPU: ") + in_words(e));
  }
  return c;
}

std::filesystem::path ceilings_path(const std::filesystem::path& folder, const std::string& uuid) {
  return folder / (uuid + ".json");
}

std::optional<Ceilings> read_ceilings(const std::filesystem::path& file, std::string* problem) {
  std::string words;
  try {
    std::error_code no_matter;
    if (std::filesystem::exists(file, no_matter)) return ceilings_from_json(read_json_file(file));
  } catch (const Error& e) {
    words = e.what();
  }
  if (problem != nullptr) *problem = words;
  return std::nullopt;
}

void write_ceilings(const std::filesystem::path& file, const Ceilings& ceilings) {
  if (file.has_parent_path()) make_folders(file.parent_path());
  write_file_atomic(file, to_json(ceilings).dump(2) + "\n");
}

std::string ceilings_line(const Ceilings& ceilings) {
  constexpr std::array<std::pair<const char*, const char*>, 5> kRates = {{{kFloat64Rate, "float64"},
                                                                          {kFloat32Rate, "float32"},
                                                                          {kTf32Rate, "tf32"},
                                                                          {kBfloat16Rate, "bfloat16"},
                                                                          {kFloat16Rate, "float16"}}};
  std::string line;
  const auto add = [&line](const std::string& part) { line += (line.empty() ? "" : ", ") + part; };
  if (const auto* f = ceilings.find(kReadBandwidth)) add("reads " + three_digits(f->median / 1e12) + " TB/s");
  if (const auto* f = ceilings.find(kCopyBandwidth))
    add("copies " + three_digits(f->median / 1e12) + " TB/s");
  bool rates = false;
  for (const auto& [figure, word] : kRates)
    if (const auto* f = ceilings.find(figure)) {
      add(std::string(word) + " " + three_digits(f->median / 1e12));
      rates = true;
    }
  return rates ? line + " TFLOP/s" : line;
}

std::string ceilings_text(const Ceilings& c) {
  constexpr std::array<std::pair<const char*, const char*>, 9> kTitles = {
      {{kReadBandwidth, "reading memory"},
       {kCopyBandwidth, "copying memory"},
       {kFloat64Rate, "float64 matrices"},
       {kFloat32Rate, "float32 matrices"},
       {kTf32Rate, "float32 as TF32"},
       {kBfloat16Rate, "bfloat16 matrices"},
       {kFloat16Rate, "float16 matrices"},
       {kLaunchQueued, "launch, queued"},
       {kLaunchIdle, "launch, GPU idle"}}};
  std::string out = c.name + ", " + c.uuid + ", CUDA " + c.driver + ", capability " +
                    std::to_string(c.major) + "." + std::to_string(c.minor) + ", " + std::to_string(c.sms) +
                    " SMs, L2 " + format_size(c.l2_bytes) + ", memory " + format_size(c.memory_bytes) + "\n";
  for (const auto& [figure, title] : kTitles) {
    const CeilingFigure* f = c.find(figure);
    if (f == nullptr) continue;
    char line[256];
    std::snprintf(line, sizeof line, "%-18s %6s %-8s [%s, %s] in %d repeats; %s\n", title,
                  in_its_unit(figure, f->median).c_str(), unit_of(figure).c_str(),
                  in_its_unit(figure, f->low).c_str(), in_its_unit(figure, f->high).c_str(), f->repeats,
                  f->how.c_str());
    out += line;
  }
  if (c.before) out += "before: " + state_text(*c.before) + "\n";
  if (c.after) out += "after:  " + state_text(*c.after) + "\n";
  for (const auto& [name, value] : c.settings) out += name + ": " + value + "\n";
  return out + "measured in " + three_digits(c.seconds) + " s on " + c.host + ", " + c.date + "\n";
}

}  // namespace warpsmith
