# Targets for the libraries in HSM_THIRD_PARTY, a folder that scripts/gpu-check --pack fills: headers in include,
# static zlib and zstd in lib, GoogleTest's sources. For a machine without Debian's packages.
add_library(hsm_third_party INTERFACE)
# Searched last, as system headers are: LibTorch brings an fmt of its own.
target_compile_options(hsm_third_party INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:SHELL:-idirafter ${HSM_THIRD_PARTY}/include>)
target_compile_definitions(hsm_third_party INTERFACE SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY)
foreach(target CLI11::CLI11 spdlog::spdlog nlohmann_json::nlohmann_json PkgConfig::XXHASH PkgConfig::ZSTD ZLIB::ZLIB)
  add_library(${target} INTERFACE IMPORTED)
  target_link_libraries(${target} INTERFACE hsm_third_party)
endforeach()
target_link_libraries(PkgConfig::ZSTD INTERFACE ${HSM_THIRD_PARTY}/lib/libzstd.a)
target_link_libraries(ZLIB::ZLIB INTERFACE ${HSM_THIRD_PARTY}/lib/libz.a)

if(HSM_TESTS)
  set(INSTALL_GTEST OFF)
  add_subdirectory(${HSM_THIRD_PARTY}/googletest ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
  if(NOT TARGET GTest::gmock)
    add_library(GTest::gmock ALIAS gmock)
    add_library(GTest::gtest_main ALIAS gtest_main)
  endif()
endif()
if(HSM_BENCHMARKS)
  add_library(benchmark::benchmark SHARED IMPORTED)
  set_target_properties(benchmark::benchmark PROPERTIES
    IMPORTED_LOCATION ${HSM_THIRD_PARTY}/lib/libbenchmark.so.1debian INTERFACE_LINK_LIBRARIES hsm_third_party)
endif()
