#include "nccl.h"

#include <ATen/ops/tensor.h>
#include <c10/cuda/CUDAStream.h>

#include <cstring>
#include <string>

#include "library.h"
#include "warpsmith/base/error.h"

namespace warpsmith::model::nccl {

namespace {

// What of nccl.h is used; torch's wheel brings the library without it. These values are part of NCCL's
// interface.
struct Id {
  char bytes[128];
};
struct Communicator;
constexpr int kSum = 0, kFloat32 = 7, kFloat64 = 8, kBFloat16 = 9;

struct Functions {
  Library library{"libnccl.so.2", RTLD_GLOBAL};  // torch's CUDA library has loaded it
  int (*get_id)(Id*) = library.find<int(Id*)>("ncclGetUniqueId");
  int (*connect)(Communicator**, int, Id,
                 int) = library.find<int(Communicator**, int, Id, int)>("ncclCommInitRank");
  int (*destroy)(Communicator*) = library.find<int(Communicator*)>("ncclCommDestroy");
  int (*begin)() = library.find<int()>("ncclGroupStart");
  int (*end)() = library.find<int()>("ncclGroupEnd");
  int (*reduce)(const void*, void*, std::size_t, int, int, int, Communicator*, cudaStream_t) =
      library.find<int(const void*, void*, std::size_t, int, int, int, Communicator*, cudaStream_t)>(
          "ncclReduce");
  int (*broadcast)(const void*, void*, std::size_t, int, int, Communicator*, cudaStream_t) =
      library.find<int(const void*, void*, std::size_t, int, int, Communicator*, cudaStream_t)>(
          "ncclBroadcast");
  int (*all_reduce)(const void*, void*, std::size_t, int, int, Communicator*, cudaStream_t) =
      library.find<int(const void*, void*, std::size_t, int, int, Communicator*, cudaStream_t)>(
          "ncclAllReduce");
  const char* (*error)(int) = library.find<const char*(int)>("ncclGetErrorString");

  void must(int result, const char* what) const {
    if (result != 0) throw Error(std::string("NCCL: ") + what + ": " + error(result));
  }
};

const Functions& functions() {
  static const Functions kFunctions;
  return kFunctions;
}

int type_of(const at::Tensor& x) {
  switch (x.scalar_type()) {
    case at::kFloat:
      return kFloat32;
    case at::kDouble:
      return kFloat64;
    case at::kBFloat16:
      return kBFloat16;
    default:
      throw Error(std::string("ranks do not share ") + at::toString(x.scalar_type()));
  }
}

class ByNccl : public Collective {
 public:
  ByNccl(const unsigned char (&bytes)[128], int rank, int size) : Collective(rank, size) {
    Id id;
    std::memcpy(id.bytes, bytes, sizeof id.bytes);
    f_.must(f_.connect(&communicator_, size, id, rank), "the ranks cannot connect");
  }
  ~ByNccl() override { f_.destroy(communicator_); }

  void reduce_parts(const at::Tensor& flat) override {
    of_parts(flat, [&](const at::Tensor& part, int owner) {
      return f_.reduce(part.data_ptr(), part.data_ptr(), static_cast<std::size_t>(part.numel()),
                       type_of(part), kSum, owner, communicator_, stream());
    });
  }
  void gather_parts(const at::Tensor& flat) override {
    of_parts(flat, [&](const at::Tensor& part, int owner) { return send(part, owner); });
  }
  void broadcast(const at::Tensor& flat, int root) override { f_.must(send(flat, root), "sending"); }
  std::vector<double> sums(const std::vector<double>& values) override {
    const at::Tensor here = at::tensor(values, at::kDouble).to(at::kCUDA);
    f_.must(f_.all_reduce(here.data_ptr(), here.data_ptr(), values.size(), kFloat64, kSum, communicator_,
                          stream()),
            "adding up");
    const at::Tensor back = here.cpu();
    return {back.const_data_ptr<double>(), back.const_data_ptr<double>() + values.size()};
  }

 private:
  static cudaStream_t stream() { return c10::cuda::getCurrentCUDAStream().stream(); }
  int send(const at::Tensor& x, int root) {
    return f_.broadcast(x.data_ptr(), x.data_ptr(), static_cast<std::size_t>(x.numel()), type_of(x), root,
                        communicator_, stream());
  }
  void of_parts(const at::Tensor& flat, const auto& call) {
    f_.must(f_.begin(), "beginning");
    for (int owner = 0; owner < size(); ++owner)
      if (const Part whole = part(flat.numel(), owner); whole.count > 0)
        f_.must(call(whole.of(flat), owner), "sharing a buffer");
    f_.must(f_.end(), "sharing a buffer");
  }

  const Functions& f_ = functions();
  Communicator* communicator_ = nullptr;
};

}  // namespace

void make_id(unsigned char (&id)[128]) {
  Id made;
  functions().must(functions().get_id(&made), "no id");
  std::memcpy(id, made.bytes, sizeof made.bytes);
}

std::unique_ptr<Collective> connect(const unsigned char (&id)[128], int rank, int size) {
  return std::make_unique<ByNccl>(id, rank, size);
}

}  // namespace warpsmith::model::nccl
