"""The fake servers do not use the streams of the test's process, which commands in it use."""

from __future__ import annotations

import socket
import struct
import time

from fakes.loopback import LoopbackServer


def test_a_client_that_goes_in_the_middle_of_a_request_prints_nothing(capsys) -> None:
    with LoopbackServer() as fake:
        client = socket.create_connection(("127.0.0.1", int(fake.base_url.rpartition(":")[2])))
        client.sendall(b"POST /v1 HTTP/1.1\r\nHost: x\r\n")
        time.sleep(0.05)  # until it is being read
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()  # with a reset, as a killed client's
        time.sleep(0.2)
    assert capsys.readouterr() == ("", "")
