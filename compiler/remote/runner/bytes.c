/* Numbers in frames: little endian, wherever they are. */

#include "runner.h"

#include <string.h>

static const char MAGIC[4] = "LWR1";

void put_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> 8 * i);
}

uint32_t get_u32(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

uint32_t take_u32(struct input *input)
{
    if (input->left < 4) {
        input->failed = true;
        return 0;
    }
    uint32_t value = get_u32(input->at);
    input->at += 4;
    input->left -= 4;
    return value;
}

uint64_t take_u64(struct input *input)
{
    uint64_t low = take_u32(input);
    return low | (uint64_t)take_u32(input) << 32;
}

void add_u32(struct reply *reply, uint32_t value)
{
    if (reply->body_bytes + 4 > MAX_BODY_BYTES) return;
    put_u32(reply->content + HEADER_BYTES + reply->body_bytes, value);
    reply->body_bytes += 4;
}

void add_u64(struct reply *reply, uint64_t value)
{
    add_u32(reply, (uint32_t)value);
    add_u32(reply, (uint32_t)(value >> 32));
}

void add_bytes(struct reply *reply, const void *content, size_t size)
{
    if (size > MAX_BODY_BYTES - reply->body_bytes) return;
    memcpy(reply->content + HEADER_BYTES + reply->body_bytes, content, size);
    reply->body_bytes += size;
}

void finish(struct reply *reply, uint32_t kind, uint32_t number)
{
    memcpy(reply->content, MAGIC, 4);
    put_u32(reply->content + 4, kind);
    put_u32(reply->content + 8, number);
    put_u32(reply->content + 12, (uint32_t)reply->body_bytes);
}

void add_text(struct reply *reply, const char *text)
{
    add_u32(reply, (uint32_t)strlen(text));
    add_bytes(reply, text, strlen(text));
}

/* Whether bytes begin a frame of the protocol. */
bool is_header(const uint8_t *header)
{
    return memcmp(header, MAGIC, 4) == 0 && get_u32(header + 12) <= MAX_BODY_BYTES &&
           get_u32(header + 8) <= INT32_MAX;
}
