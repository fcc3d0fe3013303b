#include "gpu/gpu_module.h"

#include <dlfcn.h>

#include <filesystem>

#include "base/error.h"

namespace hsm {
namespace {

constexpr const char* kLibrary = "libhsm_cuda.so";

template <class Function>
Function* symbol(void* library, const char* name, const std::filesystem::path& path) {
  auto* function = reinterpret_cast<Function*>(::dlsym(library, name));
  if (function == nullptr)
    throw UsageError(path.string() + ": no " + name + "; not a library of this program");
  return function;
}

}  // namespace

std::string gpu_module_version() {
  return "hsm " HSM_VERSION ", C++ compiler " __VERSION__;
}

std::filesystem::path find_gpu_module() {
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const auto& candidate : {folder / kLibrary, folder / "../lib/hsm" / kLibrary}) {
    if (std::filesystem::exists(candidate)) return candidate;
  }
  throw UsageError(std::string(kLibrary) + " is neither in " + folder.string() + " nor in " +
                   (folder / "../lib/hsm").lexically_normal().string() +
                   ": this program was built without it; use the device cpu");
}

const GpuModule& load_gpu_module(const std::filesystem::path& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays open: its objects live on
  if (library == nullptr) {
    throw UsageError(std::string("the GPU can't be used: ") + ::dlerror() +
                     " (scripts/setup --gpu installs CUDA's libraries); use the device cpu");
  }
  const std::string version = symbol<HsmGpuModuleVersion>(library, "hsm_gpu_module_version", path)();
  if (version != gpu_module_version()) {
    throw UsageError(path.string() + " belongs to another build (" + version + ", expected " +
                     gpu_module_version() + ")");
  }
  return *symbol<HsmGpuModule>(library, "hsm_gpu_module", path)();
}

const GpuModule& open_gpu_module() {
  return load_gpu_module(find_gpu_module());
}

}  // namespace hsm
