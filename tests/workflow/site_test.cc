#include "warpsmith/workflow/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "../scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/random.h"
#include "warpsmith/base/text.h"

namespace warpsmith::workflow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const fs::path kSource = WARPSMITH_SOURCE_DIR;
const std::string kHead = "schema: warpsmith.site/1\nname: lab\n";

std::vector<std::string> lines_of(const Diagnostics& diagnostics) {
  std::vector<std::string> lines;
  for (const Diagnostic& d : diagnostics) lines.push_back(to_string(d));
  return lines;
}

SiteSpec good(const std::string& text, const fs::path& file = "s.yaml") {
  Diagnostics mistakes;
  SiteSpec site = load_site_text(text, file, mistakes);
  EXPECT_THAT(lines_of(mistakes), IsEmpty()) << text;
  return site;
}

struct Case {
  std::string name, text;
  std::vector<std::string> expected;
};

// "=== NAME", the file, "---", then the mistakes, a line each.
std::vector<Case> read_cases() {
  std::vector<Case> cases;
  bool in_mistakes = false;
  for (const std::string& line : split_lines(read_file(kSource / "tests/workflow/site_cases.txt"))) {
    if (line.starts_with("=== ")) {
      cases.push_back({line.substr(4), "", {}});
      in_mistakes = false;
    } else if (line == "---") {
      in_mistakes = true;
    } else if (!cases.empty() && !in_mistakes) {
      cases.back().text += line + "\n";
    } else if (!cases.empty() && !line.empty()) {
      cases.back().expected.push_back(line);
    }
  }
  return cases;
}

TEST(SiteCases, MessagesAreAsWritten) {
  const std::vector<Case> cases = read_cases();
  ASSERT_GE(cases.size(), 18u);
  for (const Case& c : cases) {
    Diagnostics mistakes;
    load_site_text(c.text, "s.yaml", mistakes);
    EXPECT_EQ(lines_of(mistakes), c.expected) << "case: " << c.name;
    if (std::getenv("WARPSMITH_SHOW_CASES") != nullptr)
      for (const std::string& line : lines_of(mistakes))
        std::printf("=== %s\n%s\n", c.name.c_str(), line.c_str());
  }
}

TEST(Site, PlacesInheritTheDefaults) {
  const SiteSpec site = good(kHead + R"(
defaults:
  account: a
  qos: q
  modules: [x/1, y/2]
  environment: {ONE: 1, TWO: 2}
  twin: true
  gres: gpu
  memory_per_cpu: 2GiB
  max_time: 1d
cpu: {partition: batch, qos: ""}
gpus:
  L40: {modules: [z/3], environment: {TWO: two, THREE: 3}, constraint: l40}
  H100: {twin: false, gres: "gpu:h100", max_time: 90m, target: sm_90a}
controller: {time: 12h, warning: 4m, memory: 2GiB, cpus: 2, account: b}
)");
  EXPECT_EQ(site.cpu.account, "a");
  EXPECT_EQ(site.cpu.qos, "");
  EXPECT_EQ(site.cpu.partition, "batch");
  EXPECT_EQ(site.cpu.gres, "");
  EXPECT_FALSE(site.cpu.twin);
  EXPECT_EQ(site.cpu.memory_per_cpu, 2ull << 30);
  const SitePlace& l40 = site.gpus.at("L40");
  EXPECT_THAT(l40.modules, ElementsAre("z/3"));
  EXPECT_EQ(l40.environment,
            (std::map<std::string, std::string>{{"ONE", "1"}, {"TWO", "two"}, {"THREE", "3"}}));
  EXPECT_EQ(l40.gres, "gpu");
  EXPECT_EQ(l40.qos, "q");
  EXPECT_TRUE(l40.twin);
  EXPECT_THAT(l40.names, IsEmpty());  // a twin's device is a CPU
  const SitePlace& h100 = site.gpus.at("H100");
  EXPECT_THAT(h100.modules, ElementsAre("x/1", "y/2"));
  EXPECT_FALSE(h100.twin);
  EXPECT_THAT(h100.names, ElementsAre("H100"));
  EXPECT_EQ(h100.target, "sm_90a");
  EXPECT_EQ(l40.target, "");
  EXPECT_DOUBLE_EQ(h100.max_time_s, 5400);
  EXPECT_EQ(site.controller.account, "b");
  EXPECT_EQ(site.controller.gres, "");
  EXPECT_FALSE(site.controller.twin);
  EXPECT_EQ(site.controller.memory_per_cpu, 0u);
  EXPECT_DOUBLE_EQ(site.controller_time_s, 43200);
  EXPECT_DOUBLE_EQ(site.controller_warning_s, 240);
  EXPECT_EQ(site.controller_memory, 2ull << 30);
  EXPECT_EQ(site.controller_cpus, 2);
}

TEST(Site, KeysOfTheFileReachTheSpec) {
  const SiteSpec site =
      good(kHead +
               "executor: slurm\nstart_time: 1500ms\nshard_time: 10m\nslurm: {conf: ../slurm.conf, "
               "max_queued: 500, requests_per_minute: 2.5, request_burst: 7}\n",
           "/etc/sites/lab.yaml");
  EXPECT_EQ(site.name, "lab");
  EXPECT_EQ(site.file, "/etc/sites/lab.yaml");
  EXPECT_TRUE(site.text.starts_with("schema: warpsmith.site/1"));
  EXPECT_EQ(site.conf, "/etc/slurm.conf");
  EXPECT_EQ(site.max_queued, 500u);
  EXPECT_DOUBLE_EQ(site.requests_per_minute, 2.5);
  EXPECT_EQ(site.request_burst, 7);
  EXPECT_DOUBLE_EQ(site.start_s, 1.5);
  EXPECT_DOUBLE_EQ(site.shard_s, 600);
  EXPECT_EQ(good(kHead + "executor: local\n").executor, "local");
}

TEST(Site, LongTextIsAMistakeAndNoCrash) {
  Diagnostics mistakes;
  const std::string text(200'000, 'x');
  load_site_text(kHead + "cpu: {partition: " + text + ", setup: [" + text + "], scratch: /" + text + "}\n",
                 "s.yaml", mistakes);
  ASSERT_EQ(mistakes.size(), 3u);
  for (const Diagnostic& mistake : mistakes)
    EXPECT_THAT(mistake.message, HasSubstr("is longer than 1,000 characters"));
}

TEST(Site, TextOfTheFullLengthIsGood) {
  const std::string text(999, 'x');
  const SiteSpec site = good(kHead + "cpu: {partition: " + text + ", setup: [" + text + "], container: [" +
                             text + "], scratch: /" + text + "}\n");
  EXPECT_EQ(site.cpu.scratch.size(), 1000u);
}

TEST(Site, UnreadableFileIsOneMistake) {
  Diagnostics mistakes;
  load_site("/nowhere/s.yaml", mistakes);
  ASSERT_EQ(mistakes.size(), 1u);
  EXPECT_THAT(mistakes[0].message, HasSubstr("/nowhere/s.yaml"));
}

TEST(Site, IsToldFromAWorkflow) {
  EXPECT_TRUE(is_site_text("# a comment\nschema: warpsmith.site/1\nname: [\n"));
  EXPECT_TRUE(is_site_text("name: x\nschema: \"warpsmith.site/9\"\n"));
  EXPECT_FALSE(is_site_text("schema: warpsmith.workflow/1\nname: warpsmith.site\n"));
  EXPECT_FALSE(is_site_text("a:\n  schema: warpsmith.site/1\n"));
  EXPECT_FALSE(is_site_text(""));
}

TEST(PlaceFor, FollowsTheGpuType) {
  const SiteSpec two = good(kHead + "gpus: {L40: {}, H100: {}}\n"), one = good(kHead + "gpus: {L40: {}}\n"),
                 none = good(kHead);
  const auto ask = [](int gpus, const std::string& type) {
    Resources resources;
    resources.gpus = gpus;
    resources.gpu_type = type;
    return resources;
  };
  EXPECT_EQ(place_for(two, ask(0, "")), &two.cpu);
  EXPECT_EQ(place_for(two, ask(0, "L40")), &two.cpu);
  EXPECT_EQ(place_for(two, ask(2, "H100")), &two.gpus.at("H100"));
  EXPECT_EQ(place_for(two, ask(1, "h100")), nullptr);
  EXPECT_EQ(place_for(two, ask(1, "A100")), nullptr);
  EXPECT_EQ(place_for(two, ask(1, "")), nullptr);
  EXPECT_EQ(place_for(one, ask(1, "")), &one.gpus.at("L40"));
  EXPECT_EQ(place_for(none, ask(1, "")), nullptr);
  EXPECT_EQ(place_for(none, ask(0, "")), &none.cpu);
}

TEST(IsDeviceOf, WantsWholeWords) {
  const auto holds = [](std::vector<std::string> names, const char* device) {
    SitePlace place;
    place.names = std::move(names);
    return is_device_of(place, device);
  };
  EXPECT_TRUE(holds({"H20"}, "NVIDIA H20"));
  EXPECT_FALSE(holds({"H20"}, "NVIDIA H200"));
  EXPECT_TRUE(holds({"H100"}, "NVIDIA H100 80GB HBM3"));
  EXPECT_FALSE(holds({"H100"}, "NVIDIA GH100"));
  EXPECT_TRUE(holds({"L40"}, "NVIDIA L40"));
  EXPECT_FALSE(holds({"L40"}, "NVIDIA L40S"));
  EXPECT_TRUE(holds({"L40", "L40S"}, "NVIDIA L40S"));
  EXPECT_TRUE(holds({"RTX3090"}, "NVIDIA GeForce RTX 3090"));
  EXPECT_TRUE(holds({"rtx-3090"}, "NVIDIA GeForce RTX 3090"));
  EXPECT_FALSE(holds({"RTX3090"}, "NVIDIA GeForce RTX 3080"));
  EXPECT_TRUE(holds({"A100 SXM4"}, "NVIDIA A100-SXM4-80GB"));
  EXPECT_FALSE(holds({"RTX3090"}, "NVIDIA GeForce RTX 3090 Ti"));
  EXPECT_TRUE(holds({"RTX3090TI"}, "NVIDIA GeForce RTX 3090 Ti"));
  EXPECT_FALSE(holds({"RTX4070TI"}, "NVIDIA GeForce RTX 4070 Ti SUPER"));
  EXPECT_FALSE(holds({"RTX 6000"}, "NVIDIA RTX 6000 Ada Generation"));
  EXPECT_TRUE(holds({"RTX6000ADA"}, "NVIDIA RTX 6000 Ada Generation"));
  EXPECT_TRUE(holds({"RTX6000"}, "Quadro RTX 6000"));
  EXPECT_TRUE(holds({"GeForce"}, "NVIDIA GeForce RTX 3090 Ti"));
  EXPECT_FALSE(holds({"H100"}, ""));
  EXPECT_FALSE(holds({"H100"}, "AMD EPYC 9354"));
  EXPECT_TRUE(holds({}, "anything"));
}

// ---- where site files lie ----

class FindSite : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"WARPSMITH_SITES", "HOME"})
      before_[name] = std::getenv(name) != nullptr ? std::getenv(name) : "";
    folder_ = fs::current_path();
    fs::current_path(scratch_.path());
    for (const char* file :
         {"listed/both.yaml", "second/second.yaml", "slurm/sites/both.yaml", "slurm/sites/here.yaml",
          "home/.config/warpsmith/sites/both.yaml", "home/.config/warpsmith/sites/mine.yaml",
          "share/sites/both.yaml", "share/sites/shipped.yaml", "plain.yaml"}) {
      make_folders((scratch_ / file).parent_path());
      write_file_atomic(scratch_ / file, "");
    }
    ::setenv("WARPSMITH_SITES", (":" + (scratch_ / "listed").string() + ":nowhere:second").c_str(), 1);
    ::setenv("HOME", (scratch_ / "home").c_str(), 1);
  }
  void TearDown() override {
    fs::current_path(folder_);
    for (const auto& [name, value] : before_)
      if (value.empty())
        ::unsetenv(name.c_str());
      else
        ::setenv(name.c_str(), value.c_str(), 1);
  }

  Scratch scratch_;
  fs::path folder_;
  std::map<std::string, std::string> before_;
};

TEST_F(FindSite, FirstFolderCounts) {
  const fs::path home = scratch_ / "home/.config/warpsmith/sites", share = scratch_ / "share/sites";
  EXPECT_EQ(find_site("both", share), scratch_ / "listed/both.yaml");
  EXPECT_EQ(find_site("both.yaml", share), scratch_ / "listed/both.yaml");
  EXPECT_EQ(find_site("second"), "second/second.yaml");
  ::unsetenv("WARPSMITH_SITES");
  EXPECT_EQ(find_site("both", share), "slurm/sites/both.yaml");
  fs::remove_all(scratch_ / "slurm");
  EXPECT_EQ(find_site("both", share), home / "both.yaml");
  ::unsetenv("HOME");
  EXPECT_EQ(find_site("both", share), share / "both.yaml");
}

TEST_F(FindSite, PathsAreTakenAsTheyAre) {
  EXPECT_EQ(find_site("plain.yaml"), "plain.yaml");
  EXPECT_EQ(find_site("slurm/sites/here.yaml"), "slurm/sites/here.yaml");
  for (const char* path : {"slurm/here", "./both", "/both", "slurm/sites", ""}) {
    try {
      find_site(path);
      ADD_FAILURE() << path;
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), kExitUsage);
      EXPECT_EQ(std::string(e.what()), "there is no site file `" + std::string(path) + "`");
    }
  }
}

TEST_F(FindSite, NamesAllPlacesLookedAt) {
  try {
    find_site("her", scratch_ / "share/sites");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), kExitUsage);
    const std::string at = scratch_.path().string();
    EXPECT_EQ(std::string(e.what()),
              "there is no site `her` (did you mean `here`?); a site is a file, or NAME.yaml in one of\n  " +
                  at + "/listed: both\n  nowhere: no site\n  second: second\n  slurm/sites: both, here\n  " +
                  at + "/home/.config/warpsmith/sites: both, mine\n  " + at + "/share/sites: both, shipped");
  }
}

// ---- a site written as a file ----

SiteSpec without_source(SiteSpec site) {
  site.file.clear();
  site.text.clear();
  return site;
}

void expect_round_trip(const SiteSpec& site) {
  const std::string text = site_yaml(site);
  EXPECT_TRUE(without_source(good(text)) == without_source(site)) << text << "\nfrom\n" << site.text;
  EXPECT_TRUE(is_site_text(text));
}

TEST(SiteYaml, ComesBackAsItWas) {
  expect_round_trip(good(kHead));
  expect_round_trip(
      good(kHead + "executor: local\ndefaults: {account: a, modules: [x]}\ngpus: {L40: {names: [L40S]}}\n"));
  expect_round_trip(good(kHead + R"(
start_time: 90s
shard_time: 1500ms
slurm: {conf: /etc/slurm/slurm.conf, max_queued: 12, requests_per_minute: 0.1, request_burst: 3}
defaults: {account: "123", gres: gpu, memory_per_cpu: 17000000, environment: {EMPTY: "", Y: "no", Q: 'a "b" \c'}}
cpu: {partition: "true", setup: ["x: y # z", "- a", "ünï", "tab\there"], max_time: 25h}
gpus:
  No: {twin: true, names: [No], constraint: "a&(b|c)*2"}
  L40: {gres: "gpu:l40"}
  H20: {gres: "gpu:other", container: [apptainer, exec, --nv, "/a b/$USER/${SLURM_JOB_ID}", "12"]}
controller: {time: 1d, warning: 61s, memory: 1500MiB, cpus: 3, environment: {EMPTY: x}}
)"));
  for (const char* file : {"example.yaml", "dev.yaml"}) {
    Diagnostics mistakes;
    expect_round_trip(load_site(kSource / "slurm/sites" / file, mistakes));
    EXPECT_THAT(lines_of(mistakes), IsEmpty()) << file;
  }
}

TEST(SiteYaml, SaysWhatIsCommonOnce) {
  const std::string text = site_yaml(good(kHead + R"(
cpu: {account: a, partition: batch}
gpus: {L40: {account: a, twin: true}, H100: {account: a, twin: true}}
controller: {account: a}
)"));
  EXPECT_THAT(text, HasSubstr("\n  account: a\n"));
  EXPECT_EQ(text.find("account: a"), text.rfind("account: a"));
  EXPECT_THAT(text, HasSubstr("\n  twin: true\n"));
  EXPECT_THAT(text, HasSubstr("\ncpu:\n  partition: batch\n"));
  EXPECT_THAT(text, HasSubstr("\n  L40: {}\n"));
  EXPECT_THAT(text, HasSubstr("\n  # Reservation.\n  # reservation:\n"));
  EXPECT_THAT(text, HasSubstr("\n  # warning: 2m\n"));
}

// What discovery fills in: no names and no GRES mean those of the type.
TEST(SiteYaml, CompletesGpuTypes) {
  SiteSpec site;
  site.name = "found";
  site.gpus["H100"].partition = "gpu";
  const SiteSpec back = good(site_yaml(site));
  EXPECT_EQ(back.gpus.at("H100").gres, "gpu:h100");
  EXPECT_THAT(back.gpus.at("H100").names, ElementsAre("H100"));
  EXPECT_EQ(back.gpus.at("H100").partition, "gpu");
}

SitePlace random_place(Random& random, bool gpu, const std::string& type) {
  static const std::vector<std::string> kTexts = {"a",  "1",   "1e3", "x,y", "node[1-3]",
                                                  "on", "A&B", "~",   "null"};
  static const std::vector<std::string> kLines = {"echo \"x\"", "a: b", "# c", "{x}", "'",
                                                  " lead",      "é",    "\t",  "\\n"};
  const auto one_of = [&](const std::vector<std::string>& list) { return list[random.below(list.size())]; };
  const auto maybe = [&] { return random.below(2) == 0; };
  SitePlace p;
  for (std::string* text : {&p.partition, &p.account, &p.qos, &p.reservation, &p.constraint, &p.exclude})
    if (maybe()) *text = one_of({kTexts[random.below(7)], "", "b"});
  if (maybe()) p.modules = {"cuda/12.4", "3.10"};
  for (std::uint64_t n = random.below(6); n > 0; --n) p.setup.push_back(one_of(kLines));
  if (maybe()) p.container = {"exec", "--nv", "/x $USER", "7", "[]"};
  for (std::uint64_t n = random.below(3); n > 0; --n)
    p.environment[one_of({"A", "ON", "_3"})] = one_of(kLines);
  if (maybe()) p.scratch = one_of({"/tmp/$USER", "$HOME/x"});
  if (maybe()) p.max_time_s = static_cast<double>(60'000 + random.below(1'000'000'000)) / 1000;
  if (maybe()) p.memory_per_cpu = (16u << 20) + random.below(1ull << 40);
  if (!gpu) return p;
  p.twin = maybe();
  p.gres = maybe() ? "gpu:" + type : "gpu:x" + type;
  if (maybe()) p.target = one_of({"sm_90a", "sm_89"});
  if (!p.twin || maybe()) p.names = {one_of({"A 1", "x", type})};
  return p;
}

TEST(SiteYaml, AnySiteComesBack) {
  Random random(random_key({7}));
  for (int i = 0; i < 300; ++i) {
    SiteSpec site;
    site.name = "lab";
    site.executor = random.below(4) == 0 ? "local" : "slurm";
    site.start_s = static_cast<double>(random.below(3'600'000)) / 1000;
    SitePlace common = random_place(random, false, "");
    site.cpu = random.below(2) == 0 ? common : random_place(random, false, "");
    if (site.executor == "slurm") {
      site.controller = random.below(2) == 0 ? common : random_place(random, false, "");
      site.controller.memory_per_cpu = 0;
      site.max_queued = static_cast<std::uint32_t>(random.below(100));
      site.requests_per_minute = 0.1 + static_cast<double>(random.below(1000)) / 7;
      if (random.below(2) == 0) site.conf = "/etc/slurm conf";
      site.controller_cpus = 1 + static_cast<int>(random.below(3));
    }
    for (const char* type : {"a", "no", "l40"}) {
      if (random.below(3) == 0) continue;
      SitePlace place = random_place(random, true, type);
      if (random.below(2) == 0) {
        const SitePlace own = place;
        place = common;
        place.gres = own.gres, place.names = own.names, place.twin = own.twin, place.target = own.target;
      }
      site.gpus[type] = place;
    }
    if (random.below(2) == 0) site.prices.currency = "EUR";
    if (random.below(2) == 0) site.prices.cpu_hours = 0.02;
    for (const auto& [type, place] : site.gpus)
      if (random.below(2) == 0) site.prices.gpu_hours[type] = 2.5;
    expect_round_trip(site);
    if (HasFailure()) return;
  }
}

// Whatever stands in a file, loading ends with a site or with mistakes, and a good site can be written.
TEST(Site, MutatedFilesNeverThrow) {
  const std::string text = read_file(kSource / "slurm/sites/example.yaml");
  Random random(random_key({1}));
  static constexpr std::string_view kBytes = "{}[]:,-#&*!|>'\"%@ \n\t${USER}x0~?<";
  int good_files = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string mutant = text;
    for (std::uint64_t edits = 1 + random.below(4); edits > 0; --edits) {
      const std::size_t at = random.below(mutant.size());
      switch (random.below(4)) {
        case 0:
          mutant.erase(at, 1 + random.below(20));
          break;
        case 1:
          mutant.insert(at, 1, kBytes[random.below(kBytes.size())]);
          break;
        case 2:
          mutant[at] = static_cast<char>(random.below(256));
          break;
        default:
          mutant.insert(at, mutant.substr(random.below(mutant.size()), random.below(60)));
          break;
      }
    }
    Diagnostics mistakes;
    SiteSpec site;
    ASSERT_NO_THROW(site = load_site_text(mutant, "s.yaml", mistakes)) << mutant;
    if (!mistakes.empty()) continue;
    ++good_files;
    expect_round_trip(site);
    if (HasFailure()) return;
  }
  EXPECT_GT(good_files, 50);
  EXPECT_LT(good_files, 950);
}

// ---- the shipped files ----

TEST(ShippedSites, AreGood) {
  Diagnostics mistakes;
  const SiteSpec example = load_site(kSource / "slurm/sites/example.yaml", mistakes);
  const SiteSpec dev = load_site(kSource / "slurm/sites/dev.yaml", mistakes);
  EXPECT_THAT(lines_of(mistakes), IsEmpty());
  for (const SiteSpec* site : {&example, &dev}) {
    EXPECT_EQ(site->name, site->file.stem());
    for (const char* type : {"L40", "H100", "RTX3090", "H20"}) EXPECT_TRUE(site->gpus.contains(type)) << type;
  }
  for (const auto& [type, place] : dev.gpus) EXPECT_TRUE(place.twin) << type;
  EXPECT_EQ(dev.gpus.at("RTX3090").gres, "gpu:rtx3090");
  EXPECT_EQ(dev.gpus.at("RTX3090").partition, "rtx3090");
  EXPECT_TRUE(dev.conf.empty());
  for (const auto& [type, place] : example.gpus) EXPECT_FALSE(place.twin) << type;
}

TEST(SiteSchema, EqualsTheCommittedFile) {
  EXPECT_EQ(site_json_schema(), read_json_file(kSource / "slurm/site.schema.json"))
      << "write it anew: warpsmith schema site > slurm/site.schema.json";
}

// Every key of the schema is one that the reader takes.
TEST(SiteSchema, KnowsTheKeysOfTheReader) {
  const Json schema = site_json_schema();
  const auto keys = [](const Json& map, const std::string& indent) {
    std::string text;
    for (const auto& [key, value] : map.at("properties").items()) text += indent + key + ": [{}]\n";
    return text;
  };
  const Json& file = schema.at("properties");
  std::string text;
  for (const char* block : {"slurm", "defaults", "cpu", "controller"})
    text += std::string(block) + ":\n" + keys(file.at(block), "  ");
  text += "gpus:\n  L40:\n" + keys(file.at("gpus").at("additionalProperties"), "    ");
  Diagnostics mistakes;
  load_site_text(kHead + text, "s.yaml", mistakes);
  EXPECT_GE(mistakes.size(), 60u);  // none of them takes [{}]
  for (const Diagnostic& mistake : mistakes) {
    EXPECT_THAT(mistake.message, ::testing::Not(HasSubstr("is not known"))) << to_string(mistake);
    EXPECT_THAT(mistake.message, ::testing::Not(HasSubstr("belongs to"))) << to_string(mistake);
  }
}

// The tables of slurm/README.md: every key with its meaning, in the section of its map, and no other.
TEST(SiteReadme, TablesHoldTheKeysOfTheFormat) {
  std::map<std::string, std::map<std::string, std::string>> sections;  // heading -> key -> row
  std::istringstream in(read_file(kSource / "slurm/README.md"));
  std::string heading;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) heading = line;
    if (!line.starts_with("| `") || !heading.starts_with("##")) continue;
    EXPECT_TRUE(sections[heading].emplace(line.substr(3, line.find('`', 3) - 3), line).second) << line;
  }
  const auto compare = [&](const std::string& section, const Json& properties) {
    std::set<std::string> found, wanted;
    for (const auto& [key, row] : sections[section]) found.insert(key);
    for (const auto& [key, schema] : properties.items()) {
      wanted.insert(key);
      const std::string& row = sections[section][key];
      EXPECT_TRUE(row.ends_with("| " + schema.at("description").get<std::string>() + " |"))
          << section << ": " << row;
    }
    EXPECT_EQ(found, wanted) << section;
  };
  const Json file = site_json_schema().at("properties");
  compare("## Keys of the file", file);
  Json prices = file.at("prices").at("properties");
  prices.update(Json(prices.at("tokens").at("additionalProperties").at("properties")));
  for (const char* key : {"gpu_hours", "tokens"}) prices.erase(key);
  compare("### `prices`", prices);
  compare("### `slurm`", file.at("slurm").at("properties"));
  Json gpu = file.at("gpus").at("additionalProperties").at("properties"), place = gpu;
  for (const char* key : {"gres", "names", "target", "twin"}) place.erase(key);
  compare("### Keys of a place", place);
  for (const auto& [key, schema] : place.items()) gpu.erase(key);
  compare("### `gpus`", gpu);
  Json controller = file.at("controller").at("properties");
  for (const auto& [key, schema] : place.items()) controller.erase(key);
  compare("### `controller`", controller);
}

TEST(SiteReadme, ExampleIsGood) {
  const std::string text = read_file(kSource / "slurm/README.md");
  const std::size_t begin = text.find("```yaml\n") + 8;
  const SiteSpec site = good(text.substr(begin, text.find("```", begin) - begin));
  EXPECT_EQ(site.gpus.size(), 2u);
}

}  // namespace
}  // namespace warpsmith::workflow
