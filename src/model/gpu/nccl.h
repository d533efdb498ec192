// Ranks on GPUs, by NCCL: see warpsmith/model/ranks.h.
#pragma once

#include <memory>

#include "warpsmith/model/collective.h"

namespace warpsmith::model::nccl {

void make_id(unsigned char (&id)[128]);
std::unique_ptr<Collective> connect(const unsigned char (&id)[128], int rank, int size);

}  // namespace warpsmith::model::nccl
