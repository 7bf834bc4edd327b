/*
 * DualPI2 inside a poll loop: a UDP relay on this machine that forwards datagrams at a rate.
 *
 *     poll LISTEN_PORT TARGET_PORT BITS_PER_SECOND
 *
 * It ends when nothing has come for a second and nothing waits, and says what it did. poll() waits for the next datagram or until
 * the link is free, whichever is sooner; the engine needs no timer of its own. The ECN field is read and set by ancillary data.
 */
#define _DEFAULT_SOURCE

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "dualpi2.h"

#define HEADERS 42u /* of UDP, IPv4 and Ethernet */
#define IDLE_NS UINT64_C(1000000000)

struct datagram {
    size_t length;
    unsigned char payload[];
};

static unsigned long dropped;

static void lost(void *context, struct dualpi2_packet packet, enum dualpi2_queue queue,
                 enum dualpi2_drop_reason reason)
{
    (void)context, (void)queue, (void)reason;
    dropped++;
    free(packet.user);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Room for one int beside a datagram, aligned as its header. */
union ancillary {
    struct cmsghdr header;
    unsigned char room[CMSG_SPACE(sizeof(int))];
};

/* Takes in a datagram with its ECN field; NULL if none is there. */
static struct datagram *receive(int from, uint8_t *ecn)
{
    static unsigned char room[65536];
    struct datagram *datagram;
    union ancillary beside;
    struct iovec payload;
    struct msghdr message = {0};
    struct cmsghdr *part;
    ssize_t length;

    payload.iov_base = room;
    payload.iov_len = sizeof room;
    message.msg_iov = &payload;
    message.msg_iovlen = 1;
    message.msg_control = &beside;
    message.msg_controllen = sizeof beside;
    length = recvmsg(from, &message, MSG_DONTWAIT);
    if (length < 0)
        return NULL;
    datagram = malloc(sizeof *datagram + (size_t)length);
    if (datagram == NULL)
        abort();
    datagram->length = (size_t)length;
    memcpy(datagram->payload, room, datagram->length);
    *ecn = 0;
    for (part = CMSG_FIRSTHDR(&message); part != NULL; part = CMSG_NXTHDR(&message, part))
        if (part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_TOS)
            *ecn = *CMSG_DATA(part) & 3;
    return datagram;
}

static void transmit(int socket, const struct sockaddr_in *target, const struct datagram *datagram,
                     int ecn)
{
    union ancillary beside;
    struct iovec payload;
    struct msghdr message = {0};

    memset(&beside, 0, sizeof beside);
    payload.iov_base = (void *)datagram->payload;
    payload.iov_len = datagram->length;
    message.msg_name = (void *)target;
    message.msg_namelen = sizeof *target;
    message.msg_iov = &payload;
    message.msg_iovlen = 1;
    message.msg_control = &beside;
    message.msg_controllen = sizeof beside;
    beside.header.cmsg_level = IPPROTO_IP;
    beside.header.cmsg_type = IP_TOS;
    beside.header.cmsg_len = CMSG_LEN(sizeof ecn);
    memcpy(CMSG_DATA(&beside.header), &ecn, sizeof ecn);
    if (sendmsg(socket, &message, 0) < 0)
        perror("sendmsg");
}

static struct sockaddr_in local(const char *port)
{
    struct sockaddr_in address = {0};

    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)atoi(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

int main(int argc, char **argv)
{
    struct dualpi2_config config = dualpi2_config_default(1514);
    struct dualpi2 *queue;
    struct dualpi2_departure departure;
    struct sockaddr_in listen_at, target;
    struct pollfd waits;
    struct datagram *datagram;
    unsigned long received = 0, sent = 0, marked = 0;
    uint64_t rate, now, free_ns = 0, last_ns, until_ns;
    uint8_t ecn;
    int on = 1;

    rate = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;
    if (rate == 0) {
        fprintf(stderr, "error: give LISTEN_PORT TARGET_PORT BITS_PER_SECOND\n");
        return 2;
    }
    listen_at = local(argv[1]);
    target = local(argv[2]);
    waits.fd = socket(AF_INET, SOCK_DGRAM, 0);
    waits.events = POLLIN;
    if (waits.fd < 0 || setsockopt(waits.fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof on) < 0
        || bind(waits.fd, (struct sockaddr *)&listen_at, sizeof listen_at) < 0) {
        perror(argv[1]);
        return 1;
    }
    last_ns = now_ns();
    if (dualpi2_create(&queue, &config, NULL, lost, NULL, last_ns) != DUALPI2_ERROR_OK)
        return 1;
    puts("ready");
    fflush(stdout);
    for (;;) {
        now = now_ns();
        dualpi2_poll(queue, now); /* before whatever else happens now */
        while (free_ns <= now && dualpi2_dequeue(queue, now, &departure)) {
            datagram = departure.packet.user;
            transmit(waits.fd, &target, datagram, departure.ce ? 3 : departure.packet.ecn);
            sent++;
            marked += departure.ce;
            free_ns = (free_ns > now ? free_ns : now)
                + (uint64_t)departure.packet.length * UINT64_C(8000000000) / rate;
            free(datagram);
        }
        if (dualpi2_length(queue) == 0 && now >= last_ns + IDLE_NS)
            break;
        until_ns = dualpi2_length(queue) == 0 ? last_ns + IDLE_NS : free_ns;
        /* Rounded up: who wakes too early would spin. */
        poll(&waits, 1, until_ns > now ? (int)((until_ns - now + 999999) / 1000000) : 0);
        while ((datagram = receive(waits.fd, &ecn)) != NULL) {
            struct dualpi2_packet packet = {0};

            packet.user = datagram;
            packet.length = (uint32_t)datagram->length + HEADERS;
            packet.memory = (uint32_t)(sizeof *datagram + datagram->length);
            packet.ecn = ecn;
            received++;
            last_ns = now_ns();
            dualpi2_enqueue(queue, last_ns, packet);
        }
    }
    printf("received %lu sent %lu marked %lu dropped %lu\n", received, sent, marked, dropped);
    dualpi2_destroy(queue);
    return 0;
}
