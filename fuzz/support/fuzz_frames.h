#pragma once
/* Scripts of HTTP/2 frames. The first byte of a script chooses the size of the pieces in which the
 * frames are sent; then come steps of one byte each with their operands, in which lengths have two
 * bytes. The preface and SETTINGS are sent first. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fuzz_client;
struct strbuf;

/* The steps that fuzz_frames.c makes frames of: see there. */
struct fuzz_script {
    const uint8_t *at;
    const uint8_t *end;
    /* open - write the fields that open a stream; operands are taken from the script */
    void (*open)(struct strbuf *block, struct fuzz_script *in);
    bool ends; /* set by `open`: no DATA follows */
};

/* fuzz_frames_byte - the next operand; 0 behind the end. */
unsigned fuzz_frames_byte(struct fuzz_script *in);

/* fuzz_frames_field - add a field to a block of headers, as a literal. */
void fuzz_frames_field(struct strbuf *block, const char *name, const char *value);

/* fuzz_frames_play - send all of the script. */
void fuzz_frames_play(struct fuzz_client *c, struct fuzz_script *in);
