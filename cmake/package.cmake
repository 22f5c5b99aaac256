# Debian packages by CPack (scripts/package.sh): tools, library, headers, and the Python package where it is built.

set(DRPS_PACKAGE_MAINTAINER "drps maintainers <maintainers@users.noreply.github.com>" CACHE STRING
    "Who is named as the maintainer of packages")
set(DRPS_DEBIAN_REVISION 1 CACHE STRING "The revision of packages")

# drps_gzip(OUT SOURCE NAME): SOURCE, packed as NAME.gz for /usr/share, which Debian wants of manual pages and changes.
function(drps_gzip out source name)
    set(packed ${PROJECT_BINARY_DIR}/package/${name}.gz)
    add_custom_command(OUTPUT ${packed} COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/package
                       COMMAND gzip -9nc ${source} > ${packed} DEPENDS ${source} VERBATIM)
    set(${out} ${packed} PARENT_SCOPE)
endfunction()

# What every package says of itself.
function(drps_package_documents)
    string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH, where it is set
    set(folder ${PROJECT_BINARY_DIR}/package)
    file(CONFIGURE OUTPUT ${folder}/changelog.Debian CONTENT
"drps (${PROJECT_VERSION}-${DRPS_DEBIAN_REVISION}) bookworm; urgency=medium

  * Packages of drps ${PROJECT_VERSION}; changelog.gz says what is new.

 -- ${DRPS_PACKAGE_MAINTAINER}  ${date}
")
    file(CONFIGURE OUTPUT ${folder}/copyright CONTENT
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: drps

Files: *
Copyright: 2026 the drps authors
License: Apache-2.0
 On Debian systems, the Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0.
")
    drps_gzip(debian ${folder}/changelog.Debian changelog.Debian)
    drps_gzip(changes ${PROJECT_SOURCE_DIR}/CHANGELOG.md changelog)
    add_custom_target(drps_package_documents ALL DEPENDS ${debian} ${changes})
    foreach(component IN LISTS ARGN)
        install(FILES ${folder}/copyright ${debian} ${changes} COMPONENT ${component}
                DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${DRPS_PACKAGE_OF_${component}})
    endforeach()
endfunction()

# drps_package(COMPONENT NAME SECTION SUMMARY TEXT [DEPENDS ...]): one package, of what is installed as the component.
function(drps_package component name section summary text)
    cmake_parse_arguments(P "" "" "DEPENDS" ${ARGN})
    string(TOUPPER ${component} upper)
    list(JOIN P_DEPENDS ", " depends)
    foreach(setting "DEBIAN_${upper}_PACKAGE_NAME=${name}" "DEBIAN_${upper}_FILE_NAME=DEB-DEFAULT" "DEBIAN_${upper}_PACKAGE_SECTION=${section}"
            "DEBIAN_${upper}_PACKAGE_DEPENDS=${depends}" "DEBIAN_${upper}_DESCRIPTION=${summary}\n${text}")
        string(REGEX MATCH "^([^=]*)=(.*)$" _ "${setting}")
        set(CPACK_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}" PARENT_SCOPE)
    endforeach()
    set(DRPS_PACKAGE_OF_${component} ${name} PARENT_SCOPE)
    set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
endfunction()

# drps_packages(): all of them; last, when what is installed is known.
macro(drps_packages)
    set(version ${PROJECT_VERSION}-${DRPS_DEBIAN_REVISION})
    set(CPACK_COMPONENTS_ALL "")
    set(about "drps trains sparse models (linear and logistic regression, factorization
machines, matrix factorization, topics) of which neither the data nor the
parameters need fit memory.")
    drps_package(tools drps science "train sparse models larger than memory" "${about}
.
This package has the command-line tools, their manual pages, and completion
for bash and zsh.")
    drps_package(library libdrps0 libs "train sparse models larger than memory: library" "${about}
.
This package has the shared library.")
    drps_package(dev libdrps-dev libdevel "train sparse models larger than memory: development" "${about}
.
This package has the headers, the static library, and what pkg-config says."
                 DEPENDS "libdrps0 (= ${version})" libc6-dev libjansson-dev libxxhash-dev)
    if(TARGET drps_python)
        drps_package(python python3-drps python "train sparse models larger than memory: Python" "${about}
.
This package has the Python module."
                     DEPENDS "libdrps0 (= ${version})" python3 python3-cffi-backend python3-numpy python3-scipy)
        set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
        set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "drps, python3-sklearn")
    endif()
    if(TARGET drps_mpi)
        drps_package(mpi drps-mpi science "train sparse models larger than memory: MPI" "${about}
.
This package has what ranks on several machines need to talk over Open MPI."
                     DEPENDS "drps (= ${version})")
    endif()
    if(TARGET drps_cuda)
        drps_package(cuda drps-cuda science "train sparse models larger than memory: CUDA" "${about}
.
This package has the kernels for a GPU. Nets need cuBLAS, too, of the CUDA
release that it was built with."
                     DEPENDS "drps (= ${version})")
    endif()
    drps_package_documents(${CPACK_COMPONENTS_ALL})

    set(CPACK_GENERATOR DEB)
    set(CPACK_PACKAGE_CONTACT "${DRPS_PACKAGE_MAINTAINER}")
    set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
    set(CPACK_DEBIAN_PACKAGE_RELEASE ${DRPS_DEBIAN_REVISION})
    set(CPACK_DEBIAN_PACKAGE_SOURCE drps)
    set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
    set(CPACK_DEB_COMPONENT_INSTALL ON)
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
    set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
    set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
    # The library is found as soon as it is installed.
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/package/triggers CONTENT "activate-noawait ldconfig\n")
    set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/package/triggers)
    set(CPACK_STRIP_FILES ON)
    install(CODE "execute_process(COMMAND strip --strip-debug \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libdrps.a)" COMPONENT dev)
    set(CPACK_OUTPUT_FILE_PREFIX packages)
    include(CPack)
endmacro()
