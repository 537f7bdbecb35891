/* Faults of disk and clock, for LD_PRELOAD. The file of $LOOPWRIGHT_FAULTS, which all processes of a
 * service map, says which faults there are now; `shim.py` has the same layout. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct faults {
    int64_t clock_shift_ns;
    int64_t sync_delay_us; /* before each fsync */
    int64_t is_disk_full;  /* files do not grow */
    int64_t holds_syncs;   /* each fsync waits until `num_released` reaches its number */
    int64_t num_held;
    int64_t num_released;
    int64_t held_file; /* the inode of the last file that was held */
};

static struct faults none;
static volatile struct faults *faults = &none;

__attribute__((constructor)) static void map_faults(void)
{
    const char *path = getenv("LOOPWRIGHT_FAULTS");
    int file = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return;
    void *at = mmap(NULL, sizeof(struct faults), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at != MAP_FAILED)
        faults = at;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    int64_t shift = faults->clock_shift_ns;
    if (failed == 0 && shift != 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t ns = now->tv_sec * INT64_C(1000000000) + now->tv_nsec + shift;
        now->tv_sec = ns / INT64_C(1000000000);
        now->tv_nsec = ns % INT64_C(1000000000);
    }
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec at;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &at);
    now->tv_sec = at.tv_sec;
    now->tv_usec = at.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    if (now != NULL)
        *now = at.tv_sec;
    return at.tv_sec;
}

static int is_refused(int file, off_t end)
{
    struct stat status;
    if (!faults->is_disk_full || fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
        return 0;
    return end > status.st_size;
}

static off_t size_of(const struct iovec *parts, int num)
{
    off_t size = 0;
    for (int i = 0; i < num; i++)
        size += (off_t)parts[i].iov_len;
    return size;
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at)
{
    if (is_refused(file, at + (off_t)size)) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_pwrite64, file, data, size, at);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at)
{
    return pwrite64(file, data, size, at);
}

ssize_t pwritev64(int file, const struct iovec *parts, int num, off64_t at)
{
    if (is_refused(file, at + size_of(parts, num))) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_pwritev, file, parts, num, at, 0L);
}

ssize_t pwritev(int file, const struct iovec *parts, int num, off_t at)
{
    return pwritev64(file, parts, num, at);
}

int posix_fallocate(int file, off_t at, off_t size)
{
    if (is_refused(file, at + size))
        return ENOSPC;
    return syscall(SYS_fallocate, file, 0, at, size) == 0 ? 0 : errno;
}

static void wait_for_disk(int file)
{
    if (faults->sync_delay_us > 0)
        usleep((useconds_t)faults->sync_delay_us);
    if (!faults->holds_syncs)
        return;
    struct stat status;
    if (fstat(file, &status) == 0)
        faults->held_file = (int64_t)status.st_ino;
    int64_t number = __atomic_add_fetch(&faults->num_held, 1, __ATOMIC_SEQ_CST);
    while (faults->holds_syncs && faults->num_released < number)
        usleep(200);
}

int fsync(int file)
{
    wait_for_disk(file);
    return (int)syscall(SYS_fsync, file);
}

int fdatasync(int file)
{
    wait_for_disk(file);
    return (int)syscall(SYS_fdatasync, file);
}
