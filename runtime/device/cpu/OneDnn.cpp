// SPDX-License-Identifier: Apache-2.0
//
// Layouts and numbers are those of dnnl.h in versions 2.6 and 3.2. The versions
// differ in how a tensor and a product are described, and in the arguments of a
// sum with what the result holds. In version 2 a description is a structure of
// the caller, in version 3 an object of the library; whatever takes one takes
// its address in both.
#include "runtime/device/cpu/OneDnn.h"
#include "runtime/Error.h"

#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <fmt/format.h>
#include <utility>

namespace rota {
namespace {

enum Status : int { kSuccess = 0, kUnimplemented = 3 };
enum DataType : int { kBf16 = 2, kF32 = 3 };
constexpr int kCpuEngine = 1, kDefaultStream = 1, kUserScratch = 1;
constexpr int kQueryImplementation = 8, kQuerySource = 129, kQueryWeights = 131,
              kQueryDestination = 133, kQueryScratch = 136;
constexpr int kSource = 1, kDestination = 17, kWeights = 33, kScratch = 80;
constexpr unsigned kSequential = 1, kOpenMp = 2;
constexpr unsigned kAvx512 = 0x27; // dnnl_cpu_isa_avx512_core

/// Objects of the library.
using Engine = struct dnnl_engine *;
using Stream = struct dnnl_stream *;
using Memory = struct dnnl_memory *;
using Attributes = struct dnnl_primitive_attr *;
using PostOps = struct dnnl_post_ops *;
using Form = struct dnnl_primitive_desc *;
using Primitive = struct dnnl_primitive *;
using TensorAddress = const void *; // of a tensor's description

/// dnnl_version_t
struct Version {
  int major, minor, patch;
  const char *hash;
  unsigned cpuRuntime, gpuRuntime;
};

/// dnnl_exec_arg_t
struct Argument {
  int number;
  Memory memory;
};

/// dnnl_memory_desc_t and dnnl_matmul_desc_t of version 2 have 696 and 2800
/// bytes in 2.6; there is room for longer ones.
struct Tensor2 {
  alignas(16) char bytes[1024];
};
struct Matmul2 {
  alignas(16) char bytes[8192];
};

/// X(type of the result, member, name after "dnnl_", parameters), in both.
#define ROTA_ONEDNN_FUNCTIONS(X)                                               \
  X(unsigned, processor, "get_effective_cpu_isa", ())                          \
  X(Status, createEngine, "engine_create", (Engine *, int kind, size_t))       \
  X(Status, createStream, "stream_create", (Stream *, Engine, unsigned))       \
  X(Status, destroyStream, "stream_destroy", (Stream))                         \
  X(Status, createMemory, "memory_create",                                     \
    (Memory *, TensorAddress, Engine, void *))                                 \
  X(Status, destroyMemory, "memory_destroy", (Memory))                         \
  X(size_t, tensorBytes, "memory_desc_get_size", (TensorAddress))              \
  X(Status, createAttributes, "primitive_attr_create", (Attributes *))         \
  X(Status, destroyAttributes, "primitive_attr_destroy", (Attributes))         \
  X(Status, setScratch, "primitive_attr_set_scratchpad_mode",                  \
    (Attributes, int mode))                                                    \
  X(Status, setPostOps, "primitive_attr_set_post_ops", (Attributes, PostOps))  \
  X(Status, createPostOps, "post_ops_create", (PostOps *))                     \
  X(Status, destroyPostOps, "post_ops_destroy", (PostOps))                     \
  X(Status, query, "primitive_desc_query",                                     \
    (Form, int what, int index, void *result))                                 \
  X(TensorAddress, queryTensor, "primitive_desc_query_md",                     \
    (Form, int what, int index))                                               \
  X(Status, destroyForm, "primitive_desc_destroy", (Form))                     \
  X(Status, createPrimitive, "primitive_create", (Primitive *, Form))          \
  X(Status, destroyPrimitive, "primitive_destroy", (Primitive))                \
  X(Status, execute, "primitive_execute",                                      \
    (Primitive, Stream, int count, const Argument *))
#define ROTA_ONEDNN_FUNCTIONS_2(X)                                             \
  X(Status, initTensor, "memory_desc_init_by_strides",                         \
    (Tensor2 *, int count, const int64_t *sizes, int type,                     \
     const int64_t *strides))                                                  \
  X(Status, initMatmul, "matmul_desc_init",                                    \
    (Matmul2 *, TensorAddress source, TensorAddress weights,                   \
     TensorAddress bias, TensorAddress destination))                           \
  X(Status, createForm, "primitive_desc_create",                               \
    (Form *, const Matmul2 *, Attributes, Engine, Form hint))                  \
  X(Status, appendSum, "post_ops_append_sum", (PostOps, float scale))
#define ROTA_ONEDNN_FUNCTIONS_3(X)                                             \
  X(Status, createTensor, "memory_desc_create_with_strides",                   \
    (void **, int count, const int64_t *sizes, int type,                       \
     const int64_t *strides))                                                  \
  X(Status, destroyTensor, "memory_desc_destroy", (void *))                    \
  X(Status, createMatmul, "matmul_primitive_desc_create",                      \
    (Form *, Engine, TensorAddress source, TensorAddress weights,              \
     TensorAddress bias, TensorAddress destination, Attributes))               \
  X(Status, appendSum, "post_ops_append_sum",                                  \
    (PostOps, float scale, int32_t zero, int type))

#define X(result, member, name, parameters)                                    \
  result(*member) parameters = nullptr;
struct Functions2 {
  ROTA_ONEDNN_FUNCTIONS_2(X)
};
struct Functions3 {
  ROTA_ONEDNN_FUNCTIONS_3(X)
};
struct Library {
  ROTA_ONEDNN_FUNCTIONS(X)
  Functions2 two; // those of the version alone
  Functions3 three;
  Version version = {};
  void (*setThreads)(int) = nullptr; // of its OpenMP; null: it has no threads
  Engine engine = nullptr;
};
#undef X

void check(Status status, const char *what) {
  if (status != kSuccess)
    throw RunError(fmt::format("oneDNN: {}: status {}", what, int(status)));
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

template <typename F> F symbolOf(void *handle, const std::string &name) {
  return reinterpret_cast<F>(dlsym(handle, name.c_str()));
}

/// The first function that is missing; empty: none is.
std::string findFunctions(void *handle, Library &library) {
  std::string missing;
  auto find = [&](const char *name, auto &place) {
    std::string symbol = std::string("dnnl_") + name;
    place = symbolOf<std::remove_reference_t<decltype(place)>>(handle, symbol);
    if (!place && missing.empty())
      missing = symbol;
  };
#define X(result, member, name, parameters) find(name, library.member);
  ROTA_ONEDNN_FUNCTIONS(X)
#undef X
#define X(result, member, name, parameters) find(name, functions.member);
  if (library.version.major == 2) {
    Functions2 &functions = library.two;
    ROTA_ONEDNN_FUNCTIONS_2(X)
  } else {
    Functions3 &functions = library.three;
    ROTA_ONEDNN_FUNCTIONS_3(X)
  }
#undef X
  return missing;
}

/// What makes an open library of no use; empty: nothing does.
std::string findFault(void *handle, Library &library) {
  auto version = symbolOf<const Version *(*)()>(handle, "dnnl_version");
  if (!version)
    return "expected 'dnnl_version', got a library without it";
  library.version = *version();
  if (int major = library.version.major; major != 2 && major != 3)
    return fmt::format("expected version 2 or 3, got {}", major);
  // Tiles are divided among the trainer's threads. Only OpenMP takes a number
  // of threads from the thread that calls.
  if (unsigned runtime = library.version.cpuRuntime; runtime == kOpenMp)
    library.setThreads = symbolOf<void (*)(int)>(handle, "omp_set_num_threads");
  else if (runtime != kSequential)
    return fmt::format("expected a build with OpenMP or without threads, got "
                       "one whose DNNL_CPU_RUNTIME is {}",
                       runtime);
  if (std::string missing = findFunctions(handle, library); !missing.empty())
    return fmt::format("expected '{}', got a library without it", missing);
  return {};
}

Library openFirst(std::span<const char *const> names) {
  std::string faults;
  for (const char *name : names) {
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      faults += fmt::format("; {}", dlerror());
      continue;
    }
    Library library;
    std::string fault = findFault(handle, library);
    if (fault.empty())
      return library;
    faults += fmt::format("; {}: {}", name, fault);
    dlclose(handle);
  }
  throw InputError("cannot load oneDNN, which computes products on CPUs: "
                   "install version 3 or 2 of it (Debian: libdnnl2; pip: "
                   "onednn-cpu-gomp) and name its folder in LD_LIBRARY_PATH" +
                   faults);
}

const Library &oneDnn() {
  static const Library loaded = [] {
    constexpr const char *kNames[] = {"libdnnl.so.3", "libdnnl.so.2"};
    Library library = openFirst(kNames);
    check(library.createEngine(&library.engine, kCpuEngine, 0), "engine");
    return library;
  }();
  return loaded;
}

std::string textOf(const Version &version) {
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

//===----------------------------------------------------------------------===//
// Objects
//===----------------------------------------------------------------------===//

/// An object that the library destroys.
template <typename T> class Owned {
public:
  explicit Owned(Status (*destroy)(T)) : destroy(destroy) {}
  ~Owned() {
    if (object)
      destroy(object);
  }
  Owned(const Owned &) = delete;
  Owned &operator=(const Owned &) = delete;

  operator T() const { return object; }
  T *place() { return &object; }

private:
  T object = nullptr;
  Status (*destroy)(T);
};

/// The description of a matrix, in the form of the version.
class MatrixForm {
public:
  MatrixForm(const Library &library, int64_t rows, int64_t columns,
             int64_t stride, bool transposed, int type)
      : three(library.three.destroyTensor) {
    int64_t sizes[] = {rows, columns};
    int64_t strides[] = {transposed ? 1 : stride, transposed ? stride : 1};
    bool isTwo = library.version.major == 2;
    check(isTwo ? library.two.initTensor(&two, 2, sizes, type, strides)
                : library.three.createTensor(three.place(), 2, sizes, type,
                                             strides),
          "description of a matrix");
    address = isTwo ? static_cast<void *>(&two) : three;
  }

  operator TensorAddress() const { return address; }

private:
  Tensor2 two;
  Owned<void *> three;
  TensorAddress address;
};

int typeOf(int32_t type) { return type == ROTA_F32 ? kF32 : kBf16; }

/// A thread's state. Its constructor turns off oneDNN's own threads for the
/// calling thread.
struct ThreadStream {
  ThreadStream() : stream(oneDnn().destroyStream) {
    const Library &library = oneDnn();
    if (library.setThreads)
      library.setThreads(1);
    check(library.createStream(stream.place(), library.engine, kDefaultStream),
          "stream");
  }
  static ThreadStream &get() {
    thread_local ThreadStream own;
    return own;
  }

  Owned<Stream> stream;
};

/// The attributes of a product that adds to its result, or does not.
void setAttributes(const Library &library, bool accumulates, int type,
                   Owned<Attributes> &attributes) {
  check(library.createAttributes(attributes.place()), "attributes");
  check(library.setScratch(attributes, kUserScratch), "mode of the scratch");
  if (!accumulates)
    return;
  Owned<PostOps> sum(library.destroyPostOps);
  check(library.createPostOps(sum.place()), "sum");
  check(library.version.major == 2
            ? library.two.appendSum(sum, 1.0f)
            : library.three.appendSum(sum, 1.0f, /*zero=*/0, type),
        "sum");
  check(library.setPostOps(attributes, sum), "sum");
}

/// `form` as compiled by the library, or kUnimplemented.
Status createForm(const Library &library, const RotaGemm &g,
                  Owned<Form> &form) {
  int typeC = typeOf(g.typeC);
  MatrixForm a(library, g.m, g.k, g.lda, g.transposeA, typeOf(g.typeA));
  MatrixForm b(library, g.k, g.n, g.ldb, g.transposeB, typeOf(g.typeB));
  MatrixForm c(library, g.m, g.n, g.ldc, false, typeC);
  Owned<Attributes> attributes(library.destroyAttributes);
  setAttributes(library, g.accumulate, typeC, attributes);
  if (library.version.major == 3)
    return library.three.createMatmul(form.place(), library.engine, a, b,
                                      nullptr, c, attributes);
  Matmul2 matmul;
  check(library.two.initMatmul(&matmul, a, b, nullptr, c), "product");
  return library.two.createForm(form.place(), &matmul, attributes,
                                library.engine, nullptr);
}

} // namespace

void loadOneDnn() { oneDnn(); }

std::string oneDnnVersion() { return textOf(oneDnn().version); }

std::string findOneDnn(std::span<const char *const> names) {
  return textOf(openFirst(names).version);
}

//===----------------------------------------------------------------------===//
// OneDnnProduct
//===----------------------------------------------------------------------===//

struct OneDnnProduct::Parts {
  Owned<Form> form{oneDnn().destroyForm};
  Owned<Primitive> primitive{oneDnn().destroyPrimitive};
  TensorAddress a, b, c, scratch; // of the form
};

OneDnnProduct::OneDnnProduct(std::unique_ptr<Parts> parts)
    : parts(std::move(parts)) {}

OneDnnProduct::~OneDnnProduct() = default;

/// So oneDNN says of processors without AVX-512 (nocopy_checker_avx2 in its
/// gemm_driver.cpp); with AVX-512 it copies where rows share their places in
/// the caches.
bool OneDnnProduct::readsInPlace(const RotaGemm &gemm) {
  return (oneDnn().processor() & kAvx512) != kAvx512 &&
         1.0 / double(gemm.m) + 1.0 / double(gemm.n) >= 0.0038;
}

std::unique_ptr<OneDnnProduct> OneDnnProduct::make(const RotaGemm &gemm,
                                                   bool mayBeSlow) {
  ThreadStream::get(); // code is compiled for the threads that run it: one
  const Library &library = oneDnn();
  auto parts = std::make_unique<Parts>();
  Status status = createForm(library, gemm, parts->form);
  if (status == kUnimplemented && !mayBeSlow)
    return nullptr;
  check(status, "product");
  const char *name = "";
  check(library.query(parts->form, kQueryImplementation, 0, &name), "product");
  if (!mayBeSlow && std::strstr(name, "ref"))
    return nullptr;
  check(library.createPrimitive(parts->primitive.place(), parts->form),
        "product");
  auto tensor = [&](int what) {
    return library.queryTensor(parts->form, what, 0);
  };
  parts->a = tensor(kQuerySource);
  parts->b = tensor(kQueryWeights);
  parts->c = tensor(kQueryDestination);
  parts->scratch = tensor(kQueryScratch);
  return std::unique_ptr<OneDnnProduct>(new OneDnnProduct(std::move(parts)));
}

size_t OneDnnProduct::scratchBytes() const {
  return oneDnn().tensorBytes(parts->scratch);
}

void OneDnnProduct::run(const void *a, const void *b, void *c,
                        void *scratch) const {
  const Library &library = oneDnn();
  struct Operand {
    int number;
    TensorAddress tensor;
    void *place;
  } operands[] = {{kSource, parts->a, const_cast<void *>(a)},
                  {kWeights, parts->b, const_cast<void *>(b)},
                  {kDestination, parts->c, c},
                  {kScratch, parts->scratch, scratch}};
  Owned<Memory> memories[] = {Owned<Memory>(library.destroyMemory),
                              Owned<Memory>(library.destroyMemory),
                              Owned<Memory>(library.destroyMemory),
                              Owned<Memory>(library.destroyMemory)};
  Argument arguments[4];
  for (int i = 0; i < 4; ++i) {
    check(library.createMemory(memories[i].place(), operands[i].tensor,
                               library.engine, operands[i].place),
          "operand");
    arguments[i] = {operands[i].number, memories[i]};
  }
  check(library.execute(parts->primitive, ThreadStream::get().stream, 4,
                        arguments),
        "product");
}

} // namespace rota
