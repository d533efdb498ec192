#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster_view.h"
#include "warpsmith/executor/site_check.h"

namespace warpsmith::executor {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using workflow::SitePlace;
using workflow::SiteSpec;

// The draft, which must be a good site file that says the same, and have nothing that its cluster lacks.
SiteDraft draft_of(const ClusterView& view) {
  SiteDraft draft = draft_site("lab", view);
  Diagnostics mistakes;
  SiteSpec read = workflow::load_site_text(workflow::site_yaml(draft.site), "lab.yaml", mistakes);
  for (const Diagnostic& mistake : mistakes) ADD_FAILURE() << to_string(mistake);
  read.file.clear();
  read.text.clear();
  EXPECT_EQ(read, draft.site) << workflow::site_yaml(draft.site);
  return draft;
}

std::vector<std::string> types_of(const SiteDraft& draft) {
  std::vector<std::string> types;
  for (const auto& [type, place] : draft.site.gpus) types.push_back(type);
  return types;
}

// A cluster of nodes "NAME PARTITION GRES-TYPE FEATURE", "-" for none.
struct NodeRow {
  std::string name, partition, gpu, feature;
};
ClusterView view_of_rows(const std::vector<NodeRow>& rows) {
  ClusterView view;
  view.facts = {.cluster = "lab", .version = "22.05.8", .max_array_size = 1001};
  for (const NodeRow& row : rows) {
    SlurmNode node{.name = row.name,
                   .state = "IDLE",
                   .features = {},
                   .partitions = {},
                   .gpus = {},
                   .cpus = 8,
                   .memory_mib = 16000};
    if (row.gpu != "-") node.gpus = {{row.gpu, 2}};
    if (row.feature != "-") node.features = {row.feature};
    for (std::string_view rest = row.partition; !rest.empty();) {
      const std::string name(rest.substr(0, rest.find(',')));
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
      node.partitions.push_back(name);
      const auto there = std::find_if(view.partitions.begin(), view.partitions.end(),
                                      [&](const SlurmPartition& p) { return p.name == name; });
      if (there == view.partitions.end())
        view.partitions.push_back({.name = name, .nodes = {row.name}});
      else
        there->nodes.push_back(row.name);
    }
    view.nodes.push_back(node);
  }
  return view;
}

TEST(SiteDraft, OfTheDevelopmentCluster) {
  const ClusterView view = dev_view();
  const SiteDraft draft = draft_of(view);
  EXPECT_EQ(draft.site.name, "lab");
  EXPECT_EQ(draft.site.cpu.partition, "cpu");
  EXPECT_EQ(draft.site.cpu.max_time_s, 86400);
  EXPECT_EQ(draft.site.controller.partition, "cpu");
  EXPECT_EQ(draft.site.controller_time_s, 86400);
  EXPECT_THAT(types_of(draft), ElementsAre("H100", "H20", "L40", "RTX3090"));
  const SitePlace& h20 = draft.site.gpus.at("H20");
  EXPECT_EQ(h20.partition, "h20");  // and not `all`
  EXPECT_EQ(h20.gres, "gpu:h20");
  EXPECT_EQ(h20.constraint, "");
  EXPECT_THAT(h20.names, ElementsAre("H20"));
  EXPECT_THAT(draft.notes, Contains("H20: gpu:h20, 2 in all, in partition h20"));
  for (const process::Fact& fact : check_site(draft.site, view))
    EXPECT_TRUE(fact.ok) << fact.name << fact.value;
}

TEST(SiteDraft, TheLongestOfAlikePartitions) {
  ClusterView view = view_of_rows(
      {{"c", "batch", "-", "-"}, {"g", "short,long,mixed", "a100", "-"}, {"h", "mixed", "h100", "-"}});
  partition_of(view, "batch").is_default = true;
  partition_of(view, "short").max_minutes = 60;
  partition_of(view, "long").max_minutes = 600;
  partition_of(view, "mixed").max_minutes = 6000;
  EXPECT_EQ(draft_of(view).site.gpus.at("A100").partition, "long");
  partition_of(view, "short").max_minutes = 0;  // no limit
  const SiteDraft draft = draft_of(view);
  EXPECT_EQ(draft.site.gpus.at("A100").partition, "short");
  EXPECT_EQ(draft.site.gpus.at("A100").max_time_s, 0);
  EXPECT_EQ(draft.site.gpus.at("H100").partition, "mixed");
  partition_of(view, "short").up = false;
  EXPECT_EQ(draft_of(view).site.gpus.at("A100").partition, "long");
}

TEST(SiteDraft, WithoutADefaultTheCpuPartitionIsTheLargestWithoutGpus) {
  const ClusterView view = view_of_rows({{"a", "small", "-", "-"},
                                         {"b", "large", "-", "-"},
                                         {"c", "large", "-", "-"},
                                         {"g", "gpu", "l40", "-"},
                                         {"h", "gpu", "l40", "-"},
                                         {"i", "gpu", "l40", "-"}});
  const SiteDraft draft = draft_of(view);
  EXPECT_EQ(draft.site.cpu.partition, "large");
  EXPECT_THAT(draft.notes, Contains("cpu: partition large, as the cluster has no default"));
}

TEST(SiteDraft, UntypedGpusAreToldApartByFeature) {
  const ClusterView view = view_of_rows({{"a", "gpu", "", "l40"},
                                         {"b", "gpu", "", "rtx_3090"},
                                         {"c", "cpu", "-", "-"},
                                         {"d", "big", "", "h100"}});
  const SiteDraft draft = draft_of(view);
  EXPECT_THAT(types_of(draft), ElementsAre("H100", "L40", "RTX3090"));
  EXPECT_EQ(draft.site.gpus.at("L40").gres, "gpu");
  EXPECT_EQ(draft.site.gpus.at("L40").constraint, "l40");
  EXPECT_EQ(draft.site.gpus.at("RTX3090").constraint, "rtx_3090");
  EXPECT_EQ(draft.site.gpus.at("H100").constraint, "");  // alone in its partition
  for (const process::Fact& fact : check_site(draft.site, view))
    EXPECT_TRUE(fact.ok) << fact.name << fact.value;
}

TEST(SiteDraft, GpusOfNoKnownModelWantTheirNames) {
  const SiteDraft draft = draft_of(view_of_rows({{"a", "gpu", "", "rack7"}, {"b", "new", "z9000", "-"}}));
  EXPECT_THAT(types_of(draft), ElementsAre("GPU", "Z9000"));
  EXPECT_THAT(draft.site.gpus.at("GPU").names, ElementsAre("NVIDIA"));
  EXPECT_THAT(draft.notes, Contains(HasSubstr("GPU: what the driver calls it is not known")));
  EXPECT_THAT(draft.notes, Contains(HasSubstr("Z9000: what the driver calls it is not known")));
}

TEST(SiteDraft, TwoFormsOfAModelKeepTheirWholeNames) {
  const SiteDraft draft = draft_of(view_of_rows(
      {{"a", "p", "nvidia_a100-sxm4-40gb", "-"}, {"b", "p", "a100_80g", "-"}, {"c", "q", "h100_sxm", "-"}}));
  EXPECT_THAT(types_of(draft), ElementsAre("A100_80G", "H100", "NVIDIA_A100-SXM4-40GB"));
  EXPECT_EQ(draft.site.gpus.at("H100").gres, "gpu:h100_sxm");
  EXPECT_THAT(draft.site.gpus.at("A100_80G").names, ElementsAre("A100"));
  EXPECT_THAT(draft.notes, Contains(HasSubstr("A100_80G: `names` lets every A100 in")));
}

TEST(SiteDraft, SlicesOfAGpuAreLeftOut) {
  const SiteDraft draft = draft_of(view_of_rows(
      {{"a", "p", "nvidia_a100_1g.5gb", "-"}, {"b", "p", "3g.20gb", "-"}, {"c", "p", "a100", "-"}}));
  EXPECT_THAT(types_of(draft), ElementsAre("A100"));
  EXPECT_THAT(draft.notes, Contains("left out, as slices of a GPU: gpu:3g.20gb, gpu:nvidia_a100_1g.5gb"));
}

TEST(SiteDraft, Accounts) {
  ClusterView view = dev_view();
  view.limits = SlurmLimits{.account = "b", .accounts = {"a", "b"}, .qos = {}};
  const SiteDraft draft = draft_of(view);
  EXPECT_EQ(draft.site.cpu.account, "b");
  EXPECT_EQ(draft.site.controller.account, "b");
  EXPECT_EQ(draft.site.gpus.at("L40").account, "b");
  view.limits->account.clear();
  EXPECT_EQ(draft_of(view).site.cpu.account, "");
  view.limits->accounts = {"a"};
  EXPECT_EQ(draft_of(view).site.cpu.account, "a");
}

TEST(SiteDraft, ShortPartitionsAndEmptyClusters) {
  ClusterView view = dev_view();
  partition_of(view, "cpu").max_minutes = 3;
  EXPECT_EQ(draft_of(view).site.controller_time_s, 0);
  partition_of(view, "cpu").max_minutes = 90;
  EXPECT_EQ(draft_of(view).site.controller_time_s, 90 * 60);
  for (SlurmNode& node : view.nodes) node.usable = false;
  EXPECT_THAT(types_of(draft_of(view)), ElementsAre("H100", "H20", "L40", "RTX3090"));
  EXPECT_THAT(draft_of({}).notes, Not(IsEmpty()));
}

}  // namespace
}  // namespace warpsmith::executor
