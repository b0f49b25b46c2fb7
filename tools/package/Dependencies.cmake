# SPDX-License-Identifier: Apache-2.0
# Read by cpack: adds the Debian packages of the shared libraries that the programs
# (CPACK_ROTA_PROGRAMS) name to CPACK_DEBIAN_PACKAGE_DEPENDS, at least in the
# versions that they were linked with. dpkg-shlibdeps takes ten seconds a program
# for MLIR and LLVM, and does not find the package of LLVM's library through the
# link to it.

# The paths of the libraries that `program` itself names.
function(find_libraries program result)
  execute_process(COMMAND readelf -d ${program} OUTPUT_VARIABLE dynamic
                  COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ldd ${program} OUTPUT_VARIABLE loaded
                  COMMAND_ERROR_IS_FATAL ANY)
  # A bracket would join elements of a list.
  string(REGEX REPLACE "[][]" "" dynamic "${dynamic}")
  string(REGEX MATCHALL "Shared library: [^\n]+" names "${dynamic}")
  foreach(name ${names})
    string(REPLACE "Shared library: " "" name "${name}")
    string(FIND "${loaded}" "${name} => /" begin)
    string(SUBSTRING "${loaded}" ${begin} -1 line)
    string(REGEX MATCH "/[^ \n]+" path "${line}")
    file(REAL_PATH "${path}" path)
    list(APPEND paths ${path})
  endforeach()
  set(${result} ${paths} PARENT_SCOPE)
endfunction()

foreach(program ${CPACK_ROTA_PROGRAMS})
  find_libraries(${program} paths)
  list(APPEND libraries ${paths})
endforeach()
list(REMOVE_DUPLICATES libraries)
foreach(library ${libraries})
  # Where /lib is a link to /usr/lib, dpkg may know the file by either name.
  string(REGEX REPLACE "^/usr" "" short "${library}")
  foreach(path ${library} ${short})
    execute_process(COMMAND dpkg-query -S ${path} OUTPUT_VARIABLE owner
                    RESULT_VARIABLE status ERROR_QUIET)
    if(status EQUAL 0)
      break()
    endif()
  endforeach()
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "expected a Debian package with ${library}")
  endif()
  string(REGEX MATCH "^[^:]+" package "${owner}")
  execute_process(COMMAND dpkg-query -W -f "\${Version}" ${package}
                  OUTPUT_VARIABLE version COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "-[^-]*$" "" upstream "${version}")
  list(APPEND packages "${package} (>= ${upstream})")
endforeach()
list(REMOVE_DUPLICATES packages)
list(SORT packages)
list(JOIN packages ", " packages)
string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", ${packages}")
