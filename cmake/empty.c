/* libtritonserver.so is made of the layer libraries alone; this file is the one source that CMake wants it to have. */
typedef int nereid_empty_translation_unit;
