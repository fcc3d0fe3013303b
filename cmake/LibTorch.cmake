# Imported target LibTorch::cpu from the Python wheel of torch.
#
# The wheel's own TorchConfig.cmake demands a CUDA toolkit even for a CPU program, so the few lines that are
# needed stand here. Sets HSM_TORCH_VERSION.
if(NOT HSM_VENV)
  if(DEFINED ENV{HSM_VENV})
    set(HSM_VENV $ENV{HSM_VENV})
  else()
    set(HSM_VENV ${CMAKE_SOURCE_DIR}/.venv)
  endif()
endif()

file(GLOB hsm_torch_dirs ${HSM_VENV}/lib/python3*/site-packages/torch)
find_path(TORCH_DIRECTORY NAMES include/ATen/ATen.h HINTS ${hsm_torch_dirs} ENV TORCH_DIRECTORY NO_DEFAULT_PATH)
if(NOT TORCH_DIRECTORY)
  message(FATAL_ERROR "LibTorch not found in ${HSM_VENV}: run scripts/setup, or set HSM_VENV or TORCH_DIRECTORY "
                      "to the folder of an installed torch package")
endif()
file(STRINGS ${TORCH_DIRECTORY}/version.py hsm_torch_version_line REGEX "^__version__ = ")
string(REGEX REPLACE "^__version__ = ['\"](.*)['\"]$" "\\1" HSM_TORCH_VERSION "${hsm_torch_version_line}")

add_library(LibTorch::c10 SHARED IMPORTED)
set_target_properties(LibTorch::c10 PROPERTIES IMPORTED_LOCATION ${TORCH_DIRECTORY}/lib/libc10.so)
add_library(LibTorch::cpu SHARED IMPORTED)
set_target_properties(LibTorch::cpu PROPERTIES
  IMPORTED_LOCATION ${TORCH_DIRECTORY}/lib/libtorch_cpu.so
  INTERFACE_INCLUDE_DIRECTORIES "${TORCH_DIRECTORY}/include;${TORCH_DIRECTORY}/include/torch/csrc/api/include"
  INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${TORCH_DIRECTORY}/include;${TORCH_DIRECTORY}/include/torch/csrc/api/include"
  INTERFACE_LINK_LIBRARIES LibTorch::c10)
message(STATUS "LibTorch ${HSM_TORCH_VERSION} in ${TORCH_DIRECTORY}")
