// Reading how a server with a model is asked: `endpoint:` of a policy, and each of `teachers:`.
#pragma once

#include "tables.h"
#include "warpsmith/yaml/node.h"

namespace warpsmith::workflow {

const Table<EndpointSettings>& endpoint_keys();
const Table<EndpointSettings::Spending>& spending_keys();

// Reads the keys of an endpoint from `map`, which may have others.
void read_endpoint(yaml::MapReader& map, EndpointSettings& endpoint, Diagnostics& mistakes);
// `policy: {endpoint: …}`.
const Table<StageSpec>& policy_keys();
void read_policy(const yaml::Node& node, StageSpec& spec, Diagnostics& mistakes);
// Keys of `sample` that say how our own sampler works.
inline constexpr const char* kOfOwnSamplers[] = {"type", "wave"};

// What a stage of `kind` says of training, which a server's model does not get. `map` is the stage's.
void check_policy(yaml::MapReader& map, StageSpec& spec, Diagnostics& mistakes);

// One of `teachers:`: the keys of an endpoint, and how it is asked.
const Table<TeacherSettings>& teacher_keys();
TeacherSettings read_teacher(const yaml::Node& node, Diagnostics& mistakes);
Json hashed_teacher(const TeacherSettings& teacher);

// `checker: {endpoint: …}`.
const Table<CheckerSettings>& checker_keys();
void read_checker(const yaml::Node& node, StageSpec& spec, Diagnostics& mistakes);

// What the answers depend on: the model, not where it is served.
Json hashed_endpoint(const EndpointSettings& endpoint);

}  // namespace warpsmith::workflow
