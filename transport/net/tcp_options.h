/* Options of all TCP sockets of the program. */
#ifndef RF_TRANSPORT_NET_TCP_OPTIONS_H
#define RF_TRANSPORT_NET_TCP_OPTIONS_H

/* TCP_NODELAY; keepalive after 5 s and every 2 s, so that an idle connection
 * fails after about 20 s without an answer, longer than a lease;
 * retransmissions at most 1 s apart if the kernel can, without giving up a
 * connect sooner. Options that the kernel refuses stay as they are. */
void rf_tcp_options_tune(int fd);

/* The same, and a busy connection fails as soon. Not for a peer that may stop
 * reading for long. */
void rf_tcp_tune_control(int fd);

#endif
