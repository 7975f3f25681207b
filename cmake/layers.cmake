# One static library per folder of src/, linking exactly the folders that src/LAYERS allows.

set(NEREID_LAYERS)
set(layers_file ${CMAKE_SOURCE_DIR}/src/LAYERS)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${layers_file})
file(STRINGS ${layers_file} layer_lines REGEX "^[0-9]+ [a-z0-9_/]+:")

# nereid_layer(<folder>) - library nereid_<folder> of src/<folder>/*.c, with _ for the / of a folder
# in a folder. A folder that has no source yet makes no library.
function(nereid_layer folder)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.c)
    if(NOT sources)
        return()
    endif()
    string(REPLACE "/" "_" name ${folder})
    add_library(nereid_${name} STATIC ${sources})
    target_include_directories(nereid_${name} PUBLIC
        ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
    target_include_directories(nereid_${name} SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/generated)
    target_link_libraries(nereid_${name} PUBLIC nereid_flags ${NEREID_LIBRARIES})
    if(TARGET nereid_proto_headers)
        add_dependencies(nereid_${name} nereid_proto_headers)
    endif()
endfunction()

foreach(line IN LISTS layer_lines)
    string(REGEX MATCH "^[0-9]+ ([a-z0-9_/]+):(.*)$" _ "${line}")
    set(folder ${CMAKE_MATCH_1})
    separate_arguments(allowed UNIX_COMMAND "${CMAKE_MATCH_2}")
    string(REPLACE "/" "_" name ${folder})
    string(REPLACE "/" "_" allowed_of_${name} "${allowed}")
    if(NOT folder STREQUAL "proto")
        nereid_layer(${folder})
    endif()
    if(TARGET nereid_${name})
        list(APPEND NEREID_LAYERS ${name})
    endif()
endforeach()

foreach(folder IN LISTS NEREID_LAYERS)
    foreach(allowed IN LISTS allowed_of_${folder})
        if(TARGET nereid_${allowed})
            target_link_libraries(nereid_${folder} PUBLIC nereid_${allowed})
        endif()
    endforeach()
endforeach()

list(TRANSFORM NEREID_LAYERS PREPEND nereid_ OUTPUT_VARIABLE NEREID_LAYER_TARGETS)

# A thread's own variables are found without a call: fourteen are used for a small request over gRPC, 58 for one of an ensemble. The dynamic loader keeps little room for
# those of libraries that are loaded late, so they stay few (tools/check_symbols.py).
foreach(target IN LISTS NEREID_LAYER_TARGETS)
    if(NOT target STREQUAL "nereid_proto")
        target_compile_options(${target} PRIVATE -ftls-model=initial-exec)
    endif()
endforeach()

# What no request passes is optimised for size: of a library of which nearly every page is touched at the start, that is memory.
if(NEREID_LTO)
    foreach(name bench cloud cloud_provider cloud_web repo repo_check repo_load run server_options server_control)
        if(TARGET nereid_${name})
            target_compile_options(nereid_${name} PRIVATE -Os)
        endif()
    endforeach()
endif()

# base/log_components.h - the components of the log: the folders right below src/, and the backends.
set(log_components backends)
foreach(line IN LISTS layer_lines)
    string(REGEX MATCH "^[0-9]+ ([a-z0-9_]+)" _ "${line}")
    list(APPEND log_components ${CMAKE_MATCH_1})
endforeach()
list(REMOVE_ITEM log_components proto)
list(REMOVE_DUPLICATES log_components)
list(SORT log_components)
list(LENGTH log_components log_component_count)
list(FIND log_components backends log_component_backends)
list(JOIN log_components ", " log_components)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/base/log_components.h CONTENT
"#pragma once
#define LOG_COMPONENTS \"${log_components}\"
#define LOG_COMPONENT_COUNT ${log_component_count}
#define LOG_COMPONENT_BACKENDS ${log_component_backends}u
")
