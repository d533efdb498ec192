// Fields of what a shard may use, and of the device that it measured on.
#include "warpsmith/records/job.h"
#include "warpsmith/records/measurement.h"

namespace warpsmith {

const Fields<Resources>& resource_fields() {
  using R = Resources;
  constexpr Presence kWritten = Presence::kWritten;
  static const Fields<R> fields = {
      field("cpus", &R::cpus, {.meaning = "CPU cores", .presence = kWritten}),
      field("memory_bytes", &R::memory_bytes,
            {.unit = "bytes", .meaning = "memory; 0: not limited", .presence = kWritten}),
      field("gpus", &R::gpus, {.meaning = "GPUs", .presence = kWritten}),
      field("gpu_type", &R::gpu_type, {.meaning = "GPU type; empty: any", .presence = kWritten}),
      field("time_s", &R::time_s,
            {.unit = "s", .meaning = "wall clock of one attempt; 0: not limited", .presence = kWritten}),
      field("output_bytes", &R::output_bytes,
            {.unit = "bytes",
             .meaning = "the most that an attempt may write in its shard folder; 0: not limited",
             .presence = kWritten}),
      field("ranks", &R::ranks, {.meaning = "processes", .presence = kWritten}),
      field("nodes", &R::nodes, {.meaning = "nodes", .presence = kWritten}),
      field("shards_a_gpu", &R::shards_a_gpu,
            {.meaning = "shards that may share the GPU; 0: it is this one's own"}),
  };
  return fields;
}

Json to_json(const Resources& resources) { return fields_to_json(resource_fields(), resources); }

Resources resources_from_json(const Json& json) {
  Resources resources;
  fields_from_json(resource_fields(), json, resources);
  return resources;
}

const Fields<DeviceFacts>& device_fields() {
  using D = DeviceFacts;
  constexpr Presence kWritten = Presence::kWritten;
  static const Fields<D> fields = {
      field("kind", &D::kind, {.meaning = "`cpu`, or a GPU type such as `H100`", .presence = kWritten}),
      field("name", &D::name,
            {.meaning = "CPU model, or the GPU's name as its driver says", .presence = kWritten}),
      field("uuid", &D::uuid, {.meaning = "UUID of the GPU", .presence = kWritten}),
      field("driver", &D::driver, {.meaning = "driver of the GPU", .presence = kWritten}),
      field("host", &D::host, {.meaning = "name of the host", .presence = kWritten}),
      field("sandbox", &D::sandbox, {.meaning = "`bubblewrap`, `landlock` or `none`", .presence = kWritten}),
      field("threads", &D::threads,
            {.meaning = "CPU threads that candidate and baseline used", .presence = kWritten}),
      field("cores", &D::cores, {.meaning = "CPU cores of the host", .presence = kWritten}),
      field("load_before", &D::load_before, {.presence = kWritten, .json = "/load/0", .column = false}),
      field("load_after", &D::load_after, {.presence = kWritten, .json = "/load/1", .column = false}),
      field("extra", &D::extra, {.presence = kWritten, .column = false}),
  };
  return fields;
}

Json to_json(const DeviceFacts& facts) { return fields_to_json(device_fields(), facts); }

DeviceFacts device_facts_from_json(const Json& json) {
  DeviceFacts facts;
  fields_from_json(device_fields(), json, facts);
  return facts;
}

}  // namespace warpsmith
