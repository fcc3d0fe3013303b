# cmake --install: a folder that runs on a machine without the Python environment and without the packages of
# the build, given the same or a later C library: bin/hsm, lib/hsm with every shared library it needs,
# share/hsm/configs.
#
# The libraries find each other by hsm's RPATH, which unlike RUNPATH holds for libraries of libraries, too.
set_target_properties(hsm PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/hsm")
target_link_options(hsm PRIVATE -Wl,--disable-new-dtags)
install(TARGETS hsm RUNTIME_DEPENDENCY_SET hsm_libraries RUNTIME DESTINATION bin)
install(RUNTIME_DEPENDENCY_SET hsm_libraries
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|mvec|dl|rt|pthread|resolv|util)\\.so"
  LIBRARY DESTINATION lib/hsm)
if(TARGET hsm_cuda)
  install(TARGETS hsm_cuda LIBRARY DESTINATION lib/hsm)  # finds LibTorch where it was when this was built
endif()
install(DIRECTORY configs/ DESTINATION share/hsm/configs FILES_MATCHING PATTERN "*.json")
