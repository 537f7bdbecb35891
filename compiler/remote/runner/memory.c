/* The memory of a session: regions by number, each with a page behind it that no access may touch. */

#include "runner.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct region *find_region(struct session *session, uint64_t id)
{
    for (int i = 0; i < MAX_REGIONS; i++)
        if (id != 0 && session->regions[i].id == id) return &session->regions[i];
    return NULL;
}

static uint64_t round_up(uint64_t size, uint64_t unit)
{
    return (size + unit - 1) / unit * unit;
}

/* Whether offset ... offset + size lies in a region. */
static bool is_inside(const struct region *region, uint64_t offset, uint64_t size)
{
    return offset <= region->size && size <= region->size - offset;
}

enum error reserve(struct session *session, struct input *input, struct reply *reply)
{
    uint64_t size = take_u64(input);
    bool is_code = take_u32(input) != 0;
    if (input->failed || input->left) return MALFORMED;
    struct region *region = NULL;
    for (int i = 0; i < MAX_REGIONS && region == NULL; i++)
        if (session->regions[i].id == 0) region = &session->regions[i];
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (region == NULL || size > session->limit_bytes) return NO_MEMORY;
    uint64_t usable = round_up(size + (size == 0), page);
    /* A page that no access may touch is behind each region. */
    uint64_t mapped = usable + page + (is_code ? CODE_ALIGNMENT : 0);
    if (mapped > session->limit_bytes - session->used_bytes || mapped > SIZE_MAX) return NO_MEMORY;
    void *mapping = mmap(NULL, (size_t)mapped, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) return NO_MEMORY;
    uintptr_t start = (uintptr_t)mapping;
    if (is_code) start = (uintptr_t)round_up(start, CODE_ALIGNMENT);
    if (mprotect((void *)(start + (uintptr_t)usable), (size_t)page, PROT_NONE) != 0) {
        munmap(mapping, (size_t)mapped);
        return NO_MEMORY;
    }
    *region = (struct region){.address = (uint8_t *)start, .size = size, .mapped_bytes = mapped,
                              .mapping = mapping, .id = ++session->last_id, .is_code = is_code};
    session->used_bytes += mapped;
    add_u64(reply, region->id);
    add_u64(reply, (uint64_t)start);
    return NO_ERROR;
}

static void unmap(struct session *session, struct region *region)
{
    munmap(region->mapping, (size_t)region->mapped_bytes);
    session->used_bytes -= region->mapped_bytes;
    *region = (struct region){0};
}

enum error release(struct session *session, struct input *input)
{
    struct region *region = find_region(session, take_u64(input));
    if (input->failed || input->left) return MALFORMED;
    if (region == NULL) return UNKNOWN_REGION;
    unmap(session, region);
    return NO_ERROR;
}

enum error write_region(struct session *session, struct input *input)
{
    struct region *region = find_region(session, take_u64(input));
    uint64_t offset = take_u64(input);
    if (input->failed) return MALFORMED;
    if (region == NULL || region->is_sealed) return UNKNOWN_REGION;
    if (!is_inside(region, offset, input->left)) return OUT_OF_RANGE;
    if (input->left) memcpy(region->address + offset, input->at, input->left);
    return NO_ERROR;
}

enum error read_region(struct session *session, struct input *input, struct reply *reply)
{
    struct region *region = find_region(session, take_u64(input));
    uint64_t offset = take_u64(input), size = take_u64(input);
    if (input->failed || input->left) return MALFORMED;
    if (region == NULL || region->is_code) return UNKNOWN_REGION;
    if (size > MAX_BODY_BYTES || !is_inside(region, offset, size)) return OUT_OF_RANGE;
    add_bytes(reply, region->address + offset, (size_t)size);
    return NO_ERROR;
}

/* Make a region executable: code, constants and variables, each of whole pages. No page is ever
   writable and executable at one time. */
enum error seal(struct session *session, struct input *input)
{
    struct region *region = find_region(session, take_u64(input));
    uint64_t code = take_u64(input), constants = take_u64(input);
    if (input->failed || input->left) return MALFORMED;
    if (region == NULL || !region->is_code || region->is_sealed) return UNKNOWN_REGION;
    if (code % CODE_ALIGNMENT || constants % CODE_ALIGNMENT) return OUT_OF_RANGE;
    if (code > region->size || constants > region->size - code) return OUT_OF_RANGE;
#ifndef LW_FUZZ
    __builtin___clear_cache((char *)region->address, (char *)region->address + code);
    if (code && mprotect(region->address, (size_t)code, PROT_READ | PROT_EXEC) != 0)
        return REFUSED;
    if (constants && mprotect(region->address + code, (size_t)constants, PROT_READ) != 0)
        return REFUSED;
#endif
    region->is_sealed = true;
    return NO_ERROR;
}

/* Make a region of data read-only: a kernel that writes into it crashes. */
enum error protect(struct session *session, struct input *input)
{
    struct region *region = find_region(session, take_u64(input));
    if (input->failed || input->left) return MALFORMED;
    if (region == NULL || region->is_code) return UNKNOWN_REGION;
    if (mprotect(region->address, (size_t)(region->size + (region->size == 0)), PROT_READ) != 0)
        return REFUSED;
    region->is_sealed = true;
    return NO_ERROR;
}

void release_all(struct session *session)
{
    for (int i = 0; i < MAX_REGIONS; i++)
        if (session->regions[i].id) unmap(session, &session->regions[i]);
}
