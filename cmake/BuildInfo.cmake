# Writes hsm_build.h, the header behind src/cli/build_info.cpp, anew at each build but touches it only when its
# text changes, so that the commit shown is the one that was compiled.
if(CMAKE_SCRIPT_MODE_FILE)
  if(NOT COMMIT)
    execute_process(COMMAND git describe --always --abbrev=12 --exclude=* --dirty WORKING_DIRECTORY ${SOURCE}
                    OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  if(NOT COMMIT)
    set(COMMIT unknown)
  endif()
  file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#pragma once
#define HSM_BUILD_VERSION \"${VERSION}\"
#define HSM_BUILD_COMMIT \"${COMMIT}\"
#define HSM_BUILD_LIBTORCH \"${LIBTORCH}\"
#define HSM_BUILD_COMPILER \"${COMPILER}\"
")
  return()
endif()

add_custom_target(hsm_build_info BYPRODUCTS ${CMAKE_BINARY_DIR}/generated/hsm_build.h
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${CMAKE_BINARY_DIR}/generated/hsm_build.h -DSOURCE=${CMAKE_SOURCE_DIR}
          -DVERSION=${PROJECT_VERSION} -DCOMMIT=${HSM_COMMIT} -DLIBTORCH=${HSM_TORCH_VERSION}
          "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" -P ${CMAKE_CURRENT_LIST_FILE}
  COMMENT "Asking git which commit this is" VERBATIM)
