// Fused operations of a decoder in bfloat16: fused.h says what each computes. Made by NVRTC for the GPU at
// hand and for one WIDTH of normed rows. Sums are formed in float32 and in one order, so results repeat bit
// for bit.
//
// Rows begin at multiples of 16 bytes and are multiples of 8 elements long.
typedef unsigned int u32;
typedef unsigned short bf16;
typedef long long i64;

struct Eight {
  float v[8];
};

__device__ __forceinline__ Eight widened(uint4 raw) {
  const u32 words[4] = {raw.x, raw.y, raw.z, raw.w};
  Eight e;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    e.v[2 * i] = __uint_as_float(words[i] << 16);
    e.v[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
  return e;
}

__device__ __forceinline__ Eight load(const bf16* p) { return widened(*reinterpret_cast<const uint4*>(p)); }

__device__ __forceinline__ u32 narrow(float low, float high) {
  u32 both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

__device__ __forceinline__ void store(bf16* p, const Eight& e) {
  *reinterpret_cast<uint4*>(p) = make_uint4(narrow(e.v[0], e.v[1]), narrow(e.v[2], e.v[3]),
                                            narrow(e.v[4], e.v[5]), narrow(e.v[6], e.v[7]));
}

__device__ __forceinline__ float rounded(float x) { return __uint_as_float(narrow(x, 0) << 16); }

constexpr int kThreads = 256;  // of a block
constexpr float kLowest = -3.4e38f;

template <typename Join>
__device__ __forceinline__ float of_warp(float x, Join join) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) x = join(x, __shfl_xor_sync(0xffffffffu, x, d));
  return x;
}

// Of all threads of a block of whole warps, for all of them.
template <typename Join>
__device__ __forceinline__ float of_block(float x, float nothing, Join join) {
  __shared__ float parts[32];
  x = of_warp(x, join);
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  return of_warp(threadIdx.x % 32 < blockDim.x / 32 ? parts[threadIdx.x % 32] : nothing, join);
}

struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Max {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// A row is normed by a team of threads, which holds it in registers.
constexpr int kTeam = WIDTH <= 1024 ? 32 : kThreads;
constexpr int kTeams = kThreads / kTeam;  // of a block
constexpr int kHeld = (WIDTH / 8 + kTeam - 1) / kTeam;

__device__ __forceinline__ float of_team(float x) {
  return kTeam == 32 ? of_warp(x, Add()) : of_block(x, 0.f, Add());
}

extern "C" __global__ void __launch_bounds__(kThreads)
    ws_add_norm(const bf16* x, const bf16* y, const bf16* weight, bf16* sum, bf16* normed, float* scale,
                i64 rows, float epsilon) {
  const i64 row = static_cast<i64>(blockIdx.x) * kTeams + threadIdx.x / kTeam;
  const int lane = threadIdx.x % kTeam;
  if (row >= rows) return;  // a whole team
  Eight held[kHeld];
  uint4 weights[kHeld];  // fetched early: of few rows a launch takes as long as one waits for memory
  float squares = 0;
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const int at = 8 * (j * kTeam + lane);
    if (at >= WIDTH) continue;
    weights[j] = *reinterpret_cast<const uint4*>(weight + at);
    held[j] = load(x + row * WIDTH + at);
    if (y != nullptr) {
      const Eight more = load(y + row * WIDTH + at);
#pragma unroll
      for (int i = 0; i < 8; ++i) held[j].v[i] = rounded(held[j].v[i] + more.v[i]);
      store(sum + row * WIDTH + at, held[j]);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) squares += held[j].v[i] * held[j].v[i];
  }
  const float factor = rsqrtf(of_team(squares) / WIDTH + epsilon);
  if (scale != nullptr && lane == 0) scale[row] = factor;
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const int at = 8 * (j * kTeam + lane);
    if (at >= WIDTH) continue;
    const Eight w = widened(weights[j]);
#pragma unroll
    for (int i = 0; i < 8; ++i) held[j].v[i] *= factor * w.v[i];
    store(normed + row * WIDTH + at, held[j]);
  }
}

// Each team takes every teams-th row, and leaves its part of the weight's gradient in a row of dweight.
extern "C" __global__ void __launch_bounds__(kThreads)
    ws_norm_backward(const bf16* sum, const float* scale, const bf16* weight, const bf16* dnormed,
                     const bf16* dsum, bf16* dx, float* dweight, i64 rows) {
  const i64 team = static_cast<i64>(blockIdx.x) * kTeams + threadIdx.x / kTeam;
  const i64 teams = static_cast<i64>(gridDim.x) * kTeams;
  const int lane = threadIdx.x % kTeam;
  Eight gathered[kHeld];
#pragma unroll
  for (int j = 0; j < kHeld; ++j)
#pragma unroll
    for (int i = 0; i < 8; ++i) gathered[j].v[i] = 0;
  for (i64 row = team; row < rows; row += teams) {
    const float factor = scale[row];
    Eight unit[kHeld], g[kHeld];  // the normed row before its weight, and the gradient that comes to it
    float dot = 0;
#pragma unroll
    for (int j = 0; j < kHeld; ++j) {
      const int at = 8 * (j * kTeam + lane);
      if (at >= WIDTH) continue;
      unit[j] = load(sum + row * WIDTH + at);
      g[j] = load(dnormed + row * WIDTH + at);
      const Eight w = load(weight + at);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        unit[j].v[i] *= factor;
        gathered[j].v[i] += g[j].v[i] * unit[j].v[i];
        g[j].v[i] *= w.v[i];
        dot += g[j].v[i] * unit[j].v[i];
      }
    }
    const float mean = of_team(dot) / WIDTH;
#pragma unroll
    for (int j = 0; j < kHeld; ++j) {
      const int at = 8 * (j * kTeam + lane);
      if (at >= WIDTH) continue;
#pragma unroll
      for (int i = 0; i < 8; ++i) g[j].v[i] = factor * (g[j].v[i] - unit[j].v[i] * mean);
      if (dsum != nullptr) {
        const Eight passed = load(dsum + row * WIDTH + at);
#pragma unroll
        for (int i = 0; i < 8; ++i) g[j].v[i] += passed.v[i];
      }
      store(dx + row * WIDTH + at, g[j]);
    }
  }
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const int at = 8 * (j * kTeam + lane);
    if (at >= WIDTH) continue;
#pragma unroll
    for (int i = 0; i < 8; ++i) dweight[team * WIDTH + at + i] = gathered[j].v[i];
  }
}

__device__ __forceinline__ float sigmoid(float x) { return 1 / (1 + __expf(-x)); }

// A block a row.
extern "C" __global__ void ws_swiglu(const bf16* gate_up, bf16* out, i64 hidden) {
  const i64 row = blockIdx.x;
  const bf16* const gate = gate_up + row * 2 * hidden;
  for (i64 at = 8 * threadIdx.x; at < hidden; at += 8 * blockDim.x) {
    Eight g = load(gate + at);
    const Eight u = load(gate + hidden + at);
#pragma unroll
    for (int i = 0; i < 8; ++i) g.v[i] *= sigmoid(g.v[i]) * u.v[i];
    store(out + row * hidden + at, g);
  }
}

extern "C" __global__ void ws_swiglu_backward(const bf16* gate_up, const bf16* dout, bf16* dgate_up,
                                              i64 hidden) {
  const i64 row = blockIdx.x, begin = row * 2 * hidden;
  for (i64 at = 8 * threadIdx.x; at < hidden; at += 8 * blockDim.x) {
    Eight g = load(gate_up + begin + at), u = load(gate_up + begin + hidden + at);
    const Eight d = load(dout + row * hidden + at);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float s = sigmoid(g.v[i]), silu = g.v[i] * s;
      g.v[i] = d.v[i] * u.v[i] * s * (1 + g.v[i] - silu);
      u.v[i] = d.v[i] * silu;
    }
    store(dgate_up + begin + at, g);
    store(dgate_up + begin + hidden + at, u);
  }
}

// Layout: Turn in module.cc.
struct Turn {
  const bf16 *queries, *keys, *values;  // row strides in elements
  bf16 *to_queries, *to_keys, *to_values;
  i64 queries_row, keys_row, values_row, to_queries_row, to_keys_row, to_values_row;
  const i64 *positions, *places;  // places: rows of to_keys and to_values; null: those of keys
  const bf16 *cosine, *sine;      // [context, half]
  int heads, kv_heads, half;
  float sign;       // -1: back
  int copy_values;  // 0: they stay where they are
};

// A block a token.
extern "C" __global__ void ws_turn(Turn t) {
  const i64 token = blockIdx.x, position = t.positions[token];
  const i64 place = t.places == nullptr ? token : t.places[token];
  const int vectors = t.half / 8;
  for (int n = threadIdx.x; n < (t.heads + t.kv_heads) * vectors; n += blockDim.x) {
    const int head = n / vectors, at = 8 * (n % vectors), key = head - t.heads;
    const bf16* const from = key < 0 ? t.queries + token * t.queries_row + head * 2 * t.half
                                     : t.keys + token * t.keys_row + key * 2 * t.half;
    bf16* const to = key < 0 ? t.to_queries + token * t.to_queries_row + head * 2 * t.half
                             : t.to_keys + place * t.to_keys_row + key * 2 * t.half;
    const Eight a = load(from + at), b = load(from + t.half + at);
    const Eight c = load(t.cosine + position * t.half + at), s = load(t.sine + position * t.half + at);
    Eight x, y;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      x.v[i] = a.v[i] * c.v[i] - t.sign * b.v[i] * s.v[i];
      y.v[i] = b.v[i] * c.v[i] + t.sign * a.v[i] * s.v[i];
    }
    store(to + at, x);
    store(to + t.half + at, y);
  }
  if (t.copy_values == 0) return;
  for (int at = 8 * threadIdx.x; at < t.kv_heads * 2 * t.half; at += 8 * blockDim.x)
    *reinterpret_cast<uint4*>(t.to_values + place * t.to_values_row + at) =
        *reinterpret_cast<const uint4*>(t.values + token * t.values_row + at);
}

// The largest logit of a row and the sum of exp(factor * (logit - largest)), for all threads of the block.
struct Mass {
  float largest, sum;
};

__device__ Mass mass_of(const bf16* row, i64 columns, float factor) {
  Mass m = {kLowest, 0};
  for (i64 at = 8 * threadIdx.x; at < columns; at += 8 * blockDim.x) {
    const Eight e = load(row + at);
    float top = e.v[0];
#pragma unroll
    for (int i = 1; i < 8; ++i) top = fmaxf(top, e.v[i]);
    if (top > m.largest) {
      m.sum *= __expf(factor * (m.largest - top));
      m.largest = top;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) m.sum += __expf(factor * (e.v[i] - m.largest));
  }
  const float largest = of_block(m.largest, kLowest, Max());
  return {largest, of_block(m.sum * __expf(factor * (m.largest - largest)), 0.f, Add())};
}

// The gradient of gradient * log softmax(row)[target] in the row's place.
__device__ void put_gradient(bf16* row, i64 columns, i64 target, float logsum, float gradient) {
  for (i64 at = 8 * threadIdx.x; at < columns; at += 8 * blockDim.x) {
    Eight e = load(row + at);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      e.v[i] = gradient * ((at + i == target ? 1.f : 0.f) - __expf(e.v[i] - logsum));
    store(row + at, e);
  }
}

// A block a row. gradients null: logits stay as they are.
extern "C" __global__ void __launch_bounds__(1024)
    ws_log_probabilities(bf16* logits, const i64* targets, const float* gradients, float* out, float* logsums,
                         i64 columns) {
  bf16* const row = logits + static_cast<i64>(blockIdx.x) * columns;
  const i64 target = targets[blockIdx.x];
  const float at_target = __uint_as_float(static_cast<u32>(row[target]) << 16);
  const Mass mass = mass_of(row, columns, 1);  // every thread has read at_target behind its barriers
  const float logsum = mass.largest + logf(mass.sum);
  if (threadIdx.x == 0) {
    out[blockIdx.x] = at_target - logsum;
    logsums[blockIdx.x] = logsum;
  }
  if (gradients != nullptr) put_gradient(row, columns, target, logsum, gradients[blockIdx.x]);
}

extern "C" __global__ void __launch_bounds__(1024)
    ws_log_probabilities_backward(bf16* logits, const i64* targets, const float* gradients,
                                  const float* logsums, i64 columns) {
  put_gradient(logits + static_cast<i64>(blockIdx.x) * columns, columns, targets[blockIdx.x],
               logsums[blockIdx.x], gradients[blockIdx.x]);
}

// A block a row: the token that the row's number in [0, 1) picks, by the sums of probabilities in the order
// of ids; the most probable one where factor (1 / temperature) is 0. tokens, log_probabilities: [steps,
// rows].
extern "C" __global__ void __launch_bounds__(1024)
    ws_draw(const bf16* logits, const double* uniforms, const i64* step, i64* token, i64* tokens,
            float* log_probabilities, i64 columns, float factor) {
  __shared__ i64 chosen;
  __shared__ float parts[32];
  const bf16* const row = logits + static_cast<i64>(blockIdx.x) * columns;
  const Mass plain = mass_of(row, columns, 1);
  const float all = factor == 1 || factor == 0 ? plain.sum : mass_of(row, columns, factor).sum;
  if (threadIdx.x == 0) chosen = columns;
  __syncthreads();
  if (factor > 0) {
    const float wanted = static_cast<float>(uniforms[*step * gridDim.x + blockIdx.x]) * all;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    float before = 0;  // sum of all tiles so far
    for (i64 tile = 0; tile < columns && chosen == columns; tile += 8 * blockDim.x) {
      const i64 at = tile + 8 * threadIdx.x;
      Eight e;
      float mine = 0;
      if (at < columns) {
        e = load(row + at);
#pragma unroll
        for (int i = 0; i < 8; ++i) mine += e.v[i] = __expf(factor * (e.v[i] - plain.largest));
      }
      float until = mine;  // of this warp's threads so far
#pragma unroll
      for (int d = 1; d < 32; d *= 2) {
        const float other = __shfl_up_sync(0xffffffffu, until, d);
        if (lane >= d) until += other;
      }
      if (lane == 31) parts[warp] = until;
      __syncthreads();
      float begin = before;
      for (int w = 0; w < warps; ++w) {
        if (w == warp) begin = before;
        before += parts[w];
      }
      float sum = begin + until - mine;
      const bool here = at < columns && sum <= wanted && begin + until > wanted;
      if (here)
        for (int i = 0; i < 8; ++i) {
          sum += e.v[i];
          if (sum > wanted || i == 7) {
            atomicMin(reinterpret_cast<unsigned long long*>(&chosen),
                      static_cast<unsigned long long>(at + i));
            break;
          }
        }
      __syncthreads();
    }
  }
  // None where rounding left the number above all sums.
  if (chosen == columns) {
    for (i64 at = 8 * threadIdx.x; at < columns; at += 8 * blockDim.x) {
      const Eight e = load(row + at);
      for (int i = 0; i < 8; ++i)
        if (e.v[i] == plain.largest)
          atomicMin(reinterpret_cast<unsigned long long*>(&chosen), static_cast<unsigned long long>(at + i));
    }
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  const i64 id = chosen < columns ? chosen : 0;  // no number at all in this row: the caller sees NaN
  const i64 place = *step * gridDim.x + blockIdx.x;
  token[blockIdx.x] = id;
  tokens[place] = id;
  log_probabilities[place] =
      __uint_as_float(static_cast<u32>(row[id]) << 16) - plain.largest - logf(plain.sum);
}

// Layout: Decode in module.cc.
struct Decode {
  const bf16 *queries, *keys, *values;  // queries: queries_row elements a sequence
  bf16* out;
  float* parts;  // [sequences, kv_heads, splits, heads / kv_heads, size + 2]
  u32* arrived;  // [sequences * kv_heads], all 0, and all 0 again behind it
  const int* used;
  i64 queries_row, length;  // of a sequence: elements of queries; places of the cache
  int heads, kv_heads, size, splits;
  float scale;  // of scores as exponents of 2
};

constexpr int kDecodeThreads = 128, kKeys = 64;  // keys: of a split
constexpr int kMostSharers = 16;                 // query heads of a key head
constexpr int kPass = 4;                         // of these at a time by a thread

// 16 bytes from global to shared memory, in the background; zeros where `there` is false.
__device__ __forceinline__ void fetch(void* to, const void* from, bool there) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<u32>(__cvta_generic_to_shared(to))),
      "l"(from), "r"(there ? 16 : 0)
      : "memory");
}

__device__ __forceinline__ float wide(bf16 x) { return __uint_as_float(static_cast<u32>(x) << 16); }

// One query of each sequence over the first used[i] places of its cache. A block takes kKeys keys of a head
// and all queries that share them; the last block of a sequence and head to arrive joins their parts, in one
// order. Dynamic shared memory: decode_memory() in module.cc.
extern "C" __global__ void __launch_bounds__(kDecodeThreads) ws_decode(Decode p) {
  extern __shared__ uint4 memory[];
  __shared__ float tops[kMostSharers], sums[kMostSharers];
  __shared__ bool is_last;
  const int size = p.size, sharers = p.heads / p.kv_heads, vectors = size / 8;
  const int split = blockIdx.x % p.splits;
  const i64 pair = blockIdx.x / p.splits, sequence = pair / p.kv_heads;
  const int head = static_cast<int>(pair % p.kv_heads);
  const int used = p.used[sequence], first = split * kKeys, n = min(kKeys, used - first);
  if (n <= 0) return;
  const int key_row = size + 8;  // so that keys of one place lie in different banks
  bf16* const keys = reinterpret_cast<bf16*>(memory);
  bf16* const values = keys + kKeys * key_row;
  float* const queries = reinterpret_cast<float*>(values + kKeys * size);
  float* const shares = queries + sharers * size;  // [sharers, kKeys]

  const i64 begin = ((sequence * p.length + first) * p.kv_heads + head) * size;
  const i64 next = static_cast<i64>(p.kv_heads) * size;
  for (int at = threadIdx.x; at < kKeys * vectors; at += kDecodeThreads) {
    const int key = at / vectors, lane = 8 * (at % vectors);
    fetch(keys + key * key_row + lane, p.keys + begin + (key < n ? key * next : 0) + lane, key < n);
  }
  asm volatile("cp.async.commit_group;");
  for (int at = threadIdx.x; at < kKeys * vectors; at += kDecodeThreads) {
    const int key = at / vectors, lane = 8 * (at % vectors);
    fetch(values + key * size + lane, p.values + begin + (key < n ? key * next : 0) + lane, key < n);
  }
  asm volatile("cp.async.commit_group;");
  const bf16* const own = p.queries + sequence * p.queries_row + static_cast<i64>(head) * sharers * size;
  for (int at = threadIdx.x; at < sharers * size; at += kDecodeThreads) queries[at] = p.scale * wide(own[at]);
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  __syncthreads();

  {  // a thread: one key, every second query
    const int key = threadIdx.x % kKeys, turn = threadIdx.x / kKeys;
    constexpr int kTurns = kDecodeThreads / kKeys;
    for (int q = turn; q < sharers; q += kTurns * kPass) {
      float score[kPass] = {};
      for (int at = 0; at < size; at += 8) {
        const Eight k = load(keys + key * key_row + at);
#pragma unroll
        for (int j = 0; j < kPass; ++j) {
          if (q + j * kTurns >= sharers) break;
          const float4* const query = reinterpret_cast<const float4*>(queries + (q + j * kTurns) * size + at);
          const float4 a = query[0], b = query[1];
          score[j] += a.x * k.v[0] + a.y * k.v[1] + a.z * k.v[2] + a.w * k.v[3] + b.x * k.v[4] +
                      b.y * k.v[5] + b.z * k.v[6] + b.w * k.v[7];
        }
      }
#pragma unroll
      for (int j = 0; j < kPass; ++j)
        if (q + j * kTurns < sharers) shares[(q + j * kTurns) * kKeys + key] = key < n ? score[j] : kLowest;
    }
  }
  __syncthreads();
  for (int q = threadIdx.x / 32; q < sharers; q += kDecodeThreads / 32) {
    float* const two = shares + q * kKeys + threadIdx.x % 32;
    const float top = of_warp(fmaxf(two[0], two[32]), Max());
    two[0] = exp2f(two[0] - top);
    two[32] = exp2f(two[32] - top);
    const float sum = of_warp(two[0] + two[32], Add());
    if (threadIdx.x % 32 == 0) {
      tops[q] = top;
      sums[q] = sum;
    }
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();

  // A thread: one element of the values, every turns-th query.
  const int turns = max(1, kDecodeThreads / size), turn = threadIdx.x / size, at = threadIdx.x % size;
  const int splits = (used + kKeys - 1) / kKeys, part_row = size + 2;
  float* const part = p.parts + (pair * p.splits + split) * sharers * part_row;
  bf16* const out = p.out + (sequence * p.heads + static_cast<i64>(head) * sharers) * size;
  for (int q = turn; q < sharers && turn < turns; q += turns * kPass) {
    float mixed[kPass] = {};
    for (int key = 0; key < n; key += 4) {
      float v[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) v[i] = wide(values[(key + i) * size + at]);
#pragma unroll
      for (int j = 0; j < kPass; ++j) {
        if (q + j * turns >= sharers) break;
        const float4 share = *reinterpret_cast<const float4*>(shares + (q + j * turns) * kKeys + key);
        mixed[j] += share.x * v[0] + share.y * v[1] + share.z * v[2] + share.w * v[3];
      }
    }
#pragma unroll
    for (int j = 0; j < kPass; ++j) {
      const int query = q + j * turns;
      if (query >= sharers) break;
      if (splits == 1) {
        out[query * size + at] = static_cast<bf16>(narrow(mixed[j] / sums[query], 0));
        continue;
      }
      part[query * part_row + at] = mixed[j];
      if (at == 0) {
        part[query * part_row + size] = tops[query];
        part[query * part_row + size + 1] = sums[query];
      }
    }
  }
  if (splits == 1) return;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(p.arrived + pair, 1u) == static_cast<u32>(splits - 1);
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  if (threadIdx.x == 0) p.arrived[pair] = 0;
  const float* const parts = p.parts + pair * p.splits * sharers * part_row;
  for (int q = turn; q < sharers && turn < turns; q += turns) {
    float top = kLowest, sum = 0, mixed = 0;
#pragma unroll 4
    for (int i = 0; i < splits; ++i) {
      const float* const one = parts + (static_cast<i64>(i) * sharers + q) * part_row;
      const float its_top = __ldcg(one + size), its_sum = __ldcg(one + size + 1), its = __ldcg(one + at);
      const float higher = fmaxf(top, its_top), kept = exp2f(top - higher), added = exp2f(its_top - higher);
      sum = sum * kept + its_sum * added;
      mixed = mixed * kept + its * added;
      top = higher;
    }
    out[q * size + at] = static_cast<bf16>(narrow(mixed / sum, 0));
  }
}

struct Rates {
  float size;    // learning rate / (1 - beta1^t)
  float root;    // 1 / sqrt(1 - beta2^t)
  float decay;   // learning rate * weight decay
  float factor;  // of gradients: clipping
  float beta1, beta2, epsilon;
};

// Decoupled weight decay (AdamW), of 8 elements a thread; decays: a byte for each 16 elements.
extern "C" __global__ void ws_adamw(bf16* weights, const bf16* gradients, float* master, float* first,
                                    float* second, const unsigned char* decays, i64 n, Rates r) {
  const i64 at = 8 * (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x);
  if (at >= n) return;
  const Eight g = load(gradients + at);
  const float kept = decays[at / 16] != 0 ? 1 - r.decay : 1;
  Eight out;
#pragma unroll
  for (int i = 0; i < 8; i += 4) {
    float4 *const w = reinterpret_cast<float4*>(master + at + i),
                  *const m = reinterpret_cast<float4*>(first + at + i),
                  *const v = reinterpret_cast<float4*>(second + at + i);
    const float4 weight = *w, mean = *m, square = *v;
    float ws[4] = {weight.x, weight.y, weight.z, weight.w}, ms[4] = {mean.x, mean.y, mean.z, mean.w},
          vs[4] = {square.x, square.y, square.z, square.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float gradient = g.v[i + k] * r.factor;
      ms[k] += (1 - r.beta1) * (gradient - ms[k]);
      vs[k] = r.beta2 * vs[k] + (1 - r.beta2) * gradient * gradient;
      ws[k] = ws[k] * kept - r.size * ms[k] / (sqrtf(vs[k]) * r.root + r.epsilon);
      out.v[i + k] = ws[k];
    }
    *w = make_float4(ws[0], ws[1], ws[2], ws[3]);
    *m = make_float4(ms[0], ms[1], ms[2], ms[3]);
    *v = make_float4(vs[0], vs[1], vs[2], vs[3]);
  }
  store(weights + at, out);
}
