#include "warpsmith/executor/site_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster_view.h"

namespace warpsmith::executor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using workflow::SiteSpec;

SiteSpec site_of(const std::string& text) {
  Diagnostics mistakes;
  const std::string head = "schema: warpsmith.site/1\nname: t\n";
  SiteSpec site = workflow::load_site_text(head + text, "t.yaml", mistakes);
  for (const Diagnostic& mistake : mistakes) ADD_FAILURE() << to_string(mistake);
  return site;
}

SiteSpec dev_site() {
  return site_of(R"(
defaults: {twin: true, memory_per_cpu: 1GiB, max_time: 1d}
cpu: {partition: cpu}
gpus: {L40: {partition: l40}, H100: {partition: h100}, RTX3090: {partition: rtx3090}, H20: {partition: h20}}
controller: {partition: cpu, time: 1h}
)");
}

// "LACK name: value (hint)" of each fact that is not ok.
std::vector<std::string> lacks(const SiteSpec& site, const ClusterView& view) {
  std::vector<std::string> out;
  for (const process::Fact& fact : check_site(site, view))
    if (!fact.ok)
      out.push_back(fact.name + ": " + fact.value + (fact.hint.empty() ? "" : " (" + fact.hint + ")"));
  return out;
}

process::Fact fact_of(const SiteSpec& site, const ClusterView& view, const std::string& name) {
  for (const process::Fact& fact : check_site(site, view))
    if (fact.name == name) return fact;
  ADD_FAILURE() << "no fact " << name;
  return {};
}

TEST(SiteCheck, DevelopmentClusterHasAllThatItsSiteNames) {
  const SiteSpec site = dev_site();
  ClusterView view = dev_view();
  EXPECT_THAT(lacks(site, view), IsEmpty());
  EXPECT_EQ(fact_of(site, view, "cluster").value, "dev, Slurm 22.05.8, 5 nodes, 6 partitions");
  EXPECT_EQ(fact_of(site, view, "limits").value, "MaxArraySize 1001, MaxJobCount 10000, MinJobAge 300 s");
  view.facts.max_array_tasks = 30;
  EXPECT_EQ(fact_of(site, view, "limits").value,
            "MaxArraySize 1001, max_array_tasks 30, MaxJobCount 10000, MinJobAge 300 s");
  EXPECT_EQ(fact_of(site, view, "gpu H20 partition").value, "h20: up, 1 of 1 nodes usable, 8 cores");
  EXPECT_EQ(fact_of(site, view, "gpu H20 gres").value, "gpu:h20: 2 in all, on usable nodes");
  EXPECT_EQ(fact_of(site, view, "controller time").value, "1h; the partition allows 1d");
  for (const process::Fact& fact : check_site(site, view)) EXPECT_NE(fact.name, "not in the site");
}

TEST(SiteCheck, GpusOfAPlaceAreCounted) {
  ClusterView view = dev_view();
  workflow::SitePlace place;
  place.partition = "h20";
  place.gres = "gpu:h20";
  EXPECT_EQ(count_gpus(place, view.nodes), 2u);
  place.partition = "h20,l40";
  EXPECT_EQ(count_gpus(place, view.nodes), 2u);
  place.gres = "gpu";
  EXPECT_EQ(count_gpus(place, view.nodes), 3u);
  place.constraint = "l40";
  EXPECT_EQ(count_gpus(place, view.nodes), 1u);
  node_of(view, "gpu-l40").usable = false;
  EXPECT_EQ(count_gpus(place, view.nodes), 0u);
}

TEST(SiteCheck, ArraysSwitchedOffAreALack) {
  ClusterView view = dev_view();
  view.facts.max_array_size = 1;
  EXPECT_THAT(lacks(dev_site(), view), ElementsAre(HasSubstr("limits: MaxArraySize 1, ")));
}

TEST(SiteCheck, MoreQueuedThanTheLimitsAllowIsARemark) {
  SiteSpec site = dev_site();
  ClusterView view = dev_view();
  site.max_queued = 20000;
  EXPECT_EQ(fact_of(site, view, "max_queued").value, "20000 is over MaxJobCount");
  site.max_queued = 500;
  view.limits = SlurmLimits{.max_submit = 100, .accounts = {"a"}, .qos = {}};
  EXPECT_EQ(fact_of(site, view, "max_queued").value, "500 is over MaxSubmitJobs");
}

TEST(SiteCheck, UnknownPartition) {
  EXPECT_THAT(lacks(site_of("cpu: {partition: h10}\ncontroller: {partition: cpu}"), dev_view()),
              ElementsAre("cpu partition: the cluster has no partition `h10` (did you mean `h100`?)"));
  EXPECT_THAT(lacks(site_of("cpu: {partition: 'cpu,somewhere'}\ncontroller: {partition: cpu}"), dev_view()),
              ElementsAre("cpu partition: the cluster has no partition `somewhere` "
                          "(it has: cpu, h100, h20, l40, rtx3090, all)"));
}

TEST(SiteCheck, PartitionByDefault) {
  ClusterView view = dev_view();
  EXPECT_EQ(fact_of(site_of("cpu: {}"), view, "cpu partition").value,
            "the default, cpu: up, 1 of 1 nodes usable, 8 cores");
  partition_of(view, "cpu").is_default = false;
  EXPECT_THAT(lacks(site_of("cpu: {}"), view),
              ElementsAre("cpu partition: none said, and the cluster has no default "
                          "(write one of: cpu, h100, h20, l40, rtx3090, all)",
                          HasSubstr("controller partition: none said")));
}

TEST(SiteCheck, PartitionThatIsDown) {
  ClusterView view = dev_view();
  partition_of(view, "h20").up = false;
  EXPECT_THAT(lacks(dev_site(), view),
              ElementsAre("gpu H20 partition: h20: not up, 1 of 1 nodes usable, 8 cores "
                          "(jobs wait until an administrator sets it up again)"));
}

TEST(SiteCheck, OneOfSeveralPartitionsIsEnough) {
  ClusterView view = dev_view();
  partition_of(view, "h20").up = false;
  EXPECT_THAT(lacks(site_of("cpu: {partition: 'h20,cpu'}\ncontroller: {partition: cpu}"), view), IsEmpty());
}

TEST(SiteCheck, NodeThatIsDown) {
  ClusterView view = dev_view();
  node_of(view, "gpu-h20").usable = false;
  node_of(view, "gpu-h20").state = "IDLE+DRAIN";
  EXPECT_THAT(lacks(dev_site(), view),
              ElementsAre(HasSubstr("gpu H20 partition: h20: up, 0 of 1 nodes usable, 0 cores (IDLE+DRAIN)"),
                          HasSubstr("gpu H20 gres: gpu:h20: no usable node of the partition has it "
                                    "(it is on nodes that are not usable")));
}

TEST(SiteCheck, GresThatThePartitionLacks) {
  const auto with = [](const std::string& place) {
    return lacks(site_of("cpu: {partition: cpu}\ngpus: {T: " + place + "}\ncontroller: {partition: cpu}"),
                 dev_view());
  };
  EXPECT_THAT(with("{partition: l40, gres: 'gpu:h100'}"),
              ElementsAre("gpu T gres: gpu:h100: no usable node of the partition has it "
                          "(these partitions have it: all, h100)"));
  EXPECT_THAT(with("{partition: l40, gres: 'gpu:L40'}"),
              ElementsAre("gpu T gres: gpu:L40: no usable node of the partition has it "
                          "(did you mean `gpu:l40`?)"));
  EXPECT_THAT(with("{partition: l40, gres: 'gpu:gaudi-7'}"),
              ElementsAre(HasSubstr("(the cluster has: gpu:h100, gpu:h20, gpu:l40, gpu:rtx3090)")));
  EXPECT_THAT(with("{partition: all, gres: gpu}"),
              ElementsAre(HasSubstr("(they are of several types: gpu:h100, gpu:h20, gpu:l40, gpu:rtx3090)")));
  EXPECT_THAT(with("{partition: h20, gres: gpu}"), IsEmpty());
  EXPECT_THAT(with("{partition: all, gres: gpu, constraint: l40}"), IsEmpty());
}

TEST(SiteCheck, Constraint) {
  const auto with = [](const std::string& place) {
    return lacks(site_of("cpu: {" + place + "}\ncontroller: {partition: cpu}"), dev_view());
  };
  EXPECT_THAT(with("partition: all, constraint: h20|l40"), IsEmpty());
  EXPECT_THAT(with("partition: all, constraint: l4O"),
              ElementsAre("cpu constraint: l4O: 0 usable nodes (did you mean `l40`?)"));
  EXPECT_THAT(with("partition: cpu, constraint: h100"),
              ElementsAre("cpu constraint: h100: 0 usable nodes (nodes of other partitions have it)"));
  EXPECT_THAT(with("partition: all, constraint: 'h20&l40'"),
              ElementsAre(HasSubstr("cpu constraint: h20&l40: 0 usable nodes")));
}

TEST(SiteCheck, ExcludedNodes) {
  const SiteSpec site = site_of(
      "cpu: {partition: cpu}\ngpus: {H20: {partition: all, exclude: 'gpu-h[20,100]'}}\ncontroller: "
      "{partition: cpu}");
  EXPECT_THAT(lacks(site, dev_view()), ElementsAre(HasSubstr("gpu H20 gres")));
  const SiteSpec unknown =
      site_of("cpu: {partition: all, exclude: 'cpu-[0-1]'}\ncontroller: {partition: cpu}");
  EXPECT_THAT(lacks(unknown, dev_view()),
              ElementsAre("cpu exclude: the cluster has no node `cpu-1` (did you mean `cpu-0`?)"));
}

TEST(SiteCheck, TimeOverThePartitions) {
  SiteSpec site = site_of("cpu: {partition: cpu, max_time: 2d}\ncontroller: {partition: cpu, time: 36h}");
  EXPECT_THAT(lacks(site, dev_view()),
              ElementsAre("cpu max_time: 2d is over the partition's MaxTime (write max_time: 1d)",
                          "controller time: 36h is over the partition's MaxTime (write time: 1d)"));
  ClusterView view = dev_view();
  partition_of(view, "cpu").max_minutes = 0;  // no limit
  EXPECT_THAT(lacks(site, view), IsEmpty());
  view = dev_view();
  partition_of(view, "h20").max_minutes = 3 * 1440;
  site.cpu.partition = "cpu,h20";
  site.controller_time_s = 3600;
  EXPECT_THAT(lacks(site, view), IsEmpty());
  EXPECT_EQ(fact_of(site, view, "cpu max_time").hint, "some of its partitions allow less");
}

TEST(SiteCheck, Memory) {
  const SiteSpec site = site_of(
      "cpu: {partition: cpu, memory_per_cpu: 20GiB}\ncontroller: {partition: cpu, memory: 1GiB, cpus: 9}");
  EXPECT_THAT(
      lacks(site, dev_view()),
      ElementsAre("cpu memory_per_cpu: 20.0 GiB; cpu-0 has 15.6 GiB and 8 cores (no node has as much)",
                  "controller size: 1.0 GiB and 9 cores: over what any node has "
                  "(cpu-0 has 15.6 GiB and 8 cores)"));
  EXPECT_EQ(
      fact_of(site_of("cpu: {partition: cpu, memory_per_cpu: 4GiB}"), dev_view(), "cpu memory_per_cpu").hint,
      "memory for 3 cores at a time");
}

TEST(SiteCheck, AccountAndQos) {
  const SiteSpec site = site_of(
      "cpu: {partition: cpu, account: kernel, qos: fast}\ncontroller: {partition: cpu, reservation: r}");
  ClusterView view = dev_view();
  EXPECT_THAT(lacks(site, view), IsEmpty());
  EXPECT_EQ(fact_of(site, view, "cpu account").value, "kernel: not checked");
  EXPECT_EQ(fact_of(site, view, "controller reservation").value, "r: not checked");
  view.limits = SlurmLimits{.max_submit = 500,
                            .max_jobs = 20,
                            .account = "kernels",
                            .accounts = {"kernels", "x"},
                            .qos = {"normal"}};
  EXPECT_THAT(lacks(site, view),
              ElementsAre("cpu account: `kernel` is not open to you (did you mean `kernels`?)",
                          "cpu qos: `fast` is not open to you (those of your accounts: normal)"));
  EXPECT_EQ(fact_of(site, view, "accounting").value,
            "accounts kernels, x, kernels by default; QOS normal; MaxSubmitJobs 500; MaxJobs 20");
  view.limits.reset();
  view.accounting_trouble = "slurmdbd sleeps";
  EXPECT_THAT(lacks(site, view), ElementsAre(HasSubstr("accounting: slurmdbd sleeps")));
}

TEST(SiteCheck, TypesThatTheSiteDoesNotName) {
  const SiteSpec site = site_of(
      "cpu: {partition: cpu}\ngpus: {L40: {partition: l40}, H100: {partition: cpu}}\ncontroller: {partition: "
      "cpu}");
  std::vector<std::string> others;
  for (const process::Fact& fact : check_site(site, dev_view()))
    if (fact.name == "not in the site") {
      EXPECT_TRUE(fact.ok);
      others.push_back(fact.value);
    }
  EXPECT_THAT(others, ElementsAre("gpu:h100, 1 in all; partitions all, h100",
                                  "gpu:h20, 2 in all; partitions all, h20",
                                  "gpu:rtx3090, 1 in all; partitions all, rtx3090"));
}

TEST(Constraints, AreReadAsSlurmDoes) {
  const std::vector<std::string> node = {"a", "b"};
  EXPECT_THAT(has_features("a", node), Optional(true));
  EXPECT_THAT(has_features("a&c", node), Optional(false));
  EXPECT_THAT(has_features("c|b", node), Optional(true));
  EXPECT_THAT(has_features("a|b&c", node), Optional(false));  // from left to right
  EXPECT_THAT(has_features("a|(b&c)", node), Optional(true));
  EXPECT_THAT(has_features("!c&a", node), Optional(true));
  EXPECT_THAT(has_features("[a|c]", node), Optional(true));
  EXPECT_THAT(has_features("b*2", node), Optional(true));
  EXPECT_THAT(has_features("a,b", node), Optional(true));
  for (const char* bad : {"", "a&", "|a", "(a", "a)", "a b&", "[a", "a**2"})
    EXPECT_EQ(has_features(bad, node), std::nullopt) << bad;
}

TEST(Hosts, AreExpanded) {
  EXPECT_THAT(expand_hosts("a"), Optional(ElementsAre("a")));
  EXPECT_THAT(expand_hosts("n[1-3,07],b"), Optional(ElementsAre("n1", "n2", "n3", "n07", "b")));
  EXPECT_THAT(expand_hosts("n[08-10]-x"), Optional(ElementsAre("n08-x", "n09-x", "n10-x")));
  EXPECT_THAT(expand_hosts("r[1-2]n[0-1]"), Optional(ElementsAre("r1n0", "r1n1", "r2n0", "r2n1")));
  for (const char* bad : {"", "a,", "n[1", "n]1[", "n[2-1]", "n[a]", "n[]", "n[1,]", "n[0-9999999]"})
    EXPECT_EQ(expand_hosts(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace warpsmith::executor
