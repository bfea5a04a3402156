/* What all TCP sockets of the program have in common. */
#ifndef RF_TRANSPORT_NET_TCP_OPTIONS_H
#define RF_TRANSPORT_NET_TCP_OPTIONS_H

/* No delay; keepalive after 5 s and every 2 s, and an idle connection is given
 * up after about 20 s without an answer, which is longer than a lease;
 * retransmissions at most 1 s apart where the kernel can do that, and then
 * connecting is not given up sooner either. What the kernel refuses is left as
 * it is. */
void rf_tcp_options_tune(int fd);

/* That, and one that is not idle is given up as soon. Not for a peer that may
 * stop reading for long. */
void rf_tcp_tune_control(int fd);

#endif
